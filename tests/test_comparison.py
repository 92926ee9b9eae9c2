"""signature(), distance(), compare(): arguments, options, warnings."""

import re
import warnings

import numpy as np
import pytest

import unaligned as ua
from unaligned.errors import (
    AccuracyWarning,
    DataWarning,
    IndefiniteWarning,
    InputError,
    InputTypeError,
    MissingDataWarning,
    NotApplicableError,
    NumericalError,
    OptionError,
    SampleSizeWarning,
    UnalignedWarning,
)
from unaligned.metrics.les import LES
from unaligned.spectra.krylov import Krylov
from unaligned.spectra.landmarks import Landmarks


def cloud(seed, n_samples=40, n_features=3):
    return np.random.default_rng(seed).normal(size=(n_samples, n_features))


A, B = cloud(0), cloud(1, 50, 5)
VERBS = {
    "signature": lambda **options: ua.signature(A, **options),
    "distance": lambda **options: ua.distance(A, B, **options),
    "compare": lambda **options: ua.compare({"a": A, "b": B}, **options),
}

WRONG = [
    ({"n_eigenvalues": 0}, InputError, r"n_eigenvalues=0 must be at least 1"),
    ({"n_eigenvalues": -3}, InputError, r"n_eigenvalues=-3 must be at least 1"),
    (
        {"n_eigenvalues": True},
        InputTypeError,
        r"n_eigenvalues=True must be a whole number, not bool",
    ),
    (
        {"n_eigenvalues": 5.0},
        InputTypeError,
        r"n_eigenvalues=5.0 must be a whole number, not float",
    ),
    ({"n_eigenvalues": "5"}, InputTypeError, r"n_eigenvalues='5' must be a whole number, not str"),
    ({"n_eigenvalues": [5]}, InputTypeError, r"n_eigenvalues=\[5\] must be a whole number"),
    ({"n_eigenvalues": 41}, InputError, r"n_eigenvalues=41 needs at least 41 samples; .* has 40"),
    ({"gamma": -1e-8}, InputError, r"gamma=-1e-08 must be at least 0"),
    ({"gamma": np.inf}, InputError, r"gamma=inf must be finite"),
    ({"gamma": True}, InputTypeError, r"gamma=True must be a number, not bool"),
    (
        {"gamma": "small"},
        InputError,
        r"gamma='small' is not known. Choose one of: auto, cutoff, or a number",
    ),
    ({"gamma": 1j}, InputTypeError, r"gamma=1j must be a number, not complex"),
    ({"gamma": None}, InputTypeError, r"gamma=None must be a number"),
    ({"tol": 0.0}, InputError, r"tol=0.0 must be above 0"),
    ({"tol": np.nan}, InputError, r"tol=nan must be finite"),
    ({"tol": False}, InputTypeError, r"tol=False must be a number"),
    ({"rng": -1}, InputError, r"rng=-1 must be at least 0"),
    ({"rng": 1.5}, InputTypeError, r"rng=1.5 must be None, a whole number or a numpy.random.Gen"),
    ({"rng": True}, InputTypeError, r"rng=True must be None, a whole number"),
    ({"rng": np.random.RandomState(0)}, InputTypeError, r"not RandomState"),
    ({"solver": "exat"}, InputError, r"solver='exat' is not known. Did you mean 'exact'\?"),
    ({"solver": None}, InputError, r"solver=None is not known. Choose one of: auto, exact"),
    (
        {"bandwidth": "medain"},
        InputError,
        r"bandwidth='medain' is not known. Did you mean 'median'",
    ),
    ({"bandwidth": 0}, InputError, r"bandwidth=0 must be above 0"),
    ({"bandwidth": True}, InputTypeError, r"bandwidth=True must be a number"),
    ({"bandwidth_factor": -1}, InputError, r"bandwidth_factor=-1 must be above 0"),
    ({"nan_policy": "drop"}, InputError, r"nan_policy='drop' is not known"),
    ({"preprocess": "scale"}, InputError, r"preprocess step='scale' is not known"),
    (
        {"gama": 1.0},
        OptionError,
        r"no option 'gama'. Did you mean 'gamma'\? Its options are: band",
    ),
    ({"neigs": 5}, OptionError, r"no option 'neigs'"),
    ({"sigma": 1.0}, OptionError, r"no option 'sigma'. Did you mean 'bandwidth'\?"),
    ({"random_state": 0}, OptionError, r"Did you mean 'rng'\?"),
    ({"K": 5}, OptionError, r"no option 'K'. Did you mean 'n_eigenvalues'\?"),
]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(("options", "error", "message"), WRONG, ids=lambda o: str(o)[:30])
def test_invalid_options_raise_in_every_function(verb, options, error, message):
    with pytest.raises(error, match=message):
        VERBS[verb](**options)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"distance": "lse"}, InputError, r"distance='lse' is not known. Did you mean 'les'\?"),
        ({"distance": "MMD"}, InputError, r"distance='MMD' is not known. Did you mean 'mmd'\?"),
        ({"reference": [[0.0]]}, OptionError, r"Did you mean 'references'\?"),
        ({"distance": "FID"}, InputError, r"Did you mean 'frechet'\?"),
        ({"metric": "wasserstein"}, InputError, "between datasets: pass distance='wasserstein'"),
        ({"distance": "emd"}, InputError, r"Did you mean 'wasserstein'\?"),
        ({"distance": 3}, InputError, r"distance=3 is not known"),
        ({"distance": None}, InputError, r"distance=None is not known"),
        ({"squared": 1}, InputTypeError, r"squared=1 must be True or False"),
        ({"squared": "yes"}, InputTypeError, r"squared='yes' must be True or False"),
        (
            {"distance": LES(), "gamma": 1.0},
            InputError,
            r"\['gamma'\] cannot be combined with a dis",
        ),
        ({"distance": min, "gamma": 1.0}, OptionError, r"'callable' has no option 'gamma'"),
        ({"distance": "euclidean", "tol": 1.0}, OptionError, r"'euclidean' has no option 'tol'"),
        ({"n_jobs": 0}, InputError, r"n_jobs=0 must not be zero"),
        ({"n_jobs": 2.0}, InputTypeError, r"n_jobs=2.0 must be a whole number"),
        ({"n_jobs": True}, InputTypeError, r"n_jobs=True must be a whole number"),
        ({"progress": "bar"}, InputTypeError, r"progress='bar' must be True, False or None"),
        ({"subsample": 10.0}, InputTypeError, r"subsample=10.0 must be a whole number"),
        ({"subsample": True}, InputTypeError, r"subsample=True must be a whole number"),
        ({"subsample": 1}, InputError, r"subsample=1 must be at least 2"),
        (
            {"subsample": "comon"},
            InputError,
            r"subsample='comon' must be a number of rows or 'common'",
        ),
        ({"subsample": 41}, InputError, r"subsample=41 is more than dataset 'a' has, 40 rows"),
    ],
    ids=lambda o: str(o)[:30],
)
def test_invalid_options_of_compare_raise(options, error, message):
    with pytest.raises(error, match=message):
        ua.compare({"a": A, "b": B}, **options)


