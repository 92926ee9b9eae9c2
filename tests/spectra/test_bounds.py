"""Propositions 1 and 2, and the log-Hilbert-Schmidt distance."""

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import logm

import unaligned as ua
from reference import les, matrix_log, random_spd, with_spectrum
from unaligned.errors import InputError, InputTypeError
from unaligned.spectra.bounds import sketch_bounds


def log_euclidean(first, second):
    return np.linalg.norm(matrix_log(first) - matrix_log(second))


@pytest.mark.parametrize("size", [1, 2, 5, 30])
@pytest.mark.parametrize("seed", range(10))
def test_log_euclidean_distance_lies_between_bounds(seed, size):
    rng = np.random.default_rng([seed, size])
    first, second = random_spd(rng, size), random_spd(rng, size)
    lower, upper = ua.log_euclidean_bounds(first, second)
    distance = log_euclidean(first, second)
    assert lower <= distance * (1 + 1e-9) + 1e-12
    assert distance <= upper * (1 + 1e-9) + 1e-12
    assert ua.log_euclidean_bounds(second, first) == pytest.approx((lower, upper), rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_bounds_are_attained_by_commuting_matrices(seed):
    # Same order of eigenvectors: the lower bound; opposite order: the upper.
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((20, 20)))[0]
    a, b = (np.sort(10.0 ** rng.uniform(-3, 0, size=20))[::-1] for _ in range(2))
    first = with_spectrum(Q, a)
    for second, side in ((with_spectrum(Q, b), 0), (with_spectrum(Q, b[::-1]), 1)):
        bound = ua.log_euclidean_bounds(first, second)[side]
        assert bound == pytest.approx(log_euclidean(first, second), rel=1e-9)


def test_lower_bound_of_distance_to_itself_is_zero():
    matrix = random_spd(np.random.default_rng(0), 8)
    assert ua.log_euclidean_bounds(matrix, matrix)[0] == 0.0


def test_sparse_and_integer_matrices_are_accepted():
    matrix = np.diag([3, 2, 1])
    expected = pytest.approx(ua.log_euclidean_bounds(matrix.astype(float), np.eye(3)), rel=1e-14)
    assert ua.log_euclidean_bounds(sparse.csr_array(matrix), np.eye(3)) == expected
    assert ua.log_euclidean_bounds(matrix.tolist(), np.eye(3)) == expected


@pytest.mark.parametrize(
    ("matrix", "error", "message"),
    [
        (np.ones((2, 3)), InputError, r"W1 must be a square matrix; its shape is \(2, 3\)"),
        (np.ones(3), InputError, r"W1 must be two-dimensional"),
        (np.ones((0, 0)), InputError, r"W1 is empty"),
        (np.array([[1.0, 2.0], [0.0, 1.0]]), InputError, r"W1 must be finite and symmetric"),
        (np.array([[np.nan, 0.0], [0.0, 1.0]]), InputError, r"W1 must be finite and symmetric"),
        (np.diag([1.0, 0.0]), InputError, r"positive definite.*W1 \+ gamma \* numpy.eye\(2\)"),
        (np.diag([1.0, -1.0]), InputError, r"smallest eigenvalue is -1"),
        (np.eye(3), InputError, r"W1 and W2 must have the same shape; their sizes are 3 and 2"),
        (np.eye(2) * 1j, InputTypeError, r"W1 must hold real numbers; it holds complex"),
        ("eye", InputTypeError, r"W1 must be array-like"),
        (None, InputTypeError, r"W1 must be array-like"),
    ],
)
def test_matrices_that_are_not_spd_raise(matrix, error, message):
    with pytest.raises(error, match=message):
        ua.log_euclidean_bounds(matrix, np.eye(2))


