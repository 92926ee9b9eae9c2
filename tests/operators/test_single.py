"""Products in single precision: their measured error, threads, and spectra of `krylov`."""

import numpy as np
import pytest

from unaligned.data.shapes import torus2, torus_angles
from unaligned.engine.blas import limited_blas
from unaligned.engine.threads import own_threads
from unaligned.operators.affinity import KernelAffinity
from unaligned.operators.base import MatrixOperator
from unaligned.operators.diffusion import DiffusionOperator
from unaligned.operators.kernel import Gaussian
from unaligned.operators.single import SinglePrecision
from unaligned.spectra import krylov
from unaligned.spectra.base import Accuracy
from unaligned.spectra.krylov import Krylov
from unaligned.spectra.krylov.lanczos import BlockLanczos

N, K, GAMMA = 2000, 100, 1e-8


def operator_of(points):
    scale = 4.0 * float(np.var(points, axis=0).sum())
    return DiffusionOperator(KernelAffinity(points, Gaussian(scale)))


def noise(seed, n=N, d=60):
    return operator_of(np.random.default_rng(seed).normal(size=(n, d)))


def correlated(seed):
    normal = np.random.default_rng(seed).normal(size=(N, 60))
    return operator_of(normal / np.arange(1, 61) ** 0.25)


def with_outliers(seed):
    points = np.random.default_rng(seed).normal(size=(N, 40))
    points[:20] *= 100.0
    return DiffusionOperator(KernelAffinity(points, Gaussian(160.0)))


def test_leading_vector_has_eigenvalue_one():
    operator = noise(0, n=300)
    vector = operator.leading_vector
    np.testing.assert_allclose(operator @ vector, vector, rtol=1e-12)
    assert np.linalg.norm(vector) == pytest.approx(1.0)


@pytest.mark.parametrize("make", [noise, correlated, with_outliers])
@pytest.mark.parametrize("seed", range(2))
def test_product_error_is_that_of_random_vectors(make, seed):
    operator = make(seed)
    single = SinglePrecision(operator, np.random.default_rng(seed))
    block = np.random.default_rng(100 + seed).normal(size=(N, 32))
    block /= np.linalg.norm(block, axis=0)
    errors = np.linalg.norm(single @ block - operator @ block, axis=0)
    assert 0.0 < single.product_error < 1e-6
    if make is not with_outliers:  # a few rows have most of the error there: up to 5.1 times
        assert errors.max() < 3.0 * single.product_error
    mean = float(np.sqrt(np.mean(errors**2)))
    assert 0.7 * single.product_error < mean < 1.6 * single.product_error
    np.testing.assert_array_equal(single.diagonal(), operator.diagonal())
    np.testing.assert_array_equal(single.rows([3, 5]), operator.rows([3, 5]))


def test_threads_do_not_change_products():
    single = SinglePrecision(noise(0), np.random.default_rng(0))
    block = np.random.default_rng(1).normal(size=(N, 32))
    with own_threads():
        several = single @ block
    with limited_blas(1):
        one = single @ block
    np.testing.assert_allclose(several, one, rtol=0, atol=1e-13)


def one_hot(seed):
    """All distances are equal, up to jitter: an eigenvalue of multiplicity N - 1."""
    points = np.eye(N) + 1e-6 * np.random.default_rng(seed).normal(size=(N, N))
    return DiffusionOperator(KernelAffinity(points, Gaussian(4.0)))


@pytest.mark.parametrize("make", [noise, correlated, one_hot])
@pytest.mark.parametrize("seed", range(3))
def test_krylov_states_the_rounding_of_single_precision(make, seed):
    operator = make(seed)
    truth = np.linalg.eigvalsh(operator.to_dense())[::-1][:K]
    found = Krylov().solve(operator, K, Accuracy(GAMMA), np.random.default_rng(seed))
    assert found.stats["precision"] == "single"
    assert found.bound_kind == "probabilistic"
    errors = np.abs(np.log((truth + GAMMA) / (found.eigenvalues + GAMMA)))
    assert np.all(errors <= found.log_error(GAMMA))
    assert np.linalg.norm(errors) <= found.total_log_error(GAMMA) <= 1e-4


@pytest.mark.parametrize(
    "kind", ["quick decay", "outliers", "small tol", "few values", "tiled", "given"]
)
def test_krylov_uses_double_precision_elsewhere(kind):
    k, tol, operator = K, 1e-4, noise(0)
    if kind == "quick decay":
        operator = operator_of(torus2(torus_angles(N, rng=0)))
    elif kind == "outliers":
        operator = with_outliers(0)
    elif kind == "small tol":
        tol = 1e-7
    elif kind == "few values":
        k = 20
    elif kind == "given":
        operator = DiffusionOperator(MatrixOperator(operator.affinity.to_dense()))
    else:
        affinity = operator.affinity
        operator = DiffusionOperator(
            KernelAffinity(affinity.points, affinity.kernel, storage="tiled")
        )
    found = Krylov().solve(operator, k, Accuracy(GAMMA, tol), np.random.default_rng(0))
    assert found.stats["precision"] == "double"
    truth = np.linalg.eigvalsh(operator.to_dense())[::-1][:k]
    error = np.linalg.norm(np.log((truth + GAMMA) / (found.eigenvalues + GAMMA)))
    assert error <= found.total_log_error(GAMMA) <= tol


@pytest.mark.parametrize(("n", "d"), [(5000, 10), (4000, 15)])
def test_trying_single_precision_costs_less_than_the_solution(n, d, monkeypatch):
    """Of noise in 10 dimensions, single precision once took five times the columns of double."""
    operator = operator_of(np.random.default_rng(0).normal(size=(n, d)))
    expand, columns = BlockLanczos.expand, []

    def counted(basis):
        columns.append(basis.width)
        expand(basis)

    monkeypatch.setattr(BlockLanczos, "expand", counted)
    Krylov().solve(operator, 200, Accuracy(GAMMA), np.random.default_rng(0))
    tried = sum(columns)
    columns.clear()
    monkeypatch.setattr(krylov, "single_pays", lambda *_: False)
    Krylov().solve(operator, 200, Accuracy(GAMMA), np.random.default_rng(0))
    assert tried < 2 * sum(columns)
