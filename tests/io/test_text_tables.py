"""Text tables: header, row names, separator and columns."""

import gzip

import numpy as np
import pandas as pd
import pytest

import unaligned as ua
from unaligned.errors import DataWarning, FileError, InputError, InputTypeError

NUMBERS = np.array([[1.5, -2.0], [3.0, 4.25], [0.0, 6.0]])

LAYOUTS = {
    "plain": "1.5,-2\n3,4.25\n0,6\n",
    "no last line end": "1.5,-2\n3,4.25\n0,6",
    "header": "x,y\n1.5,-2\n3,4.25\n0,6\n",
    "windows": "x,y\r\n1.5,-2\r\n3,4.25\r\n0,6\r\n",
    "old mac": "x,y\r1.5,-2\r3,4.25\r0,6\r",
    "byte order mark": "\ufeffx,y\n1.5,-2\n3,4.25\n0,6\n",
    "semicolons": "x;y\n1.5;-2\n3;4.25\n0;6\n",
    "tabs": "x\ty\n1.5\t-2\n3\t4.25\n0\t6\n",
    "decimal commas": "x;y\n1,5;-2\n3;4,25\n0;6\n",
    "blank lines": "x,y\n\n1.5,-2\n3,4.25\n\n0,6\n\n",
    "spaces": "x, y\n1.5, -2\n3, 4.25\n0, 6\n",
    "quotes": '"x","y"\n"1.5","-2"\n"3","4.25"\n"0","6"\n',
    "quoted separator": '"a, b",y\n1.5,-2\n3,4.25\n0,6\n',
    "quoted line break": '"a\nb",y\n1.5,-2\n3,4.25\n0,6\n',
    "quoted line breaks, semicolons": '"a\n\n;b";"y\n"\n1.5;-2\n3;4.25\n0;6\n',
    "quoted line break in a second column": 'x\t"a\nb"\n1.5\t-2\n3\t4.25\n0\t6\n',
    "lines of spaces first": "  \n \nx,y\n1.5,-2\n3,4.25\n0,6\n",
    "numbers counted": "0,1\n1.5,-2\n3,4.25\n0,6\n",
    "pandas index": ",x,y\n0,1.5,-2\n1,3,4.25\n2,0,6\n",
    "pandas index and counted": ",0,1\n0,1.5,-2\n1,3,4.25\n2,0,6\n",
    "row names": ",x,y\ncell1,1.5,-2\ncell2,3,4.25\ncell3,0,6\n",
    "R row names": "x,y\ncell1,1.5,-2\ncell2,3,4.25\ncell3,0,6\n",
    "comment sign": "# x,y\n1.5,-2\n3,4.25\n0,6\n",
    "letters beyond ASCII": "größe,高さ\n1.5,-2\n3,4.25\n0,6\n",
    "exponents": "x,y\n15e-1,-2E0\n3,4.25\n0,6\n",
}


def csv(folder, text, name="table.csv"):
    (folder / name).write_bytes(text.encode())
    return folder / name


@pytest.mark.parametrize("layout", LAYOUTS)
def test_common_layouts_give_the_same_numbers(layout, tmp_path):
    np.testing.assert_array_equal(ua.load(csv(tmp_path, LAYOUTS[layout])).values, NUMBERS)


@pytest.mark.parametrize("seed", range(3))
def test_numbers_round_trip_exactly(seed, tmp_path):
    values = np.random.default_rng(seed).normal(size=(200, 4)) * 10.0 ** np.arange(-150, 150, 75)
    pd.DataFrame(values).to_csv(tmp_path / "t.csv")
    np.testing.assert_array_equal(ua.load(tmp_path / "t.csv").values, values)


def test_gzip_is_unpacked_and_tsv_is_split_at_tabs(tmp_path):
    (tmp_path / "t.tsv.gz").write_bytes(gzip.compress(b"a,b\tc\n1\t2\n3\t4\n"))
    dataset = ua.load(tmp_path / "t.tsv.gz")
    assert dataset.name == "t"
    np.testing.assert_array_equal(dataset.values, [[1, 2], [3, 4]])


def test_header_can_be_given(tmp_path):
    path = csv(tmp_path, "1,2\n3,4\n5,6\n")
    assert ua.load(path).n_samples == 3
    assert ua.load(path, header=True).n_samples == 2
    with pytest.raises(InputTypeError, match=r"2 of 2 columns"):
        ua.load(csv(tmp_path, "x,y\n3,4\n"), header=False)


def test_columns_without_numbers_raise_or_are_dropped(tmp_path):
    path = csv(tmp_path, "cell,x,note,y,void\na,1,,2,\nb,3,late,4,\n")
    with pytest.raises(
        InputTypeError, match=r"3 of 5 columns.*'cell' \(such as 'a'\), 'note'.*'void' \(empty\)"
    ):
        ua.load(path)
    with pytest.warns(DataWarning, match=r"Dropped .*: 'cell', 'note', 'void'\."):
        found = ua.load(path, drop_non_numeric=True)
    np.testing.assert_array_equal(found.values, [[1, 2], [3, 4]])


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("separator", [",", ";"])
def test_typo_in_numeric_column_raises_even_with_drop(tmp_path, drop, separator):
    number = "0,5" if separator == ";" else "0.5"
    lines = [separator.join([f"2024-01-{day:02}", str(day), number]) for day in range(1, 21)]
    lines[7] = lines[7].replace(number, "ERROR")
    lines[3] = lines[3].replace(number, "")  # a missing cell is no typo
    path = csv(tmp_path, "\n".join([separator.join(["when", "count", "temp"]), *lines]))
    message = r"'temp' has numbers in 18 of 19 cells, and 'ERROR' in row 7 .*nan_policy='omit'"
    with pytest.raises(InputTypeError, match=message):
        ua.load(path, drop_non_numeric=drop)


