import h5py
import numpy as np
import pytest
from scipy import sparse

from unaligned import Dataset
from unaligned.operators.kernel import uneven_columns

UNITS = np.array([1.0, 400.0, 3.0])


def points(n=600, seed=0, units=UNITS):
    return np.random.default_rng(seed).normal(size=(n, len(units))) * units


@pytest.mark.parametrize("seed", range(5))
def test_names_the_columns_with_the_largest_and_the_smallest_spread(seed):
    dataset = Dataset(points(seed=seed), feature_names=["age", "income", "rooms"])
    found = uneven_columns(dataset)
    assert (found.large, found.small) == ("column 'income'", "column 'age'")
    assert 250 < found.ratio < 650
    assert uneven_columns(Dataset(points(seed=seed))).large == "column 1"


@pytest.mark.parametrize("seed", range(5))
def test_spreads_within_a_hundredfold_pass(seed):
    assert uneven_columns(Dataset(points(seed=seed, units=[1.0, 40.0, 3.0]))) is None


def test_columns_that_are_constant_or_nearly_so_do_not_count():
    values = points(units=[1.0, 2.0, 1.0, 1.0])
    values[:, 2] = 5.0
    values[:, 3] = 0.0
    values[::50, 3] = 1e-3
    assert uneven_columns(Dataset(values)) is None
    values[:, 3] = np.arange(600) % 7 == 0  # a flag has a spread, though its quartiles are equal
    assert uneven_columns(Dataset(values)) is None
    values[:, 3] *= 1e4
    assert uneven_columns(Dataset(values)).large == "column 3"


def test_few_far_rows_make_no_spread():
    values = points(units=[1.0, 1.0, 1.0])
    values[:5, 1] = 1e6
    assert uneven_columns(Dataset(values)) is None


@pytest.mark.parametrize("seed", range(5))
def test_spreads_that_fall_like_those_of_principal_components_pass(seed):
    units = 10.0 ** -np.linspace(0, 4, 12)
    scores = points(seed=seed, units=units)
    assert uneven_columns(Dataset(scores)) is None
    shuffled = scores[:, np.random.default_rng(seed).permutation(12)]
    assert uneven_columns(Dataset(shuffled)) is not None
    assert uneven_columns(Dataset(scores[:, ::-1])) is not None


def test_steps_of_rows_are_applied_first():
    counts = np.random.default_rng(0).poisson([[3.0, 5000.0]], size=(500, 2)).astype(float)
    counts[:, 1] *= 100
    assert uneven_columns(Dataset(counts)) is not None
    assert uneven_columns(Dataset(counts, preprocess="log1p")) is None
    assert uneven_columns(Dataset(counts, preprocess="standardize")) is None
    assert uneven_columns(Dataset(counts, preprocess=["standardize", "pca:2"])) is None
    assert uneven_columns(Dataset(counts, preprocess="pca:2")) is not None
    # The error of the step is for the computation, which knows all rows.
    assert uneven_columns(Dataset(points(), preprocess="log1p")) is None


@pytest.mark.parametrize("preprocess", [(), "log1p"])
def test_columns_of_one_unit_may_differ(preprocess):
    counts = np.random.default_rng(0).poisson(3.0, size=(300, 3)) * [1.0, 1e6, 1.0]
    dataset = Dataset(counts, shared_unit=True, preprocess=preprocess)
    assert uneven_columns(dataset) is None
    assert uneven_columns(dataset.with_options(name="renamed")) is None
    assert uneven_columns(dataset.take(np.arange(100))) is None


@pytest.mark.parametrize("shape", [(19, 3), (300, 1), (300, 201)])
def test_too_few_rows_and_one_or_many_columns_are_not_checked(shape):
    values = np.random.default_rng(0).normal(size=shape)
    values[:, 0] *= 1e6
    assert uneven_columns(Dataset(values)) is None


def test_only_points_have_columns():
    covariance = np.diag([1.0, 1e6] * 15)
    assert uneven_columns(Dataset(covariance, kind="spd")) is None


def test_huge_values_raise_nothing():
    values = points()
    values[:, 1] *= 1e305
    assert uneven_columns(Dataset(values)).large == "column 1"


def test_sparse_and_lazy_data_agree_with_dense(tmp_path):
    values = points(3000)
    values[values < 0] = 0
    dense = uneven_columns(Dataset(values))
    assert uneven_columns(Dataset(sparse.csr_array(values))) == dense
    assert uneven_columns(Dataset(values.astype(np.float32))).large == dense.large
    np.save(tmp_path / "x.npy", values)
    lazy = uneven_columns(Dataset.from_source(tmp_path / "x.npy"))
    assert lazy[:2] == dense[:2]
    assert 0.5 < lazy.ratio / dense.ratio < 2  # of two samples of 256 rows
    with h5py.File(tmp_path / "x.h5", "w") as file:
        assert uneven_columns(Dataset(file.create_dataset("x", data=values))) == lazy


def test_lazy_data_is_not_read_again():
    reads = 0

    def blocks():
        nonlocal reads
        reads += 1
        yield from np.split(points(3000), 6)

    dataset = Dataset.from_source(blocks)
    before = reads
    assert uneven_columns(dataset) is not None
    assert reads == before


def test_sorted_rows_have_the_spread_of_all_rows():
    values = points(100_000, units=[1.0, 1.0, 1.0])
    values[:, 0].sort()
    assert uneven_columns(Dataset(values)) is None
    assert uneven_columns(Dataset.from_source(lambda: iter(np.split(values, 10)))) is None


@pytest.mark.parametrize("n_chunks", [3, 60])
def test_large_dask_arrays_sample_every_chunk(n_chunks, monkeypatch):
    dask = pytest.importorskip("dask.array")
    monkeypatch.setattr("unaligned.defaults.LAZY_BYTES", 1 << 10)
    values = points(6000)
    values[:, 2].sort()
    values[7] = np.nan
    array = dask.from_array(values, chunks=(6000 // n_chunks, 3))
    with pytest.warns(UserWarning, match="dropped 1 of 6000"):
        dataset = Dataset(array, nan_policy="omit")
    assert dataset.is_lazy
    found = uneven_columns(dataset)
    assert found.large == "column 1"
    assert 250 < found.ratio < 650
