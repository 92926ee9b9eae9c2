"""Running an experiment, so that it can be stopped and gone on with."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .. import _check, engine
from ..errors import InputError
from .base import Experiment, Task
from .results import Report, publish
from .trials import TrialFile, require_folder


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
