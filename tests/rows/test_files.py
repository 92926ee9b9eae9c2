"""Rows of files: what is wrong is said by the file's name, and no file stays open."""

import pickle

import numpy as np
import pytest

import unaligned as ua
from row_files import POINTS, h5ad, npy, parquet, sparse_h5ad
from unaligned.errors import FileError
from unaligned.rows.files import as_source

h5py = pytest.importorskip("h5py")


@pytest.mark.parametrize("suffix", ["npy", "parquet", "h5ad"])
def test_a_file_that_is_missing_or_damaged_is_refused_by_its_name(suffix, tmp_path):
    path = tmp_path / f"points.{suffix}"
    with pytest.raises(FileError, match=rf"Cannot read .*points\.{suffix}': [Nn]o such file"):
        ua.Dataset.from_source(path)
    for content in (b"PAR1 and then nothing", b"\x89HDF\r\n\x1a\n", b""):
        path.write_bytes(content)
        with pytest.raises(FileError, match=rf"points\.{suffix}' (cannot be read as|is empty)"):
            ua.Dataset.from_source(path)


def test_suffixes_may_be_in_capitals(tmp_path):
    path = npy(tmp_path).rename(tmp_path / "POINTS.NPY")
    assert as_source(path).shape == POINTS.shape


def test_a_parquet_whose_pages_are_damaged_is_refused_by_its_name(tmp_path):
    path = parquet(tmp_path)
    content = bytearray(path.read_bytes())
    content[4:400] = bytes(396)
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"points\.parquet' cannot be read as Parquet"):
        as_source(path).read()


def test_a_file_that_vanishes_is_refused_by_its_name(tmp_path):
    path = npy(tmp_path)
    source = as_source(path)
    path.unlink()
    with pytest.raises(FileError, match=r"Cannot read .*points\.npy'"):
        source.read()


def test_an_h5ad_without_x_is_refused_and_what_it_has_is_told(tmp_path):
    path = h5ad(tmp_path)
    with h5py.File(path, "r+") as file:
        del file["X"]
    with pytest.raises(FileError, match=r"cells\.h5ad': There is no 'X' in the file.*obsm/X_pca"):
        as_source(path)


def test_an_h5ad_that_leads_to_another_file_is_not_followed(tmp_path):
    path = h5ad(tmp_path)
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["X"] = POINTS
    with h5py.File(path, "r+") as file:
        del file["X"]
        file["X"] = h5py.ExternalLink(str(tmp_path / "secret.h5"), "X")
    with pytest.raises(FileError, match=r"There is no 'X' in the file"):
        as_source(path)


@pytest.mark.parametrize("make", [h5ad, sparse_h5ad])
def test_an_h5ad_is_open_only_while_it_is_read(make, tmp_path):
    path = make(tmp_path)
    dataset = ua.Dataset.from_source(path)
    dataset.fingerprint  # noqa: B018
    with h5py.File(path, "r+") as file:  # HDF5 refuses this while anybody reads
        file.attrs["note"] = "written meanwhile"
    np.testing.assert_array_equal(dataset.prepared(), POINTS.astype(np.float64))


@pytest.mark.parametrize("make", [h5ad, sparse_h5ad, npy, parquet])
def test_rows_of_a_file_are_the_same_where_they_are_sent(make, tmp_path):
    source = pickle.loads(pickle.dumps(as_source(make(tmp_path))))
    np.testing.assert_array_equal(source.read(), POINTS)
