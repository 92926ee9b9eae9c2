"""Messages of the library name options as the shell does."""

import json
import os
import re
import shutil
import sys
import warnings
from itertools import filterfalse

import numpy as np
import pytest
from program import done, fails, run, run_arguments
from typer.main import get_command

import unaligned as ua
from unaligned.cli import app, printing
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


@pytest.mark.usefixtures("files")
def test_errors_of_distance_options_show_what_can_be_typed():
    message = fails("compare cells.npy model.npy --option zzz=1")
    assert "options are: --bandwidth, bandwidth_factor, --gamma, --kernel, " in message
    for command in ("compare", "test"):
        message = fails(f"{command} cells.npy model.npy --option zzz")
        assert "--option 'zzz' must be KEY=VALUE, such as squared=true." in message


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("command", "flag"),
    [
        ("compare cells.npy model.npy --option n_eigenvalues=5 -K 6", "--n-eigenvalues"),
        ("test before.npy after.npy --option solver=exact --solver krylov", "--solver"),
        ("test before.npy after.npy --option rng=3", "--seed"),
    ],
)
def test_an_option_given_in_two_ways_is_an_error(command, flag):
    assert f"and {flag} set the same. Use {flag} only." in fails(command)


@pytest.mark.usefixtures("files")
def test_info_of_missing_values_names_no_option():
    np.save("empty.npy", np.full((9, 2), np.nan))
    message = fails("info empty.npy")
    assert "'empty' has NaN or infinite values in every row. Drop" in message
    assert "nan" not in message


def test_info_shows_the_other_files_of_a_folder(files):
    folder = files / "folder"
    folder.mkdir()
    for name in ("a", "b"):
        shutil.copy(files / "cells.npy", folder / f"{name}.npy")
    np.save(folder / "obj.npy", np.array([{}]), allow_pickle=True)
    for command in ("info folder", "info folder model.npy"):
        found = run(command)
        assert found.exit_code == 2
        assert found.stderr.count("Error: ") == 1
        assert "obj.npy" in found.stderr
        assert re.search(r"^ *a +90 .*\n *b +90 ", found.stdout, re.MULTILINE), found.stdout


EVIL = "\x1b[31mevil\x9b1m\r\udcff\u202e"


def test_control_characters_do_not_reach_the_terminal(capsys):
    rows = printing.table([EVIL, "n"], n_text=1)
    rows.add_row(EVIL, "1")
    printing.print_table(EVIL, rows)
    printing.print_problem("Error", EVIL)
    shown = "".join(capsys.readouterr())
    assert shown.count("�[31mevil�1m���") == 4
    assert shown.isprintable() or set(filterfalse(str.isprintable, shown)) == {"\n"}


def test_cells_of_a_table_are_one_line(capsys):
    rows = printing.table(["a\nb", "n"], n_text=1)
    rows.add_row("x\nError: disk failure\u2028", "1")
    printing.print_table("Names", rows)
    shown = capsys.readouterr().out
    assert "a�b" in shown
    assert "x�Error: disk failure�" in shown


def test_control_characters_are_escaped_in_json(capsys):
    value = {"\x1b[31mevil\x9b1m\x7f\r": "é\x85\u202e\udcff"}
    printing.print_json(value)
    shown = capsys.readouterr().out
    assert json.loads(shown) == value
    assert shown.removesuffix("\n").isprintable()
    assert "é" in shown


def test_escape_sequences_of_labels_and_file_names_are_replaced(files):
    rng = np.random.default_rng(0)
    rows = [f"{x:.3f},{y:.3f}" for x, y in rng.normal(size=(80, 2))]
    lines = [f"\x1b[31m{'ab'[i % 2]},{row}" for i, row in enumerate(rows)]
    (files / "g.csv").write_text("\n".join(["g,x,y", *lines]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib's, of glyphs
        shown = done("compare g.csv --group-by g --plot g.png")
    assert "\x1b" not in shown
    assert "�[31ma" in shown


@pytest.mark.filterwarnings("always:Glyph")
def test_letters_that_the_font_lacks_are_one_warning(files):
    shutil.copy(files / "cells.npy", "日本.npy")
    found = run("compare 日本.npy model.npy --plot o.png")
    assert found.exit_code == 0
    assert found.stderr.count("Warning: ") == 1
    assert "Warning: Letters that matplotlib's font lacks are drawn as boxes. Name" in found.stderr
    assert "Glyph" not in found.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text elsewhere")
def test_file_name_that_is_not_text_is_replaced(files):
    name = os.fsdecode(b"bad\xff.npy")
    shutil.copy(files / "cells.npy", name)
    found = run_arguments(["describe", name, "--store", "o.db"])
    assert found.exit_code == 0, found.stderr
    assert ua.Store("o.db").names() == ["bad�"]
    found = run_arguments(["compare", name, "model.npy", "--plot", "o.png"])
    assert found.exit_code == 0, found.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text elsewhere")
@pytest.mark.parametrize("pair", [(b"\xe9.npy", b"\xe8.npy"), (b"e\x07.npy", b"e\n.npy")])
def test_names_that_become_equal_are_numbered(files, pair):
    names = [os.fsdecode(name) for name in pair]
    for name, source in zip(names, ("cells.npy", "model.npy"), strict=True):
        shutil.copy(files / source, name)
    found = run_arguments(["compare", *names, "--json", "--out", "o.csv"])
    assert found.exit_code == 0, found.stderr
    first, second = json.loads(found.stdout)["names"]
    assert second == f"{first} (2)"
    assert first.isprintable()
    assert (files / "o.csv").read_text(encoding="utf-8").startswith(f",{first},{second}\n")
    found = run_arguments(["describe", *names, "--store", "o.db"])
    assert found.exit_code == 0, found.stderr
    assert {*ua.Store("o.db").names()} == {first, second}


@pytest.mark.parametrize(
    "command",
    ["list --tag k=\udcff", "remove x\udcff", "nearest cells.npy --tag k=\udcff"],
)
def test_arguments_that_are_not_text_are_errors(files, command):
    done("describe model.npy --store o.db")
    found = run_arguments([*command.split(), "--store", "o.db"])
    assert found.exit_code == 2
    assert "is not UTF-8 text. Leave out '\\udcff'." in found.stderr


def test_tag_that_is_not_text_creates_no_store(files):
    found = run_arguments(["describe", "model.npy", "--store", "o.db", "--tag", "k=\udcff"])
    assert (found.exit_code, (files / "o.db").exists()) == (2, False)
