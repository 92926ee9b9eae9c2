"""Jobs of the benchmark: collections of datasets, and the score of their distances."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..._check import FloatArray
from ...errors import InputError
from ...io.archive import read_archive, write_archive
from .scores import SCORES

# The modules with jobs; importing one registers its jobs. Listed in the order of the table.
MODULES = ("jobs_networks", "jobs_cells", "jobs_pictures", "jobs_manifolds")

_FORMAT = "unaligned-benchmark-collection"


class Entry(NamedTuple):
    """A dataset of a collection; see `Collection`."""

    name: str
    points: FloatArray
    label: str = ""
    group: str | None = None  # None: one of its own
    value: float = 0.0


@dataclass(frozen=True)
class Collection:
    """Datasets in an order, with what a score needs to know of them.

    Attributes
    ----------
    datasets
        Name -> points, as many rows as there are; the benchmark draws from them.
    labels
        What a dataset is: a class to be found again; or `reference`, `low`, `high`, `between`.
    groups
        Where it comes from: a dataset is not compared with those of its own group.
    values
        A number of each dataset, such as its day.
    """

    datasets: Mapping[str, FloatArray]
    labels: Any = ()
    groups: Any = ()
    values: Any = ()

    def __post_init__(self) -> None:
        n = len(self.datasets)
        defaults = {"labels": [""] * n, "groups": range(n), "values": [0.0] * n}
        for name, default in defaults.items():
            given = getattr(self, name)
            column = np.asarray(list(given) if len(given) else default)
            object.__setattr__(self, name, column.astype(float if name == "values" else str))

    @staticmethod
    def of(entries: Sequence[Entry]) -> Collection:
        """Return the collection of these datasets."""
        groups = [str(i) if e.group is None else e.group for i, e in enumerate(entries)]
        return Collection(
            {entry.name: entry.points for entry in entries},
            [entry.label for entry in entries],
            groups,
            [entry.value for entry in entries],
        )

    def drawn(
        self, n_rows: int, rng: np.random.Generator, *, unequal: bool, paired: bool
    ) -> Collection:
        """Return the collection with random rows: n of each, or n, 2n/3 and n/3 at random.

        In turn, a size would tell the label: entries come in the order of their labels.
        """
        found, sizes = {}, np.full(len(self.datasets), n_rows)
        if unequal:
            shares = np.resize((1.0, 2 / 3, 1 / 3), sizes.size)
            sizes = np.round(n_rows * rng.permutation(shares)).astype(int)
        order = rng.permutation(min(map(len, self.datasets.values()))) if paired else None
        for n, (name, points) in zip(sizes, self.datasets.items(), strict=True):
            rows = rng.permutation(len(points)) if order is None else order
            found[name] = points[rows[:n]]
        return Collection(found, self.labels, self.groups, self.values)

    def save(self, path: Path) -> None:
        """Write the collection to one `.npz` file."""
        arrays: dict[str, npt.NDArray[Any]] = {
            f"points/{i:04d}": np.asarray(points, dtype=np.float64)
            for i, points in enumerate(self.datasets.values())
        }
        about = {name: getattr(self, name).tolist() for name in ("labels", "groups", "values")}
        # Every cell reads it: unpacking took longer than many distances.
        header = {"names": list(self.datasets), **about}
        write_archive(path, _FORMAT, header, arrays, compressed=False)

    @staticmethod
    def load(path: Path) -> Collection:
        """Read a collection that `save` wrote."""
        header, arrays = read_archive(path, _FORMAT)
        points = [arrays[key] for key in sorted(arrays) if key.startswith("points/")]
        datasets = dict(zip(header["names"], points, strict=True))
        return Collection(datasets, header["labels"], header["groups"], header["values"])


@dataclass(frozen=True)
class Job:
    """A job: how to make its collection, how to score distances, and what they may assume."""

    name: str
    question: str
    data: str  # in words, for the table
    score: str
    make: Callable[[np.random.Generator, bool], Collection] = field(compare=False)
    same_features: bool = False  # column j is the same feature in all datasets
    paired_rows: bool = False  # row i is the same sample in all datasets
    n_quick: int = 150  # rows of each dataset
    n_full: int = 400

    def collection(self, seed: int, *, full: bool) -> Collection:
        """Return the collection of one repetition."""
        return self.make(np.random.default_rng([seed, sum(self.name.encode())]), full)

    def objection(self, distance: Any) -> str | None:
        """Return why a distance does not apply to this job, or None."""
        if getattr(distance, "paired_rows", False) and not self.paired_rows:
            return "its rows are not paired"
        if getattr(distance, "same_features", False) and not self.same_features:
            return "its datasets have different features"
        return None


JOBS: dict[str, Job] = {}


def job(
    name: str, question: str, data: str, score: str, **options: Any
) -> Callable[[Callable[[np.random.Generator, bool], Collection]], Job]:
    """Register a function of a generator and `full` that returns a `Collection` as a job."""
    if score not in SCORES:
        raise ValueError(f"score={score!r} is not one of {', '.join(SCORES)}")

    def register(make: Callable[[np.random.Generator, bool], Collection]) -> Job:
        JOBS[name] = Job(name, question, data, score, make, **options)
        return JOBS[name]

    return register


def load_jobs(*others: str) -> dict[str, Job]:
    """Import the modules of jobs, and those of others by their names; return all jobs."""
    for module in MODULES:
        import_module(f".{module}", __package__)
    for module in others:
        import_own(module)
    return JOBS


def import_own(module: str) -> Any:
    """Return a module of the user, from this folder or installed."""
    if os.getcwd() not in sys.path:  # as `python -m` has it
        sys.path.insert(0, os.getcwd())
    try:
        return import_module(module)
    except (ImportError, ValueError) as error:
        raise InputError(
            f"module {module!r} cannot be imported: {error}. It must be in this folder, or "
            "installed."
        ) from error
