"""The sampled median is unbiased, and its standard error is accurate."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse

from unaligned.data.shapes import torus3, torus_angles
from unaligned.engine import resolve_engine
from unaligned.errors import DegenerateDataError
from unaligned.operators import bandwidth
from unaligned.operators import bandwidth_sampled as sampling
from unaligned.operators.affinity import streamed_affinity
from unaligned.operators.bandwidth import estimate_scale, median_of_points
from unaligned.operators.bandwidth_sampled import median_of_many_points, sampled_median
from unaligned.operators.kernel import KernelSettings
from unaligned.operators.pointcloud import PointCloud
from unaligned.rows.reduce import over_blocks
from unaligned.rows.source import ArrayRows, GeneratedRows


def sorted_clusters(n_features):
    rng = np.random.default_rng(0)
    centres = 2 * rng.normal(size=(6, n_features))
    return np.repeat(centres, 500, axis=0) + rng.normal(size=(3000, n_features))


CLOUDS = {
    "3-torus": torus3(torus_angles(3000, rng=0)),
    "heavy tails, sorted": np.sort(np.random.default_rng(0).standard_t(4, (3000, 3)), axis=0),
    "clusters, sorted": sorted_clusters(20),
    "clusters by products": sorted_clusters(50),
}


@pytest.mark.parametrize("name", CLOUDS)
def test_standard_error_covers_the_truth_in_95_percent(name):
    cloud = PointCloud(CLOUDS[name])
    truth = median_of_points(cloud)
    scores = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        chosen = rng.permutation(cloud.n_samples)[:320]
        found = sampled_median(
            partial(over_blocks, np.array_split(cloud.values, 3)),
            cloud.values[chosen],
            cloud.n_samples,
            rng,
            n_pairs=40_000,
        )
        scores.append((found.value - truth) / found.standard_error)
    assert 0.89 <= np.mean(np.abs(scores) < 1.96) <= 1.0  # 95 ± 2.2
    assert abs(np.mean(scores)) < 0.4
    assert np.std(scores) > 0.6


def apart(*sizes, deviation=1.0):
    """Clusters 100 apart in every coordinate's direction, shuffled."""
    rng = np.random.default_rng(0)
    centres = np.repeat(100.0 * np.eye(len(sizes)), sizes, axis=0)
    return rng.permutation(centres + deviation * rng.normal(size=centres.shape))


def with_duplicates(share, n_rows=2000):
    points = np.random.default_rng(0).normal(size=(n_rows, 2))
    points[: int(share * n_rows)] = 0.0
    return points


GAPS = {
    "balanced": apart(1000, 1000),
    "51:49": apart(1020, 980),
    "4:1:1": apart(1332, 334, 334),
    "tight": apart(1000, 1000, deviation=1e-6),
    "yes or no": np.eye(2)[np.arange(2000) % 2],
    "duplicates make up half": with_duplicates(0.7071),
    "ties by products": np.random.default_rng(0).integers(0, 2, size=(2000, 50)).astype(float),
    "duplicates make up less": with_duplicates(0.69),
}


@pytest.mark.parametrize("name", GAPS)
def test_median_in_a_gap_is_covered_in_few_passes(name, monkeypatch):
    monkeypatch.setattr(sampling, "REFERENCES", 512)
    passes = []
    distribution = sampling.ReferencePairs.distribution
    monkeypatch.setattr(
        sampling.ReferencePairs,
        "distribution",
        lambda *given: passes.append(1) or distribution(*given),
    )
    cloud = PointCloud(GAPS[name])
    truth = median_of_points(cloud)
    covered = []
    for seed in range(20):
        passes.clear()
        found = median_of_many_points(cloud, np.random.default_rng(seed), n_pairs=50_000)
        assert len(passes) <= 9
        covered.append(abs(found.value - truth) <= 2 * found.standard_error * (1 + 1e-9))
    assert np.mean(covered) >= 0.9


def test_median_in_a_gap_is_its_middle():
    # Half of the entries of the matrix are 0 and half are 2: the exact rule takes the mean.
    for seed in range(5):
        found = median_of_many_points(
            PointCloud(GAPS["yes or no"]), np.random.default_rng(seed), n_pairs=10**5
        )
        assert found.value == pytest.approx(1.0, rel=2e-3)
        assert found.standard_error == pytest.approx(0.5, rel=2e-3)


