"""Algorithm 1: values, fallback, certificate, and Proposition 2."""

import numpy as np
import pytest

import unaligned as ua
from reference import algorithm_1, diffusion_of_points, eigenvalues, with_spectrum
from unaligned.errors import InputError, InputTypeError
from unaligned.operators.base import MatrixOperator
from unaligned.spectra import nystrom
from unaligned.spectra.base import Accuracy
from unaligned.spectra.nystrom import Nystrom

N, K, M, GAMMA = 300, 20, 60, 1e-8
SEEDS = range(20)
ORDER = np.arange(N)
SPECTRA = {
    "fast": np.exp(-0.4 * ORDER),
    "slow": 1.0 / (1.0 + ORDER),
    "clustered": np.where(ORDER < 15, 1.0, np.where(ORDER < 40, 1e-2, 1e-5)),
    "flat": np.linspace(1.0, 0.9, N),
    "gap": np.where(ORDER < K, 1.0, 1e-5),  # where Proposition 2 is nearly attained
}


def matrix_with(name, seed=0):
    Q = np.linalg.qr(np.random.default_rng([seed, 7]).standard_normal((N, N)))[0]
    return with_spectrum(Q, SPECTRA[name])


def solve(matrix, seed, k=K, m=M, **options):
    rng = np.random.default_rng(seed)
    return Nystrom(m, **options).solve(MatrixOperator(matrix), k, Accuracy(GAMMA), rng)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ["slow", "clustered", "flat"])
