"""Fréchet distance against SciPy's matrix root and closed forms."""

import numpy as np
import pytest
from scipy.linalg import hadamard, sqrtm

import unaligned as ua
from unaligned.errors import NotApplicableError

SEEDS = range(4)


def pair(seed, n=60, m=45, d=4):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), 1.5 * rng.normal(size=(m, d)) + 0.5


def textbook_fid(x, y):
    S1, S2 = np.cov(x, rowvar=False), np.cov(y, rowvar=False)
    root = sqrtm(S1 @ S2).real
    return np.sum((x.mean(0) - y.mean(0)) ** 2) + np.trace(S1 + S2 - 2 * root)


@pytest.mark.parametrize("d", [2, 4, 20])
@pytest.mark.parametrize("seed", SEEDS)
def test_frechet_equals_the_textbook(seed, d):
    x, y = pair(seed, d=d)
    assert ua.distance(x, y, "frechet") == pytest.approx(textbook_fid(x, y), rel=1e-8)


def test_frechet_of_one_feature_is_the_difference_of_means_and_deviations():
    x, y = pair(0, d=1)
    expected = (x.mean() - y.mean()) ** 2 + (x.std(ddof=1) - y.std(ddof=1)) ** 2
    assert ua.distance(x, y, "frechet") == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(("n", "m", "d"), [(5, 8, 50), (5, 200, 50), (50, 50, 50), (2, 2, 3)])
def test_frechet_is_stable_for_fewer_samples_than_features(n, m, d):
    # Rotations change nothing, and in a basis of the common span the textbook is small.
    x, y = pair(1, n=n, m=m, d=d)
    S1, S2 = np.cov(x, rowvar=False), np.cov(y, rowvar=False)
    values, U = np.linalg.eigh(S1)
    half = (U * np.sqrt(np.maximum(values, 0))) @ U.T
    inner = np.linalg.eigvalsh(half @ S2 @ half)
    root = np.sqrt(np.maximum(inner, 0)).sum()
    expected = np.sum((x.mean(0) - y.mean(0)) ** 2) + np.trace(S1 + S2) - 2 * root
    assert ua.distance(x, y, "frechet") == pytest.approx(expected, rel=1e-5)


def test_frechet_in_blocks_equals_the_textbook():
    x, y = pair(0, n=9000, m=5000)  # blocks of 4096 rows
    assert ua.distance(x, y, "frechet") == pytest.approx(textbook_fid(x, y), rel=1e-8)


def test_frechet_is_accurate_far_from_the_origin_and_with_constant_columns():
    x, y = pair(0)
    x[:, 0] = y[:, 0] = 0.1
    here, there = (ua.distance(x + s, y + s, "frechet") for s in (0.0, 1e6))
    assert there == pytest.approx(here, rel=1e-8)
    assert ua.distance(x[:, 1:], y[:, 1:], "frechet") == pytest.approx(here, rel=1e-12)


@pytest.mark.filterwarnings("ignore:.*the spread of column")  # one column is large on purpose
@pytest.mark.parametrize(("size", "factor"), [(1.0, 1 + 1e-7), (1e3, 1.001), (1e5, 1.01)])
@pytest.mark.parametrize("rows", [64, 8])  # 8: fewer than features
def test_frechet_of_small_differences_is_accurate(rows, size, factor):
    # Columns of a Hadamard matrix: mean 0, and covariances that commute, so d = Σ (s₁ - s₂)².
    x = hadamard(rows).astype(float)[:, 1 : 1 + min(rows - 1, 20)]
    x = np.hstack([x, np.zeros((rows, 20 - x.shape[1]))]) * np.r_[size, np.ones(19)]
    y = x * np.r_[1.0, np.full(19, factor)]
    expected = (min(rows - 1, 20) - 1) * (factor - 1) ** 2 * rows / (rows - 1)
    assert ua.distance(x, y, "frechet") == pytest.approx(expected, rel=1e-6)
    assert ua.distance(x, y[:, ::-1], "frechet") > expected


@pytest.mark.parametrize("seed", SEEDS)
def test_frechet_of_nearly_equal_data_with_more_rows_on_one_side(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(9, 30))
    y = np.vstack([x, x])  # the same mean; covariances 2·8/17 of each other
    ratio = np.sqrt(2 * 8 / 17)
    expected = (1 - ratio) ** 2 * np.trace(np.cov(x.T))
    assert ua.distance(x, y, "frechet") == pytest.approx(expected, rel=1e-9)
    near = np.vstack([x, x[:1] + 1e-9])
    assert 0 <= ua.distance(near[:-1] * 1.0, near, "frechet") < ua.distance(x, 2 * x, "frechet")


def test_frechet_needs_two_rows():
    with pytest.raises(NotApplicableError, match="needs at least 2 rows, and dataset 'a' has 1"):
        ua.distance(pair(0)[0][:1], pair(0)[1], "frechet")
