"""Rows that are elsewhere: every source gives the same rows, every time."""

import numpy as np
import pytest
from scipy import sparse

import unaligned as ua
from row_files import POINTS, h5ad, npy, parquet, sparse_h5ad
from unaligned import defaults
from unaligned.errors import DataWarning, FileError, InputError, InputTypeError
from unaligned.rows.files import NpyRows, as_source
from unaligned.rows.source import ArrayRows, GeneratedRows, RowSource


def memmap(folder):
    return np.load(npy(folder), mmap_mode="r")


def hdf5(folder):
    h5py = pytest.importorskip("h5py")
    file = h5py.File(folder / "points.h5", "w")
    file["X"] = POINTS
    return file["X"]


def zarr(folder):
    zarr = pytest.importorskip("zarr")
    array = zarr.open(str(folder / "z"), mode="w", shape=POINTS.shape, chunks=(300, 5), dtype="f4")
    array[:] = POINTS
    return array


def dask(folder):
    return pytest.importorskip("dask.array").from_array(POINTS, chunks=(300, 2))


def generator(folder):
    return lambda: (POINTS[a : a + 130] for a in range(0, 1000, 130))


def csr(folder):
    return sparse.csr_array(POINTS)


SOURCES = [npy, memmap, hdf5, zarr, parquet, dask, generator, csr, h5ad, sparse_h5ad]


@pytest.mark.parametrize("make", SOURCES)
def test_every_source_gives_the_same_rows_twice(make, tmp_path):
    source = as_source(make(tmp_path))
    assert source.shape == POINTS.shape
    for size in (64, None):
        blocks = list(source.blocks(size))
        assert all(block.shape[0] <= (size or 10**9) for block in blocks)
        np.testing.assert_array_equal(np.concatenate(blocks), POINTS)
    np.testing.assert_array_equal(source.read(), POINTS)
    rows = [999, 3, 3, 500]
    np.testing.assert_array_equal(source.take(rows), POINTS[rows])


@pytest.mark.parametrize("make", SOURCES)
def test_every_source_has_the_fingerprint_of_the_array(make, tmp_path):
    dataset = ua.Dataset.from_source(make(tmp_path), name="there")
    assert dataset.is_lazy
    assert dataset.fingerprint == ua.Dataset(POINTS).fingerprint
    np.testing.assert_array_equal(dataset.prepared(), POINTS.astype(np.float64))


@pytest.mark.parametrize("make", [hdf5, zarr, dask])
def test_stored_arrays_are_taken_as_data_and_left_where_they_are(make, tmp_path):
    dataset = ua.Dataset(make(tmp_path))
    assert dataset.is_lazy
    wanted = ua.signature(POINTS, n_eigenvalues=20)
    np.testing.assert_array_equal(ua.signature(dataset, n_eigenvalues=20).values, wanted.values)


def test_rows_that_are_not_finite_are_refused_or_left_out():
    bad = POINTS.copy()
    bad[[7, 900], 2] = np.nan
    with pytest.raises(InputError, match=r"2 of 1000 rows \(first in row 7\)"):
        ua.Dataset.from_source(ArrayRows(bad), name="holes")
    with pytest.warns(DataWarning, match="dropped 2 of 1000 rows"):
        dataset = ua.Dataset.from_source(ArrayRows(bad), nan_policy="omit")
    assert dataset.n_dropped == 2
    kept = np.delete(POINTS, [7, 900], axis=0)
    assert dataset.fingerprint == ua.Dataset(kept).fingerprint


STEPS = [("log1p",), ("normalize_total", "log1p"), ("pca:2",), ("log1p", "standardize", "pca:3")]


@pytest.mark.parametrize("steps", STEPS)
def test_preprocessing_by_blocks_equals_that_of_the_whole(steps, monkeypatch):
    counts = np.abs(POINTS.astype(np.float64)) + np.array([0.0, 0.0, 0.0, 100.0, 1000.0])
    blocks = [counts[:400], counts[400:401], counts[401:]]
    dataset = ua.Dataset.from_source(lambda: iter(blocks), preprocess=steps)
    monkeypatch.setattr(RowSource, "read", None)  # never all at once
    source = dataset.prepared_source()
    wanted = ua.Dataset(counts, preprocess=steps).prepared()
    assert source.shape == wanted.shape
    np.testing.assert_allclose(np.concatenate(list(source.blocks(64))), wanted, atol=1e-11)
    np.testing.assert_allclose(source.take([999, 3]), wanted[[999, 3]], atol=1e-11)


def test_constant_columns_are_only_centred_by_blocks():
    values = POINTS.astype(np.float64)
    values[:, 1] = 1e6 / 3
    dataset = ua.Dataset.from_source(ArrayRows(values), preprocess="standardize")
    wanted = ua.Dataset(values, preprocess="standardize").prepared()
    np.testing.assert_allclose(dataset.prepared_source().read(), wanted, atol=1e-9)


def test_pca_of_more_components_than_columns_is_refused_by_blocks():
    dataset = ua.Dataset.from_source(ArrayRows(POINTS), preprocess="pca:6")
    with pytest.raises(InputError, match="'pca:6' needs at least 6 rows and columns"):
        dataset.prepared_source()


def test_parts_of_an_h5ad_file_are_named(tmp_path):
    import h5py

    with h5py.File(h5ad(tmp_path)) as file:
        np.testing.assert_array_equal(as_source(file["obsm/X_pca"]).read(), POINTS[:, :2])
        with pytest.raises(InputError, match=r"'/obsm' of .* is no array and no CSR matrix"):
            as_source(file["obsm"])
    with pytest.raises(InputError, match="write a CSC matrix as CSR"):
        as_source(h5ad(tmp_path, sparse.csc_matrix(POINTS)))


