"""Files to datasets: `load` and `load_all`.

One function per format turns a file into its `Contents`: its arrays by key, unread where the
format allows. Which array, which rows and which name is decided here.
"""

import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .. import _check
from .._check import is_anndata, is_frame, with_our_names
from ..data.dataset import Dataset
from ..data.facts import Names, chosen_names, column_names
from ..data.values import to_values
from ..engine.memory import available_memory
from ..errors import DataWarning, FileError, InputError, InputTypeError, counted, merged, warn
from ..rows.files import reading
from ..rows.source import RowSource, require_rows
from ..rows.transforms import choose_columns, choose_rows
from .anndata import columns_kept, object_contents, rows_kept, warn_of_counts
from .base import (
    Contents,
    Item,
    ReadOptions,
    Request,
    disk_size,
    listing,
    natural_key,
    text_of,
)
from .registry import (
    SUPPORTED,
    PathLike,
    Place,
    format_of,
    joined,
    known_suffix,
    locate,
    stem,
    unique,
)

# The name of a group of rows, which rows (None: all of them), and its metadata.
_Group: TypeAlias = tuple[str | None, npt.NDArray[np.bool_] | None, dict[str, Any]]


def load(
    path: PathLike | Any, *, name: str | None = None, kind: str = "points", **options: Any
) -> Dataset:
    r"""Return the dataset in a file, in the part of it named after a colon, or in an AnnData.

    Parameters
    ----------
    path
        Such as `cells.npy`, `cells.npz:counts`, `cells.h5ad:obsm/X_pca`, or a folder of images.
        The guide to files lists the formats, and those that name their columns
        (`Dataset.feature_names`). Or an AnnData object, a view or a backed one included.
    name
        The dataset's name in results; None takes the file's name.
    kind
        As for `Dataset`.
    **options
        `columns`, `header`, `drop_non_numeric`, `transpose`, `flatten`, `resize`, `lazy`,
        `max_bytes` (see the guide to files); `preprocess`, `nan_policy`, `metadata` as for
        `Dataset`. Of AnnData, in memory or in a file: `use_rep` (an entry of `obsm`) or `layer`,
        by default `X`; `var_names`, a list of genes or a column of `var` with booleans, such as
        `"highly_variable"`; `mask_obs`, booleans or a column of `obs` with them.

    Returns
    -------
    Dataset
        Its `metadata` has the path, and the part of the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import unaligned as ua
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "cells.csv")
    ...     _ = path.write_text("CD4,CD8\n0.5,2\n1,3\n")
    ...     ua.load(path)
    Dataset('cells', points, 2 × 2)
    """
    if not options.keys().isdisjoint(("group_by", "groupby")):
        raise InputError("load() returns one dataset. Use compare() or load_all() with group_by.")
    settings, rest = _split("load()", options)
    place = None if is_anndata(path) else locate(path)
    with _opened(path, place, settings) as (request, contents):
        key, item = _selected(contents, place, settings)
        values, names = _table(request, contents, key, item, quiet=bool(rest.get("preprocess")))
        mask = rows_kept(contents, item, settings.mask_obs)
        values = values if mask is None else choose_rows(values, mask)
        rest["metadata"] = _metadata(place, key, rest.get("metadata") or {})
        if place is not None:
            name = name or joined(stem(place.path), None if place.key is None else key)
        return Dataset(values, name=name, kind=kind, feature_names=names, **rest)


@merged()
def load_all(
    path: PathLike | Any,
    group_by: str | Sequence[str] | None = None,
    *,
    kind: str = "points",
    **options: Any,
) -> dict[str, Dataset]:
    r"""Return every dataset in a file, a folder or a table, or one for each group of rows.

    Parameters
    ----------
    path
        A file: each two-dimensional array of numbers in it, or the part named after a colon. A
        folder: each file in it (and each folder of images). An AnnData object: one matrix of it.
        A pandas DataFrame: its columns of numbers, mostly with `group_by`.
    group_by
        A column of a table, of `obs` in a `.h5ad`, or a label array beside the values: one
        dataset for each of its values, stored in the `metadata`. The column itself is not part
        of the data. Of several columns, one dataset for each combination of their values.
    kind, **options
        As for `load`.

    Returns
    -------
    dict
        Name -> `Dataset`, in the order of the file or folder; repeated names are numbered.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import unaligned as ua
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "cells.csv")
    ...     _ = path.write_text("day,CD4\n0,1\n0,2\n7,3\n7,5\n")
    ...     ua.load_all(path, group_by="day")
    {'cells:0': Dataset('cells:0', points, 2 × 1), 'cells:7': Dataset('cells:7', points, 2 × 1)}
    """
    if group_by is not None:
        options = {**options, "group_by": group_by}
    settings, rest = _split("load_all()", options)
    found = [None] if is_anndata(path) or is_frame(path) else places(locate(path))
    stems = ["" if place is None else stem(place.path) for place in found]
    loaded: list[Dataset] = []
    for place, short in zip(found, stems, strict=True):
        file_name = short if place is None or stems.count(short) == 1 else place.path.name
        loaded += _datasets(path, place, settings, {"kind": kind, **rest}, file_name)
    names = unique(str(dataset.name) for dataset in loaded)
    return {name: d.with_options(name=name) for name, d in zip(names, loaded, strict=True)}


