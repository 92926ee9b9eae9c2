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


@pytest.mark.parametrize("seed", range(3))
def test_the_change_is_that_of_the_corrected_distance(seed):
    rng = np.random.default_rng(seed)
    one = deck(rng, 5.0)
    found = changes_of([one], rng)
    design = Design.of(6, 6)
    without, whole = (
        np.array([statistic(m, design.observed[None], design)[0] for m in matrices])
        for matrices in one[:2]
    )
    roots = np.sqrt(np.maximum(without, 0.0)), np.sqrt(whole)
    np.testing.assert_allclose(found.change[1:], (roots[0] - roots[1])[1:])
    assert found.change[0] == pytest.approx(-roots[1][0], rel=0.1)
    assert found.distance == pytest.approx(roots[1].mean())


def test_changes_below_the_noise_are_ranked_by_the_squares():
    rng = np.random.default_rng(0)
    one = deck(rng, 0.0)
    design = Design.of(6, 6)
    without, whole = (
        np.array([statistic(m, design.observed[None], design)[0] for m in matrices])
        for matrices in one[:2]
    )
    found = changes_of([one], rng)
    assert np.ptp(found.change / (without - whole)) < 1e-12


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
