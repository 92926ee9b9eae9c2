"""The loops are as accurate as library functions, and thread-safe."""

import inspect
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits

import unaligned as ua
from unaligned.engine import one_blas
from unaligned.engine.threads import Workers, thread_count
from unaligned.operators import _loops_numba as kernels
from unaligned.operators import _loops_numpy as plain
from unaligned.operators.kernel import Gaussian

EPS = np.finfo(np.float64).eps


def exp_of(values):
    """Run the loop's exp: with norms of 0, inner products -x/2 give exp(-x)."""
    tile = -0.5 * np.array(values, dtype=np.float64).reshape(1, -1)
    kernels.gaussian_from_products(tile, np.zeros(1), np.zeros(tile.size), 1.0)
    return tile.ravel()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 30.0, 707.0])
def test_exp_is_accurate_to_one_unit_in_the_last_place(seed, scale):
    values = np.random.default_rng(seed).uniform(0, scale, 20_000)
    expected = np.exp(-values.astype(np.longdouble))
    error = np.abs(exp_of(values) - expected) / expected
    assert float(error.max()) <= EPS


def test_exp_of_zero_is_one_and_of_large_values_zero():
    values = exp_of([0.0, 1e-300, 1e-20, 709.0, 1e4, 1e308, np.inf])
    np.testing.assert_array_equal(values, [1, 1, 1, 0, 0, 0, 0])


def test_exp_is_monotone():
    values = exp_of(np.linspace(0, 20 * np.log(2), 40_001))
    assert np.all(np.diff(values) < 0)


@pytest.mark.parametrize("n_features", [4, 8, 12])
@pytest.mark.parametrize("seed", range(3))
def test_loop_over_differences_equals_scipy(n_features, seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(1500, n_features)) + 100.0  # not centred: it has no cancellation
    out = np.empty((37, 1390))
    kernels.products_from_points(points[:37], points.T.copy(), 110, out)
    expected = -0.5 * cdist(points[:37], points[110:], "sqeuclidean")
    np.testing.assert_allclose(out, expected, rtol=1e-13)


def tile_of_products(seed, n_features):
    points = np.random.default_rng(seed).normal(size=(300, n_features))
    norms = np.einsum("ij,ij->i", points, points)
    return points, points[40:90] @ points.T, norms[40:90], norms


@pytest.mark.parametrize("n_features", [4, 12])
@pytest.mark.parametrize("seed", range(3))
def test_numpy_loops_equal_the_compiled_ones(seed, n_features):
    points, tile, row_norms, norms = tile_of_products(seed, n_features)
    found = []
    for loops in (kernels, plain):
        out, affinity, collected = np.empty((30, 290)), tile.copy(), np.empty(tile.size + 1)
        loops.products_from_points(points[:30], points.T.copy(), 10, out)
        Gaussian(1 / 0.3).of_products(loops, affinity, row_norms, norms)
        bracket = (0.5 * n_features, 2.0 * n_features)
        counts = loops.collect_from_products(tile.copy(), row_norms, norms, 41, bracket, collected)
        found.append((out, affinity, collected[: counts[1]], counts))
    for compiled, by_numpy in zip(*found, strict=True):
        np.testing.assert_allclose(by_numpy, compiled, rtol=1e-12, atol=1e-13)
    assert 0 < found[0][3][1] < tile.size


def test_numpy_tallies_equal_the_compiled_ones():
    points, tile, row_norms, norms = tile_of_products(0, 12)
    starts = np.arange(50)
    windows, bracket = (starts, starts + 200), (12.0, 30.0)
    found = []
    for loops in (kernels, plain):
        bins, halves = np.zeros((2, 64), dtype=np.int64), np.zeros((2, 50), dtype=np.int64)
        below = (
            loops.tally_windows(
                points[:50], points.T.copy(), windows, bracket, 24.0, bins[0], halves[0]
            ),
            loops.tally_products(tile.copy(), row_norms, norms, bracket, 24.0, bins[1], halves[1]),
        )
        found.append((below, bins, halves))
    for compiled, by_numpy in zip(*found, strict=True):
        np.testing.assert_array_equal(by_numpy, compiled)
    assert bins.sum() > 0


def test_loops_have_the_same_signatures():
    for name, function in inspect.getmembers(plain, inspect.isfunction):
        if not name.startswith("_") and name != "cdist":
            compiled = getattr(kernels, name).py_func
            assert inspect.signature(compiled) == inspect.signature(function)


def test_numpy_loops_handle_overflow_silently(recwarn):
    tile = np.array([[-1e300, 0.0]])
    Gaussian(1e-20).of_products(plain, tile, np.zeros(1), np.zeros(2))
    np.testing.assert_array_equal(tile, [[0.0, 1.0]])
    assert not recwarn


@pytest.mark.parametrize(("n_rows", "loaded"), [(500, False), (501, True)])
def test_few_points_need_no_numba(n_rows, loaded):
    code = (
        "import sys, numpy as np, unaligned as ua;"
        f"points = np.random.default_rng(0).normal(size=({n_rows}, 3));"
        "ua.signature(points, n_eigenvalues=5);"
        "print('numba' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout == f"{loaded}\n", found.stderr


def test_loops_are_thread_safe():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(600, 4))
    expected = -0.5 * cdist(points, points, "sqeuclidean")

    def task(_):
        out = np.empty((600, 600))
        with Workers(2) as workers:
            workers.over_rows(
                600,
                lambda part: kernels.products_from_points(
                    points[part], points.T.copy(), 0, out[part]
                ),
            )
        return np.abs(out - expected).max()

    with ThreadPoolExecutor(8) as pool:
        assert max(pool.map(task, range(32))) < 1e-13


@pytest.mark.usefixtures("two_blas_threads")
def test_blas_limit_applies_to_the_loops():
    assert thread_count() == 2
    with threadpool_limits(1):
        assert thread_count() == 1
    with one_blas():  # means SciPy's
        assert thread_count() == 2


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("n_rows", [0, 1, 5, 100])
def test_workers_cover_every_row_once(n_threads, n_rows):
    with Workers(n_threads) as workers:
        parts = workers.over_rows(n_rows, lambda part: list(range(n_rows))[part])
    assert [row for part in parts for row in part] == list(range(n_rows))


def test_importing_the_operators_does_not_import_numba():
    code = "import sys, unaligned.operators.diffusion; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_loops_run_on_a_read_only_installation():
    program = """
from numba.core import caching
caching.CacheImpl._locator_classes = []  # as in a read-only installation without a home
import numpy as np
from unaligned.operators import _loops_numba as kernels
tile = np.zeros((1, 1))
kernels.gaussian_from_products(tile, np.zeros(1), np.zeros(1), 1.0)
print(tile[0, 0])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "1.0", done.stderr


@pytest.mark.parametrize(
    "without", ["os.environ['NUMBA_DISABLE_JIT'] = '1'", "sys.modules['numba'] = None"]
)
def test_numpy_loops_replace_numba_where_it_does_not_compile(without):
    program = f"""
import os, sys
{without}
import numpy as np, unaligned as ua
from unaligned.operators.kernel import loops_for
points = np.random.default_rng(0).normal(size=(600, 3))
print(*ua.signature(points, n_eigenvalues=5, solver="exact").values, loops_for(None).__name__)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.endswith("_loops_numpy\n"), done.stderr
    points = np.random.default_rng(0).normal(size=(600, 3))
    expected = ua.signature(points, n_eigenvalues=5, solver="exact").values
    found = [float(number) for number in done.stdout.split()[:-1]]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
