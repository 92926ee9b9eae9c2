"""Wrong values in our own files give a `FileError` that names the file, or a result that works."""

import json
import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import unaligned as ua
from fuzzing import mutated
from fuzzing import mutations as mutations_of_bytes
from unaligned.errors import FileError, UnalignedError
from unaligned.store.history import History

WRONG = [None, "", "<b>", 0, -1, 1.5, 1e308, True, [], ["x"], {}, {"x": 1}]
ARRAYS = [np.array(0.0), np.empty(0), np.zeros((1, 1)), np.array(["x"]), np.zeros((3, 3, 3))]


def cloud(seed, d=2):
    return np.random.default_rng(seed).normal(size=(120, d))


def monitor():
    found = ua.DriftMonitor(cloud(0), block_size=10, rng=0)
    found.check(cloud(1))
    return found


def use_comparison(found, tmp_path):
    repr(found)
    found.report(tmp_path / "out.html")
    found.save(tmp_path / "again.npz")


def use_monitor(found, tmp_path):
    repr(found)
    found.check(cloud(2))
    found.report(tmp_path / "out.html")


CLOUDS = {"a": cloud(0), "b": cloud(1), "c": cloud(2, 3)}
KINDS = {
    "signature": (
        lambda: ua.signature(ua.Dataset(cloud(0), name="a"), n_eigenvalues=6),
        ua.Signature.load,
        lambda found, _: (repr(found), found.values, found.error_bound),
    ),
    "comparison": (
        lambda: ua.compare(CLOUDS, n_eigenvalues=6),
        ua.Comparison.load,
        use_comparison,
    ),
    "descriptors": (
        lambda: ua.compare(CLOUDS, distance="imd"),
        ua.Comparison.load,
        use_comparison,
    ),
    "inference": (
        lambda: ua.compare(CLOUDS, inference=True),
        ua.Comparison.load,
        use_comparison,
    ),
    "monitor": (monitor, ua.DriftMonitor.load, use_monitor),
}