def test_a_tenth_of_the_cells_counts_as_typos(tmp_path):
    lines = [f"{i},{'x' if i == 4 else i}" for i in range(10)]
    with pytest.raises(
        InputTypeError, match=r"'b' has numbers in 9 of 10 cells, and 'x' in row 4"
    ):
        ua.load(csv(tmp_path, "\n".join(["a,b", *lines])))


def test_column_with_many_words_is_without_numbers(tmp_path):
    lines = [f"{i},{'x' if i % 5 == 0 else i}" for i in range(20)]
    with pytest.raises(InputTypeError, match=r"1 of 2 columns without numbers: 'b'"):
        ua.load(csv(tmp_path, "\n".join(["a,b", *lines])))


def test_columns_are_chosen_by_name_or_position_in_order(tmp_path):
    path = csv(tmp_path, "cell,x,y\na,1,2\nb,3,4\n")
    np.testing.assert_array_equal(ua.load(path, columns=["y", "x"]).values, [[2, 1], [4, 3]])
    np.testing.assert_array_equal(ua.load(path, columns=[-1, 1]).values, [[2, 1], [4, 3]])
    np.testing.assert_array_equal(ua.load(path, columns="y").values, [[2], [4]])
    with pytest.raises(FileError, match=r"'z' does not exist.*Columns: 'cell', 'x', 'y'"):
        ua.load(path, columns=["z"])
    with pytest.raises(FileError, match=r"no column 7; the 3 columns"):
        ua.load(path, columns=[7])


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_named(tmp_path, order):
    path = tmp_path / "excel.csv"
    path.write_bytes("\ufeffa,b\n1,2\n".encode(order))
    with pytest.raises(FileError, match=r"not UTF-8 text.*iconv -f utf-16 -t utf-8"):
        ua.load(path)


@pytest.mark.parametrize("options", [{}, {"columns": ["x"]}, {"columns": [0]}])
@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_duplicate_columns_read_by_name_have_one_remedy(tmp_path, suffix, options):
    pa = pytest.importorskip("pyarrow")
    table = pa.table([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]], names=["x", "x", "y"])
    path = tmp_path / f"table{suffix}"
    if suffix == ".parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
        assert ua.load(path, columns=["y"]).n_samples == 2
    else:
        pytest.importorskip("pyarrow.feather").write_feather(table, str(path))
    message = r"(columns|the table): the column 'x' occurs twice\. Rename one of them\. Columns"
    with pytest.raises(FileError, match=message):
        ua.load(path, **options)


@pytest.mark.parametrize("option", ["columns", "resize"])
def test_options_that_are_no_list_are_input_errors(tmp_path, option):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=f"{option}=1.5 must be"):
        ua.load(tmp_path / "a.csv", **{option: 1.5})


def test_choosing_a_duplicate_column_raises(tmp_path):
    path = csv(tmp_path, "x,x\n1,2\n3,4\n")
    assert ua.load(path).n_features == 2
    message = r"columns: the column 'x' occurs twice. Choose by position: 0, 1. Columns: 'x', 'x'"
    with pytest.raises(FileError, match=message):
        ua.load(path, columns=["x"])
    assert ua.load(path, columns=[1]).values.ravel().tolist() == [2, 4]
    with pytest.raises(FileError, match=r"group_by: the column 'x' occurs twice. Rename one"):
        ua.load_all(path, group_by="x")


def test_text_that_is_not_utf8_raises_with_a_remedy(tmp_path):
    (tmp_path / "latin.csv").write_bytes("é,x\n1,2\n3,4\n".encode("latin1"))
    with pytest.raises(FileError, match=r"not UTF-8 text \(byte 0\). Convert it, .*iconv"):
        ua.load(tmp_path / "latin.csv")


def test_true_and_false_are_numbers(tmp_path):
    path = csv(tmp_path, "x,flag\n1,True\n3,False\n")
    np.testing.assert_array_equal(ua.load(path).values, [[1, 1], [3, 0]])


def test_short_line_is_named(tmp_path):
    with pytest.raises(FileError, match=r"table\.csv.*Line 3 has 1 field, expected 2"):
        ua.load(csv(tmp_path, "x,y\n1,2\n3\n4,5\n"))


def test_column_name_may_have_a_line_break(tmp_path):
    dataset = ua.load(csv(tmp_path, '"a\nb",x\n1,2\n3,4\n'))
    assert dataset.feature_names == ("a\nb", "x")


def test_line_number_counts_quoted_line_breaks(tmp_path):
    with pytest.raises(FileError, match=r"Line 4 has 3 fields, expected 2"):
        ua.load(csv(tmp_path, '"a\nb",x\n1,2\n3,4,5\n'))


@pytest.mark.parametrize("n_lines", [3, 100_000])
def test_unclosed_quote_raises(n_lines, tmp_path):
    with pytest.raises(FileError, match=r"quote .* line 2 .* not closed"):
        ua.load(csv(tmp_path, "\n" + '"a,b\n' + n_lines * "1,2\n"))
