"""Times are carried over from parts of the data: counted in operations, never in wall time."""

import numpy as np
import pytest

import unaligned as ua
from unaligned.data.shapes import torus2, torus3, torus_angles
from unaligned.estimation import _foresight, _rates, _timing
from unaligned.operators.affinity import GaussianAffinity
from unaligned.operators.bandwidth_sampled import PAIRS, reference_count


class Clock:
    """Counts operations, a thousand million to the second: wall times would test the machine."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1e-6  # what no operation is counted for takes time as well
        return self.now

    def pricing(self, function, price):
        """Return a function that also takes `price(*arguments)` operations."""

        def priced(*args):
            self.now += 1e-9 * price(*args)
            return function(*args)

        return priced


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(_timing, "perf_counter", clock)
    prices = {
        (GaussianAffinity, "_build"): lambda kernel: 10 * kernel.n_samples**2,
        (GaussianAffinity, "rows"): lambda kernel, index: 100 * kernel.n_samples * np.size(index),
        (GaussianAffinity, "_matmat"): lambda kernel, block: kernel.n_samples * block.size,
        (np.linalg, "eigvalsh"): lambda matrix: len(matrix) ** 3,
        (_rates, "sampled_median"): lambda *arguments: arguments[-1],
    }
    for (owner, name), price in prices.items():
        monkeypatch.setattr(owner, name, clock.pricing(getattr(owner, name), price))
    # These time a product of arrays, where nothing can be counted.
    monkeypatch.setattr(_foresight, "multiply_add_seconds", lambda: 1e-9)
    monkeypatch.setattr(_foresight, "large_product_seconds", lambda n, width: 1e-9 * n**2 * width)
    return clock


@pytest.mark.parametrize("solver", ["auto", "nystrom", "exact", "krylov", "landmarks"])
def test_it_foresees_the_operations_within_a_factor_of_two(solver, clock):
    # Of seconds benchmarks/bench_estimate.py has the bar.
    points = torus3(torus_angles(1600, 3, rng=0))
    options = {"n_eigenvalues": 40, "solver": solver}
    foreseen = ua.estimate(points, **options).seconds
    started = clock.now
    ua.signature(points, **options)
    taken = clock.now - started
    assert taken / 2 < foreseen < 2 * taken


@pytest.mark.parametrize("solver", ["nystrom", "exact", "krylov", "landmarks"])
def test_more_rows_take_longer(solver, clock):
    points = torus3(torus_angles(8000, 3, rng=0))
    few, many = (
        ua.estimate(points[:n], n_eigenvalues=40, solver=solver).seconds for n in (500, 8000)
    )
    growth = {"exact": 16**3, "krylov": 16**2, "nystrom": 16**2, "landmarks": 16}[solver]
    assert growth / 4 < many / few < 4 * growth


def test_a_first_call_that_compiles_is_not_what_is_carried_over(clock, monkeypatch):
    # One timing of a median that compiled made ten minutes of half a minute.
    points = torus3(torus_angles(60_000, 3, rng=0)).astype(np.float32)
    calls = []
    original = _rates.sampled_median

    def slow_at_first(*args):
        calls.append(1)
        if len(calls) == 1:
            clock.now += 2.0
        return original(*args)

    monkeypatch.setattr(_rates, "sampled_median", slow_at_first)
    scale = _rates.measure(ua.Dataset(points), 60_000, "median", 50).scale
    pairs = PAIRS + reference_count(4) ** 2 / 2
    assert scale == pytest.approx(1e-9 * pairs, rel=0.2)


def test_a_median_of_many_points_is_counted_in(clock):
    points = torus2(torus_angles(60_000, 2, rng=1))
    with_median = ua.estimate(points, n_eigenvalues=30, tol=1e-2)
    without = ua.estimate(points, n_eigenvalues=30, tol=1e-2, bandwidth="mean")
    assert with_median.seconds > without.seconds + 1e-9 * PAIRS


def test_a_slow_source_is_counted_in(clock):
    points = torus2(torus_angles(3000, 2, rng=0))

    def estimated(seconds):
        def blocks():
            for block in np.array_split(points, 3):
                clock.now += seconds
                yield block

        return ua.estimate(ua.Dataset.from_source(blocks), n_eigenvalues=20).seconds

    # Two passes over three blocks, and a sample that is drawn from them.
    assert estimated(0.3) - estimated(0.0) == pytest.approx((2 * 3 + 3) * 0.3, rel=1e-2)
