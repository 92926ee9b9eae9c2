"""The Kolmogorov-Smirnov test against SciPy, and its conservative parts."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from unaligned.inference.kolmogorov import largest_gaps, p_values


def both(x, y):
    """Return statistics and p-values of every column, ours and SciPy's exact ones."""
    n, m = len(x), len(y)
    gaps = largest_gaps(np.sort(x, axis=0), np.sort(y, axis=0))
    found = p_values(gaps, n, m, exact_below=1.0)
    return gaps / (n * m), found, ks_2samp(x, y, method="exact")


@pytest.mark.parametrize(("n", "m"), [(5, 7), (40, 40), (90, 31), (200, 12), (300, 120)])
def test_statistic_and_p_value_are_those_of_scipy(n, m):
    rng = np.random.default_rng([n, m])
    x, y = rng.normal(size=(n, 8)), rng.normal(size=(m, 8)) + np.linspace(0, 0.8, 8)
    statistic, found, expected = both(x, y)
    np.testing.assert_allclose(statistic, expected.statistic, atol=1e-14)
    np.testing.assert_allclose(found, expected.pvalue, rtol=1e-6, atol=2e-10)


def test_ties_count_once():
    x, y = np.array([[0.0], [0.0], [1.0]]), np.array([[0.0], [1.0], [1.0], [1.0]])
    assert largest_gaps(x, y).tolist() == [round(12 * ks_2samp(x, y).statistic[0])]


def test_ties_make_the_p_value_conservative():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(400):
        x, y = rng.integers(3, size=(40, 1)), rng.integers(3, size=(25, 1))
        gaps = largest_gaps(np.sort(x, axis=0), np.sort(y, axis=0))
        found.append(p_values(gaps, 40, 25, exact_below=1.0)[0])
    assert np.mean(np.array(found) <= 0.05) <= 0.05


def test_far_tails_are_bounded_from_above():
    gaps = np.array([60 * 50, 60 * 50 // 2])
    found = p_values(gaps, 60, 50, exact_below=1.0)
    x, y = np.arange(60.0), np.arange(50.0) + 1000
    assert 0 < found[0] < 1e-9
    assert found[0] >= ks_2samp(x, y, method="exact").pvalue


def test_large_p_values_are_close_to_the_exact_ones():
    gaps = np.array([100 * 80 // 10])
    limit, exact = (p_values(gaps, 100, 80, exact_below=below)[0] for below in (0.0, 1.0))
    assert limit == pytest.approx(exact, rel=0.1)
    assert limit >= exact
