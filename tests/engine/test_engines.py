"""Threads, processes and a Dask cluster give the same results."""

import itertools
import operator
import os
import pickle
import signal
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from joblib import Parallel, delayed

import unaligned as ua
from unaligned import errors
from unaligned.engine import Task, resolve_engine, steps
from unaligned.engine.processes import Processes
from unaligned.engine.threads import thread_count
from unaligned.errors import (
    DataWarning,
    DegenerateDataError,
    EngineError,
    InputError,
    InputTypeError,
    MissingExtraError,
)

RNG = np.random.default_rng(0)
CLOUDS = {f"{n} × {d}": RNG.normal(size=(n, d)) for n, d in ((520, 2), (600, 3), (700, 5))}


@pytest.fixture(params=["threads", "processes", "client", "address"])
def options(request):
    """Options that select an engine."""
    if request.param == "threads":
        return {"n_jobs": 2}
    if request.param == "processes":
        return {"engine": "processes"}
    client = request.getfixturevalue("client")
    address = client.scheduler.address
    return {"engine": client if request.param == "client" else address}


@pytest.mark.parametrize("distance", ["les", "cka"])  # once per dataset, once per pair
def test_every_engine_gives_the_same_distances(options, distance):
    data = {name: points[:120] for name, points in CLOUDS.items()}
    here = ua.compare(data, distance=distance)
    there = ua.compare(data, distance=distance, **options)
    np.testing.assert_allclose(there.distances, here.distances, rtol=0, atol=1e-8)
    np.testing.assert_allclose(there.error_bounds, here.error_bounds, rtol=1e-6)


@pytest.mark.parametrize("solver", ["krylov", "landmarks", "nystrom"])
def test_every_engine_gives_the_same_signature(options, solver):
    options = {"engine": options.get("engine")}
    settings = {"n_eigenvalues": 40, "solver": solver, "tol": 1e-2}
    here = ua.signature(CLOUDS["600 × 3"], **settings)
    there = ua.signature(CLOUDS["600 × 3"], **settings, **options)
    np.testing.assert_allclose(there.values, here.values, rtol=0, atol=1e-8)
    assert there.stats["seconds_solver"] != here.stats["seconds_solver"], "it was computed again"


def test_a_comparison_grows_on_any_engine(options):
    first, second, third = CLOUDS.items()
    here = ua.compare(dict([first, second, third]), n_eigenvalues=20)
    grown = ua.compare(dict([first, second]), n_eigenvalues=20).add(dict([third]), **options)
    np.testing.assert_allclose(grown.distances, here.distances, rtol=0, atol=1e-8)


def test_distance_takes_an_engine(client):
    a, b, _ = CLOUDS.values()
    assert ua.distance(a, b, engine=client) == pytest.approx(ua.distance(a, b), abs=1e-8)


def powers(shared, item):
    return np.full(3, float(shared) ** item)


def test_reduce_sums_the_results(options):
    with resolve_engine(**options) as engine:
        for count in (1, 2, 9, 70):
            task, items = Task("adding", count), iter(range(count))
            total = engine.reduce(powers, items, operator.iadd, shared=2, advance=task)
            np.testing.assert_array_equal(total, np.full(3, 2.0**count - 1))
            assert task.done == count


def test_items_are_consumed_only_a_little_ahead(options):
    taken = []
    with resolve_engine(**options) as engine:
        endless = engine.map(powers, (taken.append(i) or i for i in itertools.count()), shared=2)
        assert [part[0] for part in itertools.islice(endless, 3)] == [1.0, 2.0, 4.0]
        endless.close()
    assert len(taken) < 30


def test_dask_object_is_computed_on_the_cluster(client):
    dask = pytest.importorskip("dask")
    items = [dask.delayed(operator.add)(i, 1) for i in range(3)]
    with resolve_engine(client) as engine:
        assert list(engine.map(operator.mul, items, shared=10)) == [10, 20, 30]


def warning(shared, item):
    errors.warn(f"beware of {item % 2}", DataWarning)
    return item


def test_warning_is_issued_once_at_the_users_line(options):
    with resolve_engine(**options) as engine, warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert list(engine.map(warning, range(6))) == list(range(6))
    assert sorted(str(note.message) for note in seen) == ["beware of 0", "beware of 1"]
    assert {note.filename for note in seen} == {__file__}


def test_error_keeps_its_type_and_message(options):
    data = {"good": CLOUDS["520 × 2"], "flat": np.ones((520, 2))}
    with pytest.raises(DegenerateDataError, match="dataset 'flat'"):
        ua.compare(data, **options)


@pytest.mark.parametrize("name", [n for n in errors.__all__ if n.endswith("Error")])
def test_errors_can_be_pickled(name):
    made = getattr(errors, name)
    error = made("POT", "transport", "distance 'x'") if name == "MissingExtraError" else made("!")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is made
    assert str(again) == str(error)


def test_a_function_of_any_kind_can_be_sent(options):
    a, b, _ = CLOUDS.values()
    factor = 3.0
    here = {"a": a, "b": b}
    found = ua.compare(here, distance=lambda x, y: factor * abs(len(x) - len(y)), **options)
    assert found.distances[0, 1] == 3.0 * 80


