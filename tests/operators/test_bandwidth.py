"""σ²: the median and the mean of the whole N×N matrix, exactly."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist, squareform

import unaligned as ua
from unaligned.errors import DegenerateDataError
from unaligned.operators import bandwidth
from unaligned.operators.bandwidth import estimate_scale, median_distance, median_of_points
from unaligned.operators.kernel import KernelSettings
from unaligned.operators.pointcloud import PointCloud


def scale_from_points(points, bandwidth="median", factor=2.0):
    settings = KernelSettings(bandwidth=bandwidth, bandwidth_factor=factor)
    return estimate_scale(PointCloud(points), settings).sigma_squared


def reference(points):
    return np.median(squareform(pdist(points, "sqeuclidean")))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("n_samples", [2, 3, 4, 5, 50, 999, 1200, 2001])
@pytest.mark.parametrize("n_features", [1, 3, 8, 9, 60])
def test_median_of_points_equals_numpy_on_the_whole_matrix(n_samples, n_features, seed):
    points = np.random.default_rng(seed).standard_t(3, size=(n_samples, n_features)) + 1e3
    assert median_of_points(PointCloud(points)) == pytest.approx(reference(points), rel=1e-12)


@pytest.mark.parametrize("density", [0.3, 0.02, 0.005])
@pytest.mark.parametrize("seed", range(2))
def test_median_of_sparse_points_equals_that_of_dense_ones(density, seed):
    points = sparse.random_array((1300, 700), density=density, format="csr", rng=seed)
    expected = reference(points.toarray())
    assert median_of_points(PointCloud(points)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n_samples", [1500, 1501])
@pytest.mark.parametrize(("low", "high", "n_features"), [(0, 2, 1), (0, 3, 2), (0, 2, 12)])
def test_median_of_ties_is_exact(low, high, n_features, n_samples):
    points = np.random.default_rng(0).integers(low, high, (n_samples, n_features)).astype(float)
    assert median_of_points(PointCloud(points)) == pytest.approx(reference(points), rel=1e-12)


@pytest.mark.parametrize(
    ("sigmas", "kept"), [(0.0, 2000), (0.01, 2000), (0.5, 2000), (4.0, 8000), (9.0, 16_000)]
)
@pytest.mark.parametrize("n_samples", [1020, 1021])
def test_median_is_exact_when_brackets_miss_or_overflow(monkeypatch, n_samples, sigmas, kept):
    rng = np.random.default_rng(n_samples)
    monkeypatch.setattr(bandwidth, "_KEPT", kept)
    monkeypatch.setattr(bandwidth, "_SIGMAS", sigmas)
    for points in (rng.normal(size=(n_samples, 3)), rng.integers(0, 3, (n_samples, 2)) * 1.0):
        expected = reference(points)
        assert median_of_points(PointCloud(points)) == pytest.approx(expected, rel=1e-12)


def test_median_needs_no_matrix():
    points = np.random.default_rng(0).normal(size=(12_000, 3))
    median_of_points(PointCloud(points[:2000]))  # compile first
    tracemalloc.start()
    median_of_points(PointCloud(points))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 12_000**2 / 8


@pytest.mark.parametrize("n_features", [3, 30])
def test_mean_rule_equals_the_mean_of_the_whole_matrix(n_features):
    points = np.random.default_rng(0).normal(size=(300, n_features)) + 1e4
    expected = 2.0 * squareform(pdist(points, "sqeuclidean")).mean()
    assert scale_from_points(points, "mean", 2.0) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("density", [0.3, 0.005])
def test_mean_rule_holds_for_sparse_points(density):
    points = sparse.random_array((300, 500), density=density, format="csr", rng=0)
    expected = squareform(pdist(points.toarray(), "sqeuclidean")).mean()
    assert scale_from_points(points, "mean", 1.0) == pytest.approx(expected, rel=1e-12)


def test_number_is_sigma_squared_itself():
    assert scale_from_points(np.zeros((3, 1)), 0.7, 2.0) == 0.7


@pytest.mark.parametrize(("size", "what"), [(1e200, "overflow"), (1e308, "overflow")])
def test_points_whose_squares_overflow_raise(size, what):
    points = size * np.random.default_rng(0).uniform(0.5, 1, size=(10, 3))
    for values in (points, sparse.csr_array(points)):
        with pytest.raises(DegenerateDataError, match=f"{what}.*Rescale"):
            PointCloud(values)


def test_points_whose_squares_underflow_raise():
    points = 1e-200 * np.random.default_rng(0).normal(size=(10, 3))
    for values in (points, sparse.csr_array(points), 1e-250 + points):
        with pytest.raises(DegenerateDataError, match=r"underflow.*Rescale"):
            PointCloud(values)


def test_median_of_mostly_duplicates_raises():
    points = np.zeros((20, 2))
    points[:5] = np.arange(10).reshape(5, 2)
    with pytest.raises(DegenerateDataError, match=r"bandwidth='median'.*duplicates.*mean"):
        scale_from_points(points, "median", 2.0)
    assert scale_from_points(points, "mean", 2.0) > 0


def test_equal_points_raise():
    points = np.zeros((7, 300))
    points[:, :2] = 0.1, 0.7
    for values in (points, points[:, :2], sparse.csr_array(points), sparse.csr_array(points + 1)):
        with pytest.raises(DegenerateDataError, match=r"bandwidth='mean'.*all points are equal"):
            scale_from_points(values, "mean", 2.0)
        with pytest.raises(DegenerateDataError, match=r"bandwidth='median'.*points are equal"):
            scale_from_points(values, "median", 2.0)


@pytest.mark.parametrize("share", [0.7, 0.706, 0.7071, 0.708, 0.72])
def test_ties_at_zero_take_few_passes(share, monkeypatch):
    monkeypatch.setattr(bandwidth, "_KEPT", 10_000)
    points = np.random.default_rng(0).normal(size=(1500, 2))
    points[: int(share * 1500)] = 0.0
    passes = []
    count = bandwidth._count_and_keep
    monkeypatch.setattr(
        bandwidth, "_count_and_keep", lambda *given: passes.append(1) or count(*given)
    )
    found = median_of_points(PointCloud(points))
    squared = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    assert found == pytest.approx(np.median(squared), rel=1e-12)
    assert len(passes) <= 20


def two_groups(rng):
    """Within the groups 0 or 1, across 100 or 101: the two middle values are 1 and 100."""
    return np.column_stack([rng.integers(0, 2, 2000), 10 * np.repeat([0, 1], 1000)]) * 1.0


def three_groups(rng):
    """A share of 0.497 of the pairs lies within the groups."""
    sizes = np.array([1328, 336, 336])
    return np.column_stack([rng.integers(0, 2, 2000), 10 * np.repeat([0, 1, -1], sizes)]) * 1.0


def one_hot_rows(n_classes):
    return lambda rng: np.repeat(np.eye(12)[:n_classes], 1200 // n_classes, axis=0)


def tied_rows_after_rare_ones(rng):
    """Most pairs are tied, and the few that are nearer are in no sample."""
    rare = np.eye(40)[:4] * np.array([[1.0, 1 + 1e-9, 1 + 1e-12, 1 + 1e-14]]).T
    return np.vstack([rare, np.repeat(np.eye(40)[4:], 50, axis=0)])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "make",
    [two_groups, three_groups, one_hot_rows(2), one_hot_rows(3), tied_rows_after_rare_ones],
    ids=["two groups", "three groups", "one-hot of 2", "one-hot of 3", "rare rows"],
)
def test_median_does_not_depend_on_the_order_of_rows(make, seed, monkeypatch):
    monkeypatch.setattr(bandwidth, "_KEPT", 20_000)
    monkeypatch.setattr(PointCloud, "tile_rows", 128)  # the first tiles hold one group only
    rng = np.random.default_rng(seed)
    points = make(rng)
    expected = reference(points)
    for rows in (points, points[rng.permutation(len(points))], sparse.csr_array(points)):
        assert median_of_points(PointCloud(rows)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_median_distance_does_not_depend_on_the_order_of_rows(seed, monkeypatch):
    monkeypatch.setattr(bandwidth, "_KEPT", 20_000)
    monkeypatch.setattr(PointCloud, "tile_rows", 128)
    points = np.random.default_rng(seed).integers(0, 2, (1000, 1)) * 1.0
    pooled = np.vstack([points, points + 10])
    assert median_distance(PointCloud(pooled)) == np.median(pdist(pooled))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_sorted_rows_have_the_signature_of_shuffled_ones(seed):
    rng = np.random.default_rng(seed)
    points = np.column_stack([rng.integers(0, 2, 26_000), 10 * np.repeat([0, 1], 13_000)])
    a, b = (ua.signature(rows, n_eigenvalues=20) for rows in (points, rng.permutation(points)))
    assert a.sigma_squared == b.sigma_squared == 101.0
    assert ua.distance(a, b) <= a.total_error_bound + b.total_error_bound


@pytest.mark.parametrize("seed", range(3))
def test_median_far_below_most_distances_keeps_its_digits(seed):
    first, second = np.random.default_rng(seed).normal(size=(2, 9))
    near = first + 1e-9 * np.random.default_rng(seed + 10).normal(size=9)
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):  # of nine entries the fifth is the near pair
        cloud = PointCloud(np.array([first, near, second])[order])
        expected = float(((first - near) ** 2).sum())
        assert median_of_points(cloud) == pytest.approx(expected, rel=1e-6)
