"""Malformed and hostile files: exit code 2, one message, no output."""

import json
import os

import numpy as np
import pytest
from program import run_arguments

from malformed import CASES, SEVERAL, place

# Rows with NaN: an error of `compare`, counted by `info`.
COUNTED = ("missing value.csv", "nan.parquet", "nan.obj")


def faults(found, name, command):
    """Return what is wrong with the error of a malformed file; `info` shows the valid one."""
    message = found.stderr
    wrong = []
    if found.exit_code != 2:
        wrong.append(f"exit code {found.exit_code} ({found.exception!r})")
    shown = [look["name"] for look in json.loads(found.stdout)] if found.stdout else []
    if shown != (["sound"] if command == "info" else []):
        wrong.append(f"wrong output: {found.stdout!r}")
    if message.count("\n") != 1 or not message.startswith("Error: "):
        wrong.append(f"not one message: {message!r}")
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


@pytest.mark.timeout(120)
@pytest.mark.parametrize("command", ["info", "compare"])
def test_every_malformed_file_is_an_error(command, tmp_path, monkeypatch):
    monkeypatch.setenv("UNALIGNED_CACHE", os.fspath(tmp_path / "cache"))
    sound, out = os.fspath(tmp_path / "sound.npy"), os.fspath(tmp_path / "distances.csv")
    np.save(sound, np.random.default_rng(0).normal(size=(30, 2)))
    written = ["--out", out] if command == "compare" else ["--json"]
    wrong = {}
    for name, folder, path in placed(tmp_path):
        if command == "info" and name in COUNTED:
            continue
        wrong[name] = faults(run_arguments([command, sound, path, *written]), name, command)
        if (folder / "witness").exists():
            wrong[name].append("code in the file was run")
    assert len(wrong) >= 100
    told = [f"{name}: {'; '.join(found)}" for name, found in wrong.items() if found]
    assert not told, "\n".join(told)
    assert not {"cache", "distances.csv"} & set(os.listdir(tmp_path)), "something was written"
