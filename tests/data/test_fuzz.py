"""Mutated files: whatever the bytes, a reader gives datasets or an `InputError`, nothing else.

Files are read in another process, so that a library that crashes hard on hostile bytes fails a
test instead of ending the run.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from fuzzing import FOLDERS, Sandbox, mutations
from sample_files import SOUND


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox() as process:
        yield process


SHORT = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,  # the same files in every run
    database=None,
    suppress_health_check=list(HealthCheck),
)


def check(sandbox, name, mutate):
    outcome = sandbox.read(name, mutate)
    assert outcome in ("read", "refused"), outcome


@pytest.mark.parametrize("name", [*SOUND, *FOLDERS])
def test_mutated_files_are_read_or_refused(name, sandbox):
    @SHORT
    @given(mutations())
    def run(mutate):
        check(sandbox, name, mutate)

    run()


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", [*SOUND, *FOLDERS])
def test_many_mutated_files_are_read_or_refused(name, sandbox):
    @settings(SHORT, max_examples=2000, derandomize=False)
    @given(mutations())
    def run(mutate):
        check(sandbox, name, mutate)

    run()
