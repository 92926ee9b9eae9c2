"""Optimal couplings, against the assignment problem."""

import math

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from unaligned.metrics import coupling as _coupling

pytest.importorskip("ot", reason="POT is not installed")
SEEDS = range(4)


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
    found = _coupling.optimal_coupling(cost, np.ones(n), np.ones(m))
    assert found.complaint is None
    np.testing.assert_allclose(found.plan.sum(axis=1), 1 / n, rtol=1e-12)
    np.testing.assert_allclose(found.plan.sum(axis=0), 1 / m, rtol=1e-12)
    return np.vdot(found.plan, cost)


@pytest.mark.parametrize("off", [1e3, 1e6, 1e8, 1e12])
@pytest.mark.parametrize("n_far", [1, 30])
@pytest.mark.parametrize("seed", SEEDS)
def test_points_far_out_hide_nothing(seed, n_far, off):
    x, y = clouds(seed)
    x[:n_far] += off
    y[:n_far] += off
    cost = cdist(x, y, "sqeuclidean")
    assert found_cost(cost) == pytest.approx(least_cost(cost), rel=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_nor_do_points_far_out_on_two_scales(seed):
    x, y = clouds(seed)
    for z in (x, y):
        z[:6] += 1e6
        z[:2] += 1e12
    cost = cdist(x, y, "sqeuclidean")
    assert found_cost(cost) == pytest.approx(least_cost(cost), rel=1e-12)
    x[6] += 1e6  # one must go the way to the others, and pays for nearly all
    cost = cdist(x, y, "sqeuclidean")
    assert found_cost(cost) == pytest.approx(least_cost(cost), rel=1e-9)


@pytest.mark.parametrize(("n", "m", "few", "many"), [(30, 70, 3, 7), (49, 77, 7, 11)])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_sliver_of_mass_goes_the_long_way(seed, n, m, few, many):
    x, y = clouds(seed, n, m)
    x[:few] += 1e8
    y[:many] += 1e8
    cost = cdist(x, y, "sqeuclidean")
    assert found_cost(cost) == pytest.approx(least_cost(cost), rel=1e-12)
    numbers = least_cost(cdist(x[:, :1], y[:, :1], "sqeuclidean"))
    assert _coupling.sorted_cost(x[:, 0], y[:, 0]) == pytest.approx(numbers, rel=1e-12)


def test_ordinary_costs_are_solved_once(monkeypatch):
    calls = []
    solve = _coupling.simplex
    monkeypatch.setattr(_coupling, "simplex", lambda *a: calls.append(a) or solve(*a))
    x, y = clouds(0)
    found_cost(cdist(x, y, "sqeuclidean"))
    found_cost(cdist(x, x[::-1] + 1e-9, "sqeuclidean"))  # nor where the minimum is small
    assert len(calls) == 2


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_missing_is_said_and_bounds_the_error(seed, monkeypatch):
    x, y = clouds(seed)
    x[0] += 1e8
    y[0] += 1e8
    cost = cdist(x, y, "sqeuclidean")
    monkeypatch.setattr(_coupling, "_ROOM", np.inf)  # no cap, no second run
    ones = np.ones(60)
    found = _coupling.optimal_coupling(cost, ones, ones)
    assert "beside costs of up to 2e+16 it may miss 0." in found.complaint
    value = np.vdot(found.plan, cost)
    share = _coupling._missing(cost, found, ones, ones)
    assert value > 1.1 * least_cost(cost) >= 1.1 * (1 - share) * value


def test_points_in_one_place_cost_nothing():
    assert found_cost(np.zeros((3, 4))) == 0.0
