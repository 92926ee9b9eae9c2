"""Datasets as samples of scikit-learn."""

import pickle
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.cluster import DBSCAN, KMeans
from sklearn.exceptions import NotFittedError
from sklearn.manifold import TSNE
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    LeaveOneGroupOut,
    cross_val_score,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils.validation import check_is_fitted, validate_data

import unaligned as ua
from unaligned.errors import (
    IndefiniteWarning,
    InputError,
    InputTypeError,
    NotApplicableError,
    RecipeMismatchError,
    SampleSizeWarning,
)
from unaligned.metrics.base import Distance
from unaligned.sklearn import DistanceTransformer, KernelFromDistance, SignatureTransformer

with pytest.MonkeyPatch.context() as patch:
    # scikit-learn 1.6 asks for it where array-api-compat is installed; SciPy is already loaded.
    patch.setenv("SCIPY_ARRAY_API", "1")
    from sklearn.utils import estimator_checks

K = 12


def collection(seed=0, n_each=4, n_samples=40):
    """Return clouds of 2 and 5 dimensions in spaces of 5 to 7 columns, and the dimensions."""
    rng = np.random.default_rng(seed)
    y = np.array([2, 5] * n_each)
    clouds = []
    for i, d in enumerate(y):
        points = np.zeros((n_samples, 5 + i % 3))
        points[:, :d] = rng.normal(size=(n_samples, d))
        clouds.append(points)
    return clouds, y


@pytest.fixture
def spectra(monkeypatch):
    """Return the list of datasets whose spectrum was computed."""
    computed = []
    describe = ua.sklearn.SignatureTransformer._described

    def counted(self, method, datasets, cache=None):
        computed.extend(datasets.values())
        return describe(self, method, datasets, cache)

    monkeypatch.setattr(ua.sklearn.SignatureTransformer, "_described", counted)
    return computed


def test_rows_are_signatures_and_their_distances_are_les():
    clouds, _ = collection()
    rows = SignatureTransformer(K).fit_transform(clouds)
    assert rows.shape == (8, K)
    expected = ua.compare(clouds, n_eigenvalues=K)
    for row, signature in zip(rows, expected.signatures.values(), strict=True):
        assert np.allclose(row, signature.values, atol=1e-8)
    gaps = np.linalg.norm(rows[:, None] - rows, axis=-1)
    assert np.allclose(gaps, expected.distances, atol=1e-6)


@pytest.mark.parametrize("distance", ["les", "imd", "wasserstein", "frechet"])
def test_distances_equal_compare(distance):
    clouds = list(np.random.default_rng(0).normal(size=(5, 30, 3)))
    model = DistanceTransformer(distance)
    assert np.allclose(
        model.fit_transform(clouds), ua.compare(clouds, distance=distance).distances, atol=1e-8
    )
    new = [np.random.default_rng(7).normal(size=(30, 3))]
    expected = ua.compare(new, clouds, distance=distance).distances
    assert np.allclose(model.transform(new), expected, atol=1e-8)
    assert np.array_equal(model.fit(clouds).transform(new), model.transform(new))


def test_references_may_be_given():
    clouds, _ = collection()
    model = DistanceTransformer(references={"x": clouds[0], "y": clouds[1]})
    found = model.set_output(transform="pandas").fit_transform(clouds)
    assert list(found.columns) == ["les_x", "les_y"]
    assert np.allclose(found, ua.compare(clouds, clouds[:2]).distances, atol=1e-8)


@pytest.mark.parametrize(
    "steps",
    [
        (SignatureTransformer(), SVC()),
        (SignatureTransformer(gamma="auto"), KNeighborsClassifier(1)),
        (DistanceTransformer(), KNeighborsClassifier(1, metric="precomputed")),
        (
            DistanceTransformer("shape-dna"),
            KNeighborsClassifier(1, metric="precomputed"),
        ),
        (DistanceTransformer(), KernelFromDistance(), SVC(kernel="precomputed")),
    ],
)
def test_pipelines_classify_datasets(steps):
    clouds, y = collection(n_each=6)
    model = make_pipeline(*steps)
    assert cross_val_score(model, clouds, y, cv=3).mean() == 1
    again = pickle.loads(pickle.dumps(model.fit(clouds, y)))
    assert np.array_equal(again.predict(clouds), model.predict(clouds))
    assert "pipeline" in model._repr_html_().lower()


