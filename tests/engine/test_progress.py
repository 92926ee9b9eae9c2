"""Progress bars on stderr, and the message of Ctrl-C."""

import threading

import pytest

import unaligned as ua
from unaligned import defaults
from unaligned.data.shapes import torus2, torus_angles
from unaligned.engine.base import Progress
from unaligned.errors import InputTypeError
from unaligned.spectra import krylov
from unaligned.spectra.landmarks import streamed as _stream

POINTS = torus2(torus_angles(6000, 2, rng=0))
OPTIONS = {"n_eigenvalues": 30, "tol": 1e-2, "bandwidth": "mean"}


@pytest.mark.parametrize("wanted", [None, False])
def test_without_a_terminal_nothing_is_shown(wanted, monkeypatch, capsys):
    monkeypatch.setattr(defaults, "STREAM_ROWS", 1000)
    ua.signature(POINTS, progress=wanted, **OPTIONS)
    assert capsys.readouterr() == ("", "")


@pytest.fixture
def tasks(monkeypatch):
    """The description, total and unit of each task."""
    seen, original = [], Progress.task

    def noting(self, description, total, *, unit=""):
        seen.append((description, total, unit))
        return original(self, description, total, unit=unit)

    monkeypatch.setattr(Progress, "task", noting)
    return seen


def test_one_long_stream_has_a_bar_with_its_rows(monkeypatch, capsys, tasks):
    monkeypatch.setattr(defaults, "STREAM_ROWS", 1000)
    ua.signature(POINTS, progress=True, **OPTIONS)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "describing" in shown.err
    assert ("eigenvalues", 6000, "rows") in tasks
    assert all(total for _, total, _ in tasks)  # no bar for nothing


@pytest.mark.parametrize(("n_shown", "total"), [(400, 150), (401, 1)])
def test_large_krylov_counts_its_columns(n_shown, total, monkeypatch, tasks):
    monkeypatch.setattr(krylov, "SHOWN_ROWS", n_shown)
    ua.signature(POINTS[:400], solver="krylov", progress=True, **OPTIONS)
    assert ("columns of krylov", total, "columns of krylov") in tasks


def test_any_thread_may_advance():
    with Progress(False).task("counting", 4000) as advance:
        threads = [
            threading.Thread(target=lambda: [advance(2) for _ in range(500)]) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert advance.done == 4000


def interrupted(progress):
    with progress.task("describing", 3, unit="datasets") as advance:
        advance()
        with progress.task("row sums", 100, unit="rows") as rows:
            rows(10)
            raise KeyboardInterrupt


def test_ctrl_c_message_is_that_of_the_outer_task():
    message = r"^Stopped by Ctrl-C during describing: 1 of 3 datasets done\.$"
    with pytest.raises(KeyboardInterrupt, match=message):
        interrupted(Progress(False))


def test_ctrl_c_message_is_that_of_the_inner_task_of_one_step(monkeypatch):
    monkeypatch.setattr(defaults, "STREAM_ROWS", 1000)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(_stream, "kernel_sums", interrupted)
    message = r"^Stopped by Ctrl-C during row sums: 0 of 6000 rows done\.$"
    with pytest.raises(KeyboardInterrupt, match=message):
        ua.signature(POINTS, **OPTIONS)


def test_a_bar_shows_how_much_is_done(capsys):
    progress = Progress(True)
    with progress.task("reading", 10) as advance:
        advance(5)
    progress.close()
    assert "5/10" in capsys.readouterr().err


def test_a_log_has_a_line_per_tenth(capsys):
    progress = Progress(True)
    with progress.task("reading", 200) as advance:
        for _ in range(220):
            advance(1)
    progress.close()
    lines = [line for line in capsys.readouterr().err.splitlines() if " of " in line]
    done = [line.partition(", about")[0] for line in lines]
    assert done == [f"reading: {20 * tenth} of 200" for tenth in range(1, 11)]


def test_a_log_says_how_long_the_rest_takes(capsys, monkeypatch):
    progress, seconds = Progress(True), iter(range(1000))
    with progress.task("reading", 100) as advance:
        monkeypatch.setattr(progress._bars, "get_time", lambda: float(next(seconds)))
        for _ in range(10):
            advance(10)
    progress.close()
    assert "reading: 50 of 100, about" in capsys.readouterr().err


def test_rows_in_memory_show_the_phases_of_sampled(capsys):
    ua.signature(POINTS, n_eigenvalues=20, solver="sampled", tol=0.5, progress=True)
    assert f"products: {len(POINTS)} of {len(POINTS)}" in capsys.readouterr().err


def test_progress_must_be_true_or_false():
    with pytest.raises(InputTypeError, match=r"progress='yes' must be True, False or None"):
        ua.signature(POINTS, progress="yes")


def test_notebooks_without_widgets_get_text(monkeypatch, capsys):
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("unaligned.engine.base.find_spec", lambda name: None)
    ua.signature(POINTS, progress=True, **OPTIONS)  # a warning would be an error
    captured = capsys.readouterr()
    assert "1/1" in captured.err
    assert "ipywidgets" not in captured.err + captured.out
