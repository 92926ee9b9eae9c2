"""Changes are those of the corrected distance, and their noise is calibrated."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from unaligned.explanation.changes import changes_of, deck_of
from unaligned.inference.energy import Design, statistic


def deck(rng, shift, n=6, k=4, n_candidates=3):
    """Return signatures of blocks: candidate 0 holds the whole difference of two datasets."""
    base = rng.normal(size=(2 * n, k))
    base[:n] += shift
    without = [base + 0.1 * rng.normal(size=base.shape) for _ in range(n_candidates)]
    without[0][:n] -= shift
    return deck_of([base] * n_candidates, without)


def statistics(one):
    """Return U without each candidate and with all, and S, the distance before its correction."""
    design = Design.of(6, 6)
    found = [
        np.array([statistic(m, design.observed[None], design)[0] for m in matrices])
        for matrices in one[:2]
    ]
    return *found, np.array([np.sum(shift**2) for shift in one.shifts[1]])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shift", [0.0, 5.0])
def test_the_change_is_that_of_the_root(seed, shift):
    rng = np.random.default_rng(seed)
    one = deck(rng, shift)
    found = changes_of([one], rng)
    without, whole, plain = statistics(one)
    roots = np.sqrt(np.maximum(plain + without - whole, 0.0)) - np.sqrt(plain)
    np.testing.assert_allclose(found.change[1:], roots[1:])
    assert found.distance == pytest.approx(np.sqrt(np.maximum(whole, 0.0)).mean())
    if shift:
        corrected = np.sqrt(np.maximum(without, 0.0)) - np.sqrt(whole)
        np.testing.assert_allclose(found.change, corrected, rtol=0.1, atol=0.1)


def test_equal_datasets_have_no_change():
    rng = np.random.default_rng(0)
    base = rng.normal(size=(6, 4))
    same = np.concatenate([base, base])
    found = changes_of([deck_of([same], [same])], rng)
    assert found.change == pytest.approx([0.0])
    assert not found.exceeds_noise.any()


@pytest.mark.parametrize("seed", range(5))
def test_the_cause_and_only_the_cause_is_marked(seed):
    rng = np.random.default_rng(seed)
    found = changes_of([deck(rng, 5.0) for _ in range(3)], rng)
    assert found.exceeds_noise.tolist() == [True, False, False]
    assert found.change[0] < 0


def test_noise_alone_is_marked_in_one_of_twenty():
    rng = np.random.default_rng(0)
    marked = [changes_of([deck(rng, 0.0)], rng).exceeds_noise.any() for _ in range(200)]
    assert np.mean(marked) <= 0.1


def test_a_candidate_without_geometry_has_no_change():
    rng = np.random.default_rng(0)
    one = deck(rng, 5.0)
    one.without[1] = np.nan
    found = changes_of([one], rng)
    assert np.isnan(found.change).tolist() == [False, True, False]
    assert found.exceeds_noise.dtype == bool
    assert not found.exceeds_noise[1]


def test_decks_hold_squared_distances():
    points = np.random.default_rng(0).normal(size=(8, 3))
    np.testing.assert_allclose(
        deck_of([points], [points]).whole[0], cdist(points, points) ** 2, atol=1e-12
    )


@pytest.mark.parametrize("seed", range(3))
def test_averaging_over_partitions_takes_their_noise_out(seed):
    """Blocks of one deck add up to the same rows: partitions differ by zero-sum noise only."""
    rng = np.random.default_rng(seed)
    shift, n, k = 0.5, 4, 30
    pooled, single = [], []
    for _ in range(20):
        decks = []
        for _ in range(10):
            base = rng.normal(size=(2 * n, k))
            base[:n] += shift
            decks.append(deck_of([base], [base * 0.0 + rng.normal(size=base.shape)]))
        found = changes_of(decks, rng)
        pooled.append(found.distance)
        single.append(changes_of(decks[:1], rng).distance)
    assert np.std(pooled) < np.std(single)
    assert np.mean(pooled) == pytest.approx(shift * np.sqrt(k), rel=0.15)
