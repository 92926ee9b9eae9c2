"""Comparison.explain: by name, with the data given again, prepared as it was."""

import numpy as np
import pandas as pd
import pytest

import unaligned as ua
from unaligned.errors import InputError, InputTypeError

QUICK = {"n_repeats": 1, "progress": False}


@pytest.fixture(scope="module")
def clouds():
    rng = np.random.default_rng(0)
    return {
        name: rng.normal(size=(160, 3)) * scales
        for name, scales in {"flat": (1, 1, 0.1), "round": (1, 1, 1), "long": (5, 1, 1)}.items()
    }


@pytest.fixture(scope="module")
def comparison(clouds):
    return ua.compare(clouds, n_eigenvalues=20, gamma=1e-6)


def test_it_is_the_explanation_of_the_two_datasets(clouds, comparison):
    found = comparison.explain("flat", "round", clouds, **QUICK)
    direct = ua.explain(
        ua.Dataset(clouds["flat"], name="flat"),
        ua.Dataset(clouds["round"], name="round"),
        gamma=1e-6,
        **QUICK,
    )
    assert found.names == ("flat", "round")
    assert found.gamma == 1e-6
    np.testing.assert_array_equal(found.change, direct.change)
    pair = comparison.explain("flat", "round", [clouds["flat"], clouds["round"]], **QUICK)
    np.testing.assert_array_equal(pair.change, found.change)


def test_a_loaded_comparison_and_files_work(clouds, comparison, tmp_path):
    comparison.save(tmp_path / "all.npz")
    paths = {}
    for name, values in clouds.items():
        paths[name] = tmp_path / f"{name}.npy"
        np.save(paths[name], values)
    loaded = ua.Comparison.load(tmp_path / "all.npz")
    found = loaded.explain("flat", "long", paths, by="scale", **QUICK)
    assert found.names == ("flat", "long")


def test_preprocessing_subsamples_and_references_are_kept(clouds):
    options = {"preprocess": ["standardize"], "n_eigenvalues": 20}
    found = ua.compare(clouds, **options)
    assert found.explain("flat", "round", clouds, **QUICK).exceeds_noise.sum() == 0
    small = ua.compare(clouds, subsample=130, n_eigenvalues=20)
    assert small.explain("flat", "round", clouds, **QUICK).n_samples == (130, 130)
    new = {"new": clouds["long"]}
    against = ua.compare(new, clouds, n_eigenvalues=20)
    assert against.explain("new", "flat", {**new, **clouds}, **QUICK).names == ("new", "flat")


def test_components_fitted_to_references_are_left_out(clouds):
    found = ua.compare(
        {"long": clouds["long"]},
        {"flat": clouds["flat"]},
        fit_on="references",
        preprocess="pca:2",
        n_eigenvalues=20,
    )
    why = found.explain("long", "flat", clouds, **QUICK)
    assert sorted(why.labels) == ["component 0", "component 1"]


def test_labels_of_all_rows_do_not_fit_a_subsample(clouds):
    found = ua.compare(clouds, subsample=130, n_eigenvalues=20)
    labels = [np.arange(160) % 3] * 2
    with pytest.raises(InputError, match=r"labels: subsample=130 .* Call unaligned\.explain"):
        found.explain("flat", "round", clouds, by="rows", labels=labels, **QUICK)
    why = found.explain("flat", "round", clouds, by="rows", labels="auto", **QUICK)
    assert why.n_samples == (130, 130)


def test_columns_with_numbers_as_names_must_be_in_one_order(clouds):
    tables = {name: pd.DataFrame(x, columns=[7, 8, 9]) for name, x in clouds.items()}
    tables["round"] = tables["round"][[9, 8, 7]]
    found = ua.compare(tables, n_eigenvalues=20)
    with pytest.raises(InputError, match=r"have numbers as names"):
        found.explain("flat", "round", tables, **QUICK)


@pytest.mark.parametrize(
    ("names", "change", "error", "message"),
    [
        (("flat", "rund"), {}, InputError, r"'rund'"),
        (("flat", "flat"), {}, InputError, r"two datasets, and both are 'flat'"),
        (("flat", "round"), {"round": 2.0}, InputError, r"'round' is not what was compared"),
    ],
)
def test_bad_names_and_other_data_raise(clouds, comparison, names, change, error, message):
    data = {name: values * change.get(name, 1.0) for name, values in clouds.items()}
    with pytest.raises(error, match=message):
        comparison.explain(*names, data, **QUICK)


def test_data_must_be_named_or_a_pair(clouds, comparison):
    with pytest.raises(InputError, match=r"data has no 'round'; it has 'flat'"):
        comparison.explain("flat", "round", {"flat": clouds["flat"]}, **QUICK)
    with pytest.raises(InputTypeError, match=r"data must be a dict of name -> data"):
        comparison.explain("flat", "round", clouds["flat"], **QUICK)


def test_other_distances_raise(clouds):
    found = ua.compare(clouds, distance="edistance")
    with pytest.raises(InputError, match=r"explains 'les' distances, and these are 'edistance'"):
        found.explain("flat", "round", clouds, **QUICK)
