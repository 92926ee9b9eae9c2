"""Wasserstein distance and optimal couplings, against POT, assignment and closed forms."""

import math
import sys
import warnings
from functools import partial

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

import unaligned as ua
from unaligned.errors import AccuracyWarning, InputError, MissingExtraError
from unaligned.metrics import wasserstein
from unaligned.metrics.gromov_wasserstein import GromovWasserstein

ot = pytest.importorskip("ot", reason="POT is not installed")
SEEDS = range(4)


def pair(seed, n=40, m=55, d=3, e=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(m, e)) * np.arange(1, e + 1)


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


def test_wasserstein_is_accurate_far_from_the_origin():
    x, y = pair(0, d=30, e=30)
    here, there = (ua.distance(x + s, y + s, "wasserstein") for s in (0.0, 1e6))
    assert there == pytest.approx(here, rel=1e-8)


@pytest.mark.parametrize("far", [1e6, 1e12])
@pytest.mark.parametrize("seed", SEEDS)
def test_wasserstein_is_accurate_with_an_outlier(seed, far):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(50, 20))
    x[0] = far
    y = x + 0.1 * rng.normal(size=x.shape) * (np.arange(50) > 0)[:, None]
    cost = cdist(x, y, "sqeuclidean")
    expected = np.sqrt(cost[linear_sum_assignment(cost)].mean())
    assert ua.distance(x, y, "wasserstein") == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("d", [1, 2, 20])
@pytest.mark.parametrize("seed", SEEDS)
def test_equal_outliers_do_not_change_wasserstein(seed, d):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(150, d)), 1.3 * rng.normal(size=(150, d))
    x[0], y[0] = 0.0, 0.0
    values = []
    for off in (1e4, 1e6, 1e8, 1e12):
        x[0] = y[0] = off
        values.append(ua.distance(x, y, "wasserstein"))
    np.testing.assert_allclose(values[1:], values[0], rtol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_one_feature_is_accurate_for_unequal_sizes(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(30, 1)), rng.normal(size=(70, 1))
    x[:3] += 1e8
    y[:7] += 1e8
    expected = np.mean((np.sort(x.repeat(7)) - np.sort(y.repeat(3))) ** 2) ** 0.5
    assert ua.distance(x, y, "wasserstein") == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", range(2))
def test_sinkhorn_is_close_and_sliced_is_below(seed):
    x, y = pair(seed, n=80, m=60)
    exact, near, sliced = (
        ua.distance(x, y, "wasserstein", method=m) for m in ("exact", "sinkhorn", "sliced")
    )
    assert near == pytest.approx(exact, rel=0.05)
    assert 0 < sliced <= exact / np.sqrt(3) * 1.05  # without 1.05 over all directions


def test_sliced_with_few_directions_stays_below_the_distance():
    x, y = np.array([[0.0, 0.0]]), np.array([[1.0, 0.0]])
    values = [
        ua.distance(x, y, "wasserstein", method="sliced", n_projections=2, rng=seed)
        for seed in range(20)
    ]
    assert 1 / np.sqrt(2) < max(values) <= 1.0
    assert np.mean(np.square(values)) == pytest.approx(1 / 2, abs=0.15)


def test_sliced_is_seeded_and_equals_pot_for_any_block_size(monkeypatch):
    x, y = pair(1)
    options = {"method": "sliced", "n_projections": 20}
    whole = ua.distance(x, y, "wasserstein", **options)
    monkeypatch.setattr(wasserstein, "_PROJECTED_VALUES", 3 * len(y))
    assert ua.distance(x, y, "wasserstein", **options) == pytest.approx(whole, rel=1e-12)
    assert ua.distance(x, y, "wasserstein", rng=1, **options) != whole
    directions = np.random.default_rng(0).normal(size=(3, 20))
    directions /= np.linalg.norm(directions, axis=0)
    expected = ot.sliced_wasserstein_distance(x, y, projections=directions)
    assert whole == pytest.approx(expected, rel=1e-10)


def test_single_points():
    x, y = np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]])
    assert ua.distance(x, y, "wasserstein") == pytest.approx(5.0)
    assert ua.distance(x, y, "gromov-wasserstein") == 0.0
    many = pair(0)[0]  # every point of it goes to the one, so the loss is the mean of C²
    expected = np.mean(cdist(many, many) ** 2)
    assert ua.distance(x, many, "gromov-wasserstein", squared=True) == pytest.approx(expected)


def test_large_collections_warn_of_the_approximation(monkeypatch):
    x, y = pair(0, n=60, m=40)
    monkeypatch.setattr(wasserstein.Wasserstein, "exact_rows", 50)
    with pytest.warns(AccuracyWarning, match=r"method='sliced' .another number.*has 60 rows"):
        result = ua.compare([x, y], distance="wasserstein")
    assert result.options["method"] == "sliced"
    monkeypatch.setattr(GromovWasserstein, "exact_rows", 50)
    with pytest.warns(AccuracyWarning, match="method='low-rank'"):
        ua.distance(x, y, "gromov-wasserstein")


