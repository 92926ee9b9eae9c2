"""PyTorch files: `.pt`, `.pth`, `.th`, through the weights-only loader and nothing else."""

from __future__ import annotations

import os
import pickle
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import FileError, required
from ..rows.files import NpyRows, StoredRows
from .base import Contents, Item, Request, array_bytes, type_name

_TENSOR_BYTES = {
    **dict.fromkeys(("BOOL", "U8", "I8"), 1),
    **dict.fromkeys(("U16", "I16", "F16"), 2),
    **dict.fromkeys(("U32", "I32", "F32"), 4),
    **dict.fromkeys(("U64", "I64", "F64"), 8),
}


class NpyHeader(NamedTuple):
    """What the header of a `.npy` says, and where the values start."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    offset: int

    @property
    def n_bytes(self) -> int:
        """The bytes of the values."""
        return array_bytes(self.shape, self.dtype.itemsize)

    @property
    def holds(self) -> str:
        """The values, as messages call them."""
        return "Python objects" if self.dtype.hasobject else type_name(self.dtype)


def read_header(file: IO[bytes], size: int) -> NpyHeader:
    """Return the header of a `.npy` stream of `size` bytes, refusing one that lies."""
    start = file.read(6)
    if start != b"\x93NUMPY":
        raise FileError(
            "It is a pickle, which can run any code when it is read; it is not opened. "
            "Write arrays with numpy.save(path, array)."
            if start[:1] == b"\x80"
            else "It does not start as a .npy file does; it is damaged or of another format."
        )
    major, _minor = file.read(2)
    if major == 3:
        raise FileError("It holds records with named fields, not a table of numbers.")
    if major not in (1, 2):
        raise FileError(f"It has version {major} of the .npy format, which is not known.")
    read = getattr(np.lib.format, f"read_array_header_{major}_0")
    shape, fortran, dtype = read(file)
    header = NpyHeader(tuple(int(side) for side in shape), bool(fortran), dtype, file.tell())
    _require_honest(header, size)
    return header


def _require_honest(header: NpyHeader, size: int) -> None:
    if min(header.shape, default=1) < 0:
        raise FileError(f"Its header says the shape is {header.shape}; sizes cannot be negative.")
    there = size - header.offset
    if header.n_bytes != there and not header.dtype.hasobject:  # these are never read
        what = "cut short" if header.n_bytes > there else "not one array only"
        raise FileError(
            f"Its header says {header.shape} of {header.dtype}, {header.n_bytes} bytes, and "
            f"{there} follow: it is {what}. Write it again with numpy.save(path, array)."
        )


def _require_values(header: NpyHeader, what: str) -> None:
    """Refuse to read what could run code."""
    if header.dtype.hasobject:
        raise FileError(
            f"{what} holds Python objects, which can run any code when they are read; they are "
            "not opened. Save numbers as values.astype(float), and labels as labels.astype(str)."
        )


def _read_values(file: IO[bytes], header: NpyHeader) -> npt.NDArray[Any]:
    values = np.empty(header.n_bytes, dtype=np.uint8)
    view, position = values.data, 0
    while position < header.n_bytes:
        chunk = file.read(min(1 << 24, header.n_bytes - position))
        if not chunk:
            raise FileError("It ends early: it is shorter than its header says.")
        view[position : position + len(chunk)] = chunk
        position += len(chunk)
    order = "F" if header.fortran else "C"
    return values.view(header.dtype).reshape(header.shape, order=order)  # type: ignore[call-overload,no-any-return]


def _numeric(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "biuf"


def read_npy(request: Request) -> Contents:
    """Return the one array of a `.npy`; large ones are read by blocks or mapped."""
    with request.path.open("rb") as file:
        header = read_header(file, request.size)
    shape, dtype = header.shape, header.dtype

    def read() -> Any:
        _require_values(header, "It")
        if len(shape) == 2 and 0 not in shape and request.is_lazy(header.n_bytes):
            if header.fortran or not _numeric(dtype):
                return np.load(request.path, mmap_mode="r", allow_pickle=False)
            return NpyRows(request.path)
        request.afford(header.n_bytes)
        with request.path.open("rb") as file:
            file.seek(header.offset)
            return _read_values(file, header)

    in_memory = 0 if request.is_lazy(header.n_bytes) else header.n_bytes
    return Contents({"": Item(shape, header.holds, read, _numeric(dtype), in_memory)})


def read_npz(request: Request) -> Contents:
    """Return the arrays of a `.npz`, none of them read yet; labels are its 1-D arrays."""
    items: dict[str, Item] = {}
    with zipfile.ZipFile(request.path) as archive:
        for member in archive.infolist():
            if not member.filename.endswith(".npy"):
                continue
            key = member.filename.removesuffix(".npy")
            if key in items:
                raise FileError(f"It holds the array {key!r} twice.")
            items[key] = _npz_item(request, archive, member)
    if not items:
        raise FileError("It is a zip file without any .npy in it: numpy.savez writes those.")
    return Contents(items, partial(_npz_labels, items))


def _npz_item(request: Request, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Item:
    key = member.filename.removesuffix(".npy")
    try:
        with archive.open(member) as file:
            header = read_header(file, member.file_size)
    except FileError as error:
        raise FileError(f"The array {key!r}: {error}") from error

    def read() -> npt.NDArray[Any]:
        _require_values(header, f"The array {key!r}")
        request.afford(header.n_bytes, key)
        with zipfile.ZipFile(request.path) as archive, archive.open(member) as file:
            return _read_values(file, read_header(file, member.file_size))

    return Item(header.shape, header.holds, read, _numeric(header.dtype), header.n_bytes)


def _npz_labels(items: dict[str, Item], name: str) -> npt.NDArray[Any]:
    item = items.get(name)
    if item is None or len(item.shape) != 1:
        flat = [key for key, other in items.items() if len(other.shape) == 1]
        raise FileError(
            f"group_by={name!r} must be an array with one label per row; "
            f"{'it is missing' if item is None else f'it is {item}'}. "
            f"One-dimensional arrays here: {', '.join(map(repr, flat)) or 'none'}."
        )
    return np.asarray(item.read())


def read_safetensors(request: Request) -> Contents:
    """Return the tensors of a `.safetensors`."""
    library = required("safetensors", "formats", "Reading .safetensors")
    with library.safe_open(os.fspath(request.path), framework="np") as file:
        keys = list(file.keys())
        parts = [(key, file.get_slice(key)) for key in keys]
        told = [(key, tuple(part.get_shape()), str(part.get_dtype())) for key, part in parts]
    return Contents({key: _tensor_item(request, key, shape, kind) for key, shape, kind in told})


def _tensor_item(request: Request, key: str, shape: tuple[int, ...], kind: str) -> Item:
    known = kind in _TENSOR_BYTES
    n_bytes = array_bytes(shape, _TENSOR_BYTES.get(kind, 8))
    lazy = len(shape) == 2 and 0 not in shape and request.is_lazy(n_bytes)

    def read() -> Any:
        if not known:
            raise FileError(f"The tensor {key!r} is {kind}, which NumPy lacks. Save it as F32.")
        if lazy:
            return StoredRows(request.path, partial(_open_tensor, request.path, key), shape)
        request.afford(n_bytes, key)
        library = required("safetensors", "formats", "Reading .safetensors")
        with library.safe_open(os.fspath(request.path), framework="np") as file:
            return file.get_tensor(key)

    return Item(shape, kind, read, known, 0 if lazy else n_bytes)


@contextmanager
def _open_tensor(path: Path, key: str) -> Iterator[Any]:
    library = required("safetensors", "formats", "Reading .safetensors")
    with library.safe_open(os.fspath(path), framework="np") as file:
        yield file.get_slice(key)


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
