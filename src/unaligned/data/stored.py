"""Files that are open only while they are read, and whatever goes wrong with them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from ..errors import FileError, InputError, UnalignedError, UnalignedWarning
from .sources import SlicedRows


class StoredRows(SlicedRows):
    """Rows of an array in a file that is opened for each block and closed after it.

    No handle stays open, so that datasets can go to other processes.
    """

    def __init__(
        self, path: Path, opened: Callable[[], AbstractContextManager[Any]], shape: tuple[int, ...]
    ) -> None:
        self.path, self.opened = path, opened
        self.n_rows, self.n_features = (int(size) for size in shape)

    def between(self, start: int, stop: int) -> Any:
        """Return these rows."""
        with reading(self.path, "it was before"), self.opened() as array:
            return array[start:stop]


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Turn whatever goes wrong inside into an error that names the file."""
    label = repr(os.fspath(path))
    try:
        yield
    except UnalignedWarning:
        raise
    except InputError as error:
        if label in str(error):
            raise
        raise type(error)(f"{label}: {error}") from error
    except UnalignedError:
        raise
    except MemoryError as error:
        raise FileError(f"{label} asks for more memory than there is.") from error
    except BaseException as error:  # whatever the libraries make of foreign bytes
        # Rust's panics (safetensors) are no Exception; Ctrl-C and exit must go through.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        if isinstance(error, OSError) and error.strerror:
            raise FileError(f"Cannot read {label}: {error.strerror}.") from error
        raise FileError(
            f"{label} cannot be read as {what} ({first_line(error)}). It is damaged, or of "
            "another format than its name says."
        ) from error


def first_line(error: BaseException) -> str:
    """Return what an error says in a line without the full stop."""
    lines = str(error).strip().splitlines()
    text = lines[0].strip().rstrip(".") if lines else ""
    return (text if len(text) < 200 else f"{text[:200]}…") or type(error).__name__
