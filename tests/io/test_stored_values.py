"""Wrong values in our own files give a `FileError` that names the file, or a result that works."""

import json
import shutil
import sqlite3
import warnings
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import replace
from itertools import product
from typing import Literal, get_type_hints

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import unaligned as ua
from fuzzing import mutated
from fuzzing import mutations as mutations_of_bytes
from unaligned._check import FloatArray, _has_type
from unaligned.confidence import Inference
from unaligned.data.facts import Facts
from unaligned.errors import FileError, UnalignedError, restoring
from unaligned.inference.instruments import Reading
from unaligned.inference.verdict import DriftCheck
from unaligned.result import Comparison
from unaligned.spectra.base import Spectrum
from unaligned.spectra.signature import Recipe, Signature
from unaligned.store.history import History
from unaligned.store.records import Record

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


NUMBERS = {
    "NaN": lambda values: values * np.nan,
    "negative": lambda values: -values - 1,
    "complex": lambda values: values + 1j,
    "text": lambda values: values.astype(str),
}
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


def altered(path, header=None, **arrays):
    """Write an archive again with other values in its header, and other arrays."""
    with np.load(path) as stored:
        members = dict(stored)
    text = json.dumps({**json.loads(members["header"].tobytes()), **(header or {})}).encode()
    changed = {name: change(members[name]) for name, change in arrays.items()}
    np.savez(path, **{**members, "header": np.frombuffer(text, np.uint8), **changed})


@pytest.mark.parametrize("wrong", NUMBERS)
@pytest.mark.parametrize("name", ["eigenvalues", "lower", "upper"])
def test_wrong_numbers_of_a_signature_are_errors(tmp_path, name, wrong):
    path = tmp_path / "file.npz"
    KINDS["signature"][0]().save(path)
    altered(path, **{name: NUMBERS[wrong]})
    with pytest.raises(
        FileError, match=rf"file\.npz' is damaged \({name} must hold numbers from 0"
    ):
        ua.Signature.load(path)


@pytest.mark.parametrize("change", [np.flip, lambda values: values * np.inf])
def test_eigenvalues_are_finite_and_descending(tmp_path, change):
    path = tmp_path / "file.npz"
    KINDS["signature"][0]().save(path)
    altered(path, eigenvalues=change)
    with pytest.raises(FileError, match="eigenvalues must be finite and descending"):
        ua.Signature.load(path)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("slack", -1.0, "slack must not be negative"),
        ("slack", np.nan, "slack=nan is not of the expected type"),
        ("sigma_squared", -1.0, "sigma_squared=-1.0 must be above 0"),
        ("sigma_squared", np.nan, "sigma_squared=nan is not of the expected type"),
        ("n_samples", 3, "K=6 and a size of 3 × 2 do not fit"),
        ("n_samples", 10**400, "K=6 and a size of 10000"),
        ("n_samples", True, "n_samples=True is not of the expected type"),
        ("n_features", 0, "K=6 and a size of 120 × 0 do not fit"),
        ("stats", {"rows_set_aside": ["a"]}, r"rows_set_aside=\['a'\] is not of the"),
    ],
)
def test_wrong_numbers_in_the_header_of_a_signature_are_errors(tmp_path, name, value, message):
    path = tmp_path / "file.npz"
    KINDS["signature"][0]().save(path)
    altered(path, {name: value})
    with pytest.raises(FileError, match=rf"file\.npz' is damaged \({message}"):
        ua.Signature.load(path)


@pytest.mark.parametrize("name", ["tol", "bandwidth", "bandwidth_factor", "gamma"])
@pytest.mark.parametrize("value", [-1.0, np.nan])
def test_wrong_numbers_of_a_recipe_are_errors(name, value):
    recipe = vars(ua.signature(cloud(0), n_eigenvalues=6).recipe)
    with pytest.raises(ua.errors.InputError, match=f"{name}={value}"):
        ua.signature(cloud(0), n_eigenvalues=6).recipe.from_dict({**recipe, name: value})


@pytest.fixture(scope="module")
def inferred(tmp_path_factory):
    path = tmp_path_factory.mktemp("inferred") / "original.npz"
    with warnings.catch_warnings(action="ignore"):  # three pairs of few blocks
        KINDS["inference"][0]().save(path)
    return path


