"""Where work runs: the same results in the same order, and no more threads than cores."""

import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from unaligned import engine
from unaligned.errors import InputError, InputTypeError


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 7, -1, -99, np.int64(2), np.int64(-1)])
@pytest.mark.parametrize("progress", [None, True, False])
def test_results_come_in_order_whatever_the_number_of_jobs(n_jobs, progress, capsys):
    def slow_first(item):
        time.sleep(0.01 if item == 0 else 0.0)
        return item * 2

    result = engine.run(slow_first, range(6), n_jobs=n_jobs, progress=progress)
    assert result == [0, 2, 4, 6, 8, 10]
    assert capsys.readouterr().out == "", "a bar belongs to stderr"


def test_nothing_to_do_is_nothing_done():
    assert engine.run(abs, [], n_jobs=4) == []


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_reaches_the_caller_and_stops_the_rest(n_jobs):
    started = []

    def fail_early(item):
        started.append(item)
        if item == 0:
            raise KeyError("boom")
        time.sleep(0.01)

    with pytest.raises(KeyError, match="boom"):
        engine.run(fail_early, range(200), n_jobs=n_jobs)
    assert len(started) < 100


def test_jobs_share_the_blas_threads():
    def blas_threads(_):
        return max(
            (p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"), default=1
        )

    cores = engine.available_cores()
    assert max(engine.run(blas_threads, range(4), n_jobs=2)) <= max(1, cores // 2)


def test_jobs_run_at_the_same_time():
    meeting = threading.Barrier(2, timeout=20)
    engine.run(lambda _: meeting.wait(), range(2), n_jobs=2)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_jobs": 0}, InputError, r"n_jobs=0 must not be zero. Use 1 for one job, -1"),
        ({"n_jobs": False}, InputTypeError, r"n_jobs=False must be a whole number, not bool"),
        ({"n_jobs": True}, InputTypeError, r"n_jobs=True must be a whole number"),
        ({"n_jobs": 1.5}, InputTypeError, r"n_jobs=1.5 must be a whole number, not float"),
        ({"n_jobs": "2"}, InputTypeError, r"n_jobs='2' must be a whole number, not str"),
        ({"progress": 1}, InputTypeError, r"progress=1 must be True, False or None"),
        ({"progress": "yes"}, InputTypeError, r"progress='yes' must be True, False or None"),
    ],
)
def test_wrong_arguments_are_refused_even_without_work(options, error, message):
    for items in ([], [1, 2]):
        with pytest.raises(error, match=message):
            engine.run(abs, items, **options)


def test_one_blas_leaves_the_limits_as_it_found_them_even_when_threads_overlap():
    from threadpoolctl import threadpool_info

    def limits():
        return [(lib["filepath"], lib["num_threads"]) for lib in threadpool_info()]

    before = limits()
    first, second = engine.one_blas(), engine.one_blas()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert limits() == before
