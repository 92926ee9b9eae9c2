"""The geometry score against the published code and a textbook witness complex."""

import itertools

import numpy as np
import pytest

import unaligned as ua
from plain_persistence import loops
from unaligned import engine
from unaligned.errors import DegenerateDataError, InputError
from unaligned.metrics import geometry_score
from unaligned.metrics.bottleneck import pairwise
from unaligned.metrics.geometry_score import GeometryScore, _holes, relative_living_times

gudhi = pytest.importorskip("gudhi", reason="the extra topology is not installed")

SEEDS = range(3)
QUICK = {"n_landmarks": 10, "gamma": 0.2, "n_rounds": 30}


def cloud(seed, n=60, d=3):
    return np.random.default_rng(seed).normal(size=(n, d))


def plain_living_times(bars, alpha_max, i_max):
    """Formulas 2 and 3: between any two events, count who is alive."""
    bars = [(birth, min(death, alpha_max)) for birth, death in bars]
    events = sorted({0.0, alpha_max, *(time for bar in bars for time in bar)})
    times = np.zeros(i_max)
    for start, end in itertools.pairwise(events):
        alive = sum(birth <= (start + end) / 2 < death for birth, death in bars)
        if alive < i_max:
            times[alive] += (end - start) / alpha_max
    return times


def plain_bars(distances, alpha_max):
    """H1 of the relaxed witness complex, from its definition, over all simplices.

    σ is there at α if some w has d(w, p) ≤ d(w, q) + α for all p in σ, q not in σ, and all its
    faces are there.
    """
    n_landmarks = distances.shape[1]

    def own(simplex):
        inside = list(simplex)
        outside = [q for q in range(n_landmarks) if q not in simplex]
        late = distances[:, inside].max(axis=1) - distances[:, outside].min(axis=1)
        return max(0.0, late.min())

    def value(simplex):
        faces = [simplex[:i] + simplex[i + 1 :] for i in range(len(simplex))]
        if len(simplex) == 1:
            return 0.0
        return max(own(simplex), *(value(face) for face in faces))

    return loops(value, n_landmarks, top=alpha_max)


@pytest.mark.parametrize("seed", SEEDS)
class TestGeometryScore:
    @pytest.mark.parametrize("gamma", [0.02, 0.2])
    def test_equals_the_published_code(self, seed, gamma):
        data = ua.Dataset(cloud(seed))
        draws = data.generator(5).integers(60, size=(10, 12))
        expected = np.zeros(20)
        for rows in draws:
            distances = pairwise(data.values, data.values[rows])
            order = np.argsort(distances, axis=1)
            table = np.dstack([order, np.take_along_axis(distances, order, axis=1)])
            alpha_max = gamma * distances.max()
            tree = gudhi.WitnessComplex(table).create_simplex_tree(
                max_alpha_square=alpha_max, limit_dimension=2
            )
            tree.persistence(homology_coeff_field=2)
            bars = tree.persistence_intervals_in_dimension(1)
            expected += plain_living_times(bars, alpha_max, 20) / 10
        method = GeometryScore(n_landmarks=12, gamma=gamma, i_max=20, n_rounds=10)
        assert np.allclose(method.describe(data, 5), expected, rtol=0, atol=1e-12)

    @pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
    def test_complex_equals_the_definition(self, seed, share):
        data = cloud(seed, 40)
        rows = np.random.default_rng(seed).integers(40, size=9)  # some of them twice
        distances = pairwise(data, data[rows])
        alpha_max = share * distances.max()
        plain = plain_living_times(plain_bars(distances, alpha_max), alpha_max, 30)
        ours = relative_living_times(_holes(distances, alpha_max), alpha_max, 30)
        assert np.allclose(ours, plain)

    @pytest.mark.parametrize("share", [0.01, 0.1, 0.6, 1.0])
    @pytest.mark.parametrize("n", [12, 40, 300])
    def test_compiled_complex_equals_that_of_gudhi(self, seed, share, n):
        pytest.importorskip("numba", reason="the extra numba is not installed")
        rng = np.random.default_rng(seed)
        grid = rng.integers(3, size=(n, 3)).astype(float)  # ties and duplicates
        for data in (cloud(seed, n), grid):
            distances = pairwise(data, data[rng.integers(n, size=12)])
            alpha_max = share * distances.max()
            bars = [_holes(distances, alpha_max, compiled=way) for way in (True, False)]
            ours, theirs = (each[np.lexsort(each.T)] for each in bars)
            np.testing.assert_array_equal(ours, theirs)

    def test_compiled_rounds_give_the_same_times(self, seed, monkeypatch):
        pytest.importorskip("numba", reason="the extra numba is not installed")
        data, method = ua.Dataset(cloud(seed, 4000)), GeometryScore(n_rounds=50)
        compiled = method.describe(data, seed)
        monkeypatch.setattr(geometry_score, "has_numba", lambda: False)
        assert np.array_equal(compiled, method.describe(data, seed))

    def test_same_draws_are_invariant_to_rotation_translation_and_scale(self, seed):
        data = cloud(seed)
        U = np.linalg.qr(cloud(seed, 3))[0]
        rows = np.random.default_rng(seed).integers(60, size=10)
        still, moved = (pairwise(x, x[rows]) for x in (data, 4.0 * data @ U + 2.0))
        times = [
            relative_living_times(_holes(D, 0.2 * D.max()), 0.2 * D.max(), 20)
            for D in (still, moved)
        ]
        assert np.allclose(*times)

    def test_row_order_changes_only_the_draws(self, seed):
        # The noise of a squared distance of means goes down as 1 / n_rounds.
        data = cloud(seed)
        mixed = np.random.default_rng(seed).permutation(data)
        options = {"n_landmarks": 10, "gamma": 0.1, "n_rounds": 200}
        noise = ua.distance(data, mixed, "geometry-score", **options)
        assert noise < 0.01
        assert noise < ua.distance(data, cloud(seed, d=1), "geometry-score", **options) / 10

    @pytest.mark.parametrize("d", [3, 40])
    def test_distance_matrices_and_many_features_give_the_same_times(self, seed, d):
        data = ua.Dataset(cloud(seed, d=d))
        D = ua.Dataset(pairwise(data.values, data.values), kind="distances")
        method = GeometryScore(**QUICK)
        draws = data.generator(seed).integers(60, size=(30, 10))
        expected = np.zeros(100)
        for rows in draws:
            alpha_max = 0.2 * D.values[:, rows].max()
            expected += relative_living_times(_holes(D.values[:, rows], alpha_max), alpha_max, 100)
        assert np.allclose(method.describe(data, seed), expected / 30)
        assert method.describe(D, seed).sum() == pytest.approx(1.0)

    def test_living_times_add_up_to_one(self, seed):
        mean = GeometryScore(**QUICK).describe(ua.Dataset(cloud(seed)), seed)
        assert mean.shape == (100,)
        assert mean.sum() == pytest.approx(1.0)


