"""Signatures: values, recipes, truncation, files."""

import copy
import functools
import pickle

import numpy as np
import pytest
from scipy import sparse

import unaligned as ua
from unaligned.errors import InputError, InputTypeError, RecipeMismatchError
from unaligned.operators import pointcloud
from unaligned.spectra.nystrom import Nystrom

POINTS = np.random.default_rng(0).normal(size=(60, 3))

MAKERS = {
    "exact": {},
    "nystrom": {"solver": "nystrom"},
    "expectation": {"solver": Nystrom(bound="expectation")},
    "preprocessed": {"preprocess": ["standardize", "pca:2"]},
    "fixed scale": {"bandwidth": 2.5},
    "numpy numbers": {
        "gamma": np.float32(1e-6),
        "tol": np.float32(0.1),
        "bandwidth": np.int64(3),
        "bandwidth_factor": np.float32(1.1),
        "rng": np.int64(3),
    },
    "numpy numbers of the kernel": {"n_neighbors": np.int64(8), "robust": np.bool_(False)},
}


def make(data=POINTS, k=10, **options):
    return ua.signature(data, n_eigenvalues=np.int64(k), **options)


@pytest.mark.filterwarnings("ignore::unaligned.errors.IndefiniteWarning")
@pytest.mark.parametrize("case", MAKERS)
def test_saved_signature_loads_bit_for_bit(case, tmp_path):
    signature = make(ua.Dataset(POINTS, name="π"), **MAKERS[case])
    signature.save(tmp_path / "file.npz")
    loaded = ua.Signature.load(str(tmp_path / "file.npz"))
    for name in ("values", "eigenvalues", "error_bound"):
        assert np.array_equal(getattr(loaded, name), getattr(signature, name))
    for name in (
        "recipe",
        "name",
        "fingerprint",
        "sigma_squared",
        "n_samples",
        "n_features",
        "bound_kind",
        "total_error_bound",
    ):
        assert getattr(loaded, name) == getattr(signature, name), name
    assert loaded.stats == signature.stats
    assert [getattr(loaded.recipe, f) for f in ("solver", "seed", "tol", "kind", "version")] == [
        getattr(signature.recipe, f) for f in ("solver", "seed", "tol", "kind", "version")
    ]
    assert ua.distance(loaded, signature) == 0.0


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_loaded_signature_can_be_copied_and_pickled(duplicate, tmp_path):
    make().save(tmp_path / "file")
    loaded = ua.Signature.load(tmp_path / "file")
    assert np.array_equal(duplicate(loaded).values, loaded.values)


def test_attributes_of_a_signature():
    signature = make()
    assert np.array_equal(signature.values, np.log(signature.eigenvalues + 1e-8))
    assert signature.values.shape == signature.error_bound.shape == (10,)
    assert (signature.n_samples, signature.n_features) == (60, 3)
    assert 0 < signature.total_error_bound < 1e-8
    assert signature.bound_kind == "exact"
    assert signature.sigma_squared > 0
    assert "K=10" in repr(signature)


@pytest.mark.parametrize("name", ["values", "eigenvalues"])
def test_signature_is_read_only(name):
    with pytest.raises(ValueError, match="read-only"):
        getattr(make(), name)[0] = 1.0


def test_truncate_equals_shorter_signature():
    long = make(k=20)
    assert np.array_equal(long.truncate(10).values, make(k=10).values)
    assert ua.distance(long.truncate(10), make(k=10)) == 0.0
    assert long.truncate(20).n_eigenvalues == 20


@pytest.mark.parametrize(
    ("k", "error", "message"),
    [
        (11, InputError, r"n_eigenvalues=11 is more than this signature has, 10"),
        (0, InputError, r"n_eigenvalues=0 must be at least 1"),
        (True, InputTypeError, r"n_eigenvalues=True must be a whole number"),
        (2.0, InputTypeError, r"n_eigenvalues=2.0 must be a whole number"),
    ],
)
def test_invalid_truncations_raise(k, error, message):
    with pytest.raises(error, match=message):
        make().truncate(k)


def test_with_gamma_equals_signature_of_that_gamma():
    again = make().with_gamma(1e-3)
    assert np.array_equal(again.values, make(gamma=1e-3).values)
    assert ua.distance(again, make(gamma=1e-3)) == 0.0


