"""Run an experiment, resume a stopped run, and write the results."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import _check, engine, figures
from .._format import jsonable
from ..errors import FileError, InputError
from ..io.archive import made_folder, write_text
from .base import Claim, Experiment, Key, Row, Task, markdown_table, require_output, summary

if TYPE_CHECKING:
    import pandas as pd


class TrialFile:
    """`trials.csv` of one folder: a row per trial, value of the variable, method and pair.

    The file is replaced as a whole after every task (about ten thousand rows at most, 0.1 s), so
    it never holds half a task; tasks that lack a row all the same (a truncated copy) are repeated.
    """

    def __init__(self, folder: Path, experiment: Experiment) -> None:
        self.path = folder / "trials.csv"
        self._variable = experiment.variable
        self._types: dict[str, Callable[[str], Any]] = {
            "trial": int,
            self._variable: experiment.variable_type,
        }
        self._types |= {"method": str, "pair": str, **dict.fromkeys(experiment.quantities, float)}
        settings = jsonable(experiment.settings(), allow_nan=True)
        settings_path = folder / "settings.json"
        self._rows: list[Row] = []
        if not self.path.exists():
            write_text(settings_path, json.dumps(settings, indent=2) + "\n")
            return
        _require_same_settings(settings_path, settings)
        rows = _read_rows(self.path, self._types)
        # Only tasks that have each of their pairs once are complete.
        found: dict[Key, list[str]] = {}
        for row in rows:
            found.setdefault(self._key(row), []).append(row["pair"])
        expected = {
            (experiment.variable_type(value), method): sorted(experiment.pairs(method, value))
            for methods, values in experiment.stages()
            for value in values
            for method in methods
        }
        complete = {key for key, those in found.items() if sorted(those) == expected.get(key[1:])}
        self._rows = [row for row in rows if self._key(row) in complete]

    @property
    def done(self) -> set[Key]:
        """The finished measurements: trial, value of the variable and method."""
        return {self._key(row) for row in self._rows}

    def add(self, task: Task, rows: Iterable[Row]) -> None:
        """Write the measurements of a finished task."""
        import pandas as pd

        new = [{"trial": task.trial, self._variable: task.value, **row} for row in rows]
        table = pd.DataFrame(self._rows + new, columns=list(self._types))
        write_text(self.path, table.to_csv(index=False))
        self._rows += new

    def select(self, wanted: Sequence[Key]) -> pd.DataFrame:
        """Return the measurements with these keys, in the order given."""
        import pandas as pd

        place = {key: i for i, key in enumerate(wanted)}
        chosen = [row for row in self._rows if self._key(row) in place]
        chosen.sort(key=lambda row: place[self._key(row)])
        return pd.DataFrame(chosen, columns=list(self._types))

    def _key(self, row: Row) -> Key:
        return row["trial"], row[self._variable], row["method"]


def _read_rows(path: Path, types: Mapping[str, Callable[[str], Any]]) -> list[Row]:
    """Return the rows of a CSV file with each column converted to its type, floats exactly."""
    rows = []
    try:
        text = path.read_text(encoding="utf-8")
        # A last line without its newline was truncated, perhaps inside a number.
        lines = csv.DictReader(StringIO(text[: text.rfind("\n") + 1]))
        lacking = [name for name in types if name not in (lines.fieldnames or types)]
        if lacking:
            raise ValueError(f"it has no column {', '.join(lacking)}")
        for line in lines:
            row = {}
            for name, convert in types.items():
                cell = line[name]
                if cell is None:
                    raise ValueError(f"line {lines.line_num} ends before the column {name}")
                try:
                    row[name] = convert(cell)
                except ValueError:
                    where = f"line {lines.line_num} has {name}={cell!r}"
                    raise ValueError(f"{where}, which is not a number") from None
            rows.append(row)
    except (OSError, ValueError, csv.Error) as error:
        raise FileError(
            f"Cannot resume from {str(path)!r}: {error}. Delete the damaged line or the whole "
            "file, and its trials are repeated; or give another --out."
        ) from error
    return rows


def _require_same_settings(path: Path, settings: dict[str, Any]) -> None:
    """Raise where the trials of a folder were made with other settings."""
    try:
        there = dict(json.loads(path.read_text(encoding="utf-8")))
        differing = [key for key in {**there, **settings} if there.get(key) != settings.get(key)]
        if not differing:
            return
        changes = [f"{k}: {there.get(k)!r} there, {settings.get(k)!r} now" for k in differing]
        problem = f"trials of other settings ({'; '.join(changes)})"
    except (OSError, TypeError, ValueError):
        problem = f"trials, but its {path.name} is missing or unreadable"
    raise InputError(
        f"out={str(path.parent)!r} contains {problem}. "
        "Give another --out, or delete its trials.csv."
    )


@dataclass(frozen=True)
class Results:
    """The results of a run, and the files that hold them."""

    experiment: Experiment
    table: pd.DataFrame
    claims: tuple[Claim, ...]
    files: tuple[Path, ...]


def reproduce(
    experiment: Experiment,
    out: str | Path,
    *,
    only: Iterable[str] | None = None,
    without: Iterable[str] = (),
    progress: bool | None = None,
) -> Results:
    """Run an experiment, or the missing part of it, and write the results to a folder.

    Every finished task is on disk before the next one starts: a run that was killed resumes
    where it stopped and gives the same numbers.

    Parameters
    ----------
    experiment
        The settings.
    out
        The folder, created if needed. It gets `trials.csv`, `settings.json`, `NAME.csv` (means,
        standard deviations and ranges), `NAME.png`, `NAME.svg` and `RESULTS.md`; `tori` also a
        picture of the data, `tori-samples.png`.
    only, without
        The methods to run and report on, and those to leave out; all by default.
    progress
        Show a bar with the remaining time of each stage on stderr; None does so on a terminal.
    """
    require_output("reproduce")
    stages = experiment.tasks(choose(experiment, only, without))
    folder = made_folder("out", out, "Give another one with --out.")
    trials = TrialFile(folder, experiment)

    def finish(task: Task) -> None:
        trials.add(task, experiment.run_task(task))

    for stage in stages:
        label = f"{experiment.name}: {', '.join(stage[0].methods[:3])}"
        if len({task.value for task in stage}) == 1:
            value = stage[0].value
            shown = value if isinstance(value, str) else f"{value:g}"
            label += f" at {experiment.variable} = {shown}"
        tasks = [task.missing(trials.done) for task in stage]
        tasks = [task for task in tasks if task.methods]
        engine.run(finish, tasks, progress=progress, description=label)
    wanted = [key for stage in stages for task in stage for key in task.keys]
    return _write_results(experiment, trials.select(wanted), folder)


def choose(
    experiment: Experiment, only: Iterable[str] | None, without: Iterable[str]
) -> tuple[str, ...]:
    """Return the selected methods, in the experiment's order."""
    known = experiment.methods
    kept = {_check.one_of("only", name, known) for name in (known if only is None else only)}
    kept -= {_check.one_of("without", name, known) for name in without}
    if not kept:
        raise InputError(
            f"only and without leave no method of experiment {experiment.name!r}. "
            f"Keep one of: {', '.join(known)}."
        )
    return tuple(name for name in known if name in kept)