@pytest.mark.parametrize(
    ("a", "b", "label"),
    [
        (A, np.ones((30, 2)), "dataset 'b'"),
        (np.ones((30, 2)), A, "dataset 'a'"),
        (A, ua.Dataset(np.ones((30, 2)), name="flat"), "dataset 'flat'"),
        (ua.Dataset(A, name="x"), ua.Dataset(np.ones((30, 2)), name="x"), "dataset 'b'"),
    ],
)
def test_distance_names_the_invalid_dataset(a, b, label):
    with pytest.raises(InputError, match=f"^{label}: "):
        ua.distance(a, b)


def test_signature_of_a_signature_raises():
    with pytest.raises(InputTypeError, match="data is a Signature already"):
        ua.signature(ua.signature(A))


def test_k_is_the_smallest_size_and_at_most_200():
    data = {"a": cloud(0, 30), "b": cloud(1, 25)}
    assert ua.compare(data).options["n_eigenvalues"] == 25
    assert ua.compare(data, [cloud(2, 20)]).options["n_eigenvalues"] == 20
    assert ua.signature(cloud(0, 210)).n_eigenvalues == 200


@pytest.mark.parametrize("distance", [LES, LES(squared=True), "les"])
def test_a_distance_may_be_a_name_an_object_or_a_class(distance):
    found = ua.distance(A, B, distance)
    expected = ua.distance(A, B, squared=isinstance(distance, LES))
    assert found == expected


