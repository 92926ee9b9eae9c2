"""Why AnnData files are not read by the `anndata` package: where it fails, and `ua.load` does not.

Each test shows the failure of `anndata` first. Where one fails because `anndata` has improved, our
own reader in `io/anndata.py` has lost a reason.
"""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import unaligned as ua
from unaligned.errors import FileError

anndata = pytest.importorskip("anndata")
h5py = pytest.importorskip("h5py")


@pytest.fixture
def cells():
    rng = np.random.default_rng(0)
    obs = pd.DataFrame(index=[f"c{i}" for i in range(20)])
    found = anndata.AnnData(sparse.csr_matrix(rng.poisson(1.0, size=(20, 6)) * 1.5), obs=obs)
    found.layers["counts"] = sparse.csr_matrix(found.X)
    found.obsm["X_pca"] = rng.normal(size=(20, 3))
    return found


@pytest.fixture
def path(cells, tmp_path):
    cells.write_h5ad(tmp_path / "cells.h5ad")
    return tmp_path / "cells.h5ad"


@pytest.fixture
def zarr_path(cells, tmp_path):
    pytest.importorskip("zarr")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # AnnData's, about its future default
        cells.write_zarr(tmp_path / "cells.zarr")
    return tmp_path / "cells.zarr"


def read_zarr(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return anndata.read_zarr(path)


def test_indices_outside_of_a_matrix_are_not_noticed(path):
    with h5py.File(path, "r+") as file:
        file["X/indices"][:3] = 1000
    X = anndata.read_h5ad(path).X
    assert X.indices.max() == 1000 > X.shape[1]  # SciPy reads and writes outside of its arrays
    with pytest.raises(FileError, match=r"'X' has indices outside of its shape"):
        ua.load(path)


def test_indices_outside_of_a_matrix_in_zarr_are_not_noticed(zarr_path):
    import zarr

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zarr.open_group(zarr_path, mode="r+", use_consolidated=False)["X/indices"][:3] = 1000
    X = read_zarr(zarr_path).X
    assert X.indices.max() == 1000 > X.shape[1]
    with pytest.raises(FileError, match=r"'X' has indices outside of its shape"):
        ua.load(zarr_path)


def test_values_of_other_files_are_read(path, tmp_path):
    secret = np.arange(60.0).reshape(20, 3)
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["x"] = secret
        file["x"].attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
    with h5py.File(path, "r+") as file:
        del file["obsm/X_pca"]
        file["obsm/X_pca"] = h5py.ExternalLink(str(tmp_path / "secret.h5"), "x")
    np.testing.assert_array_equal(anndata.read_h5ad(path).obsm["X_pca"], secret)
    with pytest.raises(FileError, match=r"use_rep='X_pca' is not in obsm"):
        ua.load(path, use_rep="X_pca")


@pytest.mark.parametrize(
    ("group", "option", "key"), [("layers", "layer", "counts"), ("obsm", "use_rep", "X_pca")]
)
def test_only_x_stays_on_disk(path, group, option, key):
    backed = anndata.read_h5ad(path, backed="r")
    assert isinstance(getattr(backed, group)[key], (np.ndarray, sparse.csr_matrix))
    backed.file.close()
    assert ua.load(path, lazy=True, **{option: key}).is_lazy


def test_zarr_is_read_as_a_whole(zarr_path):
    assert isinstance(read_zarr(zarr_path).X, sparse.csr_matrix)
    assert ua.load(zarr_path, lazy=True).is_lazy


def test_backed_objects_cannot_be_sent_to_other_processes(path):
    backed = anndata.read_h5ad(path, backed="r")
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(backed)
    backed.file.close()
    lazy = ua.load(path, lazy=True)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(lazy)).prepared(), ua.load(path).values.toarray()
    )