def test_clusterings_of_datasets():
    clouds, y = collection()
    for model in (
        make_pipeline(SignatureTransformer(), KMeans(2, random_state=0)),
        make_pipeline(DistanceTransformer(), DBSCAN(20, min_samples=2, metric="precomputed")),
    ):
        found = model.fit_predict(clouds)
        assert len({*found[y == 2]}) == len({*found[y == 5]}) == 1
        assert found[0] != found[1]
    flat = TSNE(metric="precomputed", init="random", perplexity=2, random_state=0, max_iter=250)
    assert make_pipeline(DistanceTransformer(), flat).fit_transform(clouds).shape == (8, 2)


def test_groups_reach_the_splitter():
    clouds, y = collection()
    model = make_pipeline(SignatureTransformer(K), KNeighborsClassifier(1))
    for cv in (GroupKFold(2), LeaveOneGroupOut()):
        groups = [0, 0, 1, 1, 2, 2, 3, 3]
        assert (cross_val_score(model, clouds, y, groups=groups, cv=cv) == 1).all()


def test_a_search_over_k_and_gamma_computes_each_spectrum_once(spectra):
    clouds, y = collection()
    model = make_pipeline(SignatureTransformer(), KNeighborsClassifier(1))
    grid = {
        "signaturetransformer__n_eigenvalues": [3, 10, 30],
        "signaturetransformer__gamma": [1e-4, 1e-8, 1e-6],
    }
    search = GridSearchCV(model, grid, cv=2).fit(clouds, y)
    assert search.best_score_ == 1
    assert len(spectra) == len(clouds)
    for params in search.cv_results_["params"]:
        values = {key.partition("__")[2]: value for key, value in params.items()}
        rows = SignatureTransformer(**values).fit_transform(clouds)
        shared = clone(model).set_params(**params)[0].fit_transform(clouds)
        assert np.allclose(rows, shared, atol=1e-8)
        direct = ua.signature(clouds[3], **values)
        assert np.allclose(rows[3], direct.values, atol=1e-8)


@pytest.mark.parametrize("limits", [{"max_eigenvalues": 20, "min_gamma": 1e-6}, {}])
def test_the_spectrum_covers_the_limits_and_is_computed_again_beyond_them(spectra, limits):
    clouds, _ = collection(n_each=2)
    base = SignatureTransformer(**limits)
    for k, gamma, n_computed in (
        (5, 1e-3, 4),
        (20, 1e-6, 4),
        (20, 1e-9, 8),  # below min_gamma
        (25, 1e-6, 12 if limits else 8),  # above max_eigenvalues
    ):
        rows = clone(base).set_params(n_eigenvalues=k, gamma=gamma).fit_transform(clouds)
        assert len(spectra) == n_computed
        assert np.allclose(rows[1], ua.signature(clouds[1], n_eigenvalues=k, gamma=gamma).values)


def test_estimators_share_spectra_by_a_folder(tmp_path):
    clouds, _ = collection(n_each=2)
    rows = SignatureTransformer(9, cache=tmp_path / "spectra").fit_transform(clouds)
    other = SignatureTransformer(5, gamma=1e-5, cache=tmp_path / "spectra").fit(clouds)
    assert all(s.stats["from_cache"] for s in other.signatures(clouds))
    assert np.allclose(np.exp(rows[:, :5]) - 1e-8, np.exp(other.transform(clouds)) - 1e-5)


@pytest.mark.slow
def test_processes_share_spectra_by_a_folder(tmp_path):
    clouds, y = collection(n_each=2)
    model = make_pipeline(
        SignatureTransformer(cache=tmp_path / "spectra"), KNeighborsClassifier(1)
    )
    grid = {"signaturetransformer__n_eigenvalues": [5, 10]}
    GridSearchCV(model, grid, cv=2, n_jobs=2).fit(clouds, y)
    assert ua.Cache(tmp_path / "spectra").info().n_signatures == len(clouds)


