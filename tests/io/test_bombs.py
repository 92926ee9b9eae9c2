"""Small files that unpack to much are rejected before that takes memory."""

import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import unaligned as ua
from malformed import CASES
from unaligned.errors import FileError

SIDE = (
    17_000_000  # of two columns of float64: 272 MB, above the 256 MiB from which files are bombs
)


def peak(call, path):
    """Return the most bytes that pyarrow had in a process that calls `ua.CALL` on a file."""
    script = (
        "import sys, pyarrow, unaligned as ua\n"
        f"try: ua.{call}\n"
        "except ua.errors.FileError: pass\n"
        "print(pyarrow.default_memory_pool().max_memory())\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", script, str(path)]
    return int(subprocess.run(command, capture_output=True, env=environment, check=True).stdout)


@pytest.fixture
def bomb(tmp_path):
    """Write 260 MiB of zeros as a member of an archive."""
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("header.npy", bytes(260 << 20))
    return path


@pytest.mark.parametrize("rows", [1 << 16, SIDE])
def test_feather_bomb_is_rejected_before_it_is_decompressed(rows, tmp_path):
    feather, pa = pytest.importorskip("pyarrow.feather"), pytest.importorskip("pyarrow")
    table = pa.table({name: np.zeros(SIDE) for name in "xy"})
    path = tmp_path / "bomb.feather"
    feather.write_feather(table, path, compression="zstd", chunksize=rows)
    with pytest.raises(FileError, match=r"bomb.feather' claims to contain 25\d MiB"):
        ua.load(path)
    assert peak("load(sys.argv[1])", path) < 1 << 24


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_text_that_repeats_is_in_memory_once(compression, tmp_path):
    parquet, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    day = pa.DictionaryArray.from_arrays(np.repeat([0, 1], 10_000), ["a" * 100_000, "b"])
    path = tmp_path / "lab.parquet"
    parquet.write_table(
        pa.table({"x": np.arange(20_000.0), "day": day}), path, compression=compression
    )
    found = ua.load_all(path, group_by="day")
    assert [dataset.n_samples for dataset in found.values()] == [10_000, 10_000]
    assert peak("load_all(sys.argv[1], group_by='day')", path) < 1 << 25


def test_missing_labels_of_a_dictionary_are_dropped(tmp_path):
    parquet, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    parquet.write_table(
        pa.table({"x": [1.0, 2, 3, 4, 5], "day": ["D0", None, "D0", "D2", "D2"]}),
        tmp_path / "t.parquet",
    )
    with pytest.warns(ua.errors.DataWarning, match="1 of 5 rows have no value"):
        found = ua.load_all(tmp_path / "t.parquet", group_by="day")
    assert [d.values.ravel().tolist() for d in found.values()] == [[1, 3], [4, 5]]


@pytest.mark.parametrize("load", [ua.Signature.load, ua.Comparison.load, ua.DriftMonitor.load])
def test_own_archive_that_unpacks_to_much_is_rejected(load, bomb):
    with pytest.raises(
        FileError, match=r"bomb.npz' unpacks to 260 MiB and has .* a decompression bomb"
    ):
        load(bomb)


def test_own_archive_that_does_not_fit_is_rejected(tmp_path, monkeypatch):
    path = tmp_path / "s.npz"
    ua.signature(np.random.default_rng(0).normal(size=(30, 3)), n_eigenvalues=4).save(path)
    monkeypatch.setattr("unaligned.io.archive.available_memory", lambda: 1000)
    with pytest.raises(FileError, match=r"s.npz' unpacks to .* more than half of the available"):
        ua.Signature.load(path)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("load", [ua.Signature.load, ua.Comparison.load, ua.DriftMonitor.load])
def test_own_archive_that_is_a_pipe_is_rejected(load, tmp_path):
    CASES["pipe.npy"](tmp_path / "fifo")
    with pytest.raises(FileError, match="a pipe, socket or device"):
        load(tmp_path / "fifo")
