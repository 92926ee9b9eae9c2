"""Dataset: kinds, names, missing rows, fingerprints, subsamples."""

from collections import Counter
from functools import cached_property

import numpy as np
import pytest
from scipy import sparse
from typer.testing import CliRunner

import unaligned as ua
from unaligned import defaults, execution
from unaligned.cli import app
from unaligned.data import values as conversion
from unaligned.errors import DataWarning, InputError, InputTypeError
from unaligned.rows import source as sources
from unaligned.rows.files import NpyRows

POINTS = np.random.default_rng(0).normal(size=(20, 3))
SYMMETRIC = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))


def changed(matrix, index, value):
    matrix = matrix.copy()
    matrix[index] = value
    return matrix


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "point"}, r"kind='point' is not known. Did you mean 'points'\?"),
        ({"kind": "adjacency"}, r"kind='adjacency' is not known. Did you mean 'graph'\?"),
        ({"nan_policy": "drop"}, r"nan_policy='drop' is not known.*raise, omit"),
        ({"name": 3}, r"name=3 must be text or None"),
        ({"kind": "spd"}, r"must be square; its shape is \(20, 3\).*kind='points'"),
    ],
)
def test_wrong_arguments_raise(arguments, message):
    with pytest.raises(InputError, match=message):
        ua.Dataset(POINTS, **arguments)


@pytest.mark.parametrize("kind", ["distances", "affinity", "spd", "graph"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, np.uint8])
def test_asymmetric_matrix_raises(kind, dtype):
    broken = changed(SYMMETRIC, (0, 1), 3.0).astype(dtype)
    with pytest.raises(InputError, match=r"must be symmetric.*by up to 2. Symmetrise it"):
        ua.Dataset(broken, kind=kind, name="broken")


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        (-SYMMETRIC, "distances", r"must not be negative; the smallest entry is -4"),
        (-SYMMETRIC, "affinity", r"must not be negative"),
        (SYMMETRIC + 1.0, "distances", r"zero diagonal; the largest entry there is 1.*affinity"),
        (changed(SYMMETRIC, (2, 2), np.nan), "distances", r"remove those rows and columns"),
    ],
)
def test_wrong_sign_diagonal_or_nan_of_a_matrix_raises(values, kind, message):
    with pytest.raises(InputError, match=message):
        ua.Dataset(values, kind=kind, nan_policy="omit")


@pytest.mark.parametrize(("dtype", "noise"), [(np.float64, 1e-10), (np.float32, 1e-6)])
def test_rounding_is_not_asymmetry(dtype, noise):
    rounded = changed(SYMMETRIC, (0, 1), 1.0 + noise)
    assert rounded.astype(dtype)[0, 1] != rounded.astype(dtype)[1, 0]
    ua.Dataset(rounded.astype(dtype), kind="distances")
    with pytest.raises(InputError, match="must be symmetric"):
        ua.Dataset(
            changed(SYMMETRIC, (0, 1), 1.0 + 100 * 4 * max(noise, 1e-8)).astype(dtype), "spd"
        )


@pytest.mark.parametrize("kind", ["distances", "affinity", "spd", "graph"])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_matrix_is_symmetric_to_the_last_bit(make, kind):
    if make is sparse.csr_array and kind == "distances":
        pytest.skip("distances are dense")
    exact = SYMMETRIC + (10.0 * np.eye(5) if kind == "spd" else 0.0)
    assert ua.Dataset(exact, kind=kind).values.base is exact  # not copied
    rounded = (exact * (1.0 + 1e-7 * POINTS[:5, :1])).astype(np.float32)
    assert np.any(rounded != rounded.T)
    values = ua.Dataset(make(rounded), kind=kind).values
    assert abs(values - values.T).max() == 0.0
    assert np.allclose(values.toarray() if sparse.issparse(values) else values, exact, rtol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_order_of_rounded_distances_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(60, 3))
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    distances = (distances * (1.0 + 1e-7 * rng.normal(size=(60, 60)))).astype(np.float32)
    order = rng.permutation(60)
    first, second = (
        ua.signature(ua.Dataset(matrix, kind="distances"), solver="exact")
        for matrix in (distances, distances[np.ix_(order, order)])
    )
    assert np.linalg.norm(first.values - second.values) <= 2 * first.total_error_bound


def test_matrix_may_be_boolean():
    dataset = ua.Dataset(np.eye(4, dtype=bool), kind="spd")
    assert np.array_equal(ua.signature(dataset, gamma=1.0).eigenvalues, np.ones(4))


def test_sparse_spd_matrix_equals_the_dense_one():
    matrix = np.diag([3.0, 2.0, 1.0, 0.5])
    dense, thin = ua.Dataset(matrix, "spd"), ua.Dataset(sparse.csr_array(matrix), "spd")
    assert np.array_equal(ua.signature(thin).values, ua.signature(dense).values)


