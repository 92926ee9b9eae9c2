"""Comparison: shape, names, growing, files."""

import contextlib

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.cluster.hierarchy import is_valid_linkage, leaves_list

import unaligned as ua
from unaligned.embedding import embed, linkage
from unaligned.errors import (
    DataWarning,
    InputError,
    InputTypeError,
    NotApplicableError,
    RecipeMismatchError,
    SampleSizeWarning,
)
from unaligned.metrics.base import SpectralDistance
from unaligned.metrics.registry import DISTANCES


def cloud(seed, n_samples=40, n_features=3):
    return np.random.default_rng(seed).normal(size=(n_samples, n_features))


DATA = {f"d{i}": cloud(i, 40 + i, 1 + i) for i in range(5)}
K = {"n_eigenvalues": 15}


def part(*indices):
    return {f"d{i}": DATA[f"d{i}"] for i in indices}


def assert_same(first, second, exactly=True):
    assert first.names == second.names
    assert first.reference_names == second.reference_names
    same = np.array_equal if exactly else np.allclose
    assert same(first.distances, second.distances)
    assert same(first.error_bounds, second.error_bounds)


@pytest.fixture
def described(monkeypatch):
    """The names of the datasets that were described, one by one."""
    names = []
    original = SpectralDistance.describe

    def counting(self, dataset, seed, engine=None):
        names.append(dataset.name)
        return original(self, dataset, seed, engine)

    monkeypatch.setattr(SpectralDistance, "describe", counting)
    return names


@pytest.fixture
def compared(monkeypatch):
    """The pairs that were compared, one by one."""
    pairs = []
    original = SpectralDistance.compare

    def counting(self, first, second):
        pairs.append((first.name, second.name))
        return original(self, first, second)

    monkeypatch.setattr(SpectralDistance, "compare", counting)
    return pairs


def test_square_comparison():
    result = ua.compare(DATA, **K)
    assert result.names == result.reference_names == tuple(DATA)
    assert result.distances.shape == result.error_bounds.shape == (5, 5)
    assert result["d1", "d3"] == result.distances[1, 3] == ua.distance(*part(1, 3).values(), **K)
    frame = result.to_frame()
    assert frame.loc["d1", "d3"] == result["d1", "d3"]
    assert np.array_equal(frame.to_numpy(), result.distances)
    assert result["d2"].to_dict() == dict(zip(result.names, result.distances[2], strict=True))
    assert result.signatures["d0"].n_eigenvalues == 15
    assert "les" in repr(result)
    assert "d4" in str(result)


def test_rectangular_comparison_is_a_block_of_the_square_one():
    square = ua.compare(DATA, **K)
    corner = ua.compare(part(0, 1), part(2, 3, 4), **K)
    assert corner.distances.shape == (2, 3)
    assert not corner.is_square
    assert np.allclose(corner.distances, square.distances[:2, 2:], rtol=0, atol=1e-12)
    assert corner["d1", "d4"] == corner.distances[1, 2]
    assert list(corner.to_frame().columns) == ["d2", "d3", "d4"]


def test_rows_and_references_may_share_names():
    first, second = ({"layer1": cloud(i), "layer2": cloud(i + 5)} for i in (0, 1))
    result = ua.compare(first, second, **K)
    alone = ua.signature(second["layer1"], **K).values
    assert np.array_equal(result.reference_signatures["layer1"].values, alone)
    assert not np.array_equal(result.signatures["layer1"].values, alone)


def test_comparison_of_one_dataset_is_zero():
    assert np.array_equal(ua.compare({"a": cloud(0)}).distances, [[0.0]])


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("dd1", r"There is no row 'dd1'. Did you mean 'd1'\? Names: d0, d1"),
        (("d0", "x"), r"There is no column 'x'"),
        (("d0", "d1", "d2"), r"must be one name or two, row and column"),
        (0, r"There is no row 0"),
    ],
)
def test_unknown_names_raise(key, message):
    with pytest.raises(InputError, match=message):
        ua.compare(part(0, 1, 2), **K)[key]


