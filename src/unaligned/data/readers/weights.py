"""PyTorch files: `.pt`, `.pth`, `.th`, through the weights-only loader and nothing else."""

from __future__ import annotations

import pickle
import warnings
import zipfile
from collections.abc import Iterator
from typing import Any

from ...errors import FileError, required
from .base import Contents, Item, Request, array_bytes


def read_torch(request: Request) -> Contents:
    """Return the tensors of a file; those in nested dicts have keys with slashes."""
    torch = required("torch", "torch", "Reading PyTorch files")
    request.afford(request.size)
    if zipfile.is_zipfile(request.path):
        with zipfile.ZipFile(request.path) as archive:
            request.afford(sum(member.file_size for member in archive.infolist()))
    try:
        with warnings.catch_warnings():  # what torch says about protocols helps nobody here
            warnings.simplefilter("ignore")
            stored = torch.load(request.path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise FileError(
            "torch's weights-only loader refuses it: it is damaged, or holds objects that could "
            "run any code. Save tensors only, e.g. torch.save(model.state_dict(), path)."
        ) from error
    items = {
        key: _item(request, key, tensor) for key, tensor in _tensors(stored, "", set(), torch)
    }
    if not items:
        raise FileError(f"There is no tensor in it, but {type(stored).__name__}.")
    return Contents(items)


def _item(request: Request, key: str, tensor: Any) -> Item:
    shape = tuple(int(side) for side in tensor.shape)
    kind = str(tensor.dtype).removeprefix("torch.")
    n_bytes = array_bytes(shape, tensor.dtype.itemsize)

    def read() -> Any:
        request.afford(n_bytes, key)  # a view can repeat one stored number for ever
        return tensor

    numeric = not (tensor.dtype.is_complex or tensor.is_quantized)
    return Item(shape, kind, read, numeric, n_bytes)


def _tensors(value: Any, key: str, seen: set[int], torch: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, torch.Tensor):
        yield key, value
        return
    if id(value) in seen or len(seen) > 100_000:  # a container can hold itself
        return
    pairs: Any = ()
    if isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, (list, tuple)):
        pairs = enumerate(value)
    seen.add(id(value))
    for name, inner in pairs:
        yield from _tensors(inner, f"{key}/{name}" if key else str(name), seen, torch)
