"""Squared distances between points, against differences."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from unaligned.metrics.base import squared_distances


@pytest.mark.parametrize("far", [0.0, 1e3, 1e8, 1e12])
@pytest.mark.parametrize("d", [3, 17, 200])
@pytest.mark.parametrize("seed", range(3))
def test_squared_distances_are_accurate_with_outliers(seed, d, far):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(30, d)), rng.normal(size=(20, d))
    x[:2] += far
    y[0] = x[0]
    found = squared_distances(x, y)
    np.testing.assert_allclose(found, cdist(x, y, "sqeuclidean"), rtol=1e-8)
    assert found[0, 0] == 0.0


@pytest.mark.parametrize("d", [3, 40])
def test_squared_distances_within_a_cloud_are_symmetric_with_zero_diagonal(d):
    x = np.random.default_rng(0).normal(size=(50, d)) + 100.0
    x[:5] *= 1e6
    found = squared_distances(x, x)
    np.testing.assert_array_equal(found, found.T)
    assert not found.diagonal().any()
