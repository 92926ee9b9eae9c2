"""The graph of nearest neighbours."""

import numpy as np
import pytest
from scipy import sparse

from textbook import neighbour_adjacency
from unaligned.errors import InputError
from unaligned.operators.knn import neighbour_graph

SEEDS = range(5)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_graph_is_that_of_the_textbook(seed):
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


def test_a_given_graph_is_taken_as_it_is():
    weights = np.array([[0.0, 2.5], [2.5, 1.0]])
    assert neighbour_graph(weights, "graph", 5) is weights


def test_fewer_points_than_neighbours_are_refused():
    with pytest.raises(InputError, match=r"n_neighbors=5 needs more than 5 samples; there are 5"):
        neighbour_graph(np.zeros((5, 2)), "points", 5)
    assert neighbour_graph(np.arange(6.0)[:, None], "points", 5).nnz == 30