CUTS = {
    "1501": [1501, 1501, 1501, 497],
    "one row, no row": [2500, 0, 2499, 1],
    "in order": [700] * 7 + [100],
}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("n_features", [3, 40])
def test_blocks_do_not_change_the_estimate(n_features, cut):
    points = np.random.default_rng(0).normal(size=(5000, n_features))
    ends = np.cumsum(CUTS[cut])[:-1]
    found, wanted = (
        sampled_median(
            partial(over_blocks, blocks), points[:640], 5000, np.random.default_rng(1), 10**6
        )
        for blocks in (np.split(points, ends), [points])
    )
    assert found == pytest.approx(wanted, rel=1e-15)


@pytest.mark.parametrize("engine", [None, "processes"])
@pytest.mark.parametrize("n_features", [3, 40])
def test_engines_and_sources_agree(n_features, engine):
    points = np.random.default_rng(0).normal(size=(3000, n_features)).round(3)
    wanted = streamed_affinity(ArrayRows(points), KernelSettings(), np.random.default_rng(1))
    source = GeneratedRows(lambda: np.array_split(points, 7))
    with resolve_engine(engine, 2) as opened:
        found = streamed_affinity(source, KernelSettings(), np.random.default_rng(1), opened)
    assert found.sigma_squared == pytest.approx(wanted.sigma_squared, rel=1e-12)
    assert found.sigma_squared_error == pytest.approx(wanted.sigma_squared_error, rel=1e-9)


def test_more_pairs_give_a_smaller_error():
    cloud = PointCloud(CLOUDS["3-torus"])
    errors = [
        median_of_many_points(cloud, np.random.default_rng(0), n_pairs=n).standard_error
        for n in (10**4, 10**6)
    ]
    assert errors[1] < 0.3 * errors[0]


@pytest.mark.parametrize("n_features", [3, 40])
def test_ties_are_exact_to_the_width_of_a_bin(n_features):
    points = np.random.default_rng(0).integers(0, 4, size=(2500, n_features)).astype(float)
    cloud = PointCloud(points)
    found = median_of_many_points(cloud, np.random.default_rng(1), n_pairs=10**6)
    assert found.value == pytest.approx(median_of_points(cloud), rel=1e-5)


@pytest.mark.parametrize("density", [0.3, 0.005])
def test_sparse_points_agree_with_dense_ones(density):
    points = sparse.random_array((1500, 60), density=density, rng=0, format="csr")
    sparse_cloud, dense_cloud = PointCloud(points), PointCloud(points.toarray())
    found, wanted = (
        median_of_many_points(c, np.random.default_rng(0), n_pairs=10**6)
        for c in (sparse_cloud, dense_cloud)
    )
    exact = median_of_points(dense_cloud)
    assert abs(found.value - exact) <= 4 * found.standard_error + 1e-9
    assert abs(wanted.value - exact) <= 4 * wanted.standard_error + 1e-9


def test_bracket_that_misses_is_widened(monkeypatch):
    missing = partial(sampling.sampled_median, margins=(1e-9, 0.5))
    monkeypatch.setattr(sampling, "sampled_median", missing)
    cloud = PointCloud(CLOUDS["3-torus"])
    found = median_of_many_points(cloud, np.random.default_rng(0), n_pairs=10**6)
    assert abs(found.value - median_of_points(cloud)) <= 4 * found.standard_error


def test_exhausted_margins_do_not_raise(monkeypatch):
    exhausted = partial(sampling.sampled_median, margins=(1e-9,), n_narrowings=0)
    monkeypatch.setattr(sampling, "sampled_median", exhausted)
    found = median_of_many_points(
        PointCloud(CLOUDS["3-torus"]), np.random.default_rng(0), n_pairs=10**5
    )
    assert found.value > 0


def test_few_pairs_are_counted_and_many_are_sampled(monkeypatch):
    cloud = PointCloud(CLOUDS["3-torus"])
    assert estimate_scale(cloud, KernelSettings()).standard_error == 0.0
    monkeypatch.setattr(bandwidth, "PAIRS", 1000)
    scale, error = estimate_scale(cloud, KernelSettings())
    assert error > 0
    assert abs(scale - 2.0 * median_of_points(cloud)) < 4 * error
    assert estimate_scale(cloud, KernelSettings(bandwidth="mean")).standard_error == 0.0


def test_sampled_median_of_mostly_duplicates_raises(monkeypatch):
    monkeypatch.setattr(bandwidth, "PAIRS", 1000)
    points = np.zeros((1500, 2))
    points[:200] = np.random.default_rng(0).normal(size=(200, 2))
    with pytest.raises(DegenerateDataError, match="half of all pairs or more are duplicates"):
        estimate_scale(PointCloud(points), KernelSettings())
