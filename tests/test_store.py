"""Store: add, search, export, concurrency, damaged files."""

import json
import multiprocessing
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

import unaligned as ua
from unaligned import _check
from unaligned.errors import (
    DataWarning,
    FileError,
    InputError,
    InputTypeError,
    RecipeMismatchError,
    SampleSizeWarning,
    StoreError,
)
from unaligned.store import file as _file

K = 12


def cloud(seed, n_features=3, n_samples=60):
    return np.random.default_rng(seed).normal(size=(n_samples, n_features))


def described(seed, name=None, **options):
    data = ua.Dataset(cloud(seed), name=name or f"cloud {seed}")
    return ua.signature(data, **{"n_eigenvalues": K, **options})


@pytest.fixture
def store(tmp_path):
    store = ua.Store(tmp_path / "references.db")
    for seed in range(6):
        tags = {"half": "first" if seed < 3 else "second", "seed": seed}
        store.add(described(seed), tags=tags)
    return store


def test_get_returns_an_equal_signature(store):
    kept, back = described(4), store.get("cloud 4")
    for name in ("values", "eigenvalues", "error_bound"):
        assert np.array_equal(getattr(back, name), getattr(kept, name))
    for name in ("recipe", "n_samples", "n_features", "sigma_squared", "name", "fingerprint"):
        assert getattr(back, name) == getattr(kept, name)
    assert back.total_error_bound == kept.total_error_bound
    assert ua.distance(back, kept) == 0
    assert back.stats["kernel_entries"] == kept.stats["kernel_entries"]


def test_listing_has_no_statement_and_no_evaluation_per_row(store, monkeypatch):
    statements, opened = [], _file._open

    def traced(*arguments):
        db = opened(*arguments)
        db.set_trace_callback(statements.append)
        return db

    store.names()
    monkeypatch.setattr(_file, "_open", traced)
    before = _check._type_hints.cache_info().misses
    assert len(store.names()) == 6
    n_statements = len(statements)
    assert len(store.names({"half": "first"})) == 3
    assert len(statements) == 2 * n_statements
    assert _check._type_hints.cache_info().misses == before


def test_names_tags_length_and_membership(store):
    assert len(store) == 6
    assert "cloud 2" in store
    assert "cloud 9" not in store
    assert 3 not in store
    assert list(store) == store.names() == [f"cloud {seed}" for seed in range(6)]
    assert store.names({"half": "second"}) == ["cloud 3", "cloud 4", "cloud 5"]
    assert store.names({"half": "second", "seed": 4}) == ["cloud 4"]
    assert store.names({"half": "third"}) == []
    record = store.records({"seed": 1})[0]
    assert (record.n_samples, record.n_features, record.n_eigenvalues) == (60, 3, K)
    assert record.tags == {"half": "first", "seed": "1"}
    assert repr(store).endswith("references.db', 6 signatures)")


def test_getitem_equals_get(store):
    assert np.array_equal(store["cloud 4"].values, store.get("cloud 4").values)
    with pytest.raises(InputError, match=r"no signature 'cloud 44'. Did you mean 'cloud 4"):
        store["cloud 44"]


def test_to_frame(store):
    frame = store.to_frame()
    assert list(frame.index) == store.names()
    assert frame.loc["cloud 4", ["n_samples", "n_features", "n_eigenvalues"]].tolist() == [
        60,
        3,
        K,
    ]
    assert frame["tag:half"].tolist() == ["first"] * 3 + ["second"] * 3
    assert frame.loc["cloud 1", "created"] == store.find("cloud 1").created
    store.tag("cloud 2", {"odd": 1})
    assert list(store.to_frame({"odd": 1}).index) == ["cloud 2"]
    assert store.to_frame()["tag:odd"].isna().sum() == 5
    assert store.to_frame({"odd": 2}).empty


def test_tags_may_contain_any_text(store):
    odd = {'it\'s "odd" $.x': "ä 'q' %"}
    store.tag("cloud 0", odd)
    assert store.names(odd) == ["cloud 0"]
    assert store.names({"half": "first", **odd}) == ["cloud 0"]


