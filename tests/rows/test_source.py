"""Sources of rows: every kind returns the same rows at every pass."""

import numpy as np
import pytest
from scipy import sparse

import unaligned as ua
from row_files import POINTS, h5ad, npy, parquet, sparse_h5ad
from unaligned import defaults
from unaligned.errors import FileError, InputError, InputTypeError
from unaligned.rows.files import NpyRows, ParquetRows, as_source
from unaligned.rows.source import ArrayRows, GeneratedRows


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
def test_every_source_returns_the_same_rows_twice(make, tmp_path):
    source = ua.Dataset.from_source(make(tmp_path)).values
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
    dataset = ua.Dataset.from_source(make(tmp_path), name="lazy")
    assert dataset.is_lazy
    assert dataset.fingerprint == ua.Dataset(POINTS).fingerprint
    np.testing.assert_array_equal(dataset.prepared(), POINTS.astype(np.float64))


@pytest.mark.parametrize("make", [hdf5, zarr, dask])
def test_stored_arrays_are_read_lazily(make, tmp_path):
    dataset = ua.Dataset(make(tmp_path))
    assert dataset.is_lazy
    expected = ua.signature(POINTS, n_eigenvalues=20)
    np.testing.assert_array_equal(ua.signature(dataset, n_eigenvalues=20).values, expected.values)


def test_hdf5_groups_that_are_not_csr_raise(tmp_path):
    import h5py

    with h5py.File(h5ad(tmp_path)) as file:
        np.testing.assert_array_equal(as_source(file["obsm/X_pca"]).read(), POINTS[:, :2])
        with pytest.raises(
            InputError, match=r"'/obsm' of .* is neither an array nor a CSR matrix"
        ):
            as_source(file["obsm"])
    with pytest.raises(InputError, match="the CSC matrix as CSR"):
        ua.Dataset.from_source(h5ad(tmp_path, sparse.csc_matrix(POINTS)))


def test_summary_of_large_dask_array_is_combined_from_chunks(monkeypatch):
    monkeypatch.setattr(defaults, "LAZY_BYTES", 0)
    here = ArrayRows(POINTS).summary
    array = dask(None)
    there = as_source(array).summary
    np.testing.assert_allclose(there.mean, here.mean, rtol=1e-12)
    assert there.bad.size == here.bad.size == 0
    assert there.peak == here.peak
    assert there.digest == as_source(dask(None)).summary.digest
    assert there.digest != as_source(array + 1e-3).summary.digest
    holes = POINTS.copy()
    holes[[650, 700]] = np.nan
    bad = as_source(pytest.importorskip("dask.array").from_array(holes, chunks=(300, 5))).summary
    assert bad.bad.tolist() == [650, 700]
    np.testing.assert_allclose(bad.mean, np.nanmean(holes.astype(float), axis=0), rtol=1e-6)


def test_empty_chunks_of_large_dask_array_are_skipped(monkeypatch):
    monkeypatch.setattr(defaults, "LAZY_BYTES", 0)
    array = pytest.importorskip("dask.array").from_array(POINTS, chunks=((600, 0, 399, 1), 5))
    source = as_source(array)
    np.testing.assert_array_equal(source.read(), POINTS)
    np.testing.assert_allclose(source.summary.mean, ArrayRows(POINTS).summary.mean, rtol=1e-12)
    assert [n_rows for n_rows, _ in source.jobs()] == [600, 399, 1]


def test_dask_chunks_of_wrong_size_raise():
    dask = pytest.importorskip("dask.array")
    odd = dask.from_array(POINTS, chunks=(500, 5)).map_blocks(lambda rows: rows[:-1], dtype="f4")
    with pytest.raises(InputError, match=r"returned 499 rows from row 0 on, but 500 before"):
        as_source(odd).read()


def test_generator_without_a_seed_raises():
    unseeded = np.random.default_rng(0)
    source = GeneratedRows(lambda: (unseeded.normal(size=(10, 2)) for _ in range(3)))
    with pytest.raises(InputError, match=r"as its first row, but .* before\. .* seed a"):
        source.read()


