"""Files to datasets: `load` and `load_all`.

One function per format turns a file into its `Contents`: the arrays in it by key, unread where
the format allows. What is common to all (which array, which rows, which name, what is refused)
is here and in `base.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import _check, _settings
from ..data.convert import to_values
from ..data.dataset import Dataset
from ..data.facts import column_names
from ..engine.memory import available_memory
from ..errors import DataWarning, FileError, InputError, InputTypeError, counted, warn
from ..rows.files import reading
from ..rows.source import RowSource, require_rows
from .base import Contents, Item, ReadOptions, Request
from .groups import Groups, chosen, groups_of, natural_key, tags_of
from .images import image_files
from .matrix_market import lists_beside
from .paths import (
    PathLike,
    Place,
    disk_size,
    is_path,
    joined,
    locate,
    name_of,
    names_of,
    stem,
    unique,
)
from .registry import FORMATS, Format, format_of, known_suffix, require_useful

__all__ = ["FORMATS", "is_path", "load", "load_all", "name_of", "names_of"]


def load(
    path: PathLike, *, name: str | None = None, kind: str = "points", **options: Any
) -> Dataset:
    r"""Return the dataset in a file, or in the part of it named after a colon.

    Parameters
    ----------
    path
        Such as `cells.npy`, `cells.npz:counts`, `cells.h5ad:obsm/X_pca`, or a folder of images.
        The guide to files lists the formats, and those that name their columns
        (`Dataset.feature_names`).
    name
        How results call it; None takes the file's name.
    kind
        As for `Dataset`.
    **options
        `columns`, `header`, `drop_non_numeric`, `transpose`, `flatten`, `resize`, `lazy`,
        `max_bytes` (see the guide to files); `preprocess`, `nan_policy`, `metadata` as for
        `Dataset`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "cells.csv")
    ...     _ = path.write_text("CD4,CD8\n0.5,2\n1,3\n")
    ...     load(path)
    Dataset('cells', points, 2 × 2)
    """
    if "group_by" in options:
        raise InputError("load() gives one dataset; load_all() has group_by.")
    settings, rest = _split("load()", options)
    place = locate(path)
    opened = _open(place.path, settings)
    with reading(place.path, opened.format.name):
        key, item = opened.contents.select(place.key)
        called = name or joined(stem(place.path), key if place.key is not None else None)
        values = _values(opened.request, item)
        names = _feature_names(opened.request, item)
        return _dataset(
            opened.request, key, values, feature_names=names, name=called, kind=kind, **rest
        )


def load_all(
    path: PathLike, group_by: str | None = None, *, kind: str = "points", **options: Any
) -> dict[str, Dataset]:
    r"""Return every dataset in a file or a folder by name, or one for each group of rows.

    Parameters
    ----------
    path
        A file: each two-dimensional array of numbers in it, or the part named after a colon. A
        folder: each file in it (and each folder of images).
    group_by
        A column of a table, of `obs` in a `.h5ad`, or a label array beside the values: one
        dataset for each of its values, which its `metadata` holds. The column itself is not
        part of the data.
    kind, **options
        As for `load`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "cells.csv")
    ...     _ = path.write_text("day,CD4\n0,1\n0,2\n7,3\n7,5\n")
    ...     load_all(path, group_by="day")
    {'cells:0': Dataset('cells:0', points, 2 × 1), 'cells:7': Dataset('cells:7', points, 2 × 1)}
    """
    settings, rest = _split("load_all()", {**options, "group_by": group_by})
    parts = _files(locate(path))
    stems = [stem(part.path) for part in parts]
    found: dict[str, Dataset] = {}
    for part, short in zip(parts, stems, strict=True):
        called = short if stems.count(short) == 1 else part.path.name
        for dataset in _datasets(part, settings, {"kind": kind, **rest}, called):
            name = unique(dataset.name or called, found)
            found[name] = dataset.with_options(name=name)
    return found


def _split(owner: str, options: dict[str, Any]) -> tuple[ReadOptions, dict[str, Any]]:
    """Return the options of reading, and those of the dataset."""
    own = ("preprocess", "nan_policy", "metadata")
    readable = list(_settings.option_names(ReadOptions))
    _check.known_options(owner, options, [*readable, *own])
    rest = {name: value for name, value in options.items() if name in own}
    return _settings.from_options(ReadOptions, options), rest


def h5ad_rows(path: Path) -> RowSource:
    """Return the rows of X of an AnnData file, to be read by blocks, and what `var` calls them."""
    # By blocks a bomb does no harm: what has to fit is a chunk, and the names.
    most = max(available_memory() // 2, 1)
    opened = _open(path, ReadOptions(lazy=True, max_bytes=most))
    with reading(path, opened.format.name):
        _, item = opened.contents.select("X")
        require_rows(item.shape)
        if item.n_bytes:
            raise FileError(
                "Its X is stored by columns, so that it has no rows to be read by blocks; write a "
                "CSC matrix as CSR, or read it at once with load(path)."
            )
        rows: RowSource = item.read()
        rows.feature_names = _feature_names(opened.request, item)
        return rows


class _Opened(NamedTuple):
    format: Format
    request: Request
    contents: Contents


def _open(path: Path, settings: ReadOptions) -> _Opened:
    size = disk_size(path)
    kind = format_of(path)
    require_useful(kind, settings, path)
    request = Request(path, settings, size)
    with reading(path, kind.name):
        return _Opened(kind, request, kind.read(request))


def _files(place: Place) -> list[Place]:
    """Return what a path stands for: itself, or what is in a folder that is no dataset itself."""
    disk_size(place.path)
    if not place.path.is_dir() or known_suffix(place.path) or place.key is not None:
        return [place]
    with reading(place.path, "a folder"):
        inside = sorted(place.path.iterdir(), key=lambda path: natural_key(path.name))
        lists = {other for path in inside for other in lists_beside(path)}
        inside = [path for path in inside if path not in lists and path.name[0] != "."]
        readable = [path for path in inside if _is_dataset(path)]
        if not readable and image_files(place.path):
            return [place]
        if not readable:
            raise FileError("The folder has nothing in it that can be read.")
    skipped = [path.name for path in inside if path not in readable]
    if skipped:
        shown = ", ".join(map(repr, skipped[:5])) + (", …" if skipped[5:] else "")
        warn(
            f"{os.fspath(place.path)!r}: passed over {counted(len(skipped), 'entry', 'entries')} "
            f"of no known format: {shown}.",
            DataWarning,
        )
    return [Place(path, None) for path in readable]


def _is_dataset(path: Path) -> bool:
    return known_suffix(path) is not None or (path.is_dir() and bool(image_files(path)))


def _datasets(
    place: Place, settings: ReadOptions, rest: dict[str, Any], called: str
) -> Iterator[Dataset]:
    opened = _open(place.path, settings)
    request, contents = opened.request, opened.contents
    with reading(place.path, opened.format.name):
        tables = contents.tables()
        if place.key is not None or contents.default is not None or not tables:
            key, item = contents.select(place.key)
            tables = {key: item}
        groups: Groups = [(None, None)]
        if settings.group_by is not None:
            groups, n_rows = groups_of(contents.labels(settings.group_by), settings.group_by)
            tables = _of_length(tables, n_rows, settings.group_by)
        tags = tags_of(groups, settings.group_by)
        request.afford(sum(item.n_bytes for item in tables.values()))
        for key, item in tables.items():
            values, names = _values(request, item), _feature_names(request, item)
            part = key if len(tables) > 1 or place.key is not None else None
            for (group, mask), tag in zip(groups, tags, strict=True):
                name = joined(called, part, group)
                rows = values if mask is None else chosen(values, mask)
                yield _dataset(request, key, rows, tag=tag, feature_names=names, name=name, **rest)


def _of_length(tables: dict[str, Item], n_rows: int, group_by: str) -> dict[str, Item]:
    fitting = {key: item for key, item in tables.items() if item.shape[0] == n_rows}
    if not fitting:
        shown = ", ".join(f"{key!r} ({item})" for key, item in tables.items())
        raise FileError(
            f"group_by={group_by!r} has {n_rows} labels, and no array has as many rows: {shown}."
        )
    return fitting


def _values(request: Request, item: Item) -> Any:
    """Return the values of an item, rows being samples."""
    values, settings = item.read(), request.options
    if not item.is_numeric:
        raise InputTypeError(f"It must hold real numbers; it is {item}.")
    if item.shape and len(item.shape) != 2:
        if not settings.flatten:
            raise InputError(
                f"It must be two-dimensional, rows × features; it is {item}. With flatten=True "
                "everything behind one first index becomes a row."
            )
        values = to_values(np.asarray(values).reshape(item.shape[0], -1), "The array")
    if settings.transpose:
        values = (values.read() if isinstance(values, RowSource) else values).T
    return values


def _feature_names(request: Request, item: Item) -> tuple[str, ...] | None:
    """Return what the columns are called, rows being samples; None where they have no names."""
    if len(item.shape) != 2:
        return None
    transposed = request.options.transpose
    found, n_columns = (item.rows, item.shape[0]) if transposed else (item.columns, item.shape[1])
    try:
        with reading(request.path, "names of columns"):
            names = column_names(found())
            if names is not None and len(names) != n_columns:
                raise FileError(f"It has {counted(len(names), 'name')} for {n_columns} columns.")
    except FileError as error:  # distances that need no names can still do without
        warn(f"{error} Its columns stay without names.", DataWarning)
        return None
    return names


def _dataset(
    request: Request,
    key: str,
    values: Any,
    *,
    tag: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    **options: Any,
) -> Dataset:
    origin = {"path": os.fspath(request.path), **({"key": key} if key else {})}
    known = {**(tag or {}), **(metadata or {})}
    # What is known of the data comes before where it was, and counts where they meet.
    return Dataset(values, metadata={**known, **origin, **known}, **options)
