"""Mantel, PERMANOVA and PERMDISP, against scikit-bio."""

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist, squareform

import unaligned as ua
from unaligned.errors import InputError
from unaligned.result import Comparison


def comparison(points, **more):
    """A comparison with the Euclidean distances of points."""
    distances = squareform(pdist(points))
    names = tuple(f"d{i}" for i in range(len(points)))
    return Comparison(
        names=names,
        reference_names=names,
        distances=distances,
        error_bounds=np.zeros_like(distances),
        distance=None,
        distance_name="les",
        options={},
        seed=0,
        **more,
    )


@pytest.mark.parametrize("method", ["pearson", "spearman"])
@pytest.mark.parametrize("n", [6, 15])
@pytest.mark.parametrize("seed", range(3))
def test_mantel_agrees_with_scikit_bio(n, method, seed):
    skbio = pytest.importorskip("skbio.stats.distance")
    rng = np.random.default_rng(seed)
    values = rng.normal(size=n)
    points = np.c_[values, 1.5 * rng.normal(size=(n, 3))]
    found = comparison(points).correlate(values, method, rng=seed)
    other = skbio.DistanceMatrix(np.abs(np.subtract.outer(values, values)))
    statistic, p_value, _ = skbio.mantel(
        skbio.DistanceMatrix(squareform(pdist(points))), other, method=method, permutations=9999
    )
    assert found == pytest.approx(statistic, abs=1e-8)
    assert found.p_value == pytest.approx(p_value, abs=0.025)
    assert found.is_exact == (n <= 8)


def test_mantel_of_few_datasets_counts_all_permutations():
    values = np.array([0.0, 1.0, 2.5, 4.5, 7.0])
    found = comparison(values[:, None] ** 1.5).correlate(values)
    observed = np.corrcoef(pdist(values[:, None] ** 1.5), pdist(values[:, None]))[0, 1]
    null = [
        np.corrcoef(pdist(values[:, None] ** 1.5), pdist(values[list(order), None]))[0, 1]
        for order in itertools.permutations(range(5))
    ]
    assert found.p_value == np.mean(np.abs(null) >= abs(observed) - 1e-12)
    assert found.n_permutations == 120
    assert str(found) == str(float(found))
    assert "all 120 permutations" in repr(found)
    assert pickle.loads(pickle.dumps(found)).p_value == found.p_value


@pytest.mark.parametrize("seed", range(3))
def test_cyclic_values_differ_by_the_shorter_way_around(seed):
    hours = np.array([0.5, 3.0, 8.0, 11.0, 15.5, 20.0, 23.5])
    angles = 2 * np.pi * hours / 24
    circle = comparison(np.c_[np.cos(angles), np.sin(angles)])
    cyclic = circle.correlate(hours, period=24)
    assert cyclic > 0.95 > circle.correlate(hours)
    moved = (hours + np.random.default_rng(seed).uniform(0, 24)) % 24  # where a day begins
    assert circle.correlate(moved, period=24) == pytest.approx(cyclic, abs=1e-12)
    assert cyclic.p_value == circle.correlate(moved, period=24).p_value <= 14 / 5040
    assert pickle.loads(pickle.dumps(cyclic)).p_value == cyclic.p_value


@pytest.mark.parametrize("period", [0, -1, np.nan, "day"])
def test_wrong_periods_raise(period):
    with pytest.raises((InputError, TypeError), match="period="):
        comparison(np.eye(4)).correlate([1, 2, 3, 4], period=period)


def test_period_against_references_raises():
    rng = np.random.default_rng(0)
    clouds = [rng.normal(size=(20, 2)) for _ in range(4)]
    found = ua.compare(clouds, clouds[:1], n_eigenvalues=5)
    with pytest.raises(InputError, match=r"period=24 is of differences within one collection"):
        found.correlate([1, 2, 3, 4], period=24)


def test_correlation_with_references_is_tested_by_permuting_datasets():
    angles, widths = np.random.default_rng(0).uniform(0, 6.28, size=90), np.linspace(1, 3, 9)
    rings = [np.c_[np.cos(angles), width * np.sin(angles)] for width in widths]
    found = ua.compare(rings[1:], rings[:1], n_eigenvalues=15).correlate(widths[1:])
    assert 0.9 < found < 1
    assert found.p_value < 0.01


