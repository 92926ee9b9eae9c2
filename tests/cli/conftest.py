"""Fixtures of the command line."""

from __future__ import annotations

from dataclasses import replace

import pytest
from program import write_files

import unaligned as ua
from unaligned.experiments import aligned, tori
from unaligned.experiments.benchmark import runner
from unaligned.experiments.benchmark.process import Outcome


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder with files, in which the program runs, and a cache of its own."""
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNALIGNED_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("UNALIGNED_DATA", raising=False)  # real data would take hours
    return tmp_path


@pytest.fixture
def tiny(monkeypatch):
    """Make `reproduce` and `benchmark` take a second."""
    sizes = {"n_samples": 60, "n_eigenvalues": 20, "scales": (0.4, 1.0), "rounds": 5}
    monkeypatch.setattr(tori.Tori, "quick", {"n_trials": 1, **sizes})
    monkeypatch.setattr(tori.Tori, "full", {"n_trials": 2, **sizes})
    monkeypatch.setattr(aligned.Aligned, "quick", {**aligned.Aligned.quick, "n_samples": 60})
    run = runner.run

    def first_cells(jobs, methods, out, **options):
        small = [replace(job, n_quick=20, n_full=20) for job in jobs if job.name == "tori"]
        return run(small, [methods[0], methods[-1]], out, **{**options, "n_seeds": 1})

    monkeypatch.setattr(runner, "run", first_cells)
    monkeypatch.setattr(runner, "run_limited", run_here)


def run_here(function, arguments, limit):
    """Call a function in this process, as `run_limited` does in another."""
    try:
        with ua.errors.collected():  # and not issued
            return Outcome("ok", function(*arguments), seconds=0.1, peak_mb=1.0)
    except ua.errors.UnalignedError as error:
        return Outcome(type(error).__name__, detail=str(error))
