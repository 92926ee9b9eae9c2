"""Nearest neighbours: exact wherever the points lie, ties to the smaller index, on every path."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from unaligned.operators import knn as nearest
from unaligned.operators.knn import nearest_neighbours, nearest_of_distances

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
def test_a_clump_far_away_changes_nothing(seed, d, far):
    points = np.random.default_rng(seed).normal(size=(150, d))
    points[:20] += far
    check(points)
    check(sparse.csr_array(points))


@pytest.mark.parametrize("constant", [1e3, 1e6, 1e9])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_constant_column_changes_nothing(seed, constant):
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
def test_many_copies_of_one_row(seed, d):
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