@pytest.mark.parametrize("holds", [complex, object, str])
def test_blocks_that_are_not_real_numbers_raise(holds):
    for blocks in ([POINTS.astype(holds)], [POINTS, POINTS.astype(holds)]):
        with pytest.raises(InputTypeError, match=r"must hold real numbers; it holds"):
            ua.Dataset.from_source(lambda blocks=blocks: iter(blocks))
    with pytest.raises(InputTypeError, match=r"must hold real numbers; it holds"):
        ua.Dataset.from_source(POINTS.astype(holds))


@pytest.mark.parametrize("given", [None, 5])
def test_function_that_returns_no_iterator_raises(given):
    with pytest.raises(
        InputTypeError, match=r"must return an iterator of blocks.*, not (NoneType|int)"
    ):
        ua.Dataset.from_source(lambda: given)


def test_anndata_object_raises():
    anndata = pytest.importorskip("anndata")
    with pytest.raises(InputTypeError, match=r"source is an AnnData .* Choose one: adata.X"):
        ua.Dataset.from_source(anndata.AnnData(POINTS))


def test_block_that_is_not_a_table_raises():
    with pytest.raises(InputError, match=r"it returned a block of shape \(\)"):
        ua.Dataset.from_source(lambda: iter([3.0]))


def test_empty_blocks_are_skipped():
    source = GeneratedRows(lambda: iter([POINTS[:0], POINTS[:10], POINTS[:0], POINTS[10:]]))
    assert np.array_equal(source.read(), POINTS)


def test_exhausted_generator_raises():
    once = iter([POINTS[:500], POINTS[500:]])
    source = GeneratedRows(lambda: once)
    with pytest.raises(InputError, match="same rows each time"):
        source.read()


def test_blocks_of_unequal_width_raise():
    source = GeneratedRows(lambda: iter([POINTS[:10], POINTS[:10, :3]]))
    with pytest.raises(InputError, match="every block must have 5 columns"):
        source.read()


def test_files_that_cannot_be_read_by_blocks_raise(tmp_path):
    np.save(tmp_path / "flat.npy", np.zeros(3))
    with pytest.raises(FileError, match="must hold rows × features"):
        as_source(tmp_path / "flat.npy")
    (tmp_path / "text.npy").write_text("no")
    with pytest.raises(FileError, match=r"cannot be read as \.npy"):
        as_source(tmp_path / "text.npy")
    with pytest.raises(InputError, match=r"only \.npy, \.parquet and \.h5ad files"):
        as_source(tmp_path / "a.csv")
    with pytest.raises(InputTypeError, match="source must be an array, a path"):
        as_source(3)
    with pytest.raises(InputError, match="two-dimensional"):
        as_source(np.zeros(3))


def test_truncated_file_raises(tmp_path):
    path = npy(tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(FileError, match="ends early"):
        NpyRows(path).read()


def test_subsample_reads_rows_of_the_source():
    dataset = ua.Dataset.from_source(ArrayRows(POINTS))
    expected = ua.Dataset(POINTS).subsample(50, np.random.default_rng(0))
    found = dataset.subsample(50, np.random.default_rng(0))
    np.testing.assert_array_equal(found.prepared(), expected.prepared())


def test_take_stops_a_generator_after_the_last_row():
    drawn = []

    def blocks():
        for a in range(0, 1000, 100):
            drawn.append(a)
            yield POINTS[a : a + 100]

    source = GeneratedRows(blocks)
    drawn.clear()
    np.testing.assert_array_equal(source.take([150, 3]), POINTS[[150, 3]])
    assert drawn == [0, 100]


def test_take_skips_row_groups_without_wanted_rows(tmp_path, monkeypatch):
    read = []
    original = ParquetRows._row_group

    def recorded(self, group, step):
        read.append(group)
        return original(self, group, step)

    monkeypatch.setattr(ParquetRows, "_row_group", recorded)
    source = as_source(parquet(tmp_path))
    np.testing.assert_array_equal(source.take([650, 10]), POINTS[[650, 10]])
    assert read == [0, 2]
