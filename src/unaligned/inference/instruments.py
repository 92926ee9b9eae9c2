"""What a drift monitor compares a batch with its reference by: signatures, kernels, features.

Every instrument sees the reference once, keeps little of it, and gives one p-value per batch.
Shapes and kernels turn blocks of rows into items with squared distances; under the null
hypothesis the items of reference and batch are exchangeable. Scales, widths and axes were fitted
to rows of the reference that are in no block, so that this holds exactly.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from .._check import FloatArray, IndexArray
from ..data.dataset import Dataset
from ..engine import Engine
from ..errors import DegenerateDataError
from ..metrics.base import dense_points
from ..metrics.les import LES
from ..operators.pointcloud import squared_norms
from . import energy, kolmogorov
from .partition import MOST_BLOCKS, describe_blocks, take_blocks

SHAPE, KERNELS, FEATURES = "les", ("edistance", "mmd"), "ks"
_MOST_PERMUTATIONS = 1_000_000  # 10 s for 400 blocks
SMALLEST_LEVEL = 1.0 / _MOST_PERMUTATIONS


@dataclass(frozen=True)
class Reading:
    """What one instrument finds in one batch.

    Attributes
    ----------
    name
        `les`, `edistance`, `mmd` or `ks`.
    p_value, threshold
        The batch has drifted if the p-value is at most the threshold, the share of alpha that
        this instrument has in this check.
    score
        The distance from the reference: of the mean signatures (corrected for noise where the
        batch has several blocks), of the kernel means, or the largest Kolmogorov-Smirnov
        statistic of a feature.
    smallest_p_value
        The smallest that the numbers of blocks and permutations allow.
    n_blocks, block_size
        Of the batch.
    by_feature
        The p-values of the features after Holm's adjustment, (d,); `ks` only.
    """

    name: str
    p_value: float
    threshold: float
    score: float
    smallest_p_value: float
    n_blocks: int
    block_size: int
    by_feature: FloatArray | None = field(default=None, repr=False, compare=False)

    @property
    def is_drift(self) -> bool:
        """Whether the p-value is at most the threshold."""
        return self.p_value <= self.threshold


def n_permutations_for(level: float) -> int:
    """Return how many random permutations a test at this level gets.

    A thousand or more, such that p-values of a fifth of the level can be reached.
    """
    return min(max(1000, math.ceil(5.0 / level)), _MOST_PERMUTATIONS) - 1


def smallest_p_value(n_reference: int, n_batch: int, level: float) -> float:
    """Return the smallest p-value that these numbers of items allow at this level."""
    if n_batch == 1:
        return 1.0 / (n_reference + 1)
    n_distinct = energy.Design.of(n_batch, n_reference).n_labellings
    return 1.0 / min(n_distinct, n_permutations_for(level) + 1)


class Instrument(ABC):
    """One way to compare a batch with the reference."""

    name: str

    @abstractmethod
    def smallest(self, n_rows: int, level: float) -> float:
        """Return the smallest p-value of a batch of this many rows; infinite for too few."""

    @abstractmethod
    def read(self, batch: Dataset, level: float, seed: int, engine: Engine) -> Reading:
        """Return what the instrument finds in a batch, which is preprocessed and scaled."""

    @abstractmethod
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what is stored of the reference."""