def test_solver_equals_algorithm_1(name, seed):
    W = matrix_with(name)
    expected = algorithm_1(W, K, M, np.random.default_rng(seed))
    assert np.allclose(solve(W, seed).eigenvalues, expected, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_shift_is_added_and_removed_as_in_algorithm_1(seed, monkeypatch):
    # μ = 2.2e-16 drowns in rounding; a large one shows whether ν is used to the letter.
    monkeypatch.setattr(nystrom, "MU", 1e-3)
    W = matrix_with("slow")
    expected = algorithm_1(W, K, M, np.random.default_rng(seed), mu=1e-3)
    assert np.allclose(solve(W, seed).eigenvalues, expected, rtol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_solver_equals_algorithm_1_on_diffusion_operator(seed):
    W = diffusion_of_points(np.random.default_rng(seed).normal(size=(150, 10)))
    expected = algorithm_1(W, 10, 20, np.random.default_rng(seed))
    assert np.allclose(solve(W, seed, 10, 20).eigenvalues, expected, rtol=1e-8)


def test_sketch_with_n_columns_is_exact():
    W = matrix_with("slow")[:50, :50]
    assert np.allclose(solve(W, 0, 10, 50).eigenvalues, eigenvalues(W, 10), rtol=1e-12)


@pytest.mark.parametrize("name", SPECTRA)
def test_trace_certificate_always_holds(name):
    truth = SPECTRA[name][:K]
    for seed in SEEDS:
        spectrum = solve(matrix_with(name, seed), seed)
        assert spectrum.bound_kind == "certified"
        error = np.abs(np.log(truth + GAMMA) - np.log(spectrum.eigenvalues + GAMMA))
        assert np.all(error <= spectrum.log_error(GAMMA) + 1e-13)
        assert np.linalg.norm(error) <= spectrum.total_log_error(GAMMA) + 1e-13
        missed = truth - spectrum.eigenvalues
        assert missed.min() >= -1e-14, "a sketch never overestimates"
        assert missed.sum() <= spectrum.stats["missing_trace"] + 1e-13


@pytest.mark.parametrize("m", [2 * K, M])
@pytest.mark.parametrize("name", SPECTRA)
def test_proposition_2_holds_on_average(name, m):
    truth = SPECTRA[name]
    tail = truth[K:].sum()
    first = K / (m - K - 1) * tail
    second = 1.5 * first / (truth[K - 1] + GAMMA)
    sums, log_sums, conditions = [], [], []
    for seed in SEEDS:
        spectrum = solve(matrix_with(name, seed), seed, m=m)
        found = spectrum.eigenvalues
        sums.append(np.abs(truth[:K] - found).sum())
        log_sums.append(np.abs(np.log(truth[:K] + GAMMA) - np.log(found + GAMMA)).sum())
        relative = np.abs(truth[:K] - found) / (truth[:K] + GAMMA)
        conditions.append(bool(relative.max() <= 0.5828))
        posterior = spectrum.stats["proposition_2"]
        assert posterior["eigenvalue_sum"] >= first * (1 - 1e-12)
        assert posterior["log_sum"] >= second * (1 - 1e-12)
        assert conditions[-1] or not posterior["condition_holds"]
    assert np.mean(sums) <= first
    if name == "gap":  # so a smaller bound would not hold
        assert np.mean(sums) > 0.7 * first
        assert np.mean(log_sums) > 0.45 * second
    assert all(conditions), "part two speaks of no other case"
    assert np.mean(log_sums) <= second


@pytest.mark.parametrize("name", ["slow", "clustered"])
def test_expectation_bound_holds_on_average(name):
    truth = np.log(SPECTRA[name][:K] + GAMMA)
    runs = [solve(matrix_with(name, s), s, bound="expectation") for s in SEEDS]
    assert {run.bound_kind for run in runs} == {"expectation"}
    errors = [np.linalg.norm(truth - np.log(run.eigenvalues + GAMMA)) for run in runs]
    assert np.mean(errors) <= np.mean([run.total_log_error(GAMMA) for run in runs])


RANK_DEFICIENT = {
    "rank 1": np.ones((40, 40)) / 40,
    "rank 3": with_spectrum(np.linalg.qr(np.eye(40) + 0.1)[0], np.r_[3.0, 2.0, 1.0, np.zeros(37)]),
    "zero": np.zeros((40, 40)),
    "barely indefinite": np.diag(np.r_[1.0, 0.5, np.full(38, -1e-17)]),
    "tiny": np.ones((40, 40)) * 1e-300,
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", RANK_DEFICIENT)
def test_rank_deficient_operators_give_correct_values(name, seed):
    W = RANK_DEFICIENT[name]
    spectrum = solve(W, seed, 8, 16)
    truth = eigenvalues(W, 8)
    assert np.allclose(spectrum.eigenvalues, truth, rtol=1e-12, atol=1e-14 * truth[0])
    assert spectrum.stats["factorisation"].startswith("cholesky")
    error = np.abs(np.log(truth + GAMMA) - np.log(spectrum.eigenvalues + GAMMA))
    assert np.linalg.norm(error) <= spectrum.total_log_error(GAMMA) + 1e-13


@pytest.mark.parametrize("seed", range(5))
def test_failed_cholesky_falls_back_to_eigenvectors(seed):
    # ν is 2.2e-16·‖Y‖, so eigenvalues of -1e-13 make Ωᵀ(W + νI)Ω indefinite for certain.
    values = np.r_[1.0, 0.5, 0.25, np.full(57, -1e-13)]
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((60, 60)))[0]
    spectrum = solve(with_spectrum(Q, values), seed, 6, 30)
    assert "cholesky failed; 3 of 30 eigen-directions kept" in spectrum.stats["factorisation"]
    assert np.allclose(spectrum.eigenvalues, np.maximum(values[:6], 0.0), atol=1e-11)


def test_signature_of_duplicated_points_reports_fallback():
    few = np.repeat(np.random.default_rng(0).normal(size=(12, 2)), 10, axis=0)
    signature = ua.signature(few, n_eigenvalues=30, solver="nystrom")
    assert "factorisation" in signature.stats
    exact = ua.signature(few, n_eigenvalues=30, solver="exact")
    error = np.linalg.norm(signature.values - exact.values)
    assert error <= signature.total_error_bound + exact.total_error_bound


def test_indefinite_operator_raises():
    operator = MatrixOperator(np.diag([1.0, -1.0]), definite=False)
    with pytest.raises(InputError, match=r"'nystrom' needs a positive semi-definite.*'exact'"):
        Nystrom().solve(operator, 1, Accuracy(), np.random.default_rng(0))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"sketch_size": 5}, InputError, r"sketch_size=5 must lie between n_eigenvalues=10 and"),
        ({"sketch_size": 99}, InputError, r"and the number of samples, 40. Leave it out for 2K"),
        ({"sketch_size": True}, InputTypeError, r"sketch_size=True must be a whole number"),
        ({"sketch_size": 0}, InputError, r"sketch_size=0 must be at least 1"),
        ({"sketch_size": 20, "solver": "exact"}, InputError, r"belongs to solver='nystrom'"),
        ({"sketch_size": 20, "solver": Nystrom()}, InputError, r"given by name"),
        (
            {"solver": "nystroem"},
            InputError,
            r"solver='nystroem' is not known. Did you mean 'nystr",
        ),
        ({"solver": 3}, InputError, r"solver=3 is not known"),
    ],
)
def test_invalid_settings_raise(options, error, message):
    points = np.random.default_rng(0).normal(size=(40, 2))
    with pytest.raises(error, match=message):
        ua.signature(points, n_eigenvalues=10, **{"solver": "nystrom", **options})


def test_default_sketch_size_is_2k_and_at_most_n():
    points = np.random.default_rng(0).normal(size=(40, 2))
    for k, m in ((5, 10), (20, 40), (30, 40)):
        assert ua.signature(points, n_eigenvalues=k, solver="nystrom").stats["sketch_size"] == m
