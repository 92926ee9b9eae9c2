"""Tags are read however they are given, and a misspelt name is found."""

from datetime import date

import numpy as np
import pandas as pd
import pytest

from unaligned.errors import InputError, InputTypeError
from unaligned.tags import metadata_tags, one_tag, read_tags

NAMES = ("a", "b", "c")

FORMS = {
    "by dataset": {"a": {"day": 0}, "b": {"day": 2}, "c": {"day": 4}},
    "by tag": {"day": [0, 2, 4]},
    "by tag, an array": {"day": np.array([0, 2, 4])},
    "by tag and dataset": {"day": {"c": 4, "b": 2, "a": 0}},
    "by tag, a series": {"day": pd.Series([4, 0, 2], index=["c", "a", "b"])},
    "a frame": pd.DataFrame({"day": [4, 2, 0]}, index=["c", "b", "a"]),
    "a series": pd.Series([0, 2, 4], index=["a", "b", "c"], name="day"),
}


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_give_the_same_tags(form):
    [tag] = read_tags(FORMS[form], NAMES)
    assert tag.name == "day"
    assert tag.values == (0.0, 2.0, 4.0)
    assert tag.is_numeric
    assert tag.limits == (0.0, 4.0)


def test_dict_of_scalars_is_one_tag():
    [tag] = read_tags({"a": "liver", "b": "lung", "c": "liver"}, NAMES)
    assert (tag.name, tag.groups, tag.is_numeric) == ("tag", ("liver", "lung"), False)


def test_none_gives_no_tags():
    assert read_tags(None, NAMES) == []
    assert read_tags({}, NAMES) == []


def test_missing_values_are_none():
    frame = pd.DataFrame({"day": [1.0, np.nan], "site": ["x", None]}, index=["a", "b"])
    day, site = read_tags(frame, NAMES)
    assert day.values == (1.0, None, None)
    assert day.is_numeric
    assert site.values == ("x", None, None)


def test_tag_without_values_is_not_numeric():
    [tag] = read_tags({"day": [None, None, None]}, NAMES)
    assert not tag.is_numeric
    assert tag.groups == ()


def test_values_of_other_datasets_are_ignored():
    [tag] = read_tags(pd.Series([1, 2, 3, 4], index=["z", "a", "b", "c"]), NAMES)
    assert tag.values == (2.0, 3.0, 4.0)


def test_mixed_values_become_strings():
    [tag] = read_tags({"dose": [1, "high", None]}, NAMES)
    assert tag.values == ("1", "high", None)


def test_booleans_and_dates_become_strings():
    truth, day = read_tags({"sick": [True, False, True], "day": [date(2020, 1, 2)] * 3}, NAMES)
    assert truth.groups == ("True", "False")
    assert day.groups == ("2020-01-02",)


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ({"a": {"day": 0}, "B": {"day": 1}}, r"tags names 'B'.*no value for 'b'"),
        ({"day": {"a": 0, "bb": 1, "c": 2}}, r"tag 'day' names 'bb'.*Did you mean 'b'"),
        ({"day": [0, 1]}, r"tag 'day' has 2 values for 3 datasets"),
        ({"day": [0, 1, np.inf]}, r"tag 'day' has an infinite value"),
        (pd.Series([1, 2], index=["a", "a"]), r"more than one row for 'a'"),
        (pd.DataFrame({"x": [1, 2]}, index=["a", "a"]), r"more than one row for 'a'"),
    ],
)
def test_misspelt_names_raise(tags, message):
    with pytest.raises(InputError, match=message):
        read_tags(tags, NAMES)


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ([1, 2, 3], r"tags must be a dict or a DataFrame, not list"),
        ({"day": "Monday", "site": ["x", "y", "z"]}, r"tag 'day' must have one value per dataset"),
        ({"day": [[1], [2], [3]]}, r"tag 'day' has the value \[1\]"),
    ],
)
def test_invalid_tags_raise(tags, message):
    with pytest.raises(InputTypeError, match=message):
        read_tags(tags, NAMES)


def test_metadata_tags_are_scalars_only():
    metadata = {"a": {"day": np.int64(3), "counts": np.zeros(4)}, "b": {"day": 5}}
    [tag] = metadata_tags(metadata, NAMES)
    assert (tag.name, tag.values) == ("day", (3.0, 5.0, None))


def test_one_tag_is_found_by_name_or_raises():
    assert one_tag(None, NAMES, {}) is None
    assert one_tag("day", NAMES, {"a": {"day": 1}}).values == (1.0, None, None)
    with pytest.raises(InputError, match=r"color='hour' is not in the metadata.*which has day"):
        one_tag("hour", NAMES, {"a": {"day": 1}})
    with pytest.raises(InputError, match=r"one tag; got 2"):
        one_tag({"x": [1, 2, 3], "y": [1, 2, 3]}, NAMES, {})


def test_constant_tag():
    same, known, other = read_tags({"x": [1, 1, 1], "y": ["a", "a", None], "z": [1, 2, 1]}, NAMES)
    assert [tag.is_constant for tag in (same, known, other)] == [True, False, False]
