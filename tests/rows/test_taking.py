"""Few rows of a source: what is not near them is not read."""

import numpy as np
import pytest

from row_files import POINTS, parquet
from unaligned.io.groups import ChosenRows
from unaligned.rows.files import ParquetRows, as_source
from unaligned.rows.source import GeneratedRows, SlicedRows
from unaligned.rows.transforms import prepared_rows

MANY = np.random.default_rng(1).normal(size=(400_000, 2))


class Counted(SlicedRows):
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
def test_only_the_neighbourhood_of_rows_is_read_for_them(rows, most):
    source = Counted(MANY)
    np.testing.assert_array_equal(source.take(rows), MANY[list(rows)])
    assert source.n_read <= most


def test_few_rows_of_some_that_a_mask_marks_are_read_alone():
    source = Counted(MANY)
    found = ChosenRows(source, np.arange(len(MANY)) % 2 == 1).take([3, 0])
    np.testing.assert_array_equal(found, MANY[[7, 1]])
    assert source.n_read <= 7


def test_a_generator_stops_after_the_last_row_that_is_wanted():
    drawn = []

    def blocks():
        for a in range(0, 1000, 100):
            drawn.append(a)
            yield POINTS[a : a + 100]

    source = GeneratedRows(blocks)
    drawn.clear()
    np.testing.assert_array_equal(source.take([150, 3]), POINTS[[150, 3]])
    assert drawn == [0, 100]


def test_row_groups_of_a_parquet_without_wanted_rows_are_passed_over(tmp_path, monkeypatch):
    read = []
    original = ParquetRows._group

    def noting(self, group, step):
        read.append(group)
        return original(self, group, step)

    monkeypatch.setattr(ParquetRows, "_group", noting)
    source = as_source(parquet(tmp_path))
    np.testing.assert_array_equal(source.take([650, 10]), POINTS[[650, 10]])
    assert read == [0, 2]


@pytest.mark.parametrize("step", ["standardize", "pca:1"])
def test_what_a_step_must_know_is_learnt_in_one_pass(step):
    source = Counted(MANY)
    prepared_rows(source, (step,))
    assert source.n_read <= len(MANY) + 256
