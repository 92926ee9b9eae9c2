"""MMD against scikit-learn's kernels."""

import re

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist
from sklearn.metrics.pairwise import rbf_kernel

import unaligned as ua
from unaligned.data.dataset import Dataset
from unaligned.errors import DegenerateDataError, InputError, NotApplicableError
from unaligned.metrics.mmd import MMD
from unaligned.operators.pointcloud import PointCloud

SEEDS = range(4)


def pair(seed, n=60, m=45, d=4):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), 1.5 * rng.normal(size=(m, d)) + 0.5


def textbook_mmd(x, y, width=None, unbiased=False):
    width = np.median(pdist(np.vstack([x, y]))) if width is None else width
    xx, yy, xy = (rbf_kernel(*z, gamma=0.5 / width**2) for z in ((x, x), (y, y), (x, y)))
    if not unbiased:
        return np.sqrt(xx.mean() + yy.mean() - 2 * xy.mean())
    n, m = len(x), len(y)
    off = [(K.sum() - np.trace(K)) / (k * (k - 1)) for K, k in ((xx, n), (yy, m))]
    return sum(off) - 2 * xy.mean()


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("d", [1, 4, 30])
@pytest.mark.parametrize("seed", SEEDS)
def test_mmd_equals_the_textbook(seed, d, unbiased):
    x, y = pair(seed, d=d)
    found = ua.distance(x, y, "mmd", unbiased=unbiased)
    assert found == pytest.approx(textbook_mmd(x, y, unbiased=unbiased), rel=1e-8)


def test_mmd_in_many_tiles_equals_the_textbook(monkeypatch):
    x, y = pair(0, n=70, m=130)
    monkeypatch.setattr(PointCloud, "tile_rows", 32)
    assert ua.distance(x, y, "mmd") == pytest.approx(textbook_mmd(x, y), rel=1e-8)


def test_mmd_accepts_a_width():
    x, y = pair(0)
    found = ua.distance(x, y, "mmd", bandwidth=0.7)
    assert found == pytest.approx(textbook_mmd(x, y, 0.7), rel=1e-8)


def test_the_unbiased_estimate_can_be_negative():
    rng = np.random.default_rng(0)
    values = [ua.distance(*rng.normal(size=(2, 40, 3)), "mmd", unbiased=True) for _ in range(20)]
    assert min(values) < 0 < max(values)
    assert abs(np.mean(values)) < 0.02


def test_the_unbiased_estimate_needs_two_rows():
    x, y = pair(0)
    with pytest.raises(NotApplicableError, match="unbiased=True needs at least 2 rows"):
        ua.distance(x[:1], y, "mmd", unbiased=True)
    assert 0 < ua.distance(x[:1], y, "mmd") < 2


def test_mmd_raises_for_a_median_width_of_zero():
    x = np.zeros((30, 2))
    y = np.concatenate([np.zeros((20, 2)), np.ones((5, 2))])
    with pytest.raises(DegenerateDataError, match=r"width 0 for .*half of all pairs.*bandwidth=h"):
        ua.distance(x, y, "mmd")
    assert ua.distance(x, y, "mmd", bandwidth=1.0) == pytest.approx(textbook_mmd(x, y, 1.0))
    assert ua.distance(x, np.zeros((7, 2)), "mmd") == 0.0


def plain_mmd(x, y, width=None):
    """Return MMD from differences, without cancellation."""
    width = np.median(pdist(np.vstack([x, y]))) if width is None else width
    xx, yy, xy = (
        np.exp(-cdist(*z, "sqeuclidean") / (2 * width**2)) for z in ((x, x), (y, y), (x, y))
    )
    return np.sqrt(xx.mean() + yy.mean() - 2 * xy.mean())


@pytest.mark.parametrize("width", [None, 2.0])
@pytest.mark.parametrize("far", [1e6, 1e8, 1e10])
@pytest.mark.parametrize("seed", range(2))
def test_mmd_is_accurate_with_outliers(seed, far, width):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(300, 20)), 1.3 * rng.normal(size=(300, 20))
    x[:10] += far
    y[:10] += far
    found = ua.distance(x, y, "mmd", bandwidth=width or "median")
    assert found == pytest.approx(plain_mmd(x, y, width), rel=1e-11)


@pytest.mark.parametrize("n", [30, 600])
@pytest.mark.parametrize("d", [3, 20])
def test_mmd_of_very_narrow_and_very_wide_kernels(n, d):
    x, y = pair(0, n=n, m=n, d=d)
    # A narrow kernel is 1 on the diagonal and 0 elsewhere; a wide one is 1 everywhere.
    assert ua.distance(x, y, "mmd", bandwidth=1e-139) == pytest.approx(np.sqrt(2 / n))
    assert ua.distance(x, y, "mmd", bandwidth=1e139) == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize("width", [1e-200, 1e-160, 1e-141, 1e141, 1e160, 1e300])
def test_widths_whose_squares_overflow_or_underflow_raise(width):
    option = re.escape(f"bandwidth={width!r}")
    with pytest.raises(InputError, match=rf"{option} .*between 1e-140 and 1e\+140.*nearer"):
        ua.distance(*pair(0), "mmd", bandwidth=width)


def test_mmd_does_not_allocate_the_whole_matrix():
    tracemalloc = pytest.importorskip("tracemalloc")
    rng = np.random.default_rng(0)
    first, second = (MMD().describe(Dataset(rng.normal(size=(5000, 3))), 0) for _ in range(2))
    MMD().compare(first, MMD().describe(Dataset(np.eye(3)), 0))  # compile first
    tracemalloc.start()
    MMD().compare(first, second)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 10_000**2 / 4


def test_unknown_bandwidth_raises():
    with pytest.raises(InputError, match="bandwidth='mean' is not known"):
        ua.distance(*pair(0), "mmd", bandwidth="mean")