def test_callable_gets_preprocessed_arrays():
    seen = []

    def one_sided(a, b):
        seen.append((a.shape, b.shape))
        return np.float32(a[0, 0] - b[0, 0])

    table = np.abs(A)
    result = ua.compare([table, 2 * table], distance=one_sided, preprocess="log1p")
    gap = np.log1p(table[0, 0]) - np.log1p(2 * table[0, 0])
    assert np.allclose(result.distances, [[0.0, gap], [-gap, 0.0]], rtol=1e-6)
    assert len(seen) == 4
    assert np.isnan(result.error_bounds).all()
    assert result.signatures == {}


@pytest.mark.parametrize("value", [np.nan, None, "far", [1.0, 2.0], 1j])
def test_callable_must_return_a_number(value):
    with pytest.raises(NumericalError, match=re.escape(f"returned {value!r}; it must return one")):
        ua.distance(A, B, lambda a, b: value)


def test_errors_of_a_callable_propagate():
    def broken(a, b):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        ua.distance(A, B, broken)


def test_progress_goes_to_stderr_only_if_requested(capsys):
    ua.compare([A, B], progress=False)
    assert capsys.readouterr() == ("", "")
    ua.compare([A, B], progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "describing" in shown.err


@pytest.mark.parametrize("option", ["n_jobs", "progress", "references", "datasets"])
def test_options_of_compare_raise_in_distance(option):
    with pytest.raises(OptionError, match=f"two datasets and has no option '{option}'.*compare"):
        ua.distance(A, B, **{option: None})


@pytest.mark.parametrize(
    ("category", "call"),
    [
        (SampleSizeWarning, lambda: ua.distance(A, cloud(2, 200), n_eigenvalues=5)),
        (SampleSizeWarning, lambda: ua.compare([A, cloud(2, 200)], n_eigenvalues=5)),
        (DataWarning, lambda: ua.Dataset([[1.0], [np.nan]], nan_policy="omit")),
        (DataWarning, lambda: ua.distance(np.vstack([A, A * np.nan]), B, nan_policy="omit")),
        (IndefiniteWarning, lambda: ua.signature(A, metric="cosine")),
        (AccuracyWarning, lambda: ua.signature(B, solver=Krylov(max_columns=5, block_size=2))),
        (AccuracyWarning, lambda: ua.signature(B, solver=Landmarks(max_landmarks=2))),
    ],
)
def test_warnings_point_at_the_line_of_the_caller(category, call):
    with pytest.warns(category) as caught:
        call()
    assert {warning.filename for warning in caught} == {__file__}


def test_parallel_work_leaves_warning_filters_alone():
    # `catch_warnings` in two threads at once leaves the filters of whichever ends last.
    clouds = [cloud(seed, 620, 12) for seed in range(6)]
    before = warnings.showwarning, list(warnings.filters)
    result = ua.compare(clouds, n_jobs=3, n_eigenvalues=30)
    assert {s.stats["chosen"] for s in result.signatures.values()} == {"krylov"}
    assert (warnings.showwarning, list(warnings.filters)) == before


def test_robust_limits_the_default_k():
    stained = np.vstack([cloud(0, 60), [[1e3, 0.0, 0.0], [0.0, 1e3, 0.0]]])
    alone = ua.signature(stained, robust=True)
    assert alone.n_eigenvalues == 62 - len(alone.stats["rows_set_aside"]) <= 60
    both = ua.compare({"stained": stained, "clean": cloud(1, 90)}, robust=True)
    assert both.signatures["clean"].n_eigenvalues == alone.n_eigenvalues


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (ua.Dataset(np.diag([1.0, 1, 0]), "affinity"), {}, "dataset 'x': 1 rows of the affinity"),
        (A, {"preprocess": "pca:9"}, "dataset 'x': preprocess step 'pca:9' needs"),
        (A, {"metric": "cosine", "solver": "nystrom"}, "dataset 'x': solver='nystrom' needs"),
        (ua.Dataset(1e308 * np.eye(30), "spd"), {}, "dataset 'x' .* trace that overflows"),
    ],
)
def test_late_errors_name_the_dataset(data, options, message):
    with pytest.raises(InputError, match=message):
        ua.compare({"x": data}, **options)


