"""ua.explain finds what was planted, says how sure it is, and rejects what it cannot explain."""

import os
import signal
import threading
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

import unaligned as ua
from unaligned.errors import DataWarning, InputError, InputTypeError, OptionError
from unaligned.explanation import features, rows
from unaligned.explanation.blocks import Plan, log_spectrum, read_block
from unaligned.spectra.pipeline import SignatureSettings

QUICK = {"n_repeats": 1, "progress": False}


def noise_in_one_feature(seed, n=320, d=6, n_latent=2):
    """Return two samples of a 2-d latent space in 6 features; one of the second is noise."""
    rng = np.random.default_rng(seed)
    mix = np.random.default_rng(0).normal(size=(n_latent, d))
    a, b = (rng.normal(size=(n, n_latent)) @ mix for _ in range(2))
    b[:, seed % d] = b[:, seed % d].std() * rng.normal(size=n)
    return a, b, str(seed % d)


def missing_cluster(seed, n=300):
    """Return two samples of five clusters in 20-d, one of which the second lacks."""
    rng = np.random.default_rng(seed)
    centres = 3.0 * rng.normal(size=(5, 20))
    sides = []
    for present in (range(5), [i for i in range(5) if i != seed % 5]):
        labels = rng.choice(list(present), size=n)
        sides.append((centres[labels] + rng.normal(size=(n, 20)), labels))
    (a, first), (b, second) = sides
    return a, b, (first, second), str(seed % 5)


@pytest.mark.parametrize("seed", range(3))
def test_a_feature_replaced_by_noise_comes_first(seed):
    a, b, cause = noise_in_one_feature(seed)
    found = ua.explain(a, b, **QUICK)
    frame = found.to_frame()
    assert frame.index[0] == cause
    assert frame.change.iloc[0] < 0
    assert frame.exceeds_noise.iloc[0]
    assert list(frame.columns) == ["change", "noise", "exceeds_noise"]
    assert frame.change.abs().is_monotonic_decreasing
    assert (frame.noise > 0).all()
    assert sorted(frame.index) == list("012345")
    assert found.distance == pytest.approx(ua.explain(b, a, **QUICK).distance)


@pytest.mark.parametrize("seed", range(3))
def test_a_missing_cluster_comes_first(seed):
    a, b, labels, cause = missing_cluster(seed)
    frame = ua.explain(a, b, by="rows", labels=labels, **QUICK).to_frame()
    assert frame.index[0] == cause
    assert frame.change.iloc[0] < 0
    assert frame.exceeds_noise.iloc[0]


def test_the_result_is_the_same_for_any_jobs_and_order():
    a, b, labels, _ = missing_cluster(0)
    one, two, swapped = (
        ua.explain(*data, by="rows", labels=own, n_jobs=jobs, **QUICK)
        for data, own, jobs in (
            ((a, b), labels, 1),
            ((a, b), labels, 2),
            ((b, a), labels[::-1], 1),
        )
    )
    for other in (two, swapped):
        np.testing.assert_allclose(other.change, one.change, atol=1e-8)
        np.testing.assert_allclose(other.noise, one.noise, rtol=1e-6)
        assert other.labels == one.labels


def test_features_have_their_names_and_missing_ones_stay_in_the_other():
    a, b, _ = noise_in_one_feature(0)
    first = pd.DataFrame(a, columns=list("abcdef"))
    second = pd.DataFrame(b[:, :5], columns=list("abcde"))
    found = ua.explain(first, second, **QUICK)
    assert sorted(found.labels) == list("abcdef")
    unnamed = ua.explain(a, b[:, :5], **QUICK)
    assert {"a: 5", "b: 0"} <= set(unnamed.labels)
    assert len(unnamed.labels) == 11


def test_names_stay_with_their_columns_when_these_are_standardized():
    a, b, _ = noise_in_one_feature(0)
    first, second = (pd.DataFrame(x, columns=list("uvwxyz")) for x in (a, b))
    options = {"preprocess": "standardize", **QUICK}
    found = ua.explain(first, second[list("zyxwvu")], **options)
    assert found.labels[0] == "u"
    assert sorted(found.labels) == list("uvwxyz")


def test_principal_components_are_not_named_as_columns():
    a, b, _ = noise_in_one_feature(0)
    first, second = (pd.DataFrame(x, columns=list("uvwxyz")) for x in (a, b))
    found = ua.explain(first, second, preprocess="pca:3", **QUICK)
    assert sorted(found.labels) == ["component 0", "component 1", "component 2"]


