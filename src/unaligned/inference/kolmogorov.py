"""The two-sample Kolmogorov-Smirnov test of many features at once, exact where it decides."""

from __future__ import annotations

import numpy as np

from .._check import FloatArray, IndexArray


def largest_gaps(reference: FloatArray, batch: FloatArray) -> IndexArray:
    r"""Return n m D of every feature, (d,), where D is the largest difference of the two ECDFs.

    A whole number, so that equal gaps are equal. O(d m log n) time.

    Parameters
    ----------
    reference, batch
        Shapes (n, d) and (m, d); every column sorted.

    Examples
    --------
    >>> largest_gaps(np.array([[1.0], [2.0]]), np.array([[2.5], [3.0], [4.0]]))
    array([6])
    """
    n, m = len(reference), len(batch)
    found = np.zeros(reference.shape[1], dtype=np.int64)
    for column, (old, new) in enumerate(zip(reference.T, batch.T, strict=True)):
        # The ECDF of the batch is constant between its values, so the largest difference is at
        # one of them, or just before one.
        for side in ("left", "right"):
            ranks = np.searchsorted(new, new, side), np.searchsorted(old, new, side)
            gap = int(np.abs(ranks[0] * n - ranks[1] * m).max())
            found[column] = max(found[column], gap)
    return found


def p_values(gaps: IndexArray, n: int, m: int, *, exact_below: float) -> FloatArray:
    r"""Return the p-values of gaps n m D of samples of n and m independent rows.

    Exact for continuous features and conservative for those with ties, where the limit
    :math:`2 \sum_k (-1)^{k-1} e^{-2 k^2 z^2}`, :math:`z^2 = D^2 n m / (n + m)`, is at most
    `exact_below`; the limit itself above. Below 1e-10 the bound :math:`4 e^{-2 D^2 n m / (\sqrt n
    + \sqrt m)^2}`, which follows from Massart (1990) for each of the two samples.

    Examples
    --------
    >>> from scipy.stats import ks_2samp
    >>> first, second = np.arange(9.0), np.arange(12.0) + 3.2
    >>> gaps = largest_gaps(first[:, None], second[:, None])
    >>> bool(np.isclose(p_values(gaps, 9, 12, exact_below=1.0)[0], ks_2samp(first, second).pvalue))
    True
    """
    from scipy.special import kolmogorov

    share = gaps / (n * m)
    found: FloatArray = kolmogorov(share * np.sqrt(n * m / (n + m)))
    exponent = 2.0 * share**2 * n * m / (np.sqrt(n) + np.sqrt(m)) ** 2
    bound = np.maximum(4.0 * np.exp(-exponent), np.finfo(np.float64).tiny)  # never 0
    # Exact tails are 1 - (a sum of probabilities), whose rounding errors stay below this.
    smallest = 1e-10
    chosen = np.flatnonzero((found <= exact_below) & (bound > smallest))
    if chosen.size:
        distinct, places = np.unique(gaps[chosen], return_inverse=True)
        exact = np.maximum(_exact(distinct, *sorted((n, m))), smallest)
        found[chosen] = np.minimum(exact[places], bound[chosen])
    return np.where(bound <= smallest, bound, np.minimum(found, 1.0))


def _exact(gaps: IndexArray, n: int, m: int) -> FloatArray:
    """Return the probability of a gap at least as large, (g,), for n ≤ m rows without ties.

    Orders of the pooled rows are lattice paths from (0, 0) to (n, m). Those whose gaps
    |i m - j n| all stay below the given one are counted row by row (Hodges, 1958), as shares of
    all paths. O(g n m D) time.
    """
    columns = np.arange(m + 1)
    inside = (columns * n < gaps[:, None]).astype(np.float64)
    largest = int(gaps.max())
    for i in range(1, n + 1):
        low, high = max((i * m - largest) // n + 1, 0), min(-(-(i * m + largest) // n), m + 1)
        window = slice(low, high)
        allowed = np.abs(i * m - columns[window] * n) < gaps[:, None]
        paths = np.cumsum(inside[:, window] * allowed * (i / (i + m)), axis=1)
        inside[:, window] = paths * allowed
        inside[:, :low] = 0.0
    return np.asarray(1.0 - inside[:, m])
