"""Landmarks: eigenvalues are right and their bounds hold."""

import warnings

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import load_digits

from unaligned.errors import AccuracyWarning, DegenerateDataError, InputError
from unaligned.operators.affinity import KernelAffinity
from unaligned.operators.bandwidth import estimate_scale
from unaligned.operators.base import MatrixOperator
from unaligned.operators.diffusion import DiffusionOperator
from unaligned.operators.kernel import Gaussian, KernelSettings
from unaligned.spectra.base import Accuracy, Spectrum
from unaligned.spectra.landmarks import Landmarks
from unaligned.spectra.landmarks.certificate import RowStatistics, Scaling
from unaligned.spectra.landmarks.cholesky import CertifiedCholesky, PivotedCholesky

SEEDS = range(5)
GAMMA = 1e-8


def torus(n, dimension, seed=0):
    """Points of the paper's tori, Eq. [appeq:tori_eqs]: R = 10, 3, 1."""
    angles = np.random.default_rng(seed).uniform(0, 2 * np.pi, (3, n))
    (c1, c2, c3), (s1, s2, s3) = np.cos(angles), np.sin(angles)
    tube = 3 + c3 if dimension == 3 else 3
    ring = 10 + tube * c2
    points = [ring * c1, ring * s1, tube * s2] + ([s3] if dimension == 3 else [])
    return np.stack(points, axis=1)


def diffusion(points):
    squared = squareform(pdist(points, "sqeuclidean"))
    scale = estimate_scale(squared, KernelSettings()).sigma_squared
    return DiffusionOperator(KernelAffinity(points, Gaussian(scale)))


def with_spectrum(eigenvalues, seed=0):
    n = len(eigenvalues)
    basis, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))
    matrix = (basis * eigenvalues) @ basis.T
    return MatrixOperator((matrix + matrix.T) / 2)


def duplicated(seed=0):
    points = np.random.default_rng(seed).standard_normal((40, 2))
    return diffusion(np.repeat(points, 5, axis=0))


def signed(seed=0):
    """A positive affinity with negative entries, whose row sums are positive."""
    rng = np.random.default_rng(seed)
    features = np.hstack([np.ones((120, 1)), 0.25 * rng.standard_normal((120, 40))])
    affinity = features @ features.T + 1e-3 * np.eye(120)
    assert affinity.min() < 0 < affinity.sum(axis=1).min()
    return DiffusionOperator(MatrixOperator(affinity))


def outliers():
    points = torus(300, 2)
    points[:3] *= 100.0
    return diffusion(points)


