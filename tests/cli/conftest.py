"""Fixtures of the command line."""

from __future__ import annotations

import pytest
from program import write_files

from unaligned.experiments import aligned, tori


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder with files, in which the program runs, and a cache of its own."""
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNALIGNED_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def tiny(monkeypatch):
    """Make `reproduce` take a second."""
    sizes = {"n_samples": 60, "n_eigenvalues": 20, "scales": (0.4, 1.0), "rounds": 5}
    monkeypatch.setattr(tori.Tori, "quick", {"n_trials": 1, **sizes})
    monkeypatch.setattr(tori.Tori, "full", {"n_trials": 2, **sizes})
    monkeypatch.setattr(aligned.Aligned, "quick", {**aligned.Aligned.quick, "n_samples": 60})
