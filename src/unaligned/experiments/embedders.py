"""Networks that embed images of 32 × 32 pixels. Needs PyTorch: import it where it is used."""

import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from .. import engine
from .._check import FloatArray
from ..errors import FileError
from ..io.archive import read_archive, write_archive
from ..rows.files import first_line

_FORMAT = "unaligned-embeddings"
_BATCH = 500  # images embedded at a time


def conv4(width: int = 64) -> Any:
    """Return Conv-4: four blocks of a 3×3 convolution, batch norm, pooling and ReLU; d = 4·width.

    The usual ReLU before pooling gives the same values at four times its cost.
    """
    channels = [3, *[width] * 4]
    blocks = [
        nn.Sequential(_convolution(a, b), nn.BatchNorm2d(b), nn.MaxPool2d(2), nn.ReLU())
        for a, b in pairwise(channels)
    ]
    return nn.Sequential(*blocks, nn.Flatten())


def resnet12(widths: Sequence[int] = (64, 160, 320, 640)) -> Any:
    """Return the ResNet-12 of MetaOptNet (Lee et al., 2019); d = 4·640 as in the paper.

    Blocks of three convolutions with a projected shortcut, pooling and dropout of 0.1, where the
    original drops squares of pixels (DropBlock) in the last two.
    """
    channels = [3, *widths]
    blocks: list[Any] = []
    for a, b in pairwise(channels):
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
        raise FileError(
            f"{str(path)!r} has no weights of ResNet-20: {first_line(error)}."
        ) from error
    return network.eval()


class Residual(nn.Module):
    """A block f(x) + s(x) of a residual network, then an activation."""

    def __init__(self, layers: Any, shortcut: Any, activation: Any) -> None:
        super().__init__()
        self.layers, self.shortcut, self.activation = layers, shortcut, activation

    def forward(self, x: Any) -> Any:
        """Return the output of the block."""
        return self.activation(self.layers(x) + self.shortcut(x))


def embed_classes(
    network: Any,
    classes: Mapping[str, npt.NDArray[Any]],
    folder: Path,
    *,
    mean: Sequence[float],
    std: Sequence[float],
) -> dict[str, FloatArray]:
    """Return the embeddings of each class, (n, 32, 32, 3) of uint8 -> (n, d).

    They are kept in the folder, looked up by a hash of the network, of `mean` and `std`, and of
    the images.
    """
    weights = hashlib.blake2b(repr((mean, std)).encode(), digest_size=16)
    for name, value in network.state_dict().items():
        weights.update(name.encode() + value.numpy().tobytes())
    network.eval()
    found = {}
    for name, images in engine.steps(classes.items(), len(classes), "embedding classes"):
        digest = weights.copy()
        digest.update(np.ascontiguousarray(images).data)
        path = folder / f"{digest.hexdigest()}.npz"
        try:
            _, arrays = read_archive(path, _FORMAT)
        except FileError:  # absent or damaged
            arrays = {"points": _embed(network, images, mean, std)}
            write_archive(path, _FORMAT, {"class": name}, arrays)
        found[name] = arrays["points"].astype(np.float64)
    return found


def _embed(
    network: Any, images: npt.NDArray[Any], mean: Sequence[float], std: Sequence[float]
) -> npt.NDArray[Any]:
    with torch.inference_mode():
        blocks = [images[start : start + _BATCH] for start in range(0, len(images), _BATCH)]
        parts = [network(normalised(block, mean, std)).numpy() for block in blocks]
    return np.concatenate(parts)


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
