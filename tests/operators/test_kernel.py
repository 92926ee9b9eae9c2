"""Kernels: every storage of both equals a plain SciPy computation."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.metrics import pairwise_distances

import unaligned as ua
from unaligned import defaults
from unaligned.errors import InputError, RecipeMismatchError
from unaligned.operators import _loops_numba, _loops_numpy
from unaligned.operators.affinity import (
    CrossKernel,
    KernelAffinity,
    StreamedAffinity,
    distance_affinity,
    point_affinity,
)
from unaligned.operators.kernel import (
    KERNELS,
    WHITENING_METRICS,
    Gaussian,
    Kernel,
    KernelSettings,
    Laplacian,
)
from unaligned.rows.reduce import RowPasses
from unaligned.rows.source import GeneratedRows
from unaligned.spectra.landmarks import Landmarks

FORMULAS = {
    "gaussian": lambda distances, scale: np.exp(-(distances**2) / scale),
    "laplacian": lambda distances, scale: np.exp(-distances / np.sqrt(scale)),
}


def oracle(points, kernel, scale):
    values = points.toarray() if sparse.issparse(points) else points
    return FORMULAS[kernel](cdist(values, values), scale)


def with_near_duplicates(n_samples, n_features, seed=0):
    """Points of which some occur twice, exactly or up to 1e-9."""
    points = np.random.default_rng(seed).normal(size=(n_samples, n_features))
    points[10:20] = points[:10]
    points[20:30] = points[:10] + 1e-9
    return points


POINTS = {
    "few features": with_near_duplicates(700, 3),
    "many features": with_near_duplicates(700, 40),
    "few points": with_near_duplicates(200, 40),  # the NumPy loops
    "far from the origin": with_near_duplicates(700, 40) + 2.0**10,
    "sparse": sparse.csr_array(np.maximum(with_near_duplicates(700, 60), 0)),
    "very sparse": sparse.csr_array(np.maximum(with_near_duplicates(700, 600) - 2.8, 0)),
}


def test_every_kernel_has_a_formula_here():
    assert set(KERNELS) == set(FORMULAS)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("storage", ["dense", "tiled"])
@pytest.mark.parametrize("name", POINTS)
def test_affinity_in_memory_equals_scipy(name, storage, kernel):
    points = POINTS[name]
    expected = oracle(points, kernel, 80.0)
    affinity = KernelAffinity(points, KERNELS[kernel](80.0), storage=storage)
    matrix = affinity.to_dense()
    np.testing.assert_allclose(matrix, expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(np.diagonal(matrix), 1.0)
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_allclose(affinity.rows([15, 3]), expected[[15, 3]], rtol=0, atol=1e-12)
    block = np.random.default_rng(1).normal(size=(points.shape[0], 3))
    np.testing.assert_allclose(affinity @ block, expected @ block, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", POINTS)
def test_duplicates_have_a_laplacian_affinity_of_exactly_one(name):
    matrix = KernelAffinity(POINTS[name], Laplacian(80.0)).to_dense()
    np.testing.assert_array_equal(matrix[np.arange(10), np.arange(10, 20)], 1.0)


class Cauchy(Kernel):
    name, definite_metrics, smooth = "cauchy", (), True

    def of_squared(self, squared):
        squared /= self.sigma_squared
        squared += 1.0
        return np.reciprocal(squared, out=squared)


@pytest.mark.parametrize("name", ["few features", "many features", "few points"])
def test_new_kernel_needs_no_loop_of_its_own(name):
    expected = 1.0 / (1.0 + cdist(POINTS[name], POINTS[name]) ** 2 / 80.0)
    matrix = KernelAffinity(POINTS[name], Cauchy(80.0)).to_dense()
    np.testing.assert_allclose(matrix, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", ["few features", "many features", "few points"])
def test_streamed_affinity_equals_scipy(name, kernel):
    points = POINTS[name]
    passes = RowPasses(GeneratedRows(lambda: np.array_split(points, 3)))
    affinity = StreamedAffinity(passes, KERNELS[kernel](80.0))
    expected = oracle(points, kernel, 80.0)
    np.testing.assert_allclose(affinity.to_dense(), expected, rtol=0, atol=1e-12)
    vector = np.ones(len(points))
    np.testing.assert_allclose(affinity @ vector, expected @ vector, rtol=1e-12)
    np.testing.assert_allclose(affinity.in_memory() @ vector, expected @ vector, rtol=1e-12)


@pytest.mark.parametrize("n_features", [3, 40])
def test_cross_kernel_of_a_point_with_itself_is_one(n_features):
    points = with_near_duplicates(100, n_features)
    matrix = CrossKernel(points, Laplacian(80.0)).fill(points, np.empty((100, 100)))
    np.testing.assert_array_equal(np.diagonal(matrix), 1.0)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_neighbour_affinity_equals_the_masked_dense_one(make, kernel):
    points = np.random.default_rng(0).normal(size=(150, 5))
    distances = cdist(points, points)
    near = np.argsort(np.argsort(distances, axis=1), axis=1) < 10
    scale = 2.0 * np.median(distances**2)
    expected = FORMULAS[kernel](distances, scale) * (near | near.T)
    settings = KernelSettings(kernel=kernel, n_neighbors=10)
    affinity = point_affinity(make(points), settings)
    np.testing.assert_allclose(affinity.to_dense(), expected, rtol=0, atol=1e-12)
    given = distance_affinity(distances, settings)
    np.testing.assert_allclose(given.to_dense(), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_scale_follows_the_same_rules_for_points_and_distances(kernel):
    points = np.random.default_rng(0).normal(size=(120, 4))
    distances = squareform(pdist(points))
    for bandwidth, scale in (
        ("median", 2.0 * np.median(distances**2)),
        ("mean", 2.0 * np.mean(distances**2)),
        (7.0, 7.0),
    ):
        settings = KernelSettings(kernel=kernel, bandwidth=bandwidth)
        expected = FORMULAS[kernel](distances, scale)
        for affinity in (point_affinity(points, settings), distance_affinity(distances, settings)):
            assert affinity.sigma_squared == pytest.approx(scale, rel=1e-12)
            assert affinity.definite
            np.testing.assert_allclose(affinity.to_dense(), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("metric", [*WHITENING_METRICS, *Laplacian.definite_metrics])
def test_laplacian_affinity_of_definite_metrics_is_positive(metric):
    points = np.random.default_rng(0).integers(0, 4, size=(80, 6)) + 0.5
    affinity = point_affinity(points, KernelSettings(metric=metric, kernel="laplacian"))
    distances = pairwise_distances(points, metric=metric)
    np.fill_diagonal(distances, 0.0)
    expected = FORMULAS["laplacian"](distances, 2.0 * np.median(distances**2))
    np.testing.assert_allclose(affinity.to_dense(), expected, rtol=0, atol=1e-12)
    assert affinity.definite
    assert np.linalg.eigvalsh(expected)[0] > -1e-12


@pytest.mark.parametrize("loops", [_loops_numba, _loops_numpy])
@pytest.mark.parametrize("kernel", KERNELS)
def test_loops_equal_the_kernel_of_squared_distances(kernel, loops):
    points = np.random.default_rng(0).normal(size=(50, 20))
    tile, norms = points @ points.T, np.square(points).sum(axis=1)
    KERNELS[kernel](9.0).of_products(loops, tile, norms, norms)
    np.testing.assert_allclose(tile, oracle(points, kernel, 9.0), rtol=0, atol=1e-7)
    np.testing.assert_allclose(
        tile[~np.eye(50, dtype=bool)],
        oracle(points, kernel, 9.0)[~np.eye(50, dtype=bool)],
        rtol=1e-13,
    )


def les_oracle(points, kernel, k):
    distances = squareform(pdist(points))
    K = FORMULAS[kernel](distances, 2.0 * np.median(distances**2))
    density = K.sum(axis=1)
    degree = (K / np.outer(density, density)).sum(axis=1)
    W = K / np.outer(density * np.sqrt(degree), density * np.sqrt(degree))
    return np.log(np.linalg.eigvalsh(W)[::-1][:k] + 1e-8)


@pytest.mark.parametrize("solver", ["exact", "krylov", "landmarks"])
def test_laplacian_signature_equals_numpy_within_its_bound(solver):
    points = np.random.default_rng(0).normal(size=(600, 12))
    found = ua.signature(points, kernel="laplacian", solver=solver, n_eigenvalues=30)
    error = np.linalg.norm(found.values - les_oracle(points, "laplacian", 30))
    assert error <= found.total_error_bound + 1e-9
    assert found.total_error_bound <= 1e-4


@pytest.mark.filterwarnings("ignore::unaligned.errors.AccuracyWarning")
@pytest.mark.parametrize("n_features", [2, 12])
def test_streamed_laplacian_signature_keeps_its_certificate(n_features, monkeypatch):
    monkeypatch.setattr(defaults, "STREAM_ROWS", 0)
    points = with_near_duplicates(900, n_features)
    wanted = les_oracle(points, "laplacian", 15)
    scale = 2.0 * np.median(squareform(pdist(points, "sqeuclidean")))
    for bandwidth, kind in ((scale, "certified"), ("median", "probabilistic")):
        solver = Landmarks(max_landmarks=700)
        options = {"kernel": "laplacian", "n_eigenvalues": 15, "bandwidth": bandwidth}
        found = ua.signature(points, solver=solver, **options)
        assert found.stats["storage"] == "streamed"
        assert found.bound_kind == kind
        assert np.linalg.norm(found.values - wanted) <= found.total_error_bound + 1e-9
        assert np.isfinite(found.total_error_bound)


def test_kernel_is_part_of_the_recipe():
    points = np.random.default_rng(0).normal(size=(60, 3))
    gaussian, default, laplacian = (
        ua.signature(points, n_eigenvalues=10, **options)
        for options in ({"kernel": "gaussian"}, {}, {"kernel": "laplacian"})
    )
    assert gaussian.recipe == default.recipe
    np.testing.assert_array_equal(gaussian.values, default.values)
    with pytest.raises(RecipeMismatchError, match="kernel: 'gaussian' and 'laplacian'"):
        ua.distance(gaussian, laplacian)
    with pytest.raises(RecipeMismatchError, match="kernel='laplacian' was"):
        ua.distance(gaussian, points, kernel="laplacian")
    assert ua.distance(laplacian, points, n_eigenvalues=10, kernel="laplacian") == 0.0


def test_files_of_version_0_1_0_are_gaussian():
    points = np.random.default_rng(0).normal(size=(60, 3))
    signature = ua.signature(points, n_eigenvalues=10)
    header, arrays = signature.to_parts()
    header["recipe"]["kernel"] = "diffusion"
    assert type(signature).from_parts(header, arrays).recipe == signature.recipe


def test_kernel_option_reaches_every_function():
    points = np.random.default_rng(0).normal(size=(80, 3))
    options = {"kernel": "laplacian", "n_eigenvalues": 10}
    pair = {"a": points, "b": points[:70]}
    assert ua.compare(pair, **options)["a", "b"] == ua.distance(*pair.values(), **options)
    assert ua.diagnose(points, **options).signature.recipe.kernel == "laplacian"
    ua.estimate(points, **options)


def test_kernel_that_has_no_effect_or_is_unknown_raises():
    graph = ua.Dataset(np.ones((5, 5)) - np.eye(5), kind="graph")
    with pytest.raises(InputError, match="kernel='laplacian' has no effect"):
        ua.signature(graph, kernel="laplacian", n_eigenvalues=2)
    with pytest.raises(InputError, match="Did you mean 'laplacian'"):
        KernelSettings(kernel="laplace")


def chebyshev(x, y):
    return np.abs(x - y).max()


def test_callable_metric_is_known_by_its_qualified_name():
    settings = KernelSettings(metric=chebyshev)
    assert settings.metric_name == KernelSettings(metric=chebyshev).metric_name
    assert settings.metric_name.endswith("test_kernel.chebyshev")
    assert KernelSettings(metric="l2").metric_name == "euclidean"
    assert pickle.loads(pickle.dumps(settings)).metric_name == settings.metric_name


@pytest.mark.filterwarnings("ignore::unaligned.errors.IndefiniteWarning")
def test_lambda_metric_is_comparable_within_one_call_only():
    points = np.random.default_rng(0).normal(size=(30, 2))
    options = {"metric": lambda x, y: np.abs(x - y).max(), "n_eigenvalues": 5}
    assert np.isfinite(ua.distance(points, points[:20], **options))
    first, second = (ua.signature(points, **options) for _ in range(2))
    with pytest.raises(RecipeMismatchError, match="metric"):
        ua.distance(first, second)


def test_kernels_are_gaussian_by_default():
    assert KernelSettings().kernel == Gaussian.name
