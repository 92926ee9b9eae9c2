"""The geometry score: living times of holes in witness complexes."""

from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing import current_process
from threading import current_thread, main_thread
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _check
from .._check import FloatArray, IndexArray
from ..data.dataset import Dataset
from ..defaults import FEW_FEATURES
from ..engine import Threads, resolve_jobs, steps
from ..engine.memory import storage_for
from ..engine.processes import Processes
from ..errors import DegenerateDataError
from ..operators.kernel import has_numba
from .base import Distance, dense_points
from .bottleneck import optional, pairwise

_WORTH_PROCESSES = 5_000_000  # rounds × points: 8 s compiled, 20 s else; processes start in 2 s


@dataclass(frozen=True)
class GeometryScore(Distance):
    r"""The geometry score: the squared gap between mean relative living times of holes.

    .. math:: d = \sum_{i=0}^{i_{max}-1} (\mathrm{MRLT}_1(i) - \mathrm{MRLT}_2(i))^2, \qquad
              \mathrm{MRLT}(i) = \mathbb{E}\,
              \frac{|\{\alpha \in [0, \alpha_{max}] : \beta_1(\alpha) = i\}|}{\alpha_{max}}

    with β₁(α) the number of independent loops in the relaxed witness complex of all points over
    random landmarks, :math:`\alpha_{max} = \gamma \max_{w, l} \|w - l\|`
    (Khrulkov and Oseledets, 2018). **Squared**, as published. As in the authors' code, distances
    and α are not squared, and landmarks are drawn with replacement. Invariant to rotation,
    translation and scale up to rounding; the same points in another order give another draw of
    the same expectation. About 1 ms per round at N=1000, linear in N; without Numba 3 ms.

    Parameters
    ----------
    n_landmarks
        Landmarks per round.
    gamma
        γ, the fraction of the largest distance up to which holes are counted; None means
        (1/128)·(N/5000), as in the authors' code.
    i_max
        Hole counts below this are distinguished; time with more holes is dropped.
    n_rounds
        The number of rounds averaged. The noise of d decreases as 1/n_rounds.
    processes
        The number of processes, as gudhi holds the interpreter lock; -1 uses all cores. None
        uses all cores if rounds × N is at least 5 million, and one otherwise and inside of jobs.
        The values do not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> angles = 2 * np.pi * np.arange(100) / 100
    >>> circle, line = np.column_stack([np.cos(angles), np.sin(angles)]), angles[:, None]
    >>> options = {"gamma": 0.5, "n_landmarks": 12, "n_rounds": 20}
    >>> ua.distance(circle, circle, "geometry-score", **options)
    0.0
    >>> ua.distance(circle, line, "geometry-score", **options) > 0.1
    True
    """

    name = "geometry-score"
    summary = "squared L2 between mean relative living times of holes"
    cost = "n_rounds witness complexes per dataset: 1 s at N=1000, linear in N"
    kinds = ("points", "distances")
    is_descriptor = True
    extra = "topology"

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
        n = dataset.n_samples
        gamma = n / 5000 / 128 if self.gamma is None else self.gamma
        draws = dataset.generator(seed).integers(n, size=(self.n_rounds, self.n_landmarks))
        values = dense_points(dataset)
        is_matrix = dataset.kind == "distances"
        if not np.ptp(values, axis=0).any():
            raise DegenerateDataError(
                f"{dataset.label} has {n} points that are all equal, and distance {self.name!r} "
                "needs a largest distance above 0. Leave the dataset out."
            )
        # With many features, looking distances up is faster than computing them in every round.
        many = values.shape[1] > FEW_FEATURES
        if not is_matrix and many and storage_for(n, None) == "dense":
            values, is_matrix = pairwise(values, values), True
        blocks = [draws[start : start + 25] for start in range(0, self.n_rounds, 25)]
        alone = current_process().name == "MainProcess" and current_thread() is main_thread()
        wanted = -1 if alone and self.n_rounds * n >= _WORTH_PROCESSES else 1
        wanted = wanted if self.processes is None else self.processes
        jobs = 1 if wanted == 1 else min(resolve_jobs(wanted), len(blocks))
        engine = Threads(1) if jobs == 1 else Processes(jobs)
        # Both ways give the same bars; loading Numba takes half a second.
        compiled = self.n_rounds * n >= 200_000 and has_numba()
        shared = values, is_matrix, gamma, self.i_max, compiled
        sums = engine.map(_sum_of_living_times, blocks, shared=shared)
        # Summed in order, so that the value does not depend on the number of processes.
        total: FloatArray = np.sum(list(steps(sums, len(blocks), "counting holes")), axis=0)
        return total / self.n_rounds

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
    """Return the fraction of [0, α_max] in which exactly 0, 1, ..., i_max - 1 bars are alive."""
    births, deaths = bars[:, 0], np.minimum(bars[:, 1], alpha_max)
    switches = np.unique(np.concatenate([births, deaths, [0.0, alpha_max]]))
    middles = (switches[:-1] + switches[1:]) / 2.0
    alive = np.searchsorted(np.sort(births), middles) - np.searchsorted(np.sort(deaths), middles)
    times = np.bincount(alive, weights=np.diff(switches), minlength=i_max)
    return np.asarray(times[:i_max] / alpha_max)


