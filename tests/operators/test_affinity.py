"""Affinities of every kind and metric, and whether they are definite."""

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import block_diag
from scipy.spatial.distance import pdist, squareform
from sklearn.metrics import pairwise_distances

from unaligned.errors import DegenerateDataError, InputError
from unaligned.operators.affinity import (
    KernelAffinity,
    distance_affinity,
    given_affinity,
    point_affinity,
)
from unaligned.operators.base import negative_share
from unaligned.operators.kernel import METRICS, WHITENING_METRICS, KernelSettings

EUCLIDEAN = ["euclidean", "l2", "minkowski"]
PLAIN = sorted(set(METRICS) - {"haversine"})


def gaussian_of(distances):
    squared = np.asarray(distances) ** 2
    return np.exp(-squared / (2.0 * np.median(squared)))


def points_for(metric, seed=0):
    rng = np.random.default_rng(seed)
    if metric in ("dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule"):
        return (rng.random((60, 30)) < 0.4).astype(float)
    if metric == "hamming":
        return rng.integers(0, 3, (60, 10)).astype(float)
    return rng.normal(size=(60, 5)) + 3.0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("metric", PLAIN)
def test_every_metric_equals_scikit_learn(metric, seed):
    points = points_for(metric, seed)
    values = points.astype(bool) if metric in ("jaccard", "dice", "yule") else points
    if metric in ("rogerstanimoto", "russellrao", "sokalsneath"):
        values = points.astype(bool)
    distances = np.array(pairwise_distances(values, metric=metric))
    np.fill_diagonal(distances, 0.0)
    affinity = point_affinity(points, KernelSettings(metric=metric))
    np.testing.assert_allclose(affinity.to_dense(), gaussian_of(distances), atol=1e-10)


def test_haversine_takes_two_angles():
    points = np.random.default_rng(0).uniform(-1, 1, (30, 2))
    affinity = point_affinity(points, KernelSettings(metric="haversine"))
    expected = gaussian_of(pairwise_distances(points, metric="haversine"))
    np.testing.assert_allclose(affinity.to_dense(), expected, atol=1e-12)
    with pytest.raises(InputError, match=r"metric='haversine' cannot be computed"):
        point_affinity(np.eye(5), KernelSettings(metric="haversine"))


@pytest.mark.parametrize("metric", PLAIN)
def test_only_euclidean_like_metrics_are_definite(metric):
    affinity = point_affinity(points_for(metric), KernelSettings(metric=metric))
    expected = metric in (*EUCLIDEAN, "seuclidean", "mahalanobis")
    assert affinity.definite is expected
    if expected:
        assert np.linalg.eigvalsh(affinity.to_dense()).min() > -1e-12


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("metric", WHITENING_METRICS)
def test_redundant_columns_do_not_change_the_affinity(metric, seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(200, 3)) * [1.0, 5.0, 1e-3] + [0.0, 20.0, 1.0]
    celsius = points[:, 1]
    redundant = [np.full(200, 0.1), np.where(rng.random(200) < 0.5, 0.3, 0.1 + 0.2)]
    if metric == "mahalanobis":
        redundant += [
            1.8 * celsius + 32.0,
            celsius + 1e6,
            points @ [1.0, 2.0, 3.0],
            1e-9 * celsius,
        ]
    expected = point_affinity(points, KernelSettings(metric=metric)).to_dense()
    for column in redundant:
        affinity = point_affinity(np.column_stack([points, column]), KernelSettings(metric=metric))
        np.testing.assert_allclose(affinity.to_dense(), expected, atol=1e-9)
        assert affinity.definite


def test_mahalanobis_raises_where_all_distances_are_equal():
    points = np.random.default_rng(0).normal(size=(6, 9))
    with pytest.raises(
        DegenerateDataError, match=r"all 6 points equally far apart.* 5 dimensions"
    ):
        point_affinity(points, KernelSettings(metric="mahalanobis"))


def test_sqeuclidean_is_indefinite():
    points = np.linspace(0, 1, 40)[:, None]
    affinity = point_affinity(points, KernelSettings(metric="sqeuclidean"))
    assert np.linalg.eigvalsh(affinity.to_dense()).min() < -1e-3


def test_callable_metric_is_used():
    points = np.random.default_rng(0).normal(size=(40, 3))
    affinity = point_affinity(points, KernelSettings(metric=lambda a, b: np.abs(a - b).max()))
    expected = gaussian_of(squareform(pdist(points, "chebyshev")))
    np.testing.assert_allclose(affinity.to_dense(), expected, atol=1e-13)
    assert not affinity.definite


def test_callable_with_negative_values_raises():
    with pytest.raises(InputError, match=r"gives (nan|-1) for rows 0 and 1"):
        point_affinity(np.eye(4), KernelSettings(metric=lambda a, b: -1.0))


