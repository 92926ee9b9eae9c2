"""Invariance of LES: rotation, translation, scale, order of rows, position in a collection."""

import numpy as np
import pytest

import unaligned as ua
from reference import matrix_power
from unaligned.data.shapes import torus2, torus3, torus_angles

SEEDS = range(4)
K = {"n_eigenvalues": 25}


def cloud(seed, shape=(80, 4)):
    return np.random.default_rng(seed).normal(size=shape)


def rotation(rng, size):
    return np.linalg.qr(rng.standard_normal((size, size)))[0]


CHANGES = {
    "rotation": lambda x, rng: x @ rotation(rng, x.shape[1]),
    "rotation into more dimensions": lambda x, rng: x @ rotation(rng, 9)[: x.shape[1]],
    "translation": lambda x, rng: x + 10 * rng.normal(size=x.shape[1]),
    "scaling": lambda x, rng: x * 10.0 ** rng.uniform(-6, 6),
    "reflection": lambda x, rng: x * [-1, 1, -1, 1],
    "permutation of rows": lambda x, rng: rng.permutation(x),
    "permutation of columns": lambda x, rng: rng.permutation(x, axis=1),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("change", CHANGES)
def test_les_is_invariant(change, seed):
    points = cloud(seed)
    changed = CHANGES[change](points, np.random.default_rng(seed + 50))
    assert ua.distance(points, changed, solver="exact", **K) < 1e-8


@pytest.mark.parametrize("solver", ["exact", "nystrom", "auto"])
@pytest.mark.parametrize("seed", SEEDS)
def test_distance_of_dataset_to_itself_is_exactly_zero(solver, seed):
    points = cloud(seed)
    options = {"solver": solver, "rng": seed, **K}
    assert ua.distance(points, points.copy(), **options) == 0.0
    assert ua.distance(points, np.asfortranarray(points), **options) == 0.0
    assert ua.distance(ua.signature(points, **options), points, **options) == 0.0
    for n_jobs in (1, 2):
        result = ua.compare([points, cloud(9), points.copy()], n_jobs=n_jobs, **options)
        assert result.distances[0, 2] == 0.0
        assert np.all(np.diag(result.distances) == 0.0)


@pytest.mark.parametrize("solver", ["exact", "nystrom"])
@pytest.mark.parametrize("seed", SEEDS)
def test_signature_does_not_depend_on_position_in_collection(solver, seed):
    points = cloud(seed)
    others = {f"o{i}": cloud(100 + i, (60 + i, 3)) for i in range(3)}
    options = {"solver": solver, **K}
    alone = ua.signature(points, **options).values
    first = ua.compare({"it": points, **others}, **options).signatures["it"].values
    last = ua.compare({**others, "it": points}, **options).signatures["it"].values
    assert np.array_equal(alone, first)
    assert np.array_equal(alone, last)


@pytest.mark.parametrize("solver", ["exact", "nystrom"])
def test_any_number_of_jobs_gives_the_same_distances(solver):
    clouds = [cloud(seed, (60 + 5 * seed, 3)) for seed in range(5)]
    one, two, all_cores = (
        ua.compare(clouds, n_jobs=jobs, solver=solver, **K).distances for jobs in (1, 2, -1)
    )
    assert np.allclose(one, two, rtol=0, atol=1e-8)
    assert np.allclose(one, all_cores, rtol=0, atol=1e-8)


def nystrom_values(rng):
    return ua.signature(cloud(0), solver="nystrom", rng=rng, **K).values


def test_rng_none_and_int_are_repeatable_and_generator_advances():
    for rng in (None, 0, 5, 2**80):
        assert np.array_equal(nystrom_values(rng), nystrom_values(rng))
    assert not np.array_equal(nystrom_values(1), nystrom_values(2))
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    first, second = nystrom_values(one), nystrom_values(one)
    assert not np.array_equal(first, second)
    assert np.array_equal(first, nystrom_values(other))
    assert np.array_equal(second, nystrom_values(other))


def test_les_is_symmetric_and_obeys_the_triangle_inequality():
    clouds = [cloud(seed, (70, 1 + seed)) for seed in range(6)]
    D = ua.compare(clouds, **K).distances
    assert np.array_equal(D, D.T)
    swapped = np.array([[ua.distance(a, b, **K) for a in clouds] for b in clouds])
    assert np.allclose(D, swapped, rtol=0, atol=1e-10)
    assert np.all(D[:, :, None] <= D[:, None, :] + D.T[None] + 1e-9)


def coupled_tori(seed, scale=0.6, n_samples=100):
    angles = torus_angles(n_samples, rng=seed)
    return {
        "T2": torus2(angles),
        "T2Sc": torus2(angles, radius_scale=scale),
        "T3": torus3(angles),
        "T3Sc": torus3(angles, radius_scale=scale),
    }


@pytest.mark.parametrize("seed", range(20))
def test_les_is_a_lower_bound_of_log_euclidean_distance(seed):
    # Proposition 1 with W + γI on both sides, all eigenvalues.
    tori = coupled_tori(seed)
    lower = ua.compare(tori, n_eigenvalues=100, solver="exact").distances
    aligned = ua.compare(tori, distance="log-euclidean").distances
    assert np.all(lower <= aligned * (1 + 1e-9) + 1e-9)
    truncated = ua.compare(tori, n_eigenvalues=40, solver="exact").distances
    assert np.all(truncated <= lower + 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_heat_traces_are_a_lower_bound_of_nuclear_norm(seed):
    # The reason why IMD is a lower bound of spectral GW: |tr A - tr B| <= ‖A - B‖₁.
    from reference import diffusion_of_points

    first, second = (diffusion_of_points(coupled_tori(seed)[name]) for name in ("T2", "T3"))
    for t in (0.1, 0.5, 1.0, 3.0, 10.0):
        a, b = matrix_power(first, t), matrix_power(second, t)
        nuclear = np.abs(np.linalg.eigvalsh(a - b)).sum()
        assert abs(np.trace(a) - np.trace(b)) <= nuclear * (1 + 1e-9)


def test_another_dimension_is_farther_than_another_sample():
    T2, again, T3 = (
        shape(torus_angles(300, rng=seed))
        for shape, seed in ((torus2, 0), (torus2, 1), (torus3, 2))
    )
    options = {"n_eigenvalues": 100}
    assert ua.distance(T2, T3, **options) > 5 * ua.distance(T2, again, **options)
