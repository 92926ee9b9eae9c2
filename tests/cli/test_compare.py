"""`compare` and `info`: from files to tables, files and JSON."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from program import done, fails, parsed, run, start
from rich.console import Console

import unaligned as ua

pytestmark = pytest.mark.usefixtures("files")


def loaded(*names):
    return {name: np.load(f"{name}.npy") for name in names}


def test_compare_equals_python():
    found = parsed("compare cells.npy model.npy new.npy -K 30")
    expected = ua.compare(loaded("cells", "model", "new"), n_eigenvalues=30)
    assert found["names"] == found["reference_names"] == ["cells", "model", "new"]
    assert np.array_equal(found["results"]["les"]["distances"], expected.distances)
    assert np.array_equal(found["results"]["les"]["error_bounds"], expected.error_bounds)
    assert found["results"]["les"]["options"]["n_eigenvalues"] == 30


def test_the_table_shows_names_and_rounded_distances():
    printed = done("compare cells.npy model.npy")
    value = ua.distance(*loaded("cells", "model").values())
    assert printed.startswith("les distances (error ≤ ")
    assert printed.count(f"{value:.4g}") == 2
    assert "\x1b" not in printed, "no colour into a pipe"


def test_a_table_too_wide_for_the_terminal_shows_the_nearest(monkeypatch):
    monkeypatch.setattr("unaligned.cli.printing.stdout", lambda: Console(width=68))
    found = run("compare table.csv --group-by day")
    assert "nearest" not in found.stdout
    found = run("compare cells.npy model.npy arrays.npz digits.csv new.npy -K 20")
    distances = ua.compare(loaded("cells", "model", "new"), n_eigenvalues=20)
    assert found.stderr.splitlines()[-1].startswith("The terminal is too narrow")
    assert "nearest" in found.stdout
    assert "…" not in found.stdout
    assert f"{distances['cells', 'model']:.4g}" in found.stdout


def test_columns_in_another_order_are_an_error_that_names_the_flag(files):
    (files / "first.csv").write_text("x,y\n1,2\n3,4\n5,7\n")
    (files / "second.csv").write_text("y,x\n2,1\n4,3\n7,5\n")
    message = fails("compare first.csv second.csv --distance mmd", code=1)
    assert "dataset 'first' has 'x' as column 0 where dataset 'second' has 'y'" in message
    assert "into one order, as --columns does where a table is read from a file" in message
    found = parsed("compare first.csv second.csv --distance mmd --columns x,y")
    assert np.max(found["results"]["mmd"]["distances"]) == 0
    done("compare first.csv second.csv -K 2")  # which needs no shared features


def test_against_takes_files_up_to_the_next_option():
    found = parsed("compare new.npy --against cells.npy model.npy arrays.npz:first")
    assert found["names"] == ["new"]
    assert found["reference_names"] == ["cells", "model", "arrays:first"]
    same = parsed("compare --against cells.npy model.npy --seed 0 new.npy")
    assert same["reference_names"] == ["cells", "model"]


def test_group_by_makes_a_dataset_of_each_value():
    found = parsed("compare table.csv --group-by day")
    assert found["names"] == ["0", "1", "2"]


def test_names_contain_the_file_if_there_are_several():
    assert parsed("compare arrays.npz")["names"] == ["first", "second"]
    whole = ["arrays:first", "arrays:second"]
    assert parsed("compare arrays.npz new.npy")["names"] == [*whole, "new"]
    found = parsed("compare arrays.npz --against new.npy")
    assert (found["names"], found["reference_names"]) == (whole, ["new"])
    assert [shown["name"] for shown in parsed("info table.csv --group-by day")] == ["0", "1", "2"]


def test_unwritable_folder_is_an_error_before_anything_is_computed(files, monkeypatch):
    monkeypatch.setattr("unaligned.cli.options.os.access", lambda path, mode: False)
    for option in ("--out d.csv", "--plot d.png", "--report d.html"):
        message = fails(f"compare cells.npy model.npy {option}")
        assert "the folder '.' does not exist or is not writable" in message
    assert not (files / "cache").exists(), "nothing was computed"


def test_options_reach_the_files_and_the_distance():
    given = "--preprocess standardize,pca:2 --option squared=true"
    found = parsed(f"compare cells.npy model.npy {given}")
    data = loaded("cells", "model")
    expected = ua.compare(data, preprocess=["standardize", "pca:2"], squared=True)
    assert np.array_equal(found["results"]["les"]["distances"], expected.distances)
    np.save("other.npy", np.load("cells.npy") ** 3)
    given = "--against other.npy --preprocess standardize --fit-on references"
    found = parsed(f"compare cells.npy {given}")["results"]["les"]["distances"]
    fit = {"preprocess": "standardize", "fit_on": "references"}
    assert np.array_equal(found, ua.compare(["cells.npy"], ["other.npy"], **fit).distances)
    robust = "--robust --gamma 1e-6 --bandwidth 2.5 --tol 1e-3 --solver exact"
    options = parsed(f"compare cells.npy model.npy {robust}")["results"]["les"]["options"]
    assert (options["gamma"], options["bandwidth"], options["tol"]) == (1e-6, 2.5, 1e-3)
    assert (options["robust"], options["solver"]) == (True, "exact")


def test_subsample_compares_at_one_size():
    expected = ua.compare(loaded("cells", "model"), subsample="common").distances
    for size in ("common", "70"):
        found = parsed(f"compare cells.npy model.npy --subsample {size}")
        assert np.array_equal(found["results"]["les"]["distances"], expected)


def test_several_distances_share_options_and_write_a_file_each(files):
    given = "-d les -d netlsd,imd-diffusion --gamma 1e-6 --out d.csv"
    found = run(f"compare cells.npy model.npy {given}")
    assert found.exit_code == 0, found.stderr
    for name in ("les", "netlsd", "imd-diffusion"):
        table = pd.read_csv(files / f"d-{name}.csv", index_col=0)
        assert list(table.columns) == ["cells", "model"]
    assert not (files / "d.csv").exists()


def test_distance_that_does_not_apply_does_not_stop_the_others():
    found = run("compare cells.npy model.npy -d wasserstein -d les")
    assert found.exit_code == 1
    assert "needs the same features" in found.stderr
    assert "les distances" in found.stdout


def test_all_outputs_are_written(files):
    found = run("compare cells.npy model.npy --out d.json --plot heat.svg --report page.html")
    assert found.exit_code == 0, found.stderr
    assert found.stderr.count("Written: ") == 3
    assert json.loads((files / "d.json").read_text())["names"] == ["cells", "model"]
    assert "<svg" in (files / "heat.svg").read_text()
    assert "unaligned" in (files / "page.html").read_text()
    done("compare cells.npy model.npy --out d.npz")
    assert ua.Comparison.load(files / "d.npz").names == ("cells", "model")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("compare cells.npy nothing.npy", "Cannot read 'nothing.npy'"),
        ("compare cells.npy", "nothing to compare it with"),
        ("compare cells.npy http://x.org/a.csv", "'http://x.org/a.csv' is a URL"),
        ("compare cells.npy 2024-01-01T10:00.csv", "Cannot read '2024-01-01T10:00.csv'"),
        ("compare cells.npy nothing.npz:first", "Cannot read 'nothing.npz'"),
        ("compare cells.npy model.npy --distance ''", "--distance names none. Give at least one"),
        ("compare cells.npy cells.npy", "'cells.npy' is given twice. Give"),
        (
            "compare cells.npy ./cells.npy",
            "'./cells.npy' is given twice, also as 'cells.npy'. Give",
        ),
        (
            "compare arrays.npz:first ./arrays.npz:first",
            "is given twice, also as 'arrays.npz:first'",
        ),
        ("compare cells.npy model.npy -d lse", "Did you mean 'les'?"),
        ("compare cells.npy model.npy -d FID", "Did you mean 'frechet'?"),
        ("compare cells.npy model.npy --option squred=true", "Did you mean 'squared'?"),
        ("compare cells.npy model.npy --option squared", "must be KEY=VALUE"),
        ("compare cells.npy model.npy -d mmd --gamma 1", "mmd has no option 'gamma'"),
        ("compare cells.npy model.npy --gamma tiny", "--gamma 'tiny' is not known"),
        ("compare cells.npy model.npy -K 500", "--n-eigenvalues 500 needs at least 500 samples"),
        ("compare cells.npy model.npy --solver magic", "--solver 'magic'"),
        ("compare cells.npy model.npy --subsample many", "--subsample 'many'"),
        ("compare cells.npy model.npy --preprocess lgo1p", "Did you mean 'log1p'?"),
        ("compare cells.npy model.npy --nan-policy drop", "--nan-policy 'drop' is not known"),
        ("compare cells.npy model.npy --kind pionts", "Did you mean 'points'?"),
        ("compare table.csv --group-by dya", "dya"),
        ("compare cells.npy model.npy --out d.txt", "must end in .csv, .json, .npz"),
        ("compare cells.npy model.npy --out folder.csv", "it is a folder"),
        ("compare cells.npy model.npy --out no/d.csv", "the folder 'no' does not exist"),
        ("compare cells.npy model.npy --report d.pdf", "must end in .html"),
        ("compare cells.npy model.npy --plot d.xyz", "must end in .png, .svg"),
        ("compare cells.npy model.npy --cache cells.npy", "cannot be used as a folder"),
        ("compare cells.npy model.npy --jobs 0", "--jobs 0 must not be zero"),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(files, command, expected):
    (files / "folder.csv").mkdir()
    before = sorted(files.iterdir())
    message = fails(command)
    assert expected in message
    assert message.count("\n") == 1
    assert [path for path in sorted(files.iterdir()) if path.name != "cache"] == before


def test_files_with_equal_names_are_named_with_their_folders(files):
    (files / "sub").mkdir()
    np.save(files / "sub" / "cells.npy", np.load("model.npy"))
    assert parsed("compare cells.npy sub/cells.npy")["names"] == ["cells.npy", "sub/cells.npy"]
    (files / "other").mkdir()
    np.save(files / "other" / "cells.npy", np.load("cells.npy"))
    assert parsed("compare sub other")["names"] == ["sub/cells", "other/cells"]


def test_glob_patterns_are_expanded(files):
    (files / "months").mkdir()
    rng = np.random.default_rng(3)
    for month in (1, 2, 10):
        np.save(files / "months" / f"m{month}.npy", rng.normal(size=(30, 2)))
    np.save(files / "m[1].npy", rng.normal(size=(30, 2)))
    assert parsed("compare 'months/m*.npy'")["names"] == ["m1", "m2", "m10"]
    found = parsed("compare 'm[1].npy' --against 'months/m?.npy'")
    assert (found["names"], found["reference_names"]) == (["m[1]"], ["m1", "m2"])
    message = fails("compare 'months/*.csv'")
    assert "No file matches 'months/*.csv'. Give 'months' to read all" in message
    assert "No file matches 'mnths/*.npy'" in fails("info 'mnths/*.npy'")
    assert "'months/m1.npy' is given twice" in fails("compare months/m1.npy 'months/*.npy'")
    assert "'months/m1.npy' is given twice" in fails("compare months months/m1.npy")


def tags_in(path):
    text = path.read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, flags=re.DOTALL)[1])
    return {tag["name"]: tag["values"] for tag in data["tags"]}


def test_report_has_title_and_tags(files):
    given = "--group-by day --report page.html --title 'Three days'"
    done(f"compare table.csv {given} --tag hour=0,24,48 --tag site=A,,B")
    page = (files / "page.html").read_text(encoding="utf-8")
    assert "<bdi>Three days</bdi>" in page
    assert tags_in(files / "page.html") == {"hour": [0, 24, 48], "site": ["A", None, "B"]}
    (files / "known.csv").write_text("name;hour\n1;24\n0;0\n2;48.5\n")
    done(f"compare table.csv {given} --tags known.csv --tag site=A,B,B")
    assert tags_in(files / "page.html") == {"hour": [0, 24, 48.5], "site": ["A", "B", "B"]}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("--title Days", "--title needs a report: add --report report.html."),
        ("--tag hour=1,2,3", "--tag needs a report"),
        ("--report p.html --tag hour=1,2", "'hour=1,2' has 2 values for 3 datasets"),
        ("--report p.html --tag hour", "must be KEY=VALUE"),
        ("--report p.html --tags no.csv", "--tags 'no.csv' cannot be read as a table: No such"),
        ("--report p.html --tags twice.csv", "more than one row for '1'"),
        ("--report p.html --tags bare.csv", "there is no column of tags"),
        ("--report p.html --tags uneven.csv", "Expected 2 fields in line 3, saw 3"),
        ("--report p.html --tags cells.npy", "--tags 'cells.npy' cannot be read as a table"),
        ("--report p.html --tags typo.csv", "names 'O', which is not in the comparison"),
    ],
)
def test_invalid_tags_are_errors_before_anything_is_computed(files, given, expected):
    (files / "twice.csv").write_text("name,hour\n1,2\n1,3\n")
    (files / "bare.csv").write_text("name\n1\n2\n")
    (files / "uneven.csv").write_text("name,hour\n1,2\n2,3,4\n")
    (files / "typo.csv").write_text("name,hour\nO,0\n1,24\n2,48\n")
    assert expected in fails(f"compare table.csv --group-by day {given}")
    assert not (files / "cache").exists(), "nothing was computed"


@pytest.mark.filterwarnings("default")
def test_report_names_options_as_flags(files):
    np.save(files / "many.npy", np.random.default_rng(1).normal(size=(400, 5)))
    done("compare cells.npy many.npy --report page.html")
    page = (files / "page.html").read_text(encoding="utf-8")
    assert "<code>--subsample common</code>" in page
    assert "subsample=" not in page


def test_names_are_printed_unchanged(files):
    """Rich would print `:x:` as an emoji and `[b]` as a style."""
    np.savez(files / "a [b].npz", x=np.load("model.npy"), side=np.repeat(["l", "r"], 35))
    np.savez(files / "c.npz", x=np.load("model.npy") ** 2, side=np.repeat(["l", "r"], 35))
    for command in ("info", "compare"):
        printed = done(f"{command} 'a [b].npz:x' c.npz --group-by side")
        assert "a [b]:x:l " in printed


def test_second_run_reports_signatures_from_the_cache():
    first = run("compare cells.npy model.npy --json")
    assert "cache" not in first.stderr
    again = run("compare cells.npy model.npy new.npy -K 70 --json")
    assert again.stderr == "3 datasets: 2 signatures from the cache.\n"
    without = run("compare cells.npy model.npy --json --no-cache")
    assert (without.stdout, without.stderr) == (first.stdout, "")
    elsewhere = run("compare cells.npy model.npy --json --cache elsewhere")
    assert (elsewhere.stdout, elsewhere.stderr) == (first.stdout, "")


def test_default_cache_that_cannot_be_created_is_a_warning(files, monkeypatch):
    monkeypatch.delenv("UNALIGNED_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(files / "cells.npy"))
    found = run("compare cells.npy model.npy")
    assert found.exit_code == 0
    assert found.stderr.startswith("Warning: Signatures are not cached. --cache ")


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "Ctrl-C"])
def test_interrupted_run_continues(files, sent):
    rng = np.random.default_rng(1)
    names = [f"cloud{i}.npy" for i in range(8)]
    for name in names:
        np.save(name, rng.normal(size=(900, 30)))
    pipes = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = start(["compare", *names, "--jobs", "1"], **pipes)
    kept = files / "cache"
    while process.poll() is None and len(list(kept.glob("[!.]*.npz"))) < 2:
        time.sleep(0.01)
    process.send_signal(sent)
    out, err = process.communicate()
    assert out == ""
    if sent == signal.SIGINT:
        assert process.returncode == 130
        assert "run the same command to continue" in err
        assert "Traceback" not in err
    n_kept = len(list(kept.glob("[!.]*.npz")))
    assert 2 <= n_kept < 8
    again = run(f"compare {' '.join(names)} --json")
    assert again.stderr == f"8 datasets: {n_kept} signatures from the cache.\n"
    fresh = run(f"compare {' '.join(names)} --json --no-cache")
    found, expected = (
        json.loads(text.stdout)["results"]["les"]["distances"] for text in (again, fresh)
    )
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_closed_pipe_prints_no_traceback():
    command = f"{sys.executable} -m unaligned distances | head -n 1"
    found = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert "Distances" in found.stdout
    assert found.stderr == ""


def test_ascii_only_pipe():
    command = [sys.executable, "-m", "unaligned", "info", "cells.npy"]
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    found = subprocess.run(command, capture_output=True, env=ascii_only, check=True)
    assert b"cells " in found.stdout
    assert found.stderr == b""


def test_no_colour_in_pipes(files):
    command = [sys.executable, "-m", "unaligned", "compare", "cells.npy", "model.npy"]
    plain = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    found = subprocess.run(command, capture_output=True, text=True, env=plain, check=True)
    assert "\x1b" not in found.stdout + found.stderr


def test_info_says_shape_type_missing_values_and_duplicates(files):
    values = np.load("cells.npy")
    values[3, 1] = np.nan
    values[10] = values[11]
    np.save("flawed.npy", values.astype(np.float32))
    shown = parsed("info flawed.npy")[0]
    assert (shown["name"], shown["n_samples"], shown["n_features"]) == ("flawed", 90, 5)
    assert (shown["dtype"], shown["rows_with_nan"], shown["duplicate_rows"]) == ("float32", 1, 1)
    assert shown["problem"] is None
    assert 1 <= shown["n_eigenvalues"] <= 89
    assert 0 < shown["gamma"] < 1


def test_info_estimates_time_and_memory():
    shown = parsed("info cells.npy")[0]
    estimate = ua.estimate(ua.load("cells.npy"))
    assert shown["solver"] == estimate.solver
    assert shown["memory_bytes"] == estimate.memory_bytes
    assert shown["seconds"] > 0


def test_info_of_degenerate_data_names_the_problem():
    np.save("flat.npy", np.ones((30, 2)))
    found = run("info flat.npy cells.npy --json")
    assert found.exit_code == 2
    shown = json.loads(found.stdout)
    assert "flat" in shown[0]["problem"]
    assert shown[0]["duplicate_rows"] == 29
    assert shown[1]["problem"] is None
    printed = run("info flat.npy cells.npy").stdout
    assert "flat: " in printed
    assert "cells" in printed


def test_info_shows_other_files_if_one_cannot_be_read(files):
    (files / "header.csv").write_text("a,b\n")
    found = run("info header.csv cells.npy nothing.npy model.npy --json")
    assert found.exit_code == 2
    assert [shown["name"] for shown in json.loads(found.stdout)] == ["cells", "model"]
    assert [line[:7] for line in found.stderr.splitlines()] == ["Error: "] * 2
    assert "'header.csv': The file has a header and no rows. If" in found.stderr
    assert "--no-header" in found.stderr
    assert "'nothing.npy'" in found.stderr
    fails("info header.csv")


def test_info_says_that_k_and_gamma_are_suggestions():
    for command in ("info cells.npy", "info cells.npy model.npy"):
        printed = " ".join(done(command).split())
        assert "suggested K suggested γ" in printed
        assert "K and γ are suggestions, read off each spectrum. The defaults are" in printed


def test_info_on_a_narrow_terminal_prints_a_line_per_cell(monkeypatch):
    monkeypatch.setattr("unaligned.cli.printing.stdout", lambda: Console(width=70))
    printed = " ".join(done("info cells.npy model.npy").split())
    assert "dataset: cells rows: 90 columns: 5 type: float64 rows with NaN: 0" in printed
    assert "suggested K: " in printed


def test_info_of_many_rows_uses_a_sample(files):
    rng = np.random.default_rng(0)
    np.save("long.npy", rng.normal(size=(2500, 2)))
    shown = parsed("info long.npy -K 20")[0]
    assert shown["n_samples"] == 2500
    assert shown["problem"] is None


def test_info_of_a_subsample_has_its_cost(files):
    rng = np.random.default_rng(0)
    np.save("long.npy", rng.normal(size=(2500, 2)))
    shown = parsed("info long.npy cells.npy --subsample 70")
    assert [item["n_samples"] for item in shown] == [2500, 90]
    assert [item["solver"] for item in shown] == ["exact", "exact"]
    assert "--subsample 91 is more than dataset 'cells' has" in fails(
        "info cells.npy --subsample 91"
    )
    assert "--subsample 'few' must be a number" in fails("info cells.npy --subsample few")


def test_info_names_what_is_cheaper(files, monkeypatch):
    found = replace(ua.estimate(ua.load("cells.npy")), cheaper=("subsample=6000: about 6 s",))
    monkeypatch.setattr(ua, "estimate", lambda *_, **__: found)
    assert "cells: --subsample 6000: about 6 s" in done("info cells.npy")
    assert parsed("info cells.npy")[0]["cheaper"] == ["subsample=6000: about 6 s"]


class TestAnnData:
    @pytest.fixture(autouse=True)
    def _with_h5py(self):
        pytest.importorskip("h5py")

    @pytest.mark.parametrize(
        ("flags", "options"),
        [
            ("", {}),
            ("--use-rep X_pca", {"use_rep": "X_pca"}),
            ("--layer scaled", {"layer": "scaled"}),
            ("--var-names CD19,CD4", {"var_names": ["CD19", "CD4"]}),
            ("--var-names genes.txt", {"var_names": ["CD19", "CD4"]}),
            ("--var-names marker", {"var_names": "marker"}),
        ],
    )
    def test_shell_and_python_have_the_same_words(self, flags, options, files):
        (files / "genes.txt").write_text("CD19\n\nCD4\n")
        found = parsed(f"compare cells.h5ad --group-by day --distance edistance {flags}")
        expected = ua.compare("cells.h5ad", group_by="day", distance="edistance", **options)
        assert found["names"] == ["0", "1", "2"]
        assert np.array_equal(found["results"]["edistance"]["distances"], expected.distances)

    def test_wrong_names_are_answered_with_those_there_are(self, files):
        message = fails("compare cells.h5ad --group-by day --use-rep X_umap")
        assert "--use-rep 'X_umap' is not in obsm. There: 'X_pca'" in message
        (files / "genes.txt").write_text("\n \n")
        message = fails("compare cells.h5ad --group-by day --var-names genes.txt")
        assert "contains only blank lines" in message
        message = fails("compare cells.h5ad --group-by day --var-names CD4,CD44")
        assert "1 of 2 names are not columns of X: 'CD44'" in message
        message = fails("compare table.csv --group-by day --use-rep X_pca")
        assert "read as CSV" in message
