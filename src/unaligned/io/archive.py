"""Files of our own: whole or appended text, and arrays with a JSON header, without pickles."""

import json
import os
import secrets
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from .. import _check
from .._format import amount
from ..engine.memory import available_memory
from ..errors import FileError

_VERSION = 1  # of the layout of archives
_BINARY = getattr(os, "O_BINARY", 0)  # Windows would change line ends


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Return a stream whose content replaces the file once everything is written."""
    target = Path(os.path.realpath(_check.file_path("path", path)))  # a link stays a link
    if target.exists() and not target.is_file():
        raise FileError(f"Cannot write {str(target)!r}: it exists and is not a plain file.")
    try:
        # Unlike mkstemp, whose files nobody else may read: these permissions follow the umask.
        temporary = target.parent / f".{target.name}.{secrets.token_hex(8)}"
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o666)
    except OSError as error:
        folder = str(target.parent)
        remedy = "" if target.parent.is_dir() else f" Create the folder {folder!r} first."
        raise FileError(f"Cannot write {str(target)!r}: {error.strerror}.{remedy}") from error
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except OSError as error:
        raise FileError(f"Cannot write {str(target)!r}: {error.strerror}.") from error
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file atomically; what UTF-8 cannot encode becomes a question mark."""
    with whole_file(path) as stream:
        stream.write(text.encode(errors="replace"))


def append_text(path: Path, text: str) -> None:
    """Add text to the end of a file that exists; it is on disk when this returns."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | _BINARY), "wb") as stream:
            stream.write(text.encode())
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise FileError(f"Cannot write {str(path)!r}: {error.strerror}.") from error


def made_folder(argument: str, path: str | os.PathLike[str], remedy: str) -> Path:
    """Return a folder, created where it is missing."""
    folder = _check.file_path(argument, path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"cannot be used as a folder: {error.strerror}"
        raise FileError(f"{argument}={os.fspath(path)!r} {reason}. {remedy}") from error
    return folder


def write_archive(
    path: str | os.PathLike[str],
    format_name: str,
    header: dict[str, Any],
    arrays: dict[str, npt.NDArray[Any]],
    *,
    remedy: str = "",
    compressed: bool = True,
) -> None:
    """Write arrays and a JSON header to a `.npz`; `remedy` is for another suffix, which raises."""
    _check.suffix_of("path", path, (".npz", ""), remedy)
    text = json.dumps({"format": format_name, "version": _VERSION, **header})
    members = {"header": np.frombuffer(text.encode(), dtype=np.uint8), **arrays}
    save = np.savez_compressed if compressed else np.savez
    with whole_file(path) as stream:
        save(stream, **members)  # type: ignore[arg-type]


def read_archive(
    path: str | os.PathLike[str], format_name: str
) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return the header and the arrays of a file written by `write_archive`."""
    from .base import disk_size  # imports SciPy, which `unaligned cache info` must not

    source = _check.file_path("path", path)
    size = disk_size(source)  # raises for a pipe or a device, which would block
    try:
        with zipfile.ZipFile(source) as archive:
            n_bytes = sum(member.file_size for member in archive.infolist())
        _require_memory(source, size, n_bytes)
        with np.load(source, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        header = json.loads(arrays.pop("header").tobytes().decode())
        found, version = header.pop("format"), header.pop("version")
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"Cannot read {str(source)!r}: {error.strerror or error}.") from error
    except Exception as error:  # zipfile, zlib, json and NumPy raise many kinds on foreign bytes
        reason = f"was not written by unaligned, or it is damaged ({error})"
        raise FileError(f"{str(source)!r} {reason}.") from error
    if found != format_name:
        raise FileError(f"{str(source)!r} contains {found!r}, not {format_name!r}.")
    if version != _VERSION:
        known = f"this release reads version {_VERSION}. Update unaligned."
        raise FileError(f"{str(source)!r} has version {version}; {known}")
    return header, arrays


def _require_memory(path: Path, size: int, n_bytes: int) -> None:
    """Raise where a file unpacks to more than fits, or far more than it has on disk."""
    from .base import is_bomb

    if is_bomb(n_bytes, size):
        rule = f" and has {amount(size)} on disk, as a decompression bomb does"
    elif n_bytes > available_memory() // 2:
        rule = ", more than half of the available memory"
    else:
        return
    raise FileError(f"{str(path)!r} unpacks to {amount(n_bytes)}{rule}. It is not read.")