def _split(owner: str, options: dict[str, Any]) -> tuple[ReadOptions, dict[str, Any]]:
    """Return the options of reading, and those of the dataset."""
    own = ("preprocess", "nan_policy", "metadata")
    options = with_our_names(options)
    _check.known_options(owner, options, [*_check.option_names(ReadOptions), *own])
    rest = {name: value for name, value in options.items() if name in own}
    return _check.from_options(ReadOptions, options), rest


@contextmanager
def _opened(
    data: Any, place: Place | None, settings: ReadOptions
) -> Iterator[tuple[Request, Contents]]:
    """Open a file, or an object where `place` is None; errors inside name the file."""
    if place is None:
        name = type(data).__name__
        request = Request(Path(name), settings, 0)
        try:
            if is_frame(data):
                from .tables import frame_contents  # here, as it is for tables only

                yield request, frame_contents(data, request)
            else:
                yield request, object_contents(data)
        except FileError as error:
            raise InputError(f"{name}: {error}") from None
        return
    request = Request(place.path, settings, disk_size(place.path))
    kind = format_of(place.path)
    with reading(place.path, kind.name):
        yield request, kind.read(request)


def _selected(contents: Contents, place: Place | None, settings: ReadOptions) -> tuple[str, Item]:
    """Return the array that the options or the path name, else the only or default one."""
    key, own = settings.key, None if place is None else place.key
    if key is None:
        if own is None and place is None and contents.default is None:
            raise FileError("there is no X. Give use_rep, an entry of obsm, or layer.")
        return contents.select(own)
    option = "use_rep" if settings.layer is None else "layer"
    value, (group, _, _) = getattr(settings, option), key.partition("/")
    if own is not None:
        raise InputError(f"{option}={value!r} and the part {own!r} are two matrices. Give one.")
    if key not in contents.items:
        there = [k.removeprefix(f"{group}/") for k in contents.items if k.startswith(f"{group}/")]
        raise FileError(
            f"{option}={value!r} is not in {group}.{_check.did_you_mean(value, there)} "
            f"There: {', '.join(map(repr, there[:20])) or 'nothing'}."
        )
    return key, contents.items[key]