n = 150
OPERATORS = {
    "fast": lambda: with_spectrum(0.7 ** np.arange(n)),
    "slow": lambda: with_spectrum(1 / np.arange(1, n + 1)),
    "clustered": lambda: with_spectrum(np.repeat([1.0, 1e-3, 1e-6], n // 3)),
    "flat": lambda: with_spectrum(np.ones(n)),
    "low rank": lambda: with_spectrum(np.repeat([1.0, 0.0], [10, n - 10])),
    "2-torus": lambda: diffusion(torus(400, 2)),
    "3-torus": lambda: diffusion(torus(400, 3)),
    "digits": lambda: diffusion(load_digits().data[:300]),
    "noise": lambda: diffusion(np.random.default_rng(0).standard_normal((300, 100))),
    "duplicates": duplicated,
    "signed": signed,
    "outliers": outliers,
}


@pytest.fixture(scope="module", params=OPERATORS)
def case(request):
    operator = OPERATORS[request.param]()
    return operator, np.linalg.eigvalsh(operator.to_dense())[::-1]


def solve(operator, k, *, tol=1e-4, gamma=GAMMA, seed=0, **settings):
    """Solve, ignoring the warning that `tol` was not met."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        rng = np.random.default_rng(seed)
        return Landmarks(**settings).solve(operator, k, Accuracy(gamma, tol), rng)


def log_error(spectrum, truth, gamma=GAMMA):
    wanted = np.maximum(truth[: spectrum.n_eigenvalues], 0.0)
    return np.log(spectrum.eigenvalues + gamma) - np.log(wanted + gamma)


def assert_covered(spectrum, truth, gamma):
    """The bounds hold, but for what rounding did to the reference."""
    error = np.abs(log_error(spectrum, truth, gamma))
    reference = np.sqrt(truth.size) * np.finfo(float).eps * truth[0]  # as Exact has it
    slip = reference / (spectrum.eigenvalues + gamma)
    assert np.isfinite(spectrum.eigenvalues).all()
    assert (np.diff(spectrum.eigenvalues) <= 0).all()
    assert (error <= spectrum.log_error(gamma) + slip).all()
    assert np.linalg.norm(error) <= spectrum.total_log_error(gamma) + np.linalg.norm(slip)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("gamma", [1e-8, 1e-3])
@pytest.mark.parametrize("max_landmarks", [None, 1, 12, 60])
def test_bound_covers_error_for_any_budget(case, seed, gamma, max_landmarks):
    operator, truth = case
    found = solve(operator, 50, gamma=gamma, seed=seed, max_landmarks=max_landmarks)
    assert found.bound_kind == "certified"
    assert max_landmarks is None or found.stats["landmarks"] <= max_landmarks
    assert_covered(found, truth, gamma)
    assert_covered(found.truncate(7), truth, gamma)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("tol", [1e-1, 1e-3])
def test_error_meets_tol_without_a_budget(case, seed, tol):
    operator, truth = case
    found = solve(operator, 20, tol=tol, gamma=1e-6, seed=seed, max_landmarks=10_000)
    assert found.stats["converged"]
    assert found.total_log_error(1e-6) <= tol
    assert np.linalg.norm(log_error(found, truth, 1e-6)) <= tol
    assert_covered(found, truth, 1e-6)


@pytest.mark.parametrize("dimension", [2, 3])
def test_tori_agree_with_eigvalsh(dimension):
    operator = diffusion(torus(1500, dimension))
    truth = np.linalg.eigvalsh(operator.to_dense())[::-1]
    for seed in SEEDS:
        found = solve(operator, 200, seed=seed)
        assert found.stats["converged"]
        assert np.linalg.norm(log_error(found, truth)) <= 1e-5
        assert_covered(found, truth, GAMMA)


@pytest.mark.parametrize(("dimension", "most"), [(2, 1.35), (3, 1.5)])
def test_true_error_needs_nearly_as_many_landmarks(dimension, most):
    operator = diffusion(torus(1500, dimension))
    truth = np.linalg.eigvalsh(operator.to_dense())[::-1]
    for seed in range(2):
        used = solve(operator, 200, tol=1e-3, seed=seed).stats["landmarks"]
        fewer = solve(operator, 200, tol=0.0, seed=seed, max_landmarks=int(used / most))
        assert np.linalg.norm(log_error(fewer, truth)) > 1e-3


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["3-torus", "digits", "noise"])
def test_spreading_the_residual_trace_reduces_the_error(name, seed, monkeypatch):
    operator = OPERATORS[name]()
    truth = np.linalg.eigvalsh(operator.to_dense())[::-1]
    corrected = solve(operator, 50, seed=seed, max_landmarks=100)
    monkeypatch.setattr(RowStatistics, "shift", 0.0)
    plain = solve(operator, 50, seed=seed, max_landmarks=100)
    assert (corrected.eigenvalues[1:] >= plain.eigenvalues[1:]).all()
    errors = [np.linalg.norm(log_error(s, truth)) for s in (corrected, plain)]
    assert errors[0] < errors[1]


def test_same_seed_gives_same_spectrum():
    operator = diffusion(torus(300, 3))
    one, two, other = (solve(operator, 40, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.eigenvalues, two.eigenvalues)
    assert dict(one.stats) == dict(two.stats)
    np.testing.assert_allclose(one.eigenvalues, other.eigenvalues, atol=1e-11)


@pytest.mark.parametrize("block_size", [1, 7, 500])
def test_any_block_size_meets_tol(block_size):
    operator = diffusion(torus(500, 2))
    found = solve(operator, 30, block_size=block_size)
    assert found.stats["converged"]
    np.testing.assert_allclose(found.eigenvalues, solve(operator, 30).eigenvalues, atol=1e-11)


def test_landmarks_use_no_products_and_no_exact_scaling(monkeypatch):
    operator = diffusion(torus(500, 2))

    def fail(self, block):
        raise AssertionError("a product was computed")

    monkeypatch.setattr(KernelAffinity, "_matmat", fail)
    found = solve(operator, 30)
    assert "scaling" not in vars(operator)
    assert found.stats["entries_evaluated"] == operator.entries_evaluated < 500**2 / 2


@pytest.mark.parametrize("seed", SEEDS)
def test_eigenvalues_beyond_the_rank_are_zero(seed):
    found = solve(OPERATORS["low rank"](), 30, seed=seed)
    np.testing.assert_allclose(found.eigenvalues[:10], 1.0, atol=1e-12)
    np.testing.assert_allclose(found.eigenvalues[10:], 0.0, atol=1e-12)
    assert found.stats["landmarks"] == 10


def test_duplicates_need_one_landmark_each():
    found = solve(duplicated(), 200, tol=0.0)
    assert found.stats["landmarks"] <= 40
    assert found.eigenvalues[40:].max() < 1e-12


@pytest.mark.parametrize("n", [1, 2, 3])
def test_all_eigenvalues_of_tiny_sets_are_exact(n):
    points = np.arange(n, dtype=float)[:, None]
    operator = DiffusionOperator(KernelAffinity(points, Gaussian(1.0)))
    truth = np.linalg.eigvalsh(operator.to_dense())[::-1]
    found = solve(operator, n)
    np.testing.assert_allclose(found.eigenvalues, truth, atol=1e-13)
    assert found.stats["converged"]


def test_zero_matrix_has_zero_eigenvalues():
    found = solve(MatrixOperator(np.zeros((5, 5))), 3)
    assert (found.eigenvalues == 0).all()
    assert found.total_log_error(GAMMA) < 1e-14  # the rounding of log(γ)
    assert found.stats["landmarks"] == 0


def test_gamma_zero_gives_infinite_bound_for_zero_eigenvalues():
    found = solve(OPERATORS["low rank"](), 30, gamma=0.0)
    assert np.isinf(found.total_log_error(0.0))
    assert np.isfinite(found.eigenvalues).all()


def test_missing_tol_warns_with_bound_and_remedy():
    operator = OPERATORS["noise"]()
    solver = Landmarks(max_landmarks=30)
    with pytest.warns(AccuracyWarning, match=r"30 landmarks, above tol=0\.0001.*max_landmarks"):
        found = solver.solve(operator, 50, Accuracy(), np.random.default_rng(0))
    assert not found.stats["converged"]
    assert found.total_log_error(GAMMA) > 1e-4


def test_warning_names_rounding_when_only_rounding_is_left():
    operator = diffusion(torus(300, 2))
    with pytest.warns(AccuracyWarning, match="rounding"):
        found = Landmarks().solve(operator, 150, Accuracy(1e-8, 1e-12), np.random.default_rng(0))
    assert not found.stats["converged"]
    assert found.total_log_error(GAMMA) < 1e-4


def test_indefinite_affinity_raises():
    operator = DiffusionOperator(MatrixOperator(np.eye(3), definite=False))
    with pytest.raises(InputError, match="solver='krylov' or 'exact'"):
        solve(operator, 2)


def test_zero_row_raises():
    operator = DiffusionOperator(MatrixOperator(np.diag([1.0, 0.0])))
    with pytest.raises(DegenerateDataError, match=r"1 rows .* \(row 1\)"):
        solve(operator, 1)


@pytest.mark.parametrize("name", ["max_landmarks", "block_size"])
def test_settings_must_be_positive_integers(name):
    with pytest.raises(InputError, match=f"{name}=0 must be at least 1"):
        Landmarks(**{name: 0})


@pytest.mark.parametrize("seed", SEEDS)
def test_residual_diagonal_bounds_residual(case, seed):
    operator = getattr(case[0], "affinity", case[0])
    matrix, factor = operator.to_dense(), PivotedCholesky(operator, 80)
    rng = np.random.default_rng(seed)
    while not factor.exhausted and factor.rank < factor.capacity:
        factor.grow(16, rng)
        left = matrix - factor.features.T @ factor.features
        root = np.sqrt(factor.residual)
        noise = 1e-13 * matrix.diagonal().max()
        assert (np.abs(left) <= np.outer(root, root) + noise).all()
        assert np.linalg.eigvalsh(left)[0] >= -noise * 10
    assert factor.rank == np.unique(factor.landmarks).size <= 80


def test_bound_holds_for_slightly_indefinite_matrix():
    operator = with_spectrum(np.concatenate([0.5 ** np.arange(20), np.full(20, -1e-6)]))
    truth = np.linalg.eigvalsh(operator.to_dense())[::-1]
    for seed in SEEDS:
        found = solve(operator, 40, seed=seed)
        assert isinstance(found, Spectrum)
        assert_covered(found, truth, GAMMA)


@pytest.mark.parametrize("name", ["2-torus", "noise", "signed", "outliers"])
@pytest.mark.parametrize("rank", [10, 40, 110])
def test_scaling_limits_hold_for_any_number_of_landmarks(name, rank):
    operator = OPERATORS[name]()
    factor = PivotedCholesky(operator.affinity, rank)
    factor.grow(rank, np.random.default_rng(0))
    grown = CertifiedCholesky(operator, factor, 5, Accuracy(), np.random.default_rng(1))
    grown.refresh()
    ratio = operator.scaling**2 / grown.squares
    assert grown.limits[0] <= ratio.min() * (1 + 1e-12)
    assert ratio.max() <= grown.limits[1] * (1 + 1e-12)


def test_statistics_do_not_depend_on_how_rows_are_split():
    rng = np.random.default_rng(0)
    left, diagonal, density, degree = rng.uniform(0.1, 1.0, (4, 300))
    scaling = Scaling.of(density + 1.0, degree, diagonal, 0.0, nonnegative=True)
    whole = RowStatistics.of(left, diagonal, scaling)
    first, second = (
        RowStatistics.of(left[rows], diagonal[rows], Scaling(*(a[rows] for a in scaling[:3])))
        for rows in (slice(0, 7), slice(7, 300))
    )
    np.testing.assert_allclose((first + second).sums, whole.sums, rtol=1e-12)
    np.testing.assert_allclose((first + second).maxima, whole.maxima, rtol=1e-12)