@pytest.mark.parametrize("names", [[500, 501, 502], [0, 1, 2]])
def test_columns_with_numbers_as_names_are_not_matched_by_position(names):
    a, b = (pd.DataFrame(CLOUD + i, columns=names) for i in range(2))
    with pytest.raises(InputError, match=r"have numbers as names, .* b\[a\.columns\]"):
        ua.explain(a, b[names[::-1]], **QUICK)
    with pytest.raises(InputError, match=r"have numbers as names"):
        ua.explain(a, b[names[::-1]], by="rows", labels="auto", **QUICK)
    assert sorted(ua.explain(a, b, **QUICK).labels) == ["0", "1", "2"]
    assert ua.explain(pd.DataFrame(CLOUD), b, **QUICK).labels


def test_groups_of_features_are_left_out_together():
    a, b, _ = noise_in_one_feature(1)
    found = ua.explain(a, b, feature_groups={"planted": [1, 2], "rest": ["3", 4]}, **QUICK)
    assert found.labels[0] == "planted"
    assert found.members == {"planted": ("1", "2"), "rest": ("3", "4")}
    assert len(found.labels) == 2


def test_many_features_are_left_out_by_groups_first():
    rng = np.random.default_rng(0)
    mix = np.kron(np.eye(8), np.ones(9))  # 72 columns in 8 groups
    a, b = (rng.normal(size=(200, 8)) @ mix + 0.1 * rng.normal(size=(200, 72)) for _ in range(2))
    b[:, :9] = rng.normal(size=(200, 9))
    found = ua.explain(a, b, n_repeats=1, progress=False)
    groups = [label for label in found.labels if "more" in label]
    assert "0 and 8 more" in groups
    assert len(groups) >= 8
    assert found.labels[0] == "0 and 8 more"
    assert {str(i) for i in range(9)} <= set(found.labels)  # those of the largest one by one
    assert found.members["0 and 8 more"] == tuple(map(str, range(9)))


def one_factor(seed, d, n=160):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 1)) + 0.3 * rng.normal(size=(n, d))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (one_factor(0, 80), one_factor(1, 80)),
        (one_factor(0, 62), one_factor(1, 66)),
        (np.tile(one_factor(0, 1), 62), np.tile(one_factor(1, 1), 62)),  # equal columns
    ],
)
def test_many_columns_of_one_factor_are_not_one_group(a, b):
    found = ua.explain(a, b, **QUICK)
    widths = a.shape[1], b.shape[1]
    assert all(len(members) < min(widths) for members in found.members.values())
    singles = [label for label in found.labels if label not in found.members]
    known = {name for members in found.members.values() for name in members} | set(singles)
    assert len(known) == (widths[0] if widths[0] == widths[1] else sum(widths))


def test_a_group_of_all_columns_of_the_narrower_dataset_is_halved():
    wide = pd.DataFrame(one_factor(0, 62), columns=[f"x{i}" for i in range(62)])
    narrow = pd.DataFrame(one_factor(1, 2), columns=["x3", "x4"])
    labels = list(wide), list(narrow)
    wide[["x3", "x4"]] = np.tile(wide[["x0"]], 2)
    datasets = ua.Dataset(wide), ua.Dataset(narrow)
    found = features.correlated_groups(datasets, labels, np.random.default_rng(0))
    assert not any({"x3", "x4"} <= set(group) for group in found)
    assert sorted(name for group in found for name in group) == sorted(wide)


@pytest.mark.parametrize("width", [3, 62])
def test_the_only_column_of_a_dataset_is_not_left_out(width):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(160, 1)), rng.normal(size=(160, width))
    with pytest.warns(DataWarning, match=r"Not left out, .* no other column: 'a: 0'\."):
        found = ua.explain(a, b, **QUICK)
    assert all(label.startswith("b: ") for label in found.labels)


def test_updated_distances_are_those_of_the_other_columns():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(40, 5))
    values[:, 2] *= 1e6
    block = read_block(ua.Dataset(values), np.arange(40))
    for columns in ([0], [2], [1, 2], [0, 1, 3]):
        rest = np.delete(values, columns, axis=1)
        direct = ((rest[:, None] - rest) ** 2).sum(axis=2)
        updated = features._without(block, np.array(columns))
        np.testing.assert_allclose(updated, direct, rtol=1e-9, atol=1e-3 if 2 in columns else 1e-9)


def test_block_signatures_are_those_of_the_library():
    values = np.random.default_rng(0).normal(size=(60, 3))
    block = read_block(ua.Dataset(values), np.arange(60))
    found = log_spectrum(block.squared, SignatureSettings(), 20)
    np.testing.assert_allclose(found, ua.signature(values, n_eigenvalues=20).values, atol=1e-6)


