"""Conversion of array-likes: tables of numbers are read, anything else raises with a remedy."""

import types
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import unaligned as ua
from unaligned.errors import DataWarning, InputError, InputTypeError

POINTS = np.random.default_rng(0).integers(0, 100, size=(30, 3))
FLOATS = POINTS.astype(np.float64)
K = {"n_eigenvalues": 8}


class HasArray:
    def __array__(self, dtype=None, copy=None):
        return FLOATS if dtype is None else FLOATS.astype(dtype)


class CustomFrame(pd.DataFrame):
    """A subclass from another module, as a GeoDataFrame is."""


def polars_frame(values):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    return polars.DataFrame(values, schema=["a", "b", "c"], orient="row")


def arrow_table(values):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    return pyarrow.table(dict(zip("abc", np.array(values).T, strict=True)))


def tensor(values, **options):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    return torch.tensor(values, **options)


def quantized(values):
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are deprecated
        return torch.quantize_per_tensor(torch.tensor(values).float(), 1.0, 0, torch.quint8)


def nested():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    return torch.nested.as_nested_tensor([torch.ones(3, 2), torch.ones(4, 2)], layout=torch.jagged)


class Unconvertible:
    """An object as xarray.Dataset is."""

    def __array__(self, dtype=None, copy=None):
        raise TypeError("cannot be converted to an array")


def parameter(values):
    from torch.nn import Parameter

    return Parameter(values)


def memmap(path):
    mapped = np.memmap(path / "points.bin", dtype=np.float64, mode="w+", shape=FLOATS.shape)
    mapped[:] = FLOATS
    return mapped


READABLE = {
    **{
        dtype: lambda _, dtype=dtype: POINTS.astype(dtype)
        for dtype in ("float16", "float32", "int8", "uint8", "int32", "uint64", "longdouble")
    },
    "big-endian": lambda _: FLOATS.astype(">f8"),
    "Fortran order": lambda _: np.asfortranarray(FLOATS),
    "a strided view": lambda _: np.repeat(FLOATS, 2, axis=1)[:, ::2],
    "a read-only array": lambda _: np.frombuffer(FLOATS.tobytes()).reshape(FLOATS.shape),
    "a matrix": lambda _: np.array(FLOATS).view(np.matrix),
    "nested lists": lambda _: POINTS.tolist(),
    "a list of rows": lambda _: list(FLOATS),
    "masked, nothing masked": lambda _: np.ma.array(FLOATS, mask=False),
    "memmap": memmap,
    "__array__": lambda _: HasArray(),
    "DataFrame": lambda _: pd.DataFrame(FLOATS),
    "DataFrame of mixed numbers": lambda _: pd.DataFrame(
        {"a": POINTS[:, 0], "b": FLOATS[:, 1], "c": POINTS[:, 2].astype(np.uint8)}
    ),
    "DataFrame of nullable numbers": lambda _: pd.DataFrame(FLOATS).convert_dtypes(),
    "DataFrame of sparse columns": lambda _: pd.DataFrame(FLOATS).astype(pd.SparseDtype("float")),
    "a subclass of DataFrame": lambda _: CustomFrame(FLOATS),
    "polars": lambda _: polars_frame(FLOATS),
    "polars, lazy": lambda _: polars_frame(FLOATS).lazy(),
    "Arrow table": lambda _: arrow_table(FLOATS),
    "Arrow batch": lambda _: arrow_table(FLOATS).to_batches()[0],
    "torch": lambda _: tensor(FLOATS),
    "torch, bfloat16": lambda _: tensor(POINTS).bfloat16(),
    "torch, half": lambda _: tensor(FLOATS).half(),
    "torch, requires_grad": lambda _: tensor(FLOATS, requires_grad=True),
    "torch, sparse": lambda _: tensor(FLOATS).to_sparse(),
    "torch, negative bit": lambda _: tensor(POINTS - 1j * POINTS).conj().imag,
    "torch, quantized": lambda _: quantized(POINTS),
    "torch, parameter": lambda _: parameter(tensor(FLOATS)),
}


