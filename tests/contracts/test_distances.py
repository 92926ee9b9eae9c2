"""Every distance of the registry against one table of its properties."""

import dataclasses
import re

import numpy as np
import pytest

import unaligned as ua
from unaligned.errors import NotApplicableError, OptionError, UnalignedError
from unaligned.metrics.registry import DISTANCES, CallableDistance

ALONE, TOGETHER = "alone", "together"  # invariant to a change of one dataset, or of both


@dataclasses.dataclass(frozen=True)
class Claims:
    """The properties of a distance, and options that keep it fast here.

    The defaults are those of distances of the eigenvalues of W.
    """

    options: dict = dataclasses.field(default_factory=dict)
    order: str = ALONE
    motion: str = ALONE
    degree: int = 0  # of homogeneity in the unit of both
    zero: bool = True
    triangle: bool = True
    noise: float = 1e-4  # relative; random draws depend on the stored values


K = {"n_eigenvalues": 15}
MTD = {"batch_size": 40, "other_batch_size": 40}  # all rows
HOLES = {"n_landmarks": 12, "gamma": 0.1, "n_rounds": 80}
PAIRED = {"order": TOGETHER}
SHARED = {"motion": TOGETHER}
NO_METRIC = {"triangle": False}  # squares, divergences, local minima

# A new distance is one row.
TABLE = {
    "les": Claims(K),
    "imd-diffusion": Claims(K),
    "log-euclidean": Claims(**PAIRED),
    "affine-invariant": Claims(**PAIRED),
    "euclidean": Claims(**PAIRED),
    "spectral-gw": Claims(**PAIRED),
    "imd": Claims({"method": "exact"}),
    "netlsd": Claims(),
    "shape-dna": Claims(K),
    "bottleneck-h0": Claims(degree=1),
    "bottleneck-h1": Claims(degree=1),
    "bottleneck-h2": Claims(degree=1),
    "mtd": Claims(MTD, degree=1, **SHARED, **NO_METRIC),
    "geometry-score": Claims(HOLES, noise=0.5, **NO_METRIC),
    "gromov-wasserstein": Claims(degree=1, **NO_METRIC),
    "wasserstein": Claims(degree=1, **SHARED),
    "mmd": Claims(**SHARED),
    "edistance": Claims(degree=1, **SHARED, **NO_METRIC),
    "frechet": Claims(degree=2, **SHARED, **NO_METRIC),
    "cka": Claims(**PAIRED, **NO_METRIC),
    "crosslid": Claims(zero=False, **SHARED, **NO_METRIC),
}
SEEDS = range(3)


def claiming(test):
    """Return the names of the distances whose properties pass the test."""
    return [name for name, claims in TABLE.items() if test(claims)]


def clouds(seed, n=30):
    return np.random.default_rng(seed).normal(size=(3, n, 4))


def unlike(seed):
    """Return two very different clouds: a blob and a bent curve."""
    rng = np.random.default_rng(seed)
    t = np.sort(rng.uniform(0, 5, size=30))
    curve = np.column_stack([np.cos(t), np.sin(t), 0.3 * t, 0.1 * t**2])
    return rng.normal(size=(30, 4)), curve + 0.01 * rng.normal(size=curve.shape)


def distance(a, b, name, **options):
    return ua.distance(a, b, name, **{**TABLE[name].options, **options})


def test_table_is_complete():
    assert set(TABLE) == set(DISTANCES)
    assert all(cls.name == name for name, cls in DISTANCES.items())
    assert set(ua.available().index) == set(DISTANCES)


@pytest.fixture(autouse=True)
def _with_its_extra(request):
    if "name" in request.fixturenames:
        name = request.getfixturevalue("name")
        packages = {"topology": ("gudhi", "ripser"), "transport": ("ot",)}
        for package in packages.get(DISTANCES[name].extra, ()):
            pytest.importorskip(package, reason=f"{name} needs an extra")


