"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

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
