"""DriftMonitor: verdicts, exactness, errors, files."""

import copy
import json
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist

import unaligned as ua
from unaligned.errors import (
    DataWarning,
    DegenerateDataError,
    FileError,
    IndefiniteWarning,
    InputError,
    InputTypeError,
    MissingDataWarning,
    NotApplicableError,
    OptionError,
    SampleSizeWarning,
)
from unaligned.inference.instruments import Shape
from unaligned.metrics.les import LES

BATTERY = ("les", "edistance", "ks")
COLUMNS = ["pressure", "flow", "power", "noise"]


def normal(n, seed=0, d=4):
    return np.random.default_rng([seed, n]).normal(size=(n, d))


@pytest.fixture(scope="module")
def monitor():
    return ua.DriftMonitor(normal(600))


def changes():
    dead = normal(200, 1)
    dead[:, 2] = 0.3
    return {
        "shift": (normal(200, 1) + 1, {"edistance", "ks"}),
        "scale": (normal(200, 1) * 3, {"edistance", "ks"}),
        "dead": (dead, {"ks"}),
        "shape": (normal(200, 1) @ np.diag([1, 1, 1, 0]) + normal(200, 1)[:, [0]], {"les"}),
    }


@pytest.mark.parametrize("change", sorted(changes()))
def test_each_change_is_seen_by_the_instruments_that_are_for_it(monitor, change):
    batch, seen = changes()[change]
    found = monitor.read(batch)
    assert found.is_drift
    assert found.p_value <= 0.01
    assert seen <= {reading.name for reading in found.readings if reading.is_drift}


def test_the_features_that_moved_are_named():
    frame = pd.DataFrame(normal(600), columns=list("abcd"))
    monitor = ua.DriftMonitor(frame)
    batch = pd.DataFrame(normal(200, 1), columns=list("abcd"))
    batch["c"] += 2
    assert list(monitor.check(batch).moved) == ["c"]
    # Columns are matched by name.
    assert list(monitor.check(batch[list("dcba")]).moved) == ["c"]
    assert "moved: c" in repr(monitor.history[-1])


def test_no_drift(monitor):
    found = monitor.read(normal(200, 1))
    assert not found.is_drift
    assert found.p_value > 0.01
    assert [reading.name for reading in found.readings] == list(BATTERY)
    assert all(reading.threshold == 0.01 / 3 for reading in found.readings)
    assert repr(found).startswith("'batch 1' shows no drift from 'reference' (p = ")
    assert found.moved == {}
    assert (found.n_samples, found.n_reference) == (200, 600)
    assert (found.n_eigenvalues, found.gamma) == (10, 1e-8)


def test_the_p_value_is_that_of_the_battery(monitor):
    found = monitor.read(normal(200, 1))
    assert found.p_value == min(1, 3 * min(reading.p_value for reading in found.readings))
    assert found.score == pytest.approx(-np.log10(found.p_value))


@pytest.mark.parametrize("distances", ["les", "edistance", "mmd", "ks", None])
def test_false_alarms_stay_below_alpha(distances):
    alarms = 0
    for seed in range(40):
        rows = np.random.default_rng([7, seed]).exponential(size=(330, 3)) ** 2
        monitor = ua.DriftMonitor(rows[:240], alpha=0.2, distances=distances, block_size=15)
        alarms += monitor.check(rows[240:]).is_drift
    assert alarms <= 40 * 0.2 + 3 * np.sqrt(40 * 0.2 * 0.8)


def test_p_values_of_one_block_are_uniform_on_their_grid():
    found = []
    for seed in range(150):
        rows = np.random.default_rng([8, seed]).standard_t(3, size=(190, 3))
        monitor = ua.DriftMonitor(rows[:171], alpha=0.2, distances="les", block_size=19)
        found.append(monitor.check(rows[171:]).p_value)
    ranks = np.array(found) * 10
    assert np.allclose(ranks, ranks.round())
    counts = np.bincount(ranks.round().astype(int), minlength=11)[1:]
    assert counts.sum() == 150
    assert ((counts - 15) ** 2 / 15).sum() < 27.9  # chi-squared of 9 degrees, p = 0.001


