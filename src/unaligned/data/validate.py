"""What values must be before anything is done with them: finite, and symmetric where square."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .._check import FloatArray, shape_of
from ..errors import DataWarning, InputError, InputTypeError, warn
from ..rows.source import RowSource
from ..rows.transforms import FiniteRows
from .facts import Names
from .preprocess import Values

_BLOCK_BYTES = 2**25


def without_missing(values: Values, kind: str, label: str, nan_policy: str) -> tuple[Values, int]:
    """Return values without rows that hold NaN or infinity, and how many were dropped.

    Only points under the policy `omit` can lose rows; elsewhere such rows are refused.
    """
    if isinstance(values, RowSource):
        n_bad, first = values.summary.n_bad, values.summary.first_bad
    else:
        bad = rows_not_finite(values)
        n_bad, first = bad.size, bad[0] if bad.size else -1
    if not n_bad:
        return values, 0
    n_rows = values.shape[0]
    if nan_policy == "raise" or kind != "points":
        remedy = (
            "Fill them, or pass nan_policy='omit' to drop those rows."
            if kind == "points"
            else "Fill them, or leave those rows and columns out."
        )
        raise InputError(
            f"{label} has NaN or infinite values in {n_bad} of {n_rows} rows "
            f"(first in row {first}). {remedy}"
        )
    if n_bad == n_rows:
        raise InputError(
            f"{label} has NaN or infinite values in every row, so nan_policy='omit' "
            "leaves nothing. Drop the columns that are never filled."
        )
    warn(f"{label}: dropped {n_bad} of {n_rows} rows with NaN or infinity.", DataWarning)
    if isinstance(values, RowSource):
        return FiniteRows(values), n_bad
    keep = np.ones(n_rows, dtype=bool)
    keep[bad] = False
    return values[keep], n_bad


def rows_per_block(n_features: int) -> int:
    """Return how many rows in double precision 32 MiB hold, at least one."""
    return max(1, _BLOCK_BYTES // (8 * max(1, n_features)))


def rows_not_finite(values: Values) -> npt.NDArray[np.int64]:
    """Return the positions of rows with NaN or infinity, block by block."""
    if values.dtype.kind != "f":
        return np.empty(0, dtype=np.int64)
    if sparse.issparse(values):
        row_of = np.repeat(np.arange(values.shape[0]), np.diff(values.indptr))
        return np.unique(row_of[~np.isfinite(values.data)])
    n, step = values.shape[0], rows_per_block(values.shape[1])
    if n <= step:
        return _bad_rows(values)
    parts = ((start, values[start : start + step]) for start in range(0, n, step))
    return np.concatenate([start + _bad_rows(part) for start, part in parts])


def _bad_rows(block: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    # Not by a sum of squares: threads of BLAS that still spin would be in the way of what follows.
    finite = np.isfinite(block)
    if finite.all():  # nearly always, and much quicker than row by row
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(~finite.all(axis=1))


def checked_names(
    argument: str, names: Iterable[str] | None, number: int, what: str, label: str
) -> Names:
    """Return the names that an argument gives as a tuple, one for each row or column."""
    if names is None:
        return None
    names = tuple(names)
    if len(names) != number or not all(isinstance(name, str) for name in names):
        raise InputError(
            f"{argument} must be {number} words, one for each {what} of {label}; "
            f"{len(names)} arrived, beginning with {names[:3]}. Leave them out, or name all."
        )
    return tuple(map(str, names))


def require_symmetric(values: Values, kind: str, label: str) -> None:
    """Check what every matrix kind must be: square, symmetric, and of the right sign."""
    if kind == "distances" and sparse.issparse(values):
        raise InputTypeError(
            f"{label} of kind 'distances' is a {shape_of(values)}; an entry that is not stored "
            "would mean a distance of 0. Give a dense matrix, or kind='affinity' or 'graph' for "
            "sparse weights."
        )
    if values.shape[0] != values.shape[1]:
        raise InputError(
            f"{label} of kind {kind!r} must be square; its shape is {tuple(values.shape)}. "
            "For rows of features use kind='points'."
        )
    precision = np.finfo(values.dtype).eps if values.dtype.kind == "f" else 0.0
    tolerance = max(1e-8, 16.0 * float(precision))  # single precision is not symmetric to 1e-8
    values = values.astype(np.float64, copy=False)
    largest = float(abs(values).max())
    asymmetry = float(abs(values - values.T).max())
    if asymmetry > tolerance * largest:
        raise InputError(
            f"{label} of kind {kind!r} must be symmetric; entries differ from their mirror by up "
            f"to {asymmetry:g}. Symmetrise it, e.g. (A + A.T) / 2."
        )
    if kind != "spd" and values.min() < 0:
        raise InputError(
            f"{label} of kind {kind!r} must not be negative; the smallest entry is "
            f"{float(values.min()):g}."
        )
    diagonal: FloatArray = np.asarray(values.diagonal(), dtype=np.float64)
    if kind == "distances" and np.abs(diagonal).max() > tolerance * largest:
        raise InputError(
            f"{label} of kind 'distances' must have a zero diagonal; the largest entry there is "
            f"{np.abs(diagonal).max():g}. For similarities use kind='affinity'."
        )
