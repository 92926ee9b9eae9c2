"""The energy statistic of two samples of blocks: permutations, p-value and interval."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from .._check import FloatArray, IndexArray

Labels = npt.NDArray[np.bool_]

_BATCH_VALUES = 1 << 22  # 32 MiB of random numbers or labels as floats at a time


@dataclass(frozen=True, eq=False)
class Design:
    """Which items belong to which sample, and which of them belong together.

    Items 0 … n_first - 1 are the first sample, the following n_second the second. Each row of
    `pairs`, (P, 2), is an item of the first sample and the one of the second that came from the
    same group; permutations exchange them with each other only.
    """

    n_first: int
    n_second: int
    pairs: IndexArray

    @staticmethod
    def of(n_first: int, n_second: int) -> Design:
        """Return the design of two samples without pairs."""
        return Design(n_first, n_second, np.empty((0, 2), dtype=np.int64))

    def exchanged(self) -> Design:
        """Return the design with the second sample first."""
        first, second = self.pairs.T
        pairs = np.stack([second - self.n_first, first + self.n_second], axis=1)
        return Design(self.n_second, self.n_first, pairs)

    @property
    def n_items(self) -> int:
        """The number of items of both samples."""
        return self.n_first + self.n_second

    @property
    def is_balanced(self) -> bool:
        """Whether exchanging the samples as a whole is a permutation, with the same statistic."""
        return self.n_first == self.n_second

    @property
    def observed(self) -> Labels:
        """The labels as they are, (n,): True for the first sample."""
        return np.arange(self.n_items) < self.n_first

    @property
    def n_labellings(self) -> int:
        """The number of distinct permutations, those of exchanged samples counted once."""
        n_free = self.n_items - 2 * len(self.pairs)
        n_all: int = math.comb(n_free, self.n_first - len(self.pairs)) << len(self.pairs)
        return n_all // 2 if self.is_balanced else n_all

    def labellings(self, n_permutations: int, rng: np.random.Generator) -> tuple[Labels, bool]:
        """Return labels, one permutation per row, and whether they are all there are.

        All distinct ones where there are at most `n_permutations`, else that many random ones.
        """
        if self.n_labellings <= n_permutations:
            return self._all(), True
        labels = np.zeros((n_permutations, self.n_items), dtype=bool)
        step = max(1, _BATCH_VALUES // self.n_items)
        for start in range(0, n_permutations, step):
            self._draw(labels[start : start + step], rng)
        return labels, False

    @property
    def _free(self) -> IndexArray:
        return np.setdiff1d(np.arange(self.n_items), self.pairs)

    def _draw(self, labels: Labels, rng: np.random.Generator) -> None:
        """Fill rows of labels, which are False, with random permutations."""
        n, free, rows = self.n_first - len(self.pairs), self._free, np.arange(len(labels))[:, None]
        if n:
            order = np.argpartition(rng.random((len(labels), free.size)), n - 1, axis=1)
            labels[rows, free[order[:, :n]]] = True
        if len(self.pairs):
            swap = rng.integers(2, size=(len(labels), len(self.pairs)))
            labels[rows, np.where(swap, self.pairs[:, 1], self.pairs[:, 0])] = True

    def _all(self) -> Labels:
        free, n = self._free, self.n_first - len(self.pairs)
        sides = product(*self.pairs.tolist())
        chosen = [[*among, *side] for side in sides for among in combinations(free.tolist(), n)]
        labels = np.zeros((len(chosen), self.n_items), dtype=bool)
        np.put_along_axis(labels, np.array(chosen), True, axis=1)
        return labels[labels[:, 0]] if self.is_balanced else labels


def statistic(squared: FloatArray, labels: Labels | FloatArray, design: Design) -> FloatArray:
    r"""Return the energy statistic of every labelling, (B,).

    .. math:: U = \overline{M}_{AB} - \tfrac12 \overline{M}_{AA} - \tfrac12 \overline{M}_{BB}

    with means over pairs of different items, those of one group in both samples left out. For
    squared Euclidean distances M of vectors this is :math:`\|\bar s - \bar t\|^2 - \mathrm{tr}\,
    \mathrm{cov}(s)/n_s - \mathrm{tr}\, \mathrm{cov}(t)/n_t`, an unbiased estimate of the squared
    distance of the means; for other distances M it is half of the energy distance (Székely and
    Rizzo, 2013). O(B n²) time.

    Parameters
    ----------
    squared
        M, (n, n), symmetric; its diagonal is ignored.
    labels
        Shape (B, n): which items belong to the first sample.

    Examples
    --------
    >>> points = np.array([0.0, 2.0, 10.0, 12.0])
    >>> M, design = np.subtract.outer(points, points) ** 2, Design.of(2, 2)
    >>> statistic(M, design.observed[None], design)
    array([98.])
    """
    n, m, used = design.n_first, design.n_second, squared.copy()
    np.fill_diagonal(used, 0.0)
    first, second = design.pairs.T
    used[first, second] = used[second, first] = 0.0
    row_sums = used.sum(axis=1)
    total = float(row_sums.sum())
    found = []
    for part in _batches(labels):
        within = np.einsum("ij,ij->i", part @ used, part)
        across = part @ row_sums - within
        rest = total - within - 2.0 * across
        found.append(
            across / (n * m - len(first)) - 0.5 * (within / (n * (n - 1)) + rest / (m * (m - 1)))
        )
    return np.concatenate(found)


def _batches(labels: Labels | FloatArray) -> Iterator[FloatArray]:
    step = max(1, _BATCH_VALUES // labels.shape[1])
    for start in range(0, len(labels), step):
        yield labels[start : start + step].astype(np.float64, copy=False)


def p_value(observed: float, null: FloatArray, *, is_exact: bool) -> float:
    """Return the share of the null distribution that is at least as large as `observed`.

    Random permutations count the observed labelling once more, which keeps the test exact (Phipson
    and Smyth, 2010).
    """
    number = n_as_large(observed, null)
    return number / null.size if is_exact else (number + 1) / (null.size + 1)


def n_as_large(observed: float, null: FloatArray) -> int:
    """Return how many values are at least as large as `observed`, or equal but for rounding."""
    rounding = 1e-10 * float(np.abs(null).max(initial=abs(observed)))
    return int((null >= observed - rounding).sum())


def adjusted(p_values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return p-values adjusted by Holm (1979) and by Benjamini and Hochberg (1995)."""
    n, order = p_values.size, np.argsort(p_values, kind="stable")
    rank, holm, hochberg = np.arange(n), np.empty(n), np.empty(n)
    holm[order] = np.minimum(np.maximum.accumulate((n - rank) * p_values[order]), 1.0)
    steps = p_values[order] * n / (rank + 1)
    hochberg[order] = np.minimum(np.minimum.accumulate(steps[::-1])[::-1], 1.0)
    return holm, hochberg