def test_scales_are_fitted_to_the_reference():
    columns = np.array([1.0, 1e5, 1e-3, 10.0])
    monitor = ua.DriftMonitor(normal(600) * columns + 1e4)
    batch = normal(200, 1) * columns + 1e4
    assert not monitor.check(batch).is_drift
    batch[:, 2] += 2e-3
    assert list(monitor.check(batch).moved) == ["column 2"]
    assert [r.name for r in monitor.history[-1].readings if r.is_drift] == ["edistance", "ks"]


def test_horizon_shares_alpha_among_batches():
    monitor = ua.DriftMonitor(normal(600), alpha=0.05, horizon=2)
    for seed in (1, 2):
        found = monitor.check(normal(200, seed))
        assert found.alpha == pytest.approx(0.025)
    assert [check.number for check in monitor.history] == [1, 2]
    with pytest.raises(
        InputError, match=r"horizon=2 batches were checked and alpha=0.05 is spent"
    ):
        monitor.check(normal(200, 3))


def test_a_small_share_of_alpha_is_reached_by_permutations():
    monitor = ua.DriftMonitor(normal(600), horizon=60, distances=["les", "edistance"])
    found = monitor.check(normal(240, 1) @ np.diag([3, 3, 1, 0.1]))
    assert [reading.is_drift for reading in found.readings] == [True, True]
    assert found.p_value <= found.alpha == pytest.approx(0.01 / 60)
    # A batch without drift needs few permutations.
    assert monitor.check(normal(240, 1)).p_value > 0.05


@pytest.mark.parametrize("level", [0.01, 1e-4])
def test_p_values_of_permutations_drawn_in_steps_are_uniform(level):
    found = []
    for seed in range(300):
        points = np.random.default_rng([3, seed]).normal(size=(23, 1))
        instrument = Shape.of(LES(), points[3:], size=1)
        pooled = cdist(points, points, "sqeuclidean")
        found.append(instrument._permuted(pooled, 3, level, seed)[1])
    for t in (0.02, 0.1, 0.3):
        share = np.mean(np.array(found) <= t)
        assert abs(share - t) <= 3.5 * np.sqrt(t * (1 - t) / 300)


def test_a_batch_of_equal_rows_has_drifted(monitor):
    with pytest.warns(DataWarning, match="les was not used: .* all points are equal"):
        found = monitor.read(np.ones((200, 4)))
    assert found.is_drift
    assert [reading.name for reading in found.readings] == ["edistance", "ks"]
    assert found.readings[0].threshold == 0.01 / 3
    assert "les was not used" in found.notes[0]
    assert found.unused == ("les",)
    assert "; les not used; moved: " in repr(found)
    with pytest.raises(DegenerateDataError, match="all points are equal"):
        ua.DriftMonitor(normal(300), distances="les", alpha=0.05).read(np.ones((200, 4)))


def test_certain_drift_has_a_finite_score():
    monitor = ua.DriftMonitor(normal(4600), distances="ks")
    found = monitor.read(normal(4000, 1) + 100)
    assert 0 < found.p_value < 1e-300
    assert np.isfinite(found.score)


RENAMED = {"flow": "Flow"}
CHANGES_OF_COLUMNS = {
    "missing": (lambda table: table.drop(columns=["flow", "noise"]), "lacks 'flow', 'noise'"),
    "additional": (lambda table: table.assign(extra=0.0), "also has 'extra'"),
    "renamed": (lambda table: table.rename(columns=RENAMED), "lacks 'flow' and also has 'Flow'"),
    "repeated": (lambda table: table[[*table, "flow"]], "also has 'flow'"),
    "many": (
        lambda table: table.join(pd.DataFrame(normal(200, 2, d=7), columns=list("abcdefg"))),
        "also has 'a', 'b', 'c', 'd', 'e' and 2 more",
    ),
    "unnamed": (lambda table: table.to_numpy()[:, :3], "has 3 columns in place of 4"),
}


@pytest.fixture(scope="module")
def table_monitor():
    return ua.DriftMonitor(pd.DataFrame(normal(600), columns=COLUMNS))


