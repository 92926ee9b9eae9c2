"""`describe`, `nearest`, `list`, `remove`, `export`: a store from the shell."""

import json
import os
import re
import signal
import sqlite3
import time

import numpy as np
import program
import pytest
from program import done, fails, parsed, run

import unaligned as ua

pytestmark = pytest.mark.usefixtures("files")


@pytest.fixture
def store(files):
    done("describe cells.npy model.npy --store refs.db -K 40 --tag source=lab --jobs 1")
    done("describe digits.csv --store refs.db --tag source=scans --tag year=2024")
    return ua.Store(files / "refs.db")


def test_describe_equals_python(store):
    assert store.names() == ["cells", "model", "digits"]
    expected = ua.signature(np.load("cells.npy"), n_eigenvalues=40)
    assert np.array_equal(store.get("cells").values, expected.values)
    assert store.records()[2].tags == {"source": "scans", "year": "2024"}


def test_describe_prints_a_line_for_each_signature(files):
    printed = done("describe cells.npy model.npy --store new.db --jobs 1")
    assert [line.split(":")[0] for line in printed.splitlines()] == ["cells", "model"]
    assert "90 × 5, K=70, error ≤" in printed
    lines = done("describe digits.csv --store new.db --json").splitlines()
    assert json.loads(lines[0])["name"] == "digits"


def test_stored_signatures_are_tagged_but_not_computed_again(store):
    found = run("describe cells.npy new.npy --store refs.db --tag source=both")
    assert found.stderr == "Already in the store: 1 of 2 datasets.\n"
    assert found.stdout.startswith("new: ")
    assert store.names({"source": "both"}) == ["cells", "new"]
    everything = run("describe cells.npy new.npy --store refs.db")
    assert (everything.exit_code, everything.stdout) == (0, "")


def test_later_runs_follow_the_recipe_of_the_store(store):
    done("describe new.npy --store refs.db")
    assert store.get("new").n_eigenvalues == 40
    steps = "--preprocess standardize"
    done(f"describe cells.npy --store prepared.db -K 30 {steps}")
    done("describe new.npy --store prepared.db")
    prepared = ua.Store("prepared.db")
    assert prepared.get("new").recipe.preprocess == ("standardize",)


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("bad", ["--aggregate median", "--by source"])
def test_nearest_checks_options_before_anything_is_computed(monkeypatch, bad):
    def computed(*_, **__):
        raise AssertionError("a signature was computed")

    monkeypatch.setattr("unaligned.store.search.signature", computed)
    assert f"{bad.split()[0]} '" in fails(f"nearest new.npy --store refs.db {bad}")


def test_other_data_of_the_same_name_needs_replace(store):
    np.save("cells.npy", np.load("cells.npy")[:80])
    assert "has other data under the name 'cells'" in fails("describe cells.npy --store refs.db")
    done("describe cells.npy --store refs.db --replace")
    assert store.get("cells").n_samples == 80


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (
            "describe new.npy --store refs.db --gamma 1e-5",
            "--gamma 1e-05 differs from",
        ),
        ("describe new.npy --store refs.db -K 20", "--n-eigenvalues 20 differs from"),
        (
            "describe new.npy --store refs.db --preprocess log1p",
            "--preprocess ('log1p',) differs from",
        ),
        ("describe new.npy --store fresh.db --gamma auto", "`unaligned info` suggests a number"),
        ("describe new.npy --store fresh.db --gamma cutoff", "--gamma 'cutoff' chooses one"),
        ("describe new.npy --store fresh.db -K 900", "--n-eigenvalues 900 needs at least 900"),
        ("describe new.npy --store refs.db --tag lab", "--tag 'lab' must be KEY=VALUE"),
        ("describe new.npy --store cells.npy", "not a store of signatures"),
        ("describe new.npy --store no/refs.db", "the folder 'no' does not exist"),
        ("describe new.npy --store folder", "it is a folder"),
        ("describe few.npy --store refs.db", "'refs.db' have K=40, which needs 40 rows"),
        (
            "nearest few.npy --store refs.db",
            "another store with a smaller K (`unaligned describe -K 30`)",
        ),
        ("nearest new.npy --store none.db", "There is no store 'none.db'"),
        ("nearest new.npy --store refs.db --tag source=moon", "has the tags {'source': 'moon'}"),
        ("nearest new.npy --store refs.db --by source", "needs --aggregate 'mean'"),
        ("nearest new.npy --store refs.db --aggregate median", "--aggregate 'median'"),
        ("nearest new.npy --store model.npy", "not a store of signatures"),
        ("list --store none.db", "There is no store"),
        ("remove cels --store refs.db", "Did you mean 'cells'?"),
        ("export --store refs.db --out all.txt", "--out 'all.txt' must end in .csv, .json, .npz"),
        ("export --store refs.db --out no/all.csv", "the folder 'no' does not exist"),
        ("describe new.npy --store refs.db --subsample 99", "--subsample 99 is more than dataset"),
        ("describe new.npy --store refs.db --subsample 30", "have K=40, which needs 40"),
        (
            "nearest new.npy --store refs.db --subsample many",
            "--subsample 'many' must be a number",
        ),
        (
            "nearest few.npy --store refs.db --subsample common",
            "another store with a smaller K",
        ),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(store, files, command, expected):
    (files / "folder").mkdir()
    np.save("few.npy", np.load("cells.npy")[:30])
    before = sorted(path.name for path in files.iterdir())
    message = fails(command)
    assert expected in message
    assert message.count("\n") == 1
    assert sorted(path.name for path in files.iterdir()) == before
    assert len(store) == 3