@pytest.mark.parametrize("seed", SEEDS)
class TestValues:
    @pytest.mark.parametrize("name", TABLE)
    def test_values_are_finite_positive_floats(self, name, seed):
        a, b, _ = clouds(seed)
        value = distance(a, b, name)
        assert type(value) is float
        assert 0 < value < np.inf

    @pytest.mark.parametrize("name", claiming(lambda claims: claims.zero))
    def test_equal_data_have_distance_exactly_zero(self, name, seed):
        a = clouds(seed)[0]
        assert distance(a, a.copy(order="F"), name) == 0.0

    @pytest.mark.parametrize("name", TABLE)
    def test_distance_equals_compare(self, name, seed):
        a, b, _ = clouds(seed)
        options = {"distance": name, "rng": seed, **TABLE[name].options}
        expected = ua.compare([a], [b], **options).distances[0, 0]
        assert ua.distance(a, b, **options) == pytest.approx(expected, rel=1e-9)
        assert ua.distance(a, b, engine=None, **options) == expected

    @pytest.mark.parametrize("name", claiming(lambda claims: not claims.zero))
    def test_equal_data_have_positive_distance_where_zero_is_not_claimed(self, name, seed):
        a = clouds(seed)[0]
        assert distance(a, a.copy(), name) > 0.1

    @pytest.mark.parametrize("name", TABLE)
    def test_values_are_symmetric(self, name, seed):
        a, b, _ = clouds(seed)
        assert distance(a, b, name) == pytest.approx(distance(b, a, name), rel=1e-9)

    @pytest.mark.parametrize("name", claiming(lambda claims: claims.triangle))
    def test_triangle_inequality_holds(self, name, seed):
        D = ua.compare(list(clouds(seed)), distance=name, **TABLE[name].options).distances
        assert D[0, 2] <= D[0, 1] + D[1, 2] + 1e-9

    @pytest.mark.parametrize("name", TABLE)
    def test_values_depend_on_the_seed_only_and_not_on_n_jobs(self, name, seed):
        options = {"distance": name, **TABLE[name].options}
        rngs = (seed, seed, np.random.default_rng(seed), np.random.default_rng(seed))
        found = [
            ua.compare(list(clouds(seed)), rng=rng, n_jobs=jobs, **options).distances
            for rng, jobs in zip(rngs, (1, 2, 1, 2), strict=True)
        ]
        for first, second in (found[:2], found[2:]):
            np.testing.assert_allclose(first, second, rtol=0, atol=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
class TestInvariances:
    def check(self, name, seed, change, *, alone, factor=1.0):
        a, b = unlike(seed)
        expected = factor * distance(a, b, name)
        found = distance(change(a), b if alone else change(b), name)
        assert found == pytest.approx(expected, rel=TABLE[name].noise)

    @pytest.mark.parametrize("name", TABLE)
    def test_order_of_rows(self, name, seed):
        rows = np.random.default_rng(seed).permutation(30)
        alone = TABLE[name].order == ALONE
        self.check(name, seed, lambda points: points[rows], alone=alone)

    @pytest.mark.parametrize("name", TABLE)
    def test_rotation_and_reflection(self, name, seed):
        Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(4, 4)))[0]
        alone = TABLE[name].motion == ALONE
        self.check(name, seed, lambda points: points @ Q, alone=alone)

    @pytest.mark.parametrize("name", TABLE)
    def test_translation(self, name, seed):
        alone, shift = TABLE[name].motion == ALONE, np.array([5.0, -3.0, 0.0, 1.0])
        self.check(name, seed, lambda points: points + shift, alone=alone)

    @pytest.mark.parametrize(
        "name", claiming(lambda claims: claims.degree == 0 and claims.motion == ALONE)
    )
    def test_scale_of_one(self, name, seed):
        self.check(name, seed, lambda points: 3.0 * points, alone=True)

    @pytest.mark.parametrize("name", TABLE)
    def test_unit_of_both(self, name, seed):
        factor = 3.0 ** TABLE[name].degree
        self.check(name, seed, lambda points: 3.0 * points, alone=False, factor=factor)


A, B, _ = clouds(0)
# Integers that int8 and float16 represent.
WHOLE = [np.round(20 * points) for points in (A, B)]
VALID = {
    "constant column": (np.c_[A, np.ones(30)], np.c_[B, np.ones(30)]),
    "duplicated rows": (np.repeat(A[:15], 2, axis=0), np.repeat(B[:15], 2, axis=0)),
    "one feature": (A[:, :1], B[:, :1]),
    "more features than rows": tuple(np.random.default_rng(0).normal(size=(2, 30, 90))),
    "far from the origin": (A + 1e7, B + 1e7),
    "six rows": (A[:6], B[:6]),
    "scale 1e-100": (1e-100 * A, 1e-100 * B),
    "scale 1e100": (1e100 * A, 1e100 * B),
    "read-only": tuple(np.lib.stride_tricks.as_strided(x, writeable=False) for x in (A, B)),
}
DEGENERATE = {
    "one row": (A[:1], B[:1]),
    "two rows": (A[:2], B[:2]),
    "three rows": (A[:3], B[:3]),
    "copies of one row": (np.repeat(A[:1], 30, axis=0), B),
    "zeros": (np.zeros((30, 4)), B),
    "zeros and ones": (A > 0, B > 0),
    "scale 1e-300": (1e-300 * A, 1e-300 * B),
    "scale 1e300": (1e300 * A, 1e300 * B),
}


