"""Tables as text: `.csv`, `.tsv`, plain or gzipped, with a header or without."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _check
from ..data.facts import is_counted
from ..errors import DataWarning, FileError, InputTypeError, warn
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


_MISSING = {"", "na", "n/a", "nan", "null", "none", "-nan"}


def unpacked(request: Request) -> bytes:
    """Return the bytes of a plain or gzipped file, refusing a bomb while it unpacks."""
    if not request.path.name.lower().endswith(".gz"):
        request.afford(request.size)
        return request.path.read_bytes()
    parts, total = [], 0
    with gzip.open(request.path) as file:
        while part := file.read(1 << 24):
            total += len(part)
            request.afford(total, "unpacked")
            parts.append(part)
    return b"".join(parts)


def read_csv(request: Request) -> Contents:
    """Return the table; separator, header, row names and decimal commas are found out."""
    data = plain_text(unpacked(request))
    if not data.strip():
        raise FileError("It has no lines but empty ones.")
    is_tsv = ".tsv" in request.path.name.lower()[-7:]
    beginnings = [_beginning(data, separator) for separator in ("\t" if is_tsv else ",;\t")]
    first = max(beginnings, key=lambda beginning: len(beginning.rows[0]))
    _require_closed(data, first)
    names = _header(first.rows, request.options.header)
    start = first.start if names is None else first.stop
    n_columns = len(first.rows[0]) if names is None else len(names)
    body, before = data[start:], data.count(b"\n", 0, start)
    _require_even(body, first.separator, n_columns, before)
    return from_frame(_parse(body, first.separator, names, n_columns, first.rows[-1]), request)


class _Beginning(NamedTuple):
    """The first rows of a table, two at the most, and where the first of them starts and stops."""

    separator: str
    rows: list[list[str]]
    start: int
    stop: int


def _beginning(data: bytes, separator: str) -> _Beginning:
    """Return the first rows that are not blank; within quotes a line may end and a row go on."""
    rows: list[list[str]] = []
    places: list[tuple[int, int]] = []
    place = 0

    def lines() -> Iterator[str]:
        nonlocal place
        for line in io.BytesIO(data):
            place += len(line)
            yield line.decode()

    reader = csv.reader(lines(), delimiter=separator)
    with suppress(csv.Error, StopIteration):  # a row longer than csv allows: its quote is open
        while len(rows) < 2:
            start, row = place, next(reader)
            if separator.join(row).strip():
                rows.append(row)
                places.append((start, place))
    return _Beginning(separator, rows or [[]], *(places or [(0, len(data))])[0])


def _require_closed(data: bytes, first: _Beginning) -> None:
    """Refuse a first row that goes on to the end of the file because a quote is missing."""
    text = data[first.start : first.stop]
    if first.stop == len(data) and text.count(b"\n") > 1 and text.count(b'"') % 2:
        line = data.count(b"\n", 0, len(data) - len(data[first.start :].lstrip())) + 1
        raise FileError(f"A quote that opens in line {line} is not closed. Write it again.")


def plain_text(data: bytes) -> bytes:
    """Return UTF-8 without a byte order mark and with one kind of line end; refuse the rest."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise FileError(
            f"It is not UTF-8 text (byte {error.start}). Save it again as UTF-8."
        ) from error
    if b"\0" in data:
        raise FileError("It holds NUL characters, so it is no text. Save it again as UTF-8.")
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


def _header(rows: list[list[str]], wanted: bool | None) -> list[str] | None:
    """Return the column names, or None if the first line is data.

    The first line is a header if it has text above a number, or nothing but text, or counts
    0, 1, 2, … as pandas does. A header with one field less than the rows comes from R, whose
    first column has the names of rows.
    """
    first = [field.strip() for field in rows[0]]
    second = rows[1] if len(rows) > 1 else None
    counted = [field for field in first if field] == [
        str(i) for i in range(len(first) - (first[0] == ""))
    ]
    text = [not _is_value(field) for field in first]
    above = second is not None and any(
        t and _is_value(field) for t, field in zip(text, second, strict=False)
    )
    is_header = (
        above
        or all(t or not f for t, f in zip(text, first, strict=True))
        or (counted and len(first) > 1 and second is not None)
    )
    if not (is_header if wanted is None else wanted):
        return None
    if second is not None and len(second) == len(first) + 1:
        first = ["", *first]
    return first


def _is_value(field: str) -> bool:
    text = field.strip().lower()
    if text in _MISSING or text in ("true", "false"):
        return True
    return is_number(text.replace(",", "."))


def _require_even(body: bytes, separator: str, n_columns: int, before: int) -> None:
    """Refuse rows of another length: pandas would fill or shift them without a word."""
    lengths = _quoted_lengths if b'"' in body else _plain_lengths
    for number, length in lengths(body, separator, n_columns):
        raise FileError(
            f"Line {before + number} has {length} field{'s' * (length != 1)}, and {n_columns} "
            "were expected. All rows need the same number; is a separator or a quote missing?"
        )


def _plain_lengths(body: bytes, separator: str, n_columns: int) -> Iterator[tuple[int, int]]:
    """Yield the number and the length of each row that has another length."""
    letters = np.frombuffer(body.rstrip(b"\n") + b"\n", dtype=np.uint8)
    ends = np.flatnonzero(letters == ord("\n"))
    starts = np.append(0, ends[:-1] + 1)
    counts = np.add.reduceat(letters == ord(separator), starts, dtype=np.int64) + 1
    for i in np.flatnonzero(counts != n_columns):
        if letters[starts[i] : ends[i]].tobytes().strip():  # blank lines are passed over
            yield int(i) + 1, int(counts[i])


def _quoted_lengths(body: bytes, separator: str, n_columns: int) -> Iterator[tuple[int, int]]:
    rows = csv.reader(io.StringIO(body.decode(), newline=""), delimiter=separator)
    for row in rows:
        if len(row) != n_columns and any(row):
            yield rows.line_num, len(row)


def _parse(
    body: bytes, separator: str, names: list[str] | None, n_columns: int, sample: list[str]
) -> pd.DataFrame:
    import pandas as pd

    if not body.strip():
        raise FileError(
            "It has a header and no rows. Leave it out, or write it again with its rows; if that "
            "line is data, pass header=False."
        )
    # The same numbers, to the last bit, as in any other format; pandas 3.1 always does that.
    old = tuple(int(part) for part in pd.__version__.split(".")[:2]) < (3, 1)
    exact: Any = {"float_precision": "round_trip"} if old else {}
    comma = separator != "," and any(re.fullmatch(r"\s*-?\d*,\d+\s*", field) for field in sample)
    frame: pd.DataFrame = pd.read_csv(
        io.BytesIO(body),
        sep=separator,
        header=None,
        names=range(n_columns),
        index_col=False,
        decimal="," if comma else ".",
        low_memory=False,
        **exact,
        skipinitialspace=True,
    )
    titles = names or [str(i) for i in range(n_columns)]
    if names and names[0] == "":  # names of rows, as pandas and R write them
        frame, titles = frame.iloc[:, 1:].set_axis(frame.iloc[:, 0], axis=0), titles[1:]
    frame.columns = pd.Index(titles)
    if frame.shape[1] == 0:
        raise InputTypeError("It has names of rows and no columns beside them.")
    return frame
