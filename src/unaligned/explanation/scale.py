"""Named quantities of two spectra: by="scale"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student

from .._check import FloatArray, IndexArray
from ..data.dataset import Dataset
from ..defaults import SIGNIFICANCE
from ..engine import check_stop
from ..errors import about
from ..operators.bandwidth import estimate_scale
from .blocks import Request, affinity_of, eigenvalues_of, read_block
from .changes import root
from .decades import decade_shares
from .quantities import Quantity, ScaleExplanation


class BlockScales(NamedTuple):
    """What one block gives: log(λ + γ), σ, and the named numbers."""

    values: FloatArray
    sigma: float
    numbers: tuple[float, float, float]


def explain_scale(request: Request) -> ScaleExplanation:
    """Return the named quantities of both spectra; see `explain`."""
    done = request.run(block_scales, request)
    sides: tuple[list[BlockScales], list[BlockScales]] = done[::2], done[1::2]
    decks = list(request.plan.decks(len(sides[0])))
    numbers = [_estimate([block.numbers for block in side], decks) for side in sides]
    spectra = [_estimate([block.values for block in side], decks) for side in sides]
    quantities = [
        _quantity(name, [each.item(i) for each in numbers])
        for i, name in enumerate(("components", "gap", "effective rank"))
    ]
    n_rows = min(3000, *(dataset.n_samples for dataset in request.datasets))  # 72 MB
    dimensions = [dimension(dataset, n_rows, request.seed) for dataset in request.datasets]
    quantities.append(_quantity("dimension", dimensions))
    n_groups = max(round(value) for value in quantities[0].values)
    parting, length = _parting(sides, decks, n_groups)
    means = np.array([each.value for each in spectra])
    first, second = request.datasets
    return ScaleExplanation(
        names=(str(first.name), str(second.name)),
        n_samples=(first.n_samples, second.n_samples),
        distance=_distance(spectra),
        quantities=(*quantities, length),
        parting=parting,
        decades=tuple(decade_shares(means[0], means[1])),
        spectra=means,
        errors=np.array([each.half_width() for each in spectra]),
        block_size=request.plan.size,
        n_blocks=len(sides[0]),
        is_complete=len(done) == 2 * len(request.plan.rows[0]),
    )


class Estimate(NamedTuple):
    """Means over blocks, their standard errors, and the degrees of freedom of these."""

    value: FloatArray
    error: FloatArray
    degrees: int

    def item(self, i: int) -> Estimate:
        """Return the i-th of several numbers."""
        return Estimate(self.value[i], self.error[i], self.degrees)

    def half_width(self) -> FloatArray:
        """Return half the width of the 95 % interval."""
        return np.asarray(student.ppf(1.0 - SIGNIFICANCE / 2.0, self.degrees) * self.error)


def _estimate(blocks: Sequence[Any], decks: Sequence[slice]) -> Estimate:
    """Return the mean over blocks; its variance is that of the mean of one deck.

    Decks are partitions of the same rows, so more of them do not make the data larger.
    """
    values = np.array(blocks, dtype=np.float64)
    variances = [values[deck].var(axis=0, ddof=1) / (deck.stop - deck.start) for deck in decks]
    size = decks[0].stop - decks[0].start
    return Estimate(values.mean(axis=0), np.sqrt(np.mean(variances, axis=0)), size - 1)


def _differs(first: Estimate, second: Estimate, level: float = SIGNIFICANCE) -> Any:
    """Return where two estimates differ by more than noise."""
    limit = student.ppf(1.0 - level / 2.0, first.degrees + second.degrees)
    noise = np.sqrt(first.error**2 + second.error**2)
    return np.abs(first.value - second.value) > limit * noise


def _quantity(name: str, sides: Sequence[Estimate]) -> Quantity:
    values = [float(side.value) for side in sides]
    widths = [float(side.half_width()) for side in sides]
    low, high = ([v + sign * w for v, w in zip(values, widths, strict=True)] for sign in (-1, 1))
    differs = bool(_differs(sides[0], sides[1]))
    return Quantity(name, (values[0], values[1]), (low[0], low[1]), (high[0], high[1]), differs)


def _distance(spectra: Sequence[Estimate]) -> float:
    """Return the distance of mean spectra, corrected for their noise."""
    first, second = spectra
    noise = first.error**2 + second.error**2
    return float(root(np.asarray(np.sum((first.value - second.value) ** 2 - noise))))


def _parting(
    sides: tuple[list[BlockScales], list[BlockScales]], decks: Sequence[slice], n_groups: int
) -> tuple[int | None, Quantity]:
    r"""Return the number of the eigenvalue at which spectra part, from 1, and its length.

    A wave of length ℓ has the eigenvalue :math:`\exp(-(\pi\sigma/\ell)^2)` of a Gaussian kernel,
    so :math:`\ell = \pi\sigma / \sqrt{-\log\lambda}`. The interval is that of σ and of the
    numbers found with one block of both left out. That holds within one domain: where either
    dataset has more components and the spectra part beyond their number, `n_groups`, the
    length is NaN.
    """

    def first_of(kept: Sequence[int], own: Sequence[slice]) -> tuple[int | None, list[float]]:
        found = [_estimate([side[i].values for i in kept], own) for side in sides]
        level = SIGNIFICANCE / found[0].value.size
        apart = np.flatnonzero(_differs(found[0], found[1], level))
        if not apart.size:
            return None, [np.nan, np.nan]
        at = int(apart[0])
        if 1 < n_groups <= at:
            return at + 1, [np.nan, np.nan]
        log_value = min(0.5 * (found[0].value[at] + found[1].value[at]), -1e-12)
        sigmas = [np.mean([side[i].sigma for i in kept]) for side in sides]
        return at + 1, [float(np.pi * sigma / np.sqrt(-log_value)) for sigma in sigmas]

    n = len(sides[0])
    parting, lengths = first_of(range(n), decks)
    deck = decks[0]
    others = [
        first_of([i for i in range(deck.stop) if i != left], [slice(0, deck.stop - 1)])[1]
        for left in range(deck.stop)
    ]
    every = np.array([lengths, *others])
    every = every[:1] if np.isnan(lengths[0]) else every[~np.isnan(every[:, 0])]
    (low, other_low), (high, other_high) = every.min(axis=0), every.max(axis=0)
    ends = (float(low), float(other_low)), (float(high), float(other_high))
    is_known = not np.isnan(lengths[0])
    return parting, Quantity("length", (lengths[0], lengths[1]), *ends, is_known)


def block_scales(request: Request, item: tuple[int, IndexArray]) -> BlockScales:
    """Return the signature and the named numbers of one block. O(b³) time."""
    side, rows = item
    with about(request.datasets[side].label):
        squared = read_block(request.datasets[side], rows).squared
        settings = request.settings
        sigma_squared = estimate_scale(squared, settings.kernel).sigma_squared
        affinity = affinity_of(squared, settings.kernel.kernel, sigma_squared)
        eigenvalues = eigenvalues_of(affinity)
    shares = eigenvalues / eigenvalues.sum()
    rank = float(np.exp(-np.sum(shares * np.log(np.where(shares > 0, shares, 1.0)))))
    count, gap = components(squared, sigma_squared, settings.kernel.kernel)
    values = np.log(eigenvalues[: request.n_eigenvalues] + float(settings.gamma))
    return BlockScales(values, float(np.sqrt(sigma_squared)), (float(count), gap, rank))


def components(squared: FloatArray, sigma_squared: float, kernel: str) -> tuple[int, float]:
    """Return the number of well-separated components of points, and the gap that shows it.

    σ² is halved from that of the signature on. At each, rows with hardly a neighbour are left
    out; n components make n eigenvalues near 1, and a gap to the next. The largest n with a gap
    of 0.5 or more at some σ² counts, and its largest gap. Components of fewer than 2 % of the
    rows are not seen. O(b³) time.
    """
    least = max(0.02 * len(squared), 1.0)
    count, widest = 1, 0.0
    for halving in range(10):
        check_stop()
        affinity = affinity_of(squared, kernel, sigma_squared / 2.0**halving)
        kept = np.flatnonzero(affinity.sum(axis=1) - 1.0 >= least)
        if kept.size < 0.9 * len(squared):  # σ² is too small to see components
            break
        found = eigenvalues_of(affinity[np.ix_(kept, kept)])
        gaps = found[:-1] - found[1:]
        # A connected curve has a gap of 0.47 at most after any but the first eigenvalue, since
        # they are x, x⁴, x⁹, ….
        separated = np.flatnonzero((gaps >= 0.5) & (found[:-1] >= 0.8)) + 1
        n = int(separated[-1]) if separated.size else 1
        if n >= count:
            widest = max(float(gaps[n - 1]), widest if n == count else 0.0)
            count = n
    return count, widest


def dimension(dataset: Dataset, n_rows: int, seed: int) -> Estimate:
    r"""Return the intrinsic dimension of points from the growth of a kernel sum.

    :math:`d \log S / d \log \sigma` with :math:`S = \sum_{i \ne j} \exp(-\|x_i - x_j\|^2 /
    2\sigma^2)`, which is :math:`\sum K r^2 / \sigma^2 \sum K` (Coifman, Shkolnisky, Sigworth and
    Singer, 2008), at the σ where S is 2 N by 300 rows: a scale of few neighbours.
    Duplicates do not count.
    The error is twice that over ten parts of the rows: a pair counts from both its ends
    (Hoeffding, 1948). O(N² d) time, 8 N² bytes.
    """
    rows = np.sort(dataset.generator(seed).permutation(dataset.n_samples)[:n_rows])
    squared = read_block(dataset, rows).squared
    squared[squared == 0.0] = np.inf
    sigma_squared = _local_scale(squared[:300])
    affinity = np.exp(squared * (-0.5 / sigma_squared))
    squared[np.isinf(squared)] = 0.0
    growth = np.einsum("ij,ij->i", affinity, squared) / sigma_squared
    sums = affinity.sum(axis=1)
    order = np.random.default_rng(seed).permutation(len(rows))
    parts = [growth[own].sum() / sums[own].sum() for own in np.array_split(order, 10)]
    error = 2.0 * np.std(parts, ddof=1) / np.sqrt(len(parts))
    return Estimate(np.asarray(growth.sum() / sums.sum()), np.asarray(error), len(parts) - 1)


def _local_scale(squared: FloatArray) -> float:
    """Return σ² at which rows have two neighbours on average, weighted by the kernel."""
    finite = squared[np.isfinite(squared)]
    low, high = np.log(finite.min()), np.log(finite.max()) + 5.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        mean = np.exp(squared * (-0.5 / np.exp(middle))).sum(axis=1).mean()
        low, high = (middle, high) if mean < 2.0 else (low, middle)
    return float(np.exp(high))
