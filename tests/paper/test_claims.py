"""Claims of the paper's text that a small computation settles; docs/paper.md names these tests."""

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.spatial.distance import pdist, squareform

import unaligned as ua
from conftest import DATA
from reference import (
    diffusion_of_points,
    eigenvalues,
    matrix_log,
    matrix_power,
    random_spd,
    with_spectrum,
)
from unaligned.data.shapes import torus2, torus3, torus_angles
from unaligned.experiments.time_courses import read_course

SEEDS = range(5)
METRICS = ["log-euclidean", "affine-invariant"]


def spd_distance(first, second, name, **options):
    pair = (ua.Dataset(matrix, kind="spd") for matrix in (first, second))
    return ua.distance(*pair, name, **options)


def symmetric(matrix):
    return (matrix + matrix.T) / 2


def log_product(first, second):
    """The logarithmic product of Section 3.2."""
    values, U = np.linalg.eigh(matrix_log(first) + matrix_log(second))
    return symmetric((U * np.exp(values)) @ U.T)


def rotation(rng, size):
    return np.linalg.qr(rng.standard_normal((size, size)))[0]


def inverted(matrix, rng):
    return symmetric(np.linalg.inv(matrix))


def scaled(matrix, rng):
    return 10.0 ** rng.uniform(-5, 5) * matrix


def rotated(matrix, rng):
    Q = rotation(rng, len(matrix))
    return symmetric(Q @ matrix @ Q.T)


def multiplied(matrix, rng):
    return log_product(matrix, random_spd(rng, len(matrix)))


def congruent(matrix, rng):
    G = rng.standard_normal(matrix.shape) + 3 * np.eye(len(matrix))
    return symmetric(G @ matrix @ G.T)


def shifted(matrix, rng):
    return matrix + 0.1 * np.eye(len(matrix))


def before_and_after(change, name, seed):
    pair = [random_spd(np.random.default_rng([seed, i]), 12) for i in range(2)]
    changed = [change(matrix, np.random.default_rng([seed, 9])) for matrix in pair]
    return spd_distance(*pair, name), spd_distance(*changed, name)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("change", [inverted, scaled, rotated])
