"""Each instrument against its definition."""

from itertools import combinations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from unaligned.data.dataset import Dataset
from unaligned.engine import Threads
from unaligned.inference.instruments import Features, Kernel, Shape, smallest_p_value
from unaligned.inference.partition import fit_to_blocks
from unaligned.metrics.les import LES


def shape(n_blocks=12, seed=0):
    points = np.random.default_rng(seed).normal(size=(n_blocks * 20, 3))
    method = fit_to_blocks(LES(), 20)
    return Shape.fit(method, Dataset(points), np.arange(len(points)), 20, 0, Threads(1))


@pytest.mark.parametrize("seed", range(3))
def test_one_block_is_full_conformal(seed):
    instrument = shape()
    batch = Dataset(np.random.default_rng([9, seed]).normal(size=(20, 3)) * [1, 2, 4])
    found = instrument.read(batch, 0.05, 0, Threads(1))
    own = Shape.fit(instrument.method, batch, np.arange(20), 20, 0, Threads(1)).vectors
    everything = np.vstack([instrument.vectors, own])
    scores = np.linalg.norm(everything - everything.mean(axis=0), axis=1)
    assert found.score == pytest.approx(scores[-1])
    assert found.p_value == np.mean(scores >= scores[-1] - 1e-12)
    assert found.smallest_p_value == 1 / 13


def corrected(first, second):
    """Return ‖mean - mean‖² minus what noise adds to it."""
    noise = sum(x.var(axis=0, ddof=1).sum() / len(x) for x in (first, second))
    return ((first.mean(axis=0) - second.mean(axis=0)) ** 2).sum() - noise


def test_several_blocks_are_the_permutation_test():
    instrument = shape()
    batch = Dataset(np.random.default_rng(1).normal(size=(65, 3)) * [1, 2, 4])
    found = instrument.read(batch, 0.05, 0, Threads(1))
    rows = batch.generator(0).permutation(65)[:60]
    own = Shape.fit(instrument.method, batch, rows, 20, 0, Threads(1)).vectors
    everything = np.vstack([own, instrument.vectors])
    null = [
        corrected(everything[list(chosen)], np.delete(everything, chosen, axis=0))
        for chosen in combinations(range(15), 3)
    ]
    assert found.p_value == np.mean(np.array(null) >= null[0] - 1e-12)
    assert found.score == pytest.approx(np.sqrt(max(null[0], 0)))
    assert (found.n_blocks, found.smallest_p_value) == (3, 1 / 455)


@pytest.mark.parametrize("name", ["edistance", "mmd"])
def test_kernel_distances_are_those_of_block_means(name):
    rng = np.random.default_rng(0)
    points, batch = rng.normal(size=(24, 20)), rng.normal(size=(8, 20)) + 1
    instrument = Kernel.fit(name, points, 4, 3.0)
    own, across = instrument.distances(Dataset(batch), 0, Threads(1))
    apart = cdist(np.vstack([batch, points]), np.vstack([batch, points]))
    rho = apart if name == "edistance" else -np.exp(-(apart**2) / 18)
    means = rho.reshape(8, 4, 8, 4).mean(axis=(1, 3))
    expected = 2 * means - means.diagonal()[:, None] - means.diagonal()
    np.testing.assert_allclose(own, expected[:2, :2], atol=1e-12)
    np.testing.assert_allclose(across, expected[:2, 2:], atol=1e-12)
    np.testing.assert_allclose(instrument.squared, expected[2:, 2:], atol=1e-12)


def test_features_give_holm_adjusted_p_values():
    rng = np.random.default_rng(0)
    reference, batch = rng.normal(size=(200, 4)), rng.normal(size=(60, 4)) + np.array([0, 2, 0, 1])
    found = Features(np.sort(reference, axis=0)).read(Dataset(batch), 0.01, 0, Threads(1))
    assert np.flatnonzero(found.by_feature <= 0.01).tolist() == [1, 3]
    assert found.p_value == found.by_feature.min() > 0


def test_the_smallest_p_value():
    assert smallest_p_value(19, 1, 0.05) == 1 / 20
    assert smallest_p_value(19, 2, 0.05) == 1 / 210
    assert smallest_p_value(200, 20, 0.01) == 1 / 1000
    assert smallest_p_value(200, 20, 0.001) == 1 / 5000
    assert shape().smallest(19, 0.05) == float("inf")


def test_joined_blocks_are_blocks():
    points = np.random.default_rng(0).normal(size=(420, 5))
    fine, coarse = Kernel.fit("edistance", points, 1, 1.0), Kernel.fit("edistance", points, 4, 1.0)
    batch = Dataset(np.random.default_rng(1).normal(size=(50, 5)) + 0.2)
    found, expected = (k.read(batch, 0.01, 0, Threads(1)) for k in (fine, coarse))
    assert found == expected
    assert found.block_size == 4
    assert fine.read(batch.take(np.arange(9)), 0.01, 0, Threads(1)).block_size == 1
