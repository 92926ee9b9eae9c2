"""Options of reading: from files to datasets."""

from __future__ import annotations

import glob
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DataWarning, FileError, InputError, UnalignedError

if TYPE_CHECKING:
    from ..data.dataset import Dataset

_files = partial(typer.Option, rich_help_panel="Files")


@dataclass(frozen=True)
class Reading:
    """How files become datasets."""

    group_by: Annotated[
        str | None,
        _files(help="A column, or a label array: one dataset for each of its values."),
    ] = None
    columns: Annotated[
        str | None,
        _files(help="Only these columns of a table: `x,y,z`."),
    ] = None
    header: Annotated[
        bool | None,
        _files(
            help="Whether the first line of a text table names its columns.",
            show_default="found out",
        ),
    ] = None
    drop_non_numeric: Annotated[
        bool,
        _files("--drop-non-numeric", help="Leave out columns that hold no numbers."),
    ] = False
    transpose: Annotated[
        bool,
        _files("--transpose", help="Columns are the samples."),
    ] = False
    flatten: Annotated[
        bool,
        _files("--flatten", help="Take images and the like as rows."),
    ] = False
    resize: Annotated[
        str | None,
        _files(metavar="WIDTHxHEIGHT", help="Bring all images of a folder to this size: `32x32`."),
    ] = None
    kind: Annotated[
        str,
        _files(help="What the values are: points, distances, affinity, spd or graph."),
    ] = "points"
    preprocess: Annotated[
        str | None,
        _files(help="Steps, in order, such as `log1p,pca:50`."),
    ] = None
    nan_policy: Annotated[
        str,
        _files(help="`raise` refuses rows with NaN or infinity, `omit` drops them."),
    ] = "raise"

    def load(
        self,
        patterns: Sequence[str],
        *,
        short: bool = False,
        refused: Callable[[UnalignedError], None] | None = None,
    ) -> dict[str, Dataset]:
        """Return the datasets in all these files, each under a name of its own.

        With `short` those of one single file are called by part and group alone, as `7` for
        `table:7`; a store, which lives longer, keeps the whole names. With `refused`, that hears
        of each file that cannot be read, and the others are returned.
        """
        from ..io.load import names_of

        files = [file for pattern in patterns for file in _matching(pattern)]
        repeated = [file for file in files if files.count(file) > 1]
        if repeated:
            raise InputError(f"{repeated[0]!r} is given twice. Give every file once.")
        found: list[tuple[str, str, Dataset]] = []
        for file, called in zip(files, names_of(files), strict=True):
            try:
                found += self._read(file, called)
            except UnalignedError as error:
                if refused is None:
                    raise
                refused(error)
        if short and len(files) == 1 and len(found) > 1:
            found = [(file, _without(called, label), item) for file, label, item in found]
        times = Counter(label for _, label, _ in found)
        named = {
            f"{file}/{label}" if times[label] > 1 else label: dataset
            for file, label, dataset in found
        }
        return {name: dataset.with_options(name=name) for name, dataset in named.items()}

    def _read(self, file: str, called: str) -> Iterator[tuple[str, str, Dataset]]:
        from .. import load_all
        from ..io.load import name_of

        own = name_of(file)
        for name, dataset in load_all(file, **self._options()).items():
            yield file, called + name[len(own) :] if name.startswith(own) else name, dataset

    def load_with_missing(
        self, files: Sequence[str], refused: Callable[[UnalignedError], None]
    ) -> dict[str, Dataset]:
        """Return the datasets without rows that miss values; `n_dropped` says how many."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*: dropped ", DataWarning)
            whole = replace(self, nan_policy="omit")
            return whole.load(files, short=True, refused=refused)

    def _options(self) -> dict[str, Any]:
        flags = ("drop_non_numeric", "transpose", "flatten")
        given: dict[str, Any] = {name: True for name in flags if getattr(self, name)}
        if self.columns is not None:
            given["columns"] = tuple(_column(text) for text in _listed(self.columns))
        if self.header is not None:
            given["header"] = self.header
        if self.resize is not None:
            given["resize"] = _size(self.resize)
        if self.preprocess is not None:
            given["preprocess"] = _listed(self.preprocess)
        own = {"group_by": self.group_by, "kind": self.kind, "nan_policy": self.nan_policy}
        return {**own, **given}


def _matching(pattern: str) -> list[str]:
    """Return the files that a pattern stands for, as shells do it that expand it themselves.

    A path that exists as it stands, or before a colon, is no pattern.
    """
    from ..io.groups import natural_key
    from ..io.paths import locate

    if not glob.has_magic(pattern) or os.path.lexists(locate(pattern).path):
        return [pattern]
    found = sorted(glob.glob(pattern, recursive=True), key=natural_key)
    if not found:
        folder = os.path.dirname(pattern) or "."
        remedy = "Check the folder's name."
        if os.path.isdir(folder):
            remedy = f"{folder!r} takes all files of that folder."
        raise FileError(f"No file matches {pattern!r}. {remedy}")
    return found


def _without(beginning: str, name: str) -> str:
    """Return `7` of `table:7`; all that begin so differ behind it, so none becomes another."""
    return name.removeprefix(f"{beginning}:")


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _column(text: str) -> str | int:
    return int(text) if text.isdigit() else text


def _size(text: str) -> tuple[int, int]:
    width, by, height = text.partition("x")
    if not (width.isdigit() and by and height.isdigit() and int(width) and int(height)):
        raise InputError(f"--resize {text!r} must be WIDTHxHEIGHT, such as 32x32.")
    return int(width), int(height)