@pytest.mark.parametrize("loaded", [False, True], ids=["fresh", "loaded"])
@pytest.mark.parametrize("solver", ["exact", "nystrom"])
@pytest.mark.parametrize("references", [None, part(0, 4)], ids=["square", "rectangular"])
def test_adding_equals_computing_at_once_and_computes_nothing_twice(
    references, solver, loaded, described, compared, tmp_path
):
    options = {**K, "solver": solver, "rng": 3}
    result = ua.compare(part(0, 1), references, **options)
    if loaded:
        result.save(tmp_path / "file")
        result = ua.Comparison.load(tmp_path / "file")
    described.clear()
    compared.clear()
    grown = result.add(part(2, 3)).add({"last": DATA["d4"]})
    assert described == ["d2", "d3", "last"]
    new = {"d2", "d3", "last"}
    assert len(set(compared)) == len(compared)
    assert all(new & set(pair) for pair in compared)
    at_once = ua.compare({**part(0, 1, 2, 3), "last": DATA["d4"]}, references, **options)
    assert_same(grown, at_once)
    assert result.names == ("d0", "d1"), "the old comparison stays as it is"


def test_equal_data_is_described_once(described):
    result = ua.compare({"a": DATA["d0"], "b": DATA["d0"].copy(), "c": DATA["d1"]}, **K)
    assert sorted(described) == ["a", "c"]
    assert result["a", "b"] == 0.0
    assert result.signatures["b"].name == "b"


def test_added_datasets_are_preprocessed_as_the_others_were():
    data = {name: np.abs(values) for name, values in DATA.items()}
    options = {**K, "preprocess": ["log1p"]}
    first = {name: data[name] for name in ("d0", "d1")}
    at_once = ua.compare({**first, "d2": data["d2"]}, **options)
    assert_same(ua.compare(first, **options).add({"d2": data["d2"]}), at_once)
    own = {n: ua.Dataset(v, preprocess="log1p") for n, v in data.items()}
    grown = ua.compare({n: own[n] for n in first}, **K)
    assert_same(grown.add({"d2": data["d2"]}), at_once)
    assert_same(grown.add({"d2": own["d2"]}), at_once)


def test_added_datasets_of_a_callable_are_preprocessed_too():
    options = {"distance": lambda a, b: float(abs(a.mean() - b.mean())), "preprocess": "log1p"}
    data = {name: np.abs(values) for name, values in part(0, 1, 2).items()}
    first = {name: data[name] for name in ("d0", "d1")}
    grown = ua.compare(first, **options).add({"d2": data["d2"]})
    assert np.array_equal(grown.distances, ua.compare(data, **options).distances)


def test_added_datasets_are_subsampled_and_cleaned_as_the_others_were(tmp_path):
    options = {**K, "subsample": 20, "nan_policy": "omit", "rng": 1}
    broken = DATA["d2"].copy()
    broken[0] = np.nan
    result = ua.compare(part(0, 1), **options)
    result.save(tmp_path / "file")
    with pytest.warns(DataWarning, match="'d2': dropped 1"):
        at_once = ua.compare({**part(0, 1), "d2": broken}, **options)
    for comparison in (result, ua.Comparison.load(tmp_path / "file")):
        with pytest.warns(DataWarning, match="'d2': dropped 1"):
            grown = comparison.add({"d2": broken})
        assert_same(grown, at_once)
        assert grown.signatures["d2"].n_samples == 20
    with pytest.raises(InputError, match=r"subsample=20 is more than dataset 'few' has, 16 rows"):
        result.add({"few": cloud(0, 16)})


def difference_of_means(a, b):
    return float(abs(a.mean() - b.mean()))


@pytest.mark.parametrize("references", [False, True], ids=["square", "rectangular"])
@pytest.mark.parametrize("distance", [*DISTANCES, difference_of_means])
def test_data_changed_after_comparing_raises_or_has_no_effect(distance, references):
    for package in ("ripser", "ot", "gudhi"):
        pytest.importorskip(package)
    options = {"distance": distance}
    if distance == "geometry-score":
        options |= {"n_rounds": 2, "n_landmarks": 8}
    changed, new = cloud(0), {"c": cloud(2)}
    first, others = ({"a": cloud(1)}, {"b": changed}) if references else ({"a": changed}, None)
    result = ua.compare(first, others, **options)
    at_once = ua.compare({**first, **new}, others, **options)
    assert np.array_equal(result.add(new).distances, at_once.distances)
    changed[:5] *= 2.0
    with contextlib.suppress(InputError):  # what it says is tested below
        assert np.array_equal(result.add(new).distances, at_once.distances)