def _write_results(experiment: Experiment, table: pd.DataFrame, folder: Path) -> Results:
    """Write the means, the figure and RESULTS.md."""
    import pandas as pd

    claims = tuple(experiment.claims(table))
    data, report = folder / f"{experiment.name}.csv", folder / "RESULTS.md"
    means = {name: summary(table, experiment.variable, name) for name in experiment.quantities}
    together = pd.concat([frame.assign(quantity=name) for name, frame in means.items()])
    write_text(data, together.to_csv(index=False))
    tables = {folder / f"{name}.csv": rows for name, rows in experiment.tables(table).items()}
    for path, rows in tables.items():
        write_text(path, rows.to_csv(index=False))
    paths = [data.with_suffix(suffix) for suffix in (".png", ".svg")]
    drawn = dict.fromkeys(paths, experiment.draw(table))
    more = experiment.pictures(table).items()
    pictures = {folder / f"{name}.png": picture for name, picture in more}
    for path, figure in (drawn | pictures).items():
        figures.save(figure, path)
    paragraphs = [
        *_introduction(experiment, claims, list(table["method"].unique())),
        *(f"![{picture.get_suptitle()}]({path.name})" for path, picture in pictures.items()),
        f"![{experiment.title}]({experiment.name}.png)",
        *experiment.notes(table),
    ]
    n = experiment.n_trials
    # docs/refresh.py looks for "Mean" at the start of a line.
    average = "Mean over 1 trial" if n == 1 else f"Mean ± standard deviation over {n} trials"
    for quantity, frame in means.items() if experiment.tabulated else ():
        paragraphs += [f"{average}, {quantity}:", _mean_table(frame, experiment.variable)]
    write_text(report, "\n\n".join(paragraphs) + "\n")
    files = (data, *tables, *drawn, *pictures, report, folder / "trials.csv")
    return Results(experiment, table, claims, files)


