"""CKA against its definition with dense matrices."""

import re

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from sklearn.metrics.pairwise import rbf_kernel

import unaligned as ua
from unaligned.errors import DegenerateDataError, InputError, NotApplicableError
from unaligned.metrics import cka

SEEDS = range(4)
CASES = [(k, b) for k in ("linear", "rbf") for b in (False, True)]


def pair(seed, n=40, d=5, e=7):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    return x, x @ rng.normal(size=(d, e)) + rng.normal(size=(n, e)) + 3.0


def gram(x, kernel):
    if kernel == "linear":
        return x @ x.T
    return rbf_kernel(x, gamma=0.5 / np.median(pdist(x)) ** 2)


def hsic(K, L, debiased):
    n = len(K)
    if not debiased:
        H = np.eye(n) - 1 / n
        return np.trace(K @ H @ L @ H)
    K, L = (A - np.diag(np.diag(A)) for A in (K, L))
    one = np.ones(n)
    middle = (one @ K @ one) * (one @ L @ one) / ((n - 1) * (n - 2))
    return (np.trace(K @ L) + middle - 2 / (n - 2) * one @ K @ L @ one) / (n * (n - 3))


def textbook(x, y, kernel, debiased):
    K, L = gram(x, kernel), gram(y, kernel)
    norms = hsic(K, K, debiased) * hsic(L, L, debiased)
    return 1 - hsic(K, L, debiased) / np.sqrt(norms)


@pytest.mark.parametrize("shape", [(40, 5, 7), (12, 60, 80), (30, 3, 200)])
@pytest.mark.parametrize(("kernel", "debiased"), CASES)
@pytest.mark.parametrize("seed", SEEDS)
def test_equals_the_definition(seed, kernel, debiased, shape):
    x, y = pair(seed, *shape)
    found = ua.distance(x, y, "cka", kernel=kernel, debiased=debiased)
    assert found == pytest.approx(textbook(x, y, kernel, debiased), rel=1e-8, abs=1e-10)


@pytest.mark.parametrize(("kernel", "debiased"), CASES)
def test_many_tiles_equal_the_definition(monkeypatch, kernel, debiased):
    monkeypatch.setattr(cka, "_TILE_ROWS", 16)
    x, y = pair(0, 50, 60, 70)
    found = ua.distance(x, y, "cka", kernel=kernel, debiased=debiased)
    assert found == pytest.approx(textbook(x, y, kernel, debiased), rel=1e-8)


@pytest.mark.parametrize(("kernel", "debiased"), CASES)
def test_equal_and_rotated_data_have_distance_zero(kernel, debiased):
    x, _ = pair(0)
    options = {"kernel": kernel, "debiased": debiased}
    assert ua.distance(x, x.copy(), "cka", **options) == 0.0
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]
    assert ua.distance(x, 7 * x @ Q - 2, "cka", **options) == pytest.approx(0.0, abs=1e-10)


def plain_rbf(x, factor=1.0):
    """Return the kernel from differences; a wide one minus 1, which centring removes."""
    distances = squareform(pdist(x))
    width = factor * np.median(pdist(x))
    exponent = -((distances / width) ** 2) / 2
    return np.expm1(exponent) if factor > 1 else np.exp(exponent)


def aligned(K, L, debiased):
    return hsic(K, L, debiased) / np.sqrt(hsic(K, K, debiased) * hsic(L, L, debiased))


@pytest.mark.parametrize("debiased", [False, True])
@pytest.mark.parametrize("far", [1e6, 1e8, 1e10])
@pytest.mark.parametrize("seed", range(2))
def test_rbf_is_accurate_with_outliers(seed, far, debiased):
    x, y = pair(seed, 300, 20, 25)
    x[:10] += far
    y[5:15] += far
    expected = 1 - aligned(plain_rbf(x), plain_rbf(y), debiased)
    found = ua.distance(x, y, "cka", kernel="rbf", debiased=debiased)
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("debiased", [False, True])
@pytest.mark.parametrize("factor", [0.1, 0.5, 10.0, 1e3])
@pytest.mark.parametrize("seed", SEEDS)
def test_rbf_is_accurate_for_narrow_and_wide_kernels(seed, factor, debiased):
    x, y = pair(seed, 80, 12, 15)
    expected = 1 - aligned(plain_rbf(x, factor), plain_rbf(y, factor), debiased)
    options = {"kernel": "rbf", "bandwidth_factor": factor, "debiased": debiased}
    assert ua.distance(x, y, "cka", **options) == pytest.approx(expected, rel=1e-7)


