"""Sampled eigenvalues: errors, stated errors, isolated rows, the same answer for all sources."""

import itertools
import warnings

import numpy as np
import pytest
from scipy.linalg import eigvalsh

import unaligned as ua
from row_files import POINTS, h5ad, npy, parquet
from unaligned import defaults
from unaligned.errors import AccuracyWarning, InputError, InputTypeError
from unaligned.operators.affinity import CrossKernel, KernelAffinity
from unaligned.operators.base import MatrixOperator
from unaligned.operators.diffusion import DiffusionOperator
from unaligned.operators.kernel import Gaussian
from unaligned.spectra.base import Accuracy
from unaligned.spectra.sampled import Sampled, leading_vectors
from unaligned.spectra.sampled.estimate import SampledSpectrum, estimate
from unaligned.spectra.sampled.passes import Degrees
from unaligned.spectra.sampled.sizes import Sizes, first_sizes, larger_sizes

K, GAMMA = 30, 1e-8


def operator_of(points):
    scale = 4.0 * float(np.var(points, axis=0).sum())
    return DiffusionOperator(KernelAffinity(points, Gaussian(scale)))


def decaying(rng, n=2500, d=20):
    return rng.normal(size=(n, d)) / np.sqrt(np.arange(1, d + 1))


def with_outliers(rng):
    return np.vstack([decaying(rng), 40.0 * rng.normal(size=(25, 20))])


def unequal_clusters(rng):
    shares = 1.0 / np.arange(1, 41) ** 1.5
    labels = rng.choice(40, size=2500, p=shares / shares.sum())
    return 4.0 * rng.normal(size=(40, 20))[labels] + rng.normal(size=(2500, 20))


def dask(_folder):
    return pytest.importorskip("dask.array").from_array(POINTS, chunks=(300, 5))


SETS = {"1/i": decaying, "outliers": with_outliers, "unequal clusters": unequal_clusters}


@pytest.fixture(scope="module")
def truths():
    return {
        name: np.log(eigvalsh(operator_of(make(np.random.default_rng(0))).to_dense())[::-1][:K])
        for name, make in SETS.items()
    }


