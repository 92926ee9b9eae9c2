"""The change of a corrected distance without each candidate, and the noise of that change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from .._check import FloatArray
from ..defaults import SIGNIFICANCE
from ..inference import energy


class Deck(NamedTuple):
    """Squared distances between the blocks of one partition, those of the first dataset first.

    Both arrays have shape (C, n, n): without each of C candidates, and with all. `shifts` are
    the differences of the mean signatures of both datasets, (K,) each, in the same order.
    """

    without: FloatArray
    whole: FloatArray
    shifts: tuple[list[FloatArray], list[FloatArray]]


class Changes(NamedTuple):
    """The distance, and its changes without each of C candidates, (C,) each."""

    distance: float
    change: FloatArray
    noise: FloatArray
    exceeds_noise: npt.NDArray[np.bool_]
    threshold: float  # multiple of the noise that the largest of all reaches by noise alone


def deck_of(whole: Sequence[FloatArray], without: Sequence[FloatArray]) -> Deck:
    """Return the deck of signatures, a sequence over candidates of arrays (n, K)."""
    squared, shifts = [], []
    for found in (without, whole):
        n = len(found[0]) // 2
        squared.append(np.array([cdist(points, points, "sqeuclidean") for points in found]))
        shifts.append([points[:n].mean(axis=0) - points[n:].mean(axis=0) for points in found])
    return Deck(squared[0], squared[1], (shifts[0], shifts[1]))


def corrected(squared: FloatArray) -> FloatArray:
    """Return the distance corrected for noise, the root of U where it is positive."""
    return np.sqrt(np.maximum(squared, 0.0))


def changes_of(decks: Sequence[Deck], rng: np.random.Generator) -> Changes:
    r"""Return the change of the corrected distance for every candidate, with its noise.

    U is the size-corrected squared distance of `energy.statistic` and :math:`T_c = U_{-c} - U`,
    of signatures averaged over decks. The change is that of the root,
    :math:`\sqrt{S + T_c} - \sqrt{S}` with S the squared distance before the correction, which
    is positive where U, an estimate, is not: close to 0 a root of U would be all noise.

    The noise of :math:`T_c` is the larger of its standard deviation over permutations of the
    blocks (what it is where nothing differs) and of the jackknife over blocks (where something
    does), divided by the sum of the two roots, which makes it that of the change.

    A candidate exceeds the noise if :math:`|T_c|` is larger than the noise times the 95 %
    quantile of the largest standardised :math:`|T_c|` of all candidates under permutations
    (Westfall and Young, 1993). Decks of one dataset share its rows, so their mean is less noisy
    than one of them, and the mark is conservative.
    """
    known = ~np.isnan(sum(deck.without.sum(axis=(1, 2)) for deck in decks))
    observed, null, variance = [], [], np.zeros(int(known.sum()))
    for deck in decks:
        without, whole = deck.without[known], deck.whole[known]
        design = energy.Design.of(*[without.shape[1] // 2] * 2)
        observed.append(
            [_statistics(m, design.observed[None], design)[:, 0] for m in (without, whole)]
        )
        labels, _ = design.labellings(199, rng)  # 5 decks or more give a thousand
        null.append(_statistics(_centred(without - whole), labels, design))
        variance += _jackknife(without - whole) / len(decks)
    values = np.array(observed)  # (decks, 2, C)
    (reduced, full), plain = _pooled(decks, known, values.mean(axis=0))
    permuted = np.concatenate(null, axis=1)
    tiny = 1e-12  # of a squared distance: rounding
    smallest = tiny * (1.0 + np.abs(reduced) + np.abs(full))
    spread = np.maximum(np.sqrt(np.mean(permuted**2, axis=1)), smallest)
    largest = np.abs(permuted / spread[:, None]).max(axis=0)
    threshold = float(np.quantile(largest, 1.0 - SIGNIFICANCE))
    noise = np.sqrt(np.maximum(spread**2, variance) * _gain(values[:, 0] - values[:, 1], spread))
    difference = reduced - full
    sums = np.maximum(corrected(plain + difference) + corrected(plain), np.sqrt(tiny))
    change, exceeds = difference / sums, np.abs(difference) > threshold * noise
    noise = noise / sums
    found = [np.full(known.size, fill) for fill in (np.nan, np.nan, False)]
    for place, own in zip(found, (change, noise, exceeds), strict=True):
        place[known] = own
    return Changes(float(corrected(full).mean()), found[0], found[1], found[2], threshold)


def _pooled(
    decks: Sequence[Deck], known: npt.NDArray[np.bool_], mean: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return U of signatures averaged over decks, (2, C), from `mean`, the mean of U, and S, (C,).

    Averaging over partitions of the same rows takes most of the noise between partitions out of
    the mean signatures, and so out of their squared distance. The correction is lowered by the
    share of that noise in it, which all candidates have in common.
    """
    squares, between = np.zeros_like(mean), np.zeros_like(mean)
    for kind in (0, 1):
        for place, candidate in enumerate(np.flatnonzero(known)):
            shifts = np.array([deck.shifts[kind][candidate] for deck in decks])
            squares[kind, place] = np.sum(shifts.mean(axis=0) ** 2)
            between[kind, place] = np.sum(shifts.var(axis=0))
    correction = squares + between - mean
    share = np.clip(between.sum() / correction.sum(), 0.0, 1.0) if correction.any() else 0.0
    return squares - (1.0 - share) * correction, squares[1]


def _statistics(matrices: FloatArray, labels: energy.Labels, design: energy.Design) -> FloatArray:
    return np.array([energy.statistic(matrix, labels, design) for matrix in matrices])


def _centred(matrices: FloatArray) -> FloatArray:
    """Return the squared distances after the mean of each dataset is subtracted, (C, 2 n, 2 n).

    Permutations then show noise alone, also where the datasets differ. Residuals are smaller than
    errors by the factor (n - 1) / n of their squares.
    """
    n = matrices.shape[1] // 2
    projection = np.eye(2 * n) - np.kron(np.eye(2), np.full((n, n), 1.0 / n))
    gram = -0.5 * projection @ matrices @ projection * (n / (n - 1))
    own = np.diagonal(gram, axis1=1, axis2=2)
    return np.asarray(own[:, :, None] + own[:, None, :] - 2.0 * gram)


def _gain(values: FloatArray, spread: FloatArray) -> FloatArray:
    """Return the variance of a mean over decks as a share of that of one deck, (C,).

    The variance of one deck is that of the mean of all partitions plus that between partitions
    of the same data, which `values`, (decks, C), show. At least a quarter, as the estimate is
    rough.
    """
    n_decks = len(values)
    if n_decks == 1:
        return np.ones(values.shape[1])
    between = values.var(axis=0, ddof=1) * (1.0 - 1.0 / n_decks)
    return np.asarray(np.clip(1.0 - between / spread**2, 0.25, 1.0))


def _jackknife(difference: FloatArray) -> FloatArray:
    """Return the variance of T of every candidate over blocks left out one at a time, (C,)."""
    n = difference.shape[1] // 2
    total = np.zeros(len(difference))
    for side in (0, 1):
        design = energy.Design.of(n - (side == 0), n - (side == 1))
        values = []
        for left_out in range(side * n, (side + 1) * n):
            kept = np.delete(np.arange(2 * n), left_out)
            rest = difference[:, kept[:, None], kept]
            values.append(_statistics(rest, design.observed[None], design)[:, 0])
        found = np.array(values)
        total += (n - 1) / n * ((found - found.mean(axis=0)) ** 2).sum(axis=0)
    return total
