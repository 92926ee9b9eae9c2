"""Distances of aligned operators, against pyRiemann and by hand."""

import numpy as np
import pytest
from scipy.linalg import eigvalsh

import unaligned as ua
from reference import diffusion_of_points, matrix_log, matrix_power, random_spd
from unaligned.errors import (
    DataWarning,
    DegenerateDataError,
    IndefiniteWarning,
    InputError,
    NotApplicableError,
)
from unaligned.metrics import spd as aligned
from unaligned.metrics.heat_trace import TIMES

ALIGNED = ["log-euclidean", "affine-invariant", "euclidean", "spectral-gw"]


def spd_pair(seed, size=15):
    rng = np.random.default_rng(seed)
    return random_spd(rng, size), random_spd(rng, size)


def between(first, second, distance, **options):
    pair = (ua.Dataset(W, kind="spd") for W in (first, second))
    return ua.distance(*pair, distance, **options)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("log-euclidean", "logeuclid"), ("affine-invariant", "riemann"), ("euclidean", "euclid")],
)
def test_spd_distances_equal_pyriemann(ours, theirs, seed):
    pyriemann = pytest.importorskip(
        "pyriemann.utils.distance", reason="pyriemann is not installed"
    )
    first, second = spd_pair(seed)
    expected = pyriemann.distance(first, second, metric=theirs)
    assert between(first, second, ours) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_affine_invariance(seed):
    first, second = spd_pair(seed)
    A = np.random.default_rng(seed).normal(size=first.shape)
    moved = [(A @ W @ A.T + (A @ W @ A.T).T) / 2 for W in (first, second)]
    distance = between(first, second, "affine-invariant")
    assert between(*moved, "affine-invariant") == pytest.approx(distance, rel=1e-6)
    inverses = [np.linalg.inv(W) for W in (first, second)]
    inverses = [(W + W.T) / 2 for W in inverses]
    for name in ("affine-invariant", "log-euclidean"):
        assert between(*inverses, name) == pytest.approx(between(first, second, name), rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_affine_invariant_is_accurate_for_nearly_singular_operators(seed):
    # A common congruence leaves the ratios of the scales as generalised eigenvalues.
    rng = np.random.default_rng(seed)
    scales = [rng.permutation(np.logspace(0, -7, 12)) for _ in range(2)]
    A = np.linalg.qr(rng.normal(size=(12, 12)))[0]
    first, second = ((A * scale) @ A.T for scale in scales)
    expected = np.linalg.norm(np.log(scales[0] / scales[1]))
    forward, backward = (
        between(*pair, "affine-invariant") for pair in ((first, second), (second, first))
    )
    assert forward == pytest.approx(expected, rel=1e-9)
    assert forward == pytest.approx(backward, rel=1e-12)


@pytest.mark.parametrize("smallest", [1e-9, 1e-12, 1e-15])
@pytest.mark.parametrize("other", [np.eye(2), np.diag([1e-9, 1.0]), np.diag([2.0, 5e-13])])
def test_affine_invariant_is_accurate_for_graded_matrices(smallest, other):
    graded = np.diag([1.0, smallest])
    expected = np.linalg.norm(np.log(np.diag(graded)) - np.log(np.diag(other)))
    assert between(graded, other, "affine-invariant") == pytest.approx(expected, rel=1e-13)
    assert between(other, graded, "affine-invariant") == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("seed", range(6))
def test_affine_invariant_error_is_that_of_rounding_the_matrices(seed):
    # Entries are rounded to eps, which leaves an eigenvalue of 1e-12 open by about 1e-4.
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(9, 9)))[0]
    scale = np.logspace(0, -12, 9)
    graded = (Q * scale) @ Q.T
    found = between((graded + graded.T) / 2, np.eye(9), "affine-invariant")
    assert found == pytest.approx(np.linalg.norm(np.log(scale)), rel=1e-4)


@pytest.mark.parametrize("unit", [1e-30, 1e30])
def test_affine_invariant_is_accurate_in_any_unit(unit):
    first, second = spd_pair(0)
    ratios = eigvalsh(second, first)
    expected = np.linalg.norm(np.log(ratios) + np.log(unit))
    assert between(first, unit * second, "affine-invariant") == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("unit", [1e-200, 1e-30, 1e12, 1e25])
@pytest.mark.parametrize("norm", ["frobenius", "nuclear", "spectral"])
def test_powers_of_large_and_small_eigenvalues_do_not_overflow(unit, norm):
    # Of diagonal matrices that differ in one entry all three norms are that difference.
    first, second = unit * np.diag([1.0, 2.0]), unit * np.diag([1.0, 3.0])
    times = TIMES[TIMES * abs(np.log10(unit)) < 300]
    gaps = np.exp(-(times + 1 / times)) * np.abs((3 * unit) ** times - (2 * unit) ** times)
    found = between(first, second, "spectral-gw", norm=norm)
    assert found == pytest.approx(gaps.max(), rel=1e-12)
    assert between(first, second, "euclidean") == pytest.approx(unit, rel=1e-12)


