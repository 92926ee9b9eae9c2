"""CrossLID against its definition with loops."""

import numpy as np
import pytest

import unaligned as ua
from unaligned.errors import DegenerateDataError, InputError, NotApplicableError

SEEDS = range(4)


def pair(seed, n=50, m=70, d=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(m, d)) + 0.3


def textbook(x, y, k):
    """The mean of -1/mean(log(r_i/r_k)), rows at distance 0 left out."""
    values = []
    for point in x:
        r = np.sort(np.linalg.norm(y - point, axis=1))
        r = r[r > 0][:k]
        values.append(-1.0 / np.mean(np.log(r / r[-1])))
    return np.mean(values)


@pytest.mark.parametrize("d", [1, 3, 40])
@pytest.mark.parametrize("seed", SEEDS)
def test_equals_the_definition(seed, d):
    x, y = pair(seed, d=d)
    forth, back = textbook(x, y, 20), textbook(y, x, 20)
    options = {"n_neighbors": 20}
    assert ua.distance(x, y, "crosslid", **options) == pytest.approx((forth + back) / 2, rel=1e-8)
    directed = ua.compare([x, y], distance="crosslid", directed=True, **options).distances
    assert directed[0, 1] == pytest.approx(forth, rel=1e-8)
    assert directed[1, 0] == pytest.approx(back, rel=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_neighbours_are_accurate_with_an_outlier(seed):
    x, y = pair(seed, d=20)
    y[0] += 1e12
    expected = textbook(x, y, 20)
    found = ua.compare([x], [y], distance="crosslid", directed=True, n_neighbors=20)
    assert found.distances[0, 0] == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("d", [3, 40])
def test_a_point_is_not_its_own_neighbour(d):
    x, _ = pair(0, d=d)
    expected = textbook(x, x, 20)
    assert ua.distance(x, x.copy(), "crosslid", n_neighbors=20) == pytest.approx(expected)


@pytest.mark.parametrize("d", [3, 40])
def test_copies_in_the_other_dataset_are_excluded(d):
    x, y = pair(0, d=d)
    y[:9] = x[0]
    y[9:12] = x[1]
    expected = (textbook(x, y, 20) + textbook(y, x, 20)) / 2
    assert ua.distance(x, y, "crosslid", n_neighbors=20) == pytest.approx(expected, rel=1e-8)


def test_dimension_of_a_cube_is_recovered_and_grows_with_distance():
    rng = np.random.default_rng(0)
    a, b = rng.uniform(size=(2, 2000, 2))
    near = ua.distance(a, b, "crosslid")
    assert near == pytest.approx(2.0, rel=0.1)
    assert ua.distance(a, b + 3.0, "crosslid") > 2 * near


def test_one_number_of_neighbours_for_the_collection():
    x, y = pair(0)
    result = ua.compare([x, y], distance="crosslid")
    assert result.options["n_neighbors"] == 49
    with pytest.raises(InputError, match=r"n_neighbors=50 needs at least 51 rows.*'a' has 50"):
        ua.distance(x, y, "crosslid", n_neighbors=50)
    with pytest.raises(InputError, match="needs at least 3 rows; dataset 'a' has 2"):
        ua.distance(x[:2], y, "crosslid")
    with pytest.raises(InputError, match="n_neighbors=1 must be at least 2"):
        ua.distance(x, y, "crosslid", n_neighbors=1)
    large = np.random.default_rng(0).normal(size=(2, 150, 2))
    assert ua.compare(list(large), distance="crosslid").options["n_neighbors"] == 100


def test_data_without_a_dimension_raise():
    x, y = pair(0)
    copies, two = np.repeat(y[:1], 50, axis=0), np.repeat(y[:2], [30, 20], axis=0)
    with pytest.raises(DegenerateDataError, match="row 0 of dataset 'a' has only 20 rows"):
        ua.distance(copies, two, "crosslid", directed=True)
    ring = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    with pytest.raises(DegenerateDataError, match="neighbours in dataset 'b' all at one distance"):
        ua.distance(np.zeros((5, 2)), ring, "crosslid", directed=True)
    with pytest.raises(NotApplicableError, match="same features"):
        ua.distance(x, y[:, :2], "crosslid")
