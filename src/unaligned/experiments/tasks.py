"""Section 5.3: which few-shot tasks will be hard, told by their distance to training tasks.

Reference tasks have classes that an embedder was trained on; new tasks mix them with others. The
dissimilarity of a new task is the mean, min or max of its distances to the references, computed
from unlabelled embeddings; its accuracy is that of a linear SVM on a few labelled images.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

import unaligned as ua

from .. import _check
from .._check import FloatArray
from ..errors import InputError
from . import difficulty, difficulty_claims, difficulty_figures
from .base import Claim, Experiment, Row, Stage, Task, Value
from .cifar100 import N_IMAGES
from .few_shot import BENCHMARKS, EMBEDDERS, SHARES, Benchmark, load_benchmark
from .tori import Method

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_TIMED = "-time"  # suffix of methods that measure the time of a slow distance at full size


@dataclass(frozen=True)
class Trial:
    """The classes of the reference tasks and of the new tasks of one repetition."""

    references: tuple[tuple[str, ...], ...]
    new: dict[float, tuple[tuple[str, ...], ...]]  # by share of unseen classes


@dataclass(frozen=True)
class ShownTask:
    """A task of the figure of embeddings."""

    classes: tuple[str, ...]
    shot: int
    accuracy: float
    distances: dict[str, float]  # from the task on the left, by name


@dataclass(frozen=True)
class Tasks(Experiment):
    """Few-shot tasks of FC100 and CIFAR-FS, their dissimilarity and their accuracy.

    `--full` is the paper's setting but for the solver and for Wasserstein and Gromov-Wasserstein,
    which take 100 images of each class; their time with all images is measured apart. It trains a
    ResNet-12 per benchmark, 27 hours of one core each; `--set embedder=conv4` half an hour each.
    `--quick` trains nothing: ResNet-20 of CIFAR-10, whose classes are the seen ones.
    """

    name: ClassVar[str] = "tasks"
    title: ClassVar[str] = "Which few-shot task will be hard? (Section 5.3, Appendix D)"
    variable: ClassVar[str] = "unseen"  # share of the classes of a task
    quantities: ClassVar[tuple[str, ...]] = ("mean", "min", "max", "std", "seconds")
    tabulated: ClassVar[bool] = False
    quick: ClassVar[dict[str, Any]] = {
        "n_trials": 3,
        "embedder": "resnet20",
        "benchmarks": ("fc100", "cifar-fs"),
        "per_class": 200,
        "n_eigenvalues": 300,
        "transport_per_class": 25,
        "rounds": 50,
        "n_test_tasks": 200,
        "timed_pairs": 1,
    }
    full: ClassVar[dict[str, Any]] = {"n_trials": 20}

    embedder: str = "resnet12"
    n_episodes: int | None = None  # of the training; None: see `few_shot.EPISODES`
    benchmarks: tuple[str, ...] = BENCHMARKS
    shots: tuple[int, ...] = (1, 5, 10)
    n_references: int = 10
    n_new: int = 3  # tasks per share of unseen classes
    per_class: int = 600  # images, so that N = 3000
    n_eigenvalues: int = 500
    gamma: float = 1e-6
    transport_per_class: int = 100  # images for OT and GW
    rounds: int = 1000  # of the Geometry Score
    n_draws: int = 20  # of labelled images per task
    n_test_tasks: int = 1000
    timed_pairs: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        _check.one_of("embedder", self.embedder, EMBEDDERS)
        for name in self.benchmarks:
            _check.one_of("benchmarks", name, BENCHMARKS)
        if len(set(self.benchmarks)) < max(len(self.benchmarks), 1):
            raise InputError(f"benchmarks={self.benchmarks!r} must name each of them once.")
        _check.optional_int("n_episodes", self.n_episodes)
        for name in ("n_new", "rounds", "n_draws", "n_test_tasks", "timed_pairs"):
            _check.positive_int(name, getattr(self, name))
        for name in ("n_references", "per_class", "transport_per_class", "n_eigenvalues"):
            _check.positive_int(name, getattr(self, name), minimum=2)
        _check.real_number("gamma", self.gamma, minimum=0.0, strict=True)
        if len(set(self.shots)) < len(self.shots):
            raise InputError(f"shots={self.shots!r} must name each number once.")
        for shot in self.shots or (0,):
            if _check.positive_int("shots", shot) >= 20:
                raise InputError(
                    f"shots={shot} must be below 20, the images of Omniglot's classes: some are "
                    "needed to test."
                )
        for name in ("per_class", "transport_per_class"):
            if getattr(self, name) > N_IMAGES:
                raise InputError(f"{name}={getattr(self, name)} must be at most {N_IMAGES}.")

    def settings(self) -> dict[str, Any]:
        """Return what determines the numbers of a trial; more pairs may be timed later."""
        settings = super().settings()
        del settings["timed_pairs"]
        return settings

    @property
    def panels(self) -> tuple[Method, ...]:
        """The distances in the order of the paper's table, and the corrected LES."""
        few, exact = self.transport_per_class, {"method": "exact"}
        rounds = {"n_rounds": self.rounds}
        spectral = {"n_eigenvalues": self.n_eigenvalues, "gamma": self.gamma}
        return (
            Method("LES", "les", options=spectral),
            Method("IMD", "imd"),
            Method("OT", "wasserstein", options=exact, n_samples=few),
            Method("GW", "gromov-wasserstein", options=exact, n_samples=few),
            Method("GS", "geometry-score", options=rounds),
            Method("LES, corrected", "les-corrected", options=spectral),
        )

    def stages(self) -> list[Stage]:
        """Return the accuracies, each distance, and the times of slow ones with all images."""
        slow = [method.distance for method in self.panels if method.n_samples is not None]
        distances = sorted((m.distance for m in self.panels), key=lambda name: name in slow)
        everywhere = ["accuracy", *distances]
        once = ["test-accuracy", "figure", *(name + _TIMED for name in slow)]
        return [*(((name,), SHARES) for name in everywhere), *(((name,), (1.0,)) for name in once)]

    def tasks(self, methods: Iterable[str]) -> list[list[Task]]:
        """Return the tasks of each stage; accuracies always, and a trial per timed pair."""
        wanted, distances = set(methods), [panel.distance for panel in self.panels]
        if wanted.isdisjoint(distances):
            raise InputError(
                f"only and without leave no distance. Keep one of: {', '.join(distances)}."
            )
        found = []
        for stage in super().tasks({*wanted, "accuracy"}):
            (name,) = stage[0].methods
            if name in ("test-accuracy", "figure"):
                found.append(stage[:1])
            elif name.endswith(_TIMED):  # one by one, so that a stopped run has the first ones
                found.append([replace(stage[0], trial=i) for i in range(self.timed_pairs)])
            else:
                found.append(stage)
        return found

    def pairs(self, method: str, value: Value = 0.0) -> tuple[str, ...]:
        """Return benchmark and number of every new task; for accuracies, its shots."""
        names, shots = self.benchmarks, [f"{shot}-shot" for shot in self.shots]
        if method.endswith(_TIMED):
            return ("pair",)
        if method == "figure":
            return "center les", "center imd", "right les", "right imd"
        if method == "test-accuracy":
            return tuple(f"{name} {shot}" for name in names for shot in shots)
        tasks = tuple(f"{name} {i + 1}" for name in names for i in range(self.n_new))
        if method == "accuracy":
            return tuple(f"{task} {shot}" for task in tasks for shot in shots)
        return tasks

    def run_task(self, task: Task) -> list[Row]:
        """Return the dissimilarities, or accuracies, of the new tasks of all benchmarks."""
        (method,) = task.methods
        special = {"accuracy": self._accuracies, "test-accuracy": self._test_accuracies}
        special["figure"] = self._figure
        usual = self._time if method.endswith(_TIMED) else self._dissimilarities
        measure = special.get(method, usual)
        names = self.pairs(method)
        rows = [row for benchmark in self.benchmarks for row in measure(benchmark, task)]
        return [{"method": method, "pair": p, **row} for p, row in zip(names, rows, strict=True)]

    def benchmark(self, name: str) -> Benchmark:
        """Return a benchmark, loaded once."""
        if name not in self._loaded:
            self._loaded[name] = load_benchmark(name, self.embedder, self.n_episodes)
        return self._loaded[name]

    def trial(self, benchmark: str, number: int) -> Trial:
        """Return the random tasks of one repetition."""
        data = self.benchmark(benchmark)
        rng = np.random.default_rng([self.seed, number])
        references = tuple(data.draw(0.0, rng) for _ in range(self.n_references))
        new = {share: tuple(data.draw(share, rng) for _ in range(self.n_new)) for share in SHARES}
        return Trial(references, new)

    def _accuracies(self, benchmark: str, task: Task) -> list[Row]:
        data, rng = self.benchmark(benchmark), task.rng()
        rows = []
        for classes in self.trial(benchmark, task.trial).new[task.value]:
            for shot in self.shots:
                start = _processor_time()
                found = data.accuracies(classes, shot, n_draws=self.n_draws, rng=rng)
                rows.append(_row(found, _processor_time() - start))
        return rows

    def _test_accuracies(self, benchmark: str, task: Task) -> list[Row]:
        """Return the first row of the paper's table: random tasks of unseen classes."""
        data, rng = self.benchmark(benchmark), task.rng()
        rows = []
        for shot in self.shots:
            start, found = _processor_time(), []
            # 15 images per class to test, as usual, where there are so many.
            n_query = min(15, min(map(len, data.unseen.values())) - shot)
            for _ in range(self.n_test_tasks):
                classes = data.draw(1.0, rng)
                found.append(data.accuracies(classes, shot, n_draws=1, n_query=n_query, rng=rng))
            rows.append(_row(np.concatenate(found), _processor_time() - start))
        return rows

    def _dissimilarities(self, benchmark: str, task: Task) -> list[Row]:
        (method,) = (panel for panel in self.panels if panel.distance == task.methods[0])
        if method.distance == "les-corrected":
            return self._corrected(benchmark, task, method)
        data, trial = self.benchmark(benchmark), self.trial(benchmark, task.trial)
        known = self._reference_tasks(benchmark, task.trial, method)
        rows = []
        for i, classes in enumerate(trial.new[task.value]):
            points = data.points(classes, method.n_samples or self.per_class)
            start = _processor_time()
            # With the descriptors of the references at hand, as in the paper.
            found = known.add({f"new {i}": points}, progress=False)
            rows.append(_row(found.distances[-1], _processor_time() - start))
        return rows

    def _reference_tasks(self, benchmark: str, trial: int, method: Method) -> ua.Comparison:
        """Return a comparison with the reference tasks, to which new tasks are added."""
        key = benchmark, method.distance  # of one repetition at a time
        if key not in self._compared or self._compared[key][0] != trial:
            data, n = self.benchmark(benchmark), method.n_samples or self.per_class
            points = [data.points(c, n) for c in self.trial(benchmark, trial).references]
            options = {"distance": method.distance, "progress": False, **method.options}
            if "n_eigenvalues" in options:  # Omniglot has N = 400
                options["n_eigenvalues"] = min(self.n_eigenvalues, len(points[0]) // 2)
            self._compared[key] = trial, ua.compare({"first": points[0]}, points, **options)
        return self._compared[key][1]

    def _corrected(self, benchmark: str, task: Task, method: Method) -> list[Row]:
        """Return distances corrected for sampling noise, from blocks of a tenth of the rows."""
        data, trial = self.benchmark(benchmark), self.trial(benchmark, task.trial)
        known = [data.points(classes, self.per_class) for classes in trial.references]
        new = [data.points(classes, self.per_class) for classes in trial.new[task.value]]
        options = {**method.options, "n_eigenvalues": max(1, len(new[0]) // 30)}
        start = _processor_time()
        found = ua.compare(new, known, inference=True, progress=False, **options).inference
        seconds = (_processor_time() - start) / len(new)
        assert found is not None  # since inference=True
        return [_row(row, seconds) for row in found.corrected]

    def _time(self, benchmark: str, task: Task) -> list[Row]:
        """Return the time of one pair with all images, of one benchmark after the other."""
        large = [name for name in self.benchmarks if name != "omniglot"] or self.benchmarks
        if benchmark != large[task.trial % len(large)]:
            return []
        name = task.methods[0].removesuffix(_TIMED)
        (method,) = (panel for panel in self.panels if panel.distance == name)
        data, trial = self.benchmark(benchmark), self.trial(benchmark, task.trial)
        classes = trial.new[task.value][0], trial.references[0]
        new, known = (data.points(those, self.per_class) for those in classes)
        start = _processor_time()
        far = ua.distance(new, known, distance=name, **method.options)
        return [_row([far], _processor_time() - start)]

    def shown(self) -> dict[str, ShownTask]:
        """Return a reference task and two new ones, of unseen and of seen classes, by place.

        With their LES and IMD from the first; of the first benchmark and repetition, not chosen
        by their accuracy.
        """
        if not self._shown:
            name = self.benchmarks[0]
            data, trial = self.benchmark(name), self.trial(name, 0)
            rng = np.random.default_rng([self.seed, 0])
            shot = self.shots[len(self.shots) // 2]
            places = {"left": trial.references[0]}
            places |= {"center": trial.new[1.0][0], "right": trial.new[0.0][0]}
            for place, classes in places.items():
                found = data.accuracies(classes, shot, n_draws=self.n_draws, rng=rng)
                far = {
                    m.distance: float(
                        self._reference_tasks(name, 0, m).add(
                            {place: data.points(classes, self.per_class)}, progress=False
                        )[place, "0"]
                    )
                    for m in self.panels[:2]
                }
                self._shown[place] = ShownTask(classes, shot, float(found.mean()), far)
        return self._shown

    def _figure(self, benchmark: str, task: Task) -> list[Row]:
        """Return the distances of the tasks shown in Appendix D."""
        if benchmark != self.benchmarks[0]:
            return []
        shown = self.shown()
        names = [name.split() for name in self.pairs("figure")]
        return [_row([shown[place].distances[name]], 0.0) for place, name in names]

    @cached_property
    def _loaded(self) -> dict[str, Benchmark]:
        return {}

    @cached_property
    def _compared(self) -> dict[tuple[str, str], tuple[int, ua.Comparison]]:
        return {}

    @cached_property
    def _shown(self) -> dict[str, ShownTask]:
        return {}

    def claims(self, table: pd.DataFrame) -> list[Claim]:
        """Return the paper's claims, and answers to questions beyond it."""
        return difficulty_claims.claims(self, table)

    def notes(self, table: pd.DataFrame) -> list[str]:
        """Return the paper's tables beside ours."""
        return difficulty_claims.notes(self, table)

    def tables(self, table: pd.DataFrame) -> dict[str, pd.DataFrame]:
        """Return the correlations of every cell as a table."""
        return {"tasks-correlations": difficulty.cells(table)}

    def draw(self, table: pd.DataFrame) -> Figure:
        """Return accuracy against dissimilarity, a panel per distance."""
        return difficulty_figures.scatter(self, table)

    def pictures(self, table: pd.DataFrame) -> dict[str, Figure]:
        """Return one training task and two new tasks in the plane, as in Appendix D."""
        return {"tasks-embeddings": difficulty_figures.planes(self)}


def _processor_time() -> float:
    """Return the seconds of all cores so far, those of ended child processes included.

    Unlike the time on the clock it hardly depends on what else the machine does.
    """
    children = os.times()
    return time.process_time() + children.children_user + children.children_system


def _row(values: FloatArray | Sequence[float], seconds: float) -> Row:
    """Return the statistics of distances to all references, or of accuracies of all draws."""
    found = np.asarray(values)
    statistics = {name: float(getattr(found, name)()) for name in ("mean", "min", "max", "std")}
    return {**statistics, "seconds": seconds}