def test_nearest_equals_python(store):
    found = parsed("nearest new.npy --store refs.db -k 2")["new"]
    expected = store.nearest(np.load("new.npy"), k=2)
    assert [row["name"] for row in found] == [near.name for near in expected]
    assert [row["distance"] for row in found] == [near.distance for near in expected]
    printed = done("nearest new.npy --store refs.db")
    assert printed.startswith("Nearest to new\n")
    assert "source=scans, year=2024" in printed
    only = parsed("nearest new.npy --store refs.db --tag source=scans")["new"]
    assert [row["name"] for row in only] == ["digits"]


def test_nearest_shows_the_rows_of_each(store):
    rows = {
        row["name"]: row["n_samples"] for row in parsed("nearest new.npy --store refs.db")["new"]
    }
    assert rows == {"cells": 90, "model": 70, "digits": 75}
    printed = done("nearest new.npy --store refs.db")
    assert re.search(r"reference +tags +rows +distance", printed)
    assert re.search(r"cells +source=lab +90 ", printed)


@pytest.mark.filterwarnings("default")
def test_nearest_warns_of_different_sizes_and_can_subsample(store, files):
    np.save(files / "many.npy", np.random.default_rng(5).normal(size=(500, 4)))
    found = run("nearest many.npy --store refs.db")
    assert (found.exit_code, found.stderr.count("Warning: Sample sizes differ")) == (0, 1)
    assert "'many' has 500" in found.stderr
    assert "--subsample" in found.stderr
    drawn = run("nearest many.npy --store refs.db --subsample common --json")
    assert drawn.stderr == ""
    values = {row["name"]: row["distance"] for row in json.loads(drawn.stdout)["many"]}
    expected = ua.load("many.npy")
    expected = ua.signature(
        expected.subsample(70, expected.generator(0)), **{**store.options, "rng": 0}
    )
    assert values["model"] == pytest.approx(ua.distance(expected, store.get("model")), rel=1e-12)


def test_describe_subsample_is_recorded_in_the_store(store):
    done("describe cells.npy new.npy --store drawn.db --subsample 50 --jobs 1")
    done("describe model.npy --store drawn.db -K 50")
    drawn = ua.Store("drawn.db")
    sizes = [(record.n_samples, record.rows_drawn_from) for record in drawn.records()]
    assert sizes == [(50, 90), (50, 80), (70, None)]
    assert re.search(r"cells .* 50 of 90 ", done("list --store drawn.db"))
    assert [row["rows_drawn_from"] for row in parsed("list --store drawn.db")] == [90, 80, None]
    again = run("describe cells.npy --store drawn.db --subsample 50")
    assert again.stderr == "Already in the store: 1 of 1 dataset.\n"
    assert parsed("nearest cells.npy --store drawn.db --subsample 50")["cells"][0]["distance"] == 0
    compared = parsed("compare cells.npy new.npy --subsample 50")["results"]["les"]["distances"]
    assert ua.distance(drawn["cells"], drawn["new"]) == pytest.approx(compared[0][1], rel=1e-12)
    done("describe cells.npy new.npy --store common.db --subsample common")
    assert [record.n_samples for record in ua.Store("common.db").records()] == [80, 80]