def test_distance_computes_one_pair_only():
    seen = []

    def counted(a, b):
        seen.append((len(a), len(b)))
        return 1.0

    rng = np.random.default_rng(0)
    assert ua.distance(rng.normal(size=(5, 2)), rng.normal(size=(6, 2)), counted) == 1.0
    assert seen == [(5, 6)]


def test_distance_describes_equal_data_once(monkeypatch):
    seen = []
    describe = LES.describe
    monkeypatch.setattr(
        LES, "describe", lambda self, data, *rest: seen.append(1) or describe(self, data, *rest)
    )
    assert ua.distance(A, A.copy(order="F")) == 0.0
    assert len(seen) == 1
    assert ua.distance(A, ua.signature(A)) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble"])
def test_non_finite_values_raise(value, dtype):
    wrong = np.full((40, 3), 100.0, dtype=dtype)  # whose squares overflow in half precision
    wrong[7, 1] = value
    with pytest.raises(InputError, match=r"1 of 40 rows \(first in row 7\)"):
        ua.Dataset(wrong)


def test_slow_pairs_show_progress(capsys):
    clouds = list(np.random.default_rng(0).normal(size=(3, 20, 2)))
    ua.compare(clouds, distance="mmd", progress=True)
    assert "comparing" in capsys.readouterr().err
    ua.compare(clouds, distance="les", n_eigenvalues=5, progress=True)
    assert "comparing" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["mmd", "frechet", "crosslid", "cka"])
def test_comparisons_of_points_grow_and_are_saved(name, tmp_path):
    clouds = dict(zip("abc", np.random.default_rng(0).normal(size=(3, 25, 2)), strict=True))
    whole = ua.compare(clouds, distance=name)
    begun = ua.compare({key: clouds[key] for key in "ab"}, distance=name)
    assert np.allclose(begun.add({"c": clouds["c"]}).distances, whole.distances, atol=1e-12)
    whole.save(tmp_path / "kept.npz")
    assert np.array_equal(ua.Comparison.load(tmp_path / "kept.npz").distances, whole.distances)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("affinity", {"n_neighbors": 5}, "n_neighbors=5 has no effect on .* kind 'affinity'"),
        ("graph", {"n_neighbors": 5}, "n_neighbors=5 has no effect on .* kind 'graph'"),
        ("spd", {"metric": "cosine"}, "metric='cosine' has no effect on .* kind 'spd'"),
        (
            "distances",
            {"metric": "cosine"},
            "metric='cosine' has no effect on .* kind 'distances'",
        ),
    ],
)
def test_options_without_effect_raise(kind, options, message):
    values = np.eye(30) if kind == "spd" else np.ones((30, 30)) - np.eye(30)
    with pytest.raises(InputError, match=message):
        ua.signature(ua.Dataset(values, kind), n_eigenvalues=5, **options)


def clouds_of_angles(n):
    return {f"x{i}": cloud(i, 240 + i, 3) for i in range(n)}


@pytest.mark.parametrize("options", [{}, {"n_jobs": 2}, {"inference": True}])
def test_indefinite_datasets_warn_once_per_call(options):
    with pytest.warns(
        IndefiniteWarning, match=r"This is the worst of 4 such cases; .*'x"
    ) as caught:
        found = ua.compare(clouds_of_angles(4), metric="cosine", **options)
    assert len(caught) == 1
    negative = {n: s.stats["negative_mass"] for n, s in found.signatures.items()}
    worst = max(negative, key=negative.get)
    assert str(caught[0].message).startswith(f"dataset '{worst}': ")
    assert f"{negative[worst]:.1%}" in str(caught[0].message)
    with pytest.warns(IndefiniteWarning, match="dataset 'new': ") as caught:
        found.add({"new": cloud(9, 240, 3)})
    assert len(caught) == 1


