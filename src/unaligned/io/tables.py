"""Tables: text (`.csv`, `.tsv`, also gzipped), `.parquet` and `.feather`."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _check
from ..data.facts import is_counted
from ..data.values import to_values
from ..errors import DataWarning, FileError, InputTypeError, counted, required, warn
from ..rows.files import ParquetRows
from .base import Contents, Item, Request, text_of

if TYPE_CHECKING:
    import pandas as pd


def find_column(
    column: str | int, names: list[Any], argument: str, *, has_positions: bool = True
) -> int:
    """Return the position of a column given by name or position.

    Without `has_positions` columns of one name cannot be told apart by their positions.
    """
    texts = [str(name) for name in names]
    if isinstance(column, str):
        if texts.count(column) == 1:
            return texts.index(column)
        what, near = "does not exist", _check.did_you_mean(column, texts)
        if column in texts:
            what, near = "occurs twice", " Rename one of them."
            if argument == "columns" and has_positions:
                where = [str(i) for i, text in enumerate(texts) if text == column]
                near = f" Choose by position: {', '.join(where)}."
        shown = ", ".join(map(repr, texts[:20])) + (", …" if len(texts) > 20 else "")
        raise FileError(f"{argument}: the column {column!r} {what}.{near} Columns: {shown}.")
    n = len(names)
    if not -n <= column < n:
        raise FileError(f"{argument}: there is no column {column}; the {n} columns count from 0.")
    return column % n


def require_numeric(bad: list[tuple[str, str]], n_columns: int, drop: bool) -> None:
    """Raise for columns without numbers, or warn that they are dropped where others remain."""
    if not bad:
        return
    more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
    if drop and len(bad) < n_columns:
        # Without the file name, so that many similar files warn once.
        names = ", ".join(repr(name) for name, _ in bad[:5])
        warn(f"Dropped columns without numbers: {names}{more}.", DataWarning)
        return
    shown = ", ".join(f"{name!r} ({what})" for name, what in bad[:5]) + more
    remedy = "Encode them, choose columns=, or drop them with drop_non_numeric=True."
    if len(bad) == n_columns:
        remedy = "No column has numbers."
    raise InputTypeError(f"{len(bad)} of {n_columns} columns without numbers: {shown}. {remedy}")


def read_parquet(request: Request) -> Contents:
    """Return the numeric columns of a Parquet file, read by blocks where large."""
    parquet = required("pyarrow.parquet", "formats", "Reading .parquet")
    with parquet.ParquetFile(request.path) as file:
        schema, n_rows = file.schema_arrow, int(file.metadata.num_rows)

    def read(columns: list[str]) -> Iterator[Any]:
        # Text as a dictionary: one label in all rows takes the memory of one.
        with parquet.ParquetFile(request.path, read_dictionary=columns) as file:
            yield from file.iter_batches(columns=columns)

    columns = _numeric_columns(schema, request)
    n_bytes = 8 * n_rows * len(columns)
    request.require_plausible(n_bytes)
    lazy = request.is_lazy((n_rows, len(columns)), n_bytes)
    rows = partial(ParquetRows, request.path, columns) if lazy else None
    return _arrow_contents(request, schema, columns, n_rows, read, rows)


def read_feather(request: Request) -> Contents:
    """Return the numeric columns of a Feather or Arrow IPC file."""
    feather = required("pyarrow.feather", "formats", "Reading .feather")
    from pyarrow import dataset, ipc

    path = os.fspath(request.path)
    request.require_memory(request.size)
    with request.path.open("rb") as file:
        is_first_version = file.read(4) == b"FEA1"  # which compresses nothing
    if is_first_version:
        table = feather.read_table(path, memory_map=False)
        columns, parts = _numeric_columns(table.schema, request), table.to_batches()
        return _arrow_contents(request, table.schema, columns, table.num_rows, lambda _: parts)
    with ipc.open_file(path) as file:
        schema = file.schema
    columns = _numeric_columns(schema, request)
    _require_unique(schema.names, schema.names)  # of all columns: a dataset has no others
    n_rows = dataset.dataset(path, format="ipc").count_rows()

    def read(columns: list[str]) -> Iterator[Any]:
        chosen = [schema.get_field_index(name) for name in columns]
        with ipc.open_file(path, options=ipc.IpcReadOptions(included_fields=chosen)) as file:
            yield from map(file.get_batch, range(file.num_record_batches))

    n_bits = n_rows * sum(schema.field(name).type.bit_width for name in columns)
    request.require_memory(n_bits // 8)  # before a batch, which can have all rows, is unpacked
    return _arrow_contents(request, schema, columns, n_rows, read)


def _numeric_columns(schema: Any, request: Request) -> list[str]:
    """Return the names of the columns to read, without row names and labels."""
    from pyarrow import types

    options, names = request.options, list(schema.names)
    excluded = set(_index_columns(schema))
    for column in options.label_columns:
        excluded.add(names[find_column(column, names, "group_by")])
    wanted = [name for name in names if name not in excluded]
    if options.columns is not None:
        find = partial(find_column, names=names, argument="columns", has_positions=False)
        wanted = [names[find(column)] for column in options.columns]
    _require_unique(wanted, names)
    bad = {}
    for name in wanted:
        kind = schema.field(name).type
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
            bad[name] = str(kind)
    require_numeric(list(bad.items()), len(wanted), options.drop_non_numeric)
    return [name for name in wanted if name not in bad]


def _require_unique(wanted: Iterable[str], names: list[str]) -> None:
    """Raise for a column whose name occurs twice: pyarrow reads columns by name."""
    counts = Counter(names)
    for name in wanted:
        if counts[name] > 1:
            find_column(name, names, "the table")


def _index_columns(schema: Any) -> list[str]:
    """Return the columns with names of rows, according to pandas' metadata."""
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in index if isinstance(name, str)]


