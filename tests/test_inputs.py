"""Collections: names, sizes, preprocessing, applicable distances."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import unaligned as ua
from unaligned.errors import (
    DataWarning,
    DegenerateDataError,
    InputError,
    InputTypeError,
    NotApplicableError,
    RecipeMismatchError,
    SampleSizeWarning,
)
from unaligned.inputs import warn_about_sizes
from unaligned.metrics.les import LES
from unaligned.metrics.registry import DISTANCES
from unaligned.rows.source import ArrayRows

ONE = (str, np.ndarray, pd.DataFrame, ua.Dataset)  # which may be a reference


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
        ({1: A, "1": B}, InputError, r"the name '1' occurs twice \(1 and '1'\)"),
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
def test_invalid_collections_raise(datasets, error, message):
    with pytest.raises(error, match=message):
        ua.compare(datasets)
    if datasets is not None and not isinstance(datasets, ONE):
        with pytest.raises(
            error,
            match=message.replace("datasets is", "references is").replace(
                "datasets:", "references:"
            ),
        ):
            ua.compare([A], datasets)


def test_column_called_name_is_not_the_name():
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


def test_dict_keys_replace_names():
    result = ua.compare({"x": ua.Dataset(A, name="old"), "y": B})
    assert result.names == ("x", "y")
    assert result.signatures["x"].name == "x"


# Rows of the smaller dataset, rows of the larger one, K, and whether size alone is material.
SIZES = [
    (20, 30, 20, False),
    (20, 31, 20, True),
    (20, 31, 6, True),
    (20, 31, 5, False),
    (20, 80, 5, False),
    (20, 81, 5, True),
]


@pytest.mark.parametrize(("small", "large", "k", "biased"), SIZES)
def test_material_size_bias_warns_once_at_the_users_line(small, large, k, biased):
    data, options = {"small": cloud(0, small), "large": cloud(1, large)}, {"n_eigenvalues": k}
    if not biased:
        ua.compare(data, **options)  # warnings are errors
        return
    message = f"fold at K={k}: 'small' has 20 rows, 'large' has {large}.*subsample='common'"
    with pytest.warns(SampleSizeWarning, match=message) as caught:
        ua.compare(data, **options)
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.warns(SampleSizeWarning, match=message):
        ua.compare({"small": data["small"]}, {"large": data["large"]}, **options)
    with pytest.warns(SampleSizeWarning, match="fold at K="):
        ua.distance(*data.values(), **options)
    ua.compare(data, subsample="common", **options)
    ua.compare(data, distance=lambda a, b: 0.0)


def test_one_row_is_an_error_without_a_warning_about_sizes():
    with pytest.raises(DegenerateDataError, match=r"'0' has one row; .* Leave it out"):
        ua.compare([A[:1], B])  # warnings are errors


MIXED = np.random.default_rng(0).normal(size=(3, 200, 3)) * [1.0, 900.0, 4.0]


def test_columns_of_different_units_warn_once_and_name_standardize():
    data = {"a": MIXED[0], "b": MIXED[1] * [1.0, 10.0, 1.0], "c": MIXED[2] / [1.0, 300.0, 1.0]}
    message = (
        "dataset 'b': the spread of column 1 is .* times that of column 0.*'standardize'. "
        "The same in 1 other dataset: 'a'.$"
    )
    with pytest.warns(DataWarning, match=message) as caught:
        found = ua.compare(data, n_eigenvalues=20)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with pytest.warns(DataWarning, match="dataset 'd': the spread of column 1"):
        found.add({"d": MIXED[0]})
    for call in (
        lambda **options: ua.signature(MIXED[0], **options),
        lambda **options: ua.distance(MIXED[0], MIXED[2], **options),
        lambda **options: ua.permutation_test(MIXED[0], MIXED[2], **options),
    ):
        with pytest.warns(DataWarning, match="spread of column 1") as caught:
            call()
        assert len(caught) == 1
        call(preprocess="standardize")


def test_units_of_columns_pass_where_they_do_not_count():
    ua.distance(MIXED[0], MIXED[1], metric="seuclidean")
    ua.distance(MIXED[0], MIXED[1], lambda x, y: float(len(x)))
    with pytest.warns(DataWarning, match="'standardize' with fit_on='references'"):
        ua.compare({"a": MIXED[0]}, {"b": MIXED[1]}, distance="mmd")
    options = {"preprocess": "standardize", "fit_on": "references"}
    ua.compare({"a": MIXED[0]}, {"b": MIXED[1]}, distance="mmd", **options)


@pytest.mark.parametrize("subsample", [None, "common"])
def test_a_small_dataset_that_lowers_k_is_named(subsample):
    data = {"tiny": cloud(9, 8), **{f"d{i}": cloud(i, 40 + i) for i in range(4)}}
    message = r"K is 8 for all 5 datasets; .* it is 40: 'tiny' \(8 rows\). Pass min_samples=40"
    with pytest.warns(SampleSizeWarning) as caught:
        ua.compare(data, subsample=subsample)
    named = [w for w in caught if re.search(message, str(w.message))]
    assert len(named) == 1
    assert len(caught) == (2 if subsample is None else 1), "the other one is about the bias"
    with pytest.warns(SampleSizeWarning, match="fold at K=8") as caught:
        ua.compare(data, n_eigenvalues=8)
    assert len(caught) == 1, "a K that was given is not lowered"
    ua.compare({name: data[name] for name in data if name != "tiny"})


def test_min_samples_leaves_small_datasets_out_and_names_them(tmp_path):
    data = {"tiny": cloud(9, 8), "few": cloud(8, 9), "a": A, "b": B}
    message = r"datasets.*have fewer than min_samples=20 rows: 'tiny' \(8 rows\), 'few' \(9 rows\)"
    with pytest.warns(DataWarning, match=message) as caught:
        found = ua.compare(data, min_samples=20)
    assert len(caught) == 1
    assert (found.names, found.left_out) == (("a", "b"), {"tiny": 8, "few": 9})
    assert np.array_equal(found.distances, ua.compare({"a": A, "b": B}).distances)
    found.save(tmp_path / "saved.npz")
    loaded = ua.Comparison.load(tmp_path / "saved.npz")
    assert loaded.left_out == found.left_out
    assert loaded.call_options["min_samples"] == 20
    found.report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "fewer than 20 rows: <bdi>tiny</bdi> (8), <bdi>few</bdi> (9)." in text
    with pytest.warns(DataWarning, match="Left out of the references.* it has fewer"):
        assert ua.compare([A], {"few": cloud(8, 9), "b": B}, min_samples=20).left_out == {"few": 9}
    with pytest.warns(DataWarning, match="'late'"):
        assert found.add({"c": cloud(5), "late": cloud(6, 9)}).names == ("a", "b", "c")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (51, "leaves none of the datasets; the largest has 50 rows"),
        (0, "min_samples=0"),
        ("8", "'8'"),
    ],
)
def test_invalid_min_samples_raises(value, message):
    with pytest.raises(InputError, match=message):
        ua.compare([A, B], min_samples=value)


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


SAME_FEATURES = [name for name, cls in DISTANCES.items() if cls.same_features]


@pytest.mark.parametrize("name", SAME_FEATURES)
@pytest.mark.parametrize("step", ["standardize", "pca:2"])
def test_fitted_steps_raise_if_features_must_match(name, step):
    message = rf"does not apply: .*step '{step}' is fitted to each dataset by itself"
    with pytest.raises(NotApplicableError, match=rf"{message}.*'les' needs neither"):
        ua.distance(A, A + 100.0, name, preprocess=["arcsinh:5", step])
    with pytest.raises(NotApplicableError, match=message):
        ua.distance(A, ua.Dataset(A + 100.0, preprocess=step), name)


def test_rowwise_steps_are_allowed_everywhere():
    found = ua.distance(A, A + 100.0, "wasserstein", preprocess=["arcsinh:5"])
    assert found == pytest.approx(
        ua.distance(np.arcsinh(A / 5), np.arcsinh(A / 5 + 20), "wasserstein")
    )
    assert ua.distance(A, A + 100.0, preprocess=["standardize", "pca:2"]) < 1e-3


def frame(names, seed=0):
    return pd.DataFrame(cloud(seed, 40, len(names)), columns=list(names))


@pytest.mark.parametrize("name", SAME_FEATURES)
def test_columns_are_matched_by_name(name):
    table = frame("abc")
    reordered = r"'a' has 'a' as column 0 where dataset 'b' has 'c'; bring the columns"
    with pytest.raises(NotApplicableError, match=reordered):
        ua.distance(table, table[["c", "b", "a"]], name)
    with pytest.raises(NotApplicableError, match=r"dataset 'b' has no column 'b', 'c', which"):
        ua.distance(table, frame("axy"), name)
    if name != "crosslid":  # which is not 0 of equal data
        assert ua.distance(table, table.copy(), name) == 0.0
        assert ua.distance(table, table.to_numpy(), name) == 0.0  # no names: by position


def test_column_names_are_ignored_without_shared_features():
    table = frame("abc")
    assert ua.distance(table, table[["c", "b", "a"]]) < 1e-4
    assert ua.distance(table, table[["c", "b", "a"]], "gromov-wasserstein") < 1e-6


PAIRED_ROWS = [name for name, cls in DISTANCES.items() if cls.paired_rows]


def samples(seed, prefix="s"):
    return frame("abc", seed).set_index(pd.Index([f"{prefix}{i}" for i in range(40)]))


@pytest.mark.parametrize("name", PAIRED_ROWS)
@pytest.mark.parametrize("seed", range(2))
def test_rows_are_paired_by_name(name, seed):
    table, other = samples(seed), samples(seed + 10)
    reordered = r"'a' has 's0' as row 0 where dataset 'b' has 's39'; bring the rows of all data"
    with pytest.raises(NotApplicableError, match=reordered):
        ua.distance(table, other.iloc[::-1], name)
    with pytest.raises(
        NotApplicableError,
        match=r"'b' has no row 's0', 's1', 's2', …, which.*use the same row names",
    ):
        ua.distance(table, samples(seed, "t"), name)
    expected = ua.distance(table.to_numpy(), other.to_numpy(), name)
    for second in (other, other.to_numpy(), other.reset_index(drop=True)):
        assert ua.distance(table, second, name) == expected
    doubled = table.set_index(pd.Index(["x", "y"] * 20))
    assert ua.distance(doubled, other.set_index(doubled.index), name) == expected
    with pytest.raises(
        NotApplicableError, match=r"'a' has 'x' as row 0 where dataset 'b' has 'y'"
    ):
        ua.distance(doubled, other.set_index(doubled.index[::-1]), name)


@pytest.mark.parametrize("name", PAIRED_ROWS)
def test_added_rows_are_paired_by_name(name):
    found = ua.compare({"a": samples(0), "b": samples(1)}, distance=name)
    assert found.add({"c": samples(2)}).distances.shape == (3, 3)
    with pytest.raises(NotApplicableError, match=r"as row 0 where dataset 'a' has 's0'"):
        found.add({"c": samples(2).iloc[::-1]})


@pytest.mark.parametrize("name", ["les", "imd", "frechet"])
def test_row_names_are_ignored_and_not_stored_elsewhere(name, tmp_path):
    table = samples(0)
    found = ua.compare({"a": table, "b": samples(1, "t")}, distance=name)
    assert ua.distance(table, samples(0, "t"), name) == 0.0
    assert all(facts.sample_names is None for facts in found._facts.values())
    found.save(tmp_path / "kept")
    assert b"s39" not in (tmp_path / "kept").read_bytes()


@pytest.mark.parametrize("name", ["log-euclidean", "affine-invariant", "euclidean"])
def test_covariances_are_matched_by_variable_names(name):
    first, second = frame("abcd", 0).cov(), frame("dcba", 1).cov()
    pair = [ua.Dataset(matrix, kind="spd") for matrix in (first, second)]
    with pytest.raises(
        NotApplicableError, match=r"'a' has 'a' as row 0 where dataset 'b' has 'd'"
    ):
        ua.distance(*pair, name)
    matched = ua.Dataset(second.loc[first.index, first.columns], kind="spd")
    assert ua.distance(pair[0], matched, name) > 0


@pytest.mark.parametrize(
    ("first", "second", "hinted"),
    [
        (A, B, True),
        (A[:1], B[:1], False),
        (ua.Dataset(A, preprocess="arcsinh:5"), B, False),
        (A, ua.Dataset(np.ones((20, 20)) - np.eye(20), kind="distances"), True),
        (A, ua.Dataset(np.eye(20), kind="spd"), False),
    ],
    ids=["columns", "one row", "other steps", "distances", "spd"],
)
def test_les_is_suggested_only_if_it_applies(first, second, hinted):
    with pytest.raises(NotApplicableError, match="distance 'wasserstein' does not apply") as found:
        ua.distance(first, second, "wasserstein")
    assert ("'les' needs neither" in str(found.value)) is hinted
    if hinted:
        assert ua.distance(first, second, n_eigenvalues=5) >= 0
    else:
        with pytest.raises((InputError, RecipeMismatchError), match=r"one row|made differently"):
            ua.distance(first, second)


@pytest.mark.parametrize("name", DISTANCES)
def test_dense_and_sparse_values_agree(name):
    options = {"geometry-score": {"n_rounds": 20}, "crosslid": {"n_neighbors": 5}}.get(name, {})
    options |= {"method": "slq"} if name in ("imd", "netlsd") else {}
    values = np.where(A > 0, A, 0.0)
    found = ua.distance(values, sparse.csr_array(values), name, **options)
    assert found == ua.distance(values, values.copy(), name, **options)
    assert found == 0.0 or name == "crosslid"


def test_warning_uses_the_names_of_the_comparison():
    small, large = (ua.signature(cloud(0, n), n_eigenvalues=9) for n in (20, 90))
    message = "'a' has 20 rows, 'b' has 90.*Compute the signatures from equally many rows"
    with pytest.warns(SampleSizeWarning, match=message):
        result = ua.compare({"a": small, "b": large})
    assert result.signatures["a"].name == "a"


def scaled(seed, n_samples=60):
    """Return points whose columns have very different means and spreads."""
    return cloud(seed, n_samples, 4) * [1.0, 5.0, 20.0, 3.0] + [0.0, 100.0, -7.0, 1.0]


@pytest.mark.parametrize("make", [np.asarray, lambda v: ua.Dataset.from_source(ArrayRows(v))])
def test_preprocessing_fitted_on_references_equals_scikit_learn(make):
    """In memory and streamed; StandardScaler and PCA are fitted to all reference rows."""
    new, references = {"new": scaled(0)}, {"a": scaled(1), "b": 2.0 * scaled(2, 50)}
    model = make_pipeline(StandardScaler(), PCA(3)).fit(np.vstack([*references.values()]))
    sides = [{n: model.transform(v) for n, v in side.items()} for side in (new, references)]
    given = [{n: make(v) for n, v in side.items()} for side in (new, references)]
    options = {"preprocess": ["standardize", "pca:3"], "fit_on": "references"}
    for name in ("les", "wasserstein"):  # of the same features: they are one space now
        found = ua.compare(*given, distance=name, **options)
        np.testing.assert_allclose(found.distances, ua.compare(*sides, distance=name).distances)
    alone = ua.compare(*given, preprocess=["standardize", "pca:3"])
    assert np.abs(alone.distances - ua.compare(*given, **options).distances).max() > 0.1


def test_sparse_and_dense_data_agree_when_fitted_on_references():
    counts = [np.random.default_rng(i).poisson(2.0, size=(60, 4)) * 1.0 for i in range(2)]
    for steps in (["standardize"], ["log1p", "standardize", "pca:3"]):
        options = {"preprocess": steps, "fit_on": "references"}
        dense = ua.compare(counts[:1], counts[1:], **options).distances
        for new, old in ((sparse.csr_array, np.asarray), (sparse.csr_array, sparse.csr_array)):
            thin = ua.compare([new(counts[0])], [old(counts[1])], **options).distances
            np.testing.assert_allclose(thin, dense, atol=1e-6)
        assert ua.distance(*counts, "wasserstein", **options) == pytest.approx(
            ua.distance(sparse.csr_array(counts[0]), counts[1], "wasserstein", **options)
        )


def test_a_test_with_preprocessing_fitted_to_one_side_is_approximate():
    options = {"preprocess": "standardize", "fit_on": "references", "inference": True}
    assert ua.compare([scaled(0, 200)], [scaled(1, 200)], **options).inference.is_approximate


def test_recipes_of_other_fits_do_not_mix():
    new, old, other = scaled(0), scaled(1), scaled(2)
    options = {"preprocess": "standardize", "n_eigenvalues": 20}
    fitted = ua.compare({"new": new}, {"old": old}, fit_on="references", **options)
    made = fitted.signatures["new"]
    (step,) = made.recipe.preprocess
    assert re.fullmatch(r"standardize@references-[0-9a-f]{8}", step)
    again = ua.compare({"new": made}, {"old": old}, fit_on="references", **options)
    assert again.distances == fitted.distances
    with pytest.raises(RecipeMismatchError, match=r"preprocess.*@references-"):
        ua.compare({"new": made}, {"old": old}, **options)
    with pytest.raises(RecipeMismatchError, match=r"preprocess.*@references-"):
        ua.compare({"new": made}, {"other": other}, fit_on="references", **options)
    with pytest.raises(InputError, match="was fitted to data that is not here"):
        ua.signature(new, preprocess=step)


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("distance", ["les", "netlsd"])
def test_a_fit_is_saved_reported_and_used_for_additions(tmp_path, distance, loaded):
    sides = {"new": scaled(0)}, {"old": scaled(1)}
    options = {
        "preprocess": ["standardize", "pca:3"],
        "fit_on": "references",
        "distance": distance,
    }
    found = ua.compare(*sides, **options)
    if loaded:
        found.save(tmp_path / "fit.npz")
        found = ua.Comparison.load(tmp_path / "fit.npz")
    assert found.call_options["fit_on"] == "references"
    assert found.call_options["preprocess"] == ("standardize", "pca:3")
    found.report(tmp_path / "fit.html")
    text = (tmp_path / "fit.html").read_text()
    assert "fit_on=&#x27;references&#x27;" in text
    assert "preprocess=(&#x27;standardize&#x27;, &#x27;pca:3&#x27;)" in text
    whole = ua.compare({**sides[0], "late": scaled(5)}, sides[1], **options)
    np.testing.assert_array_equal(found.add({"late": scaled(5)}).distances, whole.distances)
    own = ua.Dataset(scaled(5), preprocess=["standardize", "pca:3"])
    np.testing.assert_array_equal(found.add({"late": own}).distances, whole.distances)
    assert found.add({"late": own}).add({"later": scaled(6)}).names[-1] == "later"


@pytest.mark.parametrize(
    ("references", "options", "error", "message"),
    [
        (None, {}, InputError, "needs references"),
        ({"old": ua.signature(A)}, {}, InputError, "not signatures"),
        ([A], {"fit_on": "datasets"}, InputError, "fit_on='datasets'"),
        ([A], {"preprocess": "log1p"}, InputError, "a step that is fitted.*log1p"),
        ([A], {"preprocess": None}, InputError, r"a step that is fitted.*got \[\]"),
        ([B], {}, NotApplicableError, "has 5 columns where"),
        ([A], {"preprocess": "pca:9"}, InputError, "needs at least 9"),
    ],
    ids=range(7),
)
def test_invalid_fits_raise(references, options, error, message):
    options = {"preprocess": "standardize", "fit_on": "references", **options}
    with pytest.raises(error, match=message):
        ua.compare([A], references, **options)


@pytest.mark.parametrize("distance", ["les", "wasserstein"])
def test_preprocessing_of_the_datasets_is_in_the_recipe_and_the_report(tmp_path, distance):
    """As the same steps given to `compare` are."""
    steps = ("normalize_total", "log1p")
    table = pd.DataFrame(np.abs(cloud(0, 80)), columns=list("xyz")).assign(day=[0, 1] * 40)
    table.to_csv(tmp_path / "t.csv", index=False)
    loaded = ua.load_all(tmp_path / "t.csv", group_by="day", preprocess=steps, nan_policy="omit")
    found = ua.compare(loaded, distance=distance)
    assert found.preparation["preprocess"] == steps
    assert found.preparation["nan_policy"] == "omit"
    found.save(tmp_path / "found.npz")
    found = ua.Comparison.load(tmp_path / "found.npz")
    assert found.call_options["preprocess"] == steps
    found.report(tmp_path / "found.html")
    shown = "preprocess=(&#x27;normalize_total&#x27;, &#x27;log1p&#x27;)"
    assert shown in (tmp_path / "found.html").read_text()
    plain = {name: data.with_options(preprocess=()) for name, data in loaded.items()}
    again = ua.compare(plain, **{**found.call_options, "distance": distance})
    np.testing.assert_array_equal(again.distances, found.distances)


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        (A, "reference"),
        (pd.DataFrame(A), "reference"),
        (sparse.csr_array(A), "reference"),
        (ua.Dataset(A, name="healthy"), "healthy"),
        (ua.signature(A, n_eigenvalues=9), "reference"),
        ([A], "0"),
    ],
)
def test_one_dataset_may_be_the_reference(reference, name):
    found = ua.compare({"a": A, "b": B}, reference, n_eigenvalues=9)
    assert found.reference_names == (name,)
    assert found.distances.shape == (2, 1)
    assert found.distances[0, 0] == 0
    assert found.distances[1, 0] == pytest.approx(ua.distance(B, A, n_eigenvalues=9))


def test_the_file_of_a_reference_may_be_given(tmp_path):
    np.save(tmp_path / "healthy.npy", A)
    found = ua.compare([A, B], tmp_path / "healthy.npy", n_eigenvalues=9)
    assert found.reference_names == ("healthy",)
    assert found.distances[0, 0] == 0


def matrices(kind):
    def gaps(x):
        return np.sqrt(((x[:, None] - x) ** 2).sum(axis=-1))

    clouds = [cloud(seed) for seed in range(3)]
    return {
        "distances": [gaps(x) for x in clouds],
        "affinity": [np.exp(-(gaps(x) ** 2)) for x in clouds],
        "spd": [np.cov(x.T) for x in clouds],
        "graph": [(gaps(x) < 1).astype(float) - np.eye(40) for x in clouds],
    }[kind]


@pytest.mark.parametrize("kind", ["distances", "affinity", "spd", "graph"])
def test_kind_is_an_option_of_every_function(kind, tmp_path):
    values = matrices(kind)
    given = [ua.Dataset(matrix, kind) for matrix in values]
    expected = ua.compare(given).distances
    found = ua.compare(values, kind=kind)
    assert np.array_equal(found.distances, expected)
    assert ua.distance(*values[:2], kind=kind) == pytest.approx(expected[0, 1])
    assert np.array_equal(ua.signature(values[0], kind=kind), ua.signature(given[0]))
    assert np.array_equal(
        ua.compare(values[:2], kind=kind).add({"2": values[2]}).distances, expected
    )
    np.save(tmp_path / "a.npy", values[0])
    assert ua.compare([tmp_path / "a.npy"], values[0], kind=kind).distances[0, 0] == 0


def test_kind_must_agree_with_that_of_a_dataset():
    graph = ua.Dataset(matrices("graph")[0], "graph", name="g")
    with pytest.raises(InputError, match=r"kind='spd' was given, and 0 is of kind 'graph'"):
        ua.compare([ua.Dataset(graph.values, "graph")], kind="spd")
    with pytest.raises(InputError, match=r"kind='graphs' is not known.*Did you mean 'graph'"):
        ua.distance(graph.values, graph.values, kind="graphs")
    with pytest.raises(InputError, match=r"kind='spd' was given, and b is of kind 'points'"):
        ua.distance(np.eye(3), ua.signature(A), kind="spd")


def test_networkx_graphs_are_taken_as_they_are():
    networkx = pytest.importorskip("networkx")
    graphs = [networkx.gnp_random_graph(40, 0.2, seed=seed) for seed in (1, 2)]
    given = [ua.Dataset(networkx.to_numpy_array(graph), "graph") for graph in graphs]
    expected = ua.compare(given).distances
    assert np.allclose(ua.compare(graphs).distances, expected)
    assert np.allclose(ua.compare(graphs, graphs[0]).distances[:, 0], expected[0])
    assert ua.distance(*graphs) == pytest.approx(expected[0, 1])
    with pytest.raises(InputTypeError, match="or a list of datasets, not Graph"):
        ua.compare(graphs[0])


def test_sizes_far_apart_are_said_in_whole_numbers():
    items = [
        ua.Dataset(np.zeros((2, 2)), name="two"),
        ua.Dataset(A[:1].repeat(600, 0), name="many"),
    ]
    with pytest.warns(
        SampleSizeWarning, match=r"300-fold at K=1: 'two' has 2 rows, 'many' has 600"
    ):
        warn_about_sizes(LES.from_options({"n_eigenvalues": 1}), items)
