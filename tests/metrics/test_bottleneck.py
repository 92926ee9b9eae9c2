"""Bottleneck distances against persim, ripser and gudhi."""

import numpy as np
import pytest

import unaligned as ua
from unaligned.errors import InputError, MissingExtraError, NotApplicableError
from unaligned.metrics import bottleneck
from unaligned.metrics.bottleneck import (
    BottleneckH0,
    BottleneckH1,
    BottleneckH2,
    Diagram,
    collapsed_bars,
    farthest_points,
    pairwise,
    rips_bars,
)
from unaligned.metrics.registry import DISTANCES

gudhi = pytest.importorskip("gudhi", reason="the extra topology is not installed")
ripser = pytest.importorskip("ripser", reason="the extra topology is not installed").ripser

SEEDS = range(3)
DIMENSIONS = {"bottleneck-h0": 0, "bottleneck-h1": 1, "bottleneck-h2": 2}


def clouds(seed, size=40):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(size, 3)), 1.5 * rng.normal(size=(size + 7, 4))


def ring(n, radius, rng):
    angles = 2 * np.pi * np.arange(n) / n
    circle = radius * np.column_stack([np.cos(angles), np.sin(angles)])
    return circle + 0.01 * rng.normal(size=circle.shape)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", DIMENSIONS)
class TestBottleneck:
    def test_equals_persim(self, name, seed):
        persim = pytest.importorskip("persim", reason="the independent version is not installed")
        method = DISTANCES[name]()
        bars = [method.describe(ua.Dataset(data), 0).bars for data in clouds(seed)]
        finite = [b[np.isfinite(b[:, 1])] for b in bars]
        theirs = persim.bottleneck(*finite)
        assert ua.distance(*clouds(seed), name) == pytest.approx(theirs, abs=1e-8)

    def test_diagrams_equal_ripser(self, name, seed):
        for data in clouds(seed):
            ours = DISTANCES[name]().describe(ua.Dataset(data), 0).bars
            theirs = ripser(data, maxdim=DIMENSIONS[name])["dgms"][DIMENSIONS[name]]
            assert ours.shape == theirs.shape
            assert np.isinf(ours[:, 1]).sum() == (name == "bottleneck-h0")
            assert np.allclose(np.sort(ours[:, 1]), np.sort(theirs[:, 1]), rtol=1e-6)

    def test_distance_matrices_give_the_same_value(self, name, seed):
        a, b = clouds(seed)
        D = ua.Dataset(pairwise(a, a), kind="distances")
        assert ua.distance(D, b, name) == ua.distance(a, b, name)

    @pytest.mark.parametrize("kind", ["points", "distances"])
    def test_landmark_error_stays_within_the_bound(self, name, seed, kind):
        data = [
            ua.Dataset(d if kind == "points" else pairwise(d, d), kind=kind) for d in clouds(seed)
        ]
        full = ua.compare(data, distance=name)
        few = ua.compare(data, distance=name, n_landmarks=20)
        gap = abs(full.distances - few.distances)
        assert (gap <= few.error_bounds + full.error_bounds).all()
        assert few.error_bounds[0, 1] > full.error_bounds[0, 1]

    def test_as_many_landmarks_as_points_use_all_points(self, name, seed):
        a, b = clouds(seed)
        assert ua.distance(a, b, name, n_landmarks=99) == ua.distance(a, b, name)


@pytest.mark.parametrize(("cls", "dimension"), [(BottleneckH1, 1), (BottleneckH2, 2)])
@pytest.mark.parametrize("seed", SEEDS)
def test_bars_equal_gudhi_in_double_precision(seed, cls, dimension):
    data = clouds(seed, 25)[0]
    exact = gudhi.RipsComplex(distance_matrix=pairwise(data, data)).create_simplex_tree(
        max_dimension=dimension + 1
    )
    exact.compute_persistence()
    ours = cls().describe(ua.Dataset(data), 0).bars
    theirs = exact.persistence_intervals_in_dimension(dimension)
    np.testing.assert_array_equal(np.sort(ours, axis=0), np.sort(theirs, axis=0))


def test_too_many_distinct_distances_raise(monkeypatch):
    monkeypatch.setattr(bottleneck, "_MOST_RANKS", 100)
    with pytest.raises(
        InputError, match=r"dataset '[ab]': .* has 780 different .* n_landmarks=5000 or"
    ):
        ua.distance(clouds(0)[0], clouds(0)[0], "bottleneck-h1")


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_edge_collapse_keeps_every_bar(seed, dimension):
    rng = np.random.default_rng(seed)
    sphere = rng.normal(size=(60, 3))
    sphere /= np.linalg.norm(sphere, axis=1)[:, None]
    copies = np.repeat(sphere[:30], 2, axis=0)
    grid = rng.integers(3, size=(50, 3)).astype(float)  # ties and duplicates
    for points in (sphere, copies, grid):
        distances = pairwise(points, points)
        ours, theirs = (
            np.sort(bars(distances, dimension, "bottleneck-h2"), axis=0)
            for bars in (collapsed_bars, rips_bars)
        )
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=0)


