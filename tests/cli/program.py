"""Run the program in this process or another, and write files for it."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from functools import cache

import numpy as np
from typer import testing
from typer.main import get_command

from unaligned import cli

# Building the commands takes longer than most of them.
testing._get_command = cache(get_command)


def write_files(folder):
    """Write small files with the names in help pages and README."""
    rng = np.random.default_rng(0)
    np.save(folder / "cells.npy", rng.normal(size=(90, 5)))
    np.save(folder / "model.npy", rng.normal(size=(70, 3)))
    np.save(folder / "new.npy", rng.normal(size=(80, 4)))
    np.save(folder / "before.npy", rng.normal(size=(160, 3)))
    np.save(folder / "after.npy", rng.normal(size=(200, 6)))
    first, second = rng.normal(size=(60, 3)), rng.normal(size=(66, 7))
    np.savez(folder / "arrays.npz", first=first, second=second)
    digits = rng.uniform(size=(75, 6)).round(4)
    np.savetxt(folder / "digits.csv", digits, delimiter=",", header="a,b,c,d,e,f", comments="")
    days = np.repeat([0, 1, 2], 50)
    values = rng.normal(size=(150, 3)) * (1 + days)[:, None]
    table = np.column_stack([days, values.round(5)])
    np.savetxt(folder / "table.csv", table, delimiter=",", header="day,x,y,z", comments="")
    np.savetxt(folder / "scans.csv", table, delimiter=",", header="digit,0,1,2", comments="")
    _write_h5ad(folder / "cells.h5ad", days, values)
    _write_timecourse(folder, rng)
    for number in (1, 2, 3):
        np.save(folder / f"task{number}.npy", rng.normal(size=(80, 4)))
    halves = np.column_stack([np.arange(300) % 2, rng.normal(size=(300, 3)).round(5)])
    np.savetxt(folder / "halves.csv", halves, delimiter=",", header="half,x,y,z", comments="")
    _write_donors(folder, rng)
    (folder / "mymodule.py").write_text(
        "from unaligned.metrics.les import LES\n\n\nclass MyDistance(LES):\n    name = 'mine'\n"
    )
    for name, n in (("reference", 450), ("new", 120)):
        rows = rng.normal(size=(n, 3)).round(5)
        np.savetxt(folder / f"{name}.csv", rows, delimiter=",", header="x,y,z", comments="")


def _write_donors(folder, rng):
    """Write cells of four donors under each of two conditions: as one table, and as two."""
    donors = {"control": "ABCD", "treated": "EFGH"}
    lines = {name: [] for name in donors}
    for condition, names in donors.items():
        for donor in names:
            rows = rng.normal(size=(40, 3)) * [1, 1, 1 if condition == "control" else 0.02]
            lines[condition] += [f"{donor},{x:.5f},{y:.5f},{z:.5f}" for x, y, z in rows]
        text = "\n".join(["donor,x,y,z", *lines[condition]])
        (folder / f"{condition}.csv").write_text(text + "\n")
    both = [f"{name},{line}" for name, own in lines.items() for line in own]
    (folder / "donors.csv").write_text("\n".join(["condition,donor,x,y,z", *both]) + "\n")


def _write_timecourse(folder, rng):
    """Write counts of eight donors over four days as AnnData stores them, and names of genes."""
    (folder / "genes.txt").write_text("CD4\nCD8\n")
    try:
        import h5py
    except ImportError:
        return
    counts = rng.poisson(5.0, size=(480, 3)).astype(float)
    rows = np.arange(480)
    with h5py.File(folder / "timecourse.h5ad", "w") as file:
        file["X"] = file["layers/counts"] = counts
        file["obsm/X_pca"] = rng.normal(size=(480, 2))
        file["var/_index"] = ["CD4", "CD8", "CD19"]
        file["obs/day"] = file["obs/sample"] = rows // 120
        file["obs/condition"], file["obs/donor"] = rows % 2, [f"donor {row % 8}" for row in rows]


def _write_h5ad(path, days, values):
    """Write cells by day as AnnData stores them, without importing it, which takes a second."""
    try:
        import h5py
    except ImportError:
        return
    with h5py.File(path, "w") as file:
        file["X"], file["layers/scaled"], file["obsm/X_pca"] = values, 2 * values, values[:, :2]
        file["obs/day"], file["var/_index"] = days, ["CD4", "CD8", "CD19"]
        file["var/marker"] = [True, False, True]


def run(command):
    """Run `unaligned COMMAND`, a line as one types it."""
    return run_arguments(shlex.split(command))


def run_arguments(arguments):
    """Run the program with these arguments, taken as they are."""
    return testing.CliRunner().invoke(cli.app, arguments)


def start(arguments, **pipes):
    """Start the program as a process that handles Ctrl-C, even if the tests ignore it."""
    return subprocess.Popen(
        [sys.executable, "-m", "unaligned", *arguments],
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **pipes,
    )


def done(command):
    """Run a command that must succeed, and return what it printed."""
    found = run(command)
    assert found.exit_code == 0, found.stderr or found.exception
    return found.stdout


def fails(command, code=2):
    """Run a command that must fail without output, and return its one message."""
    found = run(command)
    assert found.exit_code == code, (found.exit_code, found.stdout, found.stderr)
    assert found.stdout == ""
    assert found.stderr.startswith("Error: ")
    assert "Traceback" not in found.stderr
    return found.stderr


def parsed(command):
    """Run a command with --json, and return what it says."""
    return json.loads(done(f"{command} --json"))
