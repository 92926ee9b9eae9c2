"""`unaligned drift`: exit codes, one sentence, JSON, stdin, history."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from program import done, fails, run, start
from typer import testing

from unaligned import cli
from unaligned.store.history import History

CHECK = "drift new.csv --reference reference.csv"


def write(path, rows, names="x,y,z"):
    np.savetxt(path, rows, delimiter=",", header=names, comments="")


@pytest.fixture
def folder(files):
    rng = np.random.default_rng(9)
    write("moved.csv", rng.normal(size=(120, 3)) + np.array([0, 2, 0]))
    moved = rng.normal(size=(120, 3)) + np.array([0, 20, 0])
    write("renamed.csv", moved, "x,Y,z")
    write("wide.csv", np.column_stack([moved, np.ones(120)]), "x,y,z,extra")
    write("few.csv", rng.normal(size=(20, 3)))
    return files


@pytest.mark.usefixtures("folder")
def test_no_drift_is_exit_code_0_and_one_line():
    text = done(CHECK)
    assert text.startswith("'new' shows no drift from 'reference' (p = ")
    assert len(text.splitlines()) == 1


@pytest.mark.usefixtures("folder")
def test_drift_is_exit_code_3_and_names_the_column():
    found = run("drift moved.csv --reference reference.csv")
    assert found.exit_code == 3
    assert found.stdout.startswith("'moved' has drifted from 'reference'")
    assert "moved: y" in found.stdout


@pytest.mark.usefixtures("folder")
def test_json_has_what_a_dashboard_needs():
    found = run("drift moved.csv --reference reference.csv --alpha 0.02 --json")
    assert found.exit_code == 3
    result = json.loads(found.stdout)
    assert result["is_drift"] is True
    assert (result["n_samples"], result["n_reference"], result["number"]) == (120, 450, 1)
    assert (result["n_eigenvalues"], result["gamma"], result["alpha"]) == (10, 1e-8, 0.02)
    assert [r["name"] for r in result["readings"]] == ["les", "edistance", "ks"]
    assert all(r["threshold"] == pytest.approx(0.02 / 3) for r in result["readings"])
    assert list(result["moved"]) == ["y"]
    assert result["warnings"] == []
    assert result["p_value"] <= 0.02


@pytest.mark.usefixtures("folder")
def test_stdin_is_csv():
    with open("moved.csv", "rb") as stream:
        found = testing.CliRunner().invoke(
            cli.app, ["drift", "-", "--reference", "reference.csv"], input=stream.read()
        )
    assert found.exit_code == 3
    assert found.stdout.startswith("'stdin' has drifted")
    empty = testing.CliRunner().invoke(
        cli.app, ["drift", "-", "--reference", "reference.csv"], input=b""
    )
    assert empty.exit_code == 2
    assert "/tmp" not in empty.stderr
    assert "stdin" in empty.stderr


@pytest.mark.usefixtures("folder")
def test_several_batches_are_one_line_each():
    found = run("drift new.csv moved.csv --reference reference.csv --json")
    assert found.exit_code == 3
    checks = [json.loads(line) for line in found.stdout.splitlines()]
    assert [check["is_drift"] for check in checks] == [False, True]
    assert [check["number"] for check in checks] == [1, 2]


@pytest.mark.usefixtures("folder")
def test_references_are_joined():
    found = run("drift new.csv --reference reference.csv --reference moved.csv --json")
    assert json.loads(found.stdout)["n_reference"] == 570


@pytest.mark.usefixtures("folder")
def test_a_saved_monitor_gives_the_same_verdict():
    first = done(f"{CHECK} --save monitor.npz")
    assert done("drift new.csv --monitor monitor.npz") == first
    assert "leave out alpha" in fails("drift new.csv --monitor monitor.npz --alpha 0.05")


@pytest.mark.usefixtures("folder")
def test_a_store_is_a_reference():
    rng = np.random.default_rng(0)
    names = []
    for i in range(25):
        np.save(f"day{i}.npy", rng.normal(size=(60, 3)))
        names.append(f"day{i}.npy")
    done(f"describe {' '.join(names)} --store refs.db -K 15 --tag line=A")
    np.save("today.npy", rng.normal(size=(60, 3)))
    text = done("drift today.npy --store refs.db --tag line=A --alpha 0.05")
    assert "shows no drift in shape from '25 signatures'" in text
    assert "no signatures with these tags" in fails("drift today.npy --store refs.db --tag line=B")


@pytest.mark.usefixtures("folder")
def test_history_counts_and_the_horizon_ends():
    for number in (1, 2):
        text = done(f"{CHECK} --history drift.db --horizon 2 --alpha 0.05 --json")
        assert json.loads(text)["number"] == number
    assert "is spent" in fails(f"{CHECK} --history drift.db --horizon 2 --alpha 0.05")
    # Another monitor has its own numbers.
    assert json.loads(done(f"{CHECK} --history drift.db --json"))["number"] == 1
    assert len(History("drift.db")) == 3


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("names", [("new.csv", "few.csv"), ("few.csv", "reference.csv")])
def test_bad_input_leaves_no_new_history(names):
    fails(f"drift {names[0]} --reference {names[1]} --history drift.db")
    assert not Path("drift.db").exists()


@pytest.mark.usefixtures("folder")
def test_report_and_figure_show_the_history():
    done(f"{CHECK} --history drift.db")
    run(
        "drift moved.csv --reference reference.csv --history drift.db --report d.html --plot d.png"
    )
    page = Path("d.html").read_text(encoding="utf-8")
    assert "1 of 2 batches has drifted" in page
    assert page.count("<tr>") == 3
    assert Path("d.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("drift new.csv", "Give one of --reference FILE, --store FILE and --monitor FILE"),
        (f"{CHECK} --monitor m.npz", "Give one of"),
        ("drift few.csv --reference reference.csv", "20 rows, fewer than the 30 of a block"),
        ("drift nothing.csv --reference reference.csv", "nothing.csv"),
        ("drift new.csv --reference few.csv", "needs at least"),
        (f"{CHECK} --alpha 0", "must be above 0"),
        (f"{CHECK} --distances lse", "Did you mean 'les'"),
        (f"{CHECK} --report page.txt", "must end in .html"),
        (f"{CHECK} --history reference.csv", "not a history of drift checks"),
        (f"{CHECK} --history nowhere/drift.db", "the folder 'nowhere' does not exist"),
        ("drift new.csv - --reference reference.csv", "give no other files"),
        ("drift cells.npy --reference reference.csv", "has 5 columns in place of 3"),
        ("drift renamed.csv --reference reference.csv", "it lacks 'y' and also has 'Y'."),
        (
            "drift wide.csv --reference reference.csv",
            "also has 'extra'. Rename or select columns (--c",
        ),
        (f"{CHECK} --columns x,nothing", "nothing"),
        ("drift new.csv --reference reference.csv --reference wide.csv", "cannot be joined"),
        ("drift new.csv --monitor reference.csv", "was not written by unaligned"),
    ],
)
def test_bad_input_is_exit_code_2(command, message):
    assert message in fails(command)


@pytest.mark.usefixtures("folder")
def test_a_saved_monitor_rejects_other_columns():
    done(f"{CHECK} --save monitor.npz")
    assert "lacks 'y' and also has 'Y'" in fails("drift renamed.csv --monitor monitor.npz")
    found = run("drift wide.csv --monitor monitor.npz --columns z,y,x --history drift.db")
    assert found.exit_code == 3
    assert "moved: y" in found.stdout
    assert "also has 'extra'" in fails("drift wide.csv --monitor monitor.npz --history drift.db")
    assert len(History("drift.db")) == 1


@pytest.mark.usefixtures("folder")
def test_les_alone_takes_any_columns():
    for name in ("renamed.csv", "after.npy"):
        found = run(f"drift {name} --reference reference.csv --distances les --alpha 0.05 --json")
        assert found.exit_code in (0, 3), found.stderr
        assert [r["name"] for r in json.loads(found.stdout)["readings"]] == ["les"]
    text = done("drift renamed.csv --reference reference.csv --distances les")
    assert text.startswith("'renamed' shows no drift in shape from 'reference' (p = ")


@pytest.mark.usefixtures("folder")
def test_two_runs_at_once_lose_nothing():
    done(f"{CHECK} --save monitor.npz")
    arguments = ["drift", "new.csv", "--monitor", "monitor.npz", "--history", "drift.db"]
    runs = [start(arguments, stdout=subprocess.DEVNULL) for _ in range(3)]
    assert [each.wait() for each in runs] == [0, 0, 0]
    history = History("drift.db")
    assert [check.number for check in history.checks()] == [1, 2, 3]


WRITER = """
import sys
from unaligned.inference.verdict import DriftCheck, Reading
from unaligned.store.history import History
readings = (Reading("les", 0.5, 0.01, 0.0, 0.01, 1, 9),)
check = DriftCheck("b", "r", 0.5, 0.01, readings, {}, 9, 9, None, None, 1, "now")
while True:
    added = History(sys.argv[1]).add(check, "m")
    print(added.number, flush=True)
"""


def test_kill_9_leaves_a_readable_history(tmp_path):
    path = tmp_path / "drift.db"
    History(path)
    for i in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        )
        first = int(writer.stdout.readline())
        time.sleep(0.05 * i)
        writer.send_signal(signal.SIGKILL)
        printed = [first, *map(int, writer.stdout.read().split())]
        writer.wait()
        writer.stdout.close()
        numbers = [check.number for check in History(path).checks()]
        assert numbers == list(range(1, len(numbers) + 1))
        assert set(printed) <= set(numbers)
