"""Data in: collections and their names, sizes, preprocessing."""

import numpy as np
import pandas as pd
import pytest

import unaligned as ua
from unaligned.errors import InputError, InputTypeError, SampleSizeWarning


def cloud(seed, n_samples=40, n_features=3):
    return np.random.default_rng(seed).normal(size=(n_samples, n_features))


A, B = cloud(0), cloud(1, 50, 5)


@pytest.mark.parametrize(
    ("datasets", "error", "message"),
    [
        ({}, InputError, r"datasets is empty. Give at least one dataset"),
        ([], InputError, r"datasets is empty"),
        (None, InputTypeError, r"dict of name -> data or a list of datasets, not NoneType"),
        ("data.csv", InputTypeError, r"or a list of datasets, not str"),
        (5, InputTypeError, r"or a list of datasets, not int"),
        (A, InputTypeError, r"not ndarray of shape \(40, 3\). For two datasets write \[a, b\]"),
        (np.ones((3, 4, 5)), InputTypeError, r"not ndarray of shape \(3, 4, 5\)"),
        (pd.DataFrame(A), InputTypeError, r"not DataFrame of shape \(40, 3\)"),
        (ua.Dataset(A), InputTypeError, r"or a list of datasets, not Dataset"),
        ({1: A}, InputTypeError, r"datasets: the name 1 must be text"),
        ({None: A}, InputTypeError, r"datasets: the name None must be text"),
        (
            [ua.Dataset(A, name="x"), ua.Dataset(B, name="x")],
            InputError,
            r"the name 'x' occurs twice. Names must be unique",
        ),
        ([A, ua.Dataset(B, name="0")], InputError, r"the name '0' occurs twice"),
    ],
    ids=range(13),
)
def test_wrong_collections_are_refused(datasets, error, message):
    with pytest.raises(error, match=message):
        ua.compare(datasets)
    if datasets is not None:
        with pytest.raises(
            error,
            match=message.replace("datasets is", "references is").replace(
                "datasets:", "references:"
            ),
        ):
            ua.compare([A], datasets)


def test_a_dataset_called_name_in_its_columns_is_no_trouble():
    frame = pd.DataFrame({"name": A[:, 0], "x": A[:, 1]})
    assert ua.compare([frame, B]).names == ("0", "1")


@pytest.mark.parametrize("make", [list, tuple, iter])
def test_any_iterable_of_datasets_is_a_collection(make):
    named = [
        ua.Dataset(A, name="naïve"),
        ua.signature(ua.Dataset(B, name="数据"), n_eigenvalues=9),
        A,
    ]
    assert ua.compare(make(named)).names == ("naïve", "数据", "2")


def test_a_dict_names_its_datasets_whatever_they_were_called():
    result = ua.compare({"x": ua.Dataset(A, name="old"), "y": B})
    assert result.names == ("x", "y")
    assert result.signatures["x"].name == "x"


@pytest.mark.parametrize("ratio", [4.0, 4.1])
def test_sizes_beyond_fourfold_are_warned_about_where_the_user_stands(ratio):
    data = {"small": cloud(0, 20), "large": cloud(1, int(20 * ratio))}
    if ratio <= 4:
        ua.compare(data)  # warnings are errors
        return
    message = "more than fourfold: 'small' has 20 rows, 'large' has 82.*subsample='common'"
    with pytest.warns(SampleSizeWarning, match=message) as caught:
        ua.compare(data)
    assert caught[0].filename == __file__
    with pytest.warns(SampleSizeWarning, match=message):
        ua.compare({"small": data["small"]}, {"large": data["large"]})
    with pytest.warns(SampleSizeWarning, match="fourfold"):
        ua.distance(*data.values())
    ua.compare(data, subsample="common")
    ua.compare(data, distance=lambda a, b: 0.0)


@pytest.mark.parametrize("subsample", ["common", 20, 15])
@pytest.mark.parametrize("seed", range(3))
def test_subsample_compares_at_one_size(subsample, seed):
    data = {"a": cloud(0, 100), "b": cloud(1, 20), "c": cloud(0, 100)}
    result = ua.compare(data, subsample=subsample, n_eigenvalues=10, rng=seed)
    size = 20 if subsample == "common" else subsample
    assert {s.n_samples for s in result.signatures.values()} == {size}
    assert result["a", "c"] == 0.0, "the same data draws the same rows"
    again = ua.compare(data, subsample=subsample, n_eigenvalues=10, rng=seed)
    assert np.array_equal(result.distances, again.distances)
    assert ua.distance(data["a"], data["b"], subsample=subsample, n_eigenvalues=10, rng=seed) > 0


def test_subsampling_draws_other_rows_under_another_seed():
    data = [cloud(0, 100), cloud(1, 20)]
    one, two = (ua.compare(data, subsample=20, rng=seed).distances[0, 1] for seed in (1, 2))
    assert one != two


def test_a_signature_cannot_be_subsampled():
    with pytest.raises(InputError, match="subsample needs the data itself"):
        ua.compare([ua.signature(A), B], subsample=10)


def test_preprocessing_is_given_once():
    own = ua.Dataset(np.abs(A), preprocess=["log1p"], name="own")
    with pytest.raises(
        InputError, match=r"'own' has its own preprocessing \['log1p'\]; leave out"
    ):
        ua.compare([own, B], preprocess="standardize")
    same = ua.compare([own, np.abs(B)], preprocess="log1p")
    assert {s.recipe.preprocess for s in same.signatures.values()} == {("log1p",)}