def test_indefinite_spd_matrix_raises():
    matrix = np.diag([1.0, -0.5])
    with pytest.raises(
        InputError, match=r"'bad' of kind 'spd' has negative eigenvalues.*affinity"
    ):
        ua.signature(ua.Dataset(matrix, kind="spd", name="bad"))


def test_preprocessing_needs_points():
    with pytest.raises(InputError, match=r"preprocess=\('log1p',\) needs kind 'points'"):
        ua.Dataset(SYMMETRIC, kind="distances", preprocess="log1p")


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_omit_drops_and_counts_rows_with_missing_values(make):
    values = changed(changed(POINTS, (3, 1), np.nan), (7, 0), np.inf)
    with pytest.warns(DataWarning, match="dataset 'a': dropped 2 of 20 rows") as caught:
        dataset = ua.Dataset(make(values), name="a", nan_policy="omit")
    assert caught[0].filename == __file__
    assert (dataset.n_dropped, dataset.n_samples) == (2, 18)
    kept = np.delete(POINTS, [3, 7], axis=0)
    signature = ua.signature(dataset, n_eigenvalues=5)
    assert np.allclose(signature.values, ua.signature(kept, n_eigenvalues=5).values, atol=1e-10)
    assert signature.stats["rows_dropped"] == 2
    copy = dataset.with_options(name="b").subsample(10, np.random.default_rng(0))
    assert copy.n_dropped == 2


def test_omit_raises_if_no_rows_are_left():
    with pytest.raises(InputError, match=r"in every row. Drop the columns"):
        ua.Dataset(np.full((3, 2), np.nan), nan_policy="omit")


def test_nan_policy_is_an_option_of_every_function():
    broken = changed(POINTS, (0, 0), np.nan)
    kept = POINTS[1:]
    with pytest.warns(DataWarning, match="dropped 1 of 20"):
        assert ua.signature(broken, nan_policy="omit").stats["rows_dropped"] == 1
    with pytest.warns(DataWarning, match="dataset 'b': dropped 1 of 20"):
        assert ua.distance(kept, broken, nan_policy="omit") == 0.0
    with pytest.warns(DataWarning, match="dataset 'x': dropped 1 of 20"):
        ua.compare({"x": broken}, nan_policy="omit")


def test_different_data_have_different_fingerprints():
    square = SYMMETRIC
    prints = [
        ua.Dataset(square).fingerprint,
        ua.Dataset(square, kind="distances").fingerprint,
        ua.Dataset(square.reshape(1, -1)).fingerprint,
        ua.Dataset(square[::-1]).fingerprint,
        ua.Dataset(changed(square, (0, 0), 1e-300)).fingerprint,
    ]
    assert len(set(prints)) == len(prints)
    assert ua.Dataset(-0.0 * square).fingerprint == ua.Dataset(0.0 * square).fingerprint


def test_equal_values_have_equal_fingerprints():
    gaps = changed(POINTS, slice(3, 9), 0.0)
    for values in (POINTS, gaps):
        parts = sparse.csr_array(values), sparse.coo_matrix(values), sources.ArrayRows(values)
        same = [values, values.copy(order="F"), -0.0 + values, *parts]
        assert len({ua.Dataset(one).fingerprint for one in same}) == 1
    others = [
        ua.Dataset(changed(POINTS, (-1, 0), 7.0)),  # the first row is the same
        ua.Dataset(POINTS[::-1]),
        ua.Dataset(SYMMETRIC),
        ua.Dataset(SYMMETRIC, kind="distances"),
    ]
    assert len({dataset.fingerprint for dataset in [ua.Dataset(POINTS), *others]}) == 5


def test_values_are_hashed_only_if_first_rows_agree():
    far, near = changed(POINTS, (0, 0), 7.0), changed(POINTS, (-1, 0), 7.0)
    for values, hashed in ((far, False), (near, True)):
        pair = ua.Dataset(POINTS), ua.Dataset(values)
        assert len(set(execution._keys(pair))) == 2
        assert ("fingerprint" in vars(pair[0])) is hashed


def test_fingerprint_does_not_depend_on_name_and_steps():
    plain = ua.Dataset(POINTS)
    assert ua.Dataset(POINTS, name="é", preprocess="standardize").fingerprint == plain.fingerprint


@pytest.mark.parametrize("n_rows", [1, 7, 20, 99])
def test_blocks_contain_all_rows(n_rows):
    for values in (POINTS, sparse.csr_array(POINTS)):
        blocks = list(ua.Dataset(values).blocks(n_rows))
        assert np.array_equal(np.vstack(blocks), POINTS)
        assert max(map(len, blocks)) <= n_rows