@pytest.mark.parametrize("wrong", NUMBERS)
@pytest.mark.parametrize("name", ["distances", "error_bounds", "inference_p_holm", "0_upper"])
def test_wrong_numbers_of_a_comparison_are_errors(inferred, tmp_path, name, wrong):
    path = tmp_path / "file.npz"
    shutil.copy(inferred, path)
    altered(path, **{name: NUMBERS[wrong]})
    if (name, wrong) == ("error_bounds", "NaN"):
        assert np.isnan(ua.Comparison.load(path).error_bounds).all(), "no bound is known"
        return
    with pytest.raises(FileError, match=r"file\.npz' is damaged \(\w+ must (hold|be)"):
        ua.Comparison.load(path)


@pytest.mark.parametrize("wrong", ["NaN", "text"])
def test_wrong_numbers_of_a_descriptor_are_errors(tmp_path, wrong):
    path = tmp_path / "file.npz"
    KINDS["descriptors"][0]().save(path)
    altered(path, d0_values=NUMBERS[wrong])
    with pytest.raises(FileError, match="the descriptor of 'a' must be numbers"):
        ua.Comparison.load(path)


def test_unbiased_distances_may_be_negative(tmp_path):
    found = ua.compare([cloud(0), cloud(1)], distance="mmd", unbiased=True)
    assert found.distances.min() < 0
    found.save(tmp_path / "file.npz")
    assert np.array_equal(ua.Comparison.load(tmp_path / "file.npz").distances, found.distances)


@pytest.mark.parametrize(
    ("hint", "right", "wrong"),
    [
        (int, [0, -1], [True, 1.0, "1", None]),
        (float, [0.5, 1, np.inf], [True, np.nan, "1", None]),
        (bool, [True], [1, None]),
        (int | list[int], [1, [], [1, 2]], [["a"], [True], (1,)]),
        (tuple[str | int, ...], [(), ("a", 1)], [("a", None), ["a"]]),
        (Mapping[str, dict[str, int]], [{}, {"a": {"b": 1}}], [{"a": {"b": "c"}}, {"a": 1}, []]),
        (FloatArray | None, [None, np.ones(2)], [1.0, [1.0]]),
    ],
)
def test_types_of_values(hint, right, wrong):
    assert all(_has_type(value, hint) for value in right)
    assert not any(_has_type(value, hint) for value in wrong)


@pytest.mark.parametrize("hint", [Literal["a"], tuple[int, str], set[int]])
def test_unknown_types_are_no_damage(hint):
    with pytest.raises(NotImplementedError, match="cannot be checked"), restoring("A file"):
        _has_type(("a",), hint)


@pytest.mark.parametrize(
    "kind",
    [Recipe, Signature, Spectrum, Inference, Comparison, Facts, Record, Reading, DriftCheck],
)
def test_types_of_all_stored_fields_are_known(kind):
    for hint in get_type_hints(kind).values():
        _has_type(object(), hint)


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
    right = header["stats"]["origin"]
    right["options"] |= {"path": "x", "columns": None, "resize": None}
    for at, value in product(places(right), WRONG):
        origin = replaced(right, at, value)
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("UPDATE vectors SET data = zeroblob(8) WHERE id = 2", "vector 2 has not 6 numbers"),
        ("UPDATE vectors SET data = ? WHERE id = 2", "vector 2 is not finite"),
        ("UPDATE spectra SET eigenvalues = ? WHERE id = 2", "'b' is damaged .eigenvalues must"),
        (
            "UPDATE signatures SET error_bound = -1 WHERE id = 2",
            "'b' is damaged .error_bound must",
        ),
        ("DELETE FROM signatures WHERE id = 2", "vector 2 has no name"),
    ],
)
def test_wrong_numbers_in_a_store_are_errors(tmp_path, change, message):
    path = tmp_path / "store.db"
    a_store(path)
    store = ua.Store(path)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(change, [np.full(6, np.nan).tobytes()] * change.count("?"))
    with pytest.raises(FileError, match=f"store.db'.*{message}"):
        store.get("b") if "spectra" in change else store.nearest(cloud(5))


def test_errors_of_ours_in_a_search_are_not_called_damage(tmp_path, monkeypatch):
    a_store(tmp_path / "store.db")
    store = ua.Store(tmp_path / "store.db")

    def fail(*_, **__):
        raise KeyError("ours")

    monkeypatch.setattr("unaligned.store.origins.load_all", fail)
    with pytest.raises(KeyError, match="ours"):
        store.nearest(cloud(5)[:60], subsample="common")
    monkeypatch.setattr("unaligned.store.search.where", fail)
    with pytest.raises(KeyError, match="ours"):
        store.nearest(cloud(5))


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
