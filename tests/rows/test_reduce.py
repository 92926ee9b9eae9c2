"""Passes over rows: the same rows every time or an error, and work for every worker."""

from functools import partial

import numpy as np
import pytest

from unaligned.engine import Engine, Threads
from unaligned.errors import InputError, InputTypeError
from unaligned.io.groups import ChosenRows
from unaligned.rows.files import NpyRows, as_source
from unaligned.rows.reduce import Centre, RowPasses
from unaligned.rows.source import ArrayRows, GeneratedRows
from unaligned.rows.transforms import FiniteRows, MappedRows

AT = np.array([5.0, 1000.0])
POINTS = AT + np.random.default_rng(0).normal(size=(30_000, 2))


class Elsewhere(Engine):
    """Does what engines elsewhere do with jobs, here, and notes their sizes."""

    remote = True

    def __init__(self, n_workers=2):
        super().__init__(n_workers)
        self.sizes = []

    def _results(self, function, items, shared):
        for item in items:
            self.sizes.append(getattr(item, "n_rows", None))
            yield function(shared, item), []


@pytest.fixture(params=[Threads, Elsewhere])
def engine(request):
    return request.param(2)


def count(rows, start, shared):
    return rows.shape[0]


def squares(rows, start, shared):
    return (rows**2).sum()


class Changing:
    """Blocks of 10,000 rows whose last one is changed from the second pass after the first on."""

    def __init__(self, change):
        self.change, self.calls = change, 0

    def __call__(self):
        self.calls += 1
        for start in range(0, 30_000, 10_000):
            rows = POINTS[start : start + 10_000]
            yield self.change(rows) if start == 20_000 and self.calls > 3 else rows


def redrawn(rows):
    return AT + np.random.default_rng(1).normal(size=rows.shape)


def one_changed(rows):
    return np.vstack([rows[:-1], rows[-1:] + 1e-2])


CHANGES = {
    "lost rows": (lambda rows: rows[:100], r"gave 20100 rows, and 30000 before\. .* same rows"),
    "lost columns": (lambda rows: rows[:, :1], r"shape \(.*, 1\) after 20000 rows; .* 2 columns"),
    "text": (lambda rows: rows.astype(str), r"must hold real numbers; it holds text"),
    "one NaN": (
        lambda rows: np.where(rows == rows[-1, 0], np.nan, rows),
        r"after 28\d{3} rows gave NaN or infinity, and none before\. .* same rows",
    ),
    "infinity": (lambda rows: np.where(rows == rows[0], np.inf, rows), r"gave NaN or infinity"),
    "drawn anew": (redrawn, r"gave other rows than before: the mean of column \d is .*, and was"),
    "one row": (one_changed, r"gave other rows than before: the mean of column \d is .*, and was"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_rows_that_change_between_passes_are_refused(name, engine):
    change, message = CHANGES[name]
    source = GeneratedRows(Changing(change))
    passes = RowPasses(source, engine)
    assert passes.reduce(count, None) == 30_000
    with pytest.raises(InputTypeError if name == "text" else InputError, match=message):
        passes.reduce(count, None)


def test_a_file_that_is_written_meanwhile_is_refused(engine, tmp_path):
    path = tmp_path / "points.npy"
    np.save(path, POINTS)
    passes = RowPasses(NpyRows(path), engine)
    np.save(path, np.vstack([POINTS[:-1], POINTS[:1]]))
    with pytest.raises(InputError, match=r"NpyRows\(30000 × 2\) gave other rows than before"):
        passes.reduce(count, None)


def test_preprocessed_rows_that_change_are_refused(engine):
    source = MappedRows(GeneratedRows(Changing(redrawn)), partial(np.multiply, 2.0))
    passes = RowPasses(source, engine, Centre(2.0 * POINTS.mean(axis=0), 2010.0))
    for _ in range(2):
        assert passes.reduce(count, None) == 30_000
    with pytest.raises(InputError, match=r"MappedRows.* gave other rows than before"):
        passes.reduce(count, None)


def test_single_rows_that_turn_to_nan_are_refused():
    passes = RowPasses(GeneratedRows(Changing(lambda rows: rows * np.nan)))
    wanted = [29_999, 3]
    np.testing.assert_allclose(passes.take(wanted), POINTS[wanted] - POINTS.mean(axis=0))
    with pytest.raises(InputError, match=r"GeneratedRows.* gave NaN or infinity, and none before"):
        passes.take(wanted)


@pytest.mark.parametrize(
    "values",
    [
        np.full((50_000, 3), 0.1),
        np.random.default_rng(0).normal(size=(50_000, 3)) * [1e-12, 1.0, 1e120],
        np.random.default_rng(0).standard_cauchy(size=(50_000, 3)) + 1e9,
        np.random.default_rng(0).integers(0, 2, size=(50_000, 3)),
        np.zeros((50_000, 3)),
    ],
    ids=["constant", "scales", "outliers far away", "binary", "zero"],
)
def test_rounding_is_no_change(values, engine):
    assert RowPasses(ArrayRows(values), engine).reduce(count, None) == 50_000


@pytest.mark.parametrize("n_workers", [1, 2, 8])
def test_every_worker_has_several_jobs_and_the_pieces_are_the_same(n_workers):
    values = np.random.default_rng(0).normal(size=(400_000, 3))
    there, seen = Elsewhere(n_workers), []

    def note(rows, start, shared):
        seen.append((start, rows.shape[0]))
        return 0

    RowPasses(ArrayRows(values), Threads(1)).reduce(note, None)
    here, seen[:] = sorted(seen), []
    RowPasses(ArrayRows(values), there).reduce(note, None)
    assert seen == here
    assert 3 * n_workers <= len(there.sizes) <= 4 * n_workers + 1
    assert len(set(there.sizes[:-1])) == 1


def test_a_large_block_of_a_function_is_shared_out():
    there = Elsewhere(4)
    found = RowPasses(GeneratedRows(lambda: iter([POINTS])), there).reduce(squares, None)
    assert found == pytest.approx(((POINTS - POINTS.mean(axis=0)) ** 2).sum(), rel=1e-12)
    assert len(there.sizes) > 8


def test_chunks_and_groups_without_rows_are_passed_over(engine):
    dask = pytest.importorskip("dask.array")
    array = dask.from_array(POINTS, chunks=((15_000, 0, 14_999, 1, 0), (1, 1)))
    assert RowPasses(as_source(array), engine).reduce(count, None) == 30_000
    few = ChosenRows(ArrayRows(POINTS), np.arange(30_000) >= 29_990)
    assert RowPasses(few, engine).reduce(count, None) == 10
    bad = POINTS.copy()
    bad[:20_000] = np.nan
    assert RowPasses(FiniteRows(ArrayRows(bad)), engine).reduce(count, None) == 10_000