def _arrow_contents(
    request: Request,
    schema: Any,
    columns: list[str],
    n_rows: int,
    read: Callable[[list[str]], Iterable[Any]],
    lazy_rows: Callable[[], Any] | None = None,
) -> Contents:
    from pyarrow import Table

    def table(names: list[str]) -> Any:
        batches, n_bytes = [], 0
        for batch in read(names):
            n_bytes += batch.nbytes
            request.require_memory(n_bytes)
            batches.append(batch.select(names))
        if not batches:
            return schema.empty_table().select(names)
        found = Table.from_batches(batches)
        found.validate(full=True)  # a hostile file can point outside of its own buffers
        return found

    def labels(name: str) -> npt.NDArray[Any]:
        chunks = table([name]).column(0).chunks
        return np.concatenate([np.empty(0, dtype=object), *map(_label_values, chunks)])

    index = _index_columns(schema)
    named = not is_counted([name for name in schema.names if name not in index])
    names = (lambda: columns) if named else None
    row_names = (lambda: map(text_of, labels(index[0]))) if len(index) == 1 else None
    read_rows = lazy_rows or (lambda: to_values(table(columns), "The table"))
    item = Item((n_rows, len(columns)), "table", read_rows, columns=names, rows=row_names)
    return Contents({"": item}, labels, "")


