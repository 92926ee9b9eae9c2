"""The energy statistic against its definition and SciPy's permutation test."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import cdist

from unaligned.inference.energy import Design, interval, p_value, statistic

NONE = np.empty((0, 2), dtype=np.int64)


def squares(*samples):
    points = np.concatenate(samples)
    return cdist(points, points, "sqeuclidean")


def corrected(first, second):
    """The issue's U, from the means and covariances."""
    gap = first.mean(axis=0) - second.mean(axis=0)
    noise = [s.var(axis=0, ddof=1).sum() / len(s) for s in (first, second)]
    return gap @ gap - sum(noise)


@pytest.mark.parametrize(("n", "m"), [(5, 5), (3, 8), (2, 4)])
def test_the_statistic_is_the_corrected_squared_distance_of_means(n, m):
    rng = np.random.default_rng(n)
    first, second = rng.normal(size=(n, 4)), rng.normal(size=(m, 4)) + 1
    design = Design(n, m, NONE)
    found = statistic(squares(first, second), design.observed[None], design)
    assert found[0] == pytest.approx(corrected(first, second))


def test_pairs_give_the_corrected_mean_of_differences():
    rng = np.random.default_rng(0)
    base = 10 * rng.normal(size=(6, 3))
    first, second = base + rng.normal(size=(6, 3)), base + rng.normal(size=(6, 3))
    design = Design(6, 6, np.c_[np.arange(6), 6 + np.arange(6)])
    found = statistic(squares(first, second), design.observed[None], design)
    gaps = first - second
    mean = gaps.mean(axis=0)
    assert found[0] == pytest.approx(mean @ mean - gaps.var(axis=0, ddof=1).sum() / 6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n", "m"), [(4, 4), (3, 5)])
def test_the_p_value_is_that_of_scipy(n, m, seed):
    rng = np.random.default_rng(seed)
    first, second = rng.normal(size=(n, 3)), rng.normal(size=(m, 3)) + 0.7
    points, design = np.concatenate([first, second]), Design(n, m, NONE)

    def of_rows(i, j):
        return corrected(points[i.astype(int)], points[j.astype(int)])

    theirs = stats.permutation_test(
        (np.arange(n), n + np.arange(m)), of_rows, alternative="greater", n_resamples=np.inf
    )
    labels, is_exact = design.labellings(9999, np.random.default_rng(0))
    null = statistic(squares(first, second), labels, design)
    found = statistic(squares(first, second), design.observed[None], design)[0]
    assert is_exact
    assert found == pytest.approx(theirs.statistic)
    assert p_value(found, null, is_exact=True) == pytest.approx(theirs.pvalue)


@pytest.mark.parametrize("seed", range(3))
def test_the_p_value_of_pairs_is_that_of_scipy(seed):
    rng = np.random.default_rng(seed)
    first, second = rng.normal(size=(6, 2)), rng.normal(size=(6, 2)) + 0.5
    design = Design(6, 6, np.c_[np.arange(6), 6 + np.arange(6)])

    def of_signs(i, j):
        gaps = np.concatenate([first, second])
        gaps = gaps[i.astype(int)] - gaps[j.astype(int)]
        mean = gaps.mean(axis=0)
        return mean @ mean - gaps.var(axis=0, ddof=1).sum() / 6

    sides = (np.arange(6), 6 + np.arange(6))
    theirs = stats.permutation_test(
        sides, of_signs, permutation_type="samples", alternative="greater", n_resamples=np.inf
    )
    labels, is_exact = design.labellings(9999, np.random.default_rng(0))
    null = statistic(squares(first, second), labels, design)
    found = statistic(squares(first, second), design.observed[None], design)[0]
    assert is_exact
    assert len(labels) == 2**5
    assert p_value(found, null, is_exact=True) == pytest.approx(theirs.pvalue)


@pytest.mark.parametrize(
    ("design", "number"),
    [
        (Design(3, 3, NONE), 10),
        (Design(3, 4, NONE), 35),
        (Design(4, 4, np.array([[0, 4], [1, 5]])), 2**2 * math.comb(4, 2) // 2),
        (Design(3, 2, np.array([[2, 3]])), 2 * math.comb(3, 2)),
    ],
)
def test_all_distinct_labellings_are_enumerated_once(design, number):
    labels, is_exact = design.labellings(9999, np.random.default_rng(0))
    assert is_exact
    assert design.n_labellings == len(labels) == len(np.unique(labels, axis=0)) == number
    assert (labels.sum(axis=1) == design.n_first).all()
    assert (labels == design.observed).all(axis=1).any()
    for first, second in design.pairs:
        assert (labels[:, first] != labels[:, second]).all()


@pytest.mark.parametrize("pairs", [NONE, np.array([[0, 9], [3, 12]])], ids=["free", "paired"])
def test_random_labellings_keep_sizes_and_pairs(pairs):
    design = Design(9, 12, pairs)
    labels, is_exact = design.labellings(2000, np.random.default_rng(0))
    assert not is_exact
    assert labels.shape == (2000, 21)
    assert (labels.sum(axis=1) == 9).all()
    for first, second in pairs:
        assert (labels[:, first] != labels[:, second]).all()
    free = np.setdiff1d(np.arange(21), pairs)
    shares = labels[:, free].mean(axis=0)
    np.testing.assert_allclose(shares, (9 - len(pairs)) / free.size, atol=0.06)


def test_rounding_does_not_separate_ties():
    assert p_value(1.0, np.array([1.0 - 1e-13, 0.0, -1.0, 0.5]), is_exact=True) == 0.25
    assert p_value(1.0, np.array([0.0, -1.0, 0.5]), is_exact=False) == 0.25


@pytest.mark.parametrize("shift", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("paired", [False, True])
def test_the_interval_covers_the_squared_distance_of_means(shift, paired):
    design = Design(10, 10, np.c_[np.arange(10), 10 + np.arange(10)] if paired else NONE)
    scales, covered = np.array([2.0, 1.0, 0.3, 0.1, 0.1]), []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        first, second = (scales * rng.normal(size=(10, 5)) for _ in range(2))
        common = 3 * rng.normal(size=(10, 5)) if paired else 0.0
        low, high = interval(squares(first + common, second + common + shift), design)
        covered.append(low <= 5 * shift**2 <= high)
    assert np.mean(covered) > 0.91


def test_a_mixed_design_with_one_free_item_has_an_interval():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(7, 3))
    low, high = interval(squares(points), Design(4, 3, np.array([[0, 4], [1, 5], [2, 6]])))
    assert 0 <= low < high


def test_equal_items_have_a_zero_interval():
    assert interval(np.zeros((6, 6)), Design(3, 3, NONE)) == (0.0, 0.0)
