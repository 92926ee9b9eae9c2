"""The energy distance against SciPy."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import energy_distance

import unaligned as ua
from unaligned.data.dataset import Dataset
from unaligned.errors import InputError, NotApplicableError
from unaligned.metrics.edistance import EDistance
from unaligned.operators.pointcloud import PointCloud

SEEDS = range(4)


def pair(seed, n=60, m=45, d=4):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), 1.5 * rng.normal(size=(m, d)) + 0.5


def textbook(x, y, exponent=1.0, unbiased=False):
    xx, yy, xy = (cdist(*z) ** exponent for z in ((x, x), (y, y), (x, y)))
    n, m = len(x), len(y)
    within = xx.sum() / (n * (n - unbiased)) + yy.sum() / (m * (m - unbiased))
    return 2 * xy.mean() - within


@pytest.mark.parametrize("seed", SEEDS)
def test_one_feature_gives_the_square_of_scipy(seed):
    x, y = pair(seed, d=1)
    expected = energy_distance(x[:, 0], y[:, 0]) ** 2
    assert ua.distance(x, y, "edistance") == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("exponent", [0.5, 1, 1.7, 2])
@pytest.mark.parametrize("d", [2, 30])
def test_value_equals_the_textbook(d, exponent, unbiased):
    x, y = pair(0, d=d)
    found = ua.distance(x, y, "edistance", exponent=exponent, unbiased=unbiased)
    assert found == pytest.approx(textbook(x, y, exponent, unbiased), rel=1e-9)


@pytest.mark.parametrize("d", [3, 20])
def test_many_points_equal_the_textbook(d):
    x, y = pair(1, n=700, m=600, d=d)  # compiled loops
    assert ua.distance(x, y, "edistance") == pytest.approx(textbook(x, y), rel=1e-10)


def test_many_tiles_equal_the_textbook(monkeypatch):
    x, y = pair(0, n=70, m=130)
    monkeypatch.setattr(PointCloud, "tile_rows", 32)
    assert ua.distance(x, y, "edistance") == pytest.approx(textbook(x, y), rel=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_exponent_two_sees_the_means_only(seed):
    x, y = pair(seed)
    expected = 2 * np.sum((x.mean(axis=0) - y.mean(axis=0)) ** 2)
    assert ua.distance(x, y, "edistance", exponent=2) == pytest.approx(expected, rel=1e-9)


def test_unbiased_estimate_is_zero_on_average_for_unequal_sizes():
    rng = np.random.default_rng(0)
    draws = [(rng.normal(size=(15, 3)), rng.normal(size=(60, 3))) for _ in range(60)]
    values = np.array([ua.distance(x, y, "edistance", unbiased=True) for x, y in draws])
    error = values.std(ddof=1) / np.sqrt(len(values))
    assert values.min() < 0 < values.max()
    assert abs(values.mean()) < 3 * error
    biased = np.mean([ua.distance(x, y, "edistance") for x, y in draws])
    assert biased > 10 * error


def test_unbiased_estimate_needs_two_rows():
    x, y = pair(0)
    with pytest.raises(NotApplicableError, match="unbiased=True needs at least 2 rows"):
        ua.distance(x[:1], y, "edistance", unbiased=True)
    assert ua.distance(x[:1], y, "edistance") == pytest.approx(textbook(x[:1], y))


@pytest.mark.parametrize("seed", SEEDS)
def test_reordered_rows_have_a_tiny_distance_that_is_not_negative(seed):
    x, _ = pair(seed)
    assert 0.0 <= ua.distance(x, x[::-1], "edistance") < 1e-12


@pytest.mark.parametrize("far", [1e3, 1e6])
def test_value_is_accurate_with_outliers(far):
    x, y = pair(0, n=300, m=300, d=20)
    x[:10] += far
    y[:10] += far
    found = ua.distance(x, y, "edistance")
    assert found == pytest.approx(textbook(x, y), rel=1e-12 * far)


@pytest.mark.parametrize("exponent", [0, 2.5, -1, "two", np.nan])
def test_exponents_outside_the_range_raise(exponent):
    with pytest.raises(InputError, match="exponent"):
        ua.distance(*pair(0), "edistance", exponent=exponent)


def test_value_does_not_need_the_whole_matrix():
    tracemalloc = pytest.importorskip("tracemalloc")
    method, rng = EDistance(), np.random.default_rng(0)
    method.compare(*(method.describe(Dataset(rng.normal(size=(600, 3))), 0) for _ in range(2)))
    tracemalloc.start()
    method.compare(*(method.describe(Dataset(rng.normal(size=(5000, 3))), 0) for _ in range(2)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 5000**2 / 3
