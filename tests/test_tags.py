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
def test_all_forms_say_the_same(form):
    [tag] = read_tags(FORMS[form], NAMES)
    assert tag.name == "day"
    assert tag.values == (0.0, 2.0, 4.0)
    assert tag.is_numeric
    assert tag.limits == (0.0, 4.0)


def test_one_value_for_each_dataset_is_one_tag():
    [tag] = read_tags({"a": "liver", "b": "lung", "c": "liver"}, NAMES)
    assert (tag.name, tag.groups, tag.is_numeric) == ("tag", ("liver", "lung"), False)


def test_no_tags_are_no_tags():
    assert read_tags(None, NAMES) == []
    assert read_tags({}, NAMES) == []


def test_what_is_not_known_is_none():
    frame = pd.DataFrame({"day": [1.0, np.nan], "site": ["x", None]}, index=["a", "b"])
    day, site = read_tags(frame, NAMES)
    assert day.values == (1.0, None, None)
    assert day.is_numeric
    assert site.values == ("x", None, None)


def test_a_tag_that_nobody_has_is_not_a_number():
    [tag] = read_tags({"day": [None, None, None]}, NAMES)
    assert not tag.is_numeric
    assert tag.groups == ()


def test_rows_of_other_datasets_are_passed_over_when_none_is_lacking():
    [tag] = read_tags(pd.Series([1, 2, 3, 4], index=["z", "a", "b", "c"]), NAMES)
    assert tag.values == (2.0, 3.0, 4.0)


def test_words_and_numbers_together_are_words():
    [tag] = read_tags({"dose": [1, "high", None]}, NAMES)
    assert tag.values == ("1", "high", None)


def test_truth_and_dates_are_words():
    truth, day = read_tags({"sick": [True, False, True], "day": [date(2020, 1, 2)] * 3}, NAMES)
    assert truth.groups == ("True", "False")
    assert day.groups == ("2020-01-02",)


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ({"a": {"day": 0}, "B": {"day": 1}}, r"tags names 'B'.*nothing for 'b'"),
        ({"day": {"a": 0, "bb": 1, "c": 2}}, r"tag 'day' names 'bb'.*Did you mean 'b'"),
        ({"day": [0, 1]}, r"tag 'day' has 2 values, and there are 3 datasets"),
        ({"day": [0, 1, np.inf]}, r"tag 'day' has an infinite value"),
        (pd.Series([1, 2], index=["a", "a"]), r"more than one row for 'a'"),
        (pd.DataFrame({"x": [1, 2]}, index=["a", "a"]), r"more than one row for 'a'"),
    ],
)
def test_mistakes_are_named(tags, message):
    with pytest.raises(InputError, match=message):
        read_tags(tags, NAMES)


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ([1, 2, 3], r"tags must be a dict or a DataFrame, not list"),
        ({"day": "Monday", "site": ["x", "y", "z"]}, r"tag 'day' must be one value for each"),
        ({"day": [[1], [2], [3]]}, r"tag 'day' has the value \[1\]"),
    ],
)
def test_what_cannot_be_a_tag_is_refused(tags, message):
    with pytest.raises(InputTypeError, match=message):
        read_tags(tags, NAMES)


def test_metadata_gives_numbers_and_words_and_no_arrays():
    metadata = {"a": {"day": np.int64(3), "counts": np.zeros(4)}, "b": {"day": 5}}
    [tag] = metadata_tags(metadata, NAMES)
    assert (tag.name, tag.values) == ("day", (3.0, 5.0, None))


def test_one_tag_is_found_by_name_or_refused():
    assert one_tag(None, NAMES, {}) is None
    assert one_tag("day", NAMES, {"a": {"day": 1}}).values == (1.0, None, None)
    with pytest.raises(InputError, match=r"tag='hour' is not in the metadata.*which have day"):
        one_tag("hour", NAMES, {"a": {"day": 1}})
    with pytest.raises(InputError, match=r"one tag; 2 arrived"):
        one_tag({"x": [1, 2, 3], "y": [1, 2, 3]}, NAMES, {})


def test_a_tag_is_constant_where_all_have_the_same():
    same, known, other = read_tags({"x": [1, 1, 1], "y": ["a", "a", None], "z": [1, 2, 1]}, NAMES)
    assert [tag.is_constant for tag in (same, known, other)] == [True, False, False]
