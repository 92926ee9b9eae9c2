"""What an experiment is: stages of tasks, claims, and a figure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

import unaligned as ua

from .. import _check

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Key: TypeAlias = tuple[int, float, str]
Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """One piece of work: one trial at one value of the variable, by methods that share work."""

    trial: int
    value: float
    position: int
    seed: int
    methods: tuple[str, ...]

    def rng(self) -> np.random.Generator:
        """Return the generator of this trial and value, the same for all methods."""
        return np.random.default_rng([self.seed, self.trial, 1 + self.position])

    def trial_rng(self) -> np.random.Generator:
        """Return the generator of the whole trial, the same for all values of the variable."""
        return np.random.default_rng([self.seed, self.trial, 0])

    def measures(self) -> list[Key]:
        """Return what this task measures, as the trial file counts it."""
        return [(self.trial, self.value, method) for method in self.methods]

    def missing(self, done: set[Key]) -> Task:
        """Return the task without the methods that are done."""
        left = tuple(key[-1] for key in self.measures() if key not in done)
        return replace(self, methods=left)


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
class Stage:
    """Methods that share their work, and the values of the variable at which they run."""

    methods: tuple[str, ...]
    values: Sequence[float]


@dataclass(frozen=True)
class Experiment(ABC):
    """An experiment; instances are frozen settings.

    The results depend on the settings alone, so trials made with the same settings can be
    kept: `n_trials` only says how many of them, and which methods are run is no setting at all.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    variable: ClassVar[str]
    quick: ClassVar[dict[str, Any]]
    full: ClassVar[dict[str, Any]]
    quantities: ClassVar[tuple[str, ...]] = ("distance",)
    tabulated: ClassVar[bool] = True  # whether RESULTS.md shows the means that NAME.csv has

    n_trials: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        _check.positive_int("n_trials", self.n_trials)
        _check.positive_int("seed", self.seed, minimum=0)

    @abstractmethod
    def stages(self) -> Sequence[Stage]:
        """Return the work in the order in which it is done, slow methods last."""

    @abstractmethod
    def run_task(self, task: Task) -> list[Row]:
        """Return the measurements of one task: method, pair, and each of the quantities."""

    @abstractmethod
    def pairs(self, method: str) -> tuple[str, ...]:
        """Return the pairs that a task measures by this method, a row each."""

    @abstractmethod
    def claims(self, table: pd.DataFrame) -> list[Claim]:
        """Return the claims about the methods in the table beside what they measured."""

    @abstractmethod
    def draw(self, table: pd.DataFrame) -> Figure:
        """Return the figure."""

    def notes(self, table: pd.DataFrame) -> list[str]:
        """Return more lines for RESULTS.md, between the claims and the means."""
        return []

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of all methods, as the table has them."""
        return tuple(dict.fromkeys(name for stage in self.stages() for name in stage.methods))

    def tasks(self, methods: Iterable[str]) -> list[list[Task]]:
        """Return the tasks of each stage, trial by trial, so that early ones are complete."""
        wanted = set(methods)
        chosen = [
            Stage(tuple(name for name in stage.methods if name in wanted), stage.values)
            for stage in self.stages()
        ]
        return [
            [
                Task(trial, float(value), position, self.seed, stage.methods)
                for trial in range(self.n_trials)
                for position, value in enumerate(stage.values)
            ]
            for stage in chosen
            if stage.methods
        ]

    def settings(self) -> dict[str, Any]:
        """Return all that decides the numbers of a trial."""
        decisive = {key: value for key, value in asdict(self).items() if key != "n_trials"}
        return {"experiment": self.name, "version": ua.__version__, **decisive}


def summary(table: pd.DataFrame, variable: str, quantity: str = "distance") -> pd.DataFrame:
    """Return mean, std, min, max and count over the trials, by method, pair and variable.

    The std of one trial is NaN: it has no spread.
    """
    groups = table.groupby(["method", "pair", variable], sort=False)[quantity]
    return groups.agg(["mean", "std", "min", "max", "count"]).reset_index()