@dataclass(eq=False)
class BlockInstrument(Instrument):
    """An instrument whose items are blocks of rows, with squared distances between them."""

    size: int  # rows of a block
    squared: FloatArray  # between the items of the reference, (n, n)
    most: ClassVar[int] = MOST_BLOCKS  # blocks of a batch

    @property
    def n_items(self) -> int:
        """The number of items of the reference."""
        return len(self.squared)

    def smallest(self, n_rows: int, level: float) -> float:
        """Return the smallest p-value of a batch of this many rows; infinite for too few."""
        n_blocks = min(n_rows // self.size, self.most)
        return smallest_p_value(self.n_items, n_blocks, level) if n_blocks else math.inf

    @abstractmethod
    def distances(self, blocks: Dataset, seed: int, engine: Engine) -> tuple[FloatArray, ...]:
        """Return the squared distances within the batch, (k, k), and to the reference, (k, n)."""

    def read(self, batch: Dataset, level: float, seed: int, engine: Engine) -> Reading:
        """Return what the instrument finds in a batch: by full conformal, or by permutations.

        One block: the score of each of the n + 1 blocks is its distance from the mean of all,
        and the p-value is the share of scores at least as large as that of the batch (Vovk,
        Gammerman and Shafer, 2005). Several blocks: the permutation test of `permutation_test`.
        """
        k = min(batch.n_samples // self.size, self.most)
        rows = batch.generator(seed).permutation(batch.n_samples)[: k * self.size]
        own, across = self.distances(batch.take(rows), seed, engine)
        pooled = np.block([[own, across], [across.T, self.squared]])
        smallest = smallest_p_value(self.n_items, k, level)
        if k == 1:
            to_mean = pooled.mean(axis=1) - 0.5 * pooled.mean()
            p_value = energy.p_value(float(to_mean[0]), to_mean, is_exact=True)
            observed = float(to_mean[0])
        else:
            observed, p_value = self._permuted(pooled, k, level, seed)
        score = math.sqrt(max(observed, 0.0))
        return Reading(self.name, p_value, level, score, smallest, k, self.size)

    def _permuted(
        self, pooled: FloatArray, k: int, level: float, seed: int
    ) -> tuple[float, float]:
        """Return the statistic of the first k items, and its p-value under permutations.

        Permutations are drawn until the p-value p of those so far is above a limit: ten times the
        level, or 20 statistics as large as the observed one. The limit falls with their number.
        The test stays valid: with the first number whose limit is at most t, p ≤ t at the end
        only if p ≤ t was true then.
        """
        design, number = energy.Design.of(k, self.n_items), n_permutations_for(level)
        observed = float(energy.statistic(pooled, design.observed[None], design)[0])
        if design.n_labellings <= number + 1:
            labels, _ = design.labellings(number + 1, np.random.default_rng(seed))
            null = energy.statistic(pooled, labels, design)
            return observed, energy.p_value(observed, null, is_exact=True)
        n_drawn, n_as_large, p_value = 0, 0, 0.0
        while n_drawn < number and p_value <= max(10.0 * level, 20 / (n_drawn + 1)):
            labels = _permutations(k, self.n_items, seed, n_drawn)[: number - n_drawn]
            null = energy.statistic(pooled, labels, design)
            n_as_large += energy.n_as_large(observed, null)
            n_drawn += len(labels)
            p_value = (n_as_large + 1) / (n_drawn + 1)
        return observed, p_value


@lru_cache(maxsize=16)  # those of a check at a usual level, by two instruments
def _permutations(n_first: int, n_second: int, seed: int, start: int) -> energy.Labels:
    """Return random permutations from number `start` on: as many again, from 200 to 1000."""
    rng = np.random.default_rng([seed, n_first, n_second, start])
    number = min(max(start, 200), 1000)
    return energy.Design.of(n_first, n_second).labellings(number, rng)[0]


@dataclass(eq=False)
class Shape(BlockInstrument):
    """Block signatures."""

    method: LES
    vectors: FloatArray  # of the blocks of the reference, (n, K)
    name = SHAPE

    @staticmethod
    def of(method: LES, vectors: FloatArray, size: int) -> Shape:
        """Return the instrument of given signatures."""
        return Shape(size, cdist(vectors, vectors, "sqeuclidean"), method, vectors)

    @staticmethod
    def fit(
        method: LES, reference: Dataset, rows: IndexArray, size: int, seed: int, engine: Engine
    ) -> Shape:
        """Return the instrument of consecutive blocks of these rows."""
        blocks = take_blocks(reference, rows, size)
        return Shape.of(method, _signatures(method, blocks, seed, engine), size)

    def distances(self, blocks: Dataset, seed: int, engine: Engine) -> tuple[FloatArray, ...]:
        """Return the squared distances within the batch, (k, k), and to the reference, (k, n)."""
        parts = take_blocks(blocks, np.arange(blocks.n_samples), self.size)
        vectors = _signatures(self.method, parts, seed, engine)
        return (
            cdist(vectors, vectors, "sqeuclidean"),
            cdist(vectors, self.vectors, "sqeuclidean"),
        )

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the signatures."""
        return {"vectors": self.vectors}


def _signatures(method: LES, blocks: list[Dataset], seed: int, engine: Engine) -> FloatArray:
    return np.stack([s.values for s in describe_blocks(method, blocks, seed, engine)[1]])


@dataclass(eq=False)
class Kernel(BlockInstrument):
    r"""The energy distance or the maximum mean discrepancy of blocks of rows.

    .. math:: d_{ij}^2 = 2 \bar\rho_{ij} - \bar\rho_{ii} - \bar\rho_{jj}

    with the mean of ρ(x, y) over the rows of two blocks; ρ is ‖x - y‖ (Székely and Rizzo, 2013)
    or :math:`-e^{-\|x - y\|^2 / (2 h^2)}` (Gretton et al., 2012). Blocks are small, so that few
    rows allow many permutations; those of larger batches are joined to save time.
    """

    name: str
    points: FloatArray  # the rows of the reference, (n size, d)
    width: float  # h of `mmd`
    means: FloatArray  # of ρ between the blocks of the reference, (n, n)
    _joined: dict[int, Kernel] = field(default_factory=dict, init=False, repr=False)

    @staticmethod
    def of(name: str, points: FloatArray, size: int, width: float, means: FloatArray) -> Kernel:
        """Return the instrument of given means."""
        squared = _embedded(means, means.diagonal(), means.diagonal())
        return Kernel(size, squared, name, points[: len(means) * size], width, means)

    @staticmethod
    def fit(name: str, points: FloatArray, size: int, width: float) -> Kernel:
        """Return the instrument of consecutive blocks of points."""
        points = points[: len(points) // size * size]
        means = _block_means(name, width, size, points, points)
        return Kernel.of(name, points, size, width, means)

    def smallest(self, n_rows: int, level: float) -> float:
        """Return the smallest p-value of a batch of this many rows; infinite for too few."""
        return super(Kernel, self._for(n_rows)).smallest(n_rows, level)

    def read(self, batch: Dataset, level: float, seed: int, engine: Engine) -> Reading:
        """Return what the instrument finds in a batch, with blocks joined for a large one."""
        return super(Kernel, self._for(batch.n_samples)).read(batch, level, seed, engine)

    def _for(self, n_rows: int) -> Kernel:
        """Return the instrument with the size of blocks for a batch of this many rows.

        Blocks are joined while the reference keeps 100 of them, and the batch 8.
        """
        factor = 1
        while self.n_items // (2 * factor) >= 100 and n_rows // (2 * factor * self.size) >= 8:
            factor *= 2
        if factor not in self._joined:
            n = self.n_items // factor
            means = self.means[: n * factor, : n * factor].reshape(n, factor, n, factor)
            self._joined[factor] = Kernel.of(
                self.name, self.points, factor * self.size, self.width, means.mean(axis=(1, 3))
            )
        return self._joined[factor]

    def distances(self, blocks: Dataset, seed: int, engine: Engine) -> tuple[FloatArray, ...]:
        """Return the squared distances within the batch, (k, k), and to the reference, (k, n)."""
        batch = dense_points(blocks)
        own = _block_means(self.name, self.width, self.size, batch, batch)
        across = _block_means(self.name, self.width, self.size, batch, self.points)
        if not (np.isfinite(own).all() and np.isfinite(across).all()):
            raise DegenerateDataError(
                f"{blocks.label} has values so large that its distances overflow. Rescale it."
            )
        within, reference = own.diagonal(), self.means.diagonal()
        return _embedded(own, within, within), _embedded(across, within, reference)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the means of ρ; the points are those of the monitor."""
        return {"means": self.means}


def _block_means(
    name: str, width: float, size: int, first: FloatArray, second: FloatArray
) -> FloatArray:
    """Return the mean of ρ over the rows of every pair of blocks, (n, m)."""
    n, m = len(first) // size, len(second) // size
    found = np.empty((n, m))
    step = max(1, (1 << 20) // (size * len(second)))  # 8 MiB of distances at a time
    with np.errstate(over="ignore", invalid="ignore"):  # checked by the caller
        for start in range(0, n, step):
            part = first[start * size : (start + step) * size]
            values = _dissimilarity(name, width, part, second)
            found[start : start + step] = values.reshape(-1, size, m, size).mean(axis=(1, 3))
    return found


def _dissimilarity(name: str, width: float, first: FloatArray, second: FloatArray) -> FloatArray:
    # Cancellation matters for rows that are nearly equal, whose distances are small anyway.
    squared = first @ (-2.0 * second.T)
    squared += squared_norms(first)[:, None]
    squared += squared_norms(second)
    np.maximum(squared, 0.0, out=squared)
    if name == "edistance":
        return np.sqrt(squared, out=squared)
    squared /= -2.0 * width**2
    return -np.exp(squared, out=squared)


def _embedded(means: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    return np.asarray(np.maximum(2.0 * means - first[:, None] - second, 0.0))


@dataclass(eq=False)
class Features(Instrument):
    """The Kolmogorov-Smirnov test of every feature, with Holm's adjustment."""

    points: FloatArray  # of the reference, every column sorted, (n, d)
    name = FEATURES

    def smallest(self, n_rows: int, level: float) -> float:
        """Return the smallest p-value of a batch of this many rows: for disjoint samples."""
        n, d = self.points.shape
        gaps = np.array([n * n_rows])
        return float(d * kolmogorov.p_values(gaps, n, n_rows, exact_below=1.0)[0])

    def read(self, batch: Dataset, level: float, seed: int, engine: Engine) -> Reading:
        """Return the smallest adjusted p-value, and all of them."""
        n = len(self.points)
        rows = batch.generator(seed).permutation(batch.n_samples)[:n]
        values = np.sort(dense_points(batch.take(rows)), axis=0)
        m = len(values)
        gaps = kolmogorov.largest_gaps(self.points, values)
        found = kolmogorov.p_values(gaps, n, m, exact_below=2.0 * level)
        by_feature, _ = energy.adjusted(found)
        p_value, score = float(by_feature.min()), float(gaps.max()) / (n * m)
        return Reading(self.name, p_value, level, score, self.smallest(m, level), m, 1, by_feature)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return nothing: the points are those of the monitor."""
        return {}
