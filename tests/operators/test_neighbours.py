"""The k-NN kernel: the union of near neighbours, from any metric."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist, squareform

from unaligned.errors import InputError
from unaligned.operators.affinity import distance_affinity, point_affinity
from unaligned.operators.kernel import KernelSettings


def reference(distances, n_neighbors):
    """Keep the pairs of which either is among the other's nearest, by sorting every row."""
    squared = distances**2
    rank = np.argsort(np.argsort(squared, axis=1), axis=1)
    near = rank < n_neighbors
    return np.exp(-squared / (2.0 * np.median(squared))) * (near | near.T)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_features", [2, 30])
def test_neighbour_affinity_equals_the_masked_dense_one(n_features, seed):
    points = np.random.default_rng(seed).normal(size=(150, n_features))
    expected = reference(squareform(pdist(points)), 10)
    settings = KernelSettings(n_neighbors=10)
    for affinity in (
        point_affinity(points, settings),
        point_affinity(sparse.csr_array(points), settings),
        distance_affinity(squareform(pdist(points)), settings),
    ):
        np.testing.assert_allclose(affinity.to_dense(), expected, atol=1e-12)
        assert affinity.storage == "sparse"
        assert not affinity.definite
        assert affinity.sigma_squared is not None


@pytest.mark.parametrize("metric", ["cityblock", "cosine"])
def test_neighbours_follow_the_metric(metric):
    points = np.random.default_rng(0).normal(size=(80, 6))
    affinity = point_affinity(points, KernelSettings(metric=metric, n_neighbors=5))
    expected = reference(squareform(pdist(points, metric)), 5)
    np.testing.assert_allclose(affinity.to_dense(), expected, atol=1e-12)


def test_all_neighbours_give_the_whole_kernel():
    points = np.random.default_rng(0).normal(size=(40, 3))
    whole = point_affinity(points, KernelSettings())
    near = point_affinity(points, KernelSettings(n_neighbors=40))
    np.testing.assert_allclose(near.to_dense(), whole.to_dense(), atol=1e-13)


def test_duplicates_keep_their_own_diagonal():
    points = np.repeat(np.random.default_rng(0).normal(size=(10, 2)), 4, axis=0)
    matrix = point_affinity(points, KernelSettings(n_neighbors=2)).to_dense()
    np.testing.assert_array_equal(np.diagonal(matrix), 1.0)
    np.testing.assert_array_equal(matrix, matrix.T)


def test_more_neighbours_than_points_are_refused():
    with pytest.raises(InputError, match=r"n_neighbors=9 needs .*there are 5.*Lower n_neighbors"):
        point_affinity(np.eye(5), KernelSettings(n_neighbors=9))


@pytest.mark.parametrize("n_features", [3, 20, 60])
def test_neighbours_are_the_same_wherever_the_points_lie(n_features):
    # Powers of two, so that moving the points rounds nothing.
    rng = np.random.default_rng(0)
    points = np.round(2.0**20 * rng.normal(size=(200, n_features))) / 2.0**20
    clump = np.vstack([points, points[:30] + 2.0**25])
    for data, offset in ((points, 2.0**27), (clump, 0.0)):
        settings = KernelSettings(n_neighbors=6)
        found = point_affinity(data + offset, settings).to_dense()
        distances = squareform(pdist(data))
        expected = distance_affinity(distances, settings).to_dense()
        np.testing.assert_allclose(found, expected, atol=1e-10)