def test_blocks_of_a_deck_are_disjoint_and_of_one_size():
    small, large = (ua.Dataset(np.random.default_rng(0).normal(size=(n, 2))) for n in (300, 2000))
    plan = Plan.of((small, large), None, 10, 0)
    assert (plan.size, plan.per_deck) == (75, 4)
    for own in plan.rows:
        assert own.shape == (128, 75)
        assert all(np.unique(own[part]).size == 300 for part in plan.decks(128))
    both = Plan.of((large, large), None, 10, 0)
    assert (both.size, both.per_deck, len(both.rows[0])) == (250, 8, 40)


def test_rows_are_compared_at_the_size_that_every_group_leaves():
    a, b, labels, _ = missing_cluster(0)
    own = labels[0], labels[1][:200]
    found = ua.explain(a, b[:200], by="rows", labels=own, **QUICK)
    largest = max(np.bincount(own[1]))
    assert found.block_size == (200 - largest) // 4
    assert found.n_eigenvalues == found.block_size // 3
    assert found.n_samples == (300, 200)


@pytest.mark.parametrize("seed", range(3))
def test_without_a_group_the_blocks_of_a_deck_stay_disjoint(seed):
    rng = np.random.default_rng(seed)
    labels = rng.choice(list("abc"), size=200, p=[0.6, 0.3, 0.1])
    data = ua.Dataset(rng.normal(size=(200, 2)))
    n_left = min((labels != name).sum() for name in "abc")
    pools = np.arange(200), np.arange(200)
    plan = Plan.of((data, data), None, 1, 0, pools=pools, n_left=int(n_left), least=10)
    others = rows.stand_ins(plan, 0, labels, list("abc"))
    for part in plan.decks(len(others)):
        own, spare = plan.rows[0][part], others[part]
        for name in "abc":
            left = np.where(labels[own] == name, spare, own)
            assert np.unique(left).size == plan.per_deck * plan.size
            assert name not in labels[left]


def test_leaving_rows_out_is_the_distance_of_the_other_rows():
    """Without a group that only one dataset has, two equal datasets are left."""
    rng = np.random.default_rng(0)
    a, new = rng.normal(size=(300, 3)), 4.0 + 0.1 * rng.normal(size=(60, 3))
    labels = np.zeros(300), np.r_[np.zeros(300), np.ones(60)]
    with pytest.warns(DataWarning, match=r"Not left out, .* '0' \(0 rows left\)"):
        found = ua.explain(a, np.r_[a, new], by="rows", labels=labels, **QUICK)
    assert found.labels == ("1",)
    assert found.change[0] == pytest.approx(-found.distance, rel=0.25)
    assert found.exceeds_noise[0]


def test_labels_auto_cluster_all_rows_together():
    a, b, _, _ = missing_cluster(0)
    found = ua.explain(a, b, by="rows", labels="auto", **QUICK)
    assert all(label.startswith("cluster ") for label in found.labels)
    apart = ua.explain(a, b[:, :10], by="rows", labels="auto", **QUICK)
    assert {label[0] for label in apart.labels} == {"a", "b"}


def test_clusters_of_datasets_with_long_names_stay_apart():
    a, b, _, _ = missing_cluster(0)
    a = ua.Dataset(a[:, :10], name="{cells} of a donor " * 4)
    found = ua.explain(a, b, by="rows", labels="auto", **QUICK)
    assert sum(label.startswith(str(a.name)) for label in found.labels) == 6


def test_distances_can_be_explained_by_rows():
    a, b, labels, cause = missing_cluster(1)
    matrices = [
        ua.Dataset(np.sqrt(((x[:, None] - x) ** 2).sum(axis=2)), "distances") for x in (a, b)
    ]
    found = ua.explain(*matrices, by="rows", labels=labels, **QUICK)
    assert found.labels[0] == cause
    with pytest.raises(InputError, match=r"by='features' leaves out columns of points"):
        ua.explain(*matrices, **QUICK)


def test_a_group_that_is_everything_is_not_left_out():
    a, b, labels, _ = missing_cluster(0)
    mostly = [np.where(np.arange(300) < 290, "x", "y") for _ in labels]
    with pytest.warns(DataWarning, match=r"Not left out, .* 'x' \("):
        found = ua.explain(a, b, by="rows", labels=mostly, **QUICK)
    assert found.labels == ("y",)


def test_a_feature_without_which_nothing_is_left_has_no_change():
    rng = np.random.default_rng(0)
    a, b = (np.c_[rng.normal(size=200), np.zeros(200)] for _ in range(2))
    with pytest.warns(DataWarning, match=r"nothing, .* left without .*: 0"):
        frame = ua.explain(a, b, **QUICK).to_frame()
    assert np.isnan(frame.change["0"])
    assert frame.index[-1] == "0"