@pytest.mark.parametrize(
    ("method", "chosen"),
    [(wasserstein.Wasserstein, "sliced"), (GromovWasserstein, "low-rank")],
)
def test_approximation_is_named_in_results_figures_reports_and_files(
    method, chosen, monkeypatch, tmp_path
):
    x, y = pair(0, n=60, m=40)
    assert repr(ua.compare([x, y], distance=method.name)) == (
        f"Comparison({method.name}, 2 datasets, N=40…60)"
    )
    monkeypatch.setattr(method, "exact_rows", 50)
    with pytest.warns(AccuracyWarning, match=f"method='{chosen}'"):
        result = ua.compare([x, y], distance=method.name)
    result.save(tmp_path / "result.npz")
    for found in (result, ua.Comparison.load(tmp_path / "result.npz")):
        assert found.options["method"] == chosen
        assert str(found).startswith(f"Comparison({method.name} ({chosen}), 2 datasets")
        title = found.plot("heatmap").get_title().replace("\n", " ")
        assert title == f"{method.name} ({chosen}) distances"
    result.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"{method.name} ({chosen}): {method.summary}" in page
    assert f"<dt>method</dt><dd>&#x27;{chosen}&#x27;</dd>" in page


def test_one_feature_is_sorted_at_any_size(monkeypatch):
    monkeypatch.setattr(wasserstein.Wasserstein, "exact_rows", 10)
    x, y = pair(0, d=1, e=1)
    expected = np.sqrt(ot.emd2_1d(x, y))
    assert ua.distance(x, y, "wasserstein") == pytest.approx(expected, rel=1e-10)


def test_solver_that_stops_early_warns(monkeypatch):
    x, y = pair(0)
    match = r"'a' and dataset 'b': conditional gradient did not .* max_iter=1 .* Raise max_iter"
    with pytest.warns(AccuracyWarning, match=match):
        ua.distance(x, y, "gromov-wasserstein", max_iter=1)
    few = partial(wasserstein._entropic_cost, max_iter=1)
    monkeypatch.setattr(wasserstein, "_entropic_cost", few)
    with pytest.warns(AccuracyWarning, match=r"Sinkhorn did not converge: .* Raise epsilon"):
        ua.distance(x, y, "wasserstein", method="sinkhorn")


@pytest.mark.filterwarnings("ignore:numItermax reached:UserWarning")  # POT's own, beside ours
def test_simplex_that_stops_early_warns(monkeypatch):
    x, y = pair(0)
    monkeypatch.setattr(wasserstein, "_SIMPLEX_STEPS", 3)
    match = r"'a' and dataset 'b': the network simplex did not converge.* method='sliced'"
    with pytest.warns(AccuracyWarning, match=match):
        ua.distance(x, y, "wasserstein")
    with pytest.warns(AccuracyWarning, match=r"the network simplex did not .* with subsample="):
        ua.distance(x, y, "gromov-wasserstein")


@pytest.mark.parametrize("options", [{}, {"n_jobs": 2}, {"engine": "processes", "n_jobs": 2}])
def test_one_warning_names_all_pairs_at_the_line_of_the_user(options):
    data = {f"x{seed}": pair(seed)[0] for seed in range(3)}
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        ua.compare(data, distance="gromov-wasserstein", max_iter=1, **options)
    # joblib may remark on the memory of a worker that imports torch through POT.
    seen = [note for note in seen if issubclass(note.category, AccuracyWarning)]
    assert {note.filename for note in seen} == {__file__}
    (message,) = (str(note.message) for note in seen)
    assert message.startswith("dataset 'x0' and dataset 'x1': conditional gradient did not")
    assert message.endswith(
        "This is one of 3 such cases; the others: 'x0' and 'x2', 'x1' and 'x2'."
    )


@pytest.mark.parametrize("name", ["wasserstein", "gromov-wasserstein"])
def test_threads_do_not_change_warning_filters(name, monkeypatch):
    def touched(*_, **__):
        raise RuntimeError("filters belong to the whole process")

    data = [pair(seed)[0] for seed in range(4)]
    before = list(warnings.filters)
    ua.compare(data, distance=name)  # what is imported on the way may add filters once
    monkeypatch.setattr(warnings, "simplefilter", touched)
    monkeypatch.setattr(warnings, "filterwarnings", touched)
    ua.compare(data, distance=name, n_jobs=2)
    assert warnings.filters == before