@pytest.mark.parametrize("gamma", [1e-8, 1e-3, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_log_hilbert_schmidt_with_equal_regularisation_is_les(seed, gamma):
    rng = np.random.default_rng(seed)
    a, b = np.sort(rng.uniform(size=(2, 15)))[:, ::-1]
    assert ua.log_hilbert_schmidt(a, b, gamma, gamma) == pytest.approx(les(a, b, gamma), rel=1e-8)
    W = (ua.Dataset(np.diag(a), "spd"), ua.Dataset(np.diag(b), "spd"))
    assert ua.distance(*W, gamma=gamma) == pytest.approx(les(a, b, gamma), rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_log_hilbert_schmidt_equals_formula(seed):
    rng = np.random.default_rng(seed)
    (a, b), gamma, mu = rng.uniform(size=(2, 6)), 0.3, 0.02
    total = (np.log(gamma) - np.log(mu)) ** 2
    for x, y in zip(sorted(a), sorted(b), strict=True):
        total += (np.log(x / gamma + 1) - np.log(y / mu + 1)) ** 2
    found = ua.log_hilbert_schmidt(a, b, gamma, mu)
    assert found == pytest.approx(np.sqrt(total), rel=1e-12)
    assert ua.log_hilbert_schmidt(b, a, mu, gamma) == pytest.approx(found, rel=1e-12)
    assert ua.log_hilbert_schmidt(rng.permutation(a), b, gamma, mu) == found


@pytest.mark.parametrize("seed", range(5))
def test_padding_a_spectrum_with_zeros_changes_nothing(seed):
    a, b = np.random.default_rng(seed).uniform(size=(2, 4))
    short = ua.log_hilbert_schmidt(a, b[:2], 0.1, 0.2)
    assert ua.log_hilbert_schmidt(a, np.r_[b[:2], 0.0, 0.0], 0.1, 0.2) == short
    assert ua.log_hilbert_schmidt(np.r_[a, 0.0], b[:2], 0.1, 0.2) == short


@pytest.mark.parametrize("seed", range(5))
def test_aligned_log_hilbert_schmidt_equals_independent_formulas(seed):
    rng = np.random.default_rng(seed)
    gamma, mu, n = 0.1, 0.03, 12
    A, B = random_spd(rng, n), random_spd(rng, n)
    found = ua.log_hilbert_schmidt(A, B, gamma, mu, aligned=True)
    logs = logm(A / gamma + np.eye(n)) - logm(B / mu + np.eye(n))
    assert found == pytest.approx(np.hypot(np.log(gamma / mu), np.linalg.norm(logs)), rel=1e-9)
    assert ua.log_hilbert_schmidt(B, A, mu, gamma, aligned=True) == pytest.approx(found)
    # With γ = μ it is the log-Euclidean distance of the regularised operators.
    equal = ua.log_hilbert_schmidt(A, B, gamma, gamma, aligned=True)
    datasets = (ua.Dataset(A, "spd"), ua.Dataset(B, "spd"))
    expected = ua.distance(*datasets, "log-euclidean", gamma=gamma)
    assert equal == pytest.approx(expected, rel=1e-9)
    assert ua.log_hilbert_schmidt(A, A, gamma, gamma, aligned=True) == 0.0


@pytest.mark.parametrize("gamma", [1e-8, 0.1])
@pytest.mark.parametrize("seed", range(5))
def test_aligned_distance_attains_its_bound_for_eigenvectors_in_the_same_order(seed, gamma):
    rng = np.random.default_rng(seed)
    a, b = np.sort(rng.uniform(0.01, 1, size=(2, 12)))
    Q, other = (np.linalg.qr(rng.standard_normal((12, 12)))[0] for _ in range(2))
    bound = ua.log_hilbert_schmidt(a, b, gamma, 2 * gamma)

    def aligned(second):
        return ua.log_hilbert_schmidt(with_spectrum(Q, a), second, gamma, 2 * gamma, aligned=True)

    assert aligned(with_spectrum(Q, b)) == pytest.approx(bound, rel=1e-7)
    assert aligned(with_spectrum(other, b)) > 1.01 * bound
    assert aligned(with_spectrum(Q, b[::-1])) > 1.01 * bound


def test_aligned_matrices_may_be_sparse_or_singular():
    A, B = np.diag([1.0, 0.5, 0.0]), np.diag([1.0, 0.0, 0.0])
    found = ua.log_hilbert_schmidt(A, sparse.csr_array(B), 1e-3, 1e-3, aligned=True)
    assert found == pytest.approx(np.log(501.0))


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((2, 3)), r"spectrum1 must be a square matrix"),
        (np.array([[1.0, 2.0], [0.0, 1.0]]), r"spectrum1 must be finite and symmetric"),
        (np.diag([1.0, -1.0]), r"spectrum1 \+ 0.1 I .*is -1. Give a larger gamma"),
        (np.eye(3), r"same shape; their sizes are 3 and 2. Pass their eigenvalues"),
    ],
)
def test_invalid_aligned_matrices_raise(matrix, message):
    with pytest.raises(InputError, match=message):
        ua.log_hilbert_schmidt(matrix, np.eye(2), 0.1, 0.1, aligned=True)