def test_a_group_without_which_duplicates_are_left_has_no_change():
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(300, 3)) for _ in range(2))
    b[:100] = 0.0  # 100 of the 150 rows that are left without B
    labels = (
        np.array(["T", "B", "drop"])[np.arange(300) % 3],
        np.repeat(["drop", "B", "T"], [100, 150, 50]),
    )
    with pytest.warns(DataWarning, match=r"mostly duplicates, left without these, .*: B\."):
        frame = ua.explain(a, b, by="rows", labels=labels, **QUICK).to_frame()
    assert np.isnan(frame.change).to_dict() == {"drop": False, "T": False, "B": True}


def test_where_no_feature_can_be_left_out_all_changes_are_nan():
    rng = np.random.default_rng(0)
    a, b = (rng.integers(2, size=(200, 2)).astype(float) for _ in range(2))
    with pytest.warns(DataWarning, match=r"which have no change: 0, 1\."):
        found = ua.explain(a, b, **QUICK)
    assert np.isnan([*found.change, *found.noise, found.threshold]).all()
    assert not found.exceeds_noise.any()
    assert np.isfinite(found.distance)
    assert "No change is known." in found.summary
    assert isinstance(found.plot(), Axes)
    assert "nan" in str(found)


def test_the_summary_names_what_is_found():
    a, b, cause = noise_in_one_feature(0)
    found = ua.explain(ua.Dataset(a, name="mine"), ua.Dataset(b, name="yours"), **QUICK)
    assert found.summary.startswith("'mine' and 'yours' are at les ")
    assert f"Without {cause} (-" in found.summary
    assert repr(found) == found.summary
    assert str(found).count("\n") == 1 + 6
    alike = ua.explain(a, a[::-1] + 1.0, **QUICK)
    assert "none of the 6 features" in alike.summary


def test_the_summary_counts_groups_as_groups():
    a, b, _ = noise_in_one_feature(0)
    pair = ua.explain(a, b, feature_groups={"planted": [0, 1], "rest": [2, 3]}, **QUICK)
    assert "1 of 2 groups changes that" in pair.summary or "2 of 2 groups" in pair.summary
    one = ua.explain(a, b, feature_groups={"planted": [0, 1]}, **QUICK)
    assert "Leaving out planted changes that by more than noise. Without" in one.summary
    none = replace(one, exceeds_noise=np.array([False]))
    assert "Leaving out planted does not change that by more than noise." in none.summary
    many = ua.explain(one_factor(0, 62), one_factor(1, 62), **QUICK)
    n_groups, n_all = len(many.members), len(many.labels)
    assert f" {n_groups} groups and {n_all - n_groups} features changes" in many.summary


@pytest.mark.parametrize("by", ["features", "scale"])
def test_the_arrays_of_a_result_are_read_only(by):
    found = ua.explain(CLOUD, CLOUD[::-1], by=by, **QUICK)
    for name in (
        ("change", "noise", "exceeds_noise") if by == "features" else ("spectra", "errors")
    ):
        with pytest.raises(ValueError, match="read-only"):
            getattr(found, name)[0] = 1.0


@pytest.mark.parametrize("labels", ["auto", [np.arange(100) % 4] * 2])
def test_groups_of_100_rows_can_be_left_out(labels):
    found = ua.explain(CLOUD[:100], CLOUD[100:], by="rows", labels=labels, **QUICK)
    assert 10 <= found.block_size <= 18


def test_the_plot_has_a_bar_for_each_feature():
    a, b, cause = noise_in_one_feature(0)
    axes = ua.explain(a, b, **QUICK).plot(n_shown=4)
    assert isinstance(axes, Axes)
    assert axes.get_yticklabels()[0].get_text() == cause
    assert len(axes.get_yticklabels()) == 4


@pytest.mark.filterwarnings("ignore::unaligned.errors.DataWarning")
@pytest.mark.usefixtures("default_handler")
def test_ctrl_c_keeps_what_is_done(monkeypatch):
    a, b, labels, _ = missing_cluster(0)
    calls, usual = [], rows.signatures_without

    def stop_later(task, item):
        calls.append(item)
        if len(calls) == 11:
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(0.2)
        return usual(task, item)

    monkeypatch.setattr(rows, "signatures_without", stop_later)
    found = ua.explain(a, b, by="rows", labels=labels, n_jobs=1, **QUICK)
    assert not found.is_complete
    assert found.n_blocks == 5
    assert "stopped after 10 blocks" in found.summary


