"""Tables by columns: `.parquet` (read by blocks where large) and `.feather`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data.convert import to_values
from ..data.facts import is_counted
from ..errors import required
from ..rows.files import ParquetRows
from .base import Contents, Item, Request
from .groups import text_of
from .tables import find_column, require_numeric


def read_parquet(request: Request) -> Contents:
    """Return the numeric columns of a Parquet file."""
    parquet = required("pyarrow.parquet", "formats", "Reading .parquet")
    with parquet.ParquetFile(request.path) as file:
        schema, n_rows = file.schema_arrow, int(file.metadata.num_rows)

    def read(columns: list[str]) -> Any:
        with parquet.ParquetFile(request.path) as file:
            return file.read(columns=columns)

    columns = _numeric_columns(schema, request)
    n_bytes = 8 * n_rows * len(columns)
    request.believe(n_bytes)
    if n_rows and request.is_lazy(n_bytes):
        rows = partial(ParquetRows, request.path, columns)
        return _contents(schema, columns, n_rows, rows, read)
    return _contents(schema, columns, n_rows, partial(_table, request, read, columns), read)


def read_feather(request: Request) -> Contents:
    """Return the numeric columns of a Feather or Arrow IPC file."""
    feather = required("pyarrow.feather", "formats", "Reading .feather")
    request.afford(request.size)
    table = feather.read_table(os.fspath(request.path), memory_map=False)
    request.afford(table.nbytes)
    columns = _numeric_columns(table.schema, request)
    read = table.select
    values = partial(_table, request, read, columns)
    return _contents(table.schema, columns, table.num_rows, values, read)


def _table(request: Request, read: Callable[[list[str]], Any], columns: list[str]) -> Any:
    table = read(columns).select(columns)
    table.validate(full=True)  # a hostile file can point outside of its own buffers
    request.afford(table.nbytes)
    return to_values(table, "The table")


def _contents(
    schema: Any,
    columns: list[str],
    n_rows: int,
    values: Callable[[], Any],
    read: Callable[[list[str]], Any],
) -> Contents:
    def labels(name: str) -> npt.NDArray[Any]:
        table = read([name]).select([name])
        table.validate(full=True)
        return np.asarray(table.column(0).to_pylist(), dtype=object)

    def rows() -> Iterable[Any] | None:
        index = _index_columns(schema)
        return map(text_of, labels(index[0])) if len(index) == 1 else None

    named = not is_counted([name for name in schema.names if name not in _index_columns(schema)])
    item = Item(
        (n_rows, len(columns)),
        "table",
        values,
        columns=lambda: columns if named else None,
        rows=rows,
    )
    return Contents({"": item}, labels, "")


def _index_columns(schema: Any) -> list[str]:
    """Return the columns that hold names of rows, as pandas tells."""
    told = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in told if isinstance(name, str)]


def _numeric_columns(schema: Any, request: Request) -> list[str]:
    """Return the names of the columns to read, none of them names of rows or the labels."""
    from pyarrow import types

    options = request.options
    names = list(schema.names)
    taken = set(_index_columns(schema))
    if options.group_by is not None:
        taken.add(names[find_column(options.group_by, names, "group_by")])
    wanted = [name for name in names if name not in taken]
    if options.columns is not None:
        wanted = [names[find_column(column, names, "columns")] for column in options.columns]
    for name in wanted:
        find_column(name, names, "columns")  # a name that occurs twice cannot be asked for
    kinds = {name: schema.field(name).type for name in wanted}
    good = [
        name
        for name, kind in kinds.items()
        if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    ]
    bad = [(name, str(kind)) for name, kind in kinds.items() if name not in good]
    require_numeric(bad, len(wanted), options.drop_non_numeric)
    return good
