"""Limits on BLAS threads, and their restoration."""

import os
import subprocess
import sys
import threading
import time
from collections import defaultdict

import numpy as np
import pytest
import scipy.linalg  # noqa: F401 - brings a BLAS of its own, which is limited too
from threadpoolctl import threadpool_info, threadpool_limits

from unaligned.engine import Threads, blas, limited_blas, one_blas
from unaligned.engine.threads import Workers, inner, own_threads, product
from unaligned.rows.reduce import over_blocks
from unaligned.spectra.landmarks import streamed as _passes

pytestmark = pytest.mark.usefixtures("two_blas_threads")


def threads_of_blas():
    """The numbers of threads of all BLAS libraries, NumPy's first, without repetition."""
    found = [lib for lib in threadpool_info() if lib["user_api"] == "blas"]
    found.sort(key=lambda lib: "numpy.libs" not in lib["filepath"])
    return [lib["num_threads"] for lib in found]


TWO = [2] * len(threads_of_blas())
ONE = [1] * len(threads_of_blas())


def eventually(expected):
    """Whether BLAS reaches these numbers of threads; an abandoned job may still run."""
    until = time.monotonic() + 60.0
    while threads_of_blas() != expected and time.monotonic() < until:
        time.sleep(0.01)
    return threads_of_blas() == expected


def test_jobs_share_the_threads():
    assert threads_of_blas() == TWO
    assert list(Threads(2).map(lambda *_: threads_of_blas(), range(4))) == [ONE] * 4
    assert eventually(TWO)


def test_one_blas_does_not_limit_numpy():
    if len(TWO) < 2:
        pytest.skip("NumPy and SciPy share one BLAS here")
    with one_blas():
        assert threads_of_blas() == [2, *ONE[1:]]
    assert threads_of_blas() == TWO


def test_smallest_limit_counts_and_none_raises_the_original():
    with limited_blas(8):
        assert threads_of_blas() == TWO
        with limited_blas(1), limited_blas(2):
            assert threads_of_blas() == ONE
        assert threads_of_blas() == TWO


@pytest.mark.parametrize("first", [one_blas, lambda: limited_blas(1)])
@pytest.mark.parametrize("second", [one_blas, lambda: limited_blas(1)])
def test_overlapping_limits_restore_the_original(first, second):
    if second is one_blas and len(TWO) < 2:
        pytest.skip("NumPy and SciPy share one BLAS here")
    first, second = first(), second()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert threads_of_blas() != TWO
    second.__exit__(None, None, None)
    assert threads_of_blas() == TWO


def passes_over_blocks(wait):
    return over_blocks([np.zeros((3, 2))], lambda rows, start, _: wait() or len(rows), None)


def what_is_left(wait):
    class Basis:
        def features(self, points):
            wait()
            return points.T

    return _passes.residual_diagonal(Basis(), np.zeros((3, 2)))


@pytest.mark.parametrize("work", [passes_over_blocks, what_is_left])
def test_passes_on_two_user_threads_restore_the_original(work):
    inside, leave = threading.Barrier(3, timeout=20), [threading.Event(), threading.Event()]

    def stay(number):
        inside.wait()
        leave[number].wait(20)

    users = [
        threading.Thread(target=work, args=(lambda number=number: stay(number),))
        for number in range(2)
    ]
    for user in users:
        user.start()
    inside.wait()
    assert threads_of_blas() == ONE
    for user, event in zip(users, leave, strict=True):  # who came first goes first
        event.set()
        user.join()
    assert threads_of_blas() == TWO


@pytest.mark.parametrize("inner", [one_blas, lambda: threadpool_limits(1, user_api="blas")])
def test_abandoned_job_restores_the_original(inner):
    started, stop = threading.Event(), threading.Event()

    def job(_, item):
        if item == 0:
            started.wait(20)
            raise KeyError("boom")
        with inner():  # scikit-learn limits BLAS by itself
            started.set()
            stop.wait(20)

    with pytest.raises(KeyError, match="boom"):
        list(Threads(2).map(job, range(2)))
    stop.set()
    assert eventually(TWO)


class OpenMP:
    """A library, as of threadpoolctl 3.8, with a number of threads for each thread of ours."""

    filepath, threading_layer = "libopenblas.so", "openmp"

    def __init__(self):
        self.numbers = defaultdict(lambda: 2)

    def clear_controlling_thread(self, force=False):
        pass

    @property
    def num_threads(self):
        return self.numbers[threading.get_ident()]

    def set_num_threads(self, number):
        self.numbers[threading.get_ident()] = number


def test_library_with_a_number_per_thread_is_limited_in_each(monkeypatch):
    library, both = OpenMP(), threading.Barrier(2, timeout=20)
    found = [library]
    monkeypatch.setattr(blas, "blas_libraries", lambda: found)

    def job(*_):
        both.wait()
        found = library.num_threads
        both.wait()
        return found

    assert list(Threads(2).map(job, range(4))) == [1] * 4
    assert set(library.numbers.values()) == {2}


def in_a_process_of_two_cores(script):
    """Run a script where BLAS begins with two threads, whatever this machine has."""
    found = subprocess.run(
        [sys.executable, "-c", PREPARED + script],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert found.returncode == 0, found.stderr
    return found.stdout.splitlines()


PREPARED = """
from unaligned.engine import limited_blas, processes
from unaligned.engine.processes import Processes
processes.available_cores = lambda: 2

def most_threads(*_):
    import scipy.linalg
    from threadpoolctl import threadpool_info
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]
"""


def test_processes_share_blas_threads_for_any_number_of_jobs():
    printed = in_a_process_of_two_cores(
        "for n_jobs in (2, 1, 2):\n"
        "    found = Processes(n_jobs).map(most_threads, range(4))\n"
        "    print(sorted({number for numbers in found for number in numbers}))\n"
    )
    most = min(2, blas.available_cores())  # OpenBLAS begins with no more threads than cores
    assert printed == ["[1]", f"[{most}]", "[1]"]


def test_library_loaded_inside_a_limit_is_limited_and_restored():
    printed = in_a_process_of_two_cores(
        "with limited_blas(1):\n"
        "    most_threads()\n"
        "    with limited_blas(2):\n"
        "        print(set(most_threads()))\n"
        "print(set(most_threads()))\n"
    )
    assert printed == ["{1}", f"{{{min(2, blas.available_cores())}}}"]


def test_own_threads_take_those_of_blas():
    with own_threads():
        assert threads_of_blas() == ONE
        assert Workers().n_threads == 2
        with own_threads():
            assert Workers().n_threads == 2
    assert threads_of_blas() == TWO


def test_own_threads_of_a_job_are_its_share():
    def job(*_):
        with own_threads():
            return Workers().n_threads

    assert list(Threads(2).map(job, range(4))) == [1] * 4


@pytest.mark.parametrize("shape", [(3000, 80, 70), (1, 9, 2), (5, 1, 5)])
def test_shared_products_equal_those_of_numpy(shape):
    n, m, k = shape
    rng = np.random.default_rng(n)
    a, b, c = rng.normal(size=(n, m)), rng.normal(size=(m, k)), rng.normal(size=(n, k))
    out = np.empty((n, k))
    with own_threads():
        assert product(a, b, out) is out
        np.testing.assert_allclose(product(a, b), a @ b, rtol=0, atol=1e-12 * m)
        np.testing.assert_allclose(inner(a, c), a.T @ c, rtol=0, atol=1e-12 * n)
    np.testing.assert_allclose(out, a @ b, rtol=0, atol=1e-12 * m)