def test_a_cross_validation_computes_each_pair_once():
    calls = []

    def gap(a, b):
        calls.append((id(a), id(b)))
        return abs(a.mean() - b.mean())

    clouds, y = collection()
    model = make_pipeline(DistanceTransformer(gap), KNeighborsClassifier(metric="precomputed"))
    search = GridSearchCV(model, {"kneighborsclassifier__n_neighbors": [1, 3]}, cv=2)
    search.fit(clouds, y)
    assert len(calls) == len(clouds) ** 2  # a callable need not be symmetric


def test_signatures_may_be_the_samples(spectra):
    clouds, y = collection()
    made = [ua.signature(cloud, n_eigenvalues=30) for cloud in clouds]
    rows = SignatureTransformer(K, gamma=1e-5).fit_transform(made)
    assert not spectra
    assert np.allclose(rows, SignatureTransformer(K, gamma=1e-5).fit_transform(clouds), atol=1e-8)
    assert SignatureTransformer().fit_transform(made).shape == (8, 30)
    model = make_pipeline(DistanceTransformer(), KNeighborsClassifier(1, metric="precomputed"))
    assert model.fit(made, y).score(made, y) == 1
    with pytest.raises(InputError, match="n_eigenvalues=12 is more than this signature has, 5"):
        SignatureTransformer(K).fit(made).transform([made[0].truncate(5)])
    other = ua.signature(clouds[0], n_eigenvalues=30, bandwidth_factor=1.0)
    with pytest.raises(RecipeMismatchError, match="bandwidth_factor"):
        SignatureTransformer().fit([made[0], other])


def test_names_of_features_and_pandas_output():
    clouds, _ = collection(n_each=2)
    model = SignatureTransformer(3).set_output(transform="pandas")
    frame = model.fit_transform(clouds)
    assert list(frame.columns) == [f"signaturetransformer{i}" for i in range(3)]
    named = [ua.Dataset(cloud, name=f"day {i}") for i, cloud in enumerate(clouds)]
    matrix = DistanceTransformer().set_output(transform="pandas").fit(named).transform(named)
    assert list(matrix.columns) == [f"les_day {i}" for i in range(4)]
    twice = DistanceTransformer().fit([named[0], named[0], named[1]])
    assert list(twice.get_feature_names_out()) == ["les_0", "les_1", "les_2"]
    series = pd.Series(clouds, index=list("abcd"))
    assert SignatureTransformer(3).fit_transform(series).shape == (4, 3)


@pytest.mark.parametrize(
    "make",
    [list, tuple, np.array, lambda clouds: dict(enumerate(clouds)), pd.Series],
)
def test_sequences_of_datasets(make):
    clouds = list(np.random.default_rng(0).normal(size=(4, 30, 3)))
    rows = SignatureTransformer(5).fit_transform(make(clouds))
    assert np.array_equal(rows, SignatureTransformer(5).fit_transform(clouds))


def test_sizes_are_made_equal_and_unequal_ones_warn():
    rng = np.random.default_rng(0)
    clouds = [rng.normal(size=(n, 3)) for n in (40, 90, 200)]
    with pytest.warns(SampleSizeWarning, match="Sample sizes differ"):
        SignatureTransformer().fit(clouds)
    model = SignatureTransformer(subsample="common").fit(clouds)
    assert model.n_samples_ == 40
    assert {s.n_samples for s in model.signatures(clouds)} == {40}
    assert DistanceTransformer(subsample=30).fit(clouds).transform(clouds).shape == (3, 3)
    fitted = SignatureTransformer(20).fit([clouds[0]])
    with pytest.warns(SampleSizeWarning, match=r"'0' has 40 rows.*has 200"):
        fitted.transform([clouds[2]])


