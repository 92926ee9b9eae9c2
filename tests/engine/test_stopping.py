"""Ctrl-C stops at once, says how far it came, and leaves nothing half-written."""

import os
import signal
import subprocess
import sys
import time

import pytest

# Minutes of work; "ready" is said when it goes on.
SCRIPT = """
import threading
import numpy as np
import unaligned as ua

clouds = [np.random.default_rng(i).normal(size=(6000, 30)) for i in range(6)]
ua.compare([cloud[:300] for cloud in clouds], engine=ENGINE, n_jobs=2)
threading.Timer(1.0, lambda: print("ready", flush=True)).start()
found = ua.compare(clouds, solver="krylov", n_eigenvalues=800, engine=ENGINE, n_jobs=N_JOBS)
found.save("found.npz")
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGINT to send")
@pytest.mark.parametrize(
    ("engine", "n_jobs"), [("None", "None"), ("None", "2"), ("'processes'", "2")]
)
def test_ctrl_c_stops_at_once_with_a_clear_message(engine, n_jobs, tmp_path):
    script = SCRIPT.replace("ENGINE", engine).replace("N_JOBS", n_jobs)
    running = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    try:
        assert running.stdout.readline() == "ready\n"
        running.send_signal(signal.SIGINT)
        asked = time.perf_counter()
        _, told = running.communicate(timeout=60)
    finally:
        running.kill()
    assert time.perf_counter() - asked < 20.0, "the work would take minutes"
    assert running.returncode != 0
    last = told.strip().splitlines()[-1]
    assert last == ("KeyboardInterrupt: Stopped by Ctrl-C while describing: 0 of 6 datasets done.")
    assert "Exception in" not in told
    assert not list(tmp_path.iterdir())
