"""Maps of a distance matrix."""

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist

import unaligned as ua
from unaligned.embedding import METHODS, aggregate, correlate, embed
from unaligned.errors import InputError, InputTypeError

SEEDS = range(4)


def distances_of(points):
    matrix = cdist(points, points)
    return (matrix + matrix.T) / 2


@pytest.mark.parametrize("n_components", [1, 2, 4])
@pytest.mark.parametrize("seed", SEEDS)
def test_classical_mds_reproduces_euclidean_distances(seed, n_components):
    points = np.random.default_rng(seed).normal(size=(9, n_components))
    D = distances_of(points)
    assert np.allclose(distances_of(embed(D, "mds", n_components)), D, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_classical_mds_of_les_distances_is_exact_with_enough_components(seed):
    rng = np.random.default_rng(seed)
    result = ua.compare([rng.normal(size=(50, d)) for d in (1, 2, 3, 5, 8)], n_eigenvalues=20)
    assert np.allclose(distances_of(result.embed("mds", 4)), result.distances, atol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_metric_mds_reproduces_a_plane_up_to_its_stress(seed):
    D = distances_of(np.random.default_rng(seed).normal(size=(8, 2)))
    found = distances_of(embed(D, "metric-mds", 2, rng=seed))
    assert np.linalg.norm(found - D) < 0.1 * np.linalg.norm(D)
    assert np.array_equal(embed(D, "metric-mds", rng=seed), embed(D, "metric-mds", rng=seed))


@pytest.mark.parametrize("gap", [3.0, 30.0, 1e4])
@pytest.mark.parametrize("sizes", [(6, 6), (4, 9), (2, 9), (1, 9), (5, 6)])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_first_diffusion_coordinate_separates_two_clusters(seed, sizes, gap):
    rng = np.random.default_rng(seed)
    first, second = (0.1 * rng.normal(size=(n, 2)) for n in sizes)
    coordinate = embed(distances_of(np.vstack([first, second + gap])), "diffusion", 1)[:, 0]
    a, b = coordinate[: sizes[0]], coordinate[sizes[0] :]
    between = min(abs(a.max() - b.min()), abs(b.max() - a.min()))
    assert max(a.min(), b.min()) > min(a.max(), b.max())
    assert between > 5 * max(np.ptp(a), np.ptp(b))


@pytest.mark.parametrize("seed", SEEDS)
def test_diffusion_coordinates_are_eigenvectors_of_the_row_stochastic_operator(seed):
    D = distances_of(np.random.default_rng(seed).normal(size=(10, 3)))
    off_diagonal = D[np.triu_indices(10, 1)] ** 2
    K = np.exp(-(D**2) / (2 * np.median(off_diagonal)))
    W = K / np.outer(K.sum(axis=1), K.sum(axis=1))
    P = W / W.sum(axis=1, keepdims=True)
    coordinates = embed(D, "diffusion", 3)
    values = np.sort(np.linalg.eigvals(P).real)[::-1]
    for column, value in zip(coordinates.T, values[1:4], strict=True):
        assert np.allclose(P @ column, value * column, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_identical_datasets_coincide(method):
    points = np.random.default_rng(0).normal(size=(30, 3))
    assert np.array_equal(ua.compare([points] * 4).embed(method), np.zeros((4, 2)))


@pytest.mark.parametrize("method", METHODS)
def test_two_equal_datasets_coincide(method):
    D = distances_of(np.array([[0.0], [0.0], [1.0], [5.0]]))
    coordinates = embed(D, method, 2, rng=0)
    assert np.allclose(coordinates[0], coordinates[1], atol=0.1 if "metric" in method else 1e-7)


@pytest.mark.parametrize("method", ["mds", "diffusion"])
def test_signs_are_fixed(method):
    D = distances_of(np.random.default_rng(0).normal(size=(7, 2)))
    coordinates = embed(D, method)
    largest = np.abs(coordinates).argmax(axis=0)
    assert np.all(coordinates[largest, [0, 1]] > 0)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"method": "tsne"},
            InputError,
            r"method='tsne' is not known.*mds, metric-mds, diffusion",
        ),
        (
            {"n_components": 4},
            InputError,
            r"n_components=4 needs more than 4 datasets; there are 4",
        ),
        ({"n_components": 0}, InputError, r"n_components=0 must be at least 1"),
        ({"n_components": True}, InputTypeError, r"n_components=True must be a whole number"),
        ({"rng": "seed"}, InputTypeError, r"rng='seed' must be None, a whole number or"),
    ],
)
def test_invalid_arguments_raise(options, error, message):
    with pytest.raises(error, match=message):
        embed(distances_of(np.arange(4.0)[:, None]), **options)