def test_random_state_is_a_seed_a_generator_or_a_random_state():
    clouds = [np.random.default_rng(seed).normal(size=(60, 3)) for seed in range(2)]

    def rows(random_state):
        return SignatureTransformer(5, subsample=30, random_state=random_state).fit_transform(
            clouds
        )

    assert np.array_equal(rows(1), rows(1))
    assert not np.array_equal(rows(1), rows(2))
    assert np.array_equal(rows(None), rows(0))
    assert np.array_equal(rows(np.random.RandomState(3)), rows(np.random.RandomState(3)))
    assert np.array_equal(rows(np.random.default_rng(3)), rows(np.random.default_rng(3)))


@pytest.mark.parametrize("n_jobs", [1, 2, -1])
def test_any_number_of_jobs_gives_the_same(n_jobs):
    clouds, _ = collection()
    for cls in (SignatureTransformer, DistanceTransformer):
        found = cls(n_jobs=n_jobs).fit_transform(clouds)
        assert np.allclose(found, cls().fit_transform(clouds), atol=1e-8)


CLOUDS, Y = collection()


@pytest.mark.filterwarnings("ignore::unaligned.errors.SampleSizeWarning")
@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (CLOUDS[0], InputTypeError, r"sequence of datasets, not ndarray of shape.*write \[X\]"),
        (pd.DataFrame(CLOUDS[0]), InputTypeError, "sequence of datasets, not DataFrame"),
        (ua.Dataset(CLOUDS[0]), InputTypeError, "sequence of datasets, not Dataset"),
        ("cells.csv", InputTypeError, "sequence of datasets, not str"),
        (None, InputTypeError, "sequence of datasets, not NoneType"),
        (5, InputTypeError, "sequence of datasets, not int"),
        ([], InputError, "X is empty: 0 samples"),
        ([CLOUDS[0], CLOUDS[1][0]], InputError, "dataset '1' must be two-dimensional"),
        ([CLOUDS[0], CLOUDS[1] * np.nan], InputError, "dataset '1' has NaN"),
        ([CLOUDS[0], CLOUDS[1] * 0], InputError, "'1'.*"),
        ([CLOUDS[0], [["a", "b"]]], InputTypeError, "dataset '1' must hold real numbers"),
        ([CLOUDS[0], CLOUDS[1][:1]], InputError, "'1' has one row"),
    ],
)
def test_bad_data_is_named(X, error, message):
    for cls in (SignatureTransformer, DistanceTransformer):
        with pytest.raises(error, match=message):
            cls().fit(X)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_eigenvalues": 0}, "n_eigenvalues=0 must be at least 1"),
        ({"n_eigenvalues": 41}, "n_eigenvalues=41 needs at least 41 samples; dataset '0' has 40"),
        ({"gamma": -1.0}, "gamma=-1.0 must be at least 0"),
        ({"gamma": "knee"}, "gamma='knee' is not known"),
        ({"min_gamma": "small"}, "min_gamma='small' must be a number"),
        ({"max_eigenvalues": 2.5}, "max_eigenvalues=2.5 must be a whole number"),
        ({"kind": "cloud"}, "kind='cloud' is not known"),
        ({"preprocess": "log"}, "preprocess step='log' is not known"),
        ({"subsample": "all"}, "subsample='all' must be a number of rows or 'common'"),
        ({"random_state": "x"}, "x"),
    ],
)
def test_bad_parameters_raise_in_fit_only(params, message):
    model = SignatureTransformer(**params)
    with pytest.raises((InputError, InputTypeError), match=message):
        model.fit(CLOUDS)


class MeanDistance(Distance):
    """Without options, and so without a dataclass."""

    name = "mean"

    def describe(self, dataset, seed):
        return float(dataset.prepared().mean())

    def compare(self, first, second):
        return abs(first - second)


def test_own_distances_need_no_options_but_a_hash():
    clouds = CLOUDS[:3]
    found = DistanceTransformer(MeanDistance()).fit_transform(clouds)
    np.testing.assert_array_equal(found, ua.compare(clouds, distance=MeanDistance()).distances)
    mutable = dataclass(type("Mutable", (MeanDistance,), {}))
    with pytest.raises(InputTypeError, match=r"cannot be hashed.*frozen=True\) above Mutable"):
        DistanceTransformer(mutable()).fit(clouds)


