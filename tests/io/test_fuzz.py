"""Mutated files give datasets or an `InputError`, nothing else.

Files are read in another process, so that a library that crashes on hostile bytes fails a test
instead of ending the run.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from fuzzing import FILES, FOLDERS, Sandbox, mutations


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox() as process:
        yield process


# libhdf5 can loop forever over damaged text (about one file in thousands), see docs/files.md.
NATIVE_FAULTS = dict.fromkeys(("points.h5", "points.h5ad", "t.h5", "t.h5ad"), ("hangs", "crashes"))

SHORT = settings(
    max_examples=20,
    deadline=None,
    derandomize=True,  # the same files in every run
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],  # no shrinking: a crash takes seconds
)


@pytest.mark.parametrize("name", [*FILES, *FOLDERS])
def test_mutated_files_are_read_or_rejected(name, sandbox):
    @SHORT
    @given(mutations())
    def run(mutate):
        assert sandbox.read(name, mutate) in ("read", "rejected")

    run()


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", [*FILES, *FOLDERS])
def test_many_mutated_files_are_read_or_rejected(name, sandbox):
    faults = []

    @settings(SHORT, max_examples=2000, derandomize=False)
    @given(mutations())
    def run(mutate):
        outcome = sandbox.read(name, mutate)
        if outcome.startswith(NATIVE_FAULTS.get(name, ("never",))):
            faults.append(outcome)
        else:
            assert outcome in ("read", "rejected"), outcome

    run()
    assert len(faults) < 10, faults