@pytest.mark.parametrize("change", CHANGES_OF_COLUMNS)
def test_other_columns_are_an_error(table_monitor, change):
    """By `les` alone, which sees no shift, such a batch would show no drift."""
    changed, reason = CHANGES_OF_COLUMNS[change]
    batch = pd.DataFrame(normal(200, 1) + np.array([0, 9, 0, 0]), columns=COLUMNS)
    message = f"dataset 'new' must have the columns of 'reference': it {reason}. Rename or select"
    with pytest.raises(InputError, match=re.escape(message)):
        table_monitor.check(changed(batch), name="new")
    assert table_monitor.history == []


def test_repeated_names_in_another_order_are_an_error():
    monitor = ua.DriftMonitor(pd.DataFrame(normal(600), columns=list("aabc")))
    with pytest.raises(InputError, match="it has repeated names in another order"):
        monitor.check(pd.DataFrame(normal(200, 1), columns=list("abca")))


def test_columns_without_names_are_matched_by_position(table_monitor, monitor):
    batch = normal(200, 1) + np.array([0, 2, 0, 0])
    assert list(table_monitor.read(batch).moved) == ["flow"]
    assert list(monitor.read(pd.DataFrame(batch, columns=COLUMNS)).moved) == ["column 1"]
    with pytest.raises(InputError, match="has 9 columns in place of 4"):
        monitor.read(normal(200, 1, d=9))


@pytest.mark.parametrize("distances", ["edistance", "mmd", "ks", ("les", "ks")])
def test_every_instrument_but_les_needs_the_columns_of_the_reference(distances):
    monitor = ua.DriftMonitor(normal(600), distances=distances)
    with pytest.raises(InputError, match=r"or make a monitor with distances='les', which sees"):
        monitor.check(normal(200, 1, d=5))


@pytest.mark.parametrize("options", [{"scale": True}, {"preprocess": "pca:3"}])
def test_les_with_fitted_steps_needs_the_columns_of_the_reference(options):
    monitor = ua.DriftMonitor(normal(600), distances="les", **options)
    assert "drift in shape" in repr(monitor.read(normal(200, 1)))
    with pytest.raises(InputError, match="neither scale nor fitted preprocessing, which takes"):
        monitor.check(normal(200, 1, d=5))


def test_les_alone_takes_any_space():
    monitor = ua.DriftMonitor(normal(600), distances="les")
    rotation = np.linalg.qr(normal(9, 3, d=9))[0][:4]
    found = monitor.check(5 * normal(200, 1) @ rotation + 3)
    assert not found.is_drift
    assert "les sees shape only" in found.notes[0]
    assert repr(found).startswith("'batch 1' shows no drift in shape from 'reference' (p = ")
    assert monitor.check(normal(200, 1, d=7)).is_drift


def test_les_alone_takes_any_names():
    monitor = ua.DriftMonitor(pd.DataFrame(normal(600), columns=COLUMNS), distances="les")
    batch = pd.DataFrame(normal(200, 1), columns=COLUMNS)
    same = monitor.read(batch).p_value
    assert monitor.read(batch.rename(columns=RENAMED)).p_value == same


def test_les_alone_warns_of_columns_of_unequal_spread():
    with pytest.warns(DataWarning, match=r"spread of column 3 is .* times that of column"):
        ua.DriftMonitor(normal(300) * [1, 1, 1, 1e5], distances="les", alpha=0.05)


def test_scikit_learns_words(monitor):
    n_checks = len(monitor.history)
    batches = [normal(200, 1), normal(200, 1) + 1]
    assert monitor.predict(batches).tolist() == [1, -1]
    scores = monitor.score_samples(batches)
    assert scores[0] > 0.01 > scores[1]
    assert len(monitor.history) == n_checks
    again = ua.DriftMonitor(normal(300, 5), alpha=0.05).fit(normal(600))
    assert again.predict(batches).tolist() == [1, -1]
    assert again.predict(np.stack(batches)).tolist() == [1, -1]
    with pytest.raises(InputTypeError, match=r"shape \(200, 4\); it must be a list of batches"):
        again.predict(batches[0])