@pytest.mark.parametrize("distance", ["spectral-gw", "imd-diffusion"])
def test_eigenvalues_whose_tenth_power_overflows_raise(distance):
    with pytest.raises(
        DegenerateDataError, match=r"the largest eigenvalue is .*Rescale all matrices"
    ):
        between(1e40 * np.diag([1.0, 2.0]), 1e40 * np.eye(2), distance)


@pytest.mark.parametrize("gamma", [None, 1e-4])
@pytest.mark.parametrize("seed", range(3))
def test_points_become_regularised_operators(seed, gamma):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, 30, 3))
    first, second = (diffusion_of_points(x) + (gamma or 1e-8) * np.eye(30) for x in (a, b))
    expected = np.linalg.norm(matrix_log(first) - matrix_log(second))
    found = ua.distance(a, b, "log-euclidean", gamma=gamma)
    assert found == pytest.approx(expected, rel=1e-5)
    assert ua.distance(a, b, "euclidean", gamma=gamma) == pytest.approx(
        np.linalg.norm(first - second), rel=1e-9
    )


@pytest.mark.parametrize("norm", ["frobenius", "nuclear", "spectral"])
@pytest.mark.parametrize("seed", range(3))
def test_spectral_gw_is_the_supremum_of_its_norm(seed, norm):
    first, second = spd_pair(seed, 10)
    order = {"frobenius": "fro", "nuclear": "nuc", "spectral": 2}[norm]
    expected = max(
        np.exp(-(t + 1 / t))
        * np.linalg.norm(matrix_power(first, t) - matrix_power(second, t), order)
        for t in TIMES
    )
    assert between(first, second, "spectral-gw", norm=norm) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("norm", ["frobenius", "nuclear", "spectral"])
@pytest.mark.parametrize("seed", range(3))
def test_spectral_gw_is_accurate_for_close_operators(seed, norm):
    first, step = spd_pair(seed, 10)
    order = {"frobenius": "fro", "nuclear": "nuc", "spectral": 2}[norm]
    for size in (1e-3, 1e-6):
        second = first + size * step
        expected = max(
            np.exp(-(t + 1 / t))
            * np.linalg.norm(matrix_power(first, t) - matrix_power(second, t), order)
            for t in TIMES
        )
        found = between(first, second, "spectral-gw", norm=norm)
        assert found == pytest.approx(expected, abs=1e-13 * np.trace(first))


@pytest.mark.parametrize("distance", ["log-euclidean", "spectral-gw"])
def test_every_operator_is_decomposed_once_for_all_pairs(monkeypatch, distance):
    calls, original = [], aligned.eigh

    def counted(*arguments, **options):
        calls.append(1)
        return original(*arguments, **options)

    monkeypatch.setattr(aligned, "eigh", counted)
    clouds = np.random.default_rng(0).normal(size=(4, 20, 3))
    result = ua.compare([*clouds, clouds[0]], distance=distance)
    assert len(calls) == 4
    assert result.distances[0, 4] == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_heat_traces_bound_spectral_gw_with_the_nuclear_norm(seed):
    first, second = spd_pair(seed, 12)
    upper = between(first, second, "spectral-gw", norm="nuclear")
    lower = max(
        np.exp(-(t + 1 / t)) * abs(np.trace(matrix_power(first, t) - matrix_power(second, t)))
        for t in TIMES
    )
    assert lower <= upper * (1 + 1e-12)
    # The weight of IMD is smaller still: e^{-2(t + 1/t)}.
    assert between(first, second, "imd-diffusion") <= lower * (1 + 1e-12)


@pytest.mark.parametrize("distance", ALIGNED)
@pytest.mark.parametrize("seed", range(12))
def test_aligned_distances_are_symmetric_to_the_last_bit(distance, seed):
    first, second = spd_pair(seed, 8)
    assert between(first, second, distance) == between(second, first, distance)
    points = np.random.default_rng(seed).normal(size=(2, 30, 3))
    assert ua.distance(*points, distance) == ua.distance(*points[::-1], distance)


@pytest.mark.parametrize("distance", ALIGNED)
@pytest.mark.parametrize("seed", range(4))
def test_equal_data_described_twice_have_distance_zero(distance, seed):
    first, _ = spd_pair(seed, 8)
    assert between(first, first.copy(), distance) == 0.0
    a, b = np.random.default_rng(seed).normal(size=(2, 30, 3))
    grown = ua.compare({"a": a, "b": b}, distance=distance).add({"a2": a.copy()})
    assert grown["a", "a2"] == 0.0
    assert grown["b", "a2"] == grown["a", "b"]


@pytest.mark.parametrize("distance", ["affine-invariant", "log-euclidean"])
def test_matrices_in_another_unit_differ(distance):
    first, _ = spd_pair(0, 5)
    expected = np.log(2.0) * np.sqrt(5)
    assert between(first, 2.0 * first, distance) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("distance", ALIGNED)
