"""Groups of the rows of a DataFrame are datasets, as those of a file are."""

import re

import numpy as np
import pandas as pd
import pytest

import unaligned as ua
from unaligned.errors import DataWarning, InputError, InputTypeError


@pytest.fixture
def frame():
    values = np.random.default_rng(0).normal(size=(120, 3))
    found = pd.DataFrame(values, columns=["CD4", "CD8", "CD19"])
    found["day"] = np.tile([10, 2, 0], 40)
    found["donor"] = pd.Categorical(np.repeat(["b", "a"], 60))
    return found


def test_groups_are_those_of_the_same_table_in_a_file(frame, tmp_path):
    frame.to_csv(tmp_path / "t.csv", index=False)
    found = ua.compare(frame, group_by=["day", "donor"], n_eigenvalues=10)
    of_file = ua.compare(tmp_path / "t.csv", group_by=["day", "donor"], n_eigenvalues=10)
    assert found.names == of_file.names == ("0:a", "0:b", "2:a", "2:b", "10:a", "10:b")
    np.testing.assert_allclose(found.distances, of_file.distances, atol=1e-8)
    assert found.metadata["10:b"] == {"day": 10, "donor": "b"}


def test_columns_keep_their_names_and_the_frame_its_values(frame):
    before = frame.copy()
    found = ua.load_all(frame, group_by="donor", columns=["CD8", "CD4"])
    assert found["a"].feature_names == ("CD8", "CD4")
    np.testing.assert_array_equal(found["a"].values, frame[["CD8", "CD4"]].iloc[60:])
    pd.testing.assert_frame_equal(frame, before)


def test_frames_of_a_dict_are_grouped_each(frame):
    table = frame.drop(columns="donor")
    found = ua.compare({"p": table, "q": table}, group_by="day", n_eigenvalues=10)
    assert found.names == ("p:0", "p:2", "p:10", "q:0", "q:2", "q:10")
    assert found["p:2", "q:2"] == 0.0
    against = ua.compare(table, table, group_by="day", n_eigenvalues=10)
    np.testing.assert_array_equal(np.diag(against.distances), 0.0)


def test_a_frame_without_group_by_is_one_dataset(frame):
    with pytest.warns(DataWarning, match="Dropped columns without numbers: 'donor'"):
        assert list(ua.load_all(frame, drop_non_numeric=True)) == ["table"]
    with pytest.raises(InputTypeError, match="for groups of rows of a file or DataFrame group_by"):
        ua.compare(frame)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: ua.compare(f, group_by="dya"), "DataFrame: group_by: .* Did you mean 'day'"),
        (lambda f: ua.compare(f, group_by="day"), "1 of 4 columns without numbers: 'donor'"),
        (lambda f: ua.compare(f.groupby("day")), "DataFrameGroupBy of pandas. Pass the Data"),
        (lambda f: ua.load_all(f.to_numpy()), r"path=ndarray of shape \(120, 5\) must be a path"),
        (
            lambda f: ua.compare(f[["CD4", "CD8"]], group_by="CD4"),
            "most groups would have one row",
        ),
    ],
    ids=["misspelt", "text", "groupby object", "array", "numbers"],
)
def test_mistakes_are_named(frame, call, message):
    with pytest.raises(InputError, match=message) as found:
        call(frame)
    assert not re.search(r"\d\.\d{3}", str(found.value))  # no values of the table