@pytest.mark.parametrize("n_rows", [60, 72, 500])
def test_nearest_at_one_size_reads_larger_references_again(store, files, n_rows):
    """Of 90, 70 and 75 rows, as many are drawn as the smallest or the new data has."""
    np.save(files / "query.npy", np.random.default_rng(5).normal(size=(n_rows, 4)))
    found = parsed("nearest query.npy --store refs.db --subsample common")["query"]
    size = min(70, n_rows)
    assert {row["n_samples"] for row in found} == {size}
    paths = {name: next(files.glob(f"{name}.*y")) for name in ("cells", "model", "query")}
    options = {"n_eigenvalues": 40, "rng": 0}
    drawn = {}
    for name, path in paths.items():
        dataset = ua.load(path)
        rows = (
            dataset.subsample(size, dataset.generator(0)) if dataset.n_samples > size else dataset
        )
        drawn[name] = ua.signature(rows, **options)
    for row in found:
        if row["name"] in drawn:
            expected = ua.distance(drawn["query"], drawn[row["name"]])
            assert row["distance"] == pytest.approx(expected, rel=1e-9)
    mean = parsed("nearest query.npy --store refs.db --subsample common --aggregate mean")["query"]
    assert mean[0]["distance"] == pytest.approx(np.mean([row["distance"] for row in found]))


@pytest.mark.filterwarnings("default")
def test_nearest_at_one_size_names_references_whose_file_is_gone(store, files):
    (files / "cells.npy").rename(files / "moved.npy")
    found = run("nearest model.npy --store refs.db --subsample common --json")
    assert found.exit_code == 0
    assert "these references keep all their rows: 'cells' (90)" in found.stderr
    rows = {row["name"]: row["n_samples"] for row in json.loads(found.stdout)["model"]}
    assert rows == {"cells": 90, "model": 70, "digits": 70}
    np.save("cells.npy", np.ones((90, 5)) * np.arange(90)[:, None])
    found = run("nearest model.npy --store refs.db --subsample common --json")
    assert "has other data now. Describe it again" in found.stderr


def test_nearest_at_one_size_finds_groups_and_drawn_rows_again(files):
    done("describe table.csv --group-by day --store days.db -K 20 --preprocess l2")
    done("describe cells.npy --store days.db --subsample 60")
    found = parsed("nearest table.csv --group-by day --store days.db --subsample common")
    assert {row["n_samples"] for rows in found.values() for row in rows} == {50}
    assert all(rows[0]["distance"] == 0 for rows in found.values())


def test_nearest_leaves_out_what_is_farther_than_max_distance(store):
    everything = parsed("nearest new.npy --store refs.db")["new"]
    limit = everything[1]["distance"]
    near = parsed(f"nearest new.npy --store refs.db --max-distance {limit!r}")["new"]
    assert near == everything[:2]
    none = run("nearest new.npy --store refs.db --max-distance 0")
    assert "No reference is within --max-distance 0 of new" in none.stderr
    groups = (
        f"nearest new.npy --store refs.db --aggregate max --by source --max-distance {limit!r}"
    )
    assert all(row["distance"] <= limit for row in parsed(groups)["new"])
    assert "--max-distance -1" in fails("nearest new.npy --store refs.db --max-distance -1")
    assert "--max-distance nan" in fails("nearest new.npy --store refs.db --max-distance nan")


def sensors(path, rng, slip=None):
    lines = [
        f"2024-01-{i % 28 + 1:02},A," + ",".join(map(str, row))
        for i, row in enumerate(rng.normal(size=(60, 4)).round(4))
    ]
    if slip:
        lines[17] = f"2024-01-18,A,{slip},1,2,3"
    path.write_text("\n".join(["when,site,temp,hum,co,o3", *lines]))


@pytest.mark.filterwarnings("default")
def test_dropped_columns_are_always_reported(files):
    rng = np.random.default_rng(0)
    for name in ("first", "second", "third", "new"):
        sensors(files / f"{name}.csv", rng)
    sensors(files / "slip.csv", rng, slip="ERROR")
    describe = run("describe first.csv second.csv third.csv --store s.db -K 20 --drop-non-numeric")
    assert describe.stderr == "Warning: Dropped columns without numbers: 'when', 'site'.\n"
    for options in ("", " --drop-non-numeric"):
        message = fails(f"nearest slip.csv --store s.db{options}")
        assert (
            "'slip.csv': Column 'temp' has numbers in 59 of 60 cells, and 'ERROR' in row"
            in message
        )
        assert "pass --nan-policy 'omit'; or choose --columns." in message
    lost = run("nearest new.csv --store s.db --columns hum,co,o3")
    assert "'new' has 3 columns, and all 3 references have 4." in lost.stderr
    assert run("nearest new.csv --store s.db --columns temp,hum,co,o3").stderr == ""