def test_kernel_of_isolated_points():
    options = {"kernel": "rbf", "bandwidth_factor": 1e-100}
    assert ua.distance(*pair(0), "cka", **options) == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(DegenerateDataError, match=r"norm is 0.*bandwidth_factor=1e-100.*nearer"):
        ua.distance(*pair(0), "cka", debiased=True, **options)


@pytest.mark.parametrize("factor", [1e-200, 1e-160, 1e160, 1e200])
def test_bandwidth_factors_out_of_range_raise(factor):
    option = re.escape(f"bandwidth_factor={factor!r}")
    with pytest.raises(InputError, match=rf"{option} gives .* h=.*between 1e-140 and 1e\+140"):
        ua.distance(*pair(0), "cka", kernel="rbf", bandwidth_factor=factor)


def test_too_wide_kernel_raises():
    with pytest.raises(DegenerateDataError, match=r"bandwidth_factor=10000000.0.*kernel='linear'"):
        ua.distance(*pair(0), "cka", kernel="rbf", bandwidth_factor=1e7)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_debiased_values_of_few_rows_lie_between_zero_and_two(kernel):
    rng = np.random.default_rng(0)
    draws = [rng.normal(size=(2, 4, 3)) for _ in range(100)]
    found = [ua.distance(*pair, "cka", kernel=kernel, debiased=True) for pair in draws]
    assert min(found) >= -1e-12
    assert 1.5 < max(found) <= 2.0 + 1e-12


def test_rows_are_paired():
    x, y = pair(0)
    shuffled = y[np.random.default_rng(0).permutation(len(y))]
    assert ua.distance(x, shuffled, "cka") > 2 * ua.distance(x, y, "cka")
    with pytest.raises(NotApplicableError, match=r"row i with row i.*'les' needs neither"):
        ua.distance(x, y[:-1], "cka")


def test_debiasing_separates_independent_data_with_few_samples():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 20, 200))
    assert ua.distance(x, y, "cka") < 0.3  # the bias: more features than samples
    assert ua.distance(x, y, "cka", debiased=True) == pytest.approx(1.0, abs=0.15)


def test_constant_columns_integers_and_duplicates():
    x, y = pair(0)
    padded = np.column_stack([x, np.full(len(x), 1e3)])
    assert ua.distance(padded, y, "cka") == pytest.approx(ua.distance(x, y, "cka"), rel=1e-10)
    whole = np.random.default_rng(0).integers(0, 3, size=(40, 2))
    expected = textbook(whole.astype(float), y, "linear", False)
    assert ua.distance(whole.astype(np.int8), y, "cka") == pytest.approx(expected, rel=1e-8)
    doubled = np.repeat([[0.0], [1.0]], [35, 5], axis=0)
    assert 0 < ua.distance(doubled, y, "cka") <= 1
    with pytest.raises(DegenerateDataError, match="width 0 for dataset 'a'"):
        ua.distance(doubled, y, "cka", kernel="rbf")


def test_constant_or_few_rows_raise():
    x, _ = pair(0)
    with pytest.raises(
        DegenerateDataError, match="dataset 'b' has a centred kernel whose squared norm is 0"
    ):
        ua.distance(x, np.full_like(x, 0.1), "cka")
    with pytest.raises(NotApplicableError, match="at least 4 rows, and dataset 'a' has 3"):
        ua.distance(x[:3], x[1:4], "cka", debiased=True)
    with pytest.raises(NotApplicableError, match="at least 2 rows"):
        ua.distance(x[:1], x[1:2], "cka")
