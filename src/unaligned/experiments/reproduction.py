"""Run an experiment, or the rest of a stopped run, and write the results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from .. import _check, engine, figures
from ..errors import InputError
from ..io.archive import made_folder, write_text
from .base import Claim, Experiment, Task, markdown_table, require_output, summary
from .trials import TrialFile

if TYPE_CHECKING:
    import pandas as pd


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
        The folder, created if needed. It gets `trials.jsonl`, `NAME.csv` (means, standard
        deviations and ranges), `NAME.png`, `NAME.svg` and `RESULTS.md`; `tori` also a picture of
        the data, `tori-samples.png`.
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
        done = trials.done
        tasks = [task for task in (task.missing(done) for task in stage) if task.methods]
        engine.run(finish, tasks, progress=progress, description=label)
    wanted = [key for stage in stages for task in stage for key in task.keys]
    return _write_results(experiment, trials.select(wanted), trials.path)


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


def _write_results(experiment: Experiment, table: pd.DataFrame, trials: Path) -> Results:
    """Write the means, the figure and RESULTS.md beside the trials."""
    import pandas as pd

    folder, claims = trials.parent, tuple(experiment.claims(table))
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
    files = (data, *tables, *drawn, *pictures, report, trials)
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
