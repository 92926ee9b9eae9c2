"""Parts of the rows of a source: read, and checked, by whoever works on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..errors import InputError, InputTypeError

SAME_ROWS = (
    "A source must give the same rows every time it is read: a generator must be made anew by a "
    "function, with its seed, and a file must not be written meanwhile."
)


class Part(NamedTuple):
    """Consecutive rows of a source, read when they are asked for.

    Examples
    --------
    >>> part = Part(4, 3, 2, 2, "points", list).carrying(np.zeros((3, 2)))
    >>> [(start, block.shape) for start, block in part.blocks()]
    [(4, (2, 2)), (6, (1, 2))]
    """

    start: int  # the place of the first among all rows
    n_rows: int
    n_features: int
    step: int  # the most rows of a block
    label: str  # the source, as errors call it
    read: Callable[[], Iterable[Any]]  # consecutive arrays, dense or sparse

    def blocks(self) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Yield the rows by dense blocks, each with the place of its first row.

        Blocks that are no tables of numbers, narrower or wider than all others, or of more or
        fewer rows than there were before, are refused.
        """
        start = self.start
        for rows in self.read():
            for a in range(0, rows.shape[0], self.step):
                block = dense(rows[a : a + self.step])
                self._require_table(block, start + a)
                yield start + a, block
            start += rows.shape[0]
        if start - self.start != self.n_rows:
            raise InputError(
                f"{self.label} gave {start - self.start} rows from row {self.start} on, and "
                f"{self.n_rows} before. {SAME_ROWS}"
            )

    def _require_table(self, block: npt.NDArray[Any], start: int) -> None:
        if block.ndim != 2 or block.shape[1] != self.n_features:
            raise InputError(
                f"{self.label} gave a block of shape {block.shape} after {start} rows; every "
                f"block must have {self.n_features} columns."
            )
        require_numeric(block.dtype, self.label)

    def carried(self) -> Part:
        """Return the part with its rows, as they are now."""
        return self.carrying(list(self.read()))

    def carrying(self, rows: Any) -> Part:
        """Return the part with these rows, an array or a list of them."""
        return self._replace(read=partial(_itself, rows if isinstance(rows, list) else [rows]))

    def mapped(self, function: Callable[[Any], Any], n_features: int) -> Part:
        """Return the part with every block changed by a function, once it is read."""
        return self._replace(read=partial(_mapped, function, self), n_features=n_features)


def require_numeric(dtype: np.dtype[Any], label: str) -> None:
    """Refuse what is not real numbers."""
    if dtype.kind in "biuf":
        return
    what = {
        "O": "Python objects",
        "U": "text",
        "S": "bytes",
        "c": "complex numbers",
        "M": "dates",
        "m": "time spans",
        "V": "records",
    }.get(dtype.kind, str(dtype))
    raise InputTypeError(
        f"{label} must hold real numbers; it holds {what} (dtype {dtype}). "
        "Convert it first, e.g. values.astype(float)."
    )


def dense(block: Any) -> npt.NDArray[Any]:
    """Return a block as an array, a sparse one with its zeros."""
    return block.toarray() if sparse.issparse(block) else np.asarray(block)


def _itself(rows: list[Any]) -> list[Any]:
    return rows


def _mapped(function: Callable[[Any], Any], part: Part) -> Iterator[Any]:
    return (function(block.astype(np.float64)) for _, block in part.blocks())