@pytest.mark.parametrize("distances", [None, "les", ("mmd", "ks")])
def test_a_monitor_survives_a_file(tmp_path, distances):
    monitor = ua.DriftMonitor(normal(600), distances=distances, horizon=5, rng=3)
    batch = normal(200, 1) * [1, 1, 1, 1.2]
    before = monitor.check(batch)
    monitor.save(tmp_path / "monitor.npz")
    loaded = ua.DriftMonitor.load(tmp_path / "monitor.npz")
    assert loaded.fingerprint == monitor.fingerprint
    assert loaded.history == [before]
    again = loaded.check(batch)
    assert again.number == 2
    assert again.p_value == before.p_value
    assert [r.score for r in again.readings] == [r.score for r in before.readings]
    assert b"pickle" not in (tmp_path / "monitor.npz").read_bytes()


def test_a_file_keeps_names_and_preprocessing(tmp_path):
    frame = pd.DataFrame(np.exp(normal(600)), columns=list("abcd"))
    monitor = ua.DriftMonitor(frame, preprocess=["log1p", "pca:3"])
    monitor.save(tmp_path / "monitor.npz")
    loaded = ua.DriftMonitor.load(tmp_path / "monitor.npz")
    batch = pd.DataFrame(np.exp(normal(200, 1) + 1), columns=list("abcd"))
    assert repr(loaded.check(batch)) == repr(monitor.check(batch))
    with pytest.raises(InputError, match=r"it lacks 'd'\."):
        loaded.check(batch[list("abc")])


def test_a_loaded_monitor_has_all_settings(tmp_path):
    monitor = ua.DriftMonitor(np.exp(normal(600)), preprocess="log1p", nan_policy="omit")
    monitor.save(tmp_path / "monitor.npz")
    loaded = ua.DriftMonitor.load(tmp_path / "monitor.npz")
    batch = np.exp(normal(200, 1))
    batch[0, 0] = np.nan
    with pytest.warns(MissingDataWarning, match="dropped 1 of 200 rows"):
        assert loaded.check(batch).n_samples == 199
    again = loaded.fit(np.exp(normal(600)))
    assert again.fingerprint == monitor.fingerprint
    assert again.history == []


def test_a_damaged_file_is_an_error(tmp_path):
    path = tmp_path / "monitor.npz"
    path.write_bytes(pickle.dumps(1))
    with pytest.raises(FileError, match=r"monitor.npz' was not written by unaligned"):
        ua.DriftMonitor.load(path)


def test_a_monitor_of_wrong_numbers_is_not_loaded(tmp_path):
    # A regression: with NaN in an array every batch was reported as drift.
    monitor, path = ua.DriftMonitor(normal(600)), tmp_path / "monitor.npz"
    monitor.check(normal(200, 1))
    monitor.save(path)
    with np.load(path) as stored:
        members = dict(stored)
    header = json.loads(members["header"].tobytes())
    tables = members.keys() - {"header"}
    wrong = [{**members, name: np.full_like(members[name], np.nan)} for name in tables]
    for place, value in [
        (("settings", "alpha"), 5.0),
        (("settings", "distances"), ["zzz"]),
        (("block_size",), -3),
        (("block_size",), 10**30),
        (("n_rows",), -1),
        (("history", 0, "p_value"), 7.0),
        (("history", 0, "readings", 0, "p_value"), -1.0),
    ]:
        changed = copy.deepcopy(header)
        inside = changed
        for key in place[:-1]:
            inside = inside[key]
        inside[place[-1]] = value
        text = np.frombuffer(json.dumps(changed).encode(), np.uint8)
        wrong.append({**members, "header": text})
    for found in wrong:
        np.savez(path, **found)
        with pytest.raises(FileError, match=r"monitor.npz' is damaged"):
            ua.DriftMonitor.load(path)


def test_files_are_joined(tmp_path):
    parts = np.split(normal(600), 3)
    for i, part in enumerate(parts):
        np.save(tmp_path / f"{i}.npy", part)
    paths = [tmp_path / f"{i}.npy" for i in range(3)]
    monitor = ua.DriftMonitor(paths)
    assert monitor.check(normal(200, 1)).n_reference == 600
    np.save(paths[1], parts[1][:, :3])
    with pytest.raises(NotApplicableError, match=r"cannot be joined: .* 4 columns .* 3"):
        ua.DriftMonitor(paths)


