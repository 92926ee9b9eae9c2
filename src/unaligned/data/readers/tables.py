"""A table with named columns to values: which columns, and what about those without numbers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _check
from ...errors import DataWarning, FileError, InputTypeError, warn
from ..names import is_counted
from .base import Contents, Request
from .groups import text_of

if TYPE_CHECKING:
    import pandas as pd

_SLIPS = 0.1  # of the filled cells: with so few that are none a column is meant for numbers


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
    _require_no_slips(frame.loc[:, ~np.asarray(good, dtype=bool)])
    require_numeric(bad, len(good), request.options.drop_non_numeric)
    frame = frame.loc[:, np.asarray(good)]
    columns = list(frame.columns) if named else None
    rows = partial(map, text_of, frame.index)  # pandas reads numbers of genes as numbers
    return Contents.single(_values(frame), labels, columns=lambda: columns, rows=rows)


def _values(frame: pd.DataFrame) -> Any:
    plain = len(set(frame.dtypes)) == 1 and isinstance(frame.dtypes.iloc[0], np.dtype)
    return frame.to_numpy() if plain else frame.to_numpy(dtype=np.float64, na_value=np.nan)


def _require_no_slips(frame: pd.DataFrame) -> None:
    """Refuse columns of numbers with a few other cells: they are no columns without numbers."""
    import pandas as pd

    for i, name in enumerate(frame.columns):
        column = frame.iloc[:, i]
        filled = column[column.notna().to_numpy()]
        texts = filled.astype(str).str.replace(",", ".", regex=False)  # 0,5 is a number too
        wrong = pd.to_numeric(texts, errors="coerce").isna().to_numpy()
        if not 0 < wrong.sum() <= _SLIPS * wrong.size:
            continue
        row = np.flatnonzero(column.notna().to_numpy())[wrong.argmax()]
        raise InputTypeError(
            f"Column {str(name)!r} has numbers in {wrong.size - wrong.sum()} of {wrong.size} "
            f"cells, and {str(column.iloc[row])[:30]!r} in row {row} (counted from 0). Correct "
            "it, or leave the cell empty and pass nan_policy='omit'; or choose columns=."
        )


def _described(frame: pd.DataFrame, position: int) -> tuple[str, str]:
    """Return the name of a column without numbers, and what is in it."""
    column = frame.iloc[:, position]
    filled = column[column.notna()]
    texts = (value for value in filled if isinstance(value, str) and not is_number(value))
    example = next(texts, filled.iloc[0] if len(filled) else None)
    what = "empty" if example is None else f"such as {str(example)[:30]!r}"
    return str(frame.columns[position]), what


def is_number(text: str) -> bool:
    """Return whether Python reads this text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def require_numeric(bad: list[tuple[str, str]], n_columns: int, drop: bool) -> None:
    """Refuse columns without numbers, or say which are left out where others are left."""
    if not bad:
        return
    more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
    if drop and len(bad) < n_columns:
        # Without the file: of many that are alike it is said once.
        names = ", ".join(repr(name) for name, _ in bad[:5])
        warn(f"Left out, without numbers: {names}{more}.", DataWarning)
        return
    shown = ", ".join(f"{name!r} ({what})" for name, what in bad[:5]) + more
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