def solved(points, seed, tol=0.1, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        return Sampled(**options).solve(
            operator_of(points), K, Accuracy(GAMMA, tol), np.random.default_rng(seed)
        )


@pytest.mark.parametrize("name", SETS)
def test_stated_error_covers_the_true_one_and_is_of_its_size(name, truths):
    ratios = []
    for seed in range(6):
        found = solved(SETS[name](np.random.default_rng(0)), seed, max_landmarks=300)
        assert found.bound_kind == "statistical"
        error = np.linalg.norm(np.log(found.eigenvalues) - truths[name])
        ratios.append(found.total_log_error(GAMMA) / error)
    assert np.sum(np.array(ratios) < 1.0) <= 1
    assert np.median(ratios) < 6.0


def test_isolated_rows_have_their_own_eigenvalues(truths):
    """25 of 2525 rows far from all others: random landmarks miss most of them."""
    found = solved(with_outliers(np.random.default_rng(0)), 0, max_landmarks=300)
    assert found.stats["rows_isolated"] >= 25
    assert np.abs(np.log(found.eigenvalues) - truths["outliers"]).max() < 0.1


def test_error_falls_with_tol(truths):
    points = decaying(np.random.default_rng(0))
    rough, fine = (
        solved(points, 1, tol, max_landmarks=most, refine=False)
        for tol, most in ((1.0, 300), (0.003, 900))
    )
    assert fine.total_log_error(GAMMA) < 0.5 * rough.total_log_error(GAMMA)
    error = np.linalg.norm(np.log(fine.eigenvalues) - truths["1/i"])
    assert error <= fine.total_log_error(GAMMA)


@pytest.mark.parametrize(("tol", "seed"), [(0.01, 0), (0.01, 1), (1e-4, 0), (1e-6, 2)])
def test_exact_products_reach_any_tol(tol, seed, truths):
    found = solved(decaying(np.random.default_rng(0)), seed, tol, max_landmarks=300)
    assert found.stats["converged"]
    assert found.bound_kind in ("certified", "probabilistic")
    assert found.stats["columns"] <= 5 * found.stats["functions"]
    error = np.linalg.norm(np.log(found.eigenvalues) - truths["1/i"])
    assert error <= found.total_log_error(GAMMA) <= tol


def test_exact_products_of_rows_read_by_blocks(monkeypatch):
    points = decaying(np.random.default_rng(0), n=600)
    options = {"n_eigenvalues": 20, "bandwidth": "mean", "tol": 1e-3}
    wanted = ua.signature(points, **options | {"solver": "exact"})
    monkeypatch.setattr(defaults, "STREAM_ROWS", 0)
    options["solver"] = Sampled(max_landmarks=100)
    found = ua.signature(points, **options)
    assert found.stats["storage"] == "streamed"
    assert found.stats["columns"] <= 5 * found.stats["functions"]
    assert np.linalg.norm(found.values - wanted.values) <= found.total_error_bound <= 1e-3


def test_exact_products_of_many_rows_are_made_only_where_tol_asks(monkeypatch):
    points = decaying(np.random.default_rng(0), n=4000)
    monkeypatch.setattr(defaults, "PRODUCT_ROWS", 10)
    options = {"n_eigenvalues": 20, "solver": Sampled(max_landmarks=100)}
    found = ua.signature(points, tol=0.015, **options)
    assert found.total_error_bound <= 0.015
    assert found.stats["columns"] <= 5 * found.stats["functions"]
    with pytest.warns(AccuracyWarning, match="Raise tol or max_landmarks"):
        found = ua.signature(points, tol=0.02, **options)
    assert "columns" not in found.stats


def test_hopeless_values_have_finite_limits():
    one, none = np.ones(2), np.zeros(2)
    found = SampledSpectrum(one, 1e4 * one, none, none, none, none, none, 0.0, one)
    spectrum = found.spectrum(2, 0.0)
    assert np.all(spectrum.lower >= 0)
    assert np.all(np.isfinite(spectrum.upper))
    assert spectrum.total_log_error(GAMMA) > 100


def test_all_rows_as_landmarks_are_exact():
    points = decaying(np.random.default_rng(3), n=400)
    found = solved(points, 0, 1e-6)
    wanted = eigvalsh(operator_of(points).to_dense())[::-1][:K]
    np.testing.assert_allclose(found.eigenvalues, wanted, rtol=1e-8)
    assert found.stats["converged"]


def test_missed_tolerance_warns_with_remedy():
    points = decaying(np.random.default_rng(0))
    with pytest.warns(AccuracyWarning, match=r"above tol=1e-06. Raise tol or max_landmarks"):
        Sampled(max_landmarks=200, refine=False).solve(
            operator_of(points), K, Accuracy(GAMMA, 1e-6), np.random.default_rng(0)
        )


def test_other_operators_raise():
    with pytest.raises(InputError, match=r"needs points .* Use solver='krylov'"):
        Sampled().solve(MatrixOperator(np.eye(5)), 2, Accuracy(), np.random.default_rng(0))
    points = np.random.default_rng(0).normal(size=(300, 3))
    with pytest.raises(InputError, match="n_neighbors"):
        ua.signature(points, n_eigenvalues=5, solver="sampled", n_neighbors=10)


def test_degrees_from_all_rows_are_the_exact_ones():
    points = decaying(np.random.default_rng(0), n=300)
    operator = operator_of(points)
    cross = CrossKernel(points, operator.affinity.kernel)
    kernel, places = cross.fill(points, np.empty((300, 300))), np.arange(300)
    degrees = Degrees.of(kernel, places, np.ones(300), np.empty((2, 0)))
    np.testing.assert_allclose(degrees.scaling(kernel, places), operator.scaling, rtol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_degrees_from_a_sample_are_unbiased(seed):
    points = decaying(np.random.default_rng(seed), n=2000)
    operator, chosen = operator_of(points), np.random.default_rng(seed).permutation(2000)[:500]
    cross = CrossKernel(points[chosen], operator.affinity.kernel)
    among = cross.fill(points[chosen], np.empty((500, 500)))
    degrees = Degrees.of(among, chosen, np.full(500, 4.0), np.empty((2, 0)))
    found = degrees.scaling(cross.fill(points, np.empty((500, 2000))), np.arange(2000))
    assert abs(np.log(found / operator.scaling).mean()) < 0.003


@pytest.mark.parametrize("seed", range(3))
def test_estimate_from_all_rows_is_rayleigh_ritz(seed):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(200, 200)))[0]
    W = (basis * 0.9 ** np.arange(200)) @ basis.T
    F = basis[:, :40] + 1e-3 * rng.normal(size=(200, 40))
    found = estimate(F.T @ F, F, W @ F, np.ones(200), np.zeros(200), 10)
    np.testing.assert_allclose(found.values, 0.9 ** np.arange(10), rtol=1e-4)
    assert found.noise.max() == 0.0


