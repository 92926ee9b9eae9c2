"""The bound includes the error of a sampled σ²."""

import numpy as np
import pytest

import unaligned as ua
from unaligned.data.shapes import torus2, torus_angles
from unaligned.errors import AccuracyWarning
from unaligned.operators import bandwidth
from unaligned.operators import bandwidth_sampled as sampling


@pytest.fixture
def few_pairs(monkeypatch):
    monkeypatch.setattr(bandwidth, "PAIRS", 1000)
    monkeypatch.setattr(bandwidth, "median_of_many_points", _sloppy)


def _sloppy(cloud, rng):
    return sampling.median_of_many_points(cloud, rng, n_pairs=300_000)


@pytest.mark.filterwarnings("ignore:.*bandwidth='median' gives:unaligned.errors.AccuracyWarning")
def test_bound_covers_error_of_sampled_scale(few_pairs):
    points = torus2(torus_angles(400, rng=0))
    exact_scale = 2.0 * bandwidth.median_of_points(sampling.PointCloud(points))
    truth = ua.signature(points, n_eigenvalues=50, solver="exact", bandwidth=exact_scale)
    covered = []
    for seed in range(20):
        found = ua.signature(points, n_eigenvalues=50, solver="exact", rng=seed)
        assert found.bound_kind == "probabilistic"
        assert found.stats["sigma_squared_standard_error"] > 0
        error = np.linalg.norm(found.values - truth.values)
        assert error < 2.5 * found.total_error_bound
        covered.append(error <= found.total_error_bound)
    assert np.mean(covered) >= 0.85
    assert (found.error_bound > 0).all()


def test_exact_scale_adds_nothing():
    found = ua.signature(torus2(torus_angles(600, rng=0)), n_eigenvalues=20)
    assert found.bound_kind in ("exact", "certified")
    assert "sigma_squared_standard_error" not in found.stats


@pytest.mark.parametrize("seed", range(4))
def test_median_in_a_gap_warns_and_bound_holds(few_pairs, seed):
    points = np.random.default_rng(0).normal(size=(1000, 2))
    points[::2, 0] += 100.0
    exact_scale = 2.0 * bandwidth.median_of_points(sampling.PointCloud(points))
    truth = ua.signature(points, n_eigenvalues=20, solver="exact", bandwidth=exact_scale)
    with pytest.warns(AccuracyWarning, match="the median falls in a gap of the distances"):
        found = ua.signature(points, n_eigenvalues=20, solver="exact", rng=seed)
    assert np.linalg.norm(found.values - truth.values) <= found.total_error_bound
    assert found.total_error_bound > 1.0
    assert found.stats["sigma_squared_bound"] <= found.total_error_bound
