"""The parts of an experiment: stages of tasks, claims, and a figure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from .. import _check
from ..errors import required

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Value: TypeAlias = Any  # of the variable: a number, or text
Key: TypeAlias = tuple[int, Value, str]  # trial, value of the variable, method
Row: TypeAlias = dict[str, Any]
# Methods that share work, and the values of the variable at which they run.
Stage: TypeAlias = tuple[tuple[str, ...], Sequence[Value]]


@dataclass(frozen=True)
class Task:
    """One trial at one value of the variable, by methods that share work."""

    trial: int
    value: Value
    position: int
    seed: int
    methods: tuple[str, ...]

    def rng(self) -> np.random.Generator:
        """Return the generator of this trial and value, the same for all methods."""
        return np.random.default_rng([self.seed, self.trial, 1 + self.position])

    @property
    def keys(self) -> list[Key]:
        """The keys of the measurements in the trial file, one per method."""
        return [(self.trial, self.value, method) for method in self.methods]

    def missing(self, done: set[Key]) -> Task:
        """Return the task without the methods that are done."""
        return replace(self, methods=tuple(key[-1] for key in self.keys if key not in done))


@dataclass(frozen=True)
class Claim:
    """An expected result beside the measured one."""

    source: str  # such as `Fig. 1`
    expected: str
    measured: str
    passed: bool | None  # None for an observation without a verdict

    @property
    def verdict(self) -> str:
        """`pass`, `FAIL` or `observed`."""
        return "observed" if self.passed is None else "pass" if self.passed else "FAIL"


@dataclass(frozen=True)
class Experiment(ABC):
    """An experiment; instances are frozen settings.

    The numbers of a trial depend on the settings alone, so that trials on disk can be reused.
    `n_trials` and the choice of methods do not change them.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    variable: ClassVar[str]
    variable_type: ClassVar[type] = float  # or str
    quick: ClassVar[dict[str, Any]]
    full: ClassVar[dict[str, Any]]
    quantities: ClassVar[tuple[str, ...]] = ("distance",)
    tabulated: ClassVar[bool] = True  # whether RESULTS.md repeats the means of NAME.csv
    # Raised by a change of code that changes numbers or the order of pairs: trials are not reused.
    revision: ClassVar[int] = 1

    n_trials: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        _check.positive_int("n_trials", self.n_trials)
        _check.positive_int("seed", self.seed, minimum=0)

    @abstractmethod
    def stages(self) -> Sequence[Stage]:
        """Return the stages in the order in which they run, slow methods last."""

    @abstractmethod
    def run_task(self, task: Task) -> list[Row]:
        """Return the measurements of one task: method, pair, and each of the quantities."""

    @abstractmethod
    def pairs(self, method: str, value: Value) -> tuple[str, ...]:
        """Return the pairs that a task measures at this value by this method, one row each."""

    @abstractmethod
    def claims(self, table: pd.DataFrame) -> list[Claim]:
        """Return the claims about the methods in the table."""

    @abstractmethod
    def draw(self, table: pd.DataFrame) -> Figure:
        """Return the figure."""

    def pictures(self, table: pd.DataFrame) -> dict[str, Figure]:
        """Return further figures by file name without suffix, such as one of the data."""
        return {}

    def notes(self, table: pd.DataFrame) -> list[str]:
        """Return paragraphs of RESULTS.md between the claims and the means."""
        return []

    def tables(self, table: pd.DataFrame) -> dict[str, pd.DataFrame]:
        """Return further tables, written as CSV, by file name without suffix."""
        return {}

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of all methods, as in the table."""
        return tuple(dict.fromkeys(name for names, _ in self.stages() for name in names))

    def tasks(self, methods: Iterable[str]) -> list[list[Task]]:
        """Return the tasks of each stage, trial by trial."""
        tasks, wanted = [], set(methods)
        for names, values in self.stages():
            chosen = tuple(name for name in names if name in wanted)
            cases = [(t, i, v) for t in range(self.n_trials) for i, v in enumerate(values)]
            if chosen:
                kind = self.variable_type
                tasks.append([Task(t, kind(v), i, self.seed, chosen) for t, i, v in cases])
        return tasks

    def settings(self) -> dict[str, Any]:
        """Return everything that determines the numbers of a trial.

        Not the release: trials take hours, and releases reuse them until `revision` is raised.
        """
        settings = {"experiment": self.name, "revision": self.revision, **asdict(self)}
        return {key: value for key, value in settings.items() if key != "n_trials"}


def require_output(command: str) -> None:
    """Raise an error if tables and figures could not be written, before anything is computed."""
    for package in ("pandas", "matplotlib"):
        required(package, "all", f"unaligned {command}")


def summary(table: pd.DataFrame, variable: str, quantity: str = "distance") -> pd.DataFrame:
    """Return mean, std (NaN for one trial), min, max and count over the trials."""
    groups = table.groupby(["method", "pair", variable], sort=False)[quantity]
    return groups.agg(["mean", "std", "min", "max", "count"]).reset_index()


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    first, *rest = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    return "\n".join([first, "|" + "---|" * len(head), *rest])
