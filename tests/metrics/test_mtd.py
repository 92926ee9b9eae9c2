"""Manifold Topology Divergence against a textbook cross-barcode."""

import numpy as np
import pytest

import unaligned as ua
from plain_persistence import loops
from unaligned.errors import InputError, NotApplicableError
from unaligned.metrics.bottleneck import pairwise, rips_bars
from unaligned.metrics.mtd import MTD, cross_barcode_length

pytest.importorskip("ripser", reason="the extra topology is not installed")

SEEDS = range(4)


def cross_distances(P, Q):
    both = np.vstack([P, Q])
    D = np.sqrt(((both[:, None] - both[None]) ** 2).sum(axis=2))
    D[len(P) :, len(P) :] = 0.0
    return D


def textbook(P, Q):
    """Sum of H1 bars of the whole complex over P ∪ Q, double precision, no shortcut."""
    D = cross_distances(P, Q)
    bars = loops(lambda s: D[np.ix_(s, s)].max(), len(D))
    return (bars[:, 1] - bars[:, 0]).sum()


def clouds(seed, n=9, m=12, d=2):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(m, d)) + 0.3


@pytest.mark.parametrize("seed", SEEDS)
class TestMTD:
    def test_equals_the_textbook(self, seed):
        P, Q = clouds(seed)
        expected = (textbook(P, Q) + textbook(Q, P)) / 2
        assert expected > 0
        assert ua.distance(P, Q, "mtd") == pytest.approx(expected, rel=1e-8)

    def test_averages_rounds_of_batches(self, seed):
        P, Q = clouds(seed)
        method = MTD(batch_size=5, other_batch_size=8, n_rounds=3)
        (_, rows), (_, columns) = (method.describe(ua.Dataset(x), 0) for x in (P, Q))
        expected = [
            (textbook(P[i[:5]], Q[j]) + textbook(Q[j[:5]], P[i])) / 2
            for i, j in zip(rows, columns, strict=True)
        ]
        assert {len(i) for i in [*rows, *columns]} == {8}
        assert ua.distance(P, Q, method) == pytest.approx(np.mean(expected), rel=1e-8, abs=1e-12)

    @pytest.mark.parametrize("d", [1, 3, 30])
    def test_excluded_points_do_not_change_the_barcode(self, seed, d):
        P, Q = clouds(seed, 40, 150, d)
        D = np.zeros((190, 190))
        D[:40, :40], D[:40, 40:], D[40:, :40] = pairwise(P, P), pairwise(P, Q), pairwise(Q, P)
        bars = rips_bars(D, 1, "mtd")
        assert cross_barcode_length(P, Q) == pytest.approx(
            (bars[:, 1] - bars[:, 0]).sum(), rel=1e-12
        )

    def test_equal_data_have_distance_zero(self, seed):
        data = clouds(seed, 60)[0]
        _, rows = MTD(batch_size=20, other_batch_size=40).describe(ua.Dataset(data), seed)
        for i in rows:
            assert cross_barcode_length(data[i[:20]], data[i]) == 0.0
        options = {"batch_size": 20, "other_batch_size": 40, "rng": seed}
        assert ua.distance(data, data.copy(), "mtd", **options) == 0.0

    def test_moving_both_clouds_does_not_change_the_value(self, seed):
        P, Q = clouds(seed)
        rng = np.random.default_rng(seed)
        U = np.linalg.qr(rng.normal(size=(2, 2)))[0]
        moved = ua.distance(rng.permutation(P @ U + 3.0), Q @ U + 3.0, "mtd")
        assert moved == pytest.approx(ua.distance(P, Q, "mtd"), abs=1e-5)
        assert ua.distance(P, Q + 1.0, "mtd") != pytest.approx(ua.distance(P, Q, "mtd"), abs=1e-3)

    def test_seed_determines_the_batches(self, seed):
        P, Q = clouds(seed, 60, 60)
        options = {"batch_size": 20, "other_batch_size": 30, "n_rounds": 2}
        first, again, other = (ua.distance(P, Q, "mtd", rng=s, **options) for s in (1, 1, 2))
        assert first == again != other


def test_sparse_and_dense_points_give_the_same_value():
    from scipy import sparse

    P, Q = clouds(0)
    assert ua.distance(sparse.csr_array(P), Q, "mtd") == pytest.approx(ua.distance(P, Q, "mtd"))


def test_result_records_the_batch_sizes():
    P, Q = clouds(0)
    options = ua.compare([P, Q], distance="mtd", n_rounds=4).options
    assert options == {"batch_size": 200, "other_batch_size": 1000, "n_rounds": 4}


def test_progress_of_rounds_is_shown_on_request(shown_tasks):
    first, second = np.random.default_rng(0).normal(size=(2, 30, 2))
    options = {"batch_size": 10, "other_batch_size": 20, "n_rounds": 3}
    ua.compare([first], [second], distance="mtd", progress=True, **options)
    assert shown_tasks[-3:] == [("comparing", 1), ("rounds", 3), ("rounds", 3)]


def test_invalid_input_raises():
    with pytest.raises(NotApplicableError, match="same features"):
        ua.distance(np.eye(3), np.eye(4), "mtd")
    with pytest.raises(InputError, match="other_batch_size=10 must be at least batch_size=200"):
        ua.distance(np.eye(3), np.eye(3), "mtd", other_batch_size=10)