@pytest.mark.parametrize("distance", ["mmd", "crosslid", difference_of_means])
@pytest.mark.parametrize("changed", ["first", "added"])
def test_adding_to_changed_points_raises(distance, changed):
    data = {name: cloud(i) for i, name in enumerate(("first", "added", "last"))}
    if callable(distance):
        data = {name: sparse.csr_array(values) for name, values in data.items()}
    result = ua.compare({"first": data["first"]}, distance=distance).add({"added": data["added"]})
    values = data[changed].data if callable(distance) else data[changed]
    values[:] = np.random.default_rng(0).permutation(values)
    with pytest.raises(InputError, match=rf"values of dataset '{changed}' were changed after"):
        result.add({"last": data["last"]})


def test_adding_a_much_larger_dataset_warns():
    result = ua.compare(part(0, 1), **K)
    with pytest.warns(SampleSizeWarning, match="'d0' has 40 rows, 'big' has 200") as caught:
        result.add({"big": cloud(0, 200)})
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("added", "error", "message"),
    [
        ({"d0": cloud(9)}, InputError, r"the name 'd0' is in the comparison already"),
        ([cloud(9)], InputTypeError, r"datasets must be a dict of name -> data, not list"),
        ({"few": cloud(9, 10)}, InputError, r"n_eigenvalues=15 needs.*dataset 'few' has 10"),
        ({}, InputError, r"datasets is empty"),
        ({"s": ua.signature(cloud(9))}, RecipeMismatchError, r"n_eigenvalues=15 .* 40 values"),
        (
            {"s": ua.signature(cloud(9), gamma=1e-3, n_eigenvalues=15)},
            RecipeMismatchError,
            r"gamma: 1e-08 and 0.001",
        ),
    ],
    ids=["taken", "list", "too few", "nothing", "other K", "other gamma"],
)
def test_invalid_additions_raise(added, error, message):
    with pytest.raises(error, match=message):
        ua.compare(part(0, 1), **K).add(added)


CASES = {
    "square": lambda: ua.compare(DATA, **K),
    "rectangular": lambda: ua.compare(part(0, 1), part(1, 2, 3), **K),
    "nystrom": lambda: ua.compare(DATA, solver="nystrom", rng=np.random.default_rng(0), **K),
    "options": lambda: ua.compare(DATA, squared=True, gamma=1e-5, bandwidth="mean", **K),
    "numpy options": lambda: ua.compare(DATA, gamma=np.float32(1e-5), n_eigenvalues=np.int32(9)),
    "preprocessed": lambda: ua.compare(DATA, preprocess="standardize", subsample=30, **K),
    "imd": lambda: ua.compare(DATA, distance="imd-diffusion", **K),
    "aligned": lambda: ua.compare({"a": cloud(0), "b": cloud(1)}, distance="euclidean"),
    "callable": lambda: ua.compare(part(0, 1), distance=lambda a, b: 1.0),
}


@pytest.mark.parametrize("case", CASES)
def test_saved_comparison_loads_bit_for_bit(case, tmp_path):
    result = CASES[case]()
    result.save(tmp_path / "file")
    loaded = ua.Comparison.load(tmp_path / "file")
    assert np.array_equal(loaded.distances, result.distances)
    assert np.array_equal(loaded.error_bounds, result.error_bounds, equal_nan=True)
    for name in ("names", "reference_names", "distance_name", "seed", "is_square", "preparation"):
        assert getattr(loaded, name) == getattr(result, name), name
    for side in ("signatures", "reference_signatures"):
        ours, theirs = getattr(result, side), getattr(loaded, side)
        assert list(ours) == list(theirs)
        for name, signature in ours.items():
            assert np.array_equal(signature.values, theirs[name].values)
            assert signature.recipe == theirs[name].recipe
    if case not in ("callable",):
        assert loaded.distance == result.distance


@pytest.mark.parametrize("case", ["aligned", "callable"])
def test_what_was_not_saved_raises_when_needed(case, tmp_path):
    result = CASES[case]()
    result.save(tmp_path / "file")
    with pytest.raises(InputError, match=r"cannot grow: distance '.*Run compare\(\) on all"):
        ua.Comparison.load(tmp_path / "file").add({"new": cloud(7)})