def test_a_large_dask_array_is_summed_up_chunk_by_chunk(monkeypatch):
    monkeypatch.setattr(defaults, "LAZY_BYTES", 0)
    here = ArrayRows(POINTS).summary
    array = dask(None)
    there = as_source(array).summary
    np.testing.assert_allclose(there.mean, here.mean, rtol=1e-12)
    assert there[1:3] == here[1:3] == (0, -1)
    assert there.peak == here.peak
    assert there.digest == as_source(dask(None)).summary.digest
    assert there.digest != as_source(array + 1e-3).summary.digest
    holes = POINTS.copy()
    holes[[650, 700]] = np.nan
    bad = as_source(pytest.importorskip("dask.array").from_array(holes, chunks=(300, 5))).summary
    assert (bad.n_bad, bad.first_bad) == (2, 650)
    np.testing.assert_allclose(bad.mean, np.nanmean(holes.astype(float), axis=0), rtol=1e-6)


def test_empty_chunks_of_a_large_dask_array_are_passed_over(monkeypatch):
    monkeypatch.setattr(defaults, "LAZY_BYTES", 0)
    array = pytest.importorskip("dask.array").from_array(POINTS, chunks=((600, 0, 399, 1), 5))
    source = as_source(array)
    np.testing.assert_array_equal(source.read(), POINTS)
    np.testing.assert_allclose(source.summary.mean, ArrayRows(POINTS).summary.mean, rtol=1e-12)
    assert [n_rows for n_rows, _ in source.jobs()] == [600, 399, 1]


def test_chunks_of_another_size_than_they_say_are_refused():
    dask = pytest.importorskip("dask.array")
    odd = dask.from_array(POINTS, chunks=(500, 5)).map_blocks(lambda rows: rows[:-1], dtype="f4")
    with pytest.raises(InputError, match=r"gave 499 rows from row 0 on, and 500 before"):
        as_source(odd).read()


def test_a_generator_that_draws_anew_at_every_call_is_refused():
    unseeded = np.random.default_rng(0)
    source = GeneratedRows(lambda: (unseeded.normal(size=(10, 2)) for _ in range(3)))
    with pytest.raises(InputError, match=r"as its first row, and .* before\. .* seed its"):
        source.read()


@pytest.mark.parametrize("holds", [complex, object, str])
def test_blocks_that_are_not_real_numbers_are_refused(holds):
    for blocks in ([POINTS.astype(holds)], [POINTS, POINTS.astype(holds)]):
        with pytest.raises(InputTypeError, match=r"must hold real numbers; it holds"):
            ua.Dataset.from_source(lambda blocks=blocks: iter(blocks))
    with pytest.raises(InputTypeError, match=r"must hold real numbers; it holds"):
        ua.Dataset.from_source(POINTS.astype(holds))


@pytest.mark.parametrize("given", [None, 5])
def test_a_function_that_gives_no_iterator_is_refused(given):
    with pytest.raises(InputTypeError, match=r"must return an iterator of blocks.* arrived"):
        ua.Dataset.from_source(lambda: given)


def test_an_annotated_collection_of_matrices_is_refused():
    anndata = pytest.importorskip("anndata")
    with pytest.raises(InputTypeError, match=r"source is an AnnData .* Say which one: adata.X"):
        ua.Dataset.from_source(anndata.AnnData(POINTS))


def test_a_block_that_is_no_table_is_refused():
    with pytest.raises(InputError, match=r"a block of shape \(\) arrived"):
        ua.Dataset.from_source(lambda: iter([3.0]))


def test_empty_blocks_are_passed_over():
    source = GeneratedRows(lambda: iter([POINTS[:0], POINTS[:10], POINTS[:0], POINTS[10:]]))
    assert np.array_equal(source.read(), POINTS)


def test_a_generator_that_cannot_start_again_is_refused():
    once = iter([POINTS[:500], POINTS[500:]])
    source = GeneratedRows(lambda: once)
    with pytest.raises(InputError, match="same rows every time"):
        source.read()


def test_blocks_of_unequal_width_are_refused():
    source = GeneratedRows(lambda: iter([POINTS[:10], POINTS[:10, :3]]))
    with pytest.raises(InputError, match="every block must have 5 columns"):
        source.read()


def test_files_that_cannot_be_read_by_blocks_are_refused(tmp_path):
    np.save(tmp_path / "flat.npy", np.zeros(3))
    with pytest.raises(FileError, match="must hold rows × features"):
        as_source(tmp_path / "flat.npy")
    (tmp_path / "text.npy").write_text("no")
    with pytest.raises(FileError, match=r"cannot be read as \.npy"):
        as_source(tmp_path / "text.npy")
    with pytest.raises(InputError, match=r"only \.npy, \.parquet, \.h5ad files"):
        as_source(tmp_path / "a.csv")
    with pytest.raises(InputTypeError, match="source must be an array, a path"):
        as_source(3)
    with pytest.raises(InputError, match="two-dimensional"):
        as_source(np.zeros(3))


def test_a_file_that_ends_early_is_refused(tmp_path):
    path = npy(tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(FileError, match="ends early"):
        NpyRows(path).read()


def test_subsample_takes_rows_from_the_source():
    dataset = ua.Dataset.from_source(ArrayRows(POINTS))
    wanted = ua.Dataset(POINTS).subsample(50, np.random.default_rng(0))
    found = dataset.subsample(50, np.random.default_rng(0))
    np.testing.assert_array_equal(found.prepared(), wanted.prepared())
