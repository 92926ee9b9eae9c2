"""Networks that embed images of 32 × 32 pixels. Needs PyTorch: import it where it is used."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from .._check import FloatArray
from ..errors import FileError
from ..rows.files import first_line

_BATCH = 500  # images embedded at a time


def conv4(width: int = 64) -> Any:
    """Return Conv-4: four blocks of a 3×3 convolution, batch norm, pooling and ReLU; d = 4·width.

    The usual ReLU before pooling gives the same values at four times its cost.
    """
    channels = [3, *[width] * 4]
    blocks = [
        nn.Sequential(_convolution(a, b), nn.BatchNorm2d(b), nn.MaxPool2d(2), nn.ReLU())
        for a, b in zip(channels[:-1], channels[1:], strict=True)
    ]
    return nn.Sequential(*blocks, nn.Flatten())


def resnet12(widths: Sequence[int] = (64, 160, 320, 640)) -> Any:
    """Return the ResNet-12 of MetaOptNet (Lee et al., 2019); d = 4·640 as in the paper.

    Blocks of three convolutions with a projected shortcut, pooling and dropout of 0.1, where the
    original drops squares of pixels (DropBlock) in the last two.
    """
    channels = [3, *widths]
    blocks: list[Any] = []
    for a, b in zip(channels[:-1], channels[1:], strict=True):
        layers: list[Any] = []
        for before in (a, b, b):
            layers += [_convolution(before, b), nn.BatchNorm2d(b), nn.LeakyReLU(0.1)]
        shortcut = nn.Sequential(nn.Conv2d(a, b, 1, bias=False), nn.BatchNorm2d(b))
        residual = Residual(nn.Sequential(*layers[:-1]), shortcut, nn.LeakyReLU(0.1))
        blocks.append(nn.Sequential(residual, nn.MaxPool2d(2), nn.Dropout(0.1)))
    return nn.Sequential(*blocks, nn.Flatten())


def resnet20(path: Path) -> Any:
    """Return the ResNet-20 of CIFAR-10 (He et al., 2016) without its classifier; d = 64.

    `path` is the `state_dict` of akamaster/pytorch_resnet_cifar10.
    """
    blocks: list[Any] = [_convolution(3, 16), nn.BatchNorm2d(16), nn.ReLU()]
    for a, b in ((16, 16), (16, 16), (16, 16), (16, 32), (32, 32), (32, 32), (32, 64), (64, 64)):
        blocks.append(_basic_block(a, b))
    blocks.append(_basic_block(64, 64))
    network = nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    try:  # not unpickled: only tensors are read
        stored = torch.load(path, map_location="cpu", weights_only=True)["state_dict"]
        values = [value for name, value in stored.items() if not name.startswith("module.linear")]
        # Both lists are in the order of the layers.
        names = [name for name in network.state_dict() if "num_batches" not in name]
        network.load_state_dict(dict(zip(names, values, strict=True)), strict=False)
    except Exception as error:  # torch raises many kinds on foreign bytes
        raise FileError(f"{str(path)!r} has no weights of ResNet-20: {first_line(error)}.") from error
    return network.eval()


class Residual(nn.Module):  # type: ignore[misc]  # torch has no types here
    """A block f(x) + s(x) of a residual network, then an activation."""

    def __init__(self, layers: Any, shortcut: Any, activation: Any) -> None:
        super().__init__()
        self.layers, self.shortcut, self.activation = layers, shortcut, activation

    def forward(self, x: Any) -> Any:
        """Return the output of the block."""
        return self.activation(self.layers(x) + self.shortcut(x))


def embed(network: Any, images: npt.NDArray[Any], *, mean: Sequence[float], std: Sequence[float]) -> FloatArray:
    """Return the embeddings of images, (n, 32, 32, 3) of uint8 -> (n, d)."""
    was_training = network.training
    network.eval()
    try:
        with torch.inference_mode():
            parts = [
                network(normalised(images[start : start + _BATCH], mean, std)).numpy()
                for start in range(0, len(images), _BATCH)
            ]
    finally:
        network.train(was_training)
    return np.concatenate(parts).astype(np.float64)


def normalised(images: npt.NDArray[Any], mean: Sequence[float], std: Sequence[float]) -> Any:
    """Return images of uint8 as a tensor (n, 3, 32, 32), by channel of this mean and deviation."""
    values = torch.from_numpy(np.ascontiguousarray(images)).permute(0, 3, 1, 2) / 255.0
    shape = (1, 3, 1, 1)
    scaled = (values - torch.tensor(mean).view(shape)) / torch.tensor(std).view(shape)
    return scaled.contiguous(memory_format=torch.channels_last)


def _basic_block(n_in: int, n_out: int) -> Any:
    """Return a block of two convolutions; where it halves images, x is thinned and padded."""
    stride = n_out // n_in
    layers = nn.Sequential(
        _convolution(n_in, n_out, stride),
        nn.BatchNorm2d(n_out),
        nn.ReLU(),
        _convolution(n_out, n_out),
        nn.BatchNorm2d(n_out),
    )
    extra = (n_out - n_in) // 2
    thinned = nn.Sequential(nn.AvgPool2d(1, stride), nn.ZeroPad3d((0, 0, 0, 0, extra, extra)))
    return Residual(layers, nn.Identity() if stride == 1 else thinned, nn.ReLU())


def _convolution(n_in: int, n_out: int, stride: int = 1) -> Any:
    return nn.Conv2d(n_in, n_out, 3, stride, padding=1, bias=False)
