"""Paths: what a text such as `cells.npz:counts` points at, and how the dataset is called."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from .. import _check
from ..errors import FileError

PathLike: TypeAlias = str | os.PathLike[str]


class Place(NamedTuple):
    """A file, and the part of it that was asked for after a colon."""

    path: Path
    key: str | None


def is_path(data: object) -> bool:
    """Return whether this is a path rather than data."""
    return isinstance(data, (str, os.PathLike))


def locate(path: PathLike) -> Place:
    """Split `file.npz:key` at the colon; a path that exists as it stands wins.

    Colons of a Windows drive, of folders and of keys are left alone: the file is the longest
    beginning before a colon that exists.

    Examples
    --------
    >>> place = locate("nowhere.npz:counts")
    >>> place.path.name, place.key
    ('nowhere.npz', 'counts')
    """
    _check.file_path("path", path)
    text = os.fspath(path)
    if os.path.lexists(text):
        return Place(Path(text), None)
    cuts = [i for i, letter in enumerate(text) if letter == ":" and i > 1]
    for cut in reversed(cuts):
        if os.path.lexists(text[:cut]):
            return Place(Path(text[:cut]), text[cut + 1 :])
    if cuts:  # nothing exists: let the error speak of the file
        return Place(Path(text[: cuts[0]]), text[cuts[0] + 1 :])
    return Place(Path(text), None)


def disk_size(path: Path) -> int:
    """Return the bytes of a plain file or a whole folder; refuse everything else."""
    if "\0" in os.fspath(path):
        raise FileError(f"path={os.fspath(path)!r} has a NUL character in it.")
    try:
        status = path.stat()
    except FileNotFoundError:
        broken = "a link that leads nowhere" if path.is_symlink() else "no such file or folder"
        raise FileError(f"Cannot read {os.fspath(path)!r}: {broken}.") from None
    except OSError as error:
        raise FileError(f"Cannot read {os.fspath(path)!r}: {error.strerror}.") from error
    if stat.S_ISDIR(status.st_mode):
        return sum(_folder_sizes(path))
    if not stat.S_ISREG(status.st_mode):
        raise FileError(
            f"{os.fspath(path)!r} is no plain file but a pipe, socket or device, which cannot be "
            "read twice. Save it to a file first."
        )
    if not status.st_size:
        raise FileError(f"{os.fspath(path)!r} is empty (0 bytes). Write it again.")
    return status.st_size


def _folder_sizes(path: Path) -> Iterator[int]:
    for folder, _, files in os.walk(path):
        for name in files:
            try:
                yield os.stat(os.path.join(folder, name)).st_size
            except OSError:
                continue  # a broken link inside; whoever needs it will say so


def stem(path: Path) -> str:
    """Return the file's name without its suffixes `.csv`, `.csv.gz`.

    Examples
    --------
    >>> stem(Path("data/day.1.csv.gz")), stem(Path("cells.npz"))
    ('day.1', 'cells')
    """
    name = path.name or path.resolve().name
    if name.lower().endswith(".gz"):
        name = name[:-3]
    return Path(name).stem or name


def name_of(path: PathLike) -> str:
    """Return the name that a dataset read from this path gets: `cells`, or `cells:counts`."""
    place = locate(path)
    return joined(stem(place.path), place.key)


def joined(*parts: str | None) -> str:
    """Return the parts of a name that are there, with colons between them."""
    return ":".join(part for part in parts if part)


def names_of(paths: Sequence[Any]) -> list[str]:
    """Return a name for each path; those that would be called the same keep their folders.

    Examples
    --------
    >>> names_of(["a/cells.npy", "b/cells.npy", "tori.npy"])
    ['a/cells.npy', 'b/cells.npy', 'tori']
    """
    short = [name_of(path) for path in paths]
    return [
        name if short.count(name) == 1 else str(path)
        for name, path in zip(short, paths, strict=True)
    ]


def unique(name: str, taken: Iterable[str]) -> str:
    """Return the name, with a number behind it where it is taken."""
    others, number, candidate = set(taken), 2, name
    while candidate in others:
        candidate, number = f"{name} ({number})", number + 1
    return candidate
