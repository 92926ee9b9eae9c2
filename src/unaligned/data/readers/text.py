"""Tables as text: `.csv`, `.tsv`, plain or gzipped, with a header or without."""

from __future__ import annotations

import csv
import gzip
import io
import re
from itertools import islice
from typing import TYPE_CHECKING, Any

from ...errors import FileError, InputTypeError
from .base import Contents, Request
from .tables import from_frame

if TYPE_CHECKING:
    import pandas as pd

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
    text = _decoded(unpacked(request))
    is_tsv = ".tsv" in request.path.name.lower()[-7:]
    start = io.StringIO(text, newline=None)
    lines = list(islice((line for line in start if line.strip()), 2))
    if not lines:
        raise FileError("It has no lines but empty ones.")
    separator = "\t" if is_tsv else max(",;\t", key=lines[0].count)
    rows = list(csv.reader(lines, delimiter=separator))
    names, skip = _header(rows, request.options.header)
    n_columns = len(rows[-1]) if names is None else len(names)
    _require_even(text, separator, n_columns, skip)
    frame = _parse(text, separator, names, skip, n_columns, rows[-1])
    return from_frame(frame, request)


def _decoded(data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(
            f"It is not UTF-8 text (byte {error.start}). Save it again as UTF-8."
        ) from error
    if "\0" in text:
        raise FileError("It holds NUL characters, so it is no text. Save it again as UTF-8.")
    return text


def _header(rows: list[list[str]], wanted: bool | None) -> tuple[list[str] | None, int]:
    """Return the column names or None, and how many lines to skip.

    The first line is a header if it has text above a number, or nothing but text, or counts
    0, 1, 2, … as pandas does. A header with one field less than the rows comes from R, whose
    first column has the names of rows.
    """
    first = [field.strip() for field in rows[0]]
    second = rows[1] if len(rows) > 1 else None
    counted = [field for field in first if field] == [
        str(i) for i in range(len(first) - (first[0] == ""))
    ]
    text = [not _is_number(field) for field in first]
    above = second is not None and any(
        t and _is_number(field) for t, field in zip(text, second, strict=False)
    )
    is_header = (
        above
        or all(t or not f for t, f in zip(text, first, strict=True))
        or (counted and len(first) > 1 and second is not None)
    )
    if not (is_header if wanted is None else wanted):
        return None, 0
    if second is not None and len(second) == len(first) + 1:
        first = ["", *first]
    return first, 1


def _is_number(field: str) -> bool:
    text = field.strip().lower()
    if text in _MISSING or text in ("true", "false"):
        return True
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


def _require_even(text: str, separator: str, n_columns: int, skip: int) -> None:
    """Refuse rows of another length: pandas would fill or shift them without a word."""
    if '"' in text:
        rows: Any = csv.reader(io.StringIO(text), delimiter=separator)
        lengths = ((i, len(row)) for i, row in enumerate(rows, 1) if row)
    else:
        lines = enumerate(io.StringIO(text, newline=None), 1)
        lengths = ((i, line.count(separator) + 1) for i, line in lines if line.strip())
    for number, length in lengths:
        if length != n_columns and number > skip:
            raise FileError(
                f"Line {number} has {length} field{'s' * (length != 1)}, and {n_columns} were "
                "expected. All rows need the same number; is a separator or a quote missing?"
            )


def _parse(
    text: str,
    separator: str,
    names: list[str] | None,
    skip: int,
    n_columns: int,
    sample: list[str],
) -> pd.DataFrame:
    import pandas as pd

    # The same numbers, to the last bit, as in any other format; pandas 3.1 always does that.
    old = tuple(int(part) for part in pd.__version__.split(".")[:2]) < (3, 1)
    exact: Any = {"float_precision": "round_trip"} if old else {}
    comma = separator != "," and any(re.fullmatch(r"\s*-?\d*,\d+\s*", field) for field in sample)
    frame: pd.DataFrame = pd.read_csv(
        io.StringIO(text),
        sep=separator,
        header=None,
        names=range(n_columns),
        skiprows=skip,
        index_col=False,
        decimal="," if comma else ".",
        low_memory=False,
        **exact,
        skipinitialspace=True,
    )
    if frame.empty:
        raise FileError("It has a header and no rows.")
    titles = names or [str(i) for i in range(n_columns)]
    if names and names[0] == "":  # names of rows, as pandas and R write them
        frame, titles = frame.iloc[:, 1:], titles[1:]
    frame.columns = pd.Index(titles)
    if frame.shape[1] == 0:
        raise InputTypeError("It has names of rows and no columns beside them.")
    return frame