def fitting(name, rows):
    """Return the options, without n_eigenvalues if there are fewer rows."""
    options = dict(TABLE[name].options)
    if rows < options.get("n_eigenvalues", 0):
        del options["n_eigenvalues"]
    return options


@pytest.mark.parametrize("name", TABLE)
class TestInputs:
    @pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float16, np.float32])
    def test_every_dtype_gives_the_same_value(self, name, dtype):
        expected = distance(*WHOLE, name)
        found = distance(*(points.astype(dtype) for points in WHOLE), name)
        assert found == pytest.approx(expected, rel=1e-9)

    @pytest.mark.parametrize("kind", VALID)
    def test_valid_data_have_a_finite_distance(self, name, kind):
        a, b = VALID[kind]
        value = ua.distance(a, b, name, **fitting(name, len(a)))
        assert 0 <= value < np.inf

    @pytest.mark.parametrize("kind", DEGENERATE)
    def test_degenerate_data_raise_by_name_or_have_a_finite_distance(self, name, kind):
        a, b = DEGENERATE[kind]
        try:
            value = ua.distance(a, b, name, **fitting(name, len(a)))
        except UnalignedError as error:
            assert re.search("dataset '[ab]'", str(error))  # noqa: PT017
        else:
            assert 0 <= value < np.inf


@pytest.mark.parametrize("name", TABLE)
def test_missing_requirements_raise_not_applicable(name):
    wide, long = np.c_[B, B], np.r_[B, B[:9]]
    needs = DISTANCES[name]
    for other, needed, why in (
        (wide, needs.same_features, "needs the same features, and dataset 'a' has 4 columns"),
        (long, needs.paired_rows, "row i with row i, and dataset 'a' has 30 rows"),
    ):
        if needed:
            with pytest.raises(NotApplicableError, match=f"{why}.*'les' needs neither"):
                distance(A, other, name)
        else:
            assert 0 < distance(A, other, name) < np.inf
    square = {"distances": 1 - np.eye(9), "affinity": np.ones((9, 9)), "spd": np.eye(9)}
    for kind in square.keys() - set(needs.kinds):
        matrix = ua.Dataset(square[kind], kind=kind)
        with pytest.raises(NotApplicableError, match=f"dataset 'a' is {kind}"):
            ua.distance(matrix, matrix, name)


@pytest.mark.parametrize("name", [name for name, cls in DISTANCES.items() if cls.is_descriptor])
def test_loaded_comparison_of_descriptors_can_grow(name, tmp_path):
    options = {"distance": name, **TABLE[name].options}
    a, b, c = clouds(0)
    ua.compare({"a": a, "b": b}, **options).save(tmp_path / "kept")
    grown = ua.Comparison.load(tmp_path / "kept").add({"c": c, "copy": a})
    expected = ua.compare({"a": a, "b": b, "c": c, "copy": a}, **options)
    np.testing.assert_allclose(grown.distances, expected.distances, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(grown.error_bounds, expected.error_bounds, rtol=1e-9, atol=1e-12)
    assert grown.names == expected.names


@pytest.mark.parametrize("name", TABLE)
def test_settings_are_frozen_and_round_trip_through_options(name):
    method = DISTANCES[name].from_options(TABLE[name].options)
    assert type(method).from_options(method.options()) == method
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign"):
        method.name = "other"
    with pytest.raises(OptionError, match=f"distance '{name}' has no option 'bogus'"):
        DISTANCES[name].from_options({"bogus": 1})


@pytest.mark.parametrize("cls", [*DISTANCES.values(), CallableDistance], ids=lambda c: c.name)
def test_every_distance_has_a_summary_and_a_cost(cls):
    assert cls.summary
    assert cls.cost
    assert cls.__doc__