def test_adding_the_same_signature_again_only_adds_tags(store):
    assert store.add(described(2), tags={"again": "yes"}) is False
    assert len(store) == 6
    assert store.records({"again": "yes"})[0].tags["half"] == "first"


def test_another_signature_of_the_same_name_needs_replace(store):
    other = described(77, name="cloud 2")
    with pytest.raises(InputError, match=r"'cloud 2' is in the store .* its data.*replace"):
        store.add(other)
    with pytest.raises(InputError, match=r"differs in tol\."):
        store.add(described(2, tol=1e-6))
    assert store.get("cloud 2").fingerprint == described(2).fingerprint
    assert store.add(other, replace=True) is True
    assert store.get("cloud 2").fingerprint == other.fingerprint
    assert len(store) == 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": 1e-5}, "gamma: 1e-05, here 1e-08"),
        ({"n_eigenvalues": 9}, "n_eigenvalues: 9, here 12"),
        ({"bandwidth": 3.0}, "bandwidth: 3.0, here 'median'"),
        ({"preprocess": ["standardize"]}, r"preprocess: \('standardize',\), here \(\)"),
    ],
)
def test_another_recipe_is_an_error_that_names_the_difference(store, options, message):
    odd = described(9, **options)
    with pytest.raises(
        RecipeMismatchError, match=f"'cloud 9' cannot be added to this store.*{message}"
    ):
        store.add(odd)
    with pytest.raises(RecipeMismatchError, match=f"does not fit the store.*{message}"):
        store.nearest(odd)
    assert len(store) == 6


def test_only_signature_can_be_replaced_by_one_of_another_recipe(tmp_path):
    store = ua.Store(tmp_path / "one.db")
    assert store.options == {}
    assert store.recipe is None
    store.add(described(0))
    store.add(described(0, gamma=1e-4), replace=True)
    assert store.recipe.gamma == 1e-4


def test_options_give_signatures_of_the_same_recipe(store):
    assert store.recipe == described(0).recipe
    assert store.add(ua.signature(cloud(50, n_features=9), **store.options), name="wider")


@pytest.mark.parametrize("kind", ["distances", "affinity", "spd"])
def test_options_of_other_kinds_than_points(tmp_path, kind):
    store = ua.Store(tmp_path / f"{kind}.db")
    apart = np.linalg.norm(cloud(0)[:, None] - cloud(0), axis=2)
    matrix = apart if kind == "distances" else np.exp(-(apart**2))
    data = ua.Dataset(matrix, kind=kind, name=kind)
    store.add(ua.signature(data, n_eigenvalues=8))
    assert store.nearest(data)[0].distance == 0


def test_add_rejects_other_types_and_missing_names(store):
    with pytest.raises(InputTypeError, match=r"keeps signatures, not ndarray of shape \(60, 3\)"):
        store.add(cloud(0))
    with pytest.raises(InputError, match="needs a name"):
        store.add(replace(described(0), name=None))
    with pytest.raises(InputTypeError, match="tags='liver' must be a dict"):
        store.add(described(9), tags="liver")


def test_text_without_utf_8_is_an_error(store):
    bad = "b\ud800"
    message = r"'b\\ud800' is not UTF-8 text\. Leave out '\\ud800'"
    calls = [
        lambda: store.add(described(9), name=bad),
        lambda: store.add(replace(described(9), fingerprint=bad)),
        lambda: store.tag("cloud 0", {"key": bad}),
        lambda: store.names({bad: "value"}),
        lambda: store.nearest(cloud(0), tags={bad: "value"}),
        lambda: store.get(bad),
        lambda: store.find(bad),
        lambda: store.remove("cloud 0", bad),
    ]
    for call in calls:
        with pytest.raises(InputError, match=message):
            call()
    assert len(store) == 6


def test_stored_tags_without_utf_8_are_exported(store, tmp_path):
    with closing(sqlite3.connect(store.path)) as db, db:  # as 0.1.0 could write them
        db.execute("UPDATE signatures SET tags = ? WHERE id = 1", (json.dumps({"k": "\udcff"}),))
    assert store.export(tmp_path / "found.csv") == 6
    assert ",?," in (tmp_path / "found.csv").read_text()


