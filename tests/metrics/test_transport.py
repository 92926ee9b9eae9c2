"""Wasserstein and Gromov-Wasserstein, against POT itself and closed forms."""

import sys
import warnings

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

import unaligned as ua
from unaligned.errors import AccuracyWarning, InputError, MissingExtraError, NotApplicableError
from unaligned.metrics import coupling as _coupling
from unaligned.metrics import coupling as _gromov
from unaligned.metrics import transport

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
@pytest.mark.parametrize("d", [1, 2, 40])
def test_wasserstein_is_the_root_of_emd2(seed, d):
    x, y = pair(seed, d=d, e=d)
    expected = np.sqrt(ot.emd2([], [], ot.dist(x, y)))
    assert ua.distance(x, y, "wasserstein") == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_wasserstein_of_equal_sizes_is_an_assignment(seed):
    x, y = pair(seed, n=50, m=50)
    cost = cdist(x, y, "sqeuclidean")
    expected = np.sqrt(cost[linear_sum_assignment(cost)].mean())
    assert ua.distance(x, y, "wasserstein") == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_wasserstein_does_not_depend_on_the_unit(unit):
    x, y = pair(0)
    scaled = ua.distance(unit * x, unit * y, "wasserstein")
    assert scaled == pytest.approx(unit * ua.distance(x, y, "wasserstein"), rel=1e-8)


def test_wasserstein_keeps_its_digits_far_from_the_origin():
    x, y = pair(0, d=30, e=30)
    here, there = (ua.distance(x + s, y + s, "wasserstein") for s in (0.0, 1e6))
    assert there == pytest.approx(here, rel=1e-8)


@pytest.mark.parametrize("far", [1e6, 1e12])
@pytest.mark.parametrize("seed", SEEDS)
def test_wasserstein_keeps_its_digits_beside_a_point_far_out(seed, far):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(50, 20))
    x[0] = far
    y = x + 0.1 * rng.normal(size=x.shape) * (np.arange(50) > 0)[:, None]
    cost = cdist(x, y, "sqeuclidean")
    expected = np.sqrt(cost[linear_sum_assignment(cost)].mean())
    assert ua.distance(x, y, "wasserstein") == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("d", [1, 2, 20])
