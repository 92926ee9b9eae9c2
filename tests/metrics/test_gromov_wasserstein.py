"""Gromov-Wasserstein distance, against POT and closed forms."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import unaligned as ua
from unaligned.errors import AccuracyWarning
from unaligned.metrics import gromov_wasserstein as gromov

ot = pytest.importorskip("ot", reason="POT is not installed")
SEEDS = range(4)


def pair(seed, n=40, m=55, d=3, e=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(m, e)) * np.arange(1, e + 1)


def gw_loss_of_pot(x, y):
    C1, C2 = cdist(x, x), cdist(y, y)
    _, log = ot.gromov.gromov_wasserstein(C1, C2, log=True)
    return log["gw_dist"]


@pytest.mark.parametrize("seed", SEEDS)
def test_gromov_wasserstein_is_the_root_of_the_square_loss_of_pot(seed):
    x, y = pair(seed, e=5)
    expected = gw_loss_of_pot(x, y)
    # The pair may be solved in the other order, which reaches the same minimum.
    assert ua.distance(x, y, "gromov-wasserstein", squared=True) == pytest.approx(
        expected, rel=1e-7
    )
    root = ua.distance(x, y, "gromov-wasserstein")
    assert root == pytest.approx(np.sqrt(expected), rel=1e-7)


@pytest.mark.parametrize("seed", SEEDS)
def test_conditional_gradient_equals_pot(seed):
    x, y = pair(seed, e=5)
    C1, C2 = cdist(x, x), cdist(y, y)
    found = gromov.square_loss(C1, C2, np.ones(len(x)), np.ones(len(y)), 1000)
    assert found == pytest.approx(gw_loss_of_pot(x, y), rel=1e-8)


def test_two_points_by_hand():
    # Distances 1 and 3; every coupling of two points has the loss (3 - 1)²/2 at best.
    x, y = np.array([[0.0], [1.0]]), np.array([[0.0], [3.0]])
    assert ua.distance(x, y, "gromov-wasserstein", squared=True) == pytest.approx(2.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_distance_matrices_and_motion_do_not_change_the_value(seed):
    x, y = pair(seed, e=4)
    plain = ua.distance(x, y, "gromov-wasserstein")
    matrices = (ua.Dataset(cdist(z, z), kind="distances") for z in (x, y))
    assert ua.distance(*matrices, "gromov-wasserstein") == pytest.approx(plain, rel=1e-6)
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    assert ua.distance(x @ Q + 5, y, "gromov-wasserstein") == pytest.approx(plain, rel=1e-6)
    scaled = ua.distance(1e-6 * x, 1e-6 * y, "gromov-wasserstein")
    assert scaled == pytest.approx(1e-6 * plain, rel=1e-6)  # no absolute tolerance inside


@pytest.mark.parametrize("seed", range(5))
def test_clusters_far_apart_and_their_points_are_matched(seed):
    # A regression: rounding of the gradient gave 3e5 instead of 1.1 with seed 2.
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 40, 20))
    away = (np.arange(40) < 20)[:, None]
    near, far = (
        ua.distance(x + gap * away, y + gap * away, "gromov-wasserstein") for gap in (1e4, 1e5)
    )
    assert far == pytest.approx(near, rel=0.01)
    spread = x + 1e5 * away
    shuffled = spread[rng.permutation(40)]
    assert ua.distance(spread, shuffled, "gromov-wasserstein") == pytest.approx(0.0, abs=0.02)


@pytest.mark.parametrize("n_far", [1, 10])
@pytest.mark.parametrize("seed", SEEDS)
def test_gromov_wasserstein_is_accurate_with_outliers(seed, n_far):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(100, 2)), 1.3 * rng.normal(size=(100, 2))
    away = (np.arange(100) < n_far)[:, None]
    near, *far = (
        ua.distance(x + off * away, y + off * away, "gromov-wasserstein")
        for off in (1e4, 1e6, 1e7, 1e8)
    )
    np.testing.assert_allclose(far, near, rtol=1e-4)  # at 1e4 the direction still matters a little
    np.testing.assert_allclose(far[1:], far[0], rtol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_gradients_by_products_and_by_differences_agree(seed):
    x, y = pair(seed)
    spaces = (cdist(x, x), cdist(y, y), np.ones(len(x)), np.ones(len(y)))
    products, differences = (gromov._Spaces(*spaces, by_products=b) for b in (True, False))
    rng = np.random.default_rng(seed)
    before, vertex = (products.vertex(rng.random((len(x), len(y)))) for _ in range(2))
    expected = sum(
        w * (spaces[0][:, [i]] - spaces[1][j]) ** 2
        for i, j, w in zip(*vertex.nonzero(), vertex.data, strict=True)
    )
    for way in (products, differences):
        np.testing.assert_allclose(way.gradient(vertex), expected, rtol=1e-10)
        updated = way.gradient(vertex, (before, way.gradient(before)))
        np.testing.assert_allclose(updated, expected, rtol=1e-10)
    found, reached = gromov._conditional_gradient(differences, 1000)
    assert reached
    assert found == pytest.approx(gromov._conditional_gradient(products, 1000)[0], rel=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_rounding_of_distant_points_warns(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 40, 2))
    for z in (x, y):
        z[:20] += 1e17
    match = r"'a' and dataset 'b': some points are so far out .* by \de\+01\. Drop them"
    with pytest.warns(AccuracyWarning, match=match):
        assert ua.distance(x, y, "gromov-wasserstein") > 0.1


@pytest.mark.parametrize("off", [0.0, 1e6])
@pytest.mark.parametrize("seed", SEEDS)
def test_rotated_copy_has_distance_zero_without_warning(seed, off):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(60, 3))
    x[:5] += off
    Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turned = (x @ Q)[rng.permutation(60)]
    found = ua.distance(x, turned, "gromov-wasserstein")
    assert found == pytest.approx(0.0, abs=1e-14 * max(1.0, off))


@pytest.mark.filterwarnings("ignore:.*look like a distance matrix")
@pytest.mark.parametrize("seed", SEEDS)
def test_points_and_distances_with_equal_values_differ(seed):
    x = np.random.default_rng(seed).normal(size=(20, 2))
    D = cdist(x, x)
    points, distances = ua.Dataset(D), ua.Dataset(D, kind="distances")
    expected = ua.distance(
        ua.Dataset(cdist(D, D), kind="distances"), distances, "gromov-wasserstein"
    )
    found = ua.distance(points, distances, "gromov-wasserstein")
    assert found == pytest.approx(expected, rel=1e-10)
    assert found == ua.distance(distances, points, "gromov-wasserstein") > 0.1
    assert ua.distance(distances, distances, "gromov-wasserstein") == 0.0


def test_an_integer_distance_matrix_gives_a_full_coupling():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 9, size=(20, 1)), rng.integers(0, 5, size=(20, 1))
    ints = [np.abs(z - z.T) for z in (x, y)]
    found = ua.distance(
        *(ua.Dataset(C, kind="distances") for C in ints), "gromov-wasserstein", squared=True
    )
    _, log = ot.gromov.gromov_wasserstein(*(C.astype(float) for C in ints), log=True)
    assert found == pytest.approx(log["gw_dist"], rel=0.5)
    assert found > 0


@pytest.mark.parametrize("kind", ["points", "distances"])
@pytest.mark.parametrize("seed", SEEDS)
def test_landmarks_change_the_distance_by_at_most_their_radius(seed, kind):
    x, y = pair(seed, n=150, m=120)
    data = [
        ua.Dataset(z if kind == "points" else cdist(z, z), kind=kind, name=n)
        for n, z in (("x", x), ("y", y))
    ]
    exact = ua.distance(*data, "gromov-wasserstein", method="exact")
    found = ua.compare(
        data[:1], data[1:], distance="gromov-wasserstein", method="low-rank", rank=60
    )
    near = found.distances[0, 0]
    radius = 0.0
    for dataset, points in zip(data, (x, y), strict=True):
        method = gromov.GromovWasserstein(method="low-rank", rank=60)
        _, counts, _ = method.content(dataset, 0)
        rows = np.sort(dataset.generator(0).choice(dataset.n_samples, size=60, replace=False))
        away = cdist(points, points[rows])
        np.testing.assert_array_equal(counts, np.bincount(away.argmin(axis=1)))
        radius += 2.0 * np.sqrt(np.mean(away.min(axis=1) ** 2))
    assert abs(exact - near) <= radius
    assert near == pytest.approx(exact, rel=0.3)
    assert np.isnan(found.error_bounds).all()  # a theorem on global minima only


def test_all_points_as_landmarks_give_the_exact_value():
    x, y = pair(0)
    exact = ua.distance(x, y, "gromov-wasserstein")
    assert ua.distance(x, y, "gromov-wasserstein", method="low-rank") == exact