def test_metrics_that_need_dense_points_raise_for_sparse_ones():
    points = sparse.random_array((20, 9), density=0.5, format="csr", rng=0)
    point_affinity(points, KernelSettings(metric="cosine"))
    with pytest.raises(
        InputError, match=r"metric='canberra' cannot .*csr_array of shape \(20, 9\)"
    ):
        point_affinity(points, KernelSettings(metric="canberra"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "cosin"}, r"metric='cosin' is not known. Did you mean 'cosine'"),
        ({"metric": "precomputed"}, r"kind='distances'"),
        ({"metric": 3}, r"metric=3 must be the name of a metric or a callable"),
        ({"bandwidth": "medium"}, r"Did you mean 'median'"),
        ({"bandwidth": 0.0}, r"bandwidth=0.0 must be above 0"),
        ({"bandwidth_factor": -1}, r"bandwidth_factor=-1 must be above 0"),
        ({"n_neighbors": 1}, r"n_neighbors=1 must be at least 2"),
        ({"n_neighbors": 2.5}, r"n_neighbors=2.5 must be a whole number"),
        ({"memory_limit": -1}, r"memory_limit=-1 must be at least 0"),
    ],
)
def test_bad_settings_raise(options, message):
    with pytest.raises(InputError, match=message):
        KernelSettings(**options)


def test_memory_limit_makes_points_tiled():
    points = np.random.default_rng(0).normal(size=(50, 3))
    dense = point_affinity(points, KernelSettings())
    tiled = point_affinity(points, KernelSettings(memory_limit=1000))
    assert isinstance(dense, KernelAffinity)
    assert (dense.storage, tiled.storage) == ("dense", "tiled")
    np.testing.assert_allclose(tiled @ np.eye(50), dense.to_dense(), atol=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_distances_of_points_give_the_affinity_of_the_points(seed):
    points = np.random.default_rng(seed).normal(size=(200, 4))
    distances = squareform(pdist(points))
    kept = distances.copy()
    affinity = distance_affinity(distances, KernelSettings())
    expected = point_affinity(points, KernelSettings())
    assert affinity.sigma_squared == pytest.approx(expected.sigma_squared, rel=1e-13)
    np.testing.assert_allclose(affinity.to_dense(), expected.to_dense(), atol=1e-13)
    np.testing.assert_array_equal(distances, kept)
    assert affinity.definite


def test_indefinite_affinity_of_distances_is_detected():
    cycle = np.abs(np.subtract.outer(np.arange(40), np.arange(40)))
    affinity = distance_affinity(np.minimum(cycle, 40 - cycle) * 1.0, KernelSettings())
    assert np.linalg.eigvalsh(affinity.to_dense()).min() < -1e-6
    assert not affinity.definite


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("smallest", [-1e-3, -1e-8, -1e-11, 0.0, 1e-10])
def test_cholesky_detects_a_negative_eigenvalue(smallest, seed):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(80, 80)))[0]
    eigenvalues = np.concatenate([[smallest], np.zeros(40), rng.random(39)])
    matrix = (basis * eigenvalues) @ basis.T
    share = negative_share(0.5 * (matrix + matrix.T))
    assert np.isfinite(share) is np.bool_(smallest >= 0)


def test_large_matrices_are_not_tested(monkeypatch):
    monkeypatch.setattr("unaligned.operators.affinity.CHECKABLE", 3)
    assert given_affinity(np.eye(3)).definite
    assert not given_affinity(np.eye(4)).definite


@pytest.mark.parametrize("scale", [1.0, 1e-15, 1e-60])
def test_scaled_indefinite_block_is_detected(scale):
    rng = np.random.default_rng(0)
    block = rng.uniform(size=(30, 30))
    block = 0.5 * (block + block.T)
    np.fill_diagonal(block, 0.1)
    good = np.exp(-(squareform(pdist(rng.normal(size=(60, 2)))) ** 2))
    assert not given_affinity(block_diag(good, scale * block)).definite
    assert given_affinity(block_diag(good, scale * good)).definite


@pytest.mark.parametrize("seed", range(3))
def test_share_bounds_the_sum_of_negative_eigenvalues(seed):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(90, 90)))[0]
    for negative in 10.0 ** -np.arange(8.0, 18.0):
        matrix = (basis * np.r_[np.ones(30), np.full(60, -negative)]) @ basis.T
        for absolute in (False, True):
            share = negative_share(0.5 * (matrix + matrix.T), absolute=absolute)
            assert 60 * negative <= share * np.trace(matrix)


def test_given_affinity_may_be_dense_or_sparse():
    matrix = np.exp(-(squareform(pdist(np.random.default_rng(0).normal(size=(30, 2)))) ** 2))
    dense, filled = given_affinity(matrix), given_affinity(sparse.coo_array(matrix))
    np.testing.assert_allclose(filled @ np.eye(30), dense @ np.eye(30))
    assert dense.definite
    assert not filled.definite
    assert filled.storage == "sparse"


@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_distances_whose_squares_overflow_or_underflow_raise(size):
    distances = size * squareform(np.arange(1.0, 7.0))
    with pytest.raises(DegenerateDataError, match="Rescale"):
        distance_affinity(distances, KernelSettings())