@pytest.mark.parametrize("seed", range(3))
def test_subsample_keeps_the_order_of_rows(seed):
    ordered = np.arange(50.0)[:, None]
    drawn = ua.Dataset(ordered).subsample(20, np.random.default_rng(seed)).values.ravel()
    assert np.all(np.diff(drawn) > 0)
    matrix = ua.Dataset(np.abs(ordered - ordered.T), kind="distances")
    part = matrix.subsample(20, np.random.default_rng(seed)).values
    assert np.array_equal(part, np.abs(np.subtract.outer(drawn, drawn)))


def test_constant_columns_leave_signature_unchanged():
    padded = np.column_stack([POINTS, np.full(20, 7.25)])
    expected = ua.signature(POINTS, n_eigenvalues=10).values
    assert np.allclose(ua.signature(padded, n_eigenvalues=10).values, expected, atol=1e-10)


def test_repr_shows_name_kind_shape_and_steps():
    dataset = ua.Dataset(POINTS, name="näme", preprocess=["standardize"])
    assert repr(dataset) == "Dataset('näme', points, 20 × 3, preprocess=['standardize'])"


def test_preprocess_must_be_steps():
    with pytest.raises(InputTypeError, match=r"preprocess=5 must be a list of steps"):
        ua.Dataset(POINTS, preprocess=5)


def test_standardized_sparse_values_differ_from_dense_ones():
    pair = [
        ua.Dataset(make(POINTS), preprocess="standardize") for make in (np.array, sparse.csr_array)
    ]
    assert pair[0].fingerprint != pair[1].fingerprint  # only the dense ones are centred


def test_wide_sparse_matrix_is_hashed_by_blocks():
    import tracemalloc

    wide = sparse.random_array((3000, 20_000), density=1e-4, rng=np.random.default_rng(0))
    dataset = ua.Dataset(wide)
    tracemalloc.start()
    assert len(dataset.fingerprint) == 32
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 3000 * 20_000 / 4  # a quarter of the dense matrix


def test_huge_sparse_matrix_is_hashed_by_its_stored_entries():
    where = np.array([0, 10**6]), np.array([5, 10**6])
    values = np.array([1.0, 2.0])
    one, other = (sparse.coo_array((v, where), shape=(10**6 + 1,) * 2) for v in (values, -values))
    assert ua.Dataset(one).fingerprint == ua.Dataset(one.tocsr()).fingerprint
    assert ua.Dataset(one).fingerprint != ua.Dataset(other).fingerprint


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.coo_matrix])
def test_sparse_distances_raise(make):
    matrix = make(np.triu(np.ones((5, 5)), 4) + np.tril(np.ones((5, 5)), -4))
    with pytest.raises(
        InputTypeError, match=r"'x' of kind 'distances' is a csr_array .*not stored.*dense matrix"
    ):
        ua.Dataset(matrix, kind="distances", name="x")
    assert ua.Dataset(matrix, kind="graph").kind == "graph"


def test_feature_names_are_validated_and_kept():
    named = ua.Dataset(POINTS[:, :2], feature_names=["a", "b"])
    assert named.feature_names == ("a", "b")
    assert named.with_options(name="x").feature_names == ("a", "b")
    assert named.subsample(5, np.random.default_rng(0)).feature_names == ("a", "b")
    assert ua.Dataset(POINTS).feature_names is None
    square = ua.Dataset(np.ones((3, 3)), kind="affinity", feature_names=["a", "b", "c"])
    drawn = square.subsample(2, np.random.default_rng(0)).feature_names
    assert drawn in (("a", "b"), ("a", "c"), ("b", "c"))
    for wrong in (["a"], ["a", 1]):
        with pytest.raises(
            InputError, match=r"feature_names must be 2 strings, one for each column"
        ):
            ua.Dataset(POINTS[:, :2], feature_names=wrong)


def test_sample_names_are_validated_and_kept():
    words = [f"s{i}" for i in range(len(POINTS))]
    named = ua.Dataset(POINTS, sample_names=words)
    assert named.sample_names == tuple(words) == named.facts.sample_names
    assert named.with_options(name="x").sample_names == tuple(words)
    assert named.fingerprint == ua.Dataset(POINTS).fingerprint
    for wrong in (["a"], [*words[1:], 1]):
        with pytest.raises(
            InputError, match=rf"sample_names must be {len(POINTS)} strings, one for each row of"
        ):
            ua.Dataset(POINTS, sample_names=wrong)


@pytest.mark.parametrize("seed", range(3))
def test_subsample_keeps_the_names_of_its_rows(seed):
    words = [f"s{i}" for i in range(len(POINTS))]
    part = ua.Dataset(POINTS, sample_names=words).subsample(5, np.random.default_rng(seed))
    for name, row in zip(part.sample_names, part.values, strict=True):
        assert np.array_equal(row, POINTS[int(name[1:])])


