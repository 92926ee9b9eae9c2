"""Rows of files: errors name the file, and no file stays open."""

import pickle

import numpy as np
import pytest

import unaligned as ua
from row_files import POINTS, h5ad, npy, parquet, sparse_h5ad
from unaligned.errors import FileError
from unaligned.rows.files import as_source

h5py = pytest.importorskip("h5py")


@pytest.mark.parametrize("suffix", ["npy", "parquet", "h5ad"])
def test_missing_or_damaged_file_raises_with_its_name(suffix, tmp_path):
    path = tmp_path / f"points.{suffix}"
    with pytest.raises(FileError, match=rf"Cannot read .*points\.{suffix}': [Nn]o such file"):
        ua.Dataset.from_source(path)
    for content in (b"PAR1 and then nothing", b"\x89HDF\r\n\x1a\n", b""):
        path.write_bytes(content)
        with pytest.raises(FileError, match=rf"points\.{suffix}' (cannot be read as|is empty)"):
            ua.Dataset.from_source(path)


def test_suffixes_may_be_upper_case(tmp_path):
    path = npy(tmp_path).rename(tmp_path / "POINTS.NPY")
    assert as_source(path).shape == POINTS.shape


def test_damaged_parquet_pages_raise_with_the_file_name(tmp_path):
    path = parquet(tmp_path)
    content = bytearray(path.read_bytes())
    content[4:400] = bytes(396)
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"points\.parquet' cannot be read as Parquet"):
        as_source(path).read()


def test_deleted_file_raises_with_its_name(tmp_path):
    path = npy(tmp_path)
    source = as_source(path)
    path.unlink()
    with pytest.raises(FileError, match=r"Cannot read .*points\.npy'"):
        source.read()


def test_h5ad_without_x_raises_and_lists_its_arrays(tmp_path):
    path = h5ad(tmp_path)
    with h5py.File(path, "r+") as file:
        del file["X"]
    with pytest.raises(FileError, match=r"cells\.h5ad': There is no 'X' in the file.*obsm/X_pca"):
        ua.Dataset.from_source(path)


def test_external_link_in_h5ad_is_not_followed(tmp_path):
    path = h5ad(tmp_path)
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["X"] = POINTS
    with h5py.File(path, "r+") as file:
        del file["X"]
        file["X"] = h5py.ExternalLink(str(tmp_path / "secret.h5"), "X")
    with pytest.raises(FileError, match=r"There is no 'X' in the file"):
        ua.Dataset.from_source(path)


@pytest.mark.parametrize("make", [h5ad, sparse_h5ad])
def test_h5ad_is_open_only_while_it_is_read(make, tmp_path):
    path = make(tmp_path)
    dataset = ua.Dataset.from_source(path)
    dataset.fingerprint  # noqa: B018
    with h5py.File(path, "r+") as file:  # fails while the file is open for reading
        file.attrs["note"] = "written meanwhile"
    np.testing.assert_array_equal(dataset.prepared(), POINTS.astype(np.float64))


@pytest.mark.parametrize("make", [h5ad, sparse_h5ad, npy, parquet])
def test_rows_of_a_file_are_the_same_after_pickling(make, tmp_path):
    dataset = ua.Dataset.from_source(make(tmp_path))
    copy = pickle.loads(pickle.dumps(dataset))
    np.testing.assert_array_equal(copy.prepared(), POINTS)
