"""New data before a store: drawn to a size, checked, and where it differs from what is there."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..comparison import prepare, signature
from ..data.dataset import Dataset
from ..errors import DataWarning, InputError, counted, warn
from ..inputs import DataLike, at_size, common_size, own_name, warn_about_sizes
from ..metrics.les import LES
from ..spectra.signature import Signature
from . import records as _rows
from .file import transaction

if TYPE_CHECKING:
    from . import Store

_UNNAMED = "new data"


def described(
    store: Store, data: DataLike, subsample: int | str | None, tags: Mapping[str, Any] | None
) -> Signature:
    """Return the signature of data, made as those of a store were."""
    if isinstance(data, Signature):
        if subsample is not None:
            raise InputError(
                f"subsample={subsample!r} needs the data itself, and data is a Signature."
            )
        return data
    options = store.options
    seed = options.pop("rng", 0)
    dataset, _ = prepare(data, options)
    dataset = dataset.with_options(name=own_name(data) or _UNNAMED)
    if subsample is not None:
        with transaction(store.path) as db:
            dataset = drawn(db, dataset, subsample, seed, tags)
    require_rows(store, dataset)
    return signature(dataset, rng=seed, **options)


def require_rows(store: Store, dataset: Dataset) -> None:
    """Refuse a dataset too small for the K of a store, which no option can lower any more."""
    k = store.options.get("n_eigenvalues", 0)
    if dataset.n_samples < k:
        raise InputError(
            f"The signatures in {str(store.path)!r} have {k} values, which takes {k} rows; "
            f"{dataset.label} has {dataset.n_samples}. Leave it out, or describe all data into "
            f"another store with fewer values (`unaligned describe -K {dataset.n_samples}`)."
        )


def drawn(
    db: sqlite3.Connection,
    dataset: Dataset,
    subsample: int | str,
    seed: int,
    tags: Mapping[str, Any] | None,
) -> Dataset:
    """Return a dataset with as many rows as asked for, or as the smallest reference has."""
    if subsample == "common":
        size = _smallest(db, dataset, tags)
    else:
        size = common_size(subsample, [dataset], LES())
    return cast(Dataset, at_size({"": dataset}, size, seed)[""])


def _smallest(db: sqlite3.Connection, dataset: Dataset, tags: Mapping[str, Any] | None) -> int:
    found = _rows.by_size(db, tags)
    if not found:
        return dataset.n_samples  # there is nothing to search, as the search will say
    name, size = found[0]
    if size > dataset.n_samples:
        raise InputError(
            f"subsample='common' takes as many rows as the smallest reference has, {name!r} with "
            f"{size}; {dataset.label} has {dataset.n_samples}. Describe the references into "
            f"another store at that size (`unaligned describe --subsample {dataset.n_samples}`)."
        )
    return size


def warn_of_differences(
    db: sqlite3.Connection,
    mine: Signature,
    path: Path,
    tags: Mapping[str, Any] | None,
    *,
    of_data: bool,
) -> None:
    """Warn where distances to the references come from another size, or from a lost column.

    A signature `of_data` that is there can be made again of fewer rows.
    """
    mine = replace(mine, name=mine.name or _UNNAMED)
    ends = _rows.by_size(db, tags)
    name, _ = max(ends, key=lambda end: abs(math.log(end[1] / mine.n_samples)))
    other = _rows.restore(db, name, path)
    remedy = "subsample='common' draws as many rows of the data as the smallest reference has."
    more = of_data and mine.n_samples > other.n_samples
    warn_about_sizes(LES(), [mine, other], remedy if more else None)
    columns, count = _rows.shared_columns(db, tags)
    if columns is None or count < 2 or columns == mine.n_features:
        return
    if mine.recipe.kind == other.recipe.kind == "points":
        warn(
            f"{mine.name!r} has {counted(mine.n_features, 'column')}, and all {count} references "
            f"have {columns}. LES compares them all the same, but a column too few or too many "
            "moves it. See what was read, and choose columns=.",
            DataWarning,
        )
