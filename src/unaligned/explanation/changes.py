"""The change of a corrected distance without each candidate, and the noise of that change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .._check import FloatArray
from ..defaults import SIGNIFICANCE

_N_DRAWS = 400  # the 95 % quantile is then that of 93 to 97 %
# The variance of a mean over decks as a share of that of one deck, at least: a few decks of the
# same rows show the rest only roughly.
_LEAST = 0.25
_TINY = 1e-7  # of a distance: rounding


def root(squared: FloatArray) -> FloatArray:
    """Return the distance of an estimated squared distance, 0 where that is negative."""
    return np.sqrt(np.maximum(squared, 0.0))


class Changes(NamedTuple):
    """The distance, and its changes without each of C candidates, (C,) each."""

    distance: float
    change: FloatArray
    noise: FloatArray
    exceeds_noise: npt.NDArray[np.bool_]
    threshold: float  # multiple of the noise that the largest of all reaches by noise alone


class Shifts(NamedTuple):
    """Differences of the mean signatures of two datasets: with everything, then without each.

    `values`, (decks, 1 + C, K), one per deck. `residuals`, (1 + C, N, K), are the deviations of
    all blocks from the mean of their dataset and deck, scaled so that the sum of their outer
    products over N is the covariance of the shift of one deck. It has `freedom` degrees.
    """

    values: FloatArray
    residuals: FloatArray
    freedom: int

    @staticmethod
    def of(decks: Sequence[FloatArray]) -> Shifts:
        """Return the shifts of decks of signatures, (1 + C, 2, n, K) each."""
        values, residuals = [], []
        for deck in decks:
            mean, n = deck.mean(axis=2), deck.shape[2]
            values.append(mean[:, 0] - mean[:, 1])
            scaled = (deck - mean[:, :, None]) / np.sqrt(n * (n - 1.0) * len(decks))
            residuals.append(scaled.reshape(len(deck), 2 * n, -1))
        freedom = sum(2 * (deck.shape[2] - 1) for deck in decks)
        return Shifts(np.array(values), np.concatenate(residuals, axis=1), freedom)

    def spread(self, means: FloatArray) -> FloatArray:
        r"""Return the standard deviation of the change of one deck, (C, B), at (1 + C, K, B).

        To first order that of :math:`u_{-c} \cdot d_{-c} - u \cdot d` for the residuals d and the
        unit vectors u of the means.
        """
        units = means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), _TINY)
        whole = self.residuals[0] @ units[0]
        pairs = zip(self.residuals[1:], units[1:], strict=True)
        return np.array([np.linalg.norm(own @ unit - whole, axis=0) for own, unit in pairs])


def changes_of(decks: Sequence[FloatArray], rng: np.random.Generator) -> Changes:
    r"""Return the change of the corrected distance for every candidate, with its noise.

    U is the size-corrected squared distance of `energy.statistic` and :math:`T_c = U_{-c} - U`,
    of signatures averaged over decks. The change is that of the root,
    :math:`\sqrt{S + T_c} - \sqrt{S}` with S the squared distance before the correction, which
    is positive where U, an estimate, is not: close to 0 a root of U would be all noise.

    The noise of :math:`\|D_{-c}\| - \|D\|` follows to first order from the deviations of blocks
    from their mean, less what lies between partitions of the same rows, which averaging takes
    out. A change exceeds the noise if it is a larger multiple of it than the 95 % quantile of the
    largest of all candidates, where random combinations of the deviations are added to D: a
    studentised bootstrap with Gaussian multipliers.

    Parameters
    ----------
    decks
        Signatures of the blocks of each partition, (1 + C, 2, n, K): with everything, then
        without each candidate. Candidates with NaN have no change; if all have, the threshold is
        NaN.
    """
    known = ~np.isnan(sum(deck.sum(axis=(1, 2, 3)) for deck in decks))
    shifts = Shifts.of([deck[known] for deck in decks])
    mean = shifts.values.mean(axis=0)
    squares, correction, share = _corrections(shifts, mean)
    corrected = squares - (1.0 - share) * correction
    distance, threshold = float(root(corrected[0])), np.nan
    found = [np.full(known.size - 1, fill) for fill in (np.nan, np.nan, False)]
    if len(mean) > 1:
        change = _change(squares[0], corrected)
        noise = np.maximum(_noise(shifts, mean), _TINY)
        threshold = _threshold(shifts, mean, max(1.0 - share, _LEAST), rng)
        own = change, noise, np.abs(change) > threshold * noise
        for place, values in zip(found, own, strict=True):
            place[known[1:]] = values
    return Changes(distance, found[0], found[1], found[2], threshold)


def _change(plain: FloatArray, corrected: FloatArray) -> FloatArray:
    """Return the change for S, (...), and U with everything and without each, (1 + C, ...)."""
    return root(plain + corrected[1:] - corrected[0]) - root(plain)


def _corrections(shifts: Shifts, mean: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Return S, (1 + C,), its excess in one deck by noise, and the share of that between decks.

    Averaging over partitions of the same rows takes most of the noise between partitions out of
    the mean signatures, and so out of their squared distance. The share of that noise is taken
    as common to all candidates, with and without which the distances are compared.
    """
    squares, between = (mean**2).sum(axis=1), shifts.values.var(axis=0).sum(axis=1)
    correction = (shifts.residuals**2).sum(axis=(1, 2))
    weights = np.r_[max(len(mean) - 1.0, 1.0), np.ones(len(mean) - 1)]
    total = float(weights @ correction)
    share = float(np.clip(weights @ between / total, 0.0, 1.0)) if total else 0.0
    return squares, correction, share


def _noise(shifts: Shifts, mean: FloatArray) -> FloatArray:
    """Return the standard error of the change of every candidate, (C,)."""
    spread = shifts.spread(mean[:, :, None])[:, 0]
    units = mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), _TINY)
    along = np.einsum("dck,ck->dc", shifts.values, units)
    between = float((along[:, 1:] - along[:, :1]).var(axis=0).sum())
    total = float((spread**2).sum())
    gain = max(1.0 - between / total, _LEAST) if total else 1.0
    return np.asarray(spread * np.sqrt(gain))


def _threshold(shifts: Shifts, mean: FloatArray, gain: float, rng: np.random.Generator) -> float:
    """Return the multiple of the noise that the largest of all changes reaches by noise alone.

    `gain` is the variance of a mean over decks as a share of that of one deck.
    """
    residuals = np.sqrt(gain) * shifts.residuals
    weights = rng.normal(size=(residuals.shape[1], _N_DRAWS))
    moved = mean[:, :, None] + residuals.transpose(0, 2, 1) @ weights
    squares, truth = (moved**2).sum(axis=1), (mean**2).sum(axis=1)
    corrected = squares - (residuals**2).sum(axis=(1, 2))[:, None]
    error = _change(squares[0], corrected) - _change(truth[0], truth)[:, None]
    # The noise is an estimate too, with its degrees of freedom.
    scale = gain * rng.chisquare(shifts.freedom, size=_N_DRAWS) / shifts.freedom
    noise = np.maximum(np.sqrt(scale) * shifts.spread(moved), _TINY)
    return float(np.quantile(np.abs(error / noise).max(axis=0), 1.0 - SIGNIFICANCE))
