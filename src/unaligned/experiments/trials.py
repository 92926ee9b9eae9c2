"""The measurements of an experiment on disk, so that a killed run loses nothing."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..data.atomic import made_folder, write_text
from ..errors import FileError, InputError

if TYPE_CHECKING:
    import pandas as pd

Key: TypeAlias = tuple[int, float, str]


class TrialFile:
    """`trials.csv` of one folder: a row per trial, value of the variable, method and pair.

    The file is replaced as a whole after every task, so it never holds half a task; one that
    lost lines all the same (a copy that was cut) loses the tasks they were of, which are then
    repeated. Some ten thousand rows at most: writing them takes less than a tenth of a second.

    Parameters
    ----------
    folder
        Where it is, or will be.
    variable
        The name of the variable's column.
    quantities
        The names of the columns that hold what was measured.
    settings
        What decides the numbers. A folder with trials of other settings is refused.
    pairs
        Method -> the pairs that it measures, by which a finished task is known.
    """

    def __init__(
        self,
        folder: Path,
        variable: str,
        quantities: Sequence[str],
        settings: Mapping[str, Any],
        pairs: Mapping[str, Sequence[str]],
    ) -> None:
        self.path = folder / "trials.csv"
        self._types: dict[str, Callable[[str], Any]] = {
            "trial": int,
            variable: float,
            "method": str,
            "pair": str,
            **dict.fromkeys(quantities, float),
        }
        self._variable = variable
        self._rows = self._complete(self._read(folder / "settings.json", dict(settings)), pairs)

    @property
    def done(self) -> set[Key]:
        """What is finished: trial, value of the variable and method."""
        return {self._key(row) for row in self._rows}

    def add(self, trial: int, value: float, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write the measurements of a finished task."""
        import pandas as pd

        new = [{"trial": trial, self._variable: float(value), **row} for row in rows]
        table = pd.DataFrame(self._rows + new, columns=list(self._types))
        write_text(self.path, table.to_csv(index=False))
        self._rows += new

    def select(self, wanted: Sequence[Key]) -> pd.DataFrame:
        """Return the measurements of these tasks, in the order given."""
        import pandas as pd

        place = {key: i for i, key in enumerate(wanted)}
        chosen = [row for row in self._rows if self._key(row) in place]
        chosen.sort(key=lambda row: place[self._key(row)])
        return pd.DataFrame(chosen, columns=list(self._types))

    def _key(self, row: Mapping[str, Any]) -> Key:
        return row["trial"], row[self._variable], row["method"]

    def _read(self, settings_path: Path, settings: dict[str, Any]) -> list[dict[str, Any]]:
        settings = json.loads(json.dumps(settings))  # tuples become lists, as in the file
        if not self.path.exists():
            write_text(settings_path, json.dumps(settings, indent=2) + "\n")
            return []
        _require_same(self.path.parent, _read_settings(settings_path), settings)
        return _read_rows(self.path, self._types)

    def _complete(
        self, rows: list[dict[str, Any]], pairs: Mapping[str, Sequence[str]]
    ) -> list[dict[str, Any]]:
        """Return the rows of the tasks that have each of their pairs, once."""
        found: dict[Key, list[str]] = {}
        for row in rows:
            found.setdefault(self._key(row), []).append(row["pair"])
        whole = {k for k, those in found.items() if sorted(those) == sorted(pairs.get(k[-1], ()))}
        return [row for row in rows if self._key(row) in whole]


def require_folder(out: str | Path) -> Path:
    """Return the folder, made if needed."""
    return made_folder("out", out, "Give another one with --out.")


def _read_rows(path: Path, types: Mapping[str, Callable[[str], Any]]) -> list[dict[str, Any]]:
    """Return the rows of a CSV file with each column turned into its type.

    By Python's `float`, which gives back every bit that was written; with the default of older
    versions of pandas a resumed run would not be the same run. A last line without its end was
    cut, perhaps inside a number, and is left out.
    """
    try:
        text = path.read_text(encoding="utf-8")
        lines = csv.DictReader(StringIO(text[: text.rfind("\n") + 1]))
        lacking = [name for name in types if name not in (lines.fieldnames or types)]
        if lacking:
            raise ValueError(f"it has no column {', '.join(lacking)}")
        return [_read_row(row, types, lines.line_num) for row in lines]
    except (OSError, ValueError, csv.Error) as error:
        raise FileError(
            f"{str(path)!r} cannot be gone on from: {error}. Delete the damaged line or the whole "
            "file, and what it held is measured again; or give another --out."
        ) from error


def _read_row(
    row: Mapping[str, str | None], types: Mapping[str, Callable[[str], Any]], number: int
) -> dict[str, Any]:
    found = {}
    for name, to in types.items():
        told = row[name]
        if told is None:
            raise ValueError(f"line {number} is incomplete, it ends before {name}")
        try:
            found[name] = to(told)
        except ValueError:
            raise ValueError(f"line {number} has {name}={told!r}, which is no number") from None
    return found


def _read_settings(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict):
        raise InputError(
            f"out={str(path.parent)!r} holds trials, but its {path.name}, which tells how they "
            "were made, is missing or unreadable. Give another --out, or delete its trials.csv."
        )
    return found


def _require_same(folder: Path, there: dict[str, Any], here: dict[str, Any]) -> None:
    """Refuse to mix trials of different settings."""
    keys = [key for key in {**there, **here} if there.get(key) != here.get(key)]
    if keys:
        told = "; ".join(f"{key}: {there.get(key)!r} there, {here.get(key)!r} now" for key in keys)
        raise InputError(
            f"out={str(folder)!r} holds trials that were made differently ({told}). "
            "Give another --out, or delete its trials.csv."
        )
