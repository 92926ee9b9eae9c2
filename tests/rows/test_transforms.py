"""Chosen rows, and preprocessing by blocks."""

import numpy as np
import pytest

import unaligned as ua
from row_files import POINTS
from unaligned.errors import DataWarning, InputError
from unaligned.rows import transforms
from unaligned.rows.source import ArrayRows, RowSource, SlicedRows
from unaligned.rows.transforms import ChosenRows, preprocessed_rows

MANY = np.random.default_rng(1).normal(size=(400_000, 2))


class CountedRows(SlicedRows):
    """Rows that count how many of them were read."""

    def __init__(self, values):
        self.values, self.n_read = values, 0
        self.n_rows, self.n_features = values.shape

    def between(self, start, stop):
        self.n_read += stop - start
        return self.values[start:stop]


@pytest.mark.parametrize(
    ("rows", "most"),
    [(range(256), 256), ([399_999, 5, 5], 6), ([399_990, 399_995], 6), ([], 0)],
)
def test_take_reads_only_the_slices_around_the_rows(rows, most):
    source = CountedRows(MANY)
    np.testing.assert_array_equal(source.take(rows), MANY[list(rows)])
    assert source.n_read <= most


def test_take_of_chosen_rows_reads_only_those():
    source = CountedRows(MANY)
    taken = ChosenRows(source, np.arange(len(MANY)) % 2 == 1).take([3, 0])
    np.testing.assert_array_equal(taken, MANY[[7, 1]])
    assert source.n_read <= 7


@pytest.mark.parametrize("step", ["standardize", "pca:1"])
def test_fitting_a_step_takes_one_pass(step):
    source = CountedRows(MANY)
    preprocessed_rows(source, (step,))
    assert source.n_read <= len(MANY) + 256


def test_rows_that_are_not_finite_raise_or_are_dropped():
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
def test_preprocessing_by_blocks_equals_preprocessing_in_memory(steps, monkeypatch):
    counts = np.abs(POINTS.astype(np.float64)) + np.array([0.0, 0.0, 0.0, 100.0, 1000.0])
    blocks = [counts[:400], counts[400:401], counts[401:]]
    dataset = ua.Dataset.from_source(lambda: iter(blocks), preprocess=steps)
    monkeypatch.setattr(RowSource, "read", None)  # never all at once
    source = dataset.prepared_source()
    expected = ua.Dataset(counts, preprocess=steps).prepared()
    assert source.shape == expected.shape
    np.testing.assert_allclose(np.concatenate(list(source.blocks(64))), expected, atol=1e-11)
    np.testing.assert_allclose(source.take([999, 3]), expected[[999, 3]], atol=1e-11)


def test_constant_columns_are_only_centred():
    values = POINTS.astype(np.float64)
    values[:, 1] = 1e6 / 3
    dataset = ua.Dataset.from_source(ArrayRows(values), preprocess="standardize")
    expected = ua.Dataset(values, preprocess="standardize").prepared()
    np.testing.assert_allclose(dataset.prepared_source().read(), expected, atol=1e-9)


def test_pca_of_more_components_than_columns_raises():
    dataset = ua.Dataset.from_source(ArrayRows(POINTS), preprocess="pca:6")
    with pytest.raises(InputError, match="'pca:6' needs at least 6 rows and columns"):
        dataset.prepared_source()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("decay", [0.3, 0.9])
def test_pca_of_many_columns_by_subspace_iteration(monkeypatch, seed, decay):
    rng = np.random.default_rng(seed)
    spread = decay ** np.arange(60)
    values = rng.normal(size=(500, 60)) * spread @ np.linalg.qr(rng.normal(size=(60, 60)))[0] + 1e4
    expected = ua.Dataset(values, preprocess="pca:8").prepared()
    monkeypatch.setattr(transforms, "COVARIANCE_COLUMNS", 40)
    source = CountedRows(values)
    found = preprocessed_rows(source, ("pca:8",))
    assert source.n_read <= 5 * len(values) + 256
    np.testing.assert_allclose(found.read(), expected, rtol=0, atol=1e-5)