def test_remove_is_all_or_none(store):
    store.remove("cloud 0", "cloud 3")
    assert store.names() == ["cloud 1", "cloud 2", "cloud 4", "cloud 5"]
    with pytest.raises(InputError, match=r"no signature 'cloud 0'. Did you mean 'cloud"):
        store.remove("cloud 1", "cloud 0")
    assert "cloud 1" in store, "all of them or none"
    assert len(store.nearest(described(3), k=99)) == 4


def test_extend_is_all_or_none(store):
    with pytest.raises(RecipeMismatchError, match="gamma"):
        store.extend([described(20), described(21, gamma=1.0)])
    assert "cloud 20" not in store


@pytest.mark.parametrize("seed", range(3))
def test_nearest_equals_brute_force(store, seed):
    new = described(100 + seed)
    found = store.nearest(new, k=4)
    brute = sorted((ua.distance(new, store.get(name)), name) for name in store)
    assert [near.name for near in found] == [name for _, name in brute[:4]]
    assert np.allclose([near.distance for near in found], [d for d, _ in brute[:4]], rtol=1e-14)
    bound = new.total_error_bound + store.get(found[0].name).total_error_bound
    assert found[0].error_bound == bound


def test_nearest_of_several_blocks(tmp_path):
    rng = np.random.default_rng(0)
    first = described(0)
    store = ua.Store(tmp_path / "many.db")
    spectra = np.sort(rng.uniform(size=(5000, K)))[:, ::-1]
    many = [
        replace(first, name=str(i), spectrum=replace(first.spectrum, eigenvalues=row.copy()))
        for i, row in enumerate(spectra)
    ]
    assert store.extend(many) == 5000
    distances = np.linalg.norm(np.log(spectra + 1e-8) - first.values, axis=1)
    order = np.argsort(distances)[:10]
    found = store.nearest(first, k=10)
    assert [int(near.name) for near in found] == order.tolist()
    assert np.allclose([near.distance for near in found], distances[order], rtol=1e-13)


def test_nearest_takes_data_and_tags(store):
    assert store.nearest(cloud(5), k=1)[0].name == "cloud 5"
    first = store.nearest(cloud(5), tags={"half": "first"}, k=9)
    assert {near.name for near in first} == {"cloud 0", "cloud 1", "cloud 2"}
    with pytest.raises(InputError, match=r"has the tags \{'half': 'third'\}"):
        store.nearest(cloud(5), tags={"half": "third"})
    with pytest.raises(InputError, match="k=0 must be at least 1"):
        store.nearest(cloud(5), k=0)


def test_neighbours_tell_their_rows(store):
    store.add(ua.signature(cloud(7, n_samples=75), n_eigenvalues=K), name="larger")
    rows = {near.name: near.n_samples for near in store.nearest(cloud(7), k=9)}
    assert (rows["larger"], rows["cloud 1"]) == (75, 60)
    assert store.nearest(cloud(7), aggregate="mean")[0].n_samples is None


@pytest.mark.parametrize("seed", range(3))
def test_different_size_warns_and_subsample_corrects_it(tmp_path, seed):
    store = ua.Store(tmp_path / "months.db")
    for other in range(6):
        store.add(ua.signature(cloud(other, 6), n_eigenvalues=50), name=f"month {other}")
    large = ua.Dataset(cloud(40 + seed, 6, n_samples=600), name="August")
    with pytest.warns(SampleSizeWarning, match=r"'August'.*600"):
        raw = store.nearest(large, k=1)[0].distance
    made = replace(ua.signature(large, **store.options), name=None)
    with pytest.warns(SampleSizeWarning, match=r"'new data'.*600(?!.*subsample='common' draws)"):
        store.nearest(made)
    with pytest.warns(SampleSizeWarning, match=r"'new data'.*600.*subsample='common' draws"):
        assert store.nearest(large.values, k=1)[0].distance == raw
    with pytest.warns(SampleSizeWarning, match=r"'August'.*600"):
        store.nearest(large, aggregate="mean")
    drawn = store.nearest(large, k=1, subsample="common")[0].distance
    assert drawn == store.nearest(large, k=1, subsample=60)[0].distance
    assert drawn < raw / 2