@pytest.mark.parametrize("method", ["average", "single", "complete", "weighted"])
def test_linkage_is_valid_and_merges_the_nearest_first(method):
    result = ua.compare(DATA, **K)
    linkage = result.linkage(method)
    assert is_valid_linkage(linkage)
    off_diagonal = result.distances[np.triu_indices(5, 1)]
    assert linkage[0, 2] == pytest.approx(off_diagonal.min())


def test_leaves_side_by_side_are_near():
    places = np.random.default_rng(0).permutation(12).astype(float)
    line = np.abs(np.subtract.outer(places, places))
    order = places[leaves_list(linkage(line))]
    assert np.abs(np.diff(order)).max() == 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ua.compare(part(0, 1), **K).linkage("mean"), r"method='mean' is not known"),
        (lambda: ua.compare(part(0)).linkage(), r"linkage\(\) needs at least two datasets"),
        (
            lambda: ua.compare(part(0), part(1)).linkage(),
            r"linkage\(\) needs distances within one",
        ),
        (lambda: ua.compare(part(0), part(1)).embed(), r"1 dataset against 1 reference\."),
        (
            lambda: ua.compare(part(0, 1), **K).embed(),
            r"n_components=2 needs more than 2 datasets",
        ),
    ],
)
def test_rectangular_comparison_raises_where_square_is_needed(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize("method", ["ward", "centroid", "median"])
def test_linkages_for_euclidean_distances_raise(method):
    with pytest.raises(InputError, match=f"method='{method}' is valid for Euclidean .* 'average'"):
        ua.compare(part(0, 1), **K).linkage(method)


def test_descriptors_of_a_pairwise_distance_raise():
    with pytest.raises(InputError, match="has descriptors of 'les', which stores none"):
        DISTANCES["les"].from_options({}).from_arrays({})


@pytest.mark.parametrize("rectangular", [False, True])
@pytest.mark.parametrize(
    ("name", "new", "message"),
    [
        ("wasserstein", cloud(7, 40, 1), r"'old' has 3|'new' has 1 columns"),
        ("wasserstein", cloud(7, 40, 4), r"'new' has 4 columns"),
        ("frechet", cloud(7, 40, 4), r"'new' has 4 columns"),
        ("frechet", pd.DataFrame(cloud(7), columns=[*"xzy"]), r"'new' has 'z' as column 1"),
        ("cka", cloud(7, 30), r"it compares row i with row i, and dataset 'new' has 30 rows"),
        ("euclidean", ua.Dataset(np.eye(40), kind="spd"), r"'new' is a matrix taken as it is"),
    ],
)
def test_adding_incomparable_data_raises(name, new, message, rectangular, tmp_path):
    old = {"old": pd.DataFrame(cloud(1), columns=[*"xyz"]), "older": cloud(2)}
    found = ua.compare(old, {"reference": old["old"]} if rectangular else None, distance=name)
    found.save(tmp_path / "file")
    kept = [found, found.add({"third": cloud(5)})]
    if name == "frechet":  # the others need the data itself
        kept.append(ua.Comparison.load(tmp_path / "file"))
    for comparison in kept:
        with pytest.raises(NotApplicableError, match=f"does not apply: .*{message}"):
            comparison.add({"new": new})
        more = comparison.add({"fitting": cloud(8)})
        assert more["fitting"].iloc[0] > 0


def test_feature_names_are_saved_only_where_checked(tmp_path):
    names = [f"gene {i}" for i in range(5000)]
    sizes = []
    for feature_names in (None, names):
        few = np.random.default_rng(0).normal(size=(3, 8, 5000))
        named = {f"{i}": ua.Dataset(x, feature_names=feature_names) for i, x in enumerate(few)}
        ua.compare(named, distance="imd").save(tmp_path / "file")
        sizes.append((tmp_path / "file").stat().st_size)
    assert abs(sizes[1] - sizes[0]) < 100


def labelled():
    return {n: ua.Dataset(v, metadata={"width": v.shape[1], "site": n}) for n, v in DATA.items()}


def test_metadata_entry_is_correlated_by_name():
    result = ua.compare(labelled(), **K)
    assert result.correlate("width") == result.correlate([1, 2, 3, 4, 5])
    with pytest.raises(InputError, match=r"values='with' is not in the metadata.*mean 'width'"):
        result.correlate("with")
    with pytest.raises(InputTypeError, match=r"must be numbers, one per dataset"):
        result.correlate("site")
    grown = result.add({"new": cloud(9)})
    with pytest.raises(InputError, match=r"values has no value for dataset 'new'"):
        grown.correlate("width")


@pytest.mark.parametrize(
    ("names", "texts"),
    [
        ((0, 7), ("0", "7")),
        ((np.int64(3), 2.5), ("3", "2.5")),
        (pd.period_range("2020-01", periods=2, freq="M"), ("2020-01", "2020-02")),
        ((pd.Timestamp("2020-01-02"), "x"), ("2020-01-02 00:00:00", "x")),
    ],
)
def test_names_may_be_numbers_and_dates(names, texts):
    result = ua.compare(dict(zip(names, part(0, 1).values(), strict=True)), **K)
    assert result.names == texts
    assert result[names[0], names[1]] == result[texts] == result.distances[0, 1]
    assert result[names[1]].to_list() == result.distances[1].tolist()
    with pytest.raises(InputError, match=f"the name '{texts[0]}' is in the comparison already"):
        result.add({names[0]: cloud(9)})
    grown = result.add({-1: cloud(9)})
    assert grown.names == (*texts, "-1")
    assert -1 <= grown.correlate({names[0]: 1, names[1]: 2, -1: 5}) <= 1


def test_asarray_gives_the_distances():
    result = ua.compare(part(0, 1, 2), **K)
    assert np.array_equal(np.asarray(result), result.distances)
    assert np.asarray(result, dtype=np.float32).dtype == np.float32
    copy = np.array(result)
    copy[:] = 0
    assert result.distances.any()
    assert np.max(result) == result.distances.max()
    with pytest.raises(TypeError, match="not iterable"):
        iter(result)


def test_html_repr_escapes_names():
    named = {"<b>x</b>": DATA["d0"], **part(1, 2)}
    shown = ua.compare(named, **K)._repr_html_()
    assert shown.startswith("<p>Comparison(les, 3 datasets, N=40…42, K=15, gamma=1e-08)</p>")
    assert "<td>0.0000</td>" in shown
    assert "<b>" not in shown


def test_small_comparison_is_printed_in_full():
    result = ua.compare({f"{n} of a long name": v for n, v in DATA.items()}, **K)
    assert all(name in str(result).splitlines()[1] for name in result.names)


def test_large_comparison_is_truncated():
    result = ua.compare({f"sample {i}": cloud(i, 20) for i in range(40)}, n_eigenvalues=5)
    lines = str(result).splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split("  ")[0] for line in lines[6:9]] == ["sample 4", "…", "sample 35"]
    assert result._repr_html_().count("<tr") <= 25


