"""`unaligned explain`: a table, a file, a figure, a report, JSON."""

import json

import pandas as pd
import pytest
from program import done, fails, run

import unaligned as ua


@pytest.mark.usefixtures("files")
def test_features_are_printed_and_written(tmp_path):
    command = "explain halves.csv --group-by half --by features --repeats 1"
    text = done(f"{command} --out why.csv --plot why.png --report why.html")
    assert text.startswith("'0' and '1' are at les ")
    frame = pd.read_csv(tmp_path / "why.csv", index_col=0)
    assert sorted(frame.index) == ["x", "y", "z"]
    assert list(frame.columns) == ["change", "noise", "exceeds_noise"]
    halves = ua.load_all("halves.csv", group_by="half")
    direct = ua.explain(*halves.values(), n_repeats=1).to_frame()
    pd.testing.assert_frame_equal(frame, direct)
    assert (tmp_path / "why.png").read_bytes().startswith(b"\x89PNG")
    assert '"by":"features"' in (tmp_path / "why.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("files")
def test_rows_have_the_labels_of_a_column():
    found = run(
        "explain donors.csv --group-by condition --by rows --labels donor --repeats 1 --json"
    )
    result = json.loads(found.stdout)
    assert result["names"] == ["control", "treated"]
    assert sorted(result["labels"]) == list("ABCDEFGH")
    assert result["by"] == "rows"


@pytest.mark.usefixtures("files")
def test_rows_are_clustered_without_labels():
    result = json.loads(done("explain before.npy after.npy --by rows --repeats 1 --json"))
    assert {label.split(":")[0] for label in result["labels"]} == {"before", "after"}


@pytest.mark.usefixtures("files")
def test_scales_and_groups_of_features(tmp_path):
    done("explain before.npy after.npy --by scale --repeats 1 --out scale.json --plot scale.svg")
    stored = json.loads((tmp_path / "scale.json").read_text())
    assert stored["quantities"]["dimension"]["values"][1] > 3
    result = json.loads(
        done(
            "explain halves.csv --group-by half --repeats 1 --json --feature-group flat=x,y "
            "--feature-group rest=z"
        )
    )
    assert result["members"] == {"flat": ["x", "y"], "rest": ["z"]}


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("explain before.npy", "explain needs two datasets, and gets 1: before"),
        ("explain before.npy after.npy --by feature", "Did you mean 'features'?"),
        ("explain before.npy after.npy --labels donor", "--labels donor belongs to --by rows"),
        ("explain before.npy after.npy --labels auto", "--labels auto belongs to --by rows"),
        (
            "explain donors.csv --group-by condition --by rows --labels nope",
            "--labels: the column 'nope' does not exist",
        ),
        (
            "explain donors.csv --group-by nope --by rows --labels donor",
            "--group-by: the column 'nope' does not exist",
        ),
        ("explain before.npy after.npy --out why.txt", "--out"),
        ("explain before.npy after.npy --feature-group x", "--feature-group 'x' must be KEY="),
        ("explain before.npy after.npy --feature-group x=nothing", "no dataset has such a column"),
        ("explain cells.npy model.npy", "needs 4 blocks of --block-size 30 rows"),
        ("explain before.npy nothing.npy", "nothing.npy"),
    ],
)
def test_bad_input_is_exit_code_2(command, message):
    assert message in fails(command)
