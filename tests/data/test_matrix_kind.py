"""Points that look like a matrix of another kind."""

import numpy as np
import pytest
from scipy import sparse

import unaligned as ua
from unaligned.data.values import matrix_kind
from unaligned.errors import DataWarning


def graph(seed, n=30):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) < 0.3, 1)
    return (upper | upper.T).astype(float)


def gaps(seed, n=30):
    x = np.random.default_rng(seed).normal(size=(n, 3))
    return np.sqrt(((x[:, None] - x) ** 2).sum(axis=-1))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int8, np.float32, np.float64])
def test_adjacency_and_distance_matrices_are_recognised(seed, dtype):
    assert matrix_kind(ua.Dataset(graph(seed).astype(dtype))) == "graph"
    assert matrix_kind(ua.Dataset(sparse.csr_array(graph(seed).astype(dtype)))) == "graph"
    assert matrix_kind(ua.Dataset(gaps(seed))) == "distances"


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).normal(size=(30, 30)),
        np.random.default_rng(0).normal(size=(30, 3)),
        np.triu(graph(0)),
        graph(0) - 2 * graph(0).T * (gaps(0) > 1),
        np.eye(30),
        np.zeros((30, 30)),
        np.array([[0.0, 1.0], [1.0, 0.0]]),
    ],
)
def test_other_points_are_not(values):
    assert matrix_kind(ua.Dataset(values)) is None
    assert matrix_kind(ua.Dataset(sparse.csr_array(values))) is None


@pytest.mark.parametrize("kind", ["graph", "distances"])
def test_such_points_warn_under_les_and_say_what_to_pass(kind):
    pair = [{"graph": graph, "distances": gaps}[kind](seed) for seed in (0, 1)]
    with pytest.warns(DataWarning, match=rf"look like an? .* matrix.*Pass kind='{kind}'"):
        wrong = ua.distance(*pair)
    with pytest.warns(DataWarning, match="look like"):
        ua.signature(pair[0])
    assert ua.distance(*pair, kind=kind) < wrong  # warnings are errors here
