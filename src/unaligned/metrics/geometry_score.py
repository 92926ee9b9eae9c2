"""The geometry score: how long which number of holes lives in witness complexes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing import current_process
from threading import current_thread, main_thread
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .. import _check
from .._check import FloatArray, IndexArray
from ..data.dataset import Dataset
from ..engine import Engine, Threads, resolve_jobs, steps
from ..engine.memory import storage_for
from ..errors import DegenerateDataError
from .base import Distance
from .bottleneck import distance_matrix, optional, pairwise
from .points import dense_points

_REFERENCE_SIZE = 5000  # the N for which the authors' γ is 1/128
_RECOMPUTED_FEATURES = 16  # up to here distances are worked out in every round, not looked up
_DIMENSION = 2  # triangles are enough for H1
_ROUNDS_PER_TASK = 25
_WORTH_PROCESSES = 2_000_000  # rounds × points, some 10 s


@dataclass(frozen=True)
class GeometryScore(Distance):
    r"""The geometry score: the squared gap between mean relative living times of holes.

    .. math:: d = \sum_{i=0}^{i_{max}-1} (\mathrm{MRLT}_1(i) - \mathrm{MRLT}_2(i))^2, \qquad
              \mathrm{MRLT}(i) = \mathbb{E}\,
              \frac{|\{\alpha \in [0, \alpha_{max}] : \beta_1(\alpha) = i\}|}{\alpha_{max}}

    with β₁(α) the number of independent loops in the relaxed witness complex of all points over
    random landmarks, :math:`\alpha_{max} = \gamma \max_{w, l} \|w - l\|`
    (Khrulkov and Oseledets, 2018). **Squared**, as published. As in the authors' code, distances
    and α are not squared, and landmarks are drawn with replacement. Rotation, translation and
    scale play no part but for rounding; which landmarks are drawn depends on the content of the
    dataset and the seed, so the same points in another order give another sample of the same
    expectation. About 3 ms per round at N=1000, linear in N.

    Attributes
    ----------
    n_landmarks
        Landmarks in a round.
    gamma
        γ, the part of the largest distance up to which holes are counted; None means
        (1/128)·(N/5000).
    i_max
        The number of hole counts told apart; time spent with as many holes or more is left out.
    n_rounds
        How many rounds are averaged. The noise of d goes down as 1/n_rounds.
    processes
        Rounds at a time, on so many processes, as gudhi keeps the interpreter's lock; -1 takes
        all cores. Starting them takes seconds, so None takes all cores only where rounds × N is
        2 million or more, and one elsewhere and inside of jobs. The values do not depend on it.

    Examples
    --------
    >>> import unaligned as ua
    >>> angles = 2 * np.pi * np.arange(100) / 100
    >>> circle, line = np.column_stack([np.cos(angles), np.sin(angles)]), angles[:, None]
    >>> options = {"gamma": 0.5, "n_landmarks": 12, "n_rounds": 20}
    >>> ua.distance(circle, circle, "geometry-score", **options)
    0.0
    >>> ua.distance(circle, line, "geometry-score", **options) > 0.1
    True
    """

    name: ClassVar[str] = "geometry-score"
    summary: ClassVar[str] = "squared L2 between mean relative living times of holes"
    cost: ClassVar[str] = "n_rounds witness complexes per dataset: 3 s at N=1000, linear in N"
    kinds: ClassVar[tuple[str, ...]] = ("points", "distances")
    is_descriptor: ClassVar[bool] = True
    extra: ClassVar[str | None] = "topology"

    n_landmarks: int = 64
    gamma: float | None = None
    i_max: int = 100
    n_rounds: int = 1000
    processes: int | None = None

    def __post_init__(self) -> None:
        _check.positive_int("n_landmarks", self.n_landmarks, minimum=3)
        _check.positive_int("i_max", self.i_max)
        _check.positive_int("n_rounds", self.n_rounds)
        if self.processes is not None:
            resolve_jobs(_check.whole_number("processes", self.processes))
        if self.gamma is not None:
            _check.real_number("gamma", self.gamma, minimum=0.0, strict=True)

    def describe(self, dataset: Dataset, seed: int) -> FloatArray:
        """Return the mean relative living times of 0, 1, ... holes, (i_max,)."""
        optional("gudhi", self.name)
        size = dataset.n_samples
        gamma = self.gamma
        if gamma is None:
            gamma = size / _REFERENCE_SIZE / 128
        draws = dataset.generator(seed).integers(size, size=(self.n_rounds, self.n_landmarks))
        values, is_matrix = _witnesses(dataset)
        if not np.ptp(values, axis=0).any():
            raise DegenerateDataError(
                f"{dataset.label} has {size} points that are all equal, and distance "
                f"{self.name!r} needs a largest distance above 0. Leave the dataset out."
            )
        setting = values, is_matrix, gamma, self.i_max
        mean: FloatArray = np.sum(self._over(draws, setting), axis=0) / self.n_rounds
        return mean

    def _over(self, draws: IndexArray, setting: tuple[Any, ...]) -> list[FloatArray]:
        """Return the sums over blocks of rounds, in order, the same on any number of processes."""
        starts = range(0, len(draws), _ROUNDS_PER_TASK)
        blocks = [draws[start : start + _ROUNDS_PER_TASK] for start in starts]
        jobs = min(self._jobs(len(setting[0])), len(blocks))
        sums = _engine(jobs).map(_sum_of_living_times, blocks, shared=setting)
        return list(steps(sums, len(blocks), "counting holes"))

    def _jobs(self, n_samples: int) -> int:
        if self.processes is not None:
            return resolve_jobs(self.processes)
        alone = current_process().name == "MainProcess" and current_thread() is main_thread()
        return resolve_jobs(-1) if alone and self.n_rounds * n_samples >= _WORTH_PROCESSES else 1

    def to_arrays(self, descriptor: FloatArray) -> dict[str, npt.NDArray[Any]]:
        """Return the mean relative living times."""
        return {"times": descriptor}

    def from_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> FloatArray:
        """Return the mean relative living times."""
        return arrays["times"]

    def compare(self, first: FloatArray, second: FloatArray) -> float:
        """Return the squared L2 distance between two mean relative living times."""
        return float(((first - second) ** 2).sum())


def relative_living_times(bars: FloatArray, alpha_max: float, i_max: int) -> FloatArray:
    """Return which part of [0, α_max] exactly 0, 1, ..., i_max - 1 of the bars are alive.

    Formulas 2 and 3 of Khrulkov and Oseledets (2018). A bar that never dies ends at α_max.

    Examples
    --------
    >>> relative_living_times(np.array([[1.0, 3.0], [2.0, np.inf]]), 4.0, 3)
    array([0.25, 0.5 , 0.25])
    """
    births, deaths = bars[:, 0], np.minimum(bars[:, 1], alpha_max)
    switches = np.unique(np.concatenate([births, deaths, [0.0, alpha_max]]))
    middles = (switches[:-1] + switches[1:]) / 2.0
    alive = np.searchsorted(np.sort(births), middles) - np.searchsorted(np.sort(deaths), middles)
    times = np.bincount(alive, weights=np.diff(switches), minlength=i_max)
    relative: FloatArray = times[:i_max] / alpha_max
    return relative


def _witnesses(dataset: Dataset) -> tuple[FloatArray, bool]:
    """Return the points, or all their distances where looking up is cheaper and they fit."""
    if dataset.kind == "distances":
        return distance_matrix(dataset), True
    points = dense_points(dataset)
    if points.shape[1] <= _RECOMPUTED_FEATURES or storage_for(len(points), None) != "dense":
        return points, False
    return pairwise(points, points), True


def _engine(n_jobs: int) -> Engine:
    if n_jobs == 1:
        return Threads(1)
    from ..engine.processes import Processes

    return Processes(n_jobs)


def _sum_of_living_times(
    setting: tuple[FloatArray, bool, float, int], draws: IndexArray
) -> FloatArray:
    """Return the sum of the relative living times over these draws of landmarks, (i_max,)."""
    values, is_matrix, gamma, i_max = setting
    total = np.zeros(i_max)
    for rows in draws:
        distances = values[:, rows] if is_matrix else pairwise(values, values[rows])
        alpha_max = gamma * float(distances.max())
        total += relative_living_times(_holes(distances, alpha_max), alpha_max, i_max)
    return total


def _holes(distances: FloatArray, alpha_max: float) -> FloatArray:
    """Return the H1 bars of the witness complex of witnesses × landmarks distances."""
    gudhi = optional("gudhi", GeometryScore.name)
    complex_ = gudhi.WitnessComplex(_nearest_landmarks(distances, alpha_max))
    # gudhi means squares; the authors give it plain distances and a plain α.
    tree = complex_.create_simplex_tree(max_alpha_square=alpha_max, limit_dimension=_DIMENSION)
    tree.compute_persistence(homology_coeff_field=2)
    bars: FloatArray = np.asarray(tree.persistence_intervals_in_dimension(1)).reshape(-1, 2)
    return bars


def _nearest_landmarks(distances: FloatArray, reach: float) -> FloatArray:
    """Return the numbers and distances of each witness's nearest landmarks, (N, k, 2).

    A triangle needs landmarks up to `reach` beyond the third, so k is a handful, and the complex
    the same as with all of them.
    """
    n_landmarks = distances.shape[1]
    k = 8
    while True:
        k = min(k, n_landmarks)
        nearest = np.argpartition(distances, k - 1, axis=1)[:, :k]
        lengths = np.take_along_axis(distances, nearest, axis=1)
        order = np.argsort(lengths, axis=1)
        lengths = np.take_along_axis(lengths, order, axis=1)
        if k == n_landmarks or (lengths[:, -1] > lengths[:, _DIMENSION] + reach).all():
            return np.stack([np.take_along_axis(nearest, order, axis=1), lengths], axis=2)
        k *= 2
