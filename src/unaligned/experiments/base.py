"""What every experiment shares: tasks, claims, and the folder of what came out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

import unaligned as ua

from .. import _check, engine, figures
from ..data.atomic import write_text
from .trials import TrialFile, require_folder

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """One piece of work: one trial at one value of the experiment's variable."""

    trial: int
    value: float
    position: int
    seed: int

    def rng(self) -> np.random.Generator:
        """Return this task's own generator, whatever ran before."""
        return np.random.default_rng([self.seed, self.trial, 1 + self.position])

    def trial_rng(self) -> np.random.Generator:
        """Return the generator of the whole trial, the same for all values of the variable."""
        return np.random.default_rng([self.seed, self.trial, 0])


@dataclass(frozen=True)
class Claim:
    """What somebody says should come out, beside what came out.

    Attributes
    ----------
    source
        Who says so, such as `Fig. 1`.
    expected, measured
        Both in words and numbers.
    passed
        Computed from the data; None for an observation that nothing hangs on.
    """

    source: str
    expected: str
    measured: str
    passed: bool | None

    @property
    def verdict(self) -> str:
        """`pass`, `FAIL` or `observed`."""
        return "observed" if self.passed is None else "pass" if self.passed else "FAIL"


@dataclass(frozen=True)
class Experiment(ABC):
    """An experiment of the paper; instances are frozen settings.

    The results depend on the settings alone, so trials made with the same settings can be
    kept: `n_trials` only says how many of them.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    variable: ClassVar[str]
    quick: ClassVar[dict[str, Any]]
    full: ClassVar[dict[str, Any]]

    n_trials: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        _check.positive_int("n_trials", self.n_trials)
        _check.positive_int("seed", self.seed, minimum=0)

    @property
    @abstractmethod
    def values(self) -> Sequence[float]:
        """The values of the variable."""

    @abstractmethod
    def run_task(self, task: Task) -> list[Row]:
        """Return the measurements of one task: method, pair, distance."""

    @abstractmethod
    def claims(self, table: pd.DataFrame) -> list[Claim]:
        """Return the claims beside what the measurements say."""

    @abstractmethod
    def draw(self, table: pd.DataFrame) -> Figure:
        """Return the figure."""

    def tasks(self) -> list[Task]:
        """Return all tasks, trial by trial, so that early trials are complete first."""
        return [
            Task(trial, value, position, self.seed)
            for trial in range(self.n_trials)
            for position, value in enumerate(self.values)
        ]

    def settings(self) -> dict[str, Any]:
        """Return all that decides the numbers of a trial."""
        decisive = {key: value for key, value in asdict(self).items() if key != "n_trials"}
        return {"experiment": self.name, "version": ua.__version__, **decisive}


@dataclass(frozen=True)
class Report:
    """What a run found, and the files that say so."""

    experiment: Experiment
    table: pd.DataFrame
    claims: tuple[Claim, ...]
    files: tuple[Path, ...]


def reproduce(experiment: Experiment, out: str | Path, *, progress: bool | None = None) -> Report:
    """Run an experiment, or what is missing of it, and write what came out to a folder.

    Every finished task is on disk before the next one starts: a run that was killed goes on
    where it stopped and gives the same numbers.

    Parameters
    ----------
    experiment
        The settings.
    out
        The folder; made if needed. It gets `trials.csv`, `settings.json`, `NAME.csv` (means
        and standard deviations), `NAME.png`, `NAME.svg` and `RESULTS.md`.
    progress
        Show a bar on stderr; None shows one only on a terminal.
    """
    folder = require_folder(out)
    trials = TrialFile(folder, experiment.variable, experiment.settings())
    tasks = experiment.tasks()
    missing = [task for task in tasks if (task.trial, task.value) not in trials.done]
    engine.run(
        lambda task: trials.add(task.trial, task.value, experiment.run_task(task)),
        missing,
        progress=progress,
        description=f"running {experiment.name}",
    )
    table = trials.select({(task.trial, task.value) for task in tasks})
    return _publish(experiment, table, folder)


def summary(table: pd.DataFrame, variable: str) -> pd.DataFrame:
    """Return mean, std and count over the trials, by method, pair and variable."""
    groups = table.groupby(["method", "pair", variable], sort=False)["distance"]
    frame = groups.agg(["mean", "std", "count"])
    return frame.fillna({"std": 0.0}).reset_index()  # one trial has no spread


def _publish(experiment: Experiment, table: pd.DataFrame, folder: Path) -> Report:
    """Write the summary, the figure and RESULTS.md."""
    claims = tuple(experiment.claims(table))
    path = folder / experiment.name
    csv, png, svg = (path.with_suffix(suffix) for suffix in (".csv", ".png", ".svg"))
    means = summary(table, experiment.variable)
    write_text(csv, means.to_csv(index=False))
    figure = experiment.draw(table)
    figures.save(figure, png)
    figures.save(figure, svg)
    results = folder / "RESULTS.md"
    write_text(results, _results(experiment, claims, means))
    return Report(experiment, table, claims, (csv, png, svg, results, folder / "trials.csv"))


def _results(experiment: Experiment, claims: Sequence[Claim], means: pd.DataFrame) -> str:
    counted = [claim.passed for claim in claims if claim.passed is not None]
    settings = {**experiment.settings(), "n_trials": experiment.n_trials}
    told = ", ".join(f"{key} = {value}" for key, value in settings.items())
    lines = [
        f"# {experiment.title}",
        "",
        f"Made by `unaligned reproduce {experiment.name} --trials {experiment.n_trials} "
        f"--seed {experiment.seed}`. Settings: {told}.",
        "",
        f"{sum(counted)} of {len(counted)} claims hold in this run.",
        "",
        "| source | expected | measured in this run | verdict |",
        "|---|---|---|---|",
        *(f"| {c.source} | {c.expected} | {c.measured} | {c.verdict} |" for c in claims),
        "",
        f"![{experiment.title}]({experiment.name}.png)",
        "",
        f"Mean ± standard deviation over {experiment.n_trials} trials:",
        "",
        *_mean_table(means, experiment.variable),
        "",
    ]
    return "\n".join(lines)


def _mean_table(means: pd.DataFrame, variable: str) -> list[str]:
    values = sorted(means[variable].unique())
    head = " | ".join(f"{variable} = {value:g}" for value in values)
    lines = [f"| method | pair | {head} |", "|---|---|" + "---|" * len(values)]
    for (method, pair), rows in means.groupby(["method", "pair"], sort=False):
        ordered = rows.sort_values(variable)
        pairs = zip(ordered["mean"], ordered["std"], strict=True)
        cells = " | ".join(f"{mean:.3g} ± {std:.2g}" for mean, std in pairs)
        lines.append(f"| {method} | d({pair}) | {cells} |")
    return lines