@pytest.mark.parametrize("seed", SEEDS)
def test_wasserstein_does_not_see_how_far_off_one_pair_of_points_is(seed, d):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(150, d)), 1.3 * rng.normal(size=(150, d))
    x[0], y[0] = 0.0, 0.0
    values = []
    for off in (1e4, 1e6, 1e8, 1e12):
        x[0] = y[0] = off
        values.append(ua.distance(x, y, "wasserstein"))
    np.testing.assert_allclose(values[1:], values[0], rtol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_one_feature_loses_no_digits_between_samples_of_unequal_sizes(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(30, 1)), rng.normal(size=(70, 1))
    x[:3] += 1e8
    y[:7] += 1e8
    expected = np.mean((np.sort(x.repeat(7)) - np.sort(y.repeat(3))) ** 2) ** 0.5
    assert ua.distance(x, y, "wasserstein") == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_sinkhorn_comes_near_and_sliced_stays_below(seed):
    x, y = pair(seed, n=200, m=150)
    exact, near, sliced = (
        ua.distance(x, y, "wasserstein", method=m) for m in ("exact", "sinkhorn", "sliced")
    )
    assert near == pytest.approx(exact, rel=0.05)
    assert 0 < sliced <= exact / np.sqrt(3) * 1.05  # without 1.05 over all directions


def test_sliced_exceeds_the_bound_of_all_directions_but_never_the_distance():
    x, y = np.array([[0.0, 0.0]]), np.array([[1.0, 0.0]])
    values = [
        ua.distance(x, y, "wasserstein", method="sliced", n_projections=2, rng=seed)
        for seed in range(20)
    ]
    assert 1 / np.sqrt(2) < max(values) <= 1.0
    assert np.mean(np.square(values)) == pytest.approx(1 / 2, abs=0.15)


def test_sliced_is_seeded_and_equals_pot_in_any_number_of_blocks(monkeypatch):
    x, y = pair(1)
    options = {"method": "sliced", "n_projections": 20}
    whole = ua.distance(x, y, "wasserstein", **options)
    monkeypatch.setattr(transport, "_PROJECTED", 3 * len(y))
    assert ua.distance(x, y, "wasserstein", **options) == pytest.approx(whole, rel=1e-12)
    assert ua.distance(x, y, "wasserstein", rng=1, **options) != whole
    directions = np.random.default_rng(0).normal(size=(3, 20))
    directions /= np.linalg.norm(directions, axis=0)
    expected = ot.sliced_wasserstein_distance(x, y, projections=directions)
    assert whole == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_gromov_wasserstein_is_the_root_of_pots_square_loss(seed):
    x, y = pair(seed, e=5)
    expected = gw_loss_of_pot(x, y)
    # POT goes the other way where the fingerprints say so; the minimum it reaches is the same.
    assert ua.distance(x, y, "gromov-wasserstein", squared=True) == pytest.approx(
        expected, rel=1e-7
    )
    root = ua.distance(x, y, "gromov-wasserstein")
    assert root == pytest.approx(np.sqrt(expected), rel=1e-7)


@pytest.mark.parametrize("seed", SEEDS)
def test_conditional_gradient_equals_pots_to_rounding(seed):
    x, y = pair(seed, e=5)
    C1, C2 = cdist(x, x), cdist(y, y)
    found = _gromov.square_loss(C1, C2, np.ones(len(x)), np.ones(len(y)), 1000)
    assert found == pytest.approx(gw_loss_of_pot(x, y), rel=1e-8)


def test_two_points_by_hand():
    # Distances 1 and 3; every coupling of two points has the loss (3 - 1)²/2 at best.
    x, y = np.array([[0.0], [1.0]]), np.array([[0.0], [3.0]])
    assert ua.distance(x, y, "gromov-wasserstein", squared=True) == pytest.approx(2.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_gromov_wasserstein_takes_distance_matrices_and_ignores_motion(seed):
    x, y = pair(seed, e=4)
    plain = ua.distance(x, y, "gromov-wasserstein")
    matrices = (ua.Dataset(cdist(z, z), kind="distances") for z in (x, y))
    assert ua.distance(*matrices, "gromov-wasserstein") == pytest.approx(plain, rel=1e-6)
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    assert ua.distance(x @ Q + 5, y, "gromov-wasserstein") == pytest.approx(plain, rel=1e-6)
    scaled = ua.distance(1e-6 * x, 1e-6 * y, "gromov-wasserstein")
    assert scaled == pytest.approx(1e-6 * plain, rel=1e-6)  # no absolute tolerance inside


@pytest.mark.parametrize("seed", range(5))
def test_clusters_far_apart_are_matched_and_so_are_their_points(seed):
    # Rounding of the gradient once left seed 2 far from it: 3e5 instead of 1.1.
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
def test_gromov_wasserstein_keeps_its_digits_beside_points_far_out(seed, n_far):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(100, 2)), 1.3 * rng.normal(size=(100, 2))
    away = (np.arange(100) < n_far)[:, None]
    near, *far = (
        ua.distance(x + off * away, y + off * away, "gromov-wasserstein")
        for off in (1e4, 1e6, 1e7, 1e8)
    )
    np.testing.assert_allclose(far, near, rtol=1e-4)  # at 1e4 directions still count for a bit
    np.testing.assert_allclose(far[1:], far[0], rtol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_two_ways_to_the_gradient_agree(seed):
    x, y = pair(seed)
    spaces = (cdist(x, x), cdist(y, y), np.ones(len(x)), np.ones(len(y)))
    products, differences = _gromov._Products(*spaces), _gromov._Differences(*spaces)
    vertex = products.vertex(np.random.default_rng(seed).random((len(x), len(y))))
    expected = sum(
        vertex[i, j] * (spaces[0][:, [i]] - spaces[1][j]) ** 2 for i, j in np.argwhere(vertex)
    )
    for way in (products, differences):
        np.testing.assert_allclose(way.gradient(vertex), expected, rtol=1e-10)
    found, reached = _gromov._conditional_gradient(differences, 1000)
    assert reached
    assert found == pytest.approx(_gromov._conditional_gradient(products, 1000)[0], rel=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_gromov_wasserstein_says_where_distances_are_too_coarse(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 40, 2))
    for z in (x, y):
        z[:20] += 1e17
    match = r"'a' and dataset 'b': some points are so far out .* by \de\+01\. Leave them out"
    with pytest.warns(AccuracyWarning, match=match):
        assert ua.distance(x, y, "gromov-wasserstein") > 0.1


@pytest.mark.parametrize("off", [0.0, 1e6])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_turned_copy_is_at_rounding_without_a_word(seed, off):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(60, 3))
    x[:5] += off
    Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turned = (x @ Q)[rng.permutation(60)]
    found = ua.distance(x, turned, "gromov-wasserstein")
    assert found == pytest.approx(0.0, abs=1e-14 * max(1.0, off))


@pytest.mark.parametrize("seed", SEEDS)
def test_points_and_distances_of_the_same_numbers_are_not_the_same(seed):
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


@pytest.mark.parametrize("name", ["wasserstein", "gromov-wasserstein"])
def test_integers_give_what_floats_give(name):
    rng = np.random.default_rng(0)
    x, y = rng.integers(-5, 5, size=(30, 3)), rng.integers(0, 9, size=(25, 3))
    expected = ua.distance(x.astype(float), y.astype(float), name)
    assert ua.distance(x.astype(np.int8), y.astype(np.int8), name) == expected > 0


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


@pytest.mark.parametrize("name", ["wasserstein", "gromov-wasserstein"])
def test_rows_in_another_order_and_duplicates_and_constant_columns(name):
    x, y = pair(3)
    x[:, 1] = 7.0
    y[:10] = y[10:20]
    shuffled = x[np.random.default_rng(0).permutation(len(x))]
    expected = ua.distance(x, y, name)
    assert np.isfinite(expected)
    assert ua.distance(shuffled, y, name) == pytest.approx(expected, rel=1e-6)


def test_single_points():
    x, y = np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]])
    assert ua.distance(x, y, "wasserstein") == pytest.approx(5.0)
    assert ua.distance(x, y, "gromov-wasserstein") == 0.0
    many = pair(0)[0]  # every point of it goes to the one, so the loss is the mean of C²
    expected = np.mean(cdist(many, many) ** 2)
    assert ua.distance(x, many, "gromov-wasserstein", squared=True) == pytest.approx(expected)


