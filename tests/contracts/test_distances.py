"""Every distance of the registry, from one table."""

import dataclasses

import numpy as np
import pytest

import unaligned as ua
from unaligned.comparison import DISTANCES
from unaligned.errors import OptionError
from unaligned.metrics.callable import CallableDistance

# A new distance is one row: options that keep it quick here.
OPTIONS = {
    "les": {"n_eigenvalues": 15},
    "imd-diffusion": {"n_eigenvalues": 15},
    "log-euclidean": {},
    "affine-invariant": {},
    "euclidean": {},
    "spectral-gw": {},
    "imd": {"method": "exact"},
    "netlsd": {},
    "shape-dna": {"n_eigenvalues": 15},
    "bottleneck-h0": {},
    "bottleneck-h1": {},
    "bottleneck-h2": {},
    "mtd": {"batch_size": 20, "other_batch_size": 25, "n_rounds": 2},
    "geometry-score": {"n_landmarks": 12, "gamma": 0.1, "n_rounds": 20},
    "gromov-wasserstein": {},
    "wasserstein": {},
    "mmd": {},
    "frechet": {},
    "cka": {},
    "crosslid": {},
}
# Squares, divergences, local minima.
NO_TRIANGLE = {"frechet", "cka", "crosslid", "gromov-wasserstein", "mtd", "geometry-score"}
NOT_ZERO = {"crosslid"}  # of a dataset with itself it is the mean dimension
SEES_SCALE = {"gromov-wasserstein", "bottleneck-h0", "bottleneck-h1", "bottleneck-h2", "mtd"}
DRAWS_ROWS = {"mtd", "geometry-score"}  # other values are other data, so other random rows
SEES_MOTION = {"wasserstein", "mmd", "frechet", "crosslid"}  # they share the other's space
SEEDS = range(3)


def clouds(seed):
    return np.random.default_rng(seed).normal(size=(3, 30, 4))


def test_the_table_is_complete():
    assert set(OPTIONS) == set(DISTANCES)
    assert set(ua.available().index) == set(DISTANCES)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", OPTIONS)
class TestEveryDistance:
    @pytest.fixture(autouse=True)
    def _with_its_extra(self, name):
        packages = {"topology": ("gudhi", "ripser"), "transport": ("ot",)}
        for package in packages.get(DISTANCES[name].extra, ()):
            pytest.importorskip(package, reason=f"{name} needs an extra")

    def test_is_a_finite_non_negative_float(self, name, seed):
        a, b, _ = clouds(seed)
        distance = ua.distance(a, b, name, **OPTIONS[name])
        assert type(distance) is float
        assert 0 < distance < np.inf

    def test_is_zero_between_equal_data(self, name, seed):
        if name in NOT_ZERO:
            pytest.skip("claims no zero")
        a = clouds(seed)[0]
        assert ua.distance(a, a.copy(), name, **OPTIONS[name]) == pytest.approx(0.0, abs=1e-6)

    def test_is_symmetric(self, name, seed):
        a, b, _ = clouds(seed)
        forward, backward = (ua.distance(*x, name, **OPTIONS[name]) for x in ((a, b), (b, a)))
        assert forward == pytest.approx(backward, rel=1e-6)

    def test_obeys_the_triangle_inequality(self, name, seed):
        if name in NO_TRIANGLE:
            pytest.skip("claims no triangle inequality")
        D = ua.compare(list(clouds(seed)), distance=name, **OPTIONS[name]).distances
        assert D[0, 2] <= D[0, 1] + D[1, 2] + 1e-9

    def test_does_not_notice_rotation_and_scale(self, name, seed):
        # Most see points through W alone, and W does not change; others through distances.
        if name in DRAWS_ROWS:
            pytest.skip("moved data draws other rows; see tests/metrics")
        if name in SEES_MOTION:
            pytest.skip("moves both datasets or none; see tests/metrics")
        a, b, _ = clouds(seed)
        Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(4, 4)))[0]
        scale = 1.0 if name in SEES_SCALE else 3.0
        moved = ua.distance(scale * a @ Q + 1.0, b, name, **OPTIONS[name])
        assert moved == pytest.approx(ua.distance(a, b, name, **OPTIONS[name]), rel=1e-4)

    def test_is_repeatable_and_independent_of_jobs(self, name, seed):
        data = list(clouds(seed))
        one, two = (ua.compare(data, distance=name, n_jobs=j, **OPTIONS[name]) for j in (1, 2))
        assert np.allclose(one.distances, two.distances, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", OPTIONS)
def test_settings_are_frozen_and_come_back_from_their_options(name):
    method = DISTANCES[name].from_options(OPTIONS[name])
    assert type(method).from_options(method.options()) == method
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign"):
        method.name = "other"
    with pytest.raises(OptionError, match=f"distance '{name}' has no option 'bogus'"):
        DISTANCES[name].from_options({"bogus": 1})


@pytest.mark.parametrize("cls", [*DISTANCES.values(), CallableDistance], ids=lambda c: c.name)
def test_every_distance_says_what_it_is_and_costs(cls):
    assert cls.summary
    assert cls.cost
    assert cls.__doc__
