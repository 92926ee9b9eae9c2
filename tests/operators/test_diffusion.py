"""W from every kind of values: Eqs. 2-4 to the letter, blocked = dense."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist, squareform

from unaligned.errors import DegenerateDataError, InputError
from unaligned.operators.base import MatrixOperator
from unaligned.operators.diffusion import DiffusionOperator, build_operator
from unaligned.operators.kernel import KernelSettings

POINTS = np.random.default_rng(0).normal(size=(300, 3))
WIDE = np.random.default_rng(1).normal(size=(300, 12))
GAUSSIAN = np.exp(-(squareform(pdist(POINTS)) ** 2))
EDGES = (GAUSSIAN > 0.3).astype(float)
COVARIANCE = np.cov(WIDE.T)
TILED = KernelSettings(memory_limit=0)

ROWS = {
    "points": (POINTS, "points", KernelSettings()),
    "points, tiled": (POINTS, "points", TILED),
    "wide points": (WIDE, "points", KernelSettings()),
    "wide points, tiled": (WIDE, "points", TILED),
    "sparse points": (sparse.csr_array(np.maximum(WIDE, 0)), "points", KernelSettings()),
    "sparse points, tiled": (sparse.csr_array(np.maximum(WIDE, 0)), "points", TILED),
    "cityblock": (POINTS, "points", KernelSettings(metric="cityblock")),
    "neighbours": (POINTS, "points", KernelSettings(n_neighbors=15)),
    "distances": (squareform(pdist(POINTS)), "distances", KernelSettings(bandwidth="mean")),
    "affinity": (GAUSSIAN, "affinity", KernelSettings()),
    "sparse affinity": (sparse.csr_array(GAUSSIAN * EDGES), "affinity", KernelSettings()),
    "spd": (COVARIANCE, "spd", KernelSettings()),
    "sparse spd": (sparse.csr_array(COVARIANCE), "spd", KernelSettings()),
    "graph": (EDGES, "graph", KernelSettings()),
    "sparse graph": (sparse.csr_array(EDGES), "graph", KernelSettings()),
}


@pytest.mark.parametrize("row", ROWS)
def test_every_action_of_every_kind_equals_its_dense_matrix(row):
    operator = build_operator(*ROWS[row])
    matrix = operator.to_dense()
    n_samples = operator.n_samples
    block = np.random.default_rng(0).normal(size=(n_samples, 4))
    index = np.array([5, 0, n_samples - 1])
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-15)
    np.testing.assert_allclose(operator @ block, matrix @ block, atol=1e-12)
    np.testing.assert_allclose(operator @ block[:, 0], matrix @ block[:, 0], atol=1e-12)
    np.testing.assert_allclose(operator.T @ block, matrix @ block, atol=1e-12)
    np.testing.assert_allclose(operator.rows(index), matrix[index], atol=1e-13)
    np.testing.assert_allclose(operator.diagonal(), np.diagonal(matrix), atol=1e-13)
    assert operator.trace() == pytest.approx(np.trace(matrix))


@pytest.mark.parametrize("row", [name for name in ROWS if "spd" not in name])
def test_largest_eigenvalue_is_one(row):
    eigenvalues = np.linalg.eigvalsh(build_operator(*ROWS[row]).to_dense())
    assert eigenvalues[-1] == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("row", ROWS)
def test_definite_operators_have_no_negative_eigenvalues(row):
    operator = build_operator(*ROWS[row])
    if operator.definite:
        assert np.linalg.eigvalsh(operator.to_dense())[0] > -1e-13


@pytest.mark.parametrize("row", ROWS)
def test_overwriting_to_dense_leaves_the_operator_unchanged(row):
    operator = build_operator(*ROWS[row])
    kept = operator.to_dense()
    operator.to_dense()[:] = np.nan
    operator.rows([0])[:] = np.nan
    np.testing.assert_array_equal(operator.to_dense(), kept)


def test_diffusion_operator_is_equations_2_to_4():
    affinity = GAUSSIAN
    # Eqs. 2-4, step by step.
    inverse_density = np.diag(1.0 / affinity.sum(axis=1))
    normalised = inverse_density @ affinity @ inverse_density
    inverse_root = np.diag(1.0 / np.sqrt(normalised.sum(axis=1)))
    expected = inverse_root @ normalised @ inverse_root
    operator = build_operator(affinity, "affinity", KernelSettings())
    np.testing.assert_allclose(operator.to_dense(), expected, atol=1e-15)


def test_diffusion_operator_has_the_attributes_of_its_affinity():
    operator = build_operator(POINTS, "points", TILED)
    assert operator.storage == "tiled"
    assert operator.definite
    assert operator.entries_evaluated == 0
    assert operator.sigma_squared == 2.0 * np.median(squareform(pdist(POINTS, "sqeuclidean")))


def test_rows_without_affinity_raise():
    with pytest.raises(DegenerateDataError, match=r"1 rows of the affinity .*row 2: 0.*Leave"):
        DiffusionOperator(MatrixOperator(np.diag([1.0, 1.0, 0.0]))) @ np.ones(3)


def test_unknown_kind_raises():
    with pytest.raises(InputError, match=r"kind='point' is not known. Did you mean 'points'"):
        build_operator(POINTS, "point", KernelSettings())
