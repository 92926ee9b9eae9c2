"""What `compare` prints and writes."""

from __future__ import annotations

import json
import math
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._format import jsonable
from ..errors import FileError, InputError
from ._tags import tags_of
from .output import fits, say, show, table

if TYPE_CHECKING:
    import pandas as pd

    from ..result import Comparison

FORMATS = (".csv", ".json", ".npz")
_PICTURES = (".png", ".svg", ".pdf", ".jpg")


@dataclass(frozen=True)
class Outputs:
    """Where the results go."""

    out: Annotated[Path | None, typer.Option(help="Write the distances: .csv, .json or .npz.")] = (
        None
    )
    plot: Annotated[
        Path | None, typer.Option(help="Draw a heat map: .png, .svg, .pdf or .jpg.")
    ] = None
    report: Annotated[Path | None, typer.Option(help="Write a report: one .html file.")] = None
    title: Annotated[str | None, typer.Option(help="The heading of the report.")] = None
    tag: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUES",
            help="For the report: a value for each dataset, in their order, such as `day=0,1,4`.",
        ),
    ] = None
    tags: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="For the report: a .csv with the datasets' names, then a column for each tag.",
        ),
    ] = None

    def require_possible(self) -> None:
        """Refuse what could not be written, before anything is computed."""
        for option, suffixes in (("out", FORMATS), ("plot", _PICTURES)):
            path = getattr(self, option)
            if path is not None:
                require_file(option, path, suffixes)
        if self.report is not None:
            from ..report.page import SUFFIXES

            require_file("report", self.report, SUFFIXES)
        for option in ("title", "tag", "tags"):
            if getattr(self, option) and self.report is None:
                raise InputError(f"--{option} is for the report. Say where: --report report.html.")

    def known(self, names: Sequence[str]) -> pd.DataFrame | None:
        """Return what was said of the datasets of these names."""
        return tags_of(names, self.tag, self.tags)

    def write(
        self, comparison: Comparison, *, several: bool, tags: pd.DataFrame | None = None
    ) -> None:
        """Write all that was asked for; with several distances each to a file of its own."""
        from .. import figures

        def own(path: Path) -> Path:
            name = f"{path.stem}-{comparison.distance_name}{path.suffix}"
            return path.with_name(name) if several else path

        if self.out is not None:
            _write_distances(comparison, own(self.out))
        if self.plot is not None:
            figure: Any = comparison.plot("heatmap").figure
            figures.save(figure, own(self.plot))
        if self.report is not None:
            command = shlex.join(["unaligned", *sys.argv[1:]])
            comparison.report(own(self.report), title=self.title, tags=tags, command=command)
        for path in (self.out, self.plot, self.report):
            if path is not None:
                say(f"Written: {own(path)}")


def require_file(option: str, path: Path, suffixes: Sequence[str]) -> None:
    """Refuse a file that could not be written, or that is of a format nobody writes."""
    from .. import _check

    _check.suffix_of(option, path, suffixes)
    folder = path.resolve().parent
    reason = None
    if not folder.is_dir():
        reason = f"there is no folder {str(path.parent)!r}"
    elif path.is_dir():
        reason = "it is a folder. Name a file in it"
    elif not os.access(folder, os.W_OK):
        reason = f"the folder {str(path.parent)!r} may not be written to. Name another one"
    if reason is not None:
        raise FileError(f"Cannot write {str(path)!r}: {reason}.")


def _write_distances(comparison: Comparison, path: Path) -> None:
    from ..io.archive import write_text

    suffix = path.suffix.lower()
    if suffix == ".npz":
        comparison.save(path)
    elif suffix == ".csv":
        write_text(path, comparison.to_frame().to_csv(lineterminator="\n"))
    else:
        write_text(path, json.dumps(jsonable(as_json([comparison])), indent=1) + "\n")


def as_json(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """Return comparisons of the same datasets for machines."""
    first = comparisons[0]
    return {
        "names": first.names,
        "reference_names": first.reference_names,
        "results": {
            found.distance_name: {
                "distances": found.distances,
                "error_bounds": found.error_bounds,
                "options": found.options,
                "seed": found.seed,
            }
            for found in comparisons
        },
    }


def print_distances(comparison: Comparison) -> None:
    """Print a table of distances; where it is too wide for the terminal, the nearest of each."""
    names, others = comparison.names, comparison.reference_names
    title = f"{comparison.distance_name} distances{_accuracy(comparison)}"
    shown = table(["", *others], first=1)
    for name, row in zip(names, comparison.distances, strict=True):
        shown.add_row(name, *map(number, row))
    if fits(shown):
        show(title, shown)
        return
    shown = table(["dataset", "nearest", "at", "farthest", "at"], first=1)
    for i, name in enumerate(names):
        rest = [j for j in range(len(others)) if not (comparison.is_square and i == j)]
        row = comparison.distances[i]
        near, far = min(rest, key=lambda j: row[j]), max(rest, key=lambda j: row[j])
        shown.add_row(name, others[near], number(row[near]), others[far], number(row[far]))
    show(title, shown)
    say("Too wide for this terminal: all distances with --out distances.csv, or in a pipe.")


def _accuracy(comparison: Comparison) -> str:
    bounds = [float(bound) for bound in comparison.error_bounds.ravel()]
    known = [bound for bound in bounds if math.isfinite(bound)]
    return f" (error ≤ {max(known):.1g})" if known and len(known) == len(bounds) else ""


def number(value: float) -> str:
    """Return a number with four digits that count.

    >>> number(0.0), number(12.3456), number(1e-9)
    ('0', '12.35', '1e-09')
    """
    return f"{value:.4g}"