@pytest.mark.usefixtures("default_handler")
@pytest.mark.parametrize("n_more", [3, 20])
def test_ctrl_c_among_the_columns_of_a_group_keeps_the_groups(monkeypatch, n_more):
    a, b = one_factor(0, 62), one_factor(1, 62)
    groups = list(ua.explain(a, b, **QUICK).members)
    calls, usual = [], features.signatures_without

    def stop_later(task, item):
        calls.append(item)
        if len(calls) == 48 + n_more:  # 24 blocks of each dataset
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(0.2)
        return usual(task, item)

    monkeypatch.setattr(features, "signatures_without", stop_later)
    with pytest.warns(DataWarning, match=r"Ctrl-C before the columns of '.* more' were left out"):
        found = ua.explain(a, b, n_jobs=1, **QUICK)
    assert not found.is_complete
    assert found.n_blocks == 24
    assert set(groups) <= set(found.labels)
    assert len(found.labels) <= 20


def test_ctrl_c_before_anything_is_done_stops(monkeypatch):
    a, b, labels, _ = missing_cluster(0)

    def stop(task, item):
        raise KeyboardInterrupt

    monkeypatch.setattr(rows, "signatures_without", stop)
    with pytest.raises(KeyboardInterrupt, match=r"explaining: 0 of 32 blocks done"):
        ua.explain(a, b, by="rows", labels=labels, n_jobs=1, **QUICK)


CLOUD = np.random.default_rng(0).normal(size=(200, 3))


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((CLOUD, CLOUD), {"by": "feature"}, InputError, r"by='feature'.*Did you mean 'features'"),
        ((CLOUD, CLOUD), {"n_repeats": 0}, InputError, r"n_repeats=0 must be at least 1"),
        ((CLOUD, CLOUD), {"labels": "auto"}, InputError, r"labels belong to by='rows'"),
        ((CLOUD, CLOUD), {"by": "rows"}, InputTypeError, r"by='rows' needs labels"),
        ((CLOUD, CLOUD), {"by": "rows", "labels": "kmeans"}, InputError, r"'auto', a pair"),
        (
            (CLOUD, CLOUD),
            {"by": "rows", "labels": ([1] * 200, [1] * 199)},
            InputError,
            r"labels: dataset 'b' has 200 rows, and its labels have shape \(199,\)",
        ),
        (
            (CLOUD, CLOUD),
            {"by": "rows", "labels": ([1] * 200, [1] * 200)},
            InputError,
            r"without any of the groups too few rows are left",
        ),
        ((CLOUD, CLOUD), {"feature_groups": [1, 2]}, InputTypeError, r"must be a dict"),
        ((CLOUD, CLOUD), {"feature_groups": {"x": [7]}}, InputError, r"group 'x' has 7, and no"),
        ((CLOUD, CLOUD), {"feature_groups": {"x": [0, 1, 2]}}, InputError, r"holds all 3 columns"),
        ((CLOUD, CLOUD), {"feature_groups": {"x": []}}, InputError, r"'x' has no columns"),
        ((CLOUD[:, :1], CLOUD[:, :1]), {}, InputError, r"needs at least two features"),
        (
            [ua.Dataset(CLOUD[:, :1], feature_names=[name]) for name in "xy"],
            {},
            InputError,
            r"needs at least two features of a dataset",
        ),
        ((CLOUD[:90], CLOUD), {}, InputError, r"4 blocks of block_size=30 .* dataset 'a' has 90"),
        ((CLOUD, CLOUD), {"block_size": 5}, InputError, r"block_size=5 must be at least 10"),
        ((CLOUD, CLOUD), {"n_eigenvalues": 99}, InputError, r"n_eigenvalues=99 needs blocks"),
        ((CLOUD, CLOUD), {"gamma": "auto"}, InputError, r"gamma as a number"),
        ((CLOUD, CLOUD), {"metric": "cosine"}, InputError, r"metric, n_neighbors and robust"),
        ((CLOUD, CLOUD), {"sigma": 1.0}, OptionError, r"no option 'sigma'"),
        ((np.zeros((200, 3)), CLOUD), {}, InputError, r"dataset 'a': .*gives σ²=0"),
        ((CLOUD, np.array(["x"])), {}, InputError, r"."),
    ],
)
def test_bad_input_is_named(arguments, options, error, message):
    with pytest.raises(error, match=message):
        ua.explain(*arguments, **{**QUICK, **options})


def test_a_signature_has_no_rows():
    with pytest.raises(InputTypeError, match=r"explain\(\) needs the data itself; 'a'"):
        ua.explain(ua.signature(CLOUD), CLOUD)