def close_pairs(rng):
    """Return W with eigenvalues in pairs 2 % apart, these, and the eigenvectors."""
    basis = np.linalg.qr(rng.normal(size=(300, 300)))[0]
    values = 0.9 ** (np.arange(300) // 2) * np.where(np.arange(300) % 2, 0.98, 1.0)
    return (basis * values) @ basis.T, values, basis


@pytest.mark.parametrize("seed", range(3))
def test_what_is_outside_mixes_close_eigenvalues(seed):
    """Each direction outside the functions is shared by both values of a pair."""
    rng = np.random.default_rng(seed)
    W, values, basis = close_pairs(rng)
    F = basis[:, :80] + 0.05 * basis[:, 80:90] @ rng.normal(size=(10, 80))
    found = estimate(F.T @ F, F, W @ F, np.ones(300), np.zeros(300), 20)
    plain = np.log(found.ritz_values[:20] / values[:20])
    errors = np.log(found.values / values[:20])
    assert np.linalg.norm(errors) < 0.05 * np.linalg.norm(plain)
    assert np.linalg.norm(errors) < np.linalg.norm(found.half_widths)


@pytest.mark.parametrize("seed", range(3))
def test_sampled_degrees_mix_close_eigenvalues(seed):
    rng = np.random.default_rng(seed)
    W, values, _ = close_pairs(rng)
    errors = 0.2 * rng.normal(size=300)
    scaled = W * np.exp(-errors) * np.exp(-errors)[:, None]
    F = np.linalg.eigh(scaled)[1][:, ::-1][:, :200]
    found = estimate(np.eye(200), F, scaled @ F, np.ones(300), errors, 20)
    np.testing.assert_allclose(found.values, values[:20], rtol=0.05)  # 0.13-0.2 one by one


def test_most_rows_are_all_rows():
    assert first_sizes(4300, 200).rows == 4300
    assert first_sizes(4500, 200).rows == 2200
    found = solved(decaying(np.random.default_rng(0), n=1500), 0, max_landmarks=300, refine=False)
    assert found.stats["rows_sampled"] == 1500
    assert found.stats["error_noise"] == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_fewer_landmarks_than_eigenvalues_are_raised(seed, truths):
    found = solved(decaying(np.random.default_rng(0)), seed, max_landmarks=3, refine=False)
    assert found.stats["landmarks"] == 4 * K
    error = np.linalg.norm(np.log(found.eigenvalues + GAMMA) - truths["1/i"])
    assert error < 2.0 * found.total_log_error(GAMMA)


@pytest.mark.parametrize("seed", range(3))
def test_zero_eigenvalues_of_few_distinct_points_have_small_errors(seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(12, 10))[rng.integers(12, size=1500)]
    found = solved(points, seed, refine=False)
    # In single precision the zeros would be known to 1e-8 at best, which is γ.
    assert found.eigenvalues[12:].max() < 1e-3 * GAMMA
    assert found.total_log_error(GAMMA) < 0.1


@pytest.mark.parametrize("seed", range(3))
def test_functions_that_no_sampled_row_shows_are_part_of_the_error(seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(200, 20))[rng.integers(200, size=2000)]
    truth = np.log(eigvalsh(operator_of(points).to_dense())[::-1][:K] + GAMMA)
    found = solved(points, seed, refine=False)
    error = np.linalg.norm(np.log(found.eigenvalues + GAMMA) - truth)
    assert error <= found.total_log_error(GAMMA)


def test_a_refinement_that_is_no_flag_raises():
    with pytest.raises(InputTypeError, match="refine='no' must be True or False"):
        Sampled(refine="no")


@pytest.mark.parametrize("seed", range(3))
def test_leading_vectors_span_the_leading_subspace(seed):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(300, 300)))[0]
    matrix = (basis * 0.95 ** np.arange(300)) @ basis.T
    values, vectors = leading_vectors(matrix, 60, rng)
    np.testing.assert_allclose(values[:20], 0.95 ** np.arange(20), rtol=1e-3)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(60), atol=1e-12)


