"""`unaligned test`: exit codes, one sentence, JSON."""

import json

import pytest
from program import fails, run


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
