"""AnnData files, written by AnnData itself where it is installed."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import unaligned as ua
from sample_files import DAYS, POINTS, annotated
from unaligned.errors import DataWarning, FileError

h5py = pytest.importorskip("h5py")
COUNTS = np.where(POINTS > 0, np.round(5 * POINTS), 0.0)


@pytest.fixture(scope="module", params=["h5ad", "zarr 2", "zarr 3"])
def cells(request, tmp_path_factory):
    """Return an AnnData file with every kind of obs column."""
    anndata = pytest.importorskip("anndata")
    obs = pd.DataFrame(
        {
            "day": pd.Categorical(DAYS),
            "text": DAYS.astype(str),
            "number": np.repeat([0, 2, 10], 4),
            "nullable": pd.array([0] * 4 + [2] * 4 + [10] * 4, dtype="Int64"),
        },
        index=[f"cell{i}" for i in range(12)],
    )
    adata = anndata.AnnData(sparse.csr_matrix(COUNTS), obs=obs)
    adata.layers["columns"] = sparse.csc_matrix(COUNTS)
    adata.obsm["X_pca"] = POINTS
    adata.obsp["neighbours"] = sparse.csr_matrix(np.ones((12, 12)))
    kind, _, version = request.param.partition(" ")
    path = tmp_path_factory.mktemp("anndata") / f"cells.{kind}"
    if kind == "h5ad":
        adata.write_h5ad(path)
        return path
    pytest.importorskip("zarr")
    with warnings.catch_warnings(), anndata.settings.override(zarr_write_format=int(version)):
        warnings.simplefilter("ignore")  # AnnData's, about its future default
        adata.write_zarr(path)
    return path


def test_x_is_the_default_and_stays_sparse(cells):
    dataset = ua.load(cells)
    assert sparse.issparse(dataset.values)
    np.testing.assert_array_equal(dataset.values.toarray(), COUNTS)
    assert list(ua.load_all(cells)) == ["cells"], "X, not every matrix there is"


def test_other_matrices_are_read_by_key(cells):
    np.testing.assert_array_equal(ua.load(f"{cells}:obsm/X_pca").values, POINTS)
    np.testing.assert_array_equal(ua.load(f"{cells}:layers/columns").values.toarray(), COUNTS)
    assert ua.load(f"{cells}:obsp/neighbours", kind="graph").kind == "graph"
    with pytest.raises(FileError, match=r"no 'obsm/X_umap'.*Did you mean 'obsm/X_pca'"):
        ua.load(f"{cells}:obsm/X_umap")


@pytest.mark.parametrize("column", ["day", "text", "number", "nullable"])
@pytest.mark.parametrize("part", ["", ":obsm/X_pca"])
def test_every_kind_of_obs_column_groups_cells(column, part, cells):
    found = ua.load_all(f"{cells}{part}", group_by=column)
    assert [dataset.n_samples for dataset in found.values()] == [4, 4, 4]
    assert [name.rpartition(":")[2].lstrip("D") for name in found] == ["0", "2", "10"]


def test_unknown_obs_column_raises_and_lists_the_columns(cells):
    with pytest.raises(FileError, match=r"not a column of obs.*'day'"):
        ua.load_all(cells, group_by="dayy")


def test_lazy_sparse_rows_equal_those_in_memory(cells):
    lazy = ua.load(cells, lazy=True)
    assert lazy.is_lazy
    np.testing.assert_array_equal(lazy.prepared(), COUNTS)
    np.testing.assert_array_equal(np.vstack(list(lazy.blocks(5))), COUNTS)


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_square_sparse_matrix_is_read_by_its_encoding(kind, tmp_path):
    matrix = sparse.csr_matrix(COUNTS[:3, :3]).asformat(kind)
    with h5py.File(tmp_path / "square.h5ad", "w") as file:
        for part in ("data", "indices", "indptr"):
            file[f"X/{part}"] = getattr(matrix, part)
        file["X"].attrs.update({"encoding-type": f"{kind}_matrix", "shape": matrix.shape})
    np.testing.assert_array_equal(
        ua.load(tmp_path / "square.h5ad").values.toarray(), COUNTS[:3, :3]
    )


def test_files_of_old_anndata_versions_are_read(tmp_path):
    with h5py.File(tmp_path / "old.h5ad", "w") as file:
        csr = sparse.csr_matrix(COUNTS)
        file["X/data"], file["X/indices"], file["X/indptr"] = csr.data, csr.indices, csr.indptr
        file["X"].attrs.update({"h5sparse_format": "csr", "h5sparse_shape": csr.shape})
        names, codes = np.unique(DAYS, return_inverse=True)
        file["obs/day"], file["obs/__categories/day"] = codes, names.astype(bytes)
    np.testing.assert_array_equal(ua.load(tmp_path / "old.h5ad").values.toarray(), COUNTS)
    assert len(ua.load_all(tmp_path / "old.h5ad", group_by="day")) == 3
    with h5py.File(tmp_path / "older.h5ad", "w") as file:
        file["X"] = POINTS
        file["obs"] = np.array([(day,) for day in DAYS], dtype=[("day", "S3")])
    assert list(ua.load_all(tmp_path / "older.h5ad", group_by="day")) == [
        "older:D0",
        "older:D2",
        "older:D10",
    ]


def named_cells(folder, **index):
    """Write cells with two genes (three in `raw`) and return the path."""
    cells = annotated(pd.DataFrame(POINTS, columns=["x", "y", "z"]))
    if index:
        cells.var.index = pd.Index(["g1", "g2", "g3"], **index)
    cells.raw = cells.copy()
    cells = cells[:, :2].copy()
    cells.layers["counts"] = sparse.csc_matrix(cells.X)
    cells.obsm["X_pca"] = POINTS
    cells.write_h5ad(folder / "cells.h5ad")
    return f"{folder / 'cells.h5ad'}"


def test_each_matrix_has_the_names_of_its_own_columns(tmp_path):
    path = named_cells(tmp_path)
    assert ua.load(path).feature_names == ("x", "y")
    assert ua.load(f"{path}:layers/counts").feature_names == ("x", "y")
    assert ua.load(f"{path}:raw/X").feature_names == ("x", "y", "z")
    assert ua.load(f"{path}:obsm/X_pca").feature_names is None
    cells = tuple(f"cell{i}" for i in range(12))
    assert ua.load(path, transpose=True).feature_names == cells
    assert ua.load(f"{path}:obsm/X_pca", transpose=True).feature_names == cells


def test_index_may_have_a_name(tmp_path):
    path = named_cells(tmp_path, name="gene")
    assert ua.load(path).feature_names == ("g1", "g2")
    assert ua.Dataset.from_source(path).feature_names == ("g1", "g2")


@pytest.mark.parametrize("nullable", [False, True])
def test_nullable_and_bytes_index_is_read(nullable, tmp_path):
    path = named_cells(tmp_path)
    with h5py.File(path, "a") as file:
        del file["var/_index"]
        if nullable:
            file["var/_index/values"], file["var/_index/mask"] = ["a", "b"], [False, False]
        else:
            file["var/_index"] = np.array([b"a", b"b"])
    assert ua.load(path).feature_names == ("a", "b")
    assert ua.Dataset.from_source(path).feature_names == ("a", "b")


def test_var_written_before_0_7_is_read(tmp_path):
    with h5py.File(tmp_path / "old.h5ad", "w") as file:
        file["X"] = POINTS[:, :2]
        file["var"] = np.array([(b"a", 1), (b"b", 2)], dtype=[("index", "S1"), ("n", "i4")])
    assert ua.load(tmp_path / "old.h5ad").feature_names == ("a", "b")
    assert ua.Dataset.from_source(tmp_path / "old.h5ad").feature_names == ("a", "b")


@pytest.mark.parametrize("index", [[1.5, 2.5], None])
def test_numeric_and_missing_index_are_read(index, tmp_path):
    path = named_cells(tmp_path)
    with h5py.File(path, "a") as file:
        del file["var/_index"]
        if index is not None:
            file["var/_index"] = index
    names = None if index is None else ("1.5", "2.5")
    assert ua.load(path).feature_names == names
    assert ua.Dataset.from_source(path).feature_names == names


def test_too_few_names_warn_and_values_are_read(tmp_path):
    path = named_cells(tmp_path)
    with h5py.File(path, "a") as file:
        del file["var/_index"]
        file["var/_index"] = ["a"]
    with pytest.warns(DataWarning, match=r"1 name for 2 columns. The columns stay without"):
        assert ua.load(path).feature_names is None
    with pytest.warns(DataWarning, match=r"1 name for 2 columns. The columns stay without"):
        assert ua.Dataset.from_source(path).feature_names is None


class TestWhatAnndataDoesNot:
    """Why files are not read by AnnData itself: each test fails with `anndata.read_h5ad`."""

    @pytest.fixture
    def path(self, tmp_path):
        annotated(pd.DataFrame(COUNTS)).write_h5ad(tmp_path / "cells.h5ad")
        return tmp_path / "cells.h5ad"

    def test_matrix_in_another_file_is_not_opened(self, path, tmp_path):
        annotated(pd.DataFrame(POINTS)).write_h5ad(tmp_path / "private.h5ad")
        with h5py.File(path, "a") as file:
            del file["X"]
            file["X"] = h5py.ExternalLink("private.h5ad", "/X")
        with pytest.raises(FileError, match="neither X nor layers"):
            ua.load(path)
        np.testing.assert_array_equal(pytest.importorskip("anndata").read_h5ad(path).X, POINTS)

    def test_indices_outside_of_a_sparse_matrix_raise(self, path, tmp_path):
        cells = annotated(pd.DataFrame(COUNTS))
        cells.X = sparse.csr_matrix(cells.X)
        cells.write_h5ad(tmp_path / "sparse.h5ad")
        with h5py.File(tmp_path / "sparse.h5ad", "a") as file:
            file["X/indices"][0] = 99
        with pytest.raises(FileError, match="indices outside of its shape"):
            ua.load(tmp_path / "sparse.h5ad")
        # AnnData returns the matrix, and its product would write outside of its memory.
        read = pytest.importorskip("anndata").read_h5ad(tmp_path / "sparse.h5ad")
        assert read.X.indices.max() == 99

    def test_unknown_entry_of_uns_does_not_matter(self, path):
        with h5py.File(path, "a") as file:
            entry = file.require_group("uns").create_group("new")
            entry.attrs.update({"encoding-type": "of the future", "encoding-version": "9"})
        np.testing.assert_array_equal(ua.load(path).values, COUNTS)
        with pytest.raises(Exception, match="No read method"):
            pytest.importorskip("anndata").read_h5ad(path)
