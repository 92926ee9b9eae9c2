"""A table with named columns to values: which columns, and what about those without numbers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _check
from ...errors import FileError, InputTypeError
from ..names import is_counted
from .base import Contents, Request
from .groups import text_of

if TYPE_CHECKING:
    import pandas as pd


def from_frame(frame: pd.DataFrame, request: Request) -> Contents:
    """Return the numeric columns of a frame, and a column of it as labels if asked for."""
    group_by = request.options.group_by
    labels = None
    named = not is_counted(list(frame.columns))
    if group_by is not None:
        position = find_column(group_by, list(frame.columns), "group_by")
        labels = frame.iloc[:, position].to_numpy(dtype=object)
        frame = frame.iloc[:, [i for i in range(frame.shape[1]) if i != position]]
    if request.options.columns is not None:
        names = list(frame.columns)
        wanted = [find_column(column, names, "columns") for column in request.options.columns]
        frame = frame.iloc[:, wanted]
    good = [
        getattr(dtype, "kind", "O") in "biuf" and not frame.iloc[:, i].isna().all()
        for i, dtype in enumerate(frame.dtypes)
    ]
    bad = [_described(frame, i) for i, numeric in enumerate(good) if not numeric]
    require_numeric(bad, len(good), request.options.drop_non_numeric)
    frame = frame.loc[:, np.asarray(good)]
    columns = list(frame.columns) if named else None
    rows = partial(map, text_of, frame.index)  # pandas reads numbers of genes as numbers
    return Contents.single(_values(frame), labels, columns=lambda: columns, rows=rows)


def _values(frame: pd.DataFrame) -> Any:
    plain = len(set(frame.dtypes)) == 1 and isinstance(frame.dtypes.iloc[0], np.dtype)
    return frame.to_numpy() if plain else frame.to_numpy(dtype=np.float64, na_value=np.nan)


def _described(frame: pd.DataFrame, position: int) -> str:
    column = frame.iloc[:, position]
    filled = column[column.notna()]
    texts = (value for value in filled if isinstance(value, str) and not is_number(value))
    example = next(texts, filled.iloc[0] if len(filled) else None)
    name = str(frame.columns[position])
    return f"{name!r} (empty)" if example is None else f"{name!r} (such as {str(example)[:30]!r})"


def is_number(text: str) -> bool:
    """Return whether Python reads this text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def require_numeric(bad: list[str], n_columns: int, drop: bool) -> None:
    """Refuse columns without numbers unless they are to be dropped and others are left."""
    if not bad or (drop and len(bad) < n_columns):
        return
    shown = ", ".join(bad[:5]) + (f" and {len(bad) - 5} more" if len(bad) > 5 else "")
    remedy = (
        "No column has numbers."
        if len(bad) == n_columns
        else "Encode them, choose columns=, or drop them with drop_non_numeric=True."
    )
    raise InputTypeError(f"{len(bad)} of {n_columns} columns without numbers: {shown}. {remedy}")


def find_column(column: str | int, names: list[Any], argument: str) -> int:
    """Return the position of a column given by name or position."""
    texts = [str(name) for name in names]
    if isinstance(column, str):
        if texts.count(column) == 1:
            return texts.index(column)
        what = "occurs twice" if column in texts else "is not there"
        near = _check.did_you_mean(column, texts)
        shown = ", ".join(map(repr, texts[:20])) + (", …" if len(texts) > 20 else "")
        raise FileError(f"{argument}: the column {column!r} {what}.{near} Columns: {shown}.")
    if not -len(names) <= column < len(names):
        raise FileError(
            f"{argument}: there is no column {column}; there are {len(names)}, counted from 0."
        )
    return column % len(names)