def test_size_warning_names_the_most_different_size(store):
    """The nearest reference may have the same size; the warning is about the others."""
    store.add(ua.signature(cloud(7, n_samples=600), n_eigenvalues=K), name="large")
    with pytest.warns(SampleSizeWarning, match="'cloud 0' has 60 rows"):
        assert store.nearest(cloud(8, n_samples=600), k=1)[0].name == "large"
    store.tag("large", {"half": "neither"})
    store.nearest(cloud(8, n_samples=600), k=1, tags={"half": "neither"})


@pytest.mark.parametrize(("n_samples", "biased"), [(600, False), (60, True)])
def test_size_warning_depends_on_k(tmp_path, n_samples, biased):
    """Twofold sizes are material where K=16 is beyond a quarter of the smaller one."""
    store = ua.Store(tmp_path / "references.db")
    for size in (n_samples - 1, 2 * n_samples):
        store.add(ua.signature(cloud(size, n_samples=size), n_eigenvalues=16), name=f"of {size}")
    if not biased:
        store.nearest(cloud(3, n_samples=n_samples))
        return
    with pytest.warns(SampleSizeWarning, match="'of 120' has 120"):
        store.nearest(cloud(3, n_samples=n_samples))


def test_invalid_subsample_sizes_are_errors(store):
    with pytest.raises(InputError, match=r"subsample=99 is more than dataset 'new data' has, 60"):
        store.nearest(cloud(3), subsample=99)
    with pytest.raises(InputError, match="must be a number of rows or 'common'"):
        store.nearest(cloud(3), subsample="many")
    with pytest.raises(InputError, match="needs the data itself; data is a Signature"):
        store.nearest(described(3), subsample=30)
    with pytest.raises(InputError, match=r"have K=12, which needs 12 rows; .* has 11"):
        store.nearest(cloud(3), subsample=11)


def test_too_few_rows_for_the_store_are_an_error(store):
    message = r"have K=12, which needs 12 rows; dataset 'new data' has 10\. .*describe -K 10"
    with pytest.raises(InputError, match=message):
        store.nearest(cloud(3, n_samples=10))


def test_missing_column_warns_if_all_references_have_it(store):
    with pytest.warns(DataWarning, match=r"has 2 columns, and all 6 references have 3\."):
        store.nearest(cloud(3, n_features=2))
    store.add(ua.signature(cloud(9, n_features=5), n_eigenvalues=K), name="wider")
    store.nearest(cloud(3, n_features=2))  # references of different width: no warning


@pytest.mark.parametrize("how", ["mean", "min", "max"])
def test_groups_are_ranked_by_their_aggregate(store, how):
    new = described(8)
    groups = store.nearest(new, aggregate=how, by="half")
    expected = {
        half: getattr(np, how)(
            [ua.distance(new, store.get(name)) for name in store.names({"half": half})]
        )
        for half in ("first", "second")
    }
    assert [group.name for group in groups] == sorted(expected, key=expected.get)
    for group in groups:
        assert group.distance == pytest.approx(expected[group.name], rel=1e-14)
        assert (group.n_references, group.tags) == (3, {"half": group.name})
        assert group.error_bound >= new.total_error_bound
    everything = store.nearest(new, aggregate=how)
    assert (len(everything), everything[0].n_references) == (1, 6)


def test_invalid_groups_are_errors(store):
    with pytest.raises(InputError, match="needs aggregate="):
        store.nearest(cloud(0), by="half")
    with pytest.raises(InputError, match="'organ' forms no groups"):
        store.nearest(cloud(0), by="organ", aggregate="mean")
    with pytest.raises(InputError, match="Did you mean 'mean'"):
        store.nearest(cloud(0), aggregate="meen")


def test_nearest_in_an_empty_store_is_an_error(tmp_path):
    store = ua.Store(tmp_path / "empty.db")
    with pytest.raises(InputError, match=r"The store is empty. Add signatures"):
        store.nearest(described(0))