def test_matrices_are_not_taken_for_eigenvalues():
    with pytest.raises(InputError, match=r"not an array of shape \(2, 2\).*aligned=True"):
        ua.log_hilbert_schmidt(np.eye(2), np.eye(2), 0.1, 0.1)


@pytest.mark.parametrize("seed", range(5))
def test_log_hilbert_schmidt_is_a_lower_bound(seed):
    rng = np.random.default_rng(seed)
    gamma, mu = 0.1, 0.03
    A, B = random_spd(rng, 12), random_spd(rng, 12)
    operators = matrix_log(A / gamma + np.eye(12)) - matrix_log(B / mu + np.eye(12))
    distance = np.hypot(np.log(gamma / mu), np.linalg.norm(operators))
    spectra = np.linalg.eigvalsh(A), np.linalg.eigvalsh(B)
    assert ua.log_hilbert_schmidt(*spectra, gamma, mu) <= distance * (1 + 1e-12)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([1.0], [1.0], 0.0, 1.0), InputError, r"gamma=0.0 must be above 0"),
        (([1.0], [1.0], 1.0, -1.0), InputError, r"mu=-1.0 must be above 0"),
        (([1.0], [1.0], True, 1.0), InputTypeError, r"gamma=True must be a number"),
        (([-1.0], [1.0], 1.0, 1.0), InputError, r"spectrum1 must hold finite, nonneg"),
        (
            ([1.0], [np.nan], 1.0, 1.0),
            InputError,
            r"spectrum2 must hold finite, nonneg",
        ),
        (
            ([1.0], [], 1.0, 1.0),
            InputError,
            r"spectrum2 must hold finite, nonneg",
        ),
        (([1j], [1.0], 1.0, 1.0), InputTypeError, r"spectrum1 must hold real numbers"),
        (("ab", [1.0], 1.0, 1.0), InputTypeError, r"spectrum1 must hold real numbers, not str"),
        (
            (ua.signature(np.eye(4), bandwidth=1.0), [1.0], 1.0, 1.0),
            InputTypeError,
            r"not Signature.*pass its .eigenvalues",
        ),
    ],
)
def test_invalid_spectra_raise(arguments, error, message):
    with pytest.raises(error, match=message):
        ua.log_hilbert_schmidt(*arguments)


def test_proposition_2_needs_more_columns_than_k_plus_1():
    values = np.array([1.0, 0.5])
    for m in (2, 3):
        assert sketch_bounds(values, 2.0, 0.1, m, 1e-8) == (np.inf, np.inf, False)
    assert sketch_bounds(values, 1.75, 0.05, 5, 0.0) == pytest.approx((0.25, 0.75, True))


@pytest.mark.parametrize(("missing", "holds"), [(0.69, True), (0.71, False)])
def test_condition_of_proposition_2_is_a_relative_error_of_0_5828(missing, holds):
    # missing / (0.5 + missing) = 0.5828 at missing = 0.6984
    assert sketch_bounds(np.array([1.0, 0.5]), 3.0, missing, 9, 0.0).condition_holds is holds


@pytest.mark.parametrize("seed", [*range(6), 18])
def test_rank_deficient_matrices_raise_despite_rounding(seed):
    few = np.cov(np.random.default_rng(seed).normal(size=(4, 4)).T)  # of rank 3
    with pytest.raises(InputError, match=r"W1 must be clearly positive definite"):
        ua.log_euclidean_bounds(few, np.eye(4))
    assert ua.log_euclidean_bounds(few + 1e-6 * np.eye(4), np.eye(4))[1] < 100