@pytest.mark.parametrize(
    ("place", "label"), [("processes", "engine='processes'"), ("client", "A Dask cluster")]
)
def test_unpicklable_object_raises(place, label, request):
    engine = request.getfixturevalue(place) if place == "client" else place
    lock = threading.Lock()

    def locked(x, y):
        return float(lock.locked())

    with pytest.raises(InputError, match=rf"{label} sends data and settings.*lock' object\. Pass"):
        ua.compare([CLOUDS["520 × 2"]] * 2, distance=locked, engine=engine)


def die(shared, item):
    os.kill(os.getpid(), signal.SIGKILL)


def test_killed_process_raises():
    with pytest.raises(EngineError, match=r"worker process ended unexpectedly.*n_jobs"):
        list(Processes(2).map(die, range(2)))


def slowly(shared, item):
    time.sleep(0.05)
    return item


def test_client_closed_during_a_run_raises(client):
    distributed = pytest.importorskip("dask.distributed")
    other = distributed.Client(client.scheduler.address, set_as_default=False)
    closed_during_a_run_raises(other, other.close)


def test_cluster_closed_during_a_run_raises(own_client):
    closed_during_a_run_raises(own_client, own_client.cluster.close)


def closed_during_a_run_raises(client, close):
    with resolve_engine(client) as engine:
        results = engine.map(slowly, range(100))
        next(results)
        close()
        with pytest.raises(EngineError, match=r"Dask cluster (dropped a job|was closed) "):
            list(results)
        with pytest.raises(EngineError, match=r"Dask cluster was closed during the run"):
            list(engine.map(slowly, range(3)))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"engine": "proceses"}, InputError, r"engine='proceses' must be None \(threads\), 'pro"),
        ({"engine": 4}, InputTypeError, r"engine=4 must be None .* or the address of a Dask"),
        ({"engine": "tcp://x:1", "n_jobs": 2}, InputError, r"n_jobs=2 has no effect on a Dask"),
        ({"engine": "nonsense://x"}, InputError, r"engine='nonsense://x': no Dask scheduler"),
    ],
)
def test_invalid_engines_raise(options, error, message):
    with pytest.raises(error, match=message):
        ua.compare(list(CLOUDS.values()), **options)


def test_closed_client_and_cluster_object_raise(client):
    distributed = pytest.importorskip("dask.distributed")
    closed = distributed.Client(client.scheduler.address, set_as_default=False)
    closed.close()
    with pytest.raises(InputError, match=r"engine=.* is closed"):
        ua.compare(CLOUDS, engine=closed)
    with pytest.raises(
        InputTypeError, match=r"must be None \(threads\).* a dask.distributed.Client"
    ):
        ua.compare(CLOUDS, engine=client.cluster)


def test_a_missing_dask_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask.distributed", None)
    with pytest.raises(MissingExtraError, match=r"needs the package.*unaligned\[dask\]"):
        ua.signature(CLOUDS["520 × 2"], engine="tcp://127.0.0.1:8786")


def test_only_own_clients_are_closed(client):
    def clients():
        return client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.clients))

    before = clients()
    ua.compare(CLOUDS, engine=client.scheduler.address, n_eigenvalues=5)
    ua.compare(CLOUDS, engine=client, n_eigenvalues=5)
    assert client.status == "running"
    assert clients() == before


def fail_at(position, item):
    """Fail soon at one item, and take long for all others."""
    if item == position:
        time.sleep(0.05)
        raise KeyError("boom")
    for _ in steps(range(12_000), 12_000, "waiting"):  # threads stop between steps
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("place", "position"),
    [("threads", 0), ("threads", 1), ("processes", 0), ("processes", 1), ("own_client", 1)],
)
def test_error_stops_other_jobs_on_every_engine(place, position, request):
    if place == "own_client":
        options = {"engine": request.getfixturevalue(place)}
    else:  # two jobs on one core too
        options = {"n_jobs": 2, "engine": None if place == "threads" else place}
    with resolve_engine(**options) as engine:
        assert list(engine.map(pow, [1, 2], shared=2)) == [2, 4]  # the workers are there
        started = time.perf_counter()
        with pytest.raises(KeyError, match="boom"):
            list(engine.map(fail_at, range(2), shared=position))
        assert time.perf_counter() - started < 60.0, "the other job would take 120 s"


def test_killed_worker_does_not_change_the_comparison(own_client, tmp_path):
    here, first = os.getpid(), tmp_path / "killed"

    def killed_once(x, y):
        if len(x) + len(y) == 11 and os.getpid() != here and not first.exists():
            first.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return float(len(y) - len(x))

    data = [np.ones((i + 3, 2)) for i in range(6)]
    expected = ua.compare(data, distance=killed_once)
    found = ua.compare(data, distance=killed_once, engine=own_client)
    assert first.exists(), "a worker was killed"
    np.testing.assert_array_equal(found.distances, expected.distances)


def test_job_of_a_cluster_uses_one_core_and_restores_the_worker(client):
    def threads(*_):
        return thread_count()

    (before,) = set(client.run(threads).values())
    with resolve_engine(client) as engine:
        assert set(engine.map(threads, range(8))) == {1}
    assert set(client.run(threads).values()) == {before}


def test_joblib_works_after_our_processes():
    def square(_, x):
        return x**2

    with resolve_engine("processes", 2) as engine:
        assert list(engine.map(square, [1, 2])) == [1, 4]
    assert Parallel(n_jobs=2)(delayed(str)(i) for i in (1, 2)) == ["1", "2"]