def _sum_of_living_times(shared: Any, draws: IndexArray) -> FloatArray:
    """Return the sum of the relative living times over these draws of landmarks, (i_max,)."""
    values, is_matrix, gamma, i_max, compiled = shared
    total = np.zeros(i_max)
    for rows in draws:
        distances = values[:, rows] if is_matrix else pairwise(values, values[rows])
        alpha_max = gamma * float(distances.max())
        bars = _holes(distances, alpha_max, compiled=compiled)
        total += relative_living_times(bars, alpha_max, i_max)
    return total


def _holes(distances: FloatArray, alpha_max: float, *, compiled: bool = False) -> FloatArray:
    """Return the H1 bars of the witness complex of witnesses × landmarks distances."""
    gudhi = optional("gudhi", GeometryScore.name)
    if compiled:
        from ._witness_numba import witnessed

        tree, landmarks = gudhi.SimplexTree(), np.arange(distances.shape[1])
        tree.insert_batch(landmarks[None], np.zeros(landmarks.size))
        edges, edge_values, triangles, triangle_values = witnessed(distances, alpha_max)
        tree.insert_batch(edges, edge_values)
        tree.insert_batch(triangles, triangle_values)
    else:
        complex_ = gudhi.WitnessComplex(_nearest_landmarks(distances, alpha_max))
        # gudhi expects squares; the authors pass plain distances and α. Triangles suffice for H1.
        tree = complex_.create_simplex_tree(max_alpha_square=alpha_max, limit_dimension=2)
    tree.compute_persistence(homology_coeff_field=2)
    return np.asarray(tree.persistence_intervals_in_dimension(1)).reshape(-1, 2)


def _nearest_landmarks(distances: FloatArray, reach: float) -> FloatArray:
    """Return the indices and distances of each witness's nearest landmarks, (N, k, 2)."""
    k = 8
    while True:
        k = min(k, distances.shape[1])
        nearest = np.argpartition(distances, k - 1, axis=1)[:, :k]
        lengths = np.take_along_axis(distances, nearest, axis=1)
        order = np.argsort(lengths, axis=1)
        lengths = np.take_along_axis(lengths, order, axis=1)
        # A triangle needs landmarks up to `reach` beyond the third nearest, so few suffice.
        if k == distances.shape[1] or (lengths[:, -1] > lengths[:, 2] + reach).all():
            return np.stack([np.take_along_axis(nearest, order, axis=1), lengths], axis=2)
        k *= 2
