"""Maps of a distance matrix."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import unaligned as ua
from unaligned.embedding import METHODS, embed
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
def test_identical_datasets_fall_on_one_point(method):
    points = np.random.default_rng(0).normal(size=(30, 3))
    assert np.array_equal(ua.compare([points] * 4).embed(method), np.zeros((4, 2)))


@pytest.mark.parametrize("method", METHODS)
def test_two_equal_datasets_share_a_place(method):
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
def test_wrong_arguments_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        embed(distances_of(np.arange(4.0)[:, None]), **options)
