"""Fixtures that many tests share."""

from __future__ import annotations

import os
import secrets
import signal
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from unaligned.engine import base as engine

DATA = Path(os.environ.get("UNALIGNED_DATA", Path(__file__).parents[2] / "shared" / "data"))


def pytest_configure(config):
    """Draw the seed of the adversarial tests; workers of pytest-xdist inherit it."""
    os.environ.setdefault("UNALIGNED_TEST_SEED", str(secrets.randbelow(2**32)))


def pytest_terminal_summary(terminalreporter):
    # Not in the header, which -q hides.
    terminalreporter.write_line(f"UNALIGNED_TEST_SEED={os.environ['UNALIGNED_TEST_SEED']}")


def real_data(name: str):
    """Return an opened file of real data, or skip where the folder is absent."""
    path = DATA / name
    if not path.exists():
        pytest.skip(f"real data {name!r} is not in {DATA}; set UNALIGNED_DATA")
    return np.load(path)


@pytest.fixture(scope="session")
def cytotree():
    """CytoTree cells of one day: ten surface markers, arcsinh(x/150)."""
    stored = real_data("cytotree_hesc_timecourse.npz")
    markers = [str(c).split("|")[1] not in ("None", "7-AAD") for c in stored["channels"]]
    return lambda day: np.arcsinh(stored[day][:, markers] / 150)


@pytest.fixture(scope="session")
def klein():
    """Klein mouse ES cells: raw counts, 1000 × 900."""
    return np.asarray(real_data("klein2015_mesc.npz")["counts"], dtype=np.float64)


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread():
    """Cap BLAS: test matrices are small, and on a busy machine spinning threads take minutes."""
    with threadpool_limits(limits=1):
        yield


@pytest.fixture
def one_torch_thread():
    """Give torch one thread, for the same reason."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def two_blas_threads(monkeypatch):
    """Give BLAS two threads, on two cores, for a test of how many it has: under the cap of
    `one_blas_thread` such a test could not fail.
    """
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    for module in ("engine.threads", "engine.processes"):
        monkeypatch.setattr(f"unaligned.{module}.available_cores", lambda: 2)
    with threadpool_limits(limits=2, user_api="blas"):
        yield


@pytest.fixture
def without_drawing(monkeypatch):
    """Let experiments write empty figures: drawing takes longer than a small experiment."""
    monkeypatch.setattr("unaligned.figures.save", lambda figure, path: path.touch())


@pytest.fixture
def shown_tasks(monkeypatch):
    """The description and the total of every bar that is shown; rich draws none into a file."""
    shown = []

    class Noted(engine.Task):
        def __init__(self, description, total, bars=None):
            if bars is not None:
                shown.append((description, total))
            super().__init__(description, total, bars)

    monkeypatch.setattr(engine, "Task", Noted)
    return shown


@pytest.fixture
def default_handler():
    """Python's own handler of SIGINT, which pytest-xdist replaces in its workers."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)
