"""What is printed: results to stdout, messages to stderr."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

import typer

from .._format import jsonable
from ..errors import UnalignedWarning
from .wording import in_shell

if TYPE_CHECKING:
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table

_ENDLESS = 100_000  # columns: into a pipe or a file nothing is cut or wrapped


def say(message: str) -> None:
    """Print a message to stderr."""
    _console(stderr=True, soft_wrap=True).print(message)


def complain(kind: str, message: object) -> None:
    """Print what the library says of an error, or warns of, in the words of the shell."""
    say(f"{kind}: {in_shell(message)}")


def out() -> Console:
    """Return where results are printed."""
    return _console() if sys.stdout.isatty() else _console(width=_ENDLESS)


def _console(**options: Any) -> Console:
    """Return a console that prints text as it is: names may hold `[b]`, or `:x:` of a key."""
    from rich.console import Console

    return Console(markup=False, emoji=False, highlight=False, **options)


def show(title: str, shown: Table) -> None:
    """Print a table under its title; row by row where even wrapped it would lose words."""
    console = out()
    if title:
        console.print(title, style="bold")
    for column in shown.columns:  # a column that gives way must not cut words
        words = " ".join(map(str, [column.header, *column.cells])).split()
        column.min_width = max(map(len, words), default=0)
    if _width(shown).minimum <= console.width:
        console.print(shown)
        return
    for row in zip(*(column.cells for column in shown.columns), strict=True):
        console.print()
        for column, cell in zip(shown.columns, row, strict=True):
            if str(cell):
                console.print(*([f"{column.header}:"] if column.header else []), cell)


def fits(shown: Table) -> bool:
    """Whether a table can be shown without cutting its cells."""
    return bool(_width(shown).maximum <= out().width)


def _width(shown: Table) -> Measurement:
    """Return the least and the most columns that a table takes, whatever the terminal."""
    console = out()
    return console.measure(shown, options=console.options.update(width=_ENDLESS))


def table(columns: list[str], *, first: int) -> Table:
    """Return an empty table whose `first` columns hold text and the others numbers."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD)
    for i, column in enumerate(columns):
        number = i >= first
        made.add_column(column, justify="right" if number else "left", no_wrap=number)
    return made


def print_json(value: Any) -> None:
    """Print a value for machines, on one line; NaN and infinity, which JSON lacks, as null."""
    typer.echo(json.dumps(jsonable(value), ensure_ascii=False))


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show our own warnings as one line on stderr, each once, without file and line of code."""
    with warnings.catch_warnings():
        usual = warnings.showwarning
        said = set()

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if not issubclass(category, UnalignedWarning):
                usual(message, category, filename, lineno, file, line)
            elif str(message) not in said:  # of many files that are alike one is enough
                said.add(str(message))
                complain("Warning", message)

        warnings.showwarning = show
        yield
