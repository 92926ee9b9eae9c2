"""Changes are those of the corrected distance, and their noise is calibrated."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from unaligned.explanation.changes import Shifts, changes_of
from unaligned.inference.energy import Design, statistic


def deck(rng, shift, n=6, k=4, n_candidates=3):
    """Return signatures of blocks: candidate 0 holds the whole difference of two datasets."""
    base = rng.normal(size=(2, n, k))
    base[0] += shift
    without = [base + 0.1 * rng.normal(size=base.shape) for _ in range(n_candidates)]
    without[0][0] -= shift
    return np.array([base, *without])


def partitions(rng, shift, n_rows=24, n_decks=10):
    """Return decks of the same rows, of which each block has the mean of six, and its square."""
    rows = rng.normal(size=(4, 2, n_rows, 3)) * np.array([1.0, 0.3, 0.3, 0.3])[:, None, None, None]
    rows[1:] += rows[0]
    rows[[0, 2, 3], 0] += shift
    decks = []
    for _ in range(n_decks):
        order = np.stack([rng.permutation(n_rows) for _ in range(2)])
        drawn = np.stack([rows[:, side, order[side]] for side in (0, 1)], axis=1)
        mean = drawn.reshape(4, 2, 4, n_rows // 4, 3).mean(axis=3)
        decks.append(np.concatenate([mean, mean**2], axis=-1))
    return decks


def energies(signatures):
    """Return U with everything and without each candidate."""
    n = signatures.shape[2]
    design = Design.of(n, n)
    both = signatures.reshape(len(signatures), 2 * n, -1)
    squared = [cdist(points, points, "sqeuclidean") for points in both]
    return np.array([statistic(m, design.observed[None], design)[0] for m in squared])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shift", [0.0, 5.0])
def test_the_change_is_that_of_the_root(seed, shift):
    rng = np.random.default_rng(seed)
    one = deck(rng, shift)
    found = changes_of([one], rng)
    whole, *without = energies(one)
    plain = np.sum((one[0, 0].mean(axis=0) - one[0, 1].mean(axis=0)) ** 2)
    roots = np.sqrt(np.maximum(plain + without - whole, 0.0)) - np.sqrt(plain)
    np.testing.assert_allclose(found.change[1:], roots[1:])
    assert found.distance == pytest.approx(np.sqrt(max(whole, 0.0)))
    if shift:
        corrected = np.sqrt(np.maximum(without, 0.0)) - np.sqrt(whole)
        np.testing.assert_allclose(found.change, corrected, rtol=0.1, atol=0.1)


def test_equal_datasets_have_no_change():
    rng = np.random.default_rng(0)
    base = rng.normal(size=(6, 4))
    found = changes_of([np.broadcast_to(base, (2, 2, 6, 4))], rng)
    assert found.change == pytest.approx([0.0])
    assert not found.exceeds_noise.any()


@pytest.mark.parametrize("seed", range(5))
def test_the_cause_and_only_the_cause_is_marked(seed):
    rng = np.random.default_rng(seed)
    found = changes_of([deck(rng, 5.0) for _ in range(3)], rng)
    assert found.exceeds_noise.tolist() == [True, False, False]
    assert found.change[0] < 0


@pytest.mark.parametrize("n", [4, 6, 20])
def test_noise_alone_is_marked_in_one_of_twenty(n):
    rng = np.random.default_rng(0)
    marked = [changes_of([deck(rng, 0.0, n=n)], rng).exceeds_noise.any() for _ in range(200)]
    assert np.mean(marked) <= 0.1


@pytest.mark.parametrize("n_decks", [4, 20])
@pytest.mark.parametrize(("shift", "least", "most"), [(0.0, 1.0, 2.0), (2.0, 0.8, 1.25)])
def test_the_noise_is_the_spread_of_the_change(shift, least, most, n_decks):
    """Partitions of the same rows are no further data. Without a difference it may be larger."""
    rng = np.random.default_rng(0)
    found = [changes_of(partitions(rng, shift, n_decks=n_decks), rng) for _ in range(300)]
    spread = np.std([each.change for each in found], axis=0)
    stated = np.sqrt(np.mean([each.noise**2 for each in found], axis=0))
    ratio = np.sqrt(np.mean((stated / spread) ** 2))
    assert least < ratio < most
    if not shift:
        assert np.mean([each.exceeds_noise.any() for each in found]) <= 0.1


def test_a_candidate_without_geometry_has_no_change():
    rng = np.random.default_rng(0)
    one = deck(rng, 5.0)
    one[2] = np.nan
    found = changes_of([one], rng)
    assert np.isnan(found.change).tolist() == [False, True, False]
    assert found.exceeds_noise.dtype == bool
    assert not found.exceeds_noise[1]


def test_residuals_have_the_covariance_of_the_shift():
    rng = np.random.default_rng(0)
    one = deck(rng, 1.0)
    residuals = Shifts.of([one]).residuals[1]
    expected = sum(np.cov(one[1, side].T) / 6 for side in (0, 1))
    np.testing.assert_allclose(residuals.T @ residuals, expected)


@pytest.mark.parametrize("seed", range(3))
def test_averaging_over_partitions_takes_their_noise_out(seed):
    """Blocks of one deck add up to the same rows: partitions differ by zero-sum noise only."""
    rng = np.random.default_rng(seed)
    shift, n, k = 0.5, 4, 30
    pooled, single = [], []
    for _ in range(20):
        decks = []
        for _ in range(10):
            both = rng.normal(size=(2, 2, n, k))
            both[0, 0] += shift
            decks.append(both)
        pooled.append(changes_of(decks, rng).distance)
        single.append(changes_of(decks[:1], rng).distance)
    assert np.std(pooled) < np.std(single)
    assert np.mean(pooled) == pytest.approx(shift * np.sqrt(k), rel=0.15)