@pytest.mark.parametrize(
    ("gamma", "error", "message"),
    [
        (-1.0, InputError, r"gamma=-1.0 must be at least 0"),
        (np.nan, InputError, r"gamma=nan must be finite"),
        (1j, InputTypeError, r"gamma=1j must be a number"),
    ],
)
def test_invalid_gammas_raise(gamma, error, message):
    with pytest.raises(error, match=message):
        make().with_gamma(gamma)
    with pytest.raises(error, match=message):
        make(gamma=gamma)


def test_gamma_of_zero_needs_positive_eigenvalues():
    singular = ua.Dataset(np.diag([2.0, 1.0, 0.0]), kind="spd", name="flat")
    message = r"gamma=0 needs 3 positive eigenvalues; dataset 'flat' has only 2. Use a positive"
    with pytest.raises(InputError, match=message):
        ua.signature(singular, gamma=0.0)
    with pytest.raises(InputError, match=message):
        ua.signature(singular).with_gamma(0.0)
    assert np.allclose(ua.signature(singular, n_eigenvalues=2, gamma=0.0).values, np.log([2, 1]))


MISMATCHES = {
    "gamma": ({"gamma": 1e-3}, r"gamma: 1e-08 and 0.001"),
    "bandwidth": ({"bandwidth": "mean"}, r"bandwidth: 'median' and 'mean'"),
    "bandwidth_factor": ({"bandwidth_factor": 3}, r"bandwidth_factor: 2.0 and 3.0"),
    "preprocess": ({"preprocess": "standardize"}, r"preprocess: \(\) and \('standardize',\)"),
    "metric": ({"metric": "chebyshev"}, r"metric: 'euclidean' and 'chebyshev'"),
    "n_neighbors": ({"n_neighbors": 59}, r"n_neighbors: None and 59"),
    "two things": ({"gamma": 1e-3, "bandwidth": "mean"}, r"gamma: .*; bandwidth: "),
    "kind": ({"data": ua.Dataset(np.eye(20), kind="spd")}, r"kernel: 'gaussian' and 'none'"),
}


@pytest.mark.filterwarnings("ignore::unaligned.errors.IndefiniteWarning")
@pytest.mark.parametrize("case", MISMATCHES)
def test_comparing_different_recipes_raises_and_names_difference(case):
    options, message = MISMATCHES[case]
    with pytest.raises(RecipeMismatchError, match=f"made differently.*{message}"):
        ua.distance(make(), make(**options))


def test_comparing_different_lengths_raises_and_names_truncate():
    with pytest.raises(RecipeMismatchError, match=r"have 10 and 20 values.*\.truncate\(10\)"):
        ua.distance(make(), make(k=20))


def test_signatures_of_different_solvers_can_be_compared():
    others = [make(solver="nystrom"), make(tol=0.1), make(rng=7)]
    assert all(ua.distance(make(), other) < 1e-3 for other in others[1:])
    assert ua.distance(make(), others[0]) <= others[0].total_error_bound + 1e-9


def test_points_and_their_distance_matrix_can_be_compared():
    matrix = np.linalg.norm(POINTS[:, None] - POINTS[None], axis=-1)
    assert ua.distance(make(), make(ua.Dataset(matrix, kind="distances"))) < 1e-8


def test_saving_with_another_suffix_raises(tmp_path):
    signature = ua.signature(np.random.default_rng(0).normal(size=(40, 3)), n_eigenvalues=7)
    with pytest.raises(InputError, match=r"must end in \.npz\. For the numbers alone write numpy"):
        signature.save(tmp_path / "a.txt")


def cityblock(x, y):
    return float(np.abs(x - y).sum())


@pytest.mark.filterwarnings("ignore::unaligned.errors.IndefiniteWarning")
def test_aliases_of_a_metric_give_one_recipe():
    assert ua.distance(make(metric="l2"), make(metric="euclidean")) == 0.0
    assert ua.distance(make(metric="manhattan"), make(metric="l1")) == pytest.approx(0, abs=1e-9)
    assert ua.distance(make(metric=cityblock), make(metric=cityblock)) == 0.0


@pytest.mark.filterwarnings("ignore::unaligned.errors.IndefiniteWarning")
@pytest.mark.parametrize("metric", [lambda x, y: abs(x - y).max(), functools.partial(cityblock)])
def test_signatures_of_unnamed_metrics_from_different_calls_cannot_be_compared(metric):
    with pytest.raises(RecipeMismatchError, match=r"metric: "):
        ua.distance(make(metric=metric), make(metric=metric))


