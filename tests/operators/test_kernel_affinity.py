"""The Gaussian affinity in memory: dense = tiled = SciPy, in little memory."""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from unaligned.engine.memory import available_memory, storage_for
from unaligned.errors import InputError
from unaligned.operators.affinity import KernelAffinity
from unaligned.operators.bandwidth import estimate_scale
from unaligned.operators.diffusion import DiffusionOperator
from unaligned.operators.kernel import Gaussian, KernelSettings
from unaligned.operators.pointcloud import PointCloud


def reference(points, sigma_squared):
    values = points.toarray() if sparse.issparse(points) else points
    return np.exp(-cdist(values, values, "sqeuclidean") / sigma_squared)


def points_of(kind, n_samples, seed):
    rng = np.random.default_rng(seed)
    if kind == "few features":
        return 50.0 + rng.normal(size=(n_samples, 3))
    if kind == "many features":
        return 50.0 + rng.normal(size=(n_samples, 40))
    density = 0.2 if kind == "sparse" else 0.004
    points = sparse.random_array((n_samples, 400), density=density, format="csr", rng=rng)
    return points if seed % 2 else sparse.csr_matrix(points)


KINDS = ["few features", "many features", "sparse", "very sparse"]


@pytest.mark.parametrize("storage", ["dense", "tiled"])
@pytest.mark.parametrize("n_samples", [1, 7, 1024, 2500])
@pytest.mark.parametrize("kind", KINDS)
def test_every_action_equals_scipy(kind, n_samples, storage):
    points = points_of(kind, n_samples, n_samples % 2)
    sigma_squared = 2.0 * min(points.shape[1], 40)
    expected = reference(points, sigma_squared)
    affinity = KernelAffinity(points, Gaussian(sigma_squared), storage=storage)
    rng = np.random.default_rng(0)
    block = rng.normal(size=(n_samples, 5))
    index = rng.integers(n_samples, size=30)
    tight = {"rtol": 0, "atol": 1e-12}
    np.testing.assert_allclose(affinity.rows(index), expected[index], **tight)
    np.testing.assert_allclose(affinity @ block, expected @ block, rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(affinity @ block[:, 0], (expected @ block)[:, 0], atol=1e-11)
    np.testing.assert_allclose(affinity.to_dense(), expected, **tight)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("storage", ["dense", "tiled"])
def test_matrix_is_symmetric_with_a_diagonal_of_ones_to_the_last_bit(kind, storage):
    points = points_of(kind, 1500, 0)
    matrix = KernelAffinity(points, Gaussian(3.0), storage=storage).to_dense()
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_array_equal(np.diagonal(matrix), 1.0)
    rows = KernelAffinity(points, Gaussian(3.0)).rows([4, 900])
    np.testing.assert_array_equal(rows[[0, 1], [4, 900]], 1.0)


def test_common_offset_causes_no_cancellation():
    rng = np.random.default_rng(0)
    small = rng.normal(size=(200, 20))
    far = (small + 2.0**20) - 2.0**20  # the points that the shift leaves, exactly
    moved = KernelAffinity(far + 2.0**20, Gaussian(40.0)).to_dense()
    np.testing.assert_allclose(moved, reference(far, 40.0), rtol=1e-12)


@pytest.mark.parametrize("n_features", [4, 40])
def test_symmetric_tiles_are_evaluated_once(n_features):
    points = np.random.default_rng(0).normal(size=(6000, n_features))
    for storage in ("dense", "tiled"):
        affinity = KernelAffinity(points, Gaussian(10.0), storage=storage)
        affinity @ np.ones(6000)
        assert 0.5 * 6000**2 < affinity.entries_evaluated < 0.62 * 6000**2


def test_dense_storage_evaluates_once_and_tiled_in_every_product():
    points = np.random.default_rng(0).normal(size=(300, 4))
    dense = KernelAffinity(points, Gaussian(10.0))
    tiled = KernelAffinity(points, Gaussian(10.0), storage="tiled")
    assert dense.entries_evaluated == tiled.entries_evaluated == 0
    for affinity in (dense, tiled):
        affinity @ np.ones(300)
        affinity @ np.ones(300)
    assert dense.entries_evaluated == 300**2
    assert tiled.entries_evaluated == 2 * 300**2


@pytest.mark.parametrize("n_features", [4, 20])
def test_tiled_product_needs_no_matrix(n_features):
    n_samples = 12_000  # the matrix would take 1.15 GB
    points = np.random.default_rng(0).normal(size=(n_samples, n_features))
    KernelAffinity(points[:50], Gaussian(10.0)) @ np.ones(50)  # compile first
    operator = DiffusionOperator(KernelAffinity(points, Gaussian(10.0), storage="tiled"))
    tracemalloc.start()
    product = operator @ np.ones((n_samples, 3))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.isfinite(product).all()
    assert peak < 60e6


def test_sparse_points_are_filled_in_by_tiles():
    points = sparse.random_array((4000, 5000), density=0.02, format="csr", rng=0)
    affinity = KernelAffinity(points, Gaussian(30.0), storage="tiled")
    tracemalloc.start()
    affinity @ np.ones(4000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.9 * 8 * 4000 * 5000


def test_operator_is_thread_safe():
    points = np.random.default_rng(0).normal(size=(1500, 12))
    affinity = KernelAffinity(points, Gaussian(20.0), storage="tiled")
    block = np.random.default_rng(1).normal(size=(1500, 4))
    expected = reference(points, 20.0) @ block
    with ThreadPoolExecutor(4) as pool:
        for product in pool.map(lambda _: affinity @ block, range(8)):
            np.testing.assert_allclose(product, expected, atol=1e-11)


def test_far_apart_points_have_an_affinity_of_zero():
    matrix = KernelAffinity(np.array([[0.0], [1e6], [-1e6]]), Gaussian(1.0)).to_dense()
    np.testing.assert_array_equal(matrix, np.eye(3))


def test_memory_limit_decides_the_storage():
    assert storage_for(100, 80_000) == "dense"
    assert storage_for(100, 79_999) == "tiled"
    assert storage_for(10, None) == "dense"
    assert storage_for(10_000_000, None) == "tiled"
    assert available_memory() > 1 << 20


def test_unknown_storage_raises():
    with pytest.raises(InputError, match=r"storage='tile' is not known. Did you mean 'tiled'"):
        KernelAffinity(np.eye(2), Gaussian(1.0), storage="tile")


@pytest.mark.parametrize("far", [1e4, 1e6, 1e8])
@pytest.mark.parametrize("kind", ["many features", "sparse", "very sparse"])
def test_far_clump_causes_no_cancellation(kind, far):
    # Inner products of points at 1e8 are off by 1, which is all there is between them.
    points = points_of(kind, 300, 1)
    lifted = np.zeros(points.shape)
    lifted[:20, :12] = far
    points = points + lifted if kind == "many features" else sparse.csr_array(points + lifted)
    scale = estimate_scale(PointCloud(points), KernelSettings()).sigma_squared
    values = points.toarray() if sparse.issparse(points) else points
    exact = 2.0 * np.median(cdist(values, values, "sqeuclidean"))
    precision = 1e-8 if sparse.issparse(points) else 1e-13
    assert scale == pytest.approx(exact, rel=precision)
    for storage in ("dense", "tiled"):
        affinity = KernelAffinity(points, Gaussian(scale), storage=storage)
        np.testing.assert_allclose(affinity.to_dense(), reference(points, scale), atol=precision)
        np.testing.assert_allclose(
            affinity @ np.ones(300), reference(points, scale).sum(axis=1), rtol=10 * precision
        )


@pytest.mark.parametrize("kind", ["many features", "sparse", "very sparse"])
def test_small_scale_causes_no_cancellation(kind):
    points = points_of(kind, 200, 3)
    pairs = points + 1e-7 * np.ones(points.shape)
    points = np.vstack([points, pairs]) if kind == "many features" else sparse.vstack([points] * 2)
    scale = 1e-12
    affinity = KernelAffinity(points, Gaussian(scale))
    np.testing.assert_allclose(affinity.to_dense(), reference(points, scale), atol=1e-6)