def test_dropping_rows_drops_sample_names():
    points = POINTS.copy()
    points[2] = np.nan
    words = [f"s{i}" for i in range(len(POINTS))]
    with pytest.warns(DataWarning, match="dropped 1 of"):
        left = ua.Dataset(points, sample_names=words, nan_policy="omit")
    assert left.sample_names is None
    assert left.with_options(name="x").sample_names is None


@pytest.mark.parametrize("kind", ["spd", "affinity", "graph", "distances"])
def test_rows_of_a_square_matrix_have_the_names_of_its_columns(kind):
    matrix = np.ones((6, 6)) - np.eye(6) * (kind == "distances")
    columns, rows = tuple("abcdef"), tuple("uvwxyz")
    assert ua.Dataset(matrix, kind=kind, feature_names=columns).sample_names == columns
    both = ua.Dataset(matrix, kind=kind, feature_names=columns, sample_names=rows)
    part = both.subsample(3, np.random.default_rng(0))
    places = [rows.index(name) for name in part.sample_names]
    assert part.feature_names == tuple(columns[i] for i in places)
    assert ua.Dataset(np.ones((6, 6)), feature_names=columns).sample_names is None


@pytest.fixture
def scans(monkeypatch):
    """The passes over the values of datasets: finite checks, hashes, and computations."""
    seen = []

    def counted(name, original):
        def scan(*arguments):
            seen.append(name)
            return original(*arguments)

        return scan

    finite = counted("rows_not_finite", conversion.rows_not_finite)
    monkeypatch.setattr(conversion, "rows_not_finite", finite)
    monkeypatch.setattr(ua.Dataset, "prepared", counted("prepared", ua.Dataset.prepared))
    hashed = cached_property(counted("fingerprint", vars(ua.Dataset)["fingerprint"].func))
    hashed.__set_name__(ua.Dataset, "fingerprint")
    monkeypatch.setattr(ua.Dataset, "fingerprint", hashed)
    return seen


ONCE_EACH = {"rows_not_finite": 2, "fingerprint": 2, "prepared": 2}


def test_compare_checks_hashes_and_reads_each_dataset_once(scans):
    datasets = [ua.Dataset(POINTS), ua.Dataset(POINTS[::-1] + 1.0)]
    ua.compare({"a": datasets[0].with_options(name="x"), "b": datasets[1]}, n_eigenvalues=5)
    assert Counter(scans) == ONCE_EACH


def test_command_line_checks_hashes_and_reads_each_file_once(scans, tmp_path):
    files = [str(tmp_path / name) for name in ("a.npy", "b.npy")]
    for file, values in zip(files, (POINTS, POINTS[::-1] + 1.0), strict=True):
        np.save(file, values)
    arguments = ["compare", *files, "-K", "5", "--cache", str(tmp_path / "cache")]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert Counter(scans) == ONCE_EACH


def test_lazy_file_is_read_twice_to_check_hash_and_compute(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", POINTS)
    n_read = []
    between = NpyRows.between

    def counted(self, start, stop):
        n_read.append(stop - start)
        return between(self, start, stop)

    monkeypatch.setattr(NpyRows, "between", counted)
    lazy = ua.load(tmp_path / "a.npy", lazy=True)
    ua.compare({"a": lazy, "b": lazy.with_options(name="b")}, n_eigenvalues=5)
    assert sum(n_read) == 2 * len(POINTS)


def test_renaming_keeps_the_cached_fingerprint(scans):
    thin = ua.Dataset(sparse.csr_array(POINTS))
    thin.fingerprint  # noqa: B018
    assert thin.with_options(name="x").fingerprint == thin.fingerprint
    assert scans.count("fingerprint") == 1
    assert thin.with_options(preprocess="standardize").fingerprint != thin.fingerprint
    with pytest.raises(InputError, match="name=3 must be text"):
        thin.with_options(name=3)


def test_datasets_of_many_rows_and_large_lazy_ones_are_streamed(monkeypatch):
    few = POINTS[:19]
    lazy = ua.Dataset.from_source(sources.ArrayRows(few))
    monkeypatch.setattr(defaults, "STREAM_ROWS", 20)
    assert ua.Dataset(POINTS).is_streamed
    assert not ua.Dataset(np.eye(20), kind="spd").is_streamed
    assert not ua.Dataset(few).is_streamed
    assert not lazy.is_streamed
    monkeypatch.setattr(defaults, "LAZY_BYTES", few.nbytes - 1)
    assert lazy.is_streamed
    assert not ua.Dataset(few).is_streamed