def test_large_collections_are_approximated_with_a_warning(monkeypatch):
    x, y = pair(0, n=60, m=40)
    monkeypatch.setattr(transport, "_EXACT_ROWS", 50)
    with pytest.warns(AccuracyWarning, match=r"has 60 rows.*method='sliced'.*another number"):
        result = ua.compare([x, y], distance="wasserstein")
    assert result.options["method"] == "sliced"
    monkeypatch.setattr(transport, "_GROMOV_ROWS", 50)
    with pytest.warns(AccuracyWarning, match="method='low-rank'"):
        ua.distance(x, y, "gromov-wasserstein")


def test_one_feature_is_sorted_at_any_size(monkeypatch):
    monkeypatch.setattr(transport, "_EXACT_ROWS", 10)
    x, y = pair(0, d=1, e=1)
    expected = np.sqrt(ot.emd2_1d(x, y))
    assert ua.distance(x, y, "wasserstein") == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("kind", ["points", "distances"])
@pytest.mark.parametrize("seed", SEEDS)
def test_landmarks_move_the_distance_by_no_more_than_their_radius(seed, kind):
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
        rng = dataset.generator(0)
        rows = np.sort(rng.choice(dataset.n_samples, size=60, replace=False))
        away = cdist(points, points[rows])
        counts = _gromov.followers(dataset.values, rows, precomputed=kind == "distances")
        np.testing.assert_array_equal(counts, np.bincount(away.argmin(axis=1)))
        radius += 2.0 * np.sqrt(np.mean(away.min(axis=1) ** 2))
    assert abs(exact - near) <= radius
    assert near == pytest.approx(exact, rel=0.3)
    assert np.isnan(found.error_bounds).all()  # a theorem on global minima only


def test_landmarks_that_are_all_points_change_nothing():
    x, y = pair(0)
    exact = ua.distance(x, y, "gromov-wasserstein")
    assert ua.distance(x, y, "gromov-wasserstein", method="low-rank") == exact