def h5ad_rows(path: Path) -> RowSource:
    """Return the rows of X of an AnnData file, read by blocks, with the names of `var`."""
    # Only chunks and names have to fit into memory, so that a bomb does no harm.
    settings = ReadOptions(lazy=True, max_bytes=max(available_memory() // 2, 1))
    with _opened(path, Place(path, None), settings) as (request, contents):
        _, item = contents.select("X")
        require_rows(item.shape)
        if item.n_bytes:
            raise FileError(
                "X is stored by columns and cannot be read by blocks of rows. Store the CSC "
                "matrix as CSR, or read it into memory with load(path)."
            )
        rows: RowSource = item.read()
        rows.feature_names = _feature_names(request, item)
        return rows


def places(place: Place) -> list[Place]:
    """Return the place itself, or the datasets in a folder that is not a dataset itself."""
    disk_size(place.path)
    if not place.path.is_dir() or known_suffix(place.path) or place.key is not None:
        return [place]
    from .images import image_files  # here, so that comparing arrays imports no reader
    from .matrix_market import lists_beside

    with reading(place.path, "a folder"):
        inside = sorted(place.path.iterdir(), key=lambda path: natural_key(path.name))
        lists = {other for path in inside for other in lists_beside(path)}
        inside = [path for path in inside if path not in lists and path.name[0] != "."]
        readable = [p for p in inside if known_suffix(p) or (p.is_dir() and image_files(p))]
        if not readable and image_files(place.path):
            return [place]
        if not readable:
            raise FileError(f"The folder contains no file of a supported format. {SUPPORTED}")
    skipped = [path.name for path in inside if path not in readable]
    if skipped:
        what = f"skipped {counted(len(skipped), 'entry', 'entries')} of unknown format"
        shown = ", ".join(map(repr, skipped[:5])) + (", …" if skipped[5:] else "")
        warn(f"{os.fspath(place.path)!r}: {what}: {shown}.", DataWarning)
    return [Place(path, None) for path in readable]


def _datasets(
    data: Any, place: Place | None, settings: ReadOptions, rest: dict[str, Any], file_name: str
) -> Iterator[Dataset]:
    """Yield a dataset for each array of a file or AnnData, and each group of its rows."""
    known, quiet = rest.pop("metadata", None) or {}, bool(rest.get("preprocess"))
    part_is_named = place is not None and place.key is not None
    with _opened(data, place, settings) as (request, contents):
        tables = contents.tables()
        one = part_is_named or contents.default is not None or settings.key is not None
        if one or place is None or not tables:
            tables = dict([_selected(contents, place, settings)])
        groups: list[_Group] = [(None, None, {})]
        arrays = listing(tables)
        for column in settings.label_columns:
            labels = contents.labels(column)
            tables = {key: item for key, item in tables.items() if item.shape[0] == labels.size}
            if not tables:
                raise FileError(
                    f"group_by={column!r} has {labels.size} labels, and no array has as many "
                    f"rows: {arrays}."
                )
            groups = _crossed(groups, _split_groups(labels, column))
        request.require_memory(sum(item.n_bytes for item in tables.values()))
        for key, item in tables.items():
            values, names = _table(request, contents, key, item, quiet=quiet)
            part = key if len(tables) > 1 or part_is_named else None
            kept = rows_kept(contents, item, settings.mask_obs)
            for label, rows, tags in groups:
                mask = rows if kept is None else kept if rows is None else kept & rows
                if mask is not None and not mask.any():
                    continue  # a group without any row that `mask_obs` keeps
                own = values if mask is None else choose_rows(values, mask)
                name = joined(file_name, part, label) or key or "table"
                metadata = _metadata(place, key, {**tags, **known})
                yield Dataset(own, name=name, feature_names=names, metadata=metadata, **rest)


def _crossed(groups: list[_Group], others: list[_Group]) -> list[_Group]:
    """Return a group for each pair of groups that share rows."""
    found: list[_Group] = []
    for (name, rows, tags), (label, mask, more) in itertools.product(groups, others):
        both = mask if rows is None or mask is None else rows & mask
        if both is None or both.any():
            found.append((joined(name, label), both, {**tags, **more}))
    return found


def _split_groups(labels: npt.NDArray[Any], group_by: str) -> list[_Group]:
    """Return a group for each label, in natural order (D2 before D10)."""
    texts = np.array([text_of(label) for label in labels.tolist()], dtype=object)
    missing = texts == ""
    if missing.all():
        raise FileError(f"group_by={group_by!r} has no value in any row.")
    if missing.any():
        dropped = f"{missing.sum()} of {texts.size} rows have no value there and are dropped"
        warn(f"group_by={group_by!r}: {dropped}.", DataWarning)
    names = sorted(set(texts[~missing]), key=natural_key)
    if len(names) > max(1, texts.size // 2):
        raise FileError(
            f"group_by={group_by!r} has {len(names)} different values in {texts.size} rows, so "
            "most groups would have one row. Group by a column with fewer values."
        )
    # More digits than a float has are an identifier.
    number = re.compile(r"[-+]?(?:\d{1,15}(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,2})?")
    tags: dict[str, Any] = {name: name for name in names}
    if all(number.fullmatch(name) for name in names):
        numbers = {name: float(name) for name in names}
        tags = {name: int(x) if x.is_integer() else x for name, x in numbers.items()}
    return [(name, texts == name, {group_by: tag}) for name, tag in tags.items()]


def _table(
    request: Request, contents: Contents, key: str, item: Item, *, quiet: bool
) -> tuple[Any, Names]:
    """Return the values and the names of the columns, of chosen genes where they are given.

    Raw counts of cells raise a warning, unless `quiet`.
    """
    values, names = _values(request, item), _feature_names(request, item)
    if request.options.var_names is not None:
        columns = columns_kept(contents, key, item, request.options.var_names)
        values, names = choose_columns(values, columns), chosen_names(names, columns)
    if contents.is_annotated and not quiet:
        warn_of_counts(values, key)
    return values, names


def _values(request: Request, item: Item) -> Any:
    """Return the values of an item, rows being samples."""
    values = item.read()
    if not item.is_numeric:
        raise InputTypeError(f"The array must contain real numbers; it is {item}.")
    if item.shape and len(item.shape) != 2:
        if not request.options.flatten:
            raise InputError(
                f"The array must be two-dimensional, rows × features; it is {item}. With "
                "flatten=True each entry along the first axis becomes a row."
            )
        values = to_values(np.asarray(values).reshape(item.shape[0], -1), "The array")
    if request.options.transpose:
        values = (values.read() if isinstance(values, RowSource) else values).T
    return values


def _feature_names(request: Request, item: Item) -> tuple[str, ...] | None:
    """Return the names of the columns, rows being samples; None where there are none."""
    if len(item.shape) != 2:
        return None
    transposed = request.options.transpose
    read, n_columns = (item.rows, item.shape[0]) if transposed else (item.columns, item.shape[1])
    try:
        with reading(request.path, "names of columns"):
            names = None if read is None else column_names(read())
            if names is not None and len(names) != n_columns:
                raise FileError(f"{counted(len(names), 'name')} for {n_columns} columns.")
            return names
    except FileError as error:  # not fatal: most distances do without names
        warn(f"{error} The columns stay without names.", DataWarning)
        return None


def _metadata(place: Place | None, key: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is known of a dataset, followed by its origin; the former wins."""
    origin = {} if place is None else {"path": os.fspath(place.path)}
    origin |= {"key": key} if key else {}
    return {**known, **origin, **known}