def test_export_to_every_format(store, tmp_path):
    import pandas as pd

    assert store.export(tmp_path / "out.csv") == 6
    table = pd.read_csv(tmp_path / "out.csv", index_col="name", float_precision="round_trip")
    assert table.loc["cloud 3", "tag:half"] == "second"
    values = table.loc["cloud 3", [f"v{i + 1}" for i in range(K)]].to_numpy(float)
    assert np.array_equal(values, described(3).values)
    assert store.export(tmp_path / "out.json", tags={"half": "second"}) == 3
    rows = json.loads((tmp_path / "out.json").read_text())
    assert rows[0]["recipe"]["gamma"] == 1e-8
    assert np.array_equal(rows[0]["eigenvalues"], described(3).eigenvalues)
    store.export(tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as arrays:
        assert arrays["values"].shape == (6, K)
        assert arrays["names"].tolist() == store.names()
    with pytest.raises(InputError, match=r"out.txt' must end in \.csv, \.json, \.npz"):
        store.export(tmp_path / "out.txt")


def test_other_files_are_errors_and_not_changed(tmp_path):
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE mine (x)")
    db.close()
    text = tmp_path / "text.db"
    text.write_text("name,value\n" * 100)
    for path, message in (
        (other, "database with other content"),
        (text, "not a store of signatures"),
    ):
        before = path.read_bytes()
        with pytest.raises(FileError, match=message):
            ua.Store(path)
        assert path.read_bytes() == before
    with pytest.raises(FileError, match="cannot be opened"):
        ua.Store(tmp_path)
    with pytest.raises(FileError, match="cannot be opened"):
        ua.Store(tmp_path / "nowhere" / "a.db")
    with pytest.raises(FileError, match=r"There is no store .*unaligned describe"):
        ua.Store(tmp_path / "missing.db", create=False)
    assert not (tmp_path / "missing.db").exists()


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.9, 0.999])
def test_truncated_store_is_an_error_and_not_changed(store, tmp_path, share):
    whole = store.path.read_bytes()
    broken = tmp_path / "broken.db"
    broken.write_bytes(whole[: int(share * len(whole))])
    before = broken.read_bytes()
    with pytest.raises(FileError, match="damaged"):
        ua.Store(broken)
    assert broken.read_bytes() == before


def test_damaged_rows_are_named(store):
    with sqlite3.connect(store.path) as db:
        db.execute("UPDATE spectra SET lower = x'00'")
    db.close()
    with pytest.raises(FileError, match="row of 'cloud 1' is damaged"):
        store.get("cloud 1")


def test_newer_version_is_an_error(store):
    with sqlite3.connect(store.path) as db:
        db.execute(f"PRAGMA user_version = {_file.STORE.version + 1}")
    db.close()
    with pytest.raises(FileError, match=r"has version 3; .* supports version 2. Update unaligned"):
        ua.Store(store.path)
    with pytest.raises(FileError, match="Update unaligned"):
        store.names()


def write_some(path, numbers):
    store = ua.Store(path)
    first = described(0)
    for number in numbers:
        store.add(replace(first, name=f"{number}"))
        store.nearest(first, k=1)


def test_processes_write_and_read_concurrently(tmp_path):
    path = tmp_path / "shared.db"
    context = multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=write_some, args=(path, range(start, 90, 3))) for start in range(3)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert sorted(map(int, ua.Store(path).names())) == list(range(90))
    assert [p.name for p in tmp_path.iterdir()] == ["shared.db"], "one file, nothing beside it"


def test_locked_store_is_an_error(store, monkeypatch):
    monkeypatch.setattr(_file, "_TIMEOUT", 0.05)
    holder = sqlite3.connect(store.path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreError, match="locked by another process"):
        store.add(described(40))
    holder.close()
    assert store.add(described(40))


def test_store_in_a_read_only_folder(store, tmp_path):
    folder = tmp_path / "read only"
    folder.mkdir()
    copy = folder / "copy.db"
    shutil.copy(store.path, copy)
    copy.chmod(0o444)
    folder.chmod(0o555)
    try:
        assert ua.Store(copy, create=False).nearest(cloud(1), k=1)[0].name == "cloud 1"
    finally:
        folder.chmod(0o755)


def test_with_statement(store):
    with ua.Store(store.path) as same:
        assert len(same) == 6