@pytest.mark.parametrize("sizes", [(3, 3), (4, 8), (5, 3, 9)])
@pytest.mark.parametrize("seed", range(3))
def test_group_tests_agree_with_scikit_bio(sizes, seed):
    skbio = pytest.importorskip("skbio.stats.distance")
    rng = np.random.default_rng(seed)
    labels = np.repeat(list("abc")[: len(sizes)], sizes)
    points = rng.normal(size=(len(labels), 4)) * (1 + 0.5 * (labels == "b"))[:, None]
    points[labels == "a", 0] += 1
    order = rng.permutation(len(labels))
    labels, points = labels[order], points[order]
    matrix = skbio.DistanceMatrix(squareform(pdist(points)))
    ours = comparison(points)
    for found, expected in (
        (ours.permanova(list(labels)), skbio.permanova(matrix, labels, permutations=1999)),
        (
            ours.dispersion(list(labels)),
            skbio.permdisp(
                matrix, labels, permutations=1999, test="centroid", dimensions=len(labels) - 1
            ),
        ),
    ):
        assert found.statistic == pytest.approx(expected["test statistic"], rel=1e-8)
        if not found.is_exact:  # scikit-bio takes ties that differ by rounding for smaller
            assert found.p_value == pytest.approx(expected["p-value"], abs=0.05)


def test_small_designs_are_enumerated_and_their_smallest_p_value_is_stated():
    points = np.array([0.0, 1.0, 2.0, 50.0, 51.0, 52.0])[:, None]
    found = comparison(points).permanova(list("aaabbb"))
    assert found.is_exact
    assert found.n_permutations == 20
    assert found.p_value == found.smallest_p_value == pytest.approx(0.1)
    assert "no p-value below 0.1" in repr(found)
    assert found.r_squared > 0.99


@pytest.mark.parametrize("seed", range(2))
def test_group_tests_reject_rarely_where_nothing_differs(seed):
    rng = np.random.default_rng(seed)
    p_values = [
        comparison(rng.normal(size=(10, 3))).permanova(list("aaaaabbbbb"), rng=i).p_value
        for i in range(200)
    ]
    assert np.mean(np.array(p_values) <= 0.05) < 0.11
    assert 0.35 < np.mean(p_values) < 0.65


def test_groups_come_from_metadata():
    rng = np.random.default_rng(1)
    clouds = {
        name: ua.Dataset(rng.normal(size=(50, 2 + i // 3)), metadata={"condition": "xy"[i // 3]})
        for i, name in enumerate("abcdef")
    }
    found = ua.compare(clouds, n_eigenvalues=10).permanova("condition")
    assert found.groups == {"x": 3, "y": 3}


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a"] * 4, "needs at least two groups"),
        (list("abcd"), "needs at least two groups"),
        (list("ab"), "one label for each of the 4 datasets"),
    ],
)
def test_useless_groups_raise(labels, message):
    with pytest.raises(InputError, match=message):
        comparison(np.arange(4.0)[:, None]).permanova(labels)


def test_groupings_without_spread_do_not_hide_the_others():
    """Of pairs of equal datasets, 15 ways to form pairs; F is infinite for one of them."""
    found = comparison(np.repeat([[0.0], [1.0], [9.0]], 2, axis=0))
    assert found.permanova(list("aabbcc")).p_value == pytest.approx(1 / 15)
    assert found.permanova(list("aabccb")).p_value == pytest.approx(5 / 15)
    assert found.permanova(list("ababcc")).p_value == pytest.approx(3 / 15)


def test_spreads_of_equal_datasets_are_zero_but_for_rounding():
    """Of two triples of equal datasets only the regrouped ones have a spread."""
    found = comparison(np.repeat(np.random.default_rng(0).normal(size=(2, 5)), 4, axis=0))
    with pytest.raises(InputError, match="equally far from the centroids of their groups"):
        found.dispersion(list("aaaabbbb"))
    assert found.dispersion(list("aaabbbba")).p_value == 1.0


def test_two_datasets_of_a_group_have_no_spread_to_compare():
    found = comparison(np.random.default_rng(0).normal(size=(6, 2)))
    with pytest.raises(
        InputError, match=r"dispersion\(\) needs a group of three or more datasets"
    ):
        found.dispersion(list("aabbcc"))


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_a_missing_label_is_not_a_group(missing):
    labels = ["a", "a", "b", "b", "b", missing]
    found = comparison(np.random.default_rng(0).normal(size=(6, 2)))
    for given in (labels, dict(zip(found.names, labels, strict=True))):
        with pytest.raises(InputError, match="groups has no label for dataset 'd5'"):
            found.permanova(given)


@pytest.mark.parametrize("labels", [None, 5, "", list("aabb"), np.zeros((6, 2))])
def test_labels_must_be_one_per_dataset(labels):
    found = comparison(np.random.default_rng(0).normal(size=(6, 2)))
    with pytest.raises(
        InputError, match=r"groups must have one label for each of the 6|groups=''"
    ):
        found.permanova(labels)


def test_equal_datasets_raise():
    with pytest.raises(InputError, match="All distances are 0"):
        comparison(np.zeros((4, 1))).permanova(list("aabb"))
