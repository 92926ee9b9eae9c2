"""`robust=True` drops gross outliers, and no rows of clean data."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

import unaligned as ua
from unaligned.data.shapes import torus2, torus3, torus_angles
from unaligned.errors import InputError
from unaligned.operators import outliers
from unaligned.operators.outliers import outlying_rows

N = 1000
SEEDS = range(4)


def scattered(scale, share):
    return lambda rng: scale * rng.normal(size=(round(share * N), 3))


def clump(centre, width):
    return lambda rng: np.asarray(centre) + width * rng.normal(size=(30, 3))


CONTAMINATIONS = {
    "1 % at 100": scattered(100, 0.01),
    "5 % at 100": scattered(100, 0.05),
    "1 % at 20": scattered(20, 0.01),
    "5 % at 20": scattered(20, 0.05),
    "a far clump": clump([100, 0, 0], 1.0),
    "a far tight clump": clump([60, 60, 0], 0.1),
    "a far wide clump": clump([60, 60, 0], 5.0),
}


def les(a, b):
    return float(np.linalg.norm(a.values - b.values))


@pytest.mark.parametrize("seed", SEEDS)
def test_outliers_move_les_by_less_than_2_and_dimension_still_shows(seed):
    clean = torus2(torus_angles(N, 2, rng=seed))
    reference = ua.signature(clean, robust=True)
    other = ua.signature(torus3(torus_angles(N, 3, rng=seed + 100)), robust=True)
    rng = np.random.default_rng(seed)
    for name, make in CONTAMINATIONS.items():
        outliers = make(rng)
        dirty = np.vstack([clean[: -len(outliers)], outliers])
        signature = ua.signature(dirty, robust=True)
        assert les(signature, reference) < 2, name
        assert les(signature, other) >= 0.8 * les(reference, other), name


def test_outliers_dominate_without_robust():
    clean = torus2(torus_angles(N, 2, rng=0))
    dirty = np.vstack([clean[:-10], scattered(100, 0.01)(np.random.default_rng(0))])
    assert ua.distance(clean, dirty) > 20


def test_clean_digits_keep_their_rows():
    assert outlying_rows(load_digits().data).mean() <= 0.005


@pytest.mark.parametrize("day", ["D0", "D2", "D10"])
def test_clean_cells_keep_their_rows(day, cytotree):
    assert outlying_rows(cytotree(day)).mean() <= 0.005


def test_dropped_rows_are_in_the_stats():
    clean = torus2(torus_angles(300, 2, rng=0))
    dirty = np.insert(clean, 7, [500.0, 0.0, 0.0], axis=0)
    assert ua.signature(dirty, n_eigenvalues=50, robust=True).stats["rows_set_aside"] == [7]


def test_few_rows_and_duplicates_are_kept():
    assert not outlying_rows(np.array([[0.0], [1.0], [1e6]])).any()
    mostly_equal = np.vstack([np.zeros((60, 2)), np.random.default_rng(0).normal(size=(40, 2))])
    assert not outlying_rows(mostly_equal).any()


def test_robust_raises_for_other_kinds_and_metrics():
    distances = ua.Dataset(np.ones((30, 30)) - np.eye(30), kind="distances")
    with pytest.raises(InputError, match=r"robust=True works on points; the dataset is 'dist"):
        ua.signature(distances, robust=True, n_eigenvalues=5)
    with pytest.raises(InputError, match=r"robust=True works with metric='euclidean'"):
        ua.signature(np.eye(30), robust=True, metric="cosine")
    with pytest.raises(InputError, match=r"robust='yes' must be True or False"):
        ua.signature(np.eye(30), robust="yes")


def test_signatures_with_and_without_robust_are_not_compared():
    points = np.random.default_rng(0).normal(size=(60, 2))
    a, b = (ua.signature(points, n_eigenvalues=10, robust=r) for r in (True, False))
    with pytest.raises(ua.errors.RecipeMismatchError, match="robust: True and False"):
        ua.distance(a, b)


@pytest.mark.parametrize("offset", [1e4, 1e6, 1e8])
def test_offset_does_not_change_the_outliers(offset):
    torus = torus2(torus_angles(500, rng=0)) + offset
    assert not outlying_rows(torus).any()
    far = np.vstack([torus, 1e9 + np.random.default_rng(0).normal(size=(10, 3))])
    assert np.flatnonzero(outlying_rows(far)).tolist() == list(range(500, 510))


@pytest.mark.parametrize("seed", range(3))
def test_outliers_do_not_depend_on_the_order_or_storage_of_rows(seed, monkeypatch):
    monkeypatch.setattr(outliers, "_references", partial(outliers._references, count=200))
    rng = np.random.default_rng(seed)
    points = np.vstack([rng.normal(size=(600, 4)), 6 * rng.normal(size=(20, 4))])
    points[rng.random(points.shape) < 0.3] = 0.0
    points[:100] = points[100:110].repeat(10, axis=0)
    order = rng.permutation(len(points))
    expected = outlying_rows(points)
    assert 0 < expected.sum() < 60
    np.testing.assert_array_equal(outlying_rows(points[order]), expected[order])
    np.testing.assert_array_equal(outlying_rows(-(0.0 - points)), expected)  # with -0.0
    stored_zeros = sparse.csr_array(points[order] + 9.0)
    stored_zeros.data -= 9.0
    for rows in (sparse.csr_array(points[order]), stored_zeros):
        np.testing.assert_array_equal(outlying_rows(rows), outlying_rows(rows.toarray()))


@pytest.mark.parametrize("seed", range(3))
def test_references_are_drawn_by_content_and_represent_repeated_rows(seed):
    rng = np.random.default_rng(seed)
    rows = np.repeat(rng.normal(size=(40, 2)), 100, axis=0)
    chosen = rows[outliers._references(rows)]
    shuffled = rng.permutation(rows)
    np.testing.assert_array_equal(shuffled[outliers._references(shuffled)], chosen)
    counts = np.unique(chosen, axis=0, return_counts=True)[1]
    assert counts.size == 40
    assert counts.min() > 25  # of 50 on average


@pytest.mark.parametrize("seed", range(2))
def test_robust_signature_does_not_depend_on_the_order_of_rows(seed, monkeypatch):
    monkeypatch.setattr(outliers, "_references", partial(outliers._references, count=200))
    rng = np.random.default_rng(seed)
    points = np.vstack([rng.normal(size=(400, 2)), 4 * rng.normal(size=(20, 2))])
    a, b = (
        ua.signature(rows, robust=True, n_eigenvalues=20)
        for rows in (points, rng.permutation(points))
    )
    assert ua.distance(a, b) <= a.total_error_bound + b.total_error_bound