@pytest.mark.parametrize("name", DIMENSIONS)
@pytest.mark.parametrize("exponent", [-400, -130, 130, 400])
def test_units_beyond_single_precision_only_scale_the_value(name, exponent):
    a, b = clouds(0, 20)
    unit = 2.0**exponent
    expected = unit * ua.distance(a, b, name)
    assert ua.distance(unit * a, unit * b, name) == pytest.approx(expected, rel=1e-6)


def test_bars_that_never_die_are_matched_by_birth():
    def diagram(*bars):
        return Diagram(np.array(bars), 0.0)

    one, later = diagram([0.0, np.inf]), diagram([0.5, np.inf])
    assert BottleneckH0().compare(one, later) == pytest.approx(0.5)
    assert BottleneckH0().compare(one, diagram([0.0, np.inf], [0.0, np.inf])) == np.inf


def test_ring_differs_from_disc_by_its_loop():
    rng = np.random.default_rng(0)
    assert ua.distance(ring(40, 1.0, rng), rng.normal(size=(40, 2)), "bottleneck-h1") > 0.3
    assert ua.distance(ring(40, 1.0, rng), ring(60, 1.0, rng), "bottleneck-h1") < 0.1


@pytest.mark.parametrize("name", DIMENSIONS)
def test_few_or_equal_points_have_distance_zero(name):
    for data in (np.zeros((1, 2)), np.zeros((9, 2)), np.eye(2), np.eye(3)):
        assert ua.distance(data, data, name) == 0.0
        assert ua.distance(data, 1.0 + data, name) == 0.0


@pytest.mark.parametrize("cls", [BottleneckH0, BottleneckH1, BottleneckH2])
def test_too_many_points_raise_before_any_work(cls):
    large = ua.Dataset(np.broadcast_to(np.arange(2.0), (cls.most_points + 1, 2)), name="large")
    with pytest.raises(InputError, match=rf"'large' has {cls.most_points + 1}. Pass n_landmarks"):
        ua.distance(large, np.eye(2), cls.name)
    assert ua.distance(large, np.eye(2), cls.name, n_landmarks=4) >= 0.0


def test_other_kinds_and_bad_options_raise():
    affinity = ua.Dataset(np.eye(4), kind="affinity", name="similarities")
    with pytest.raises(
        NotApplicableError, match="points or distances, and dataset 'similarities'"
    ):
        ua.distance(affinity, np.eye(3), "bottleneck-h1")
    with pytest.raises(InputError, match="n_landmarks=0 must be at least 1"):
        ua.distance(np.eye(3), np.eye(3), "bottleneck-h1", n_landmarks=0)


@pytest.mark.parametrize(
    ("name", "package"),
    [
        *((name, "gudhi") for name in (*DIMENSIONS, "geometry-score")),
        *((name, "ripser") for name in ("bottleneck-h1", "bottleneck-h2", "mtd")),
    ],
)
def test_missing_package_names_the_extra(monkeypatch, name, package):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    a = np.random.default_rng(0).normal(size=(10, 2))
    with pytest.raises(MissingExtraError, match=rf"{name}.*{package}.*unaligned\[topology\]"):
        ua.distance(a, 2.0 * a, name)


@pytest.mark.parametrize(
    ("name", "package"), [("bottleneck-h0", "gudhi"), ("bottleneck-h2", "ripser")]
)
def test_missing_package_raises_before_distances_are_computed(monkeypatch, name, package):
    def never(first, second):
        raise AssertionError("the distances were computed first")

    monkeypatch.setattr(bottleneck, "pairwise", never)
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(MissingExtraError, match=package):
        ua.distance(np.eye(3), 2.0 * np.eye(3), name)


class TestPairwise:
    @pytest.mark.parametrize("n_features", [3, 200])
    def test_small_distances_are_accurate_far_from_the_origin(self, n_features):
        rng = np.random.default_rng(0)
        x = rng.normal(size=(30, n_features))
        x[5:10] = x[0] + 1e-7 * rng.normal(size=(5, n_features))
        direct = np.sqrt(((x[:, None] - x[None]) ** 2).sum(axis=2))
        assert np.allclose(pairwise(x, x), direct, rtol=1e-9, atol=0)
        far = x + 100.0
        again = np.sqrt(((far[:, None] - far[None]) ** 2).sum(axis=2))
        assert np.allclose(pairwise(far, far), again, rtol=1e-9, atol=0)
        assert not np.diagonal(pairwise(far, far)).any()

    def test_farthest_points_cover_the_data_and_ignore_row_order(self):
        rng = np.random.default_rng(0)
        x = rng.normal(size=(50, 3))
        rows, radius = farthest_points(ua.Dataset(x), 12)
        assert pairwise(x[rows], x).min(axis=0).max() == radius
        mixed = rng.permutation(50)
        again, _ = farthest_points(ua.Dataset(x[mixed]), 12)
        assert mixed[again].tolist() == rows.tolist()