@pytest.mark.parametrize("form", READABLE)
def test_every_form_has_the_fingerprint_and_signature_of_float64(form, tmp_path):
    dataset = ua.Dataset(READABLE[form](tmp_path))
    assert dataset.fingerprint == ua.Dataset(FLOATS).fingerprint
    assert np.array_equal(ua.signature(dataset, **K).values, ua.signature(FLOATS, **K).values)


def test_booleans_are_numbers():
    frame = pd.DataFrame({"a": POINTS[:, 0] > 50, "b": FLOATS[:, 1]})
    plain = np.column_stack([POINTS[:, 0] > 50, FLOATS[:, 1]]).astype(float)
    assert np.array_equal(ua.Dataset(frame).prepared(), plain)
    assert np.array_equal(ua.Dataset(POINTS > 50).prepared(), (POINTS > 50).astype(float))


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8, bool])
def test_sparse_points_have_the_signature_of_dense_points(make, dtype):
    dense = np.where(POINTS > 60, POINTS, 0).astype(dtype)
    expected = ua.signature(dense, **K)
    found = ua.signature(make(dense), **K)
    assert np.allclose(found.values, expected.values, rtol=0, atol=1e-10)
    assert found.sigma_squared == pytest.approx(expected.sigma_squared, rel=1e-12)


def test_fingerprint_of_sparse_values_does_not_depend_on_storage():
    plain = sparse.csr_array(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))
    rows, columns = [0, 0, 0, 1, 1], [2, 0, 1, 1, 1]
    messy = sparse.csr_array(([2.0, 1.0, -0.0, 1.0, 2.0], (rows, columns)), shape=(2, 3))
    before = messy.data.copy()
    assert ua.Dataset(messy).fingerprint == ua.Dataset(plain).fingerprint
    assert np.array_equal(messy.data, before), "the caller's matrix is unchanged"


def fake_mudata():
    module = types.ModuleType("mudata")
    module.MuData = type("MuData", (), {"__module__": "mudata._core.mudata"})
    return module.MuData()