def test_processes_do_not_change_the_value():
    data = ua.Dataset(cloud(0))
    one, two = (
        GeometryScore(**{**QUICK, "n_rounds": 60}, processes=p).describe(data, 0) for p in (1, 2)
    )
    assert np.array_equal(one, two)


def test_processes_start_only_for_long_work(monkeypatch):
    asked = []
    monkeypatch.setattr(geometry_score, "resolve_jobs", lambda n: asked.append(n) or 1)
    data = ua.Dataset(cloud(0))
    GeometryScore(**QUICK).describe(data, 0)
    assert asked == []
    monkeypatch.setattr(geometry_score, "_WORTH_PROCESSES", 30 * 60)
    GeometryScore(**QUICK).describe(data, 0)
    assert asked == [-1]
    engine.run(lambda _: GeometryScore(**QUICK).describe(data, 0), range(2), n_jobs=2)
    assert asked == [-1], "jobs of their own do not start more"


def test_progress_of_rounds_is_shown_on_request(shown_tasks):
    data = [cloud(seed) for seed in (0, 1)]
    ua.compare(data, distance="geometry-score", progress=False, **QUICK)
    assert shown_tasks == []
    ua.compare(data, distance="geometry-score", progress=True, **QUICK)
    assert shown_tasks[:3] == [("describing", 2), *2 * [("counting holes", 2)]]


def test_default_gamma_is_that_of_the_authors():
    data = ua.Dataset(cloud(0, 500))
    options = {"n_rounds": 5}
    given = GeometryScore(**options, gamma=500 / 5000 / 128).describe(data, 0)
    assert np.array_equal(GeometryScore(**options).describe(data, 0), given)


def test_time_with_too_many_holes_is_dropped():
    bars = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, np.inf]])
    assert relative_living_times(bars, 4.0, 2).tolist() == [0.0, 0.5]
    assert relative_living_times(np.empty((0, 2)), 4.0, 2).tolist() == [1.0, 0.0]


def test_invalid_input_raises():
    with pytest.raises(DegenerateDataError, match="5 points that are all equal"):
        ua.distance(np.ones((5, 2)), np.eye(3), "geometry-score", **QUICK)
    with pytest.raises(InputError, match="n_landmarks=2 must be at least 3"):
        ua.distance(np.eye(3), np.eye(3), "geometry-score", n_landmarks=2)
    with pytest.raises(InputError, match="gamma=0 must be above 0"):
        ua.distance(np.eye(3), np.eye(3), "geometry-score", gamma=0)
