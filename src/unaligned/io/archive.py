"""One file for arrays with a JSON header: a plain `.npz`, written atomically, never a pickle."""

from __future__ import annotations

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
from ..errors import FileError

_BINARY = getattr(os, "O_BINARY", 0)  # Windows would change line ends


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Give a stream to write to; only when all is written the file takes its name.

    Whoever reads meanwhile finds the old file, and after an error or a kill it is still there.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "table.csv"
    >>> with whole_file(target) as stream:
    ...     stream.write(b"a,b")
    3
    >>> target.read_text()
    'a,b'
    """
    target = Path(os.path.realpath(_check.file_path("path", path)))  # a link stays a link
    if target.exists() and not target.is_file():
        raise FileError(
            f"Cannot write {str(target)!r}: it is there and not a plain file. Give a file's path."
        )
    try:
        # Not mkstemp, whose files nobody else may read: these rights follow the umask.
        temporary = target.parent / f".{target.name}.{secrets.token_hex(8)}"
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o666)
    except OSError as error:
        lacking = not target.parent.is_dir()
        remedy = f" Make the folder {str(target.parent)!r} first." if lacking else ""
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
    """Write a text file as a whole or not at all."""
    with whole_file(path) as stream:
        stream.write(text.encode())


def made_folder(argument: str, path: str | os.PathLike[str], remedy: str) -> Path:
    """Return a folder, made where it is missing."""
    folder = _check.file_path(argument, path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"cannot be used as a folder: {error.strerror}"
        raise FileError(f"{argument}={os.fspath(path)!r} {reason}. {remedy}") from error
    return folder


_SUFFIXES = (".npz", "")
_VERSION = 1
_MOST_BYTES = 2**33  # a signature has kilobytes; more than this is not ours


def write_archive(
    path: str | os.PathLike[str],
    format_name: str,
    header: dict[str, Any],
    arrays: dict[str, npt.NDArray[Any]],
    *,
    remedy: str = "",
) -> None:
    """Write arrays and a JSON header to `path`; the file appears whole or not at all.

    A name that promises another format is refused, and `remedy` says how to get that one.
    """
    _check.suffix_of("path", path, _SUFFIXES, remedy)
    text = json.dumps({"format": format_name, "version": _VERSION, **header})
    members = {"header": np.frombuffer(text.encode(), dtype=np.uint8), **arrays}
    with whole_file(path) as stream:
        np.savez_compressed(stream, **members)  # type: ignore[arg-type]


def read_archive(
    path: str | os.PathLike[str], format_name: str
) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return the header and the arrays of a file that `write_archive` made."""
    source = _check.file_path("path", path)
    try:
        with zipfile.ZipFile(source) as archive:
            if sum(member.file_size for member in archive.infolist()) > _MOST_BYTES:
                raise FileError(f"{str(source)!r} unpacks to more than 8 GiB; it is not read.")
        with np.load(source, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        header = json.loads(arrays.pop("header").tobytes().decode())
        found, version = header.pop("format"), header.pop("version")
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"Cannot read {str(source)!r}: {error.strerror or error}.") from error
    except Exception as error:  # whatever zipfile, zlib, json and NumPy make of foreign bytes
        raise FileError(
            f"{str(source)!r} is not a file that unaligned wrote, or it is damaged ({error})."
        ) from error
    if found != format_name:
        raise FileError(f"{str(source)!r} holds {found!r}, not {format_name!r}.")
    if version != _VERSION:
        raise FileError(
            f"{str(source)!r} has version {version}, this unaligned reads version {_VERSION}. "
            "Update unaligned."
        )
    return header, arrays
