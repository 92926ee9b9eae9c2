"""Rows of one dataset distributed over an engine: the result is that of threads."""

import os
import signal
from functools import partial

import numpy as np
import pytest

import unaligned as ua
from unaligned import defaults
from unaligned.data.shapes import torus3, torus_angles
from unaligned.engine import Threads, base
from unaligned.engine.base import Progress
from unaligned.errors import InputError
from unaligned.rows import source as sources
from unaligned.rows.reduce import RowPasses
from unaligned.rows.source import RowSource

POINTS = torus3(torus_angles(3000, rng=0))
NOISE = np.random.default_rng(0).normal(size=(3000, 12))
WIDE = POINTS @ np.random.default_rng(0).normal(size=(4, 40))  # products, not differences


@pytest.fixture(autouse=True)
def always(monkeypatch):
    monkeypatch.setattr(defaults, "STREAM_ROWS", 0)
    monkeypatch.setattr(sources, "BLOCK_BYTES", 1 << 12)  # several chunks
    monkeypatch.setattr(base, "available_cores", lambda: 2)  # one process reads rows like threads


def npy(folder, points):
    np.save(folder / "points.npy", points)
    return folder / "points.npy"


def parquet(folder, points):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({f"f{i}": column for i, column in enumerate(points.T)})
    pq.write_table(table, folder / "points.parquet", row_group_size=1250)
    return folder / "points.parquet"


def hdf5(folder, points):
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "points.h5", "w") as file:
        file["X"] = points
    return h5py.File(folder / "points.h5")["X"]


def zarr(folder, points):
    zarr = pytest.importorskip("zarr")
    array = zarr.open(str(folder / "z"), mode="w", shape=points.shape, dtype="f8")
    array[:] = points
    return array


def dask(folder, points):
    return pytest.importorskip("dask.array").from_array(points, chunks=(1250, -1))


def generator(folder, points):
    return partial(np.array_split, points, 7)


def memory(folder, points):
    return points


SOURCES = [npy, parquet, hdf5, zarr, dask, generator, memory]


def signature(source, **options):
    dataset = ua.Dataset.from_source(source, preprocess=options.pop("preprocess", ()))
    return ua.signature(dataset, n_eigenvalues=40, **{"tol": 1e-3, **options})


