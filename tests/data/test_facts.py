"""Names of columns: read from every format that has them, and None otherwise."""

import gzip
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import io, sparse

import unaligned as ua
from sample_files import COLUMNS, POINTS, VALID, annotated
from unaligned.data.facts import column_names
from unaligned.errors import DataWarning, NotApplicableError

XYZ = ("x", "y", "z")
FRAME = pd.DataFrame(POINTS, columns=XYZ)


def write_zarr(frame, path):
    pytest.importorskip("zarr")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # AnnData warns of future defaults
        annotated(frame).write_zarr(path)


def write_arrow(frame, path):
    pytest.importorskip("pyarrow")
    frame.to_feather(path)


def write_parquet(frame, path):
    pytest.importorskip("pyarrow")
    frame.to_parquet(path, row_group_size=5)


def write_10x(frame, path):
    """Write genes × cells as 10x does: identifiers, repeated symbols, and barcodes."""
    io.mmwrite(path, sparse.coo_array(frame.to_numpy().T))
    genes = [f"{name}\tsymbol\tGene Expression\n" for name in frame.columns]
    cells = [f"cell{i}-1\n" for i in range(len(frame))]
    path.with_name("features.tsv.gz").write_bytes(gzip.compress("".join(genes).encode()))
    path.with_name("barcodes.tsv").write_text("".join(cells))


NAMED = {
    "t.csv": lambda frame, path: frame.to_csv(path, index=False),
    "t.tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "t.csv.gz": lambda frame, path: frame.to_csv(path, index=False),
    "with row names.csv": lambda frame, path: frame.to_csv(path),
    "t.parquet": write_parquet,
    "t.feather": write_arrow,
    "t.h5ad": lambda frame, path: annotated(frame).write_h5ad(path),
    "t.zarr": write_zarr,
    "matrix.mtx": write_10x,
}


def write(name, folder, frame=FRAME):
    folder.mkdir(exist_ok=True)
    NAMED[name](frame, folder / name)
    return ua.load(folder / name, transpose=name == "matrix.mtx")


@pytest.mark.parametrize("name", NAMED)
def test_columns_of_files_have_names(name, tmp_path):
    found = write(name, tmp_path / "one")
    assert found.feature_names == XYZ
    np.testing.assert_array_equal(found.values @ np.eye(3), POINTS)
    assert found.with_options(name="other").feature_names == XYZ
    assert found.subsample(5, np.random.default_rng(0)).feature_names == XYZ


@pytest.mark.parametrize("name", NAMED)
def test_column_order_matters_to_mmd_and_not_to_les(name, tmp_path):
    one = write(name, tmp_path / "one")
    other = write(name, tmp_path / "other", FRAME[["z", "y", "x"]])
    with pytest.raises(
        NotApplicableError, match=r"'x' as column 0 where dataset .* has 'z'; bring the columns"
    ):
        ua.distance(one, other, "mmd")
    assert ua.distance(one, ua.Dataset(POINTS), "mmd") == 0, "data without names are comparable"
    assert one.fingerprint == ua.Dataset(POINTS).fingerprint
    assert ua.distance(one, other, n_eigenvalues=5) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("name", NAMED)
def test_different_column_names_raise(name, tmp_path):
    one = write(name, tmp_path / "one")
    other = write(name, tmp_path / "other", FRAME.rename(columns={"y": "Y"}))
    with pytest.raises(NotApplicableError, match=r"has no column 'y', which dataset .* has"):
        ua.distance(one, other, "frechet")