def _label_values(column: Any) -> npt.NDArray[Any]:
    """Return the values of a column; those of a dictionary are in memory once."""
    if not hasattr(column, "dictionary"):
        return np.asarray(column.to_pylist(), dtype=object)
    values = np.array([*column.dictionary.to_pylist(), None], dtype=object)
    found: npt.NDArray[Any] = values[column.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
    return found


def unpacked(request: Request) -> bytes:
    """Return the bytes of a plain or gzipped file; a bomb is detected while it unpacks."""
    if not request.path.name.lower().endswith(".gz"):
        request.require_memory(request.size)
        return request.path.read_bytes()
    chunks, total = [], 0
    with gzip.open(request.path) as file:
        while chunk := file.read(1 << 24):
            total += len(chunk)
            request.require_memory(total, "unpacked")
            chunks.append(chunk)
    return b"".join(chunks)


def plain_text(data: bytes) -> bytes:
    """Return UTF-8 text without a byte order mark and with one kind of line end."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        data.decode()
    except UnicodeDecodeError as error:
        is_utf16 = data.startswith((b"\xff\xfe", b"\xfe\xff"))  # its byte order mark
        encoding = "utf-16" if is_utf16 else "latin1"
        raise FileError(
            f"The file is not UTF-8 text (byte {error.start}). Convert it, for example with "
            f"`iconv -f {encoding} -t utf-8`."
        ) from error
    if b"\0" in data:
        raise FileError("The file contains NUL characters, so it is not text.")
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


def read_csv(request: Request) -> Contents:
    """Return a text table; separator, header, row names and decimal commas are detected."""
    required("pandas", "pandas", "Reading .csv and .tsv")
    data = plain_text(unpacked(request))
    if not data.strip():
        raise FileError("The file contains only blank lines.")
    is_tsv = ".tsv" in request.path.name.lower()[-7:]
    starts = [_first_rows(data, separator) for separator in ("\t" if is_tsv else ",;\t")]
    first = max(starts, key=lambda start: len(start.rows[0]))
    text = data[first.start : first.stop]
    if first.stop == len(data) and text.count(b"\n") > 1 and text.count(b'"') % 2:
        line = data.count(b"\n", 0, len(data) - len(data[first.start :].lstrip())) + 1
        raise FileError(f"The quote that opens in line {line} is not closed.")
    names = _header(first.rows, request.options.header)
    start = first.start if names is None else first.stop
    n_columns = len(first.rows[0]) if names is None else len(names)
    body = data[start:]
    _require_equal_lengths(body, first.separator, n_columns, data.count(b"\n", 0, start))
    return frame_contents(_parse(body, first, names, n_columns), request)


class _FirstRows(NamedTuple):
    """The first one or two rows of a table, and where the first of them starts and stops."""

    separator: str
    rows: list[list[str]]
    start: int
    stop: int


def _first_rows(data: bytes, separator: str) -> _FirstRows:
    """Return the first rows that are not blank; a quoted field may contain line breaks."""
    rows: list[list[str]] = []
    places: list[tuple[int, int]] = []
    file = io.BytesIO(data)
    lines = (line.decode() for line in iter(file.readline, b""))
    reader = csv.reader(lines, delimiter=separator)
    with suppress(csv.Error, StopIteration):  # a field longer than csv allows: an open quote
        while len(rows) < 2:
            start, row = file.tell(), next(reader)
            if separator.join(row).strip():
                rows.append(row)
                places.append((start, file.tell()))
    return _FirstRows(separator, rows or [[]], *(places or [(0, len(data))])[0])


def _header(rows: list[list[str]], wanted: bool | None) -> list[str] | None:
    """Return the column names, or None if the first line is data.

    The first line is a header if it has text above a number, or nothing but text, or counts
    0, 1, 2, … as pandas does.
    """
    first = [field.strip() for field in rows[0]]
    second = rows[1] if len(rows) > 1 else None
    numbering = [str(i) for i in range(len(first) - (first[0] == ""))]
    is_numbered = [field for field in first if field] == numbering and len(first) > 1
    text = [not _is_value(field) for field in first]
    is_header = all(t or not field for t, field in zip(text, first, strict=True))
    if second is not None:
        above = any(t and _is_value(field) for t, field in zip(text, second, strict=False))
        is_header = is_header or above or is_numbered
    if not (is_header if wanted is None else wanted):
        return None
    # R writes no name for its first column, the names of rows.
    from_r = second is not None and len(second) == len(first) + 1
    return ["", *first] if from_r else first


def _is_value(field: str) -> bool:
    """Return whether a cell is a number, a truth value or missing."""
    text = field.strip().lower()
    words = ("", "na", "n/a", "null", "none", "true", "false")
    return text in words or _is_number(text.replace(",", "."))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _require_equal_lengths(body: bytes, separator: str, n_columns: int, n_before: int) -> None:
    """Raise for rows of another length, which pandas would fill or shift silently."""
    if b'"' in body:
        reader = csv.reader(io.StringIO(body.decode(), newline=""), delimiter=separator)
        lengths = ((reader.line_num, len(row)) for row in reader if any(row))
    else:
        lines = enumerate(io.BytesIO(body), 1)
        lengths = ((i, line.count(separator.encode()) + 1) for i, line in lines if line.strip())
    for number, length in lengths:
        if length != n_columns:
            raise FileError(
                f"Line {n_before + number} has {counted(length, 'field')}, expected {n_columns}. "
                "Is a separator or a quote missing?"
            )


def _parse(body: bytes, first: _FirstRows, names: list[str] | None, n_columns: int) -> Any:
    """Return the rows of a text table as a data frame."""
    import pandas as pd

    if not body.strip():
        remedy = "If that line is data, pass header=False."
        raise FileError(f"The file has a header and no rows. {remedy}")
    # The same numbers, to the last bit, as in other formats; pandas 3.1 always does that.
    old = tuple(int(part) for part in pd.__version__.split(".")[:2]) < (3, 1)
    exact: Any = {"float_precision": "round_trip"} if old else {}
    has_comma = any(re.fullmatch(r"\s*-?\d*,\d+\s*", field) for field in first.rows[-1])
    frame: pd.DataFrame = pd.read_csv(
        io.BytesIO(body),
        sep=first.separator,
        header=None,
        names=range(n_columns),
        index_col=False,
        decimal="," if has_comma and first.separator != "," else ".",
        low_memory=False,
        skipinitialspace=True,
        **exact,
    )
    titles = names or [str(i) for i in range(n_columns)]
    if names and names[0] == "":  # names of rows, as pandas and R write them
        frame, titles = frame.iloc[:, 1:].set_axis(frame.iloc[:, 0], axis=0), titles[1:]
    if frame.shape[1] == 0:
        raise InputTypeError("The table has row names and no other column.")
    return frame.set_axis(pd.Index(titles), axis=1)


def frame_contents(frame: pd.DataFrame, request: Request) -> Contents:
    """Return the numeric columns of a frame, and the columns of labels."""
    options, labels = request.options, dict[str, Any]()
    named = not is_counted(list(frame.columns))
    for column in options.label_columns:
        position = find_column(column, list(frame.columns), "group_by")
        labels[column] = frame.iloc[:, position].to_numpy(dtype=object)
        frame = frame.iloc[:, [i for i in range(frame.shape[1]) if i != position]]
    if options.columns is not None:
        names = list(frame.columns)
        chosen = [find_column(column, names, "columns") for column in options.columns]
        frame = frame.iloc[:, chosen]
    good = [
        i
        for i, dtype in enumerate(frame.dtypes)
        if getattr(dtype, "kind", "O") in "biuf" and not frame.iloc[:, i].isna().all()
    ]
    bad = [_non_numeric(frame, i) for i in sorted({*range(frame.shape[1])} - {*good})]
    require_numeric(bad, frame.shape[1], options.drop_non_numeric)
    frame = frame.iloc[:, good]
    uniform = len(set(frame.dtypes)) == 1 and isinstance(frame.dtypes.iloc[0], np.dtype)
    values = frame.to_numpy() if uniform else frame.to_numpy(dtype=np.float64, na_value=np.nan)
    columns = list(frame.columns) if named else None
    rows = partial(map, text_of, frame.index)  # pandas parses numeric row names as numbers
    return Contents.single(values, labels, columns=lambda: columns, rows=rows)


def _non_numeric(frame: pd.DataFrame, position: int) -> tuple[str, str]:
    """Return the name of a column without numbers and an example of its values."""
    import pandas as pd

    name, column = str(frame.columns[position]), frame.iloc[:, position]
    filled = column[column.notna().to_numpy()]
    texts = filled.astype(str).str.replace(",", ".", regex=False)  # 0,5 is a number too
    wrong = pd.to_numeric(texts, errors="coerce").isna().to_numpy()
    if 0 < wrong.sum() <= 0.1 * wrong.size:  # a column of numbers with typing errors
        row = np.flatnonzero(column.notna().to_numpy())[wrong.argmax()]
        raise InputTypeError(
            f"Column {name!r} has numbers in {wrong.size - wrong.sum()} of {wrong.size} cells, "
            f"and {str(column.iloc[row])[:30]!r} in row {row} (counted from 0). Correct it, or "
            "leave the cell empty and pass nan_policy='omit'; or choose columns=."
        )
    words = (value for value in filled if isinstance(value, str) and not _is_number(value))
    example = next(words, filled.iloc[0] if len(filled) else None)
    return name, "empty" if example is None else f"such as {str(example)[:30]!r}"