@pytest.mark.filterwarnings("ignore:.*the spread of column")  # the column that cancels
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("share", [1.0, 0.9, 0.3])
@pytest.mark.parametrize("offset", [50.0, 1415.0])
def test_bounds_include_the_cancellation_of_sparse_points(share, offset, seed, monkeypatch):
    monkeypatch.setattr(pointcloud, "FILLED_BYTES", 0)  # as for large ones
    rng = np.random.default_rng(seed)
    column = np.where(rng.random(200) < share, offset, 0.0)
    points = np.column_stack([column, rng.normal(size=(200, 3))])
    very_sparse = sparse.csr_array((points.ravel(), np.tile(range(4), 200), range(0, 801, 4)))
    very_sparse.resize(200, 500)
    options = {"n_eigenvalues": 60, "solver": "exact", "gamma": 1e-10}
    found, dense = ua.signature(very_sparse, **options), ua.signature(points, **options)
    error = np.abs(found.values - dense.values)
    assert (error <= found.error_bound + dense.error_bound).all()
    assert np.linalg.norm(error) <= found.total_error_bound + dense.total_error_bound
    if share == 1.0:  # a constant column is removed
        assert found.total_error_bound < 2.0 * dense.total_error_bound


@pytest.mark.filterwarnings("ignore::unaligned.errors.UnalignedWarning")
@pytest.mark.parametrize("solver", ["auto", "exact", "krylov", "landmarks", "nystrom"])
@pytest.mark.parametrize("negative", [5e-11, 2e-13, 1e-15, 1e-16])
def test_bounds_hold_where_eigenvalues_are_slightly_negative(negative, solver):
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(300, 300)))[0]
    eigenvalues = np.r_[np.logspace(0, -6, 50), np.full(125, negative), np.full(125, -negative)]
    matrix = (basis * eigenvalues) @ basis.T
    dataset = ua.Dataset(0.5 * (matrix + matrix.T), kind="spd")
    if negative > 1e-13 and solver in ("landmarks", "nystrom"):
        with pytest.raises(InputError, match="needs a positive semi-definite"):
            ua.signature(dataset, n_eigenvalues=75, solver=solver)
        return
    signature = ua.signature(dataset, n_eigenvalues=75, solver=solver)
    assert (signature.bound_kind == "none") == (negative > 1e-13)
    if negative < 1e-13:
        error = signature.values - np.log(eigenvalues[:75] + 1e-8)
        assert np.linalg.norm(error) <= signature.total_error_bound


def test_bound_includes_the_rounding_of_the_logarithm():
    for scale in (1e-20, 1e-100, 1e-300):
        signature = ua.signature(ua.Dataset(np.array([[scale]]), kind="spd"), gamma=0.0)
        truth = np.log(np.longdouble(scale))
        assert abs(signature.values[0] - truth) <= signature.error_bound[0]
        assert abs(signature.values[0]) * 2.0**-53 <= signature.total_error_bound < 1e-12


@pytest.mark.parametrize("filled_bytes", [0, 1 << 26])
@pytest.mark.parametrize("seed", range(3))
def test_sparse_points_with_one_large_column_are_dense_ones(filled_bytes, seed, monkeypatch):
    # A column of 1415 and three of noise: LES(csr, dense) was 6.6e-6, the bounds 2.7e-7 each.
    monkeypatch.setattr(pointcloud, "FILLED_BYTES", filled_bytes)
    points = np.zeros((300, 400))
    points[:, 0] = 1415.0
    points[:, 1:4] = np.random.default_rng(seed).normal(size=(300, 3))
    a, b = (ua.signature(v, n_eigenvalues=100) for v in (points, sparse.csr_array(points)))
    assert ua.distance(a, b) <= 1e-9
    assert a.total_error_bound == pytest.approx(b.total_error_bound, rel=1e-3)


@pytest.mark.parametrize("n_features", [2, 40])
def test_points_near_the_origin_keep_their_digits_beside_a_cluster(n_features):
    rng = np.random.default_rng(0)
    points = 0.5 + 1e-9 * rng.normal(size=(30, n_features))
    points[:5] -= 0.5
    points[:5] *= 2.0**-20  # their differences have digits that 0.5 has not
    points[:5] += 1e-9 * rng.normal(size=(5, n_features))
    cloud = pointcloud.PointCloud(points)
    cloud.keep_digits(1e-18)
    found = pointcloud.squared_distances_of_pairs(cloud.values, np.arange(4), np.arange(1, 5))
    np.testing.assert_allclose(found, (np.diff(points[:5], axis=0) ** 2).sum(axis=1), rtol=1e-14)