UNREADABLE = {
    "None": (None, InputTypeError, r"array-like.*, not None"),
    "bytes of a path": (b"points.npy", InputTypeError, r"not b'points.npy'. Read files with"),
    "a number": (3.0, InputError, r"two-dimensional.*shape is \(\)"),
    "an object": (object(), InputTypeError, r"array-like.*not object"),
    "a dict": ({"a": [1, 2]}, InputTypeError, r"array-like.*not dict"),
    "a generator": ((i for i in range(3)), InputTypeError, r"array-like.*not generator"),
    "0-d": (np.array(1.0), InputError, r"two-dimensional.*shape is \(\). Pass rows"),
    "1-d": (np.ones(5), InputError, r"shape is \(5,\). Use values.reshape\(-1, 1\)"),
    "3-d": (np.ones((2, 3, 4)), InputError, r"shape is \(2, 3, 4\).*reshape\(len\(values\), -1\)"),
    "no rows": (np.ones((0, 3)), InputError, r"is empty: its shape is \(0, 3\)"),
    "no columns": (np.ones((3, 0)), InputError, r"is empty: its shape is \(3, 0\)"),
    "an empty list": ([], InputError, r"shape is \(0,\)"),
    "an empty DataFrame": (pd.DataFrame(), InputError, r"is empty"),
    "an object that is no array": (
        Unconvertible(),
        InputTypeError,
        r"array-like.*not Unconvertible \(cannot be converted to an array\)",
    ),
    "text": ([["a", "b"]], InputTypeError, r"holds text.*Encode it, or leave it out"),
    "bytes": (np.array([[b"a"]]), InputTypeError, r"holds bytes"),
    "objects": (np.array([[1, None]], dtype=object), InputTypeError, r"holds Python objects"),
    "complex": (np.ones((3, 2)) * 1j, InputTypeError, r"holds complex numbers.*abs\(values\)"),
    "dates": (np.zeros((3, 2), dtype="datetime64[s]"), InputTypeError, r"holds dates.*min\(\)"),
    "time spans": (np.zeros((3, 2), dtype="timedelta64[s]"), InputTypeError, r"spans.*Divide by"),
    "records": (np.zeros((3, 2), dtype=[("a", float)]), InputTypeError, r"records.*to_unstruct"),
    "masked text": (np.ma.array([["a"]], mask=[[True]]), InputTypeError, r"holds text"),
    "ragged lists": ([[1, 2], [3]], InputError, r"All rows need the same length"),
    "sparse complex": (sparse.csr_array(np.eye(3) * 1j), InputTypeError, r"complex numbers"),
    "a Series": (pd.Series([1.0, 2.0]), InputError, r"shape is \(2,\)"),
    "a text column": (
        pd.DataFrame({"x": [1.0], "gene": ["a"]}),
        InputTypeError,
        r"1 column without numbers: 'gene'. Drop or encode first",
    ),
    "a date column": (
        pd.DataFrame({"x": [1.0], "day": pd.to_datetime(["2020-01-01"])}),
        InputTypeError,
        r"without numbers: 'day'",
    ),
    "many text columns": (
        pd.DataFrame({f"t{i}": ["a"] for i in range(9)}),
        InputTypeError,
        r"9 columns without numbers: 't0', 't1', 't2', 't3', 't4', …",
    ),
    "MuData": (fake_mudata(), InputTypeError, r"MuData.*Choose one: mdata.mod"),
    "NaN": ([[1.0, 2.0], [np.nan, 3.0]], InputError, r"1 of 2 rows \(first in row 1\).*'omit'"),
    "infinity": ([[np.inf], [3.0]], InputError, r"NaN or infinite values in 1 of 2 rows"),
    "sparse NaN": (sparse.csr_array([[0.0, 1.0], [np.nan, 0.0]]), InputError, r"first in row 1"),
    "a masked integer": (
        np.ma.array([[1, 2], [3, 4]], mask=[[0, 0], [0, 1]]),
        InputError,
        r"first in row 1",
    ),
    "a missing nullable": (
        pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}),
        InputError,
        r"first in row 1",
    ),
}

CALLS = {
    "signature": (lambda data: ua.signature(data), "the dataset"),
    "distance": (lambda data: ua.distance(FLOATS, data), "dataset 'b'"),
    "compare": (lambda data: ua.compare({"good": FLOATS, "bäd": data}), "dataset 'bäd'"),
    "references": (lambda data: ua.compare([FLOATS], {"ref": data}), "dataset 'ref'"),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", [name for name in UNREADABLE if name != "a generator"])
def test_unreadable_data_raises_with_its_name_and_a_remedy(name, call):
    data, error, message = UNREADABLE[name]
    run, label = CALLS[call]
    with pytest.raises(error, match=f"(?s){label}.*{message}"):
        run(data)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: polars_frame([["a", 1, 2]]), r"without numbers: 'a'"),
        (lambda: polars_frame(FLOATS)["a"], r"shape is \(30,\)"),
        (lambda: arrow_table([["x", "1", "2"]]), r"3 columns without numbers: 'a', 'b', 'c'"),
        (lambda: arrow_table(FLOATS)["a"], r"shape is \(30,\)"),
        (lambda: tensor([1j, 2.0]).reshape(1, 2), r"complex numbers"),
        (nested, r"must be one table, not a nested tensor.*unbind\(\)"),
    ],
    ids=["polars text", "polars series", "Arrow text", "Arrow column", "complex", "nested"],
)
def test_tables_without_numbers_raise(make, message):
    with pytest.raises(InputError, match=message):
        ua.Dataset(make())