def interval(squared: FloatArray, design: Design, level: float = 0.95) -> tuple[float, float]:
    r"""Return a confidence interval of the squared distance x of the means, clipped at 0.

    The x with :math:`|U - x| \le t \sqrt{4 v x + 2\, \mathrm{tr}\, \Sigma^2}`: Σ is the covariance
    of the difference of means, v its variance in the direction of that difference, and the root
    the standard deviation of U where the squared distance is x. At x = 0 this is a test of no
    difference, so the interval and the permutation test mostly agree. tr Σ² is corrected for its
    bias (Bai and Saranadasa, 1996), and t has the degrees of freedom of the smaller sample.
    """
    centred = squared - squared.mean(axis=0)
    gram = -0.5 * (centred - centred.mean(axis=1)[:, None])
    strata = _strata(design)
    difference = sum(part.sum(axis=0) for part in strata)
    sizes = [len(part) for part in strata]
    deviations = np.concatenate(
        [math.sqrt(n / (n - 1)) * (p - p.mean(axis=0)) for n, p in zip(sizes, strata, strict=True)]
    )
    spread = deviations @ gram @ deviations.T  # the eigenvalues of Σ
    quadratic = float((spread**2).sum())
    for n, stop in zip(sizes, np.cumsum(sizes), strict=True):
        own = spread[stop - n : stop, stop - n : stop]
        size, trace = float((own**2).sum()), float(np.trace(own))
        if n > 2:
            factor = (n - 1) ** 2 / ((n + 1) * (n - 2))
            quadratic += factor * (size - trace**2 / (n - 1)) - size
    length = float(difference @ gram @ difference)
    along = float(((deviations @ gram @ difference) ** 2).sum()) / length if length > 0 else 0.0
    found = length - float(np.trace(spread))
    t = float(stdtrit(min(sizes) - 1, 0.5 + level / 2))
    middle = found + 2.0 * t**2 * along
    half = t * math.sqrt(
        max(4.0 * along * (found + t**2 * along) + 2.0 * max(quadratic, 0.0), 0.0)
    )
    return max(middle - half, 0.0), max(middle + half, 0.0)


def _strata(design: Design) -> list[FloatArray]:
    """Return the independent parts of the difference of means, as coefficients of the items.

    One matrix per stratum (pairs, the rest of the first sample, the rest of the second), one row
    per part. With a single part in some stratum pairs count as independent, which is conservative.
    """
    n, m = design.n_first, design.n_second
    weights = np.diag(np.where(design.observed, 1.0 / n, -1.0 / m))
    if len(design.pairs):
        free = np.setdiff1d(np.arange(n + m), design.pairs)
        first, second = design.pairs.T
        sides = [
            weights[first] + weights[second],
            weights[free[free < n]],
            weights[free[free >= n]],
        ]
        sides = [part for part in sides if len(part)]
        if min(map(len, sides)) > 1:
            return sides
    return [weights[:n], weights[n:]]