def test_transform_names_what_does_not_fit():
    model = SignatureTransformer().fit(CLOUDS)
    chosen = r"has 30 rows, and fit chose n_eigenvalues=40 .* Give n_eigenvalues=30 or less"
    with pytest.raises(InputError, match=chosen):
        model.transform([CLOUDS[0][:30]])
    with pytest.raises(InputError, match=chosen):
        DistanceTransformer().fit(CLOUDS).transform([CLOUDS[0][:30]])
    with pytest.raises(InputError, match=r"n_eigenvalues=35 needs at least 35 samples.*has 30"):
        SignatureTransformer(n_eigenvalues=35).fit(CLOUDS).transform([CLOUDS[0][:30]])
    mmd = DistanceTransformer("mmd").fit(CLOUDS[:1])
    with pytest.raises(NotApplicableError, match="'mmd' does not apply: it needs the same feat"):
        mmd.transform(CLOUDS[1:2])
    for cls in (SignatureTransformer, DistanceTransformer):
        with pytest.raises(NotFittedError, match="not fitted"):
            cls().transform(CLOUDS)


def test_kernels_of_distances():
    matrix = DistanceTransformer().fit_transform(CLOUDS)
    model = KernelFromDistance().fit(matrix)
    kernel = model.transform(matrix)
    assert np.allclose(np.diag(kernel), 1)
    assert np.linalg.eigvalsh(kernel).min() > -1e-12
    assert model.gamma_ == pytest.approx(1 / np.median(matrix[matrix > 0] ** 2))
    with pytest.raises(InputError, match=r"a square matrix; its shape is \(8, 3\)"):
        KernelFromDistance().fit(matrix[:, :3])
    with pytest.raises(InputError, match="Negative values in data passed to Kernel"):
        KernelFromDistance().fit(-matrix)
    with pytest.raises(InputError, match="gamma=0 must be above 0"):
        KernelFromDistance(0).fit(matrix)
    assert KernelFromDistance().fit(np.zeros((3, 3))).gamma_ == 1
    far = np.array([[0, 1, 1, 3], [1, 0, 3, 1], [1, 3, 0, 1], [3, 1, 1, 0.0]])
    with pytest.warns(IndefiniteWarning, match="not positive semi-definite: .*'les'"):
        assert KernelFromDistance(0.05).fit(far).negative_mass_ > 1e-3


class Rows:
    """Take a table, whose row of d numbers is a dataset of d points on a line.

    scikit-learn's checks generate tables; a sequence of matrices it cannot generate.
    """

    def fit(self, X, y=None):
        return super().fit(self._rows(X, reset=True))

    def fit_transform(self, X, y=None):
        return super().fit_transform(self._rows(X, reset=True))

    def transform(self, X):
        check_is_fitted(self)
        return super().transform(self._rows(X, reset=False))

    def _rows(self, X, reset):
        return list(validate_data(self, X, reset=reset, dtype=float)[:, :, None])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags


class RowSignatures(Rows, SignatureTransformer):
    pass


class RowDistances(Rows, DistanceTransformer):
    pass


CANNOT_HOLD = {
    "check_estimators_dtypes": "rounds rows to integers, and a dataset of which most points are "
    "equal has no kernel scale",
    "check_fit2d_1feature": "a dataset of one point has no spectrum; the error names the dataset, "
    "not the number of columns of a table",
}


@pytest.mark.filterwarnings("ignore::unaligned.errors.UnalignedWarning")
@estimator_checks.parametrize_with_checks(
    [RowSignatures(), RowDistances(), KernelFromDistance()],
    expected_failed_checks=lambda model: CANNOT_HOLD if isinstance(model, Rows) else {},
)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_the_tags_say_that_a_table_is_not_taken():
    tags = SignatureTransformer().__sklearn_tags__().input_tags
    assert tags.three_d_array
    assert not tags.two_d_array
