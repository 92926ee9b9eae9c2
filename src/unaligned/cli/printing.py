"""Output: results to stdout, messages to stderr, tables and JSON."""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import typer

from .._format import CONTROLS, jsonable, printable, printable_line
from ..errors import UnalignedWarning

if TYPE_CHECKING:
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

_UNLIMITED = 100_000  # columns; output to a pipe or a file is neither cut nor wrapped

_GLYPHS = (
    "Letters that matplotlib's font lacks are drawn as boxes. Name a font that has them in a file "
    "`matplotlibrc` in this folder: `font.family: DejaVu Sans, Noto Sans CJK JP`."
)

# Flags of the running command by the names of its options in Python.
_FLAGS: ContextVar[Mapping[str, str]] = ContextVar("_FLAGS")
# The warnings of the running command, as they were printed.
_WARNINGS: ContextVar[list[str]] = ContextVar("_WARNINGS")


@contextmanager
def messages(parameters: Iterable[Any]) -> Iterator[None]:
    """Name the parameters of a command by their flags, and print each warning in one line."""
    flags = {own.name: own.opts[0] for own in parameters if own.param_type_name == "option"}
    token, printed = _FLAGS.set(flags), list[str]()
    inner = _WARNINGS.set(printed)
    with warnings.catch_warnings():
        default = warnings.showwarning

        def show(message: Any, category: type[Warning], *details: Any, **more: Any) -> None:
            if re.match(r"Glyph \d+ .* missing from", str(message)):  # one for each letter
                message, category = _GLYPHS, UnalignedWarning
            if not issubclass(category, UnalignedWarning):
                default(message, category, *details, **more)
            elif with_flags(message) not in printed:
                printed.append(with_flags(message))
                print_problem("Warning", message)

        warnings.showwarning = show
        try:
            yield
        finally:
            _FLAGS.reset(token)
            _WARNINGS.reset(inner)


def issued_warnings() -> list[str]:
    """Return the warnings of the running command so far, for its JSON."""
    return list(_WARNINGS.get([]))


def with_flags(message: object) -> str:
    """Return a message of the library with the options of the running command as flags.

    `solver='exact'` becomes `--solver 'exact'`, `robust=True` `--robust`, `cache=None`
    `--no-cache`. Text in quotes and options that the command lacks stay unchanged.
    """
    flags = _FLAGS.get({})

    def flag(found: re.Match[str]) -> str:
        name, value = found.groups()
        if name not in flags:
            return found[0]
        if value in ("False", "None"):
            return flags[name].replace("--", "--no-")
        return f"{flags[name]} " if value is None else flags[name]

    start = r"(?<![\w.'\"/-])"
    text = re.sub(start + r"(\w+)=(True|False|None|(?=[\s.,)]))?", flag, str(message))
    listed = r"(?<=Its options are: )[\w, ]+"  # also those of one word
    text = re.sub(listed, lambda f: ", ".join(flags.get(n, n) for n in f[0].split(", ")), text)
    # Without `=` only names with an underscore: the others are words of English too.
    return re.sub(start + r"(\w+_\w+)\b(?![=(])", lambda f: flags.get(f[1], f[0]), text)


def print_message(text: str) -> None:
    """Print a message to stderr."""
    _console(stderr=True, soft_wrap=True).print(text)


def print_problem(kind: str, message: object) -> None:
    """Print an error or a warning of the library to stderr."""
    print_message(f"{kind}: {with_flags(message)}")


def print_json(value: Any) -> None:
    """Print a value as one line of JSON, NaN and infinity as null, control characters escaped."""
    text = json.dumps(jsonable(value), ensure_ascii=False)  # which escapes those of ASCII only
    typer.echo(re.sub(f"[{CONTROLS}]", lambda found: f"\\u{ord(found[0]):04x}", text))


def stdout() -> Console:
    """Return a console that prints to stdout."""
    return _console() if sys.stdout.isatty() else _console(width=_UNLIMITED)


def _console(**options: Any) -> Console:
    from rich.console import Console

    class Plain(Console):
        """A console on which text of data moves no cursor and changes no colour."""

        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str(printable(text), **options)

    # No markup: names of datasets may contain `[b]` or `:x:`.
    return Plain(markup=False, emoji=False, highlight=False, **options)


def table(columns: list[str], *, n_text: int) -> Table:
    """Return an empty table: `n_text` columns of text, then columns of numbers."""
    from rich import box
    from rich.table import Table

    class Lines(Table):
        """A table whose cells are one line each, whatever names of data contain."""

        def add_row(self, *cells: Any, **options: Any) -> None:
            lines = (printable_line(cell) if isinstance(cell, str) else cell for cell in cells)
            super().add_row(*lines, **options)

    empty = Lines(box=box.SIMPLE_HEAD)
    for i, column in enumerate(columns):
        is_number = i >= n_text
        column = printable_line(column)
        empty.add_column(column, justify="right" if is_number else "left", no_wrap=is_number)
    return empty


def print_table(title: str, rows: Table) -> None:
    """Print a table, or where the terminal is too narrow for its words each cell in a line."""
    console = stdout()
    if title:
        console.print(title, style="bold")
    for column in rows.columns:
        words = " ".join(map(str, [column.header, *column.cells])).split()
        column.min_width = max(map(len, words), default=0)
    if _width(rows).minimum <= console.width:
        console.print(rows)
        return
    for row in zip(*(column.cells for column in rows.columns), strict=True):
        console.print()
        for column, cell in zip(rows.columns, row, strict=True):
            if str(cell):
                console.print(*([f"{column.header}:"] if column.header else []), cell)


def fits(rows: Table) -> bool:
    """Whether stdout is wide enough for a table without wrapped cells."""
    return bool(_width(rows).maximum <= stdout().width)


def _width(rows: Table) -> Measurement:
    """Return the minimum and maximum width of a table, whatever the terminal."""
    console = stdout()
    return console.measure(rows, options=console.options.update(width=_UNLIMITED))