def test_missing_values_of_tables_are_nan():
    polars = pytest.importorskip("polars", reason="polars is not installed")
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    columns = {"a": [1, None, 3], "b": [True, False, None]}
    for table in (polars.DataFrame(columns), pyarrow.table(columns), pd.DataFrame(columns)):
        if isinstance(table, pd.DataFrame):
            table = table.convert_dtypes()
        with pytest.raises(InputError, match=r"2 of 3 rows \(first in row 1\)"):
            ua.Dataset(table)
        with pytest.warns(DataWarning, match="dropped 2 of 3 rows"):
            assert np.array_equal(ua.Dataset(table, nan_policy="omit").prepared(), [[1.0, 1.0]])


def test_values_are_a_read_only_view():
    values = FLOATS.copy()
    dataset = ua.Dataset(values)
    assert np.shares_memory(dataset.values, values)
    assert values.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        dataset.values[0, 0] = 1.0


def pandas_frame(values):
    return pd.DataFrame(values, columns=["a", "b", "c"])


@pytest.mark.parametrize("make", [pandas_frame, polars_frame, arrow_table])
def test_columns_of_tables_have_names(make):
    assert ua.Dataset(make(FLOATS)).feature_names == ("a", "b", "c")


@pytest.mark.parametrize("dtype", [object, "category", "string"])
def test_rows_of_pandas_tables_have_names(dtype):
    table = pandas_frame(FLOATS)
    words = [f"s{i}" for i in range(len(FLOATS))]
    assert ua.Dataset(table.set_index(pd.Index(words, dtype=dtype))).sample_names == tuple(words)
    twice = ["x"] * len(FLOATS)
    assert ua.Dataset(table.set_index(pd.Index(twice))).sample_names == tuple(twice)


def test_index_that_is_not_text_gives_no_sample_names():
    table = pandas_frame(FLOATS)
    n = len(FLOATS)
    unnamed = [
        pd.RangeIndex(n),
        pd.Index(np.arange(n)[::-1]),
        pd.Index(np.linspace(0, 1, n)),
        pd.date_range("2020-01-01", periods=n),
        pd.MultiIndex.from_tuples([("a", str(i)) for i in range(n)]),
        pd.Index(["a"] * (n - 1) + [1]),
        pd.Index(["a"] * (n - 1) + [""]),
        pd.Index([str(i) for i in range(n)]),  # what AnnData writes where there are no names
        pd.Index(["a"] * (n - 1) + [None], dtype="string"),
    ]
    for index in unnamed:
        assert ua.Dataset(table.set_index(index)).sample_names is None
    for make in (polars_frame, arrow_table, np.asarray):
        assert ua.Dataset(make(FLOATS)).sample_names is None


def test_columns_of_dask_tables_have_names():
    dask = pytest.importorskip("dask.dataframe")
    table = dask.from_pandas(pandas_frame(FLOATS), npartitions=2)
    assert ua.Dataset(table).feature_names == ("a", "b", "c")


def test_columns_that_are_not_text_give_no_feature_names():
    assert ua.Dataset(pd.DataFrame(FLOATS)).feature_names is None
    assert ua.Dataset(pd.DataFrame(FLOATS, columns=["a", "b", 2])).feature_names is None
    lazy = polars_frame(FLOATS).lazy()
    assert ua.Dataset(lazy).feature_names == ("a", "b", "c")


@pytest.mark.parametrize("what", ["network", "loader", "meta"])
def test_torch_objects_without_values_raise(what):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    made = {
        "network": lambda: torch.nn.Linear(2, 3),
        "loader": lambda: torch.utils.data.DataLoader(torch.zeros(4, 2)),
        "meta": lambda: torch.zeros(4, 2, device="meta"),
    }[what]()
    with pytest.raises(InputTypeError, match=r"tensor with values, not torch's .*activations"):
        ua.Dataset(made)
