"""Stochastic Lanczos quadrature, heat and wave traces."""

import numpy as np
import pytest
from scipy import sparse

from textbook import laplacian_eigenvalues, neighbour_adjacency
from unaligned.data.dataset import Dataset
from unaligned.spectra.laplacian import lanczos_quadrature, laplacian_density

SEEDS = range(5)
TIMES = np.logspace(-1, 1, 40)


def density(data, seed=0, kind="points", **options):
    given = {"method": "slq", "n_neighbors": 5, "n_steps": 10, "n_probes": 100, **options}
    return laplacian_density(Dataset(data, kind=kind), seed, **given)


def symmetric(n, seed):
    A = np.random.default_rng(seed).normal(size=(n, n))
    A = A + A.T
    return A / np.linalg.norm(A, 2)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("seed", SEEDS)
def test_quadrature_is_exact_for_polynomials(make, seed):
    A, m, p = symmetric(60, seed), 6, 7
    rule = lanczos_quadrature(make(A), m, p, np.random.default_rng(seed))
    V = np.random.default_rng(seed).standard_normal((60, p))
    V /= np.linalg.norm(V, axis=0)
    for degree in range(2 * m):
        expected = np.einsum("ij,ij->j", V, np.linalg.matrix_power(A, degree) @ V)
        found = (rule.weights * rule.nodes**degree).sum(axis=1)
        assert np.allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 9])
def test_more_steps_than_eigenvalues_are_harmless(n):
    A = symmetric(n, n)
    rule = lanczos_quadrature(A, 30, 8, np.random.default_rng(0))
    inside = np.abs(np.subtract.outer(rule.nodes, np.linalg.eigvalsh(A))).min(axis=-1)
    assert np.all(inside[rule.weights > 1e-8] < 1e-6)
    assert np.allclose(rule.weights.sum(axis=1), 1)


@pytest.mark.parametrize("matrix", [np.eye(40), np.diag(np.r_[np.ones(39), 0.0])])
def test_exhausted_space_has_no_spurious_nodes(matrix):
    rule = lanczos_quadrature(matrix, 10, 8, np.random.default_rng(0))
    assert np.allclose((rule.weights * np.exp(rule.nodes)).sum(axis=1)[:1], np.e, atol=0.5)
    off = np.minimum(np.abs(rule.nodes), np.abs(rule.nodes - 1))
    assert np.all(off[rule.weights > 1e-8] < 1e-6)


def test_blocks_of_probes_form_one_rule():
    A = sparse.random_array((30_000, 30_000), density=1e-5, rng=0)
    A = sparse.csr_array(A + A.T) / 10
    rule = lanczos_quadrature(A, 4, 20, np.random.default_rng(0))
    assert rule.nodes.shape == (20, 4)
    assert np.unique(rule.nodes.round(9), axis=0).shape == (20, 4)


@pytest.mark.parametrize("kernel", ["heat", "wave"])
@pytest.mark.parametrize("seed", SEEDS)
def test_standard_error_covers_probe_noise(kernel, seed):
    # Five seeds times 40 correlated times: three standard errors are not left in any of them,
    # and one standard error is left by some, so it is not far too wide either.
    points = np.random.default_rng(seed).normal(size=(400, 3))
    times = TIMES if kernel == "heat" else np.linspace(0, 2 * np.pi, 40)
    truth = getattr(density(points, method="exact"), kernel)(times)
    traces = [getattr(density(points, s), kernel)(times) for s in range(6)]
    gaps = np.array([np.abs(trace.values - truth.values) for trace in traces])
    bounds = np.array([trace.error_bound for trace in traces])
    errors = np.array([trace.standard_error for trace in traces])
    assert np.mean(gaps <= bounds + truth.error_bound) > 0.97
    assert np.sqrt((gaps**2).mean()) > 0.4 * np.sqrt((errors**2).mean())


@pytest.mark.parametrize("n_steps", [3, 6, 10])
@pytest.mark.parametrize("seed", SEEDS)
def test_truncation_bound_holds_for_same_probes(n_steps, seed):
    points = np.random.default_rng(seed).normal(size=(150, 2))
    few, many = density(points, n_steps=n_steps), density(points, n_steps=60)
    times = np.logspace(-1, 2, 30)
    for kernel in ("heat", "wave"):
        a, b = (getattr(d, kernel)(times[:20]) for d in (few, many))
        assert np.all(np.abs(a.values - b.values) <= a.truncation + b.truncation)
    a, b = few.heat(times), many.heat(times)
    assert np.all(np.abs(a.values - b.values) <= a.truncation + b.truncation)


@pytest.mark.parametrize("seed", SEEDS)
def test_control_variate_reduces_noise_without_bias(seed):
    points = np.random.default_rng(seed).normal(size=(300, 3))
    found = density(points)
    plain = (np.exp(-TIMES[:, None, None] * found.rule.nodes) * found.rule.weights).sum(-1)
    noise = plain.std(axis=1, ddof=1) / 10
    assert np.all(found.heat(TIMES).standard_error < noise)
    truth = density(points, method="exact").heat(TIMES)
    assert np.all(np.abs(found.heat(TIMES).values - truth.values) < 6 * noise + 1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_isolated_nodes_and_loops_do_not_bias_the_control_variate(seed):
    # tr L is not N here; with N in its place the trace would be off by t e^-t (1 - tr L / N).
    A = np.zeros((300, 300))
    A[:200, :200] = neighbour_adjacency(np.random.default_rng(seed).normal(size=(200, 3)))
    A[0, 0] = 2.0
    found = density(A, kind="graph").heat(TIMES)
    eigenvalues = laplacian_eigenvalues(A)
    truth = np.array([np.exp(-t * eigenvalues).mean() for t in TIMES])
    exact = density(A, kind="graph", method="exact")
    assert np.allclose(exact.heat(TIMES).values, truth, atol=1e-12)
    assert exact.mean == pytest.approx(laplacian_eigenvalues(A).mean(), abs=1e-12)
    assert np.all(np.abs(found.values - truth) < 2 * found.error_bound)
    assert np.max(TIMES * np.exp(-TIMES) * (1 - exact.mean) / found.error_bound) > 5
