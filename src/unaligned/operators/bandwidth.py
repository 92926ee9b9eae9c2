"""Rules for the kernel scale σ²."""

from __future__ import annotations

import numpy as np

from .._check import FloatArray
from ..errors import DegenerateDataError


def median_of_all_pairs(condensed: FloatArray, n_samples: int) -> float:
    """Return the median of the N×N matrix whose upper triangle is `condensed`.

    The zero diagonal is included, as in the authors' code: N zeros come first in the sorted
    matrix, then every off-diagonal value twice. `condensed`, (N(N-1)/2,), is reordered in
    place; O(N²) time, no copy.

    Examples
    --------
    >>> median_of_all_pairs(np.array([1.0, 4.0, 9.0]), 3)
    1.0
    """
    total = n_samples * n_samples
    ranks = sorted({(total - 1) // 2, total // 2})
    positions = [(rank - n_samples) // 2 for rank in ranks if rank >= n_samples]
    if positions:
        condensed.partition(positions)
    middle = [float(condensed[p]) for p in positions]
    return sum(middle) / len(ranks)


def scale_from_condensed(
    condensed: FloatArray, n_samples: int, bandwidth: str | float, bandwidth_factor: float
) -> float:
    """Return σ² from the squared distances of all pairs; a number is σ² itself."""
    if not isinstance(bandwidth, str):
        return float(bandwidth)
    if bandwidth == "mean":
        centre = 2.0 * float(condensed.sum()) / n_samples**2
    else:
        centre = median_of_all_pairs(condensed, n_samples)
    return checked_scale(bandwidth_factor * centre, bandwidth)


def checked_scale(sigma_squared: float, bandwidth: str) -> float:
    """Refuse a scale that is zero or not finite, saying what the data must look like."""
    if not np.isfinite(sigma_squared):
        raise DegenerateDataError(
            "The squared distances between points overflow. Rescale the data: "
            "the distance does not depend on the unit."
        )
    if sigma_squared <= 0:
        remedy = (
            "Remove the duplicates, or give bandwidth='mean' or a number (σ² itself)."
            if bandwidth == "median"
            else "There is nothing to compare; leave this dataset out."
        )
        what = (
            "The median distance between points is 0: half of all pairs or more are duplicates."
            if bandwidth == "median"
            else "All points are equal."
        )
        raise DegenerateDataError(f"{what} {remedy}")
    return sigma_squared
