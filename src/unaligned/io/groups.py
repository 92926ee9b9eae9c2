"""Labels to groups of rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from .._check import FloatArray
from ..errors import DataWarning, FileError, warn
from ..rows.source import Part, RowSource

Mask = npt.NDArray[np.bool_]
# More digits than a float has are an identifier.
_NUMBER = re.compile(r"[-+]?(?:\d{1,15}(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,2})?")
Groups = list[tuple[str | None, Mask | None]]


def groups_of(labels: npt.NDArray[Any], group_by: str) -> tuple[Groups, int]:
    """Return each label with a mask of its rows, in natural order (D2 before D10).

    Rows without a label are left out, with a warning.

    Examples
    --------
    >>> [name for name, mask in groups_of(np.array(["D10", "D2", "D2", "D10"]), "day")[0]]
    ['D2', 'D10']
    """
    texts = np.array([text_of(label) for label in labels.tolist()], dtype=object)
    missing = texts == ""
    if missing.all():
        raise FileError(f"group_by={group_by!r} has no value in any row.")
    if missing.any():
        warn(
            f"group_by={group_by!r}: {int(missing.sum())} of {texts.size} rows have no value "
            "there and are left out.",
            DataWarning,
        )
    names = sorted(set(texts[~missing]), key=natural_key)
    if len(names) > max(1, texts.size // 2):
        raise FileError(
            f"group_by={group_by!r} has {len(names)} different values in {texts.size} rows, so "
            "most groups would have one row. Group by a column with fewer values."
        )
    return [(name, texts == name) for name in names], texts.size


def tags_of(groups: Groups, group_by: str | None) -> list[dict[str, Any]]:
    """Return the metadata of each group, {column: value}; numbers where all values are.

    Examples
    --------
    >>> tags_of([("0", None), ("2.5", None)], "day"), tags_of([("0", None), ("x", None)], "day")
    ([{'day': 0}, {'day': 2.5}], [{'day': '0'}, {'day': 'x'}])
    """
    if group_by is None:
        return [{} for _ in groups]
    texts = [str(text) for text, _ in groups]
    if not all(_NUMBER.fullmatch(text) for text in texts):
        return [{group_by: text} for text in texts]
    numbers = [float(text) for text in texts]
    return [{group_by: int(number) if number.is_integer() else number} for number in numbers]


def chosen(values: Any, mask: Mask) -> Any:
    """Return the rows that the mask marks, of an array, a sparse matrix or a source."""
    if isinstance(values, RowSource):
        return ChosenRows(values, mask)
    return values[np.flatnonzero(mask)]


class ChosenRows(RowSource):
    """Those rows of another source that a mask marks."""

    def __init__(self, source: RowSource, mask: npt.NDArray[np.bool_]) -> None:
        self.source, self.mask = source, mask
        self.n_rows, self.n_features = int(mask.sum()), source.n_features

    def parts(self, n_rows: int | None = None) -> Iterator[Part]:
        """Yield the parts of the source, each with its chosen rows."""
        start = 0
        for part in self.source.parts(n_rows):
            mask = self.mask[part.start : part.start + part.n_rows]
            kept = int(mask.sum())
            if kept:
                yield self.part(start, kept, part.step, partial(_kept, part, mask))
            start += kept

    def take(self, rows: npt.ArrayLike) -> FloatArray:
        """Return these rows as float64, from where they are in the source."""
        return self.source.take(np.flatnonzero(self.mask)[np.asarray(rows, dtype=np.int64)])


def _kept(part: Part, mask: npt.NDArray[np.bool_]) -> Iterator[Any]:
    for start, block in part.blocks():
        first = start - part.start
        yield block[mask[first : first + block.shape[0]]]


def text_of(label: Any) -> str:
    """Return a label, or the name of a row, as text; one that is missing is empty."""
    if isinstance(label, bytes):
        return label.decode("utf-8", "replace")
    if label is None or label != label:
        return ""
    if isinstance(label, float) and label.is_integer():
        return str(int(label))  # a missing value elsewhere made 0 into 0.0
    return str(label)


def natural_key(name: str) -> list[tuple[int, float, str]]:
    """Return a key that sorts D2 before D10."""
    parts = re.findall(r"\d+(?:\.\d+)?|\D+", name)
    return [(0, float(part), "") if part[0].isdecimal() else (1, 0.0, part) for part in parts]