def test_a_test_of_indefinite_blocks_warns_once():
    a, b = clouds_of_angles(2).values()
    with pytest.warns(
        IndefiniteWarning,
        match=r"^blocks of dataset '[ab]': .* of 2 such cases; .* blocks of '[ab]'",
    ) as caught:
        ua.permutation_test(a, b, metric="cosine")
    assert len(caught) == 1


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_missed_tolerances_and_dropped_rows_warn_once_per_call(n_jobs):
    clouds = {
        name: np.vstack([x, x[: i + 1] * np.nan])
        for i, (name, x) in enumerate(clouds_of_angles(3).items())
    }
    solver = Krylov(max_columns=40, block_size=2)
    with pytest.warns(UnalignedWarning) as caught:
        ua.compare(clouds, nan_policy="omit", solver=solver, n_eigenvalues=30, n_jobs=n_jobs)
    messages = {note.category: str(note.message) for note in caught}
    assert len(caught) == len(messages) == 2
    assert messages[MissingDataWarning] == (
        "dataset 'x2': dropped 3 of 245 rows with NaN or infinity. This is the worst of 3 such "
        "cases; the others: 'x0', 'x1'."
    )
    assert "krylov stopped at" in messages[AccuracyWarning]
    assert "the worst of 3 such cases" in messages[AccuracyWarning]


def test_several_distances_give_one_comparison_each():
    clouds = {"a": A, "b": cloud(1), "c": cloud(2)}
    found = ua.compare(clouds, distance=["les", "mmd", "netlsd"], n_eigenvalues=9, n_probes=5)
    assert list(found) == ["les", "mmd", "netlsd"]
    options = {
        "les": {"n_eigenvalues": 9},
        "mmd": {},
        "netlsd": {"n_probes": 5},
    }
    for name, one in found.items():
        expected = ua.compare(clouds, distance=name, **options[name])
        assert np.array_equal(one.distances, expected.distances)
        assert one.distance_name == name
    assert list(ua.compare(clouds, distance=("mmd",))) == ["mmd"]


def test_several_distances_of_any_kind():
    def gap(a, b):
        return abs(len(a) - len(b))

    found = ua.compare([A, B], distance=[LES(), gap, "shape-dna"])
    assert list(found) == ["les", "gap", "shape-dna"]
    assert found["gap"].distances[0, 1] == 10


@pytest.mark.parametrize(
    ("distances", "error", "message"),
    [
        ([], InputError, r"distance=\[\] names no distance. Give at least one"),
        (["les", "les"], InputError, "'les' is given twice"),
        (["les", "lse"], InputError, "distance='lse' is not known"),
        (["les", "mmd"], NotApplicableError, "'mmd' does not apply"),  # before any is computed
    ],
)
def test_invalid_lists_of_distances_raise(distances, error, message):
    with pytest.raises(error, match=message):
        ua.compare([A, B], distance=distances)
    with pytest.raises(OptionError, match="mmd or cka has no option 'n_eigenvalues'"):
        ua.compare([A, A], distance=["mmd", "cka"], n_eigenvalues=3)
    with pytest.raises(InputTypeError, match=r"must be one distance. compare\(\[a, b\]"):
        ua.distance(A, B, distance=["les", "mmd"])


def test_a_signature_is_an_array():
    found = ua.signature(A, n_eigenvalues=7)
    assert np.array_equal(np.asarray(found), found.values)
    assert np.asarray(found, dtype=np.float32).dtype == np.float32
    assert np.stack([found, found]).shape == (2, 7)
    copy = np.array(found)
    copy[:] = 0
    assert found.values.any()


@pytest.mark.parametrize("seed", range(3))
def test_l2_is_recommended_for_the_cosine_kernel_and_is_positive(seed):
    points = np.abs(cloud(seed, 60, 6))
    with pytest.warns(IndefiniteWarning, match=r"Pass preprocess=\['l2'\] in place of metric="):
        ua.signature(points, metric="cosine", n_eigenvalues=60)
    found = ua.signature(points, preprocess=["l2"], n_eigenvalues=60)  # warnings are errors
    assert found.bound_kind == "exact"
    assert np.allclose(found.values, ua.signature(2 * points, preprocess="l2").values)
