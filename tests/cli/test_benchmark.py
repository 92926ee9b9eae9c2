"""`unaligned benchmark`: choice of jobs and methods, output, bad input."""

import json

import pytest
from program import done, fails, run

pytestmark = pytest.mark.usefixtures("files")


def test_list_names_jobs_and_methods():
    printed = done("benchmark --list")
    assert "Which layer is this?" in printed
    assert "les block-corrected" in printed
    assert "gromov-wasserstein" not in done("benchmark --list --only les,imd")


@pytest.mark.usefixtures("tiny", "without_drawing")
def test_a_run_prints_both_tables_and_names_its_files(files):
    found = run("benchmark --jobs tori --only les,cka --seeds 1")
    assert found.exit_code == 0
    assert "Scores (1 is best), equal sizes" in found.stdout
    assert "Scores (1 is best), unequal sizes" in found.stdout
    assert "2 cells: not applicable." in found.stderr
    text = (files / "results" / "benchmark" / "RESULTS.md").read_text(encoding="utf-8")
    assert "unaligned benchmark --quick --jobs 'tori' --only 'les,cka' --seeds '1'" in text
    again = json.loads(done("benchmark --jobs tori --only les,cka --seeds 1 --json"))
    assert {cell["status"] for cell in again["cells"]} == {"ok", "not applicable"}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("benchmark --jobs torus", "--jobs 'torus' is not known. Did you mean 'tori'?"),
        ("benchmark --only lse", "--only 'lse' is not known"),
        ("benchmark --only ,", "Nothing is left to run"),
        ("benchmark --jobs ,", "Nothing is left to run"),
        ("benchmark --limit 0", "--limit 0.0 must be at least 1"),
        ("benchmark --limit nan", "--limit nan must be finite"),
        ("benchmark --distance nowhere:Name", "module 'nowhere' cannot be imported"),
        ("benchmark --distance mymodule:Nothing", "--distance 'mymodule:Nothing'"),
        ("benchmark --job-module nowhere", "module 'nowhere' cannot be imported"),
        ("benchmark --jobs tori --only les --out cells.npy", "cells.npy"),
    ],
)
def test_bad_input_is_one_message(files, command, expected):
    message = fails(command)
    assert expected in message
    assert message.count("\n") == 1
    assert not (files / "results").exists()