@pytest.mark.parametrize("name", METRICS)
def test_both_metrics_are_invariant_to_inversion_scaling_and_rotation(name, change, seed):
    # Section 3.2. Both matrices are changed by the same factor or rotation.
    before, after = before_and_after(change, name, seed)
    assert after == pytest.approx(before, rel=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_metric_is_invariant_to_the_translations_of_its_own_group(seed):
    # Section 3.2: translation is multiplication in the group, not addition of a matrix.
    own = {"log-euclidean": multiplied, "affine-invariant": congruent}
    for name, other in zip(METRICS, METRICS[::-1], strict=True):
        before, after = before_and_after(own[name], name, seed)
        assert after == pytest.approx(before, rel=1e-8)
        for change in (own[other], shifted):
            before, after = before_and_after(change, name, seed)
            assert abs(after / before - 1) > 1e-3


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("change", [inverted, scaled, rotated])
def test_bounds_are_invariant_to_inversion_scaling_and_rotation(change, seed):
    pair = [random_spd(np.random.default_rng([seed, i]), 12) for i in range(2)]
    changed = [change(matrix, np.random.default_rng([seed, 9])) for matrix in pair]
    expected = ua.log_euclidean_bounds(*pair)
    assert ua.log_euclidean_bounds(*changed) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_truncation_keeps_the_lower_bound(seed):
    # Section 4.2: fewer eigenvalues, fewer nonnegative terms.
    pair = [random_spd(np.random.default_rng([seed, i]), 20) for i in range(2)]
    gamma = 1e-6
    aligned = spd_distance(*pair, "log-euclidean", gamma=gamma)
    bounds = [spd_distance(*pair, "les", n_eigenvalues=k, gamma=gamma) for k in range(1, 21)]
    assert np.all(np.diff(bounds) >= 0)
    assert bounds[-1] <= aligned


def orthonormal(rng, size, rank):
    return rotation(rng, size)[:, :rank]


def fixed_rank_distance(first, second, rank):
    """Return the distance of Bonnabel and Sepulchre (2010), and its term of the scales alone.

    The other term is that of the principal angles between the ranges; the scales are compared in
    the bases of the principal vectors.
    """
    U, V = (np.linalg.eigh(matrix)[1][:, -rank:] for matrix in (first, second))
    left, cosines, right = np.linalg.svd(U.T @ V)
    U, V = U @ left, V @ right.T
    scales = np.log(eigh(U.T @ first @ U, V.T @ second @ V, eigvals_only=True))
    angles = np.arccos(np.minimum(cosines, 1.0))
    return np.hypot(np.linalg.norm(angles), np.linalg.norm(scales)), np.linalg.norm(scales)


@pytest.mark.parametrize("seed", SEEDS)
def test_les_is_below_a_fixed_rank_distance_and_equal_without_rotations(seed):
    # Section 4.2, remark: LES of matrices of rank K, γ = 0, needs no alignment.
    rng, size, rank = np.random.default_rng(seed), 20, 6
    spectra = [np.sort(1e3 ** -rng.uniform(size=rank)) for _ in range(2)]
    options = {"n_eigenvalues": rank, "gamma": 0.0}
    pair = [with_spectrum(orthonormal(rng, size, rank), values) for values in spectra]
    distance, scales = fixed_rank_distance(*pair, rank)
    lower = spd_distance(*pair, "les", **options)
    assert lower < scales < distance
    basis = orthonormal(rng, size, rank)  # the same for both: nothing to rotate
    aligned = [with_spectrum(basis, values) for values in spectra]
    assert spd_distance(*aligned, "les", **options) == pytest.approx(lower, rel=1e-8)
    assert fixed_rank_distance(*aligned, rank) == pytest.approx((lower, lower), rel=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_upper_bound_is_loose_on_diffusion_operators(seed):
    # Section 4.1: on aligned tori (Appendix B.3) the lower bound is nearer to the distance.
    angles = torus_angles(100, rng=seed)
    W = [ua.Dataset(shape(angles), kind="points") for shape in (torus2, torus3)]
    spectra = [ua.signature(x, n_eigenvalues=100, solver="exact").eigenvalues for x in W]
    logs = [np.log(values + 1e-8) for values in spectra]
    lower, upper = (np.linalg.norm(logs[0] - other) for other in (logs[1], logs[1][::-1]))
    aligned = ua.distance(*W, "log-euclidean")
    assert upper > 2.5 * aligned
    assert lower > aligned / 2.5


def mean_distances(sample, sizes, k, **options):
    """Return LES of two samples, the mean over seeds."""
    found = []
    for seed in SEEDS:
        pair = [sample(n, np.random.default_rng([seed, i])) for i, n in enumerate(sizes)]
        found.append(ua.distance(*pair, n_eigenvalues=k, **options))
    return np.mean(found)


@pytest.mark.filterwarnings("ignore::unaligned.errors.SampleSizeWarning")
def test_truncation_beats_a_common_size_only_where_the_spectrum_is_resolved():
    # Section 4.2, remark. Two samples of one distribution are close, whatever their sizes.
    def torus(n, rng):
        return torus2(torus_angles(n, rng=rng))

    def normal(n, rng):
        return rng.normal(size=(n, 8))

    sizes = (1600, 400)
    for k in (50, 200):
        at_one_size = {"k": k, "subsample": "common"}
        assert mean_distances(torus, sizes, k) < mean_distances(torus, sizes, **at_one_size)
        truncated = mean_distances(normal, sizes, k)
        assert truncated > 2 * mean_distances(normal, sizes, **at_one_size)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_larger_scale_has_a_faster_decay(seed):
    # Section 4.2: larger σ², faster spectral decay.
    points = np.random.default_rng(seed).normal(size=(80, 3))
    spectra = [
        ua.signature(points, n_eigenvalues=40, bandwidth_factor=factor).eigenvalues
        for factor in (1, 2, 4, 8)
    ]
    assert np.all(np.diff(spectra, axis=0)[:, 1:] < 0)


def test_isospectral_matrices_are_indistinguishable():
    # Section 4.3, remark: LES is no metric.
    rng = np.random.default_rng(0)
    matrix = random_spd(rng, 12)
    other = rotated(matrix, rng)
    assert spd_distance(matrix, other, "les") < 1e-6
    assert spd_distance(matrix, other, "log-euclidean") > 1


def test_approximate_eigenvalues_of_one_dataset_differ():
    # Section 4.3, remark: of Algorithm 1 with two Ω; here one seed gives one Ω for one dataset.
    points = np.random.default_rng(0).normal(size=(500, 5))
    first, again, other = (ua.signature(points, solver="nystrom", rng=rng) for rng in (0, 0, 1))
    assert ua.distance(first, again) == 0
    assert np.linalg.norm(first.values - other.values) > 3e-4


def test_imd_is_a_lower_bound_of_spectral_gw_in_the_nuclear_norm_only():
    # Appendix B.3. Matrices that differ in all directions alike: the trace grows as N, the
    # Frobenius norm as its root.
    pair = [np.eye(200), 1e-9 * np.eye(200)]
    lower = spd_distance(*pair, "imd-diffusion", n_eigenvalues=200)
    assert lower <= spd_distance(*pair, "spectral-gw", norm="nuclear")
    for norm in ("frobenius", "spectral"):
        assert lower > spd_distance(*pair, "spectral-gw", norm=norm)


@pytest.mark.parametrize("seed", SEEDS)
def test_imd_is_below_spectral_gw_in_the_nuclear_norm(seed):
    pair = [random_spd(np.random.default_rng([seed, i]), 15) for i in range(2)]
    lower = spd_distance(*pair, "imd-diffusion", n_eigenvalues=15)
    assert lower <= spd_distance(*pair, "spectral-gw", norm="nuclear")
    for t in (0.1, 1.0, 10.0):
        a, b = (matrix_power(matrix, t) for matrix in pair)
        assert abs(np.trace(a) - np.trace(b)) <= np.abs(np.linalg.eigvalsh(a - b)).sum() + 1e-12


def test_the_logarithm_of_appendix_a_is_bounded():
    x = np.linspace(0, 0.5828, 10_001)
    assert np.all(np.abs(np.log(1 - x)) <= 1.5 * x)
    assert abs(np.log(1 - 0.584)) > 1.5 * 0.584


@pytest.mark.slow
@pytest.mark.parametrize("n_neighbors", [5, 10, 20])
def test_imd_sees_mainly_dimension_with_any_number_of_neighbours(n_neighbors):
    # Section 5.1 and Appendix B.1: other parameters make no other picture.
    scales, found = (0.2, 0.4, 0.6, 0.8), []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        angles = [torus_angles(1500, rng=rng) for _ in range(3)]
        T2, T3 = torus2(angles[0]), torus3(angles[1])
        scaled_tori = [torus2(angles[2], radius_scale=c) for c in scales]
        options = {"distance": "imd", "n_neighbors": n_neighbors}
        found.append([ua.distance(T2, other, **options) for other in (*scaled_tori, T3)])
    *by_scale, by_dimension = np.mean(found, axis=0)
    assert max(by_scale) < by_dimension / 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("power", "options", "separates"),
    [
        (1, {}, True),
        (1, {"armijo": True}, True),
        (2, {}, True),
        (1, {"loss_fun": "kl_loss"}, False),
    ],
)
def test_gromov_wasserstein_sees_dimension_before_scale_only_near_1(power, options, separates):
    # Appendix B.1: other parameters of POT make no other picture, but for the KL loss, with which
    # a change of scale is never smaller than one of dimension. LES crosses at c = 0.4.
    gw = pytest.importorskip("ot").gromov.gromov_wasserstein2
    scales, found = (0.9, 0.6), []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        points = [torus2(torus_angles(500, rng=rng))]
        for c in scales:
            points.append(torus2(torus_angles(500, rng=rng), radius_scale=c))
            points.append(torus3(torus_angles(500, rng=rng), radius_scale=c))
        first, *others = (squareform(pdist(x)) ** power for x in points)
        found.append([gw(first, other, **options) ** 0.5 for other in others])
    near = np.mean(found, axis=0).reshape(2, 2)  # rows: scales; columns: T2Sc, T3Sc
    assert (near[0, 0] < near[0, 1]) == separates
    assert near[1, 0] > near[1, 1]


@pytest.mark.slow
def test_many_landmarks_hide_the_dimension_from_the_geometry_score():
    # Appendix B.1: not all parameters make the same picture.
    ratios = []
    for n_landmarks in (32, 64, 128):
        found = []
        for seed in range(2):
            rng = np.random.default_rng(seed)
            first, again = (torus2(torus_angles(1500, rng=rng)) for _ in range(2))
            other = torus3(torus_angles(1500, rng=rng))
            options = {"n_landmarks": n_landmarks, "n_rounds": 100}
            found.append(
                [ua.distance(first, x, "geometry-score", **options) for x in (other, again)]
            )
        across, within = np.mean(found, axis=0)
        ratios.append(across / within)
    assert min(ratios[:2]) > 5
    assert ratios[2] < 3


@pytest.mark.slow
@pytest.mark.parametrize(("course", "below"), [("CytoTree", True), ("P. falciparum", False)])
def test_gamma_of_the_cells_against_the_largest_last_eigenvalue(course, below, monkeypatch):
    # Appendix C: γ = 1e-5 is slightly larger than the largest λ500 of the paper's cells.
    if not DATA.is_dir():
        pytest.skip("the cells are not here")
    monkeypatch.setenv("UNALIGNED_DATA", str(DATA))
    groups = read_course(course, None, 1500, 0).groups
    signatures = [ua.signature(group, n_eigenvalues=500) for group in groups.values()]
    largest = max(signature.eigenvalues[-1] for signature in signatures)
    assert (largest < 1e-5) == below
    chosen = ua.signature(next(iter(groups.values())), n_eigenvalues=500, gamma="cutoff")
    assert chosen.eigenvalues[-1] <= chosen.recipe.gamma <= 2 * chosen.eigenvalues[-1] + 1e-8


@pytest.mark.parametrize("seed", range(3))
def test_the_knee_of_the_ratios_tells_a_torus_from_noise(seed):
    # Section 4.2, remark: γ where λᵢ/λᵢ₊₁ falls to that of noise; larger noise, larger γ.
    rng = np.random.default_rng(seed)
    torus = np.pad(torus2(torus_angles(500, rng=rng)), ((0, 0), (0, 17)))
    clean = ua.signature(torus, n_eigenvalues=100).eigenvalues
    gammas = [ua.diagnose(torus, n_eigenvalues=100).gamma]
    for noise in (0.01, 0.1, 0.3):
        points = torus + noise * rng.normal(size=torus.shape)
        found = ua.diagnose(points, n_eigenvalues=100)
        ratios = found.signature.eigenvalues / clean
        above = found.signature.eigenvalues > 10 * found.gamma
        assert np.abs(np.log(ratios[above])).max() < 0.5
        assert np.log(ratios[~above]).max() > 2
        gammas.append(found.gamma)
    assert np.all(np.diff(gammas) > 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_both_diffusion_operators_have_the_same_eigenvalues(seed):
    # Section 3.1: W and W_DM are similar.
    points = np.random.default_rng(seed).normal(size=(40, 3))
    W = diffusion_of_points(points)
    K = np.exp(-(squareform(pdist(points)) ** 2) / (2 * np.median(squareform(pdist(points)) ** 2)))
    tilde = K / np.outer(K.sum(axis=1), K.sum(axis=1))
    markov = np.linalg.eigvals(tilde / tilde.sum(axis=1, keepdims=True))
    assert np.abs(markov.imag).max() < 1e-10
    assert np.sort(markov.real)[::-1] == pytest.approx(eigenvalues(W), abs=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_normalisation_mitigates_non_uniform_sampling(seed):
    # Section 3.1: eigenvalues of the Laplacian of a circle, 1, 1, 4, 4, from uneven samples.
    rng = np.random.default_rng(seed)
    angles = rng.vonmises(0.0, 0.7, size=800)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    sigma_squared, expected = 0.05, np.array([1, 1, 4, 4])
    W = ua.signature(circle, n_eigenvalues=5, bandwidth=sigma_squared).eigenvalues
    K = np.exp(-(squareform(pdist(circle)) ** 2) / sigma_squared)
    root = np.sqrt(K.sum(axis=1))
    without = eigenvalues(K / np.outer(root, root), 5)  # Eq. 3 alone
    errors = [
        np.abs(4 * (1 - found[1:]) / sigma_squared / expected - 1).max() for found in (W, without)
    ]
    assert errors[0] < errors[1] / 2


def test_eigenvalues_of_a_circle_are_those_of_its_laplacian():
    # Section 3.1: (1 - λ)/σ² approaches those of the Laplace-Beltrami operator, 0, 1, 1, 4, 4 …
    angles = 2 * np.pi * np.arange(600) / 600
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    errors = []
    for sigma_squared in (0.08, 0.04, 0.02):
        found = 1 - ua.signature(circle, n_eigenvalues=7, bandwidth=sigma_squared).eigenvalues
        errors.append(np.abs(4 * found / sigma_squared - [0, 1, 1, 4, 4, 9, 9]).max())
    assert errors[2] < errors[1] < errors[0]
    assert errors[2] < 0.3
