"""Nearest neighbours are exact, their graph, and the affinity between them."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist, pdist, squareform

from textbook import neighbour_adjacency
from unaligned.errors import InputError
from unaligned.operators import knn as nearest
from unaligned.operators.affinity import distance_affinity, point_affinity
from unaligned.operators.kernel import KernelSettings
from unaligned.operators.knn import nearest_neighbours, nearest_of_distances, neighbour_graph

SEEDS = range(4)


def expected(points, k):
    """Sort every row by distance, then by index."""
    squared = cdist(points, points, "sqeuclidean")
    np.fill_diagonal(squared, np.inf)
    return np.sort(np.argsort(squared, axis=1, kind="stable")[:, :k], axis=1)


def check(points, k=5):
    found = nearest_neighbours(points, k)
    dense = points.toarray() if sparse.issparse(points) else points
    np.testing.assert_array_equal(np.sort(found, axis=1), expected(dense, k))


@pytest.mark.parametrize("far", [0.0, 1e6, 1e8, 1e10])
@pytest.mark.parametrize("d", [2, 9, 20, 60])
@pytest.mark.parametrize("seed", SEEDS)
def test_far_clump_does_not_change_the_neighbours(seed, d, far):
    points = np.random.default_rng(seed).normal(size=(150, d))
    points[:20] += far
    check(points)
    check(sparse.csr_array(points))


@pytest.mark.parametrize("constant", [1e3, 1e6, 1e9])
@pytest.mark.parametrize("seed", SEEDS)
def test_constant_column_does_not_change_the_neighbours(seed, constant):
    points = np.random.default_rng(seed).normal(size=(120, 12))
    points = np.column_stack([points, np.full(120, constant)])
    check(points)
    check(sparse.csr_array(points))


@pytest.mark.parametrize("k", [1, 3, 5, 20])
@pytest.mark.parametrize("d", [2, 12, 30])
@pytest.mark.parametrize("seed", SEEDS)
def test_ties_go_to_the_smaller_index(seed, d, k):
    points = np.round(np.random.default_rng(seed).normal(size=(130, d)))
    check(points, k)
    check(sparse.csr_array(points), k)
    distances = cdist(points, points)
    found = nearest_of_distances(distances, k)
    np.testing.assert_array_equal(np.sort(found, axis=1), expected(points, k))


@pytest.mark.parametrize("d", [3, 15])
@pytest.mark.parametrize("seed", SEEDS)
def test_many_copies_of_one_row_have_exact_neighbours(seed, d):
    rng = np.random.default_rng(seed)
    points = np.concatenate([rng.normal(size=(60, d)), np.zeros((150, d)), np.ones((7, d))])
    points = rng.permutation(points)
    check(points)
    check(sparse.csr_array(points))
    check(np.zeros((9, d)))


def test_sparse_points_that_stay_sparse_have_the_same_neighbours(monkeypatch):
    rng = np.random.default_rng(0)
    # Steps of 0.1 tie but for rounding: the sums must agree to the bit.
    points = np.round(rng.normal(size=(100, 14)), 1) * (rng.random((100, 14)) < 0.5)
    kept = sparse.csr_array(points)
    monkeypatch.setattr(nearest, "fits_into_memory", lambda n_bytes: False)
    found = nearest_neighbours(kept, 5)
    np.testing.assert_array_equal(found, nearest_neighbours(points, 5))
    check(sparse.csr_array(points + 1e6))


@pytest.mark.parametrize("d", [3, 12])
def test_blocks_do_not_change_the_neighbours(monkeypatch, d):
    points = np.round(np.random.default_rng(0).normal(size=(300, d)), 1)
    whole = nearest_neighbours(points, 4)
    monkeypatch.setattr(nearest, "_blocks", lambda rows, width: np.array_split(rows, 30))
    np.testing.assert_array_equal(nearest_neighbours(points, 4), whole)


def test_neighbours_of_distances_in_blocks(monkeypatch):
    points = np.round(np.random.default_rng(0).normal(size=(70, 3)))
    distances = cdist(points, points)
    whole = nearest_of_distances(distances, 4)
    monkeypatch.setattr(nearest, "_blocks", lambda rows, width: np.array_split(rows, 30))
    np.testing.assert_array_equal(nearest_of_distances(distances, 4), whole)


@pytest.mark.parametrize("seed", SEEDS)
def test_graph_equals_the_textbook(seed):
    points = np.random.default_rng(seed).normal(size=(80, 4))
    for offset in (0.0, 1e6):
        found = neighbour_graph(points + offset, "points", 5).toarray()
        assert np.array_equal(found, neighbour_adjacency(points))
    wide = np.random.default_rng(seed).normal(size=(80, 30))
    assert np.array_equal(
        neighbour_graph(wide, "points", 3).toarray(), neighbour_adjacency(wide, 3)
    )
    sparse_points = sparse.csr_array(wide)
    assert np.array_equal(
        neighbour_graph(sparse_points, "points", 3).toarray(), neighbour_adjacency(wide, 3)
    )


def test_duplicates_are_neighbours_and_not_of_themselves():
    graph = neighbour_graph(np.zeros((12, 2)), "points", 5)
    assert np.all(graph.diagonal() == 0)
    assert np.all(graph.sum(axis=1) >= 5)


def test_given_graph_is_returned_unchanged():
    weights = np.array([[0.0, 2.5], [2.5, 1.0]])
    assert neighbour_graph(weights, "graph", 5) is weights


def test_fewer_points_than_neighbours_raise():
    with pytest.raises(InputError, match=r"n_neighbors=5 needs more than 5 samples; there are 5"):
        neighbour_graph(np.zeros((5, 2)), "points", 5)
    assert neighbour_graph(np.arange(6.0)[:, None], "points", 5).nnz == 30


@pytest.mark.parametrize("metric", ["cityblock", "cosine"])
def test_neighbours_depend_on_the_metric(metric):
    points = np.random.default_rng(0).normal(size=(80, 6))
    affinity = point_affinity(points, KernelSettings(metric=metric, n_neighbors=5))
    squared = squareform(pdist(points, metric)) ** 2
    near = np.argsort(np.argsort(squared, axis=1), axis=1) < 5
    expected = np.exp(-squared / (2.0 * np.median(squared))) * (near | near.T)
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


def test_more_neighbours_than_points_raise():
    with pytest.raises(InputError, match=r"n_neighbors=9 needs .*there are 5.*Lower n_neighbors"):
        point_affinity(np.eye(5), KernelSettings(n_neighbors=9))


@pytest.mark.parametrize("n_features", [3, 20, 60])
def test_offset_does_not_change_the_affinity_of_neighbours(n_features):
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
