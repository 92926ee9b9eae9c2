"""Finished tasks on disk, from which a stopped run resumes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import unaligned as ua

from .._format import jsonable
from ..errors import FileError, InputError
from ..io.archive import append_text, write_text
from .base import Experiment, Key, Row, Task

if TYPE_CHECKING:
    import pandas as pd

_FORMAT = 1  # version of the file's layout
_DIGITS = 7  # significant digits of a measurement: small files, and more than any table shows


class TrialFile:
    """`trials.jsonl` of one folder: a line with the settings, then one per finished task.

    The line of a task is `{"trial":0,"c":0.2,"rows":{"les":[24.27008,11.45443],"imd":[…]}}`: for
    each method, the quantities of the first pair, then those of the second, in the order of the
    experiment. Names of pairs would make the committed runs half as large again.

    Lines are only appended, so a killed run loses the task under way; a truncated last line is
    dropped. Of two lines of one task the last counts. Measurements that are incomplete are
    repeated, those of methods that the experiment does not have are left alone.
    """

    def __init__(self, folder: Path, experiment: Experiment) -> None:
        self.path = folder / "trials.jsonl"
        self._experiment = experiment
        self._rows: dict[Key, list[Row]] = {}
        self._pairs = {
            (experiment.variable_type(value), method): experiment.pairs(method, value)
            for methods, values in experiment.stages()
            for value in values
            for method in methods
        }
        settings = jsonable(experiment.settings(), allow_nan=True)
        text = _read_text(self.path)
        end = text.rfind("\n") + 1
        if text.count("\n") < 2:  # no task was finished
            header = {"format": _FORMAT, "release": ua.__version__, "settings": settings}
            write_text(self.path, _line(header))
            return
        first, *lines = text[:end].splitlines()
        _require_same_settings(self.path, first, settings)
        for number, line in enumerate(lines, 2):
            try:
                if line:
                    self._read_task(line)
            except (AttributeError, TypeError, ValueError) as error:
                reason = getattr(error, "msg", error)  # of JSON, without its own line number
                raise _not_resumable(self.path, f"line {number} is damaged ({reason})") from error
        if end < len(text):
            write_text(self.path, text[:end])

    @property
    def done(self) -> set[Key]:
        """The finished measurements: trial, value of the variable and method."""
        return set(self._rows)

    def add(self, task: Task, rows: Iterable[Row]) -> None:
        """Append the measurements of a finished task."""
        found = {(row["method"], row["pair"]): row for row in rows}
        names = self._experiment.quantities
        numbers = {
            method: [
                _rounded(found[method, pair][name])
                for pair in self._pairs[task.value, method]
                for name in names
            ]
            for method in task.methods
        }
        record = {"trial": task.trial, self._experiment.variable: task.value, "rows": numbers}
        line = _line(record)
        append_text(self.path, line)
        self._read_task(line)  # so that a resumed run has the same numbers

    def select(self, wanted: Sequence[Key]) -> pd.DataFrame:
        """Return the measurements with these keys, in the order given."""
        import pandas as pd

        columns = ["trial", self._experiment.variable, "method", "pair"]
        rows = [row for key in wanted for row in self._rows.get(key, ())]
        return pd.DataFrame(rows, columns=[*columns, *self._experiment.quantities])

    def _read_task(self, line: str) -> None:
        """Keep the complete measurements of a line."""
        experiment, record = self._experiment, json.loads(line)
        lacking = [key for key in ("trial", experiment.variable, "rows") if key not in record]
        if lacking:
            raise ValueError(f"it has no {', '.join(lacking)}")
        trial, value = int(record["trial"]), experiment.variable_type(record[experiment.variable])
        names, n = experiment.quantities, len(experiment.quantities)
        for method, numbers in record["rows"].items():
            pairs, values = self._pairs.get((value, method), ()), [float(x) for x in numbers]
            start = {"trial": trial, experiment.variable: value, "method": method}
            if pairs and len(values) == n * len(pairs):
                self._rows[trial, value, method] = [
                    {**start, "pair": pair, **dict(zip(names, values[n * i :], strict=False))}
                    for i, pair in enumerate(pairs)
                ]


def _line(record: dict[str, Any]) -> str:
    return json.dumps(record, separators=(",", ":")) + "\n"


def _rounded(value: float) -> float | str:
    """Return a number as the file has it; JSON has no NaN and no infinity, so these are words."""
    number = float(f"{value:.{_DIGITS}g}")
    return number if math.isfinite(number) else str(number)


def _read_text(path: Path) -> str:
    """Return the text of a file, empty where there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        raise _not_resumable(path, str(error)) from error


def _not_resumable(path: Path, reason: str) -> FileError:
    return FileError(
        f"Cannot resume from {str(path)!r}: {reason}. Delete the damaged line or the whole file, "
        "and its trials are repeated; or give another --out."
    )


def _require_same_settings(path: Path, line: str, settings: dict[str, Any]) -> None:
    """Raise where the trials of a file were made with other settings."""
    try:
        header = json.loads(line)
        there = {"format": header["format"], **header["settings"]}
    except (KeyError, TypeError, ValueError):
        problem = "trials, but no readable settings in the first line"
    else:
        now = {"format": _FORMAT, **settings}
        # What earlier releases counted as a setting, and this one does not, is no difference.
        keys = [key for key in now if there.get(key) != now[key]]
        if not keys:
            return
        changes = [f"{key}: {there.get(key)!r} there, {now.get(key)!r} now" for key in keys]
        problem = f"trials of other settings ({'; '.join(changes)})"
    raise InputError(
        f"out={str(path.parent)!r} contains {problem}. "
        f"Give another --out, or delete its {path.name}."
    )
