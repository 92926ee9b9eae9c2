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
from .networks import Pixels, prepared

_FORMAT = "unaligned-embeddings"


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


class Residual(nn.Module):
    """A block f(x) + s(x) of a residual network, then an activation."""

    def __init__(self, layers: Any, shortcut: Any, activation: Any) -> None:
        super().__init__()
        self.layers, self.shortcut, self.activation = layers, shortcut, activation

    def forward(self, x: Any) -> Any:
        """Return the output of the block."""
        return self.activation(self.layers(x) + self.shortcut(x))


def embed_classes(
    network: Any, classes: Mapping[str, npt.NDArray[Any]], folder: Path, pixels: Pixels
) -> dict[str, FloatArray]:
    """Return the embeddings of each class, (n, 32, 32, 3) of uint8 -> (n, d).

    They are kept in the folder, looked up by a hash of the network, of `pixels`, and of the
    images.
    """
    weights = hashlib.blake2b(repr((pixels.mean, pixels.std)).encode(), digest_size=16)
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
            with torch.inference_mode():
                blocks = [images[start : start + 500] for start in range(0, len(images), 500)]
                parts = [network(prepared(block, pixels)).numpy() for block in blocks]
            arrays = {"points": np.concatenate(parts)}
            write_archive(path, _FORMAT, {"class": name}, arrays)
        found[name] = arrays["points"].astype(np.float64)
    return found


def _convolution(n_in: int, n_out: int) -> Any:
    return nn.Conv2d(n_in, n_out, 3, padding=1, bias=False)
