"""Signatures of blocks are those of `ua.signature`; the noise floor is what samples are apart."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

import unaligned as ua
from unaligned.engine import Threads
from unaligned.operators.kernel import KernelSettings
from unaligned.spectra.blocks import block_signature, block_signatures, noise_floor
from unaligned.spectra.pipeline import SignatureSettings

BLOCKS = {
    "few features": lambda rng: rng.normal(size=(60, 3)),
    "many features": lambda rng: rng.normal(size=(90, 40)),
    "far from the origin": lambda rng: 1e6 + rng.normal(size=(50, 30)),
    "a clump far away": lambda rng: np.r_[
        rng.normal(size=(40, 20)), 1e8 + rng.normal(size=(5, 20))
    ],
    "counts": lambda rng: rng.poisson(1.0, size=(70, 50)),
    "sparse": lambda rng: sparse.random_array((60, 200), density=0.1, rng=rng, format="csr"),
    "huge": lambda rng: 1e100 * rng.normal(size=(40, 18)),
}
SETTINGS = {
    "gaussian": {},
    "laplacian": {"kernel": "laplacian"},
    "mean": {"bandwidth": "mean"},
    "robust": {"robust": True},
    "neighbours": {"n_neighbors": 10},
    "seuclidean": {"metric": "seuclidean"},
}


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
@pytest.mark.parametrize("seed", range(2))
def test_a_block_has_the_signature_of_the_exact_solver(block, seed):
    dataset = ua.Dataset(block(np.random.default_rng(seed)))
    settings = SignatureSettings(n_eigenvalues=dataset.n_samples // 3)
    found = block_signature(dataset, settings, 0)
    usual = ua.signature(dataset, n_eigenvalues=dataset.n_samples // 3, solver="exact")
    np.testing.assert_allclose(found.values, usual.values, rtol=0, atol=1e-8)
    assert found.sigma_squared == pytest.approx(usual.sigma_squared, rel=1e-9)
    found.require_comparable(usual)


@pytest.mark.filterwarnings("ignore::unaligned.errors.IndefiniteWarning")
@pytest.mark.parametrize("options", SETTINGS.values(), ids=SETTINGS)
def test_every_setting_gives_the_values_of_signature(options):
    points = np.random.default_rng(0).normal(size=(80, 5))
    settings = SignatureSettings(n_eigenvalues=12, kernel=KernelSettings(**options))
    found = block_signature(ua.Dataset(points), settings, 0)
    usual = ua.signature(points, n_eigenvalues=12, solver="exact", **options)
    np.testing.assert_allclose(found.values, usual.values, rtol=0, atol=1e-8)


@pytest.mark.parametrize("n_workers", [1, 3])
def test_blocks_keep_their_order_on_threads(n_workers):
    rng = np.random.default_rng(0)
    blocks = [ua.Dataset(rng.normal(size=(300, 1 + i % 4))) for i in range(50)]
    settings = SignatureSettings(n_eigenvalues=20)
    found = block_signatures(blocks, settings, 0, Threads(n_workers))
    assert [s.n_features for s in found] == [d.n_features for d in blocks]
    alone = block_signature(blocks[7], settings, 0)
    np.testing.assert_allclose(found[7].values, alone.values, atol=1e-9)


def test_a_degenerate_block_names_the_dataset():
    same = ua.Dataset(np.ones((40, 3)), name="same")
    with pytest.raises(ua.errors.DegenerateDataError, match=r"'same'.*σ²=0"):
        block_signature(same, SignatureSettings(n_eigenvalues=5), 0)


def test_the_noise_floor_is_the_mean_distance_of_two_samples():
    """Mean signatures of 12 blocks, many times: their root mean square distance is the floor."""
    rng, settings = np.random.default_rng(0), SignatureSettings(n_eigenvalues=10)

    def sample():
        blocks = [ua.Dataset(rng.normal(size=(30, 3))) for _ in range(12)]
        return np.stack([block_signature(block, settings, 0).values for block in blocks])

    samples = [sample() for _ in range(40)]
    means = np.stack([values.mean(axis=0) for values in samples])
    apart = np.sqrt(((means[::2] - means[1::2]) ** 2).sum(axis=1).mean())
    floors = [noise_floor(cdist(values, values, "sqeuclidean")) for values in samples]
    assert np.sqrt(np.mean(np.square(floors))) == pytest.approx(apart, rel=0.3)
    spread = samples[0].var(axis=0, ddof=1).sum()
    assert floors[0] == pytest.approx(np.sqrt(2 * spread / 12))