def test_a_solver_that_stops_early_says_so(monkeypatch):
    x, y = pair(0)
    match = r"'a' and dataset 'b': conditional gradient did not .* max_iter=1 .* Raise max_iter"
    with pytest.warns(AccuracyWarning, match=match):
        ua.distance(x, y, "gromov-wasserstein", max_iter=1)
    monkeypatch.setattr(transport, "_SINKHORN_STEPS", 1)
    with pytest.warns(AccuracyWarning, match=r"Sinkhorn did not converge: .* Raise epsilon"):
        ua.distance(x, y, "wasserstein", method="sinkhorn")


@pytest.mark.filterwarnings("ignore:numItermax reached:UserWarning")  # POT's own, beside ours
def test_a_simplex_that_stops_early_says_so(monkeypatch):
    x, y = pair(0)
    monkeypatch.setattr(_coupling, "_STEPS", 3)
    match = r"'a' and dataset 'b': the network simplex did not converge.* method='sliced'"
    with pytest.warns(AccuracyWarning, match=match):
        ua.distance(x, y, "wasserstein")
    with pytest.warns(AccuracyWarning, match=r"the network simplex did not .* with subsample="):
        ua.distance(x, y, "gromov-wasserstein")


@pytest.mark.parametrize("options", [{}, {"n_jobs": 2}, {"engine": "processes", "n_jobs": 2}])
def test_every_pair_warns_once_at_the_users_line_wherever_it_is_worked_out(options):
    data = {f"x{seed}": pair(seed)[0] for seed in range(3)}
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        ua.compare(data, distance="gromov-wasserstein", max_iter=1, **options)
    assert {note.filename for note in seen} == {__file__}
    assert {str(note.message).partition(":")[0] for note in seen} == {
        f"dataset 'x{i}' and dataset 'x{j}'" for i, j in ((0, 1), (0, 2), (1, 2))
    }
    assert len(seen) == 3


@pytest.mark.parametrize("name", ["wasserstein", "gromov-wasserstein"])
def test_threads_leave_the_filters_of_warnings_alone(name, monkeypatch):
    def touched(*_, **__):
        raise RuntimeError("filters belong to the whole process")

    data = [pair(seed)[0] for seed in range(4)]
    before = list(warnings.filters)
    ua.compare(data, distance=name)  # what is imported on the way may add filters once
    monkeypatch.setattr(warnings, "simplefilter", touched)
    monkeypatch.setattr(warnings, "filterwarnings", touched)
    ua.compare(data, distance=name, n_jobs=2)
    assert warnings.filters == before


def test_pots_own_warnings_stay_inside():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ua.distance(*pair(0), "wasserstein", method="sinkhorn", epsilon=0.005)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 3)), rng.normal(size=(50, 3)) + 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "dataset 'a' .* Raise epsilon", AccuracyWarning)
        ua.distance(x, y, "wasserstein", method="sinkhorn", epsilon=1e-4)  # exp overflows


def test_features_must_be_shared_where_points_travel():
    x, y = pair(0, e=5)
    with pytest.raises(NotApplicableError, match=r"same features.*'les' needs neither"):
        ua.distance(x, y, "wasserstein")
    with pytest.raises(NotApplicableError, match="takes points, and dataset 'a' is distances"):
        ua.distance(ua.Dataset(cdist(x, x), kind="distances"), x, "wasserstein")


def test_settings_are_checked():
    x, y = pair(0)
    with pytest.raises(InputError, match=r"method='sinkhor' is not known. Did you mean"):
        ua.distance(x, y, "wasserstein", method="sinkhor")
    with pytest.raises(InputError, match="rank=1 must be at least 2"):
        ua.distance(x, y, "gromov-wasserstein", rank=1)


@pytest.mark.parametrize("name", ["wasserstein", "gromov-wasserstein"])
def test_a_missing_pot_names_the_extra(monkeypatch, name):
    monkeypatch.setitem(sys.modules, "ot", None)
    with pytest.raises(MissingExtraError, match=r"needs the package 'POT'.*unaligned\[transport"):
        ua.distance(*pair(0), name)