def test_warnings_of_pot_are_not_shown(monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ua.distance(*pair(0), "wasserstein", method="sinkhorn", epsilon=0.5)
    few = partial(wasserstein._entropic_cost, max_iter=200)
    monkeypatch.setattr(wasserstein, "_entropic_cost", few)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 3)), rng.normal(size=(50, 3)) + 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "dataset 'a' .* Raise epsilon", AccuracyWarning)
        ua.distance(x, y, "wasserstein", method="sinkhorn", epsilon=1e-4)  # exp overflows


def test_invalid_settings_raise():
    x, y = pair(0)
    with pytest.raises(InputError, match=r"method='sinkhor' is not known. Did you mean"):
        ua.distance(x, y, "wasserstein", method="sinkhor")
    with pytest.raises(InputError, match="rank=1 must be at least 2"):
        ua.distance(x, y, "gromov-wasserstein", rank=1)


@pytest.mark.parametrize("name", ["wasserstein", "gromov-wasserstein"])
def test_missing_pot_names_the_extra(monkeypatch, name):
    monkeypatch.setitem(sys.modules, "ot", None)
    with pytest.raises(MissingExtraError, match=r"needs the package 'POT'.*unaligned\[transport"):
        ua.distance(*pair(0), name)


def clouds(seed, n=60, m=60):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)), 1.3 * rng.normal(size=(m, 2))


def least_cost(cost):
    """Return the least mean cost, by an assignment of every point's copies."""
    n, m = cost.shape
    common = math.lcm(n, m)
    copies = cost.repeat(common // n, axis=0).repeat(common // m, axis=1)
    return copies[linear_sum_assignment(copies)].mean()


def found_cost(cost):
    n, m = cost.shape
    found = wasserstein.optimal_coupling(cost, np.ones(n), np.ones(m))
    assert found.complaint is None
    np.testing.assert_allclose(found.plan.sum(axis=1), 1 / n, rtol=1e-12)
    np.testing.assert_allclose(found.plan.sum(axis=0), 1 / m, rtol=1e-12)
    return np.vdot(found.plan, cost)


@pytest.mark.parametrize("off", [1e3, 1e6, 1e8, 1e12])
@pytest.mark.parametrize("n_far", [1, 30])
@pytest.mark.parametrize("seed", SEEDS)
def test_coupling_is_optimal_with_outliers(seed, n_far, off):
    x, y = clouds(seed)
    x[:n_far] += off
    y[:n_far] += off
    cost = cdist(x, y, "sqeuclidean")
    assert found_cost(cost) == pytest.approx(least_cost(cost), rel=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_coupling_is_optimal_with_outliers_on_two_scales(seed):
    x, y = clouds(seed)
    for z in (x, y):
        z[:6] += 1e6
        z[:2] += 1e12
    cost = cdist(x, y, "sqeuclidean")
    assert found_cost(cost) == pytest.approx(least_cost(cost), rel=1e-12)
    x[6] += 1e6  # transported to the others, at nearly the whole cost
    cost = cdist(x, y, "sqeuclidean")
    assert found_cost(cost) == pytest.approx(least_cost(cost), rel=1e-9)


@pytest.mark.parametrize(("n", "m", "few", "many"), [(30, 70, 3, 7), (49, 77, 7, 11)])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_rounding_residue_is_transported_far(seed, n, m, few, many):
    x, y = clouds(seed, n, m)
    x[:few] += 1e8
    y[:many] += 1e8
    cost = cdist(x, y, "sqeuclidean")
    assert found_cost(cost) == pytest.approx(least_cost(cost), rel=1e-12)
    numbers = least_cost(cdist(x[:, :1], y[:, :1], "sqeuclidean"))
    assert wasserstein.sorted_cost(x[:, 0], y[:, 0]) == pytest.approx(numbers, rel=1e-12)


def test_ordinary_costs_run_the_simplex_once(monkeypatch):
    calls = []
    solve = wasserstein.simplex
    monkeypatch.setattr(wasserstein, "simplex", lambda *a: calls.append(a) or solve(*a))
    x, y = clouds(0)
    found_cost(cdist(x, y, "sqeuclidean"))
    found_cost(cdist(x, x[::-1] + 1e-9, "sqeuclidean"))  # a small minimum
    assert len(calls) == 2


@pytest.mark.parametrize("seed", SEEDS)
def test_duality_gap_is_reported_and_bounds_the_error(seed):
    x, y = clouds(seed)
    x[0] += 1e8
    y[0] += 1e8
    cost = cdist(x, y, "sqeuclidean")
    ones = np.ones(60)
    found = wasserstein.optimal_coupling(cost, ones, ones, cap_factor=np.inf)  # no second run
    assert "with costs of up to 2e+16 it may be off by 0." in found.complaint
    value = np.vdot(found.plan, cost)
    share = wasserstein._relative_gap(cost, found, ones, ones)
    assert value > 1.1 * least_cost(cost) >= 1.1 * (1 - share) * value


def test_equal_points_cost_nothing():
    assert found_cost(np.zeros((3, 4))) == 0.0
