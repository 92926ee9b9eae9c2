"""Running an experiment, so that it can be stopped and gone on with."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import _check, engine, figures
from .._format import jsonable
from ..errors import FileError, InputError
from ..io.archive import made_folder, write_text
from .base import Claim, Experiment, Key, Task, summary

if TYPE_CHECKING:
    import pandas as pd


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
        settings = jsonable(settings, allow_nan=True)  # tuples become lists, as in the file
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


@dataclass(frozen=True)
class Report:
    """What a run found, and the files that say so."""

    experiment: Experiment
    table: pd.DataFrame
    claims: tuple[Claim, ...]
    files: tuple[Path, ...]


def publish(experiment: Experiment, table: pd.DataFrame, folder: Path) -> Report:
    """Write the summary, the figure and RESULTS.md."""
    import pandas as pd

    claims = tuple(experiment.claims(table))
    path = folder / experiment.name
    csv, png, svg = (path.with_suffix(suffix) for suffix in (".csv", ".png", ".svg"))
    means = {name: summary(table, experiment.variable, name) for name in experiment.quantities}
    together = pd.concat([frame.assign(quantity=name) for name, frame in means.items()])
    write_text(csv, together.to_csv(index=False))
    figure = experiment.draw(table)
    figures.save(figure, png)
    figures.save(figure, svg)
    results = folder / "RESULTS.md"
    write_text(results, _results(experiment, claims, experiment.notes(table), means))
    return Report(experiment, table, claims, (csv, png, svg, results, folder / "trials.csv"))


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table.

    Examples
    --------
    >>> markdown_table(["a", "b"], [["1", "2"]])
    ['| a | b |', '|---|---|', '| 1 | 2 |']
    """
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    return [lines[0], "|" + "---|" * len(head), *lines[1:]]


def _results(
    experiment: Experiment,
    claims: Sequence[Claim],
    notes: Sequence[str],
    means: dict[str, pd.DataFrame],
) -> str:
    counted = [claim.passed for claim in claims if claim.passed is not None]
    told = ", ".join(f"{key} = {value}" for key, value in experiment.settings().items())
    methods = list(means[experiment.quantities[0]]["method"].unique())
    lines = [
        f"# {experiment.title}",
        "",
        f"Made by `{_command(experiment, methods)}`. Settings: {told}, "
        f"n_trials = {experiment.n_trials}.",
        "",
        f"{sum(counted)} of {len(counted)} claims hold in this run.",
        "",
        *markdown_table(
            ["source", "expected", "measured in this run", "verdict"],
            [[c.source, c.expected, c.measured, c.verdict] for c in claims],
        ),
        "",
        f"![{experiment.title}]({experiment.name}.png)",
        "",
        *(line for note in notes for line in (note, "")),
    ]
    for quantity, frame in means.items() if experiment.tabulated else ():
        lines += [f"{_told_mean(experiment.n_trials)}, {quantity}:", ""]
        lines += [*_mean_table(frame, experiment.variable), ""]
    return "\n".join(lines)


def _command(experiment: Experiment, methods: Sequence[str]) -> str:
    """Return the command that makes these results."""
    same = {"n_trials": experiment.n_trials, "seed": experiment.seed}
    modes = {"full": experiment.full, "quick": experiment.quick}
    chosen = [
        name for name, mode in modes.items() if type(experiment)(**{**mode, **same}) == experiment
    ]
    parts = ["unaligned reproduce", experiment.name]
    parts += [f"--{chosen[0]}"] if chosen else []
    parts += [f"--trials {experiment.n_trials}", f"--seed {experiment.seed}"]
    if len(methods) < len(experiment.methods):
        parts.append(f"--only {','.join(methods)}")
    return " ".join(parts)


def _told_mean(n_trials: int) -> str:
    """Return what the numbers of the tables are; docs/refresh.py looks for the first word."""
    if n_trials == 1:
        return "Mean over 1 trial"
    return f"Mean ± standard deviation over {n_trials} trials"


def _mean_table(means: pd.DataFrame, variable: str) -> list[str]:
    values = sorted(means[variable].unique())
    head = ["method", "pair", *(f"{variable} = {value:g}" for value in values)]
    rows = []
    for (method, pair), frame in means.groupby(["method", "pair"], sort=False):
        cells = {
            value: _told(mean, std)
            for value, mean, std in zip(frame[variable], frame["mean"], frame["std"], strict=True)
        }
        rows.append([str(method), f"d({pair})", *(cells.get(value, "") for value in values)])
    return markdown_table(head, rows)


def _told(mean: float, std: float) -> str:
    """Return a mean and its spread; one trial has none, and what was not measured neither."""
    if math.isnan(mean):
        return ""
    return f"{mean:.3g}" if math.isnan(std) else f"{mean:.3g} ± {std:.2g}"


def reproduce(
    experiment: Experiment,
    out: str | Path,
    *,
    only: Iterable[str] | None = None,
    without: Iterable[str] = (),
    progress: bool | None = None,
) -> Report:
    """Run an experiment, or what is missing of it, and write what came out to a folder.

    Every finished task is on disk before the next one starts: a run that was killed goes on
    where it stopped and gives the same numbers.

    Parameters
    ----------
    experiment
        The settings.
    out
        The folder; made if needed. It gets `trials.csv`, `settings.json`, `NAME.csv` (means,
        standard deviations and ranges), `NAME.png`, `NAME.svg` and `RESULTS.md`.
    only, without
        The methods to run and report on, and those to leave out; all by default.
    progress
        Show a bar with the time left for each stage on stderr; None does so on a terminal.
    """
    methods = choose(experiment, only, without)
    folder = require_folder(out)
    trials = TrialFile(
        folder,
        experiment.variable,
        experiment.quantities,
        experiment.settings(),
        {method: experiment.pairs(method) for method in experiment.methods},
    )
    stages = experiment.tasks(methods)

    def finish(task: Task) -> None:
        trials.add(task.trial, task.value, experiment.run_task(task))

    for stage in stages:
        missing = [task.missing(trials.done) for task in stage]
        told = f"{experiment.name}: {', '.join(stage[0].methods[:3])}"
        if len({task.value for task in stage}) == 1:
            told += f" at {experiment.variable} = {stage[0].value:g}"
        engine.run(
            finish, [task for task in missing if task.methods], progress=progress, description=told
        )
    wanted = [key for stage in stages for task in stage for key in task.measures()]
    return publish(experiment, trials.select(wanted), folder)


def choose(
    experiment: Experiment, only: Iterable[str] | None, without: Iterable[str]
) -> tuple[str, ...]:
    """Return the methods that are asked for, in the experiment's order.

    Examples
    --------
    >>> from unaligned.experiments.tori import Tori
    >>> choose(Tori(), None, ["gromov-wasserstein", "geometry-score"])
    ('les', 'imd-diffusion', 'imd')
    """
    known = experiment.methods
    kept = {_check.one_of("only", name, known) for name in (known if only is None else only)}
    kept -= {_check.one_of("without", name, known) for name in without}
    if not kept:
        raise InputError(
            f"only and without leave no method of experiment {experiment.name!r}. "
            f"Keep one of: {', '.join(known)}."
        )
    return tuple(name for name in known if name in kept)
