"""Eqs. 1-4 and 11 against a plain reference, on ordinary and degenerate data."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import unaligned as ua
from reference import diffusion_matrix, diffusion_of_points, eigenvalues, les, random_spd
from unaligned.errors import DegenerateDataError, InputError
from unaligned.operators.diffusion import build_operator
from unaligned.operators.kernel import KernelSettings


def points_of(seed, shape):
    return np.random.default_rng(seed).normal(size=shape)


SHAPES = [(2, 1), (5, 3), (40, 2), (61, 20), (30, 200)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(3))
def test_points_follow_equations_1_to_4(seed, shape):
    points = points_of(seed, shape)
    expected = diffusion_of_points(points)
    found = build_operator(points, "points", KernelSettings()).to_dense()
    assert np.allclose(found, expected, rtol=1e-10, atol=1e-13)
    signature = ua.signature(points)
    assert np.allclose(signature.eigenvalues, eigenvalues(expected), atol=1e-12)
    assert signature.sigma_squared == pytest.approx(2 * np.median(cdist(points, points) ** 2))


@pytest.mark.filterwarnings("ignore::unaligned.errors.IndefiniteWarning")
@pytest.mark.parametrize("metric", ["euclidean", "cityblock"])
@pytest.mark.parametrize("seed", range(3))
def test_distances_follow_equations_1_to_4(seed, metric):
    points = points_of(seed, (40, 3))
    matrix = cdist(points, points, metric)
    matrix = (matrix + matrix.T) / 2
    found = ua.signature(ua.Dataset(matrix, kind="distances"), n_eigenvalues=15)
    assert np.allclose(found.eigenvalues, eigenvalues(diffusion_matrix(matrix), 15), atol=1e-11)


@pytest.mark.parametrize("seed", range(3))
def test_eigenvalues_of_spd_matrix_are_used_directly(seed):
    matrix = random_spd(np.random.default_rng(seed), 25)
    found = ua.signature(ua.Dataset(matrix, kind="spd"))
    assert np.allclose(found.eigenvalues, eigenvalues(matrix), atol=1e-12)
    assert found.sigma_squared is None


@pytest.mark.parametrize("gamma", [1e-8, 1e-5, 1e-2])
@pytest.mark.parametrize("seed", range(3))
def test_les_is_the_root_of_equation_11(seed, gamma):
    a, b = points_of(seed, (50, 3)), points_of(seed + 100, (70, 8))
    spectra = [eigenvalues(diffusion_of_points(x), 30) for x in (a, b)]
    options = {"n_eigenvalues": 30, "gamma": gamma}
    expected = les(*spectra, gamma)
    assert ua.distance(a, b, **options) == pytest.approx(expected, rel=1e-7, abs=1e-6)
    squared = ua.distance(a, b, squared=True, **options)
    assert squared == pytest.approx(ua.distance(a, b, **options) ** 2, rel=1e-14)


def clusters(*sizes):
    """Copies of well separated points: the i-th occurs sizes[i] times."""
    corners = np.arange(len(sizes), dtype=float)[:, None] * [3.0, 4.0]
    return np.repeat(corners, sizes, axis=0)


DEGENERATE = {
    "fewer distinct rows than K": np.repeat(points_of(0, (7, 3)), 6, axis=0),
    "one-hot rows": np.eye(40),
    "one-hot rows, repeated": np.repeat(np.eye(10), 4, axis=0),
    "two clusters of 20 and 20": clusters(20, 20),
    "three clusters": clusters(14, 13, 13),
    "points on a line": np.linspace(0, 1, 40)[:, None],
    "binary": points_of(1, (40, 3)) > 0,
    "one far outlier": np.vstack([points_of(2, (39, 2)), [[1e6, 1e6]]]),
    "far from the origin": points_of(3, (40, 2)) + 1e7,
}


@pytest.mark.parametrize("solver", ["exact", "nystrom", "auto"])
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_data_equals_reference(name, solver):
    points = DEGENERATE[name]
    truth = eigenvalues(diffusion_of_points(points), 20)
    signature = ua.signature(points, n_eigenvalues=20, solver=solver)
    error = np.linalg.norm(signature.values - np.log(truth + 1e-8))
    # With far points the reference itself rounds: 1e-16 against γ = 1e-8, times √K.
    assert error <= signature.total_error_bound + 1e-6


@pytest.mark.parametrize("sizes", [(15, 25), (1, 39), (39, 1)])
@pytest.mark.parametrize("bandwidth", ["mean", 25.0])
def test_zero_median_raises_with_a_remedy_that_works(sizes, bandwidth):
    points = clusters(*sizes)
    message = r"'b'.*median distance between points is 0.*bandwidth='mean' or a number"
    with pytest.raises(DegenerateDataError, match=message):
        ua.distance(points_of(0, (40, 2)), points)
    found = ua.signature(points, n_eigenvalues=10, bandwidth=bandwidth)
    # Two groups of equal points: two eigenvalues, the others zero.
    assert found.eigenvalues[0] == pytest.approx(1.0)
    assert np.all(found.eigenvalues[2:] < 1e-14)


@pytest.mark.parametrize(
    ("points", "options", "error", "message"),
    [
        (np.ones((30, 3)), {}, DegenerateDataError, r"all points are equal"),
        (np.ones((30, 3)), {"bandwidth": "mean"}, DegenerateDataError, r"all points are equal"),
        (np.ones((1, 3)), {}, DegenerateDataError, r"the dataset has one row.*at least two"),
        (points_of(0, (9, 2)) * 1e200, {}, DegenerateDataError, r"overflow.*Rescale the data"),
        (points_of(0, (9, 2)) * 1e-200, {}, DegenerateDataError, r"underflow.*Rescale the data"),
        (points_of(0, (9, 2)), {"n_eigenvalues": 10}, InputError, r"at least 10 samples.*has 9"),
    ],
)
def test_degenerate_data_raises(points, options, error, message):
    with pytest.raises(error, match=message):
        ua.signature(points, **options)


@pytest.mark.parametrize("scale", [1e100, 1e10, 1e-10, 1e-100])
def test_units_do_not_matter(scale):
    points = points_of(0, (40, 3))
    found = ua.signature(points * scale, n_eigenvalues=10).values
    assert np.allclose(found, ua.signature(points, n_eigenvalues=10).values, atol=1e-9)


def test_too_many_eigenvalues_raise_and_name_the_dataset():
    data = {"liver": points_of(0, (15, 2)), "heart": points_of(1, (20, 2))}
    message = r"n_eigenvalues=20 needs at least 20 samples; dataset 'liver' has 15. Lower"
    with pytest.raises(InputError, match=message):
        ua.compare(data, n_eigenvalues=20)
    assert ua.compare(data).signatures["heart"].n_eigenvalues == 15
