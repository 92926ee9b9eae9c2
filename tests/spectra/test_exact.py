"""The exact solver: eigenvalues of LAPACK with a bound on rounding."""

import time

import numpy as np
import pytest

import unaligned as ua
from reference import diffusion_of_points, eigenvalues, random_spd, with_spectrum
from unaligned.errors import InputError
from unaligned.operators.base import MatrixOperator
from unaligned.spectra import exact
from unaligned.spectra.base import Accuracy, Spectrum
from unaligned.spectra.exact import Exact


def solve(matrix, k, **options):
    operator = MatrixOperator(matrix, **options)
    return Exact().solve(operator, k, Accuracy(), np.random.default_rng(0))


@pytest.mark.parametrize("seed", range(5))
def test_known_spectrum_lies_within_bound(seed):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((80, 80)))[0]
    truth = np.sort(10.0 ** rng.uniform(-9, 0, size=80))[::-1]
    spectrum = solve(with_spectrum(Q, truth), 30)
    assert spectrum.bound_kind == "exact"
    error = np.abs(np.log(spectrum.eigenvalues + 1e-8) - np.log(truth[:30] + 1e-8))
    # Making the matrix rounds too, so the bound is met up to a small factor.
    assert np.all(error <= 3 * spectrum.log_error(1e-8))
    assert np.linalg.norm(error) <= 3 * spectrum.total_log_error(1e-8)


def test_input_matrix_is_not_modified():
    matrix = random_spd(np.random.default_rng(0), 20)
    before = matrix.copy()
    solve(matrix, 5)
    assert np.array_equal(matrix, before)


def test_all_eigenvalues_of_a_diffusion_operator():
    W = diffusion_of_points(np.random.default_rng(0).normal(size=(40, 2)))
    spectrum = solve(W, 40)
    assert np.allclose(spectrum.eigenvalues, eigenvalues(W), atol=1e-14)
    assert spectrum.eigenvalues[0] == pytest.approx(1.0, abs=1e-14)


def test_negative_eigenvalues_are_clipped_and_their_mass_reported():
    spectrum = solve(np.diag([3.0, 1.0, -1.0]), 3, definite=False)
    assert np.array_equal(spectrum.eigenvalues, [3.0, 1.0, 0.0])
    assert spectrum.stats["negative_mass"] == pytest.approx(0.2)
    assert spectrum.bound_kind == "none"


def test_zero_matrix_has_zero_eigenvalues():
    assert np.array_equal(solve(np.zeros((3, 3)), 2).eigenvalues, [0.0, 0.0])


def test_spectrum_is_read_only_and_truncation_keeps_bounds():
    values = np.array([1.0, 0.5, 0.25])
    spectrum = Spectrum(values, values - 0.01, values + 0.01, 0.1, "certified", "test")
    with pytest.raises(ValueError, match="read-only"):
        spectrum.eigenvalues[0] = 2.0
    assert values.flags.writeable
    short = spectrum.truncate(2)
    assert np.array_equal(short.log_error(1e-8), spectrum.log_error(1e-8)[:2])
    assert short.slack == spectrum.slack
    assert short.total_log_error(1e-8) <= spectrum.total_log_error(1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_total_bound_covers_any_distribution_of_slack(seed):
    rng = np.random.default_rng(seed)
    estimate = np.sort(10.0 ** rng.uniform(-6, 0, size=12))[::-1]
    slack = float(10.0 ** rng.uniform(-8, 0))
    spectrum = Spectrum(estimate, 0.99 * estimate, 1.01 * estimate, slack, "certified", "test")
    gamma = 1e-8
    for _ in range(200):
        extra = slack * rng.dirichlet(np.full(12, rng.choice([0.05, 1.0])))
        truth = estimate * rng.uniform(0.99, 1.01, size=12) + extra
        error = np.abs(np.log(truth + gamma) - np.log(estimate + gamma))
        assert np.all(error <= spectrum.log_error(gamma) * (1 + 1e-12))
        assert np.linalg.norm(error) <= spectrum.total_log_error(gamma) * (1 + 1e-12)


def test_zero_eigenvalue_without_gamma_has_infinite_bound():
    zero = np.array([1.0, 0.0])
    assert Spectrum(zero, zero, zero, 0.1, "certified", "test").total_log_error(0.0) == np.inf
    rounding = Spectrum(zero, zero, zero, 0.0, "exact", "test").total_log_error(0.0)
    assert 0.0 < rounding < 1e-15  # of the logarithm alone


def test_more_rows_than_fit_into_memory_raise_before_reading(monkeypatch):
    monkeypatch.setattr(exact, "available_memory", lambda: 1 << 34)
    points = np.random.default_rng(0).normal(size=(60_000, 2))
    source = ua.Dataset.from_source(lambda: iter([points]), name="many")
    started = time.perf_counter()
    for data in (source, ua.Dataset(points, name="many")):
        message = r"^dataset 'many': solver='exact' needs 53\.6 GiB .* 60000 rows .*solver='auto'"
        with pytest.raises(InputError, match=message):
            ua.signature(data, solver="exact", n_eigenvalues=20)
    assert time.perf_counter() - started < 5.0


def test_rows_that_fit_do_not_raise(monkeypatch):
    monkeypatch.setattr(exact, "available_memory", lambda: 16 * 3000**2)
    Exact().require_memory(3000)
    with pytest.raises(InputError, match=r"solver='exact' needs .* for the matrix of 3001 rows"):
        Exact().require_memory(3001)
