"""One Ctrl-C ends the work soon, says how much is done, and leaves no partial files."""

import os
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from unaligned import engine
from unaligned.engine import Threads, check_stop, interruptible, steps
from unaligned.engine.threads import Workers
from unaligned.operators.base import MatrixOperator

# Many minutes of work. "ready" is printed when the first dataset is about to be described.
SCRIPT = """
import numpy as np
import unaligned as ua
from unaligned.engine.processes import Processes
from unaligned.engine.threads import Threads

for cls in (Threads, Processes):
    def announced(self, *args, usual=cls.map, **options):
        print("ready", flush=True)
        yield from usual(self, *args, **options)
    cls.map = announced

clouds = [np.random.default_rng(i).normal(size=(6000, 30)) for i in range(6)]
found = ua.compare(clouds, solver="krylov", n_eigenvalues=800, engine=ENGINE, n_jobs=N_JOBS)
found.save("found.npz")
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT to send")
@pytest.mark.parametrize(
    ("where", "n_jobs", "delay"),
    [("None", "None", 0.0), ("None", "2", 1.5), ("'processes'", "2", 0.0)],
)
def test_ctrl_c_stops_a_comparison_with_a_clear_message(where, n_jobs, delay, tmp_path):
    script = SCRIPT.replace("ENGINE", where).replace("N_JOBS", n_jobs)
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as running:
        try:
            assert running.stdout.readline() == "ready\n"
            time.sleep(delay)
            running.send_signal(signal.SIGINT)
            _, errors = running.communicate(timeout=120)
        finally:
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGKILL)  # with its workers, which hold the pipes
    assert running.returncode != 0
    last = errors.strip().splitlines()[-1]
    stopped = r"KeyboardInterrupt: Stopped by Ctrl-C during describing: [0-5] of 6 datasets done\."
    assert re.fullmatch(stopped, last)  # none, unless the machine is very busy
    assert "Exception in" not in errors
    assert not list(tmp_path.iterdir())


def swallowed_ctrl_c(*_):
    """Drop a KeyboardInterrupt, as a ctypes callback does."""
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        return
    raise AssertionError("the signal was not delivered")


def tiles():
    with Workers(1) as workers:
        swallowed_ctrl_c()
        workers.over_rows(10, lambda rows: pytest.fail("another tile was computed"))


def tiles_on_two_threads():
    with Workers(2) as workers:
        swallowed_ctrl_c()
        workers.over_rows(10, lambda rows: pytest.fail("another tile was computed"))


def datasets():
    jobs = [swallowed_ctrl_c, lambda *_: pytest.fail("another dataset was computed")]
    list(Threads(1).map(lambda shared, job: job(), jobs))


def products():
    operator = MatrixOperator(np.eye(3))
    swallowed_ctrl_c()
    operator.matmat(np.eye(3))
    pytest.fail("another product was computed")


def rounds():
    for number in steps(range(2), 2, "rounds"):
        assert number == 0
        swallowed_ctrl_c()


@pytest.mark.parametrize(
    "work", [tiles, tiles_on_two_threads, datasets, products, rounds, swallowed_ctrl_c]
)
@pytest.mark.usefixtures("default_handler")
def test_ctrl_c_that_is_swallowed_is_raised_at_the_next_check(work):
    with pytest.raises(KeyboardInterrupt), interruptible():
        work()
    check_stop()  # nothing is left behind


@pytest.mark.usefixtures("default_handler")
def test_swallowed_ctrl_c_is_reported_with_progress():
    jobs = [lambda: None, swallowed_ctrl_c, lambda: None]
    with pytest.raises(KeyboardInterrupt, match="during testing: 2 of 3 done"):
        engine.run(lambda job: job(), jobs, description="testing")


def test_handler_of_the_user_is_kept():
    received = []
    before = signal.signal(signal.SIGINT, lambda *_: received.append(1))
    try:
        with interruptible():
            signal.raise_signal(signal.SIGINT)
            check_stop()
    finally:
        signal.signal(signal.SIGINT, before)
    assert received == [1]


@pytest.mark.usefixtures("default_handler")
def test_other_threads_do_not_touch_the_handler():
    def work():
        with interruptible():
            handlers.append(signal.getsignal(signal.SIGINT))

    handlers = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [signal.default_int_handler]


def test_an_error_stops_the_other_jobs_at_their_next_check():
    running, stopped = threading.Event(), threading.Event()

    def job(shared, item):
        if item == "wrong":
            running.wait(60)
            raise ValueError("wrong")
        running.set()
        try:
            while True:
                check_stop()
                time.sleep(0.001)
        finally:
            stopped.set()

    with pytest.raises(ValueError, match="wrong"):
        list(Threads(2).map(job, ["endless", "wrong"]))
    assert stopped.wait(60)