def test_nearest_groups(store):
    groups = parsed("nearest new.npy --store refs.db --aggregate max --by source")["new"]
    assert {row["name"]: row["n_references"] for row in groups} == {"lab": 2, "scans": 1}
    assert "max distance" in done("nearest new.npy --store refs.db --aggregate max")


@pytest.mark.parametrize("how", ["mean", "min", "max"])
def test_aggregate_is_that_of_a_comparison(files, how):
    rng = np.random.default_rng(0)
    tasks = {f"task{i}": rng.normal(size=(60, 2 + i)) for i in range(3)}
    tasks["fresh"] = rng.normal(size=(60, 9))
    for name, points in tasks.items():
        np.save(f"{name}.npy", points)
    done("describe task0.npy task1.npy task2.npy --store tasks.db -K 30 --gamma 1e-6")
    (row,) = parsed(f"nearest fresh.npy --store tasks.db --aggregate {how}")["fresh"]
    new = {"fresh": tasks.pop("fresh")}
    found = ua.compare(new, tasks, n_eigenvalues=30, gamma=1e-6).aggregate(how)
    assert row["distance"] == pytest.approx(found["fresh"], rel=1e-9)
    assert row["n_references"] == 3


def test_list_remove_and_export(store, files):
    listed = parsed("list --store refs.db --tag source=lab")
    assert [row["name"] for row in listed] == ["cells", "model"]
    assert "refs.db: 3 signatures" in done("list --store refs.db")
    assert done("remove cells digits cells --store refs.db") == ""
    assert store.names() == ["model"]
    assert run("export --store refs.db --out all.csv").stderr == "Written: all.csv, 1 signature.\n"
    assert (files / "all.csv").read_text().startswith("name,n_samples")


def test_ctrl_c_message_says_that_stored_signatures_are_kept(files):
    rng = np.random.default_rng(0)
    for i in range(30):
        np.save(f"cloud{i}.npy", rng.normal(size=(600, 20)))
    names = [f"cloud{i}.npy" for i in range(30)]
    process = start("describe", *names, "--store", "refs.db", out=files / "out")
    while process.poll() is None and not reported(files / "out"):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    message = (files / "out.err").read_text()
    assert "Stored signatures are kept: run the same command to continue." in message
    assert "Traceback" not in message
    assert set(reported(files / "out")) <= set(ua.Store("refs.db").names())


def start(*arguments, out):
    with open(out, "w") as stdout, open(f"{out}.err", "w") as stderr:
        return program.start(arguments, stdout=stdout, stderr=stderr)


def reported(path):
    """Return the names that a writer has reported as stored, from complete lines."""
    lines = path.read_text().split("\n")[:-1]
    return [line.partition(":")[0] for line in lines]


def killed_and_completed(folder, n_files, rng):
    """Kill two writers of one store at a random moment, and check what they leave."""
    names = [f"cloud{i}.npy" for i in range(n_files)]
    path = folder / f"refs{rng.integers(10**9)}.db"
    sets = names[: 2 * n_files // 3], names[n_files // 3 :]
    outs = [folder / "first", folder / "second"]
    writers = [
        start("describe", *part, "--store", str(path), "--jobs", "1", out=out)
        for part, out in zip(sets, outs, strict=True)
    ]
    deadline = time.monotonic() + 60
    while not any(map(reported, outs)) and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(rng.uniform(0, 0.3))
    for writer in writers:
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
    stored = {name for out in outs for name in reported(out)}
    store = ua.Store(path)
    assert stored <= set(store.names())
    for name in store:
        assert store.get(name).n_eigenvalues == 20
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()
    done(f"describe {' '.join(names)} --store {path}")
    assert sorted(store.names()) == sorted(name[:-4] for name in names)
    return len(stored)


@pytest.mark.parametrize(
    ("n_rounds", "n_files"),
    [(2, 20), pytest.param(10, 50, marks=[pytest.mark.slow, pytest.mark.timeout(900)])],
)
def test_kill_9_loses_no_reported_signature(files, n_rounds, n_files):
    rng = np.random.default_rng(0)
    for i in range(n_files):
        np.save(f"cloud{i}.npy", rng.normal(size=(20 + i % 3, 4)))
    counts = [killed_and_completed(files, n_files, rng) for _ in range(n_rounds)]
    assert any(0 < count < n_files for count in counts), f"killed too late or too early: {counts}"