@pytest.mark.parametrize(
    ("make", "points"),
    [*((make, POINTS) for make in SOURCES), (npy, WIDE)],
    ids=[*(make.__name__ for make in SOURCES), "npy of 40 features"],
)
def test_cluster_and_threads_agree(make, points, client, tmp_path):
    source = make(tmp_path, points)
    bandwidth = "median" if make in (npy, dask) else "mean"
    here = signature(source, bandwidth=bandwidth)
    there = signature(source, bandwidth=bandwidth, engine=client)
    assert here.stats["storage"] == there.stats["storage"] == "streamed"
    assert there.sigma_squared == pytest.approx(here.sigma_squared, rel=1e-12)
    np.testing.assert_allclose(there.values, here.values, rtol=0, atol=1e-8)
    np.testing.assert_allclose(there.error_bound, here.error_bound, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("make", [npy, hdf5, dask, generator])
def test_processes_and_threads_agree(make, tmp_path):
    source = make(tmp_path, POINTS)
    options = {"preprocess": ("arcsinh:5",), "bandwidth": "mean"}
    here, there = signature(source, **options), signature(source, engine="processes", **options)
    np.testing.assert_allclose(there.values, here.values, rtol=0, atol=1e-8)


class Shrinking:
    """Yields fewer rows from the fourth call on: without a block, or without columns."""

    def __init__(self, lost):
        self.lost, self.calls = lost, 0

    def __call__(self):
        self.calls += 1
        blocks = np.array_split(POINTS, 6)
        if self.calls > 3:
            blocks[-1:] = [] if self.lost == "block" else [blocks[-1][:, :1]]
        return iter(blocks)


@pytest.mark.parametrize("lost", ["block", "column"])
@pytest.mark.parametrize("place", ["processes", "client"])
def test_rows_missing_in_a_later_pass_raise_on_every_engine(place, lost, request):
    engine = request.getfixturevalue(place) if place == "client" else place
    message = "returned 2500 rows, but 3000 before" if lost == "block" else "must have 4 columns"
    with pytest.raises(InputError, match=message):
        signature(Shrinking(lost), bandwidth=300.0, engine=engine)


@pytest.mark.parametrize("place", ["processes", "client"])
def test_a_dask_array_may_have_empty_chunks(place, request):
    array = pytest.importorskip("dask.array").from_array
    engine = request.getfixturevalue(place) if place == "client" else place
    here = signature(array(POINTS, chunks=(1500, -1)), bandwidth="mean")
    chunks = ((1500, 0, 1499, 1), (2, 2))
    there = signature(array(POINTS, chunks=chunks), bandwidth="mean", engine=engine)
    np.testing.assert_allclose(there.values, here.values, rtol=0, atol=1e-8)


def test_preprocessed_chunks_stay_on_the_cluster(client, tmp_path, monkeypatch):
    source = dask(tmp_path, POINTS)
    steps = ("arcsinh:5", "standardize", "pca:3")
    here = signature(source, preprocess=steps)
    dataset = ua.Dataset.from_source(source, preprocess=steps)

    def forbidden(*_):
        raise AssertionError("all rows were brought here")

    monkeypatch.setattr(RowSource, "blocks", forbidden)
    there = ua.signature(dataset, n_eigenvalues=40, tol=1e-3, engine=client)
    np.testing.assert_allclose(there.values, here.values, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("rows", "last_pass", "options"),
    [
        (POINTS, "eigenvalues", {}),
        (NOISE, "products", {"solver": "sampled", "tol": 0.3}),
    ],
    ids=["landmarks", "sampled"],
)
def test_a_worker_killed_in_the_last_pass_changes_nothing(
    rows, last_pass, options, own_client, tmp_path, monkeypatch
):
    here, armed, killed = os.getpid(), tmp_path / "armed", tmp_path / "killed"

    def killed_once(block, block_id=None):
        if block_id[0] == 3 and os.getpid() != here and armed.exists() and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    points = pytest.importorskip("dask.array").from_array(rows, chunks=(500, -1))
    dangerous = points.map_blocks(killed_once, dtype=points.dtype, meta=points._meta)
    expected = signature(points, bandwidth="mean", **options)
    reduce = RowPasses.reduce

    def arming(self, function, shared, description="reading"):
        if description == last_pass:
            armed.touch()
        return reduce(self, function, shared, description)

    monkeypatch.setattr(RowPasses, "reduce", arming)
    found = signature(dangerous, bandwidth="mean", engine=own_client, **options)
    assert killed.exists(), "a worker was killed"
    np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=1e-8)


def test_progress_counts_every_row_and_ctrl_c_stops_between_blocks(tmp_path):
    engine = Threads(1, Progress(False))
    shown = []

    class Recorder(Progress):
        def task(self, description, total, **options):
            shown.append((description, total))
            return super().task(description, total, **options)

    engine.progress = Recorder(False)
    passes = RowPasses(ua.Dataset.from_source(npy(tmp_path, POINTS)).prepared_source(), engine)
    assert passes.reduce(lambda rows, start, shared: rows.shape[0], None, "counting") == 3000
    assert shown == [("counting", 3000)]
    seen = []

    def interrupted(rows, start, shared):
        seen.append(start)
        if start >= 1024:
            raise KeyboardInterrupt
        return 0

    with pytest.raises(KeyboardInterrupt, match=r"during counting: \d+ of 3000 rows done"):
        passes.reduce(interrupted, None, "counting")
    assert len(seen) < 3  # 3 would be all
