"""Passes over rows: changed rows raise, and every worker gets several jobs."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from unaligned.engine import Engine, Threads
from unaligned.errors import InputError, InputTypeError
from unaligned.rows.files import NpyRows, as_source
from unaligned.rows.reduce import RowPasses, numbers_from
from unaligned.rows.source import TILE_ROWS, ArrayRows, GeneratedRows
from unaligned.rows.transforms import ChosenRows, MappedRows

AT = np.array([5.0, 1000.0])
POINTS = AT + np.random.default_rng(0).normal(size=(30_000, 2))


class RemoteEngine(Engine):
    """Runs jobs here as a remote engine would, and records their sizes."""

    remote = True

    def __init__(self, n_workers=2):
        super().__init__(n_workers)
        self.sizes = []

    def _results(self, function, items, shared):
        for item in items:
            self.sizes.append(getattr(item, "n_rows", None))
            yield function(shared, item), []


@pytest.fixture(params=[Threads, RemoteEngine])
def engine(request):
    return request.param(2)


def count(rows, start, shared):
    return rows.shape[0]


def squares(rows, start, shared):
    return (rows**2).sum()


class ChangingBlocks:
    """Blocks of 10,000 rows, of which the last one changes at the fifth call.

    The calls before count the rows, summarise them, read some for the centre, and are a pass.
    """

    def __init__(self, change):
        self.change, self.calls = change, 0

    def __call__(self):
        self.calls += 1
        for start in range(0, 30_000, 10_000):
            rows = POINTS[start : start + 10_000]
            yield self.change(rows) if start == 20_000 and self.calls > 4 else rows


def redrawn(rows):
    return AT + np.random.default_rng(1).normal(size=rows.shape)


def one_changed(rows):
    return np.vstack([rows[:-1], rows[-1:] + 1e-2])


CHANGES = {
    "lost rows": (
        lambda rows: rows[:100],
        r"returned 20100 rows, but 30000 before\. .* same rows",
    ),
    "lost columns": (lambda rows: rows[:, :1], r"shape \(.*, 1\) after 20000 rows; .* 2 columns"),
    "text": (lambda rows: rows.astype(str), r"must hold real numbers; it holds text"),
    "one NaN": (
        lambda rows: np.where(rows == rows[-1, 0], np.nan, rows),
        r"after 28\d{3} rows returned NaN or infinity, but none before\. .* same rows",
    ),
    "infinity": (
        lambda rows: np.where(rows == rows[0], np.inf, rows),
        r"returned NaN or infinity",
    ),
    "redrawn": (redrawn, r"returned other rows than before: the mean of column \d is .*, but was"),
    "one row": (
        one_changed,
        r"returned other rows than before: the mean of column \d is .*, but was",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_rows_that_change_between_passes_raise(name, engine):
    change, message = CHANGES[name]
    source = GeneratedRows(ChangingBlocks(change))
    passes = RowPasses(source, engine)
    assert passes.reduce(count, None) == 30_000
    with pytest.raises(InputTypeError if name == "text" else InputError, match=message):
        passes.reduce(count, None)


def test_file_written_between_passes_raises(engine, tmp_path):
    path = tmp_path / "points.npy"
    np.save(path, POINTS)
    passes = RowPasses(NpyRows(path), engine)
    np.save(path, np.vstack([POINTS[:-1], POINTS[:1]]))
    with pytest.raises(InputError, match=r"NpyRows\(30000 × 2\) returned other rows than before"):
        passes.reduce(count, None)


def test_preprocessed_rows_that_change_raise(engine):
    source = MappedRows(GeneratedRows(ChangingBlocks(redrawn)), partial(np.multiply, 2.0))
    passes = RowPasses(source, engine)
    np.testing.assert_allclose(passes.mean, 2.0 * POINTS.mean(axis=0))
    assert passes.reduce(count, None) == 30_000
    with pytest.raises(InputError, match=r"MappedRows.* returned other rows than before"):
        passes.reduce(count, None)


@pytest.mark.parametrize("mapped", [False, True])
def test_rows_beside_others_far_away_keep_their_digits(mapped, engine):
    rows = np.random.default_rng(0).normal(size=(3000, 2))
    rows[:20] += 1e5
    source = ArrayRows(rows)
    passes = RowPasses(MappedRows(source, partial(np.multiply, 2.0)) if mapped else source, engine)
    found = passes.take(np.arange(3000)) / (2.0 if mapped else 1.0)
    for group in (slice(20), slice(20, 3000)):
        near = found[group] - found[group][0]
        np.testing.assert_allclose(near, rows[group] - rows[group][0], rtol=0, atol=4e-15)


def test_taken_rows_that_become_nan_raise():
    passes = RowPasses(GeneratedRows(ChangingBlocks(lambda rows: rows * np.nan)))
    wanted = [29_999, 3]
    np.testing.assert_array_equal(passes.take(wanted), POINTS[wanted] - passes.centre)
    with pytest.raises(
        InputError, match=r"GeneratedRows.* returned NaN or infinity, but none before"
    ):
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
def test_rounding_is_not_a_change(values, engine):
    assert RowPasses(ArrayRows(values), engine).reduce(count, None) == 50_000


@pytest.mark.parametrize("n_workers", [1, 2, 8])
def test_every_worker_gets_several_jobs_of_the_same_tiles(n_workers):
    values = np.random.default_rng(0).normal(size=(400_000, 3))
    there, seen = RemoteEngine(n_workers), []

    def record(rows, start, shared):
        seen.append((start, rows.shape[0]))
        return 0

    RowPasses(ArrayRows(values), Threads(1)).reduce(record, None)
    here, seen[:] = sorted(seen), []
    RowPasses(ArrayRows(values), there).reduce(record, None)
    assert seen == here
    assert 3 * n_workers <= len(there.sizes) <= 4 * n_workers + 1
    assert len(set(there.sizes[:-1])) == 1


@pytest.mark.parametrize("sizes", [(30_000,), (9_999, 1, 20_000), (100, 15_000, 14_900)])
def test_tiles_end_at_the_same_rows_in_blocks_of_any_size(sizes, engine):
    ends, seen = np.cumsum((0, *sizes)), []

    def record(rows, start, shared):
        seen.append((start, start + rows.shape[0]))
        return 0

    blocks = [POINTS[a:b] for a, b in pairwise(ends)]
    RowPasses(GeneratedRows(lambda: iter(blocks)), engine).reduce(record, None)
    starts = {start for start, _ in seen}
    assert starts >= {*range(0, 30_000, TILE_ROWS), *ends[:-1].tolist()}
    assert len(seen) == len(starts)
    assert sum(stop - start for start, stop in seen) == 30_000


def test_large_block_of_a_generator_is_divided_into_jobs():
    there = RemoteEngine(4)
    passes = RowPasses(GeneratedRows(lambda: iter([POINTS])), there)
    found = passes.reduce(squares, None)
    assert found == pytest.approx(((POINTS - passes.centre) ** 2).sum(), rel=1e-12)
    assert len(there.sizes) > 8


def test_empty_chunks_are_skipped(engine):
    dask = pytest.importorskip("dask.array")
    array = dask.from_array(POINTS, chunks=((15_000, 0, 14_999, 1, 0), (1, 1)))
    assert RowPasses(as_source(array), engine).reduce(count, None) == 30_000
    few = ChosenRows(ArrayRows(POINTS), np.arange(30_000) >= 29_990)
    assert RowPasses(few, engine).reduce(count, None) == 10
    bad = POINTS.copy()
    bad[:20_000] = np.nan
    finite = ChosenRows(ArrayRows(bad), np.isfinite(bad).all(axis=1))
    assert RowPasses(finite, engine).reduce(count, None) == 10_000


@pytest.mark.parametrize("first", [0, 2, 1000])
def test_random_numbers_of_a_row_do_not_depend_on_the_tile(first):
    stream = numbers_from(3, 0, 1100)
    np.testing.assert_array_equal(numbers_from(3, first, 100), stream[first : first + 100])