def _introduction(
    experiment: Experiment, claims: Sequence[Claim], methods: Sequence[str]
) -> list[str]:
    """Return the title, the command with its settings, and the claims."""
    same = {"n_trials": experiment.n_trials, "seed": experiment.seed}
    changes = {
        name: _differences(experiment, type(experiment)(**{**mode, **same}))
        for name, mode in (("full", experiment.full), ("quick", experiment.quick))
    }
    mode = min(changes, key=lambda name: len(changes[name]))
    command = f"unaligned reproduce {experiment.name} --{mode}"
    if changes[mode].pop("train", None):  # which has an option of its own
        command += " --train"
    command += "".join(f" --set {name}={text}" for name, text in changes[mode].items())
    command += f" --trials {experiment.n_trials} --seed {experiment.seed}"
    if len(methods) < len(experiment.methods):
        command += f" --only {','.join(methods)}"
    settings = ", ".join(f"{key} = {value}" for key, value in experiment.settings().items())
    decided = [claim.passed for claim in claims if claim.passed is not None]
    count = f"{sum(decided)} of {len(decided)} claims hold in this run."
    head = ["source", "expected", "measured in this run", "verdict"]
    return [
        f"# {experiment.title}",
        f"Made by `{command}`. Settings: {settings}, n_trials = {experiment.n_trials}.",
        *([count] if decided else []),
        markdown_table(head, [[c.source, c.expected, c.measured, c.verdict] for c in claims]),
    ]


def _differences(experiment: Experiment, other: Experiment) -> dict[str, str]:
    """Return the settings in which two experiments differ, as `--set` takes them."""
    those = vars(other)
    return {
        field.name: ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
        for field in fields(experiment)
        if (value := getattr(experiment, field.name)) != those[field.name]
    }


def _mean_table(means: pd.DataFrame, variable: str) -> str:
    values = sorted(means[variable].unique())
    rows = []
    for (method, pair), frame in means.groupby(["method", "pair"], sort=False):
        cells = {}
        for value, mean, std in zip(frame[variable], frame["mean"], frame["std"], strict=True):
            spread = "" if math.isnan(std) else f" ± {std:.2g}"  # one trial has none
            cells[value] = "" if math.isnan(mean) else f"{mean:.3g}{spread}"
        rows.append([str(method), f"d({pair})", *(cells.get(value, "") for value in values)])
    head = ["method", "pair", *(f"{variable} = {value:g}" for value in values)]
    return markdown_table(head, rows)
