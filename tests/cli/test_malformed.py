"""Malformed and hostile files: exit code 2, one message, no output."""

import json
import os

import numpy as np
import pytest
from program import run_arguments

from malformed import CASES, SEVERAL, place

# Rows with NaN: an error of `compare`, counted by `info`.
COUNTED = ("missing value.csv", "nan.parquet", "nan.obj")


def faults(found, name):
    """Return what is wrong with the error of a malformed file."""
    wrong = []
    if found.exit_code != 2:
        wrong.append(f"exit code {found.exit_code} ({found.exception!r})")
    if found.stdout:
        wrong.append(f"output: {found.stdout!r}")
    if found.stderr.count("\n") != 1:
        wrong.append(f"not one message: {found.stderr!r}")
    return wrong + faults_of_message(found.stderr, name)


def faults_of_message(message, name):
    wrong = []
    if not message.startswith("Error: "):
        wrong.append(f"no error: {message!r}")
    if repr(name.partition(":")[0])[1:-1] not in message:
        wrong.append(f"the file is not named: {message!r}")
    return wrong


def placed(tmp_path):
    """Yield the name, folder and path of every malformed file that this machine can make."""
    for i, name in enumerate(name for name in CASES if name not in SEVERAL):
        folder = tmp_path / str(i)
        folder.mkdir()
        try:
            yield name, folder, place(name, folder)
        except pytest.skip.Exception:  # of one file: the others are still to be tried
            continue


@pytest.fixture
def valid(tmp_path, monkeypatch):
    monkeypatch.setenv("UNALIGNED_CACHE", os.fspath(tmp_path / "cache"))
    np.save(tmp_path / "valid.npy", np.random.default_rng(0).normal(size=(30, 2)))
    return os.fspath(tmp_path / "valid.npy")


def check(wrong, folders):
    """Fail with all that is wrong, by file."""
    assert len(wrong) >= 100
    for name, folder in folders.items():
        if (folder / "witness").exists():
            wrong[name].append("code in the file was run")
    lines = [f"{name}: {'; '.join(found)}" for name, found in wrong.items() if found]
    assert not lines, "\n".join(lines)


@pytest.mark.timeout(120)
def test_compare_rejects_every_malformed_file(valid, tmp_path):
    out = os.fspath(tmp_path / "distances.csv")
    wrong, folders = {}, {}
    for name, folder, path in placed(tmp_path):
        folders[name] = folder
        wrong[name] = faults(run_arguments(["compare", valid, path, "--out", out]), name)
    check(wrong, folders)
    assert not {"cache", "distances.csv"} & set(os.listdir(tmp_path)), "something was written"


@pytest.mark.timeout(120)
def test_info_reports_every_malformed_file_and_shows_the_others(valid, tmp_path):
    cases = {name: (f, path) for name, f, path in placed(tmp_path) if name not in COUNTED}
    found = run_arguments(["info", valid, *(path for _, path in cases.values()), "--json"])
    assert found.exit_code == 2
    assert [shown["name"] for shown in json.loads(found.stdout)] == ["valid"]
    messages = zip(found.stderr.splitlines(), cases, strict=True)
    wrong = {name: faults_of_message(message, name) for message, name in messages}
    check(wrong, {name: folder for name, (folder, _) in cases.items()})
