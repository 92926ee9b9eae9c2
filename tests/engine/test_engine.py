"""Threads: results in order, errors, invalid arguments."""

import threading
import time

import numpy as np
import pytest

from unaligned import engine
from unaligned.errors import InputError, InputTypeError


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 7, -1, -99, np.int64(2), np.int64(-1)])
@pytest.mark.parametrize("progress", [None, True, False])
def test_results_are_in_order_for_any_number_of_jobs(n_jobs, progress, capsys):
    def slow_first(item):
        time.sleep(0.01 if item == 0 else 0.0)
        return item * 2

    result = engine.run(slow_first, range(6), n_jobs=n_jobs, progress=progress)
    assert result == [0, 2, 4, 6, 8, 10]
    assert capsys.readouterr().out == "", "a bar belongs to stderr"


def test_no_items_give_no_results():
    assert engine.run(abs, [], n_jobs=4) == []


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_error_is_raised_and_stops_the_rest(n_jobs):
    started = []

    def fail_early(item):
        started.append(item)
        if item == 0:
            raise KeyError("boom")
        time.sleep(0.01)

    with pytest.raises(KeyError, match="boom"):
        engine.run(fail_early, range(200), n_jobs=n_jobs)
    assert len(started) < 100


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
def test_invalid_arguments_raise_even_without_items(options, error, message):
    for items in ([], [1, 2]):
        with pytest.raises(error, match=message):
            engine.run(abs, items, **options)


def test_steps_are_shown_only_inside_of_bars(shown_tasks):
    def job(_):
        return sum(engine.steps(range(4), 4, "inner"))

    assert job(None) == 6
    assert engine.run(job, range(2), progress=False, description="outer") == [6, 6]
    assert shown_tasks == []
    assert engine.run(job, range(2), progress=True, description="outer") == [6, 6]
    assert shown_tasks == [("outer", 2), ("inner", 4), ("inner", 4)]
    assert job(None) == 6
    assert len(shown_tasks) == 3, "nothing is shown after the bars are closed"
