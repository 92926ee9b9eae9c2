"""The heat kernel: a Chebyshev series that equals the matrix exponential."""

import numpy as np
import pytest
from scipy import linalg, sparse

from unaligned.operators.graph import HeatKernel


def random_graph(n_nodes, seed, *, density=0.1):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n_nodes, n_nodes)) * (rng.random((n_nodes, n_nodes)) < density))
    return upper + upper.T


def reference(adjacency):
    degree = adjacency.sum(axis=1)
    linked = degree > 0
    root = np.where(linked, 1.0 / np.sqrt(np.where(linked, degree, 1.0)), 0.0)
    laplacian = np.diag(linked * 1.0) - adjacency * root * root[:, None]
    return linalg.expm(-laplacian)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.coo_matrix])
@pytest.mark.parametrize("density", [0.0, 0.01, 0.1])
def test_every_action_equals_expm(density, form, seed):
    adjacency = random_graph(90, seed, density=density)
    expected = reference(adjacency)
    kernel = HeatKernel(form(adjacency))
    block = np.random.default_rng(seed).normal(size=(90, 4))
    np.testing.assert_allclose(kernel @ block, expected @ block, atol=1e-13)
    np.testing.assert_allclose(kernel.to_dense(), expected, atol=1e-14)
    np.testing.assert_allclose(kernel.rows([3, 50]), expected[[3, 50]], atol=1e-14)
    np.testing.assert_allclose(kernel.diagonal(), np.diagonal(expected), atol=1e-14)
    np.testing.assert_allclose(kernel @ block[:, 0], expected @ block[:, 0], atol=1e-13)


def test_ring_has_its_analytic_eigenvalues():
    ring = sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(50, 50)).tolil()
    ring[0, 49] = ring[49, 0] = 1.0
    # The normalised Laplacian of a ring has the eigenvalues 1 - cos(2πk/N).
    expected = np.sort(np.exp(-(1.0 - np.cos(2.0 * np.pi * np.arange(50) / 50))))
    eigenvalues = np.linalg.eigvalsh(HeatKernel(sparse.csr_array(ring)).to_dense())
    np.testing.assert_allclose(eigenvalues, expected, atol=1e-14)


def test_every_component_and_isolated_node_has_an_eigenvalue_of_one():
    adjacency = np.zeros((5, 5))
    adjacency[0, 1] = adjacency[1, 0] = 2.0
    eigenvalues = np.linalg.eigvalsh(HeatKernel(adjacency).to_dense())
    np.testing.assert_allclose(eigenvalues, [np.exp(-2.0), 1, 1, 1, 1], atol=1e-14)


def test_kernel_is_definite_and_keeps_the_graph_sparse():
    kernel = HeatKernel(sparse.csr_array(random_graph(30, 0)))
    assert kernel.definite
    assert kernel.storage == "matrix-free"


def test_changing_the_diagonal_leaves_the_operator_unchanged():
    kernel = HeatKernel(random_graph(20, 0))
    kernel.diagonal()[:] = 0
    assert kernel.trace() > 0


def test_integer_and_boolean_weights_are_numbers():
    adjacency = np.ones((6, 6), dtype=bool)
    expected = HeatKernel(np.ones((6, 6))).to_dense()
    for values in (adjacency, adjacency.astype(int), sparse.csr_array(adjacency)):
        np.testing.assert_allclose(HeatKernel(values).to_dense(), expected, atol=1e-15)