def test_a_store_of_references(tmp_path):
    store = ua.Store(tmp_path / "refs.db")
    for i in range(60):
        store.add(ua.signature(normal(80, i), n_eigenvalues=20), name=str(i))
    monitor = ua.DriftMonitor(store, alpha=0.05)
    found = monitor.check(normal(80, 99))
    assert not found.is_drift
    assert found.readings[0].smallest_p_value == 1 / 61
    assert monitor.check(normal(80, 99, d=8)).is_drift
    with pytest.raises(InputError, match="79 rows, fewer than the 80 of a block"):
        monitor.check(normal(79))
    with pytest.raises(InputError, match=r"at least 160 rows, or 99 signatures\."):
        ua.DriftMonitor(store).check(normal(80))
    with pytest.raises(InputError, match="reference of this monitor is signatures"):
        monitor.fit(normal(300))
    with pytest.raises(OptionError, match="leave out block_size"):
        ua.DriftMonitor(store, block_size=10)
    store.add(ua.signature(normal(90, 70), n_eigenvalues=20), name="larger")
    with pytest.warns(SampleSizeWarning, match="between 80 and 90 rows"):
        ua.DriftMonitor(store, alpha=0.05)


def test_too_few_rows_name_what_would_do():
    monitor = ua.DriftMonitor(normal(450))
    with pytest.raises(InputError, match="29 rows, fewer than the 30 of a block of 'les'"):
        monitor.check(normal(29))
    with pytest.raises(
        InputError, match=r"no p-value below 0.071; its share of alpha=0.01 is 0.0033"
    ) as info:
        monitor.check(normal(40))
    # Everything that the message offers works.
    offers = r"at least (\d+) rows, .* at least (\d+) rows, or block_size=(\d+)"
    rows, reference, size = map(int, re.findall(offers, str(info.value))[0])
    monitor.check(normal(rows))
    with pytest.raises(InputError, match="no p-value below"):
        monitor.check(normal(rows - 1))
    ua.DriftMonitor(normal(reference)).check(normal(40))
    ua.DriftMonitor(normal(450), block_size=size).check(normal(40))


def test_an_unreachable_alpha_raises_at_once():
    with pytest.raises(
        InputError, match=r"alpha=0.0001 needs at least .* blocks of 30 rows"
    ) as info:
        ua.DriftMonitor(normal(150), alpha=1e-4)
    (rows,) = re.findall(r"that is (\d+) rows", str(info.value))
    ua.DriftMonitor(normal(int(rows)), alpha=1e-4)
    with pytest.raises(InputError, match=r"below the 1e-06 that permutation tests reach"):
        ua.DriftMonitor(normal(150), alpha=1e-300, horizon=10**9)


@pytest.mark.parametrize("distances", ["ks", "edistance", "mmd", ["edistance", "ks"]])
@pytest.mark.parametrize("n", [1, 20, 31])
def test_a_reference_of_few_rows_is_an_error(distances, n):
    with pytest.raises(InputError, match=r"alpha=0.01 needs at least (\d+) rows") as info:
        ua.DriftMonitor(normal(n), distances=distances)
    (rows,) = re.findall(r"at least (\d+) rows", str(info.value))
    ua.DriftMonitor(normal(int(rows)), distances=distances).check(normal(200, 1))


