"""Messages of the library in the words of the shell."""

import re

import pytest
from program import refused, run

from unaligned.cli.wording import Flag, in_shell_words

FLAGS = {
    "cache": Flag("--cache"),
    "columns": Flag("--columns"),
    "drop_non_numeric": Flag("--drop-non-numeric", is_switch=True),
    "header": Flag("--header", "--no-header", is_switch=True),
    "kind": Flag("--kind"),
    "n_eigenvalues": Flag("--n-eigenvalues"),
    "no_cache": Flag("--no-cache", is_switch=True),
    "option": Flag("--option"),
    "preprocess": Flag("--preprocess"),
    "robust": Flag("--robust", is_switch=True),
    "solver": Flag("--solver"),
    "tol": Flag("--tol"),
}


@pytest.mark.parametrize(
    ("python", "shell"),
    [
        ("drop_non_numeric=True", "--drop-non-numeric"),
        ("robust=False", "no --robust"),
        ("header=False", "--no-header"),
        ("cache=None", "--no-cache"),
        ("choose columns=, or not", "choose --columns, or not"),
        ("Take solver='krylov' or 'exact'.", "Take --solver 'krylov' or 'exact'."),
        ("above tol=1e-06.", "above --tol 1e-06."),
        ("n_eigenvalues=5; lower n_eigenvalues.", "--n-eigenvalues 5; lower --n-eigenvalues."),
        ("preprocess=['log1p', 'pca:5']", "--preprocess 'log1p,pca:5'"),
        ("Pass method='exact'", "Pass --option method=exact"),
        ("squared=True", "--option squared=true"),
    ],
)
def test_options_are_said_as_they_are_typed(python, shell):
    assert in_shell_words(python, FLAGS) == shell


@pytest.mark.parametrize(
    "message",
    [
        "'kind=1.npy' is empty",
        "the dataset's kind is 'robust=True'",
        "Dataset(graph) needs engine='processes'",  # the command has no such option
        "Its solver and tol are those of a solver's settings",
        "has the tags kind=scan",
        "store.n_eigenvalues is 5",
        "columns=(first, second) and kind=[not a literal]",
    ],
)
def test_what_is_no_option_stays_as_it_is(message):
    assert in_shell_words(message, FLAGS) == message


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    "command",
    [
        "compare words.csv cells.npy",
        "compare cells.npy model.npy -K 999",
        "compare cells.npy model.npy --metric cosine --solver landmarks",
        "compare cells.npy model.npy --option sketch_size=3",
        "compare cells.npy model.npy --kind distances",
        "describe holes.csv --store refs.db",
    ],
)
def test_a_refusal_names_only_what_the_shell_has(files, command):
    (files / "words.csv").write_text("a,b\n1,x\n2,y\n3,z\n")
    (files / "holes.csv").write_text("a,b\n1,2\n2,\n3,4\n")
    assert not re.search(r"(?<!--option )\b\w+=", refused(command))


def test_info_says_problems_so_too(files):
    found = run("info cells.npy -K 999")
    assert "cells: --n-eigenvalues 999 needs at least 999 samples" in found.stdout
