"""Messages of the library name options as the shell does."""

import re

import pytest
from program import fails, run
from typer.main import get_command

from unaligned.cli import app
from unaligned.cli.printing import messages, with_flags


@pytest.fixture
def compare_flags():
    with messages(get_command(app).commands["compare"].params):
        yield


@pytest.mark.usefixtures("compare_flags")
@pytest.mark.parametrize(
    ("python", "shell"),
    [
        ("drop_non_numeric=True", "--drop-non-numeric"),
        ("header=False", "--no-header"),
        ("cache=None", "--no-cache"),
        ("n_jobs=0 and rng=1", "--jobs 0 and --seed 1"),
        ("choose columns=, or not", "choose --columns, or not"),
        ("Take solver='krylov' or 'exact'.", "Take --solver 'krylov' or 'exact'."),
        ("above tol=1e-06.", "above --tol 1e-06."),
        ("n_eigenvalues=5; lower n_eigenvalues.", "--n-eigenvalues 5; lower --n-eigenvalues."),
    ],
)
def test_options_of_the_command_become_flags(python, shell):
    assert with_flags(python) == shell


@pytest.mark.usefixtures("compare_flags")
@pytest.mark.parametrize(
    "message",
    [
        "'kind=1.npy' is empty",
        "the dataset's kind is 'robust=True'",
        "Dataset(graph) needs engine='processes'",  # `compare` has no such option
        "Its solver and tol are those of a solver's settings",
        "store.n_eigenvalues is 5",
        "squared=True",  # typed as --option squared=True
    ],
)
def test_other_text_stays_unchanged(message):
    assert with_flags(message) == message


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    "command",
    [
        "compare words.csv cells.npy",
        "compare cells.npy model.npy -K 999",
        "compare cells.npy model.npy --metric cosine --solver landmarks",
        "compare cells.npy model.npy --kind distances",
        "describe holes.csv --store refs.db",
    ],
)
def test_errors_name_flags_only(files, command):
    (files / "words.csv").write_text("a,b\n1,x\n2,y\n3,z\n")
    (files / "holes.csv").write_text("a,b\n1,2\n2,\n3,4\n")
    assert not re.search(r"\b\w+=", fails(command))


@pytest.mark.usefixtures("files")
def test_info_names_flags_in_problems():
    found = run("info cells.npy -K 999")
    assert "cells: --n-eigenvalues 999 needs at least 999 samples" in found.stdout


@pytest.mark.usefixtures("files")
def test_options_without_a_flag_can_be_typed_as_messages_show_them():
    assert run("compare cells.npy model.npy --option squared=True").exit_code == 0