@pytest.mark.parametrize("how", ["mean", "min", "max"])
@pytest.mark.parametrize("seed", SEEDS)
def test_aggregate_reduces_over_references(how, seed):
    rng = np.random.default_rng(seed)
    new, known = ([rng.normal(size=(40, d)) for d in dims] for dims in ((2, 3, 4), (2, 5)))
    result = ua.compare(new, known, n_eigenvalues=15)
    found = result.aggregate(how)
    assert list(found.index) == list(result.names)
    assert np.allclose(found, getattr(result.to_frame(), how)(axis=1))
    assert np.array_equal(found, aggregate(result.distances, how))


def test_aggregate_needs_references_and_a_known_reduction():
    clouds = [np.random.default_rng(i).normal(size=(30, 2)) for i in range(3)]
    with pytest.raises(InputError, match=r"aggregate\(\).*compare\(datasets, references\)"):
        ua.compare(clouds, n_eigenvalues=9).aggregate()
    with pytest.raises(InputError, match=r"how='meen' is not known. Did you mean 'mean'"):
        ua.compare(clouds, clouds[:1], n_eigenvalues=9).aggregate("meen")


@pytest.mark.parametrize("seed", SEEDS)
def test_correlations_equal_scipy(seed):
    from scipy.stats import pearsonr, spearmanr

    rng = np.random.default_rng(seed)
    D, values = distances_of(rng.normal(size=(9, 2))), rng.integers(5, size=9)
    pairs = np.triu_indices(9, 1)
    gaps = np.abs(values[pairs[0]] - values[pairs[1]])
    for method, reference in (("pearson", pearsonr), ("spearman", spearmanr)):
        expected = reference(D[pairs], gaps).statistic
        assert correlate(D, values, method) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("unit", [1e-200, 1e300])
def test_correlation_is_invariant_to_units(unit):
    values = np.array([1.0, 2.0, 4.0, 5.0])
    D = distances_of(np.array([[0.0], [2.0], [3.0], [7.0]]))
    assert correlate(D, values * unit) == pytest.approx(correlate(D, values), abs=1e-12)


def test_values_are_matched_by_name_or_order():
    clouds = {f"{d}": np.random.default_rng(d).normal(size=(60, d)) for d in (1, 2, 3, 6)}
    result = ua.compare(clouds, n_eigenvalues=20)
    by_order = result.correlate([1, 2, 3, 6])
    shuffled = {"6": 6, "2": 2, "1": 1, "3": 3, "other": 9}
    assert result.correlate(shuffled) == by_order
    assert result.correlate(pd.Series(shuffled)) == by_order
    assert -1 <= by_order <= 1
    with pytest.raises(InputError, match="values has no value for dataset '3'"):
        result.correlate({"1": 1, "2": 2, "6": 6})


@pytest.mark.parametrize("how", ["mean", "min", "max"])
def test_rectangular_comparison_correlates_the_aggregate_with_the_values(how):
    rng = np.random.default_rng(0)
    clouds = {str(d): rng.normal(size=(60, d)) for d in (1, 2, 3, 6)}
    result = ua.compare(clouds, {"2": clouds["2"], "6": clouds["6"]}, n_eigenvalues=20)
    expected = np.corrcoef(result.aggregate(how), [4, 3, 2, 1])[0, 1]
    found = result.correlate([4, 3, 2, 1], aggregate=how)
    assert found == pytest.approx(expected, abs=1e-12)
    with pytest.raises(InputError, match="All values are equal"):
        result.correlate([1, 1, 1, 1], aggregate=how)
    with pytest.raises(InputError, match="aggregate='median' is not known"):
        result.correlate([4, 3, 2, 1], aggregate="median")


@pytest.mark.parametrize(
    ("values", "options", "error", "message"),
    [
        ([1, 2, 3], {}, InputError, r"one number for each of the 4 datasets; got shape \(3,\)"),
        ([1, 2, 3, np.nan], {}, InputError, "must be finite"),
        (list("abcd"), {}, InputTypeError, "must be numbers"),
        ([1, 1, 1, 1], {}, InputError, "All differences of values are equal"),
        ([1, 2, 3, 4], {"method": "kendall"}, InputError, "method='kendall' is not known"),
    ],
)
def test_invalid_values_raise(values, options, error, message):
    with pytest.raises(error, match=message):
        correlate(distances_of(np.arange(4.0)[:, None]), values, **options)


def test_constant_distances_and_two_datasets_raise():
    with pytest.raises(InputError, match=r"All distances are equal \(1\)"):
        correlate(1 - np.eye(4), [1, 2, 3, 5])
    with pytest.raises(InputError, match="at least 3 datasets; there are 2"):
        correlate(1 - np.eye(2), [1, 2])