def test_features_reach_any_level_or_say_what_would_do():
    assert ua.DriftMonitor(normal(600), distances="ks", alpha=1e-20).read(normal(600, 1) + 9)
    monitor = ua.DriftMonitor(normal(44), distances="ks", alpha=1e-40)
    with pytest.raises(InputError, match=r"no p-value below .* Give a larger reference, or"):
        monitor.read(normal(200))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"alpha": 0}, InputError, "alpha=0 must be above 0"),
        ({"alpha": 0.9}, InputError, "alpha=0.9 must be at most 0.5"),
        ({"alpha": "x"}, InputTypeError, "alpha='x' must be a number"),
        ({"distances": "lse"}, InputError, "distances='lse' is not known. Did you mean 'les'"),
        ({"distances": []}, InputError, "must name instruments"),
        ({"distances": 3}, InputTypeError, "distances=3 must be a list of names"),
        ({"alpha": 1e-9}, InputError, "alpha=1e-09 is 3.3e-10 .* below the 1e-06 that"),
        ({"horizon": 10**5}, InputError, "Give a larger alpha, a smaller horizon, or"),
        ({"distances": ["ks", "ks"]}, InputError, "each once"),
        ({"horizon": 0}, InputError, "horizon=0 must be at least 1"),
        ({"block_size": 3}, InputError, "block_size=3 must be at least 4"),
        ({"gamma": "auto"}, InputError, "gamma='auto' would choose another γ"),
        ({"gamm": 1}, OptionError, "no option 'gamm'"),
        ({"distances": "ks", "gamma": 1e-6}, OptionError, "no option 'gamma' without 'les'"),
        ({"n_eigenvalues": 99}, InputError, "n_eigenvalues=99 needs blocks of at least 99"),
        ({"rng": "x"}, InputTypeError, "rng='x'"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        ua.DriftMonitor(normal(600), **arguments)


def test_bad_references():
    with pytest.raises(InputTypeError, match="one Signature, which has no rows"):
        ua.DriftMonitor(ua.signature(normal(100)))
    with pytest.raises(InputTypeError, match="both data and signatures"):
        ua.DriftMonitor([ua.signature(normal(100)), normal(100)])
    with pytest.raises(InputError, match="NaN"):
        ua.DriftMonitor(np.full((300, 3), np.nan))


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.float32])
def test_other_types_of_numbers(dtype):
    monitor = ua.DriftMonitor((10 * normal(600)).astype(dtype))
    assert not monitor.check((10 * normal(200, 1)).astype(dtype)).is_drift
    assert monitor.check((10 * normal(200, 1) + 9).astype(dtype)).is_drift


def test_a_constant_column_that_moves_is_seen():
    rows, batch = normal(600), normal(200, 1)
    rows[:, 1] = batch[:, 1] = 5.0
    monitor = ua.DriftMonitor(rows)
    assert not monitor.read(batch).is_drift
    batch[:, 1] = 5.0001
    assert list(monitor.read(batch).moved) == ["column 1"]


def test_a_warning_of_all_blocks_is_issued_once():
    with pytest.warns(IndefiniteWarning, match="blocks of dataset 'reference'") as issued:
        monitor = ua.DriftMonitor(normal(300), alpha=0.05, metric="cosine")
    assert len(issued) == 1
    with pytest.warns(IndefiniteWarning, match="blocks of dataset 'batch 1'") as issued:
        monitor.check(normal(200, 1))
    assert len(issued) == 1


def test_sparse_rows():
    from scipy import sparse

    rows = np.where(normal(600) > 1, normal(600), 0)
    batch = np.where(normal(200, 1) > 1, normal(200, 1), 0)
    monitor = ua.DriftMonitor(sparse.csr_array(rows))
    assert not monitor.check(sparse.csr_array(batch)).is_drift
    assert monitor.check(sparse.csr_array(batch + (batch > 0))).is_drift


def test_distances_between_rows_are_checked_by_les():
    def matrix(x):
        return ua.Dataset(cdist(x, x), kind="distances")

    monitor = ua.DriftMonitor(matrix(normal(450)), alpha=0.05)
    assert monitor.distances == ("les",)
    assert not monitor.check(matrix(normal(120, 1))).is_drift
    assert monitor.check(matrix(normal(120, 1, d=9))).is_drift
    with pytest.raises(InputError, match="has no columns"):
        ua.DriftMonitor(matrix(normal(300)), distances="ks")


def test_without_scale_the_battery_takes_columns_as_they_are():
    monitor = ua.DriftMonitor(normal(600), scale=False)
    assert not monitor.check(normal(200, 1)).is_drift
    assert monitor.check(normal(200, 1) + 1).is_drift
