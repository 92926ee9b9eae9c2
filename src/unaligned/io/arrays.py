"""Arrays: NumPy's `.npy` and `.npz`, `.safetensors`, and PyTorch files without unpickling."""

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
from .base import Contents, Item, Request, array_bytes, flat_labels, type_name


class NpyHeader(NamedTuple):
    """The header of a `.npy`."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]

    @property
    def n_bytes(self) -> int:
        """The bytes of the values."""
        return array_bytes(self.shape, self.dtype.itemsize)

    def item(self, read: Any, n_bytes: int) -> Item:
        """Return the array as an item."""
        kind = "Python objects" if self.dtype.hasobject else type_name(self.dtype)
        return Item(self.shape, kind, read, self.dtype.kind in "biuf", n_bytes)

    def require_values(self, label: str) -> None:
        """Raise for Python objects."""
        if self.dtype.hasobject:
            raise FileError(
                f"{label} contains Python objects, which can run any code when they are read. "
                "Save numbers as values.astype(float), and labels as labels.astype(str)."
            )


def read_header(file: IO[bytes], size: int) -> NpyHeader:
    """Return the header of a `.npy` stream of `size` bytes, which must fit the size."""
    version, _ = np.lib.format.read_magic(file)
    read = getattr(np.lib.format, f"read_array_header_{version}_0", None)
    if read is None:
        raise FileError(f"Version {version} of the .npy format is not supported.")
    shape, fortran, dtype = read(file)
    header = NpyHeader(tuple(int(side) for side in shape), bool(fortran), dtype)
    if min(header.shape, default=1) < 0:
        raise FileError(f"The header has the shape {header.shape}; sizes cannot be negative.")
    n_left = size - file.tell()
    if header.n_bytes != n_left and not header.dtype.hasobject:  # objects are never read
        what = "truncated" if header.n_bytes > n_left else "not one array only"
        raise FileError(
            f"The header announces {header.shape} of {header.dtype}, {header.n_bytes} bytes, and "
            f"{n_left} follow: the file is {what}. Write it again with numpy.save(path, array)."
        )
    return header


def read_npy(request: Request) -> Contents:
    """Return the array of a `.npy`; a large one is read by blocks or memory-mapped."""
    with request.path.open("rb") as file:
        header = read_header(file, request.size)
    lazy = request.is_lazy(header.shape, header.n_bytes)

    def read() -> Any:
        header.require_values("The file")
        if lazy:
            if header.fortran or header.dtype.kind not in "biuf":
                return np.load(request.path, mmap_mode="r", allow_pickle=False)
            return NpyRows(request.path)
        request.require_memory(header.n_bytes)
        return np.load(request.path, allow_pickle=False)

    return Contents({"": header.item(read, 0 if lazy else header.n_bytes)})


def read_npz(request: Request) -> Contents:
    """Return the arrays of a `.npz`, unread; labels are its one-dimensional arrays."""
    items: dict[str, Item] = {}
    with zipfile.ZipFile(request.path) as archive:
        for member in archive.infolist():
            if not member.filename.endswith(".npy"):
                continue
            key = member.filename.removesuffix(".npy")
            if key in items:
                raise FileError(f"The file contains the array {key!r} twice.")
            try:
                with archive.open(member) as file:
                    header = read_header(file, member.file_size)
            except FileError as error:
                raise FileError(f"The array {key!r}: {error}") from error
            read = partial(_read_member, request, member, header)
            items[key] = header.item(read, header.n_bytes)
    if not items:
        raise FileError("The file is a zip archive without a .npy; numpy.savez writes those.")
    return Contents(items, partial(flat_labels, items))


def _read_member(request: Request, member: zipfile.ZipInfo, header: NpyHeader) -> npt.NDArray[Any]:
    key = member.filename.removesuffix(".npy")
    header.require_values(f"The array {key!r}")
    request.require_memory(header.n_bytes, key)
    with zipfile.ZipFile(request.path) as archive, archive.open(member) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _tensor_file(path: Path) -> Any:
    library = required("safetensors", "formats", "Reading .safetensors")
    return library.safe_open(os.fspath(path), framework="np")


@contextmanager
def _open_tensor(path: Path, key: str) -> Iterator[Any]:
    with _tensor_file(path) as file:
        yield file.get_slice(key)


def read_safetensors(request: Request) -> Contents:
    """Return the tensors of a `.safetensors`."""
    with _tensor_file(request.path) as file:
        slices = {key: file.get_slice(key) for key in list(file.keys())}
        return Contents({key: _tensor_item(request, key, part) for key, part in slices.items()})


def _tensor_item(request: Request, key: str, part: Any) -> Item:
    shape, kind = tuple(part.get_shape()), str(part.get_dtype())
    sizes = {f"{letter}{8 * size}": size for letter in "UIF" for size in (1, 2, 4, 8)}
    sizes["BOOL"] = 1
    is_known = kind in sizes
    n_bytes = array_bytes(shape, sizes.get(kind, 8))
    lazy = request.is_lazy(shape, n_bytes)

    def read() -> Any:
        if not is_known:
            raise FileError(f"The tensor {key!r} is {kind}, which NumPy lacks. Save it as F32.")
        if lazy:
            return StoredRows(request.path, partial(_open_tensor, request.path, key), shape)
        request.require_memory(n_bytes, key)
        with _tensor_file(request.path) as file:
            return file.get_tensor(key)

    return Item(shape, kind, read, is_known, 0 if lazy else n_bytes)


def read_torch(request: Request) -> Contents:
    """Return the tensors of a PyTorch file; those in nested dicts have keys with slashes."""
    torch = required("torch", "torch", "Reading PyTorch files")
    request.require_memory(request.size)
    if zipfile.is_zipfile(request.path):
        with zipfile.ZipFile(request.path) as archive:
            request.require_memory(sum(member.file_size for member in archive.infolist()))
    try:
        with warnings.catch_warnings():  # torch's, about pickle protocols
            warnings.simplefilter("ignore")
            stored = torch.load(request.path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise FileError(
            "torch's weights-only loader rejects the file: it is damaged, or contains objects "
            "that could run any code. Save tensors only: torch.save(model.state_dict(), path)."
        ) from error
    found = _tensors(stored, "", set(), torch)
    items = {key: _torch_item(request, key, tensor) for key, tensor in found}
    if not items:
        raise FileError(f"The file contains no tensor but {type(stored).__name__}.")
    return Contents(items)


def _torch_item(request: Request, key: str, tensor: Any) -> Item:
    shape = tuple(int(side) for side in tensor.shape)
    n_bytes = array_bytes(shape, tensor.dtype.itemsize)
    numeric = not (tensor.dtype.is_complex or tensor.is_quantized)

    def read() -> Any:
        request.require_memory(n_bytes, key)  # a view can repeat one stored number many times
        return tensor

    return Item(shape, str(tensor.dtype).removeprefix("torch."), read, numeric, n_bytes)


def _tensors(value: Any, key: str, seen: set[int], torch: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, torch.Tensor):
        yield key, value
        return
    if not isinstance(value, (dict, list, tuple)) or id(value) in seen or len(seen) > 100_000:
        return
    seen.add(id(value))  # a container can contain itself
    for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield from _tensors(inner, f"{key}/{name}" if key else str(name), seen, torch)