def test_sizes_grow_with_accuracy_and_stay_within_their_limits():
    first = first_sizes(100_000, 200, 6000)
    assert first == Sizes(2000, 550, 2200)
    theta = 1.0 / np.arange(1.0, 551.0) ** 2
    F = np.linalg.qr(np.random.default_rng(0).normal(size=(2200, 550)))[0]
    noise = 1e-5 * np.random.default_rng(1).normal(size=(2200, 550))
    weights = np.full(2200, 100_000 / 2200)
    F /= np.sqrt(weights[0])
    products = F * theta + noise / np.sqrt(100_000)
    found = estimate(np.eye(550), F, products, weights, np.zeros(2200), 200)
    work = []
    stated = float(np.linalg.norm(found.half_widths))
    for tol in (2.0 * stated, 0.8 * stated, 0.2 * stated):
        sizes = larger_sizes(first, found, 100_000, Accuracy(GAMMA, tol), 6000)
        assert sizes.landmarks <= 6000
        assert all(a >= b for a, b in zip(sizes, first, strict=True))
        work.append(sizes.work(100_000))
    assert work[0] <= work[1] < work[2]


@pytest.mark.parametrize("seed", range(3))
def test_landmarks_do_not_bias_the_regression(seed):
    """Functions are too large on landmarks, here 150 of 900 rows, and pull a plain regression."""
    rng, n, weights = np.random.default_rng(seed), 150, np.full(150, 6.0)
    landmarks = np.arange(900)[:, None] < 150
    Q = np.linalg.qr(np.where(landmarks, 2.0, 1.0) * rng.normal(size=(900, 40)))[0]
    wanted = 0.8 ** np.arange(40)
    residual = np.where(landmarks, -0.3, 0.0) * Q * wanted
    products = Q * wanted + residual - Q @ (Q.T @ residual)
    found, plain = [], []
    for _ in range(60):
        rows = rng.choice(900, size=n, replace=False)
        spectrum = estimate(np.eye(40), Q[rows], products[rows], weights, np.zeros(n), 15)
        found.append(spectrum.values * (1.0 - spectrum.missing))
        plain.append(np.diag(np.linalg.lstsq(Q[rows], products[rows])[0])[:15])
    bias, before = (np.mean(np.mean(v, axis=0) / wanted[:15] - 1.0) for v in (found, plain))
    assert before > 0.01
    assert abs(bias) < 0.3 * before


class TestSources:
    @pytest.fixture(autouse=True)
    def _always(self, monkeypatch):
        monkeypatch.setattr(defaults, "STREAM_ROWS", 0)

    points = decaying(np.random.default_rng(5), n=2100)

    def signature(self, data):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AccuracyWarning)
            return ua.signature(
                data, n_eigenvalues=K, solver=Sampled(max_landmarks=300), tol=0.1, bandwidth=8.0
            )

    def test_stream_agrees_with_memory(self):
        found = self.signature(self.points)
        assert found.stats["storage"] == "streamed"
        wanted = ua.signature(self.points, n_eigenvalues=K, solver="exact", bandwidth=8.0)
        assert np.linalg.norm(found.values - wanted.values) < found.total_error_bound

    @pytest.mark.parametrize("sizes", [(1, 2099), (700, 700, 700), (2047, 53)])
    def test_blocks_make_no_difference(self, sizes):
        ends = np.cumsum((0, *sizes))

        def blocks():
            return (self.points[a:b] for a, b in itertools.pairwise(ends))

        found = self.signature(ua.Dataset.from_source(blocks))
        wanted = self.signature(self.points)
        np.testing.assert_allclose(found.values, wanted.values, atol=1e-6)

    def test_source_that_changes_raises(self):
        calls = []

        def blocks():
            calls.append(1)
            shift = 0.01 * (len(calls) > 4)
            return (block + shift for block in np.array_split(self.points, 3))

        with pytest.raises(InputError, match="must return the same rows"):
            self.signature(ua.Dataset.from_source(blocks))
        assert len(calls) > 4

    def test_source_in_another_order_raises(self):
        calls, rng = [], np.random.default_rng(0)

        def blocks():
            calls.append(1)
            if len(calls) < 3:
                return iter([self.points])
            return iter([np.vstack([self.points[:1], rng.permutation(self.points[1:])])])

        with pytest.raises(InputError, match=r"row \d+ is not the one returned before"):
            self.signature(ua.Dataset.from_source(blocks))
        assert len(calls) > 2

    @pytest.mark.parametrize("make", [npy, parquet, h5ad, dask], ids=lambda make: make.__name__)
    def test_every_format_gives_the_same_answer(self, make, tmp_path, monkeypatch):
        monkeypatch.setattr(defaults, "LAZY_BYTES", 0)  # chunks of Dask arrays hash differently
        found, wanted = (
            ua.signature(data, n_eigenvalues=20, solver=Sampled(max_landmarks=200), tol=1.0)
            for data in (ua.Dataset.from_source(make(tmp_path)), POINTS)
        )
        np.testing.assert_allclose(found.values, wanted.values, atol=1e-6)