@pytest.mark.parametrize("name", NAMED)
def test_counted_columns_have_no_names(name, tmp_path):
    assert write(name, tmp_path, pd.DataFrame(POINTS)).feature_names is None


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.h5ad", "matrix.mtx"])
def test_repeated_names_are_compared_in_order(name, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # AnnData warns of repeated names
        one = write(name, tmp_path / "one", FRAME.set_axis(["a", "a", "b"], axis=1))
        other = write(name, tmp_path / "other", FRAME.set_axis(["b", "a", "a"], axis=1))
    assert one.feature_names == ("a", "a", "b")
    assert ua.distance(one, one, "mmd") == 0
    with pytest.raises(NotApplicableError, match=r"'a' as column 0 where dataset .* has 'b'"):
        ua.distance(one, other, "mmd")


NAMELESS = [name for name in VALID if not re.search(r"csv|tsv|parquet|feather|h5ad", name)]


@pytest.mark.parametrize("name", NAMELESS)
def test_formats_without_names_have_none(name, tmp_path):
    (tmp_path / name).write_bytes(VALID[name]())
    assert ua.load(tmp_path / name).feature_names is None


@pytest.fixture(params=["csv", "parquet", "feather"])
def path(request, tmp_path):
    """A table with a column of text, in every format of tables."""
    path = tmp_path / f"t.{request.param}"
    NAMED[path.name](pd.DataFrame(COLUMNS), path)
    return path


def test_selected_columns_keep_their_names(path):
    assert ua.load(path, columns=["z", "x"]).feature_names == ("z", "x")
    assert ua.load(path, columns=[3, 0]).feature_names == ("z", "x")


def test_dropped_columns_drop_their_names(path):
    with pytest.warns(DataWarning, match="Dropped columns without numbers: 'day'"):
        assert ua.load(path, drop_non_numeric=True).feature_names == XYZ


def test_names_of_groups_exclude_the_label_column(path):
    groups = ua.load_all(path, group_by="day")
    assert [group.feature_names for group in groups.values()] == [XYZ] * 3
    chosen = ua.load_all(path, group_by="day", columns=["y"])
    assert [group.feature_names for group in chosen.values()] == [("y",)] * 3


def test_transposed_table_without_row_names_has_no_names(path):
    with pytest.warns(DataWarning, match="Dropped columns without numbers: 'day'"):
        found = ua.load(path, drop_non_numeric=True, transpose=True)
    assert (found.n_features, found.feature_names) == (12, None)


def test_selected_counted_columns_have_no_names(path):
    NAMED[path.name](pd.DataFrame(POINTS).rename(columns=str), path)
    assert ua.load(path, columns=["2", "0"]).feature_names is None


def test_dropping_rows_keeps_feature_names(path):
    NAMED[path.name](FRAME.assign(y=[np.nan, *range(11)]), path)
    with pytest.warns(DataWarning, match="dropped 1 of 12 rows"):
        assert ua.load(path, nan_policy="omit").feature_names == XYZ


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_transposed_table_has_the_row_names_as_feature_names(suffix, tmp_path):
    path = tmp_path / f"t.{suffix}"
    for index, names in (
        (["CD4", "CD8", "CD4"], ("CD4", "CD8", "CD4")),
        ([7157, 672, 675], ("7157", "672", "675")),  # Entrez gene numbers
        (["CD4", None, "CD8"], None),
        ([0, 1, 2], None),
    ):
        frame = pd.DataFrame(POINTS.T, index=index, columns=[f"cell{i}" for i in range(12)])
        frame.to_csv(path) if suffix == "csv" else frame.to_parquet(path)
        found = ua.load(path, transpose=True)
        assert found.feature_names == names
        np.testing.assert_array_equal(found.values, POINTS)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("x,,z\n1,2,3\n4,5,6\n", None),
        ("1,2,3\n4,5,6\n", None),
        ("400,401,402\n1,2,3\n", None),  # a first line of numbers is data
        ('"x, first",y,z\n1,2,3\n', ("x, first", "y", "z")),
        ("x;y;z\n1,5;2;3\n", XYZ),
        ("x\ty\tz\nr1\t1\t2\t3\n", XYZ),  # from R
        ("x,x,x\n1,2,3\n", ("x", "x", "x")),
    ],
)
def test_headers_of_text_tables(text, names, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    assert ua.load(tmp_path / "t.csv").feature_names == names


def test_table_without_header_has_no_names(tmp_path):
    (tmp_path / "t.csv").write_text("1,2,3\n4,5,6\n")
    assert ua.load(tmp_path / "t.csv", columns=[2, 0]).feature_names is None
    (tmp_path / "t.csv").write_text("400,401,402\n1,2,3\n")
    named = ua.load(tmp_path / "t.csv", header=True, columns=[2, 0])
    assert named.feature_names == ("402", "400")


@pytest.mark.parametrize("name", ["t.parquet", "t.h5ad"])
def test_lazy_files_have_names(name, tmp_path):
    NAMED[name](FRAME, tmp_path / name)
    lazy = ua.load(tmp_path / name, lazy=True)
    assert lazy.is_lazy
    assert lazy.feature_names == XYZ
    groups = ua.load_all(tmp_path / name, lazy=True, group_by="day") if name == "t.h5ad" else {}
    assert all(group.is_lazy and group.feature_names == XYZ for group in groups.values())
    source = ua.Dataset.from_source(tmp_path / name)
    assert source.feature_names == XYZ
    assert source.with_options(preprocess="arcsinh:5").feature_names == XYZ
    if name == "t.parquet":
        some = ua.load(tmp_path / name, lazy=True, columns=["z", "x"])
        assert some.feature_names == ("z", "x")


@pytest.mark.parametrize("prefix", ["", "GSM1_liver_"])
@pytest.mark.parametrize("genes", ["genes.tsv", "genes.tsv.gz", "features.tsv"])
def test_gene_names_are_read_from_the_file_beside_the_matrix(prefix, genes, tmp_path):
    path = tmp_path / f"{prefix}matrix.mtx"
    io.mmwrite(path, sparse.coo_array(POINTS.T))
    lines = b"ENSG1\tA\nENSG2\tA\nENSG3\tB\n"
    packed = gzip.compress(lines) if genes.endswith(".gz") else lines
    (tmp_path / f"{prefix}{genes}").write_bytes(packed)
    assert ua.load(path, transpose=True).feature_names == ("ENSG1", "ENSG2", "ENSG3")
    assert ua.load(path).feature_names is None, "cells have no names"


def test_name_lists_of_10x_are_not_datasets(tmp_path):
    write_10x(FRAME, tmp_path / "matrix.mtx")
    np.save(tmp_path / "other.npy", POINTS.T)
    found = ua.load_all(tmp_path, transpose=True)
    assert {name: data.feature_names for name, data in found.items()} == {
        "matrix": XYZ,
        "other": None,
    }


def test_10x_names_follow_the_orientation_of_the_matrix(tmp_path):
    write_10x(FRAME, tmp_path / "matrix.mtx")
    barcodes = tuple(f"cell{i}-1" for i in range(12))
    assert ua.load(tmp_path / "matrix.mtx").feature_names == barcodes
    io.mmwrite(tmp_path / "matrix.mtx", sparse.coo_array(POINTS))
    assert ua.load(tmp_path / "matrix.mtx").feature_names == XYZ


def test_name_lists_of_wrong_length_or_other_matrix_are_ignored(tmp_path):
    (tmp_path / "features.tsv").write_text("a\nb\n")
    for name in ("matrix.mtx", "counts.mtx"):
        io.mmwrite(tmp_path / name, sparse.coo_array(POINTS.T))
        assert ua.load(tmp_path / name, transpose=True).feature_names is None
    (tmp_path / "features.tsv").write_text("a\nb\nc\n")
    assert ua.load(tmp_path / "counts.mtx", transpose=True).feature_names is None


@pytest.mark.parametrize("damaged", [b"\xff\xfe", b""])
def test_damaged_name_list_warns_and_values_are_read(damaged, tmp_path):
    io.mmwrite(tmp_path / "matrix.mtx", sparse.coo_array(POINTS.T))
    (tmp_path / "features.tsv").write_bytes(damaged)
    with pytest.warns(DataWarning, match=r"features.tsv.* The columns stay without names"):
        found = ua.load(tmp_path / "matrix.mtx", transpose=True)
    assert found.feature_names is None
    np.testing.assert_array_equal(found.values.toarray(), POINTS)


def test_flattened_arrays_have_no_names(tmp_path):
    np.save(tmp_path / "t.npy", POINTS.reshape(4, 3, 3))
    assert ua.load(tmp_path / "t.npy", flatten=True).feature_names is None


def test_equal_names_are_interned(tmp_path):
    first, second = (write("t.csv", tmp_path / folder) for folder in ("one", "other"))
    assert all(a is b for a, b in zip(first.feature_names, second.feature_names, strict=True))


def test_names_are_python_strings():
    names = column_names(np.array(["a", "b"]))
    assert names == ("a", "b")
    assert {type(name) for name in names} == {str}
    assert column_names(None) is column_names([]) is None


def test_compare_checks_column_names_of_paths(tmp_path):
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    FRAME[["y", "x", "z"]].to_csv(tmp_path / "b.csv", index=False)
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    message = (
        r"dataset 'a' has 'x' as column 0 where dataset 'b' has 'y'; bring .* as columns= does"
    )
    with pytest.raises(NotApplicableError, match=message):
        ua.compare(paths, distance="crosslid")
    brought = [ua.load(path, columns=list(XYZ)) for path in paths]
    assert ua.compare(brought, distance="mmd").distances.max() == 0
