"""`unaligned test` and `compare --inference`: exit codes, one sentence, JSON."""

import json

import numpy as np
import pandas as pd
import pytest
from program import done, fails, parsed, run

import unaligned as ua


@pytest.mark.usefixtures("files")
def test_a_difference_is_exit_code_3():
    found = run("test before.npy after.npy")
    assert found.exit_code == 3
    assert found.stdout.startswith("'before' and 'after' differ: les ")
    assert len(found.stdout.splitlines()) == 1


@pytest.mark.usefixtures("files")
def test_no_difference_is_exit_code_0():
    found = run("test halves.csv --group-by half --json")
    assert found.exit_code == 0
    result = json.loads(found.stdout)
    assert result["p_value"] > 0.05
    assert not result["is_significant"]
    assert result["names"] == ["0", "1"]
    assert result["n_samples"] == [150, 150]
    assert result["n_blocks"] == [5, 5]
    assert (result["n_eigenvalues"], result["gamma"]) == (10, 1e-8)
    assert result["warnings"] == []
    assert len(result["interval"]) == 2


@pytest.mark.usefixtures("files")
def test_options_reach_the_test():
    found = run("test before.npy after.npy --json --block-size 20 -K 5 --permutations 99 --seed 3")
    result = json.loads(found.stdout)
    assert result["n_blocks"] == [8, 10]
    assert (result["n_eigenvalues"], result["n_permutations"]) == (5, 99)
    assert result["p_value"] >= result["smallest_p_value"] == 0.01


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("test before.npy", "test needs two datasets, and 1 are given: before"),
        ("test cells.npy model.npy new.npy", "two datasets, and 3 are given: cells, model, new"),
        ("test cells.npy model.npy", "at least 4 blocks of --block-size 30 rows"),
        ("test before.npy after.npy -d lse", "distance 'lse' is not known"),
        ("test before.npy nothing.npy", "nothing.npy"),
    ],
)
def test_bad_input_is_exit_code_2(command, message):
    assert message in fails(command).replace("--distance", "distance")


@pytest.mark.usefixtures("files")
def test_compare_prints_what_is_told_apart():
    text = done("compare before.npy after.npy --inference -K 20")
    assert "Noise floor, blocks of 30 rows: before " in text
    assert "All pairs differ (p ≤ 0.05 by Holm)." in text
    alike = done("compare halves.csv --group-by half --inference -K 20")
    assert "Not told apart (p > 0.05 by Holm): 0 and 1." in alike


@pytest.mark.usefixtures("files")
def test_the_json_of_compare_has_rows_settings_and_p_values():
    found = parsed("compare before.npy after.npy --inference -K 20")
    assert found["n_samples"] == found["reference_n_samples"] == {"before": 160, "after": 200}
    assert found["warnings"] == []
    result = found["results"]["les"]
    assert (result["n_eigenvalues"], result["gamma"]) == (20, 1e-8)
    inference = result["inference"]
    assert inference["p_values"][0][1] == inference["p_holm"][0][1] <= 0.05
    assert np.shape(inference["corrected"]) == np.shape(inference["p_bh"]) == (2, 2)
    assert np.shape(inference["intervals"]) == (2, 2, 2)
    assert len(inference["noise_floor"]) == 2
    assert inference["block_size"] == 30
    plain = parsed("compare cells.npy model.npy --distance imd --subsample 50")
    assert plain["n_samples"] == {"cells": 50, "model": 50}
    assert plain["results"]["imd"]["inference"] is None


@pytest.mark.usefixtures("files")
@pytest.mark.filterwarnings("always::unaligned.errors.SampleSizeWarning")
def test_the_json_has_the_warnings():
    np.save("large.npy", np.random.default_rng(0).normal(size=(400, 3)))
    found = parsed("compare model.npy large.npy -K 20")
    assert any("Sample sizes differ" in warning for warning in found["warnings"])


@pytest.mark.usefixtures("files")
def test_groups_of_rows_are_permuted(tmp_path):
    found = run("test donors.csv --group-by condition --groups donor --json")
    assert found.exit_code == 3
    result = json.loads(found.stdout)
    assert result["names"] == ["control", "treated"]
    assert (result["n_samples"], result["n_groups"]) == ([160, 160], [4, 4])
    assert (result["n_pairs"], result["n_blocks"]) == (0, [4, 4])
    assert result["p_value"] == result["smallest_p_value"] == 1 / 35
    again = json.loads(run("test control.csv treated.csv --groups donor --json").stdout)
    assert again == result
    frames = [pd.read_csv(f"{name}.csv") for name in ("control", "treated")]
    in_python = ua.permutation_test(
        *(frame[["x", "y", "z"]] for frame in frames), groups=[frame["donor"] for frame in frames]
    )
    assert in_python.squared == pytest.approx(result["squared"], rel=1e-9)
    assert (tmp_path / "donors.csv").exists()


@pytest.mark.filterwarnings("always::unaligned.errors.UnalignedWarning")
@pytest.mark.usefixtures("files")
def test_groups_in_both_datasets_are_paired(tmp_path):
    for name in ("control", "treated"):
        frame = pd.read_csv(f"{name}.csv")
        frame["donor"] = np.repeat([1, 2, 3, 4], 40)
        frame.loc[:3, "x"] = np.nan
        frame.to_csv(tmp_path / f"{name}_paired.csv", index=False)
    found = run(
        "test control_paired.csv treated_paired.csv --groups donor --nan-policy omit --json"
    )
    result = json.loads(found.stdout)
    assert found.exit_code == 0
    assert (result["n_pairs"], result["n_samples"]) == (4, [156, 156])
    assert result["smallest_p_value"] == 1 / 8
    assert any("allow no p-value below 0.12" in text for text in result["warnings"])
    assert sum("dropped 4 of 40 rows" in text for text in result["warnings"]) == 1


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("test control.csv treated.csv --groups doner", "Did you mean 'donor'?"),
        ("test before.npy after.npy --groups donor", "this format has no labels"),
        ("test donors.csv --group-by donor --groups condition", "two datasets, and 8 are given"),
        ("test donors.csv --group-by donor --groups donor", "names a column twice"),
        (
            "test donors.csv --group-by condition --groups donor --block-size 41",
            "fewer than --block-size 41.",
        ),
        ("test control.csv treated.csv --groups donor --kind distances", "rows that are points"),
    ],
)
def test_bad_groups_are_exit_code_2(command, message):
    assert message in fails(command)


def test_the_help_page_has_the_k_of_blocks(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert "a third of a block" in " ".join(run("test --help").stdout.split())
    assert "the fewest rows" not in run("test --help").stdout
