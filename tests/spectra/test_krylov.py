"""Krylov: the bound covers the truth, it stops early, and it survives breakdown."""

import warnings
from collections.abc import Callable

import numpy as np
import pytest

from unaligned.errors import AccuracyWarning, InputError, InputTypeError
from unaligned.operators.base import MatrixOperator
from unaligned.spectra.base import Accuracy, Spectrum
from unaligned.spectra.krylov import Krylov, affordable_shift
from unaligned.spectra.krylov.lanczos import BlockLanczos, complement_norm

SEEDS = range(4)
N = 150

SPECTRA: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "fast": lambda i: 0.8**i,
    "slow": lambda i: 1.0 / (1.0 + i),
    "clustered": lambda i: np.floor(6.0 - i / 25) / 6.0 + 1e-9 * (1.0 + np.cos(i)),
    "flat": lambda i: 1.0 + 1e-3 * np.cos(i),
    "identity": np.ones_like,
    "zero": np.zeros_like,
    "low rank": lambda i: np.where(i < 17, 1.0 / (1.0 + i), 0.0),
    "multiplicity beyond the block": lambda i: np.where(i < 40, 1.0, 0.01),
    "one large, the rest a cloud": lambda i: np.where(i < 1, 1.0, 0.05 - 1e-4 * i),
}


def matrix_with(values: np.ndarray, seed: int, **options: bool) -> MatrixOperator:
    rng = np.random.default_rng(100 + seed)
    basis, _ = np.linalg.qr(rng.standard_normal((values.size, values.size)))
    matrix = (basis * values) @ basis.T
    return MatrixOperator(0.5 * (matrix + matrix.T), **options)


def solve(
    values: np.ndarray, k: int, seed: int, accuracy: Accuracy | None = None, **settings: int
) -> Spectrum:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        return Krylov(**settings).solve(
            matrix_with(values, seed), k, accuracy or Accuracy(), np.random.default_rng(seed)
        )


def assert_covered(spectrum: Spectrum, values: np.ndarray, gamma: float) -> None:
    truth = np.sort(values)[::-1][: spectrum.n_eigenvalues]
    errors = np.abs(np.log((truth + gamma) / (spectrum.eigenvalues + gamma)))
    assert np.all(np.isfinite(spectrum.eigenvalues))
    assert np.all(errors <= spectrum.log_error(gamma))
    assert np.linalg.norm(errors) <= spectrum.total_log_error(gamma)
    assert np.all(spectrum.lower <= truth)
    assert np.all(truth <= spectrum.upper + spectrum.slack)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shape", SPECTRA)
@pytest.mark.parametrize("k", [1, 20, N])
def test_bound_covers_truth_and_meets_tol(shape: str, seed: int, k: int) -> None:
    values = SPECTRA[shape](np.arange(N, dtype=float))
    spectrum = solve(values, k, seed)
    assert_covered(spectrum, values, 1e-8)
    assert spectrum.total_log_error(1e-8) <= 1e-4
    assert spectrum.stats["converged"]
    assert spectrum.stats["columns"] <= N


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shape", SPECTRA)
@pytest.mark.parametrize("max_columns", [1, 24, 60])
def test_bound_holds_for_small_budget(shape: str, seed: int, max_columns: int) -> None:
    values = SPECTRA[shape](np.arange(N, dtype=float))
    spectrum = solve(values, 20, seed, max_columns=max_columns)
    assert_covered(spectrum, values, 1e-8)
    assert spectrum.stats["columns"] < max_columns + spectrum.stats["block_size"]
    assert spectrum.stats["converged"] == (spectrum.total_log_error(1e-8) <= 1e-4)


def test_small_budget_warns_with_bound_and_remedy() -> None:
    operator = matrix_with(SPECTRA["slow"](np.arange(N, dtype=float)), 0)
    with pytest.warns(AccuracyWarning, match=r"error bound of .* above tol=0.0001.* max_columns"):
        Krylov(max_columns=24).solve(operator, 20, Accuracy(), np.random.default_rng(0))


@pytest.mark.parametrize("n", [1, 2, 3, 9])
@pytest.mark.parametrize("scale", [0.0, 1e-100, 1.0, 1e100])
def test_tiny_matrices_are_solved_exactly(n: int, scale: float) -> None:
    values = scale * 0.5 ** np.arange(n)
    spectrum = solve(values, n, 0, Accuracy(gamma=1e-8 * scale))
    np.testing.assert_allclose(spectrum.eigenvalues, values, rtol=1e-12, atol=1e-14 * scale)
    assert np.all(spectrum.lower <= values)
    assert np.all(values <= spectrum.upper + spectrum.slack)