def test_rows_that_cannot_be_paired_are_not_applicable(distance):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(12, 3)), rng.normal(size=(10, 3))
    message = (
        r"does not apply: it compares row i with row i.*'a' has 12 rows where dataset 'b' has 10"
    )
    with pytest.raises(NotApplicableError, match=message):
        ua.distance(a, b, distance)
    with pytest.raises(NotApplicableError, match=r"needs the data, and a Signature was given"):
        ua.distance(a, ua.signature(a), distance)
    with pytest.raises(NotApplicableError, match="subsample=5 draws different rows of each"):
        ua.distance(a, a, distance, subsample=5)
    with pytest.raises(NotApplicableError, match=r"'b' has 10 rows where dataset .a. has 12"):
        ua.compare({"a": a}, distance=distance).add({"b": b})


@pytest.mark.parametrize("distance", ["log-euclidean", "affine-invariant"])
def test_singular_matrices_raise(distance):
    singular = np.diag([1.0, 0.0])
    with pytest.raises(InputError, match=r"has the eigenvalue 0, and a logarithm needs"):
        between(singular, np.eye(2), distance)


@pytest.mark.parametrize("distance", ["log-euclidean", "affine-invariant"])
@pytest.mark.parametrize("unit", [1.0, 3.0, 1e-20])
@pytest.mark.parametrize("seed", [*range(6), 18])
def test_rank_deficient_matrices_raise_despite_rounding(distance, unit, seed):
    rng = np.random.default_rng(seed)
    few = [unit * np.cov(rng.normal(size=(4, 4)).T) for _ in range(2)]  # of rank 3
    constrained = []
    for _ in range(2):  # both have (1, 1, 1, 1) as their null space
        points = rng.normal(size=(50, 4))
        constrained.append(unit * np.cov((points - points.mean(axis=1, keepdims=True)).T))
    for pair in (few, constrained):
        with pytest.raises(InputError, match=r"has the eigenvalue .*, and a logarithm needs"):
            between(*pair, distance)
        assert 0 < between(*pair, distance, gamma=1e-6 * unit) < 100


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "options", [{"n_neighbors": 5}, {"metric": "cosine"}, {"metric": "cityblock"}]
)
def test_clipped_negative_eigenvalues_warn(options, seed):
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 6, size=(2, 60))
    first, second = (np.c_[np.cos(x), np.sin(x), x] + rng.normal(size=(60, 3)) for x in t)

    def warnings_of(distance):
        with pytest.warns(IndefiniteWarning, match=r"dataset '[ab]': .*mass is negative") as seen:
            ua.distance(first, second, distance, **options)
        return sorted(str(warning.message) for warning in seen)

    assert warnings_of("spectral-gw") == warnings_of("imd-diffusion")
    for distance in ("log-euclidean", "affine-invariant"):
        with pytest.raises(InputError, match=r"has the eigenvalue -.*Give a larger gamma"):
            ua.distance(first, second, distance, **options)
    assert ua.distance(first, second, "spectral-gw", gamma=1.0, **options) > 0  # nothing to clip


def test_given_indefinite_affinity_warns():
    affinity = np.ones((6, 6)) - np.eye(6)
    given = ua.Dataset(affinity, kind="affinity")
    with pytest.warns(IndefiniteWarning, match="50.0% of the spectrum's mass is negative"):
        ua.distance(given, ua.Dataset(affinity + np.eye(6), kind="affinity"), "spectral-gw")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"norm": "nuclaer"}, r"norm='nuclaer' is not known. Did you mean 'nuclear'\?"),
        ({"gamma": -1.0}, r"gamma=-1.0 must be at least 0"),
        ({"squared": True}, r"distance 'spectral-gw' has no option 'squared'"),
    ],
)
def test_invalid_options_raise(options, message):
    with pytest.raises(InputError, match=message):
        between(np.eye(2), np.eye(2), "spectral-gw", **options)


@pytest.mark.parametrize("distance", ["log-euclidean", "affine-invariant", "euclidean"])
def test_options_that_drop_rows_raise(distance):
    points = np.random.default_rng(0).normal(size=(40, 3))
    first, second = np.vstack([points, points[:1]]), np.vstack([points[:1], points])
    with pytest.raises(InputError, match=r"robust=True drops rows .* compares row i with row i"):
        ua.distance(first, second, distance, robust=True)
    first[-1], second[0] = np.nan, np.nan
    with (
        pytest.warns(DataWarning, match="dropped 1 of 41"),
        pytest.raises(NotApplicableError, match="nan_policy='omit' dropped rows of dataset 'a'"),
    ):
        ua.distance(first, second, distance, nan_policy="omit")


@pytest.mark.parametrize("name", ["log-euclidean", "affine-invariant", "euclidean", "spectral-gw"])
def test_operators_of_different_kinds_raise(name):
    points = np.random.default_rng(0).normal(size=(6, 2))
    spd = ua.Dataset(np.cov(np.random.default_rng(1).normal(size=(6, 40))), kind="spd")
    graph = ua.Dataset(np.ones((6, 6)) - np.eye(6), kind="graph")
    for first, second, message in (
        (spd, points, r"'a' is a matrix taken as it is where dataset 'b' is a diffusion operator"),
        (points, graph, r"'a' is a diffusion operator where dataset 'b' is the heat kernel"),
    ):
        with pytest.raises(NotApplicableError, match=message) as found:
            ua.distance(first, second, name)
        assert "'les'" not in str(found.value)
