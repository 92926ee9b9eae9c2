"""The measurements of an experiment on disk, so that a killed run loses nothing."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..data.atomic import made_folder, write_text
from ..errors import FileError, InputError

if TYPE_CHECKING:
    import pandas as pd

Key: TypeAlias = tuple[int, float, str]


class TrialFile:
    """`trials.csv` of one folder: a row per trial, value of the variable, method and pair.

    The file is replaced as a whole after every task, so it never holds half a task. Some ten
    thousand rows at most: writing them takes less than a tenth of a second.

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
    """

    def __init__(
        self,
        folder: Path,
        variable: str,
        quantities: Sequence[str],
        settings: Mapping[str, Any],
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
        self._rows = self._read(folder / "settings.json", dict(settings))

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
        _require_same(self.path.parent, _read_json(settings_path), settings)
        return _read_rows(self.path, self._types)


def require_folder(out: str | Path) -> Path:
    """Return the folder, made if needed."""
    return made_folder("out", out, "Give another one with --out.")


def _read_rows(path: Path, types: Mapping[str, Callable[[str], Any]]) -> list[dict[str, Any]]:
    """Return the rows of a CSV file with each column turned into its type.

    By Python's `float`, which gives back every bit that was written; with the default of older
    versions of pandas a resumed run would not be the same run.
    """
    try:
        with open(path, encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file)
            return [{name: to(row[name]) for name, to in types.items()} for row in rows]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise FileError(
            f"{str(path)!r} cannot be read as a table with the columns {', '.join(types)}: "
            f"{type(error).__name__}: {error}. Delete it, or give another --out."
        ) from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
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