@pytest.mark.parametrize("seed", SEEDS)
def test_bound_covers_a_missed_eigenvalue(seed: int) -> None:
    # A block of 2 that starts orthogonal to the leading eigenvector sees a perfectly converged
    # spectrum without it; the residuals are 0, but the fresh block of the probe finds it.
    operator = MatrixOperator(np.diag(np.r_[1.0, np.zeros(200), 0.5, 0.25]))
    rng = np.random.default_rng(seed)
    basis = BlockLanczos(operator, np.empty((203, 203), order="F"), 2, rng)
    basis._next = np.eye(203)[:, -2:]
    basis.expand()
    assert np.allclose(basis.residual, 0.0)
    lower, upper, _ = complement_norm(basis, None, rng)
    assert lower == pytest.approx(1.0)
    assert 1.0 <= upper + 1e-12 < 1.2


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shape", SPECTRA)
def test_probe_bounds_norm_of_complement(shape: str, seed: int) -> None:
    values = SPECTRA[shape](np.arange(N, dtype=float))
    operator = matrix_with(values, seed)
    rng = np.random.default_rng(seed)
    basis = BlockLanczos(operator, np.empty((N, N), order="F"), 8, rng)
    for _ in range(4):
        basis.expand()
        Q = basis.buffer[:, : basis.columns].copy()
        outside = np.eye(N) - Q @ Q.T
        norm = np.linalg.norm(outside @ operator.matrix @ outside, 2)
        lower, upper, _ = complement_norm(basis, None, rng)
        assert lower - 1e-13 <= norm <= upper + 1e-13
        assert upper <= 1.5 * lower + 1e-13


@pytest.mark.parametrize("shape", SPECTRA)
def test_basis_is_orthonormal_and_t_is_its_projection(shape: str) -> None:
    operator = matrix_with(SPECTRA[shape](np.arange(N, dtype=float)), 0)
    basis = BlockLanczos(operator, np.empty((N, N), order="F"), 7, np.random.default_rng(0))
    while not basis.exhausted:
        basis.expand()
        Q = basis.buffer[:, : basis.columns]
        np.testing.assert_allclose(Q.T @ Q, np.eye(basis.columns), atol=1e-13)
        ritz = np.linalg.eigvalsh(Q.T @ operator.matrix @ Q)[::-1]
        np.testing.assert_allclose(basis.ritz_values(), ritz, atol=1e-13)
    assert not basis.has_room


@pytest.mark.parametrize("seed", SEEDS)
def test_fast_decay_is_certified_with_few_columns(seed: int) -> None:
    values = np.exp(-0.3 * np.arange(400))
    spectrum = solve(values, 100, seed)
    assert spectrum.bound_kind == "certified"
    # λ_K is far below γ, so nobody needs it to many digits.
    assert spectrum.stats["columns"] <= 160


@pytest.mark.parametrize("seed", SEEDS)
def test_slow_tail_is_bounded_by_a_probe(seed: int) -> None:
    values = 1.0 / (1.0 + np.arange(600))
    spectrum = solve(values, 10, seed)
    assert spectrum.bound_kind == "probabilistic"
    assert spectrum.stats["columns"] <= 150


def test_whole_space_is_exact() -> None:
    assert solve(np.linspace(1, 2, 30), 30, 0).bound_kind == "exact"


@pytest.mark.parametrize("seed", SEEDS)
def test_indefinite_operators_give_the_largest_algebraic_values_without_a_bound(
    seed: int,
) -> None:
    values = np.r_[1.0 / (1.0 + np.arange(100)), -2.0 / (1.0 + np.arange(50))]
    operator = matrix_with(values, seed, definite=False)
    spectrum = Krylov().solve(operator, 20, Accuracy(), np.random.default_rng(seed))
    np.testing.assert_allclose(spectrum.eigenvalues, values[:20], rtol=1e-4)
    assert spectrum.bound_kind == "none"
    assert spectrum.stats["negative_mass"] > 0.3


def test_negative_values_among_the_largest_are_clipped() -> None:
    values = np.r_[1.0, 0.5, -np.ones(40)]
    operator = matrix_with(values, 0, definite=False)
    spectrum = Krylov().solve(operator, 5, Accuracy(), np.random.default_rng(0))
    np.testing.assert_allclose(spectrum.eigenvalues, [1.0, 0.5, 0.0, 0.0, 0.0], atol=1e-10)


@pytest.mark.parametrize("shape", SPECTRA)
def test_gamma_zero_ends_without_nan(shape: str) -> None:
    values = np.sort(SPECTRA[shape](np.arange(N, dtype=float)))[::-1]
    spectrum = solve(values, 30, 0, Accuracy(gamma=0.0))
    np.testing.assert_allclose(spectrum.eigenvalues, values[:30], rtol=1e-3, atol=1e-12)
    assert not np.any(np.isnan(spectrum.log_error(0.0)))


def test_same_seed_gives_same_values() -> None:
    values = SPECTRA["slow"](np.arange(N, dtype=float))
    first, second = solve(values, 20, 3), solve(values, 20, 3)
    np.testing.assert_array_equal(first.eigenvalues, second.eigenvalues)
    np.testing.assert_array_equal(first.upper, second.upper)


@pytest.mark.parametrize("budget", [1e-6, 1e-2, 1.0])
def test_affordable_shift_costs_the_budget(budget: float) -> None:
    theta = 0.7 ** np.arange(60)
    shift = affordable_shift(theta, 1e-4, budget)
    cost = np.linalg.norm(np.log((np.maximum(theta, shift) + 1e-4) / (theta + 1e-4)))
    assert cost == pytest.approx(budget, rel=1e-6)


def test_settings_must_be_positive_integers() -> None:
    with pytest.raises(InputError, match="block_size=0 must be at least 1"):
        Krylov(block_size=0)
    with pytest.raises(InputTypeError, match=r"max_columns=2.5 must be a whole number"):
        Krylov(max_columns=2.5)  # type: ignore[arg-type]