@pytest.mark.parametrize("name", ["c.csv", "c.pkl", "day.1"])
def test_saving_with_another_suffix_raises(name, tmp_path):
    message = rf"path='.*{name}' must end in \.npz\. For a table .*to_frame\(\)\.to_csv\(path\)"
    with pytest.raises(InputError, match=message):
        ua.compare(part(0, 1), **K).save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_negative_estimates_are_clipped_in_embeddings(tmp_path):
    rng = np.random.default_rng(0)
    x, y, z, w = rng.normal(size=(4, 60, 2))
    clouds = {"a": x, "b": y, "c": z, "far": w + 9.0}
    result = ua.compare(clouds, distance="mmd", unbiased=True)
    assert result.distances.min() < 0  # what the estimate says stays
    linkage = result.linkage()
    assert is_valid_linkage(linkage)
    assert linkage[-1, 2] > 0.5
    assert linkage[:-1, 2].max() < 0.1
    result.plot("dendrogram")
    result.report(tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_diagonal_does_not_affect_embeddings():
    clouds = list(np.random.default_rng(0).normal(size=(3, 150, 3)) * [[[1]], [[1.5]], [[3]]])
    result = ua.compare(clouds, distance="crosslid")
    assert result.distances.diagonal().min() > 1
    hollow = result.distances - np.diag(result.distances.diagonal())
    assert np.allclose(result.embed(n_components=1), embed(hollow, n_components=1), atol=1e-9)