def places(value, at=()):
    """Yield the places of all values inside lists and dicts."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*at, key)
        if isinstance(inner, (dict, list)):
            yield from places(inner, (*at, key))


def replaced(header, place, value):
    """Return a copy of a header with another value at one place."""
    copy = json.loads(json.dumps(header))
    inside = copy
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    return copy


def mutations(path):
    """Yield the members of an archive with one value of the header, or one array, replaced."""
    with np.load(path) as stored:
        arrays = dict(stored)
    header = json.loads(arrays["header"].tobytes())
    for place in places(header):
        for value in WRONG:
            text = json.dumps(replaced(header, place, value)).encode()
            yield (place, value), {**arrays, "header": np.frombuffer(text, np.uint8)}
    for name in arrays.keys() - {"header"}:
        for values in ARRAYS:
            yield (name, values.shape), {**arrays, name: values}


def loaded(load, path):
    """Return what a file has, or None where an error that names it says why not."""
    try:
        return load(path)
    except FileError as error:
        if path.name not in str(error):
            raise AssertionError(f"The file is not named: {error}") from error


@pytest.fixture(params=KINDS)
def saved(request, tmp_path):
    make, load, use = KINDS[request.param]
    path = tmp_path / "file.npz"
    make().save(path)
    return path, load, use


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("step", [pytest.param(7, marks=pytest.mark.slow), 29])
def test_wrong_value_in_an_archive_is_an_error_or_harmless(saved, tmp_path, step):
    path, load, use = saved
    for what, members in list(mutations(path))[::step]:
        np.savez(path, **members)
        try:
            if (found := loaded(load, path)) is not None:
                with suppress(UnalignedError):
                    use(found, tmp_path)
        except Exception as error:
            raise AssertionError(f"{what}: {error!r}") from error


def a_store(path):
    store = ua.Store(path)
    for name, points in CLOUDS.items():
        np.save(path.parent / f"{name}.npy", points)
        found = ua.signature(ua.Dataset(points, name=name), n_eigenvalues=6)
        origin = {"path": str(path.parent / f"{name}.npy"), "options": {"kind": "points"}}
        found = replace(found, stats={**found.stats, "origin": origin})
        store.add(found, tags={"half": "first"})


def use_store(store):
    """Call what reads a store; one call that raises must not hide another."""
    calls = [
        store.records,
        lambda: store.to_frame(),
        lambda: store.options,
        lambda: store.nearest(cloud(5)),
        lambda: store.nearest(cloud(5)[:60], subsample="common"),
        lambda: store.nearest(cloud(5), aggregate="mean", by="half"),
        lambda: store.get("a"),
        lambda: store.tag("a", {"more": 1}),
        lambda: store.add(ua.signature(cloud(0), n_eigenvalues=6), name="new"),
        lambda: store.export(store.path.with_suffix(".json")),
    ]
    for call in calls:
        try:
            call()
        except UnalignedError as error:
            yield str(error)


VALUES = [b"\0", b"\xff" * 16, "no", "{}", "[]", "3", '{"a": 1}', '{"stats": []}', 0, -1, 2**62]
COLUMNS = {
    "signatures": "name fingerprint n_samples n_features n_eigenvalues error_bound recipe details "
    "tags version created",
    "vectors": "data",
    "spectra": "eigenvalues lower upper",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("table", COLUMNS)
def test_wrong_value_in_a_store_is_an_error_that_names_it_or_harmless(table, tmp_path):
    original, path = tmp_path / "original.db", tmp_path / "store.db"
    a_store(original)
    n_errors = 0
    for column, value in product(COLUMNS[table].split(), VALUES):
        shutil.copy(original, path)
        with closing(sqlite3.connect(path)) as db, db:
            db.execute(f"UPDATE {table} SET {column} = ? WHERE id = 1", (value,))
        for message in use_store(ua.Store(path)):
            n_errors += "store.db" in message
    assert n_errors > 20


@pytest.mark.filterwarnings("ignore")
def test_wrong_values_of_an_origin_are_a_warning(tmp_path):
    path = tmp_path / "store.db"
    a_store(path)
    with closing(sqlite3.connect(path)) as db:
        (details,) = db.execute("SELECT details FROM signatures WHERE id = 1").fetchone()
    header = json.loads(details)
    for at, value in product(places(header["stats"]["origin"]), WRONG):
        origin = replaced(header["stats"]["origin"], at, value)
        text = json.dumps(replaced(header, ("stats", "origin"), origin))
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("UPDATE signatures SET details = ? WHERE id = 1", (text,))
        assert len(ua.Store(path).nearest(cloud(5)[:60], subsample="common")) == 3


def test_wrong_vector_and_missing_rows_of_a_store_are_errors(tmp_path):
    path = tmp_path / "store.db"
    a_store(path)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM vectors WHERE id = 1")
    with pytest.raises(FileError, match=r"store.db' is damaged \(a vector is missing\)"):
        ua.Store(path).nearest(cloud(5), aggregate="mean")


def test_wrong_values_in_a_history_are_errors(tmp_path):
    path = tmp_path / "history.db"
    check = monitor().history[0]
    History(path).add(check, "m")
    header = check.to_dict()
    for at, value in product(places(header), WRONG):
        with closing(sqlite3.connect(path)) as db, db:
            text = json.dumps(replaced(header, at, value), default=list)
            db.execute("UPDATE checks SET details = ?", (text,))
        repr(loaded(lambda path: History(path).checks("m"), path))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n", [pytest.param(2000, marks=pytest.mark.slow), 40])
def test_mutated_bytes_of_a_store_are_read_or_rejected(tmp_path, n):
    a_store(tmp_path / "original.db")
    data, path = (tmp_path / "original.db").read_bytes(), tmp_path / "store.db"

    @settings(
        max_examples=n,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(mutations_of_bytes())
    def run(mutation):
        path.write_bytes(mutated(data, mutation[1]))
        with suppress(UnalignedError):
            list(use_store(ua.Store(path)))

    run()
