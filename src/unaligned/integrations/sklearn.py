"""Datasets as samples of scikit-learn, as `ua.sklearn`: estimators on sequences of datasets.

X is a sequence of datasets: a list, a tuple, a pandas Series or an object array, each item
anything that `ua.signature` takes; or an array of shape (n_datasets, N, d).

Examples
--------
>>> import numpy as np
>>> from sklearn.model_selection import cross_val_score
>>> from sklearn.neighbors import KNeighborsClassifier
>>> from sklearn.pipeline import make_pipeline
>>> import unaligned as ua
>>> rng = np.random.default_rng(0)
>>> balls = [rng.normal(size=(60, d)) for d in (2, 5) * 6]
>>> model = make_pipeline(ua.sklearn.SignatureTransformer(), KNeighborsClassifier(1))
>>> cross_val_score(model, balls, [2, 5] * 6, cv=3)
array([1., 1., 1.])
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    OneToOneFeatureMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import _check
from .._check import FloatArray
from ..cache import Cache
from ..data.dataset import Dataset
from ..data.preprocess import parse_steps
from ..defaults import BANDWIDTH_FACTOR, GAMMA, N_EIGENVALUES
from ..engine import Engine, collect, resolve_engine
from ..errors import IndefiniteWarning, InputError, InputTypeError, merged, warn
from ..execution import compare_positions, default_jobs, describe_all
from ..inputs import (
    DataLike,
    as_dataset,
    common_size,
    fit_distance,
    is_one,
    own_name,
    require_applicable,
    subsample_all,
    warn_about_sizes,
)
from ..metrics.base import Distance
from ..metrics.les import LES
from ..metrics.registry import DistanceLike, resolve_distance
from ..spectra.base import negative_mass
from ..spectra.pipeline import SignatureSettings, require_enough
from ..spectra.signature import Signature

__all__ = ["DistanceTransformer", "KernelFromDistance", "SignatureTransformer"]

# Options of a signature that are parameters of `SignatureTransformer` under the same name.
_SETTINGS = (
    *("solver", "tol", "kernel", "bandwidth", "bandwidth_factor", "metric"),
    *("n_neighbors", "robust"),
)
Items = dict[str, Dataset | Signature]


class _DatasetTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The part that both transformers of datasets share.

    What was computed is kept in `_memo`, which clones share: every candidate and fold of a
    search reads what another computed. Pickles contain it, so that other processes start with it.
    """

    preprocess: Any
    kind: str
    subsample: int | str | None
    random_state: Any
    n_jobs: int | None

    def __sklearn_clone__(self) -> Self:
        clone: Self = super().__sklearn_clone__()
        vars(clone)["_memo"] = self._shared_memo()
        return clone

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        return tags

    def _read(self, X: Any) -> Items:
        """Return the datasets of X by position and name."""
        options = {"preprocess": parse_steps(self.preprocess) or None}
        options |= {"kind": None if self.kind == "points" else self.kind}
        pairs = list(_pairs(X))
        if not pairs:
            raise InputError("X is empty: 0 samples (datasets), and a minimum of 1 is required.")
        # The same dataset may occur twice, as it does in bootstrap samples.
        return {f"{i}": as_dataset(value, name, options) for i, (name, value) in enumerate(pairs)}

    def _shared_memo(self) -> dict[Hashable, Any]:
        memo: dict[Hashable, Any] = vars(self).setdefault("_memo", {})
        return memo

    def _engine(self, items: Iterable[Any], method: Distance) -> AbstractContextManager[Engine]:
        jobs = default_jobs(items, thread_safe=method.thread_safe)
        return resolve_engine(None, jobs if self.n_jobs is None else self.n_jobs, False)

    def _described(
        self, method: Distance, datasets: Mapping[Hashable, Dataset], cache: Cache | None = None
    ) -> list[Any]:
        with self._engine(datasets.values(), method) as engine:
            return describe_all(method, list(datasets.values()), self.seed_, engine, cache)

    def _drawn(self, items: Items, size: int | None, seed: int) -> Items:
        return items if size is None else subsample_all(items, size, seed)

    def _size(self, items: Items, method: Distance) -> int | None:
        if self.subsample is None:
            return None
        return common_size(self.subsample, list(items.values()), method)


def _pairs(X: Any) -> list[tuple[str, DataLike]]:
    """Return a name and the data of each item of X."""
    shape = getattr(X, "shape", None)
    several = shape is not None and (len(shape) == 3 or (len(shape) == 1 and X.dtype == object))
    if isinstance(X, Mapping):
        return [(str(name), value) for name, value in X.items()]
    if (is_one(X) and not several) or isinstance(X, bytes) or not hasattr(X, "__iter__"):
        raise InputTypeError(
            f"X must be a sequence of datasets, not {_check.shape_of(X)}. For one dataset write "
            "[X]; for rows that belong to groups, one array for each group."
        )
    return [(own_name(value) or f"{i}", value) for i, value in enumerate(X)]


def _seed_of(random_state: Any) -> int:
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return _check.root_seed(random_state)


def identity(item: Dataset | Signature) -> Hashable:
    """Return what determines the descriptor of a dataset besides method and seed."""
    if isinstance(item, Signature):
        return "signature", item.values.tobytes()
    return item.kind, item.fingerprint, item.preprocess


class SignatureTransformer(ClassNamePrefixFeaturesOutMixin, _DatasetTransformer):  # type: ignore[misc]
    r"""Turn each dataset into its signature, a row of K numbers.

    .. math:: F_i = \log(\lambda_i + \gamma), \qquad i = 1, \dots, K

    Euclidean distances between rows are LES (Eq. 11), so any classifier, regressor or clustering
    of vectors works on datasets. In a search over K and γ each spectrum is computed once: for
    `max_eigenvalues` and `min_gamma`, whose accuracy covers smaller K and larger γ, and then
    truncated and shifted. Clones share the spectra.

    Parameters
    ----------
    n_eigenvalues
        K; None means min(200, the smallest N of the data seen in `fit`).
    gamma
        γ, or the rules `"auto"` and `"cutoff"`, which choose it from the data seen in `fit`.
    solver, tol, kernel, bandwidth, bandwidth_factor, metric, n_neighbors, robust
        As for `ua.signature`.
    preprocess, kind
        Steps and kind of all datasets, as for `ua.Dataset`.
    subsample
        Compute signatures of equally many rows, which removes the bias of sizes: a number, or
        `"common"` for the size of the smallest dataset seen in `fit`.
    max_eigenvalues, min_gamma
        Compute spectra for this K (None: 200, or N) and γ (None: 1e-8): the largest K and the
        smallest γ of a grid. Beyond them spectra are computed again.
    cache
        A folder that keeps spectra, as in `ua.compare`; processes of a search share it.
    n_jobs
        Datasets at a time, as in `ua.compare`.
    random_state
        Seed, `RandomState` or `Generator`; None is 0.

    Attributes
    ----------
    n_eigenvalues_, gamma_ : the K and γ in use
    n_samples_ : the rows drawn of each dataset, or None
    seed_ : the seed of `random_state`

    Examples
    --------
    >>> clouds = np.random.default_rng(0).normal(size=(4, 50, 3))
    >>> SignatureTransformer(n_eigenvalues=10).fit_transform(clouds).shape
    (4, 10)
    """

    def __init__(
        self,
        n_eigenvalues: int | None = None,
        *,
        gamma: float | str = GAMMA,
        solver: Any = "auto",
        tol: float | None = None,
        kernel: str = "gaussian",
        bandwidth: float | str = "median",
        bandwidth_factor: float = BANDWIDTH_FACTOR,
        metric: Any = "euclidean",
        n_neighbors: int | None = None,
        robust: bool = False,
        preprocess: Any = None,
        kind: str = "points",
        subsample: int | str | None = None,
        max_eigenvalues: int | None = None,
        min_gamma: float | None = None,
        cache: str | os.PathLike[str] | Cache | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_eigenvalues = n_eigenvalues
        self.gamma = gamma
        self.solver = solver
        self.tol = tol
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.bandwidth_factor = bandwidth_factor
        self.metric = metric
        self.n_neighbors = n_neighbors
        self.robust = robust
        self.preprocess = preprocess
        self.kind = kind
        self.subsample = subsample
        self.max_eigenvalues = max_eigenvalues
        self.min_gamma = min_gamma
        self.cache = cache
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose K, γ and the number of rows; y is not used."""
        self._fit(X)
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> FloatArray:
        """Return the signatures of the data that K and γ were chosen for, (n_datasets, K)."""
        return self._values(self._fit(X))

    def transform(self, X: Any) -> FloatArray:
        """Return the signatures, (n_datasets, K)."""
        return self._values(self.signatures(X))

    def signatures(self, X: Any) -> list[Signature]:
        """Return the signatures as objects, with error bounds and recipe."""
        check_is_fitted(self)
        items = self._drawn(self._read(X), self.n_samples_, self.seed_)
        method = LES(self._settings(self.n_eigenvalues_, self.gamma_))
        for item in items.values():
            if isinstance(item, Dataset):
                require_enough(self.n_eigenvalues_, item)
        require_applicable(method, items, {"fitted": self._extremes[0]})
        warn_about_sizes(method, [*items.values(), *self._extremes])
        return [signature.with_gamma(self.gamma_) for signature in self._computed(items)]

    @property
    def _n_features_out(self) -> int:
        return int(self.n_eigenvalues_)

    @merged()
    def _fit(self, X: Any) -> list[Signature]:
        """Choose everything, and return the signatures of X."""
        self.seed_, items = _seed_of(self.random_state), self._read(X)
        method = LES(self._settings(self.n_eigenvalues, self.gamma))
        self.n_samples_ = self._size(items, method)
        items = self._drawn(items, self.n_samples_, self.seed_)
        k = self.n_eigenvalues or N_EIGENVALUES  # longer signatures are truncated
        short = {name: _shortened(item, k) for name, item in items.items()}
        self.n_eigenvalues_ = int(fit_distance(method, short, None).options()["n_eigenvalues"])
        settled, found = method.settle(self._computed(items))
        self.gamma_ = float(settled.settings.gamma)
        found = [signature.with_gamma(self.gamma_) for signature in found]
        for signature in found[1:]:
            found[0].require_comparable(signature)
        by_size = sorted(found, key=lambda signature: signature.n_samples)
        self._extremes = by_size[0], by_size[-1]
        return found

    def _settings(self, k: int | None, gamma: float | str) -> SignatureSettings:
        options = {name: getattr(self, name) for name in _SETTINGS}
        options |= {"n_eigenvalues": k, "gamma": gamma}
        return _check.from_options(SignatureSettings, options)

    def _computed(self, items: Items) -> list[Signature]:
        """Return the signatures of K values, at any γ that is small enough."""
        gamma = GAMMA if self.min_gamma is None else self.min_gamma
        gamma = gamma if isinstance(self.gamma, str) else min(gamma, self.gamma)
        shared, memo = (self._settings(None, gamma), self.seed_), self._shared_memo()
        keys: dict[str, Hashable] = {}
        missing: dict[int, dict[Hashable, Dataset]] = {}
        for name, item in items.items():
            if isinstance(item, Dataset):
                keys[name] = key = (*shared, identity(item))
                if key not in memo or memo[key].n_eigenvalues < self.n_eigenvalues_:
                    missing.setdefault(self._length(item, gamma), {})[key] = item
        cache = None if self.cache is None else Cache.at(self.cache)
        for k, datasets in missing.items():
            method = LES(self._settings(k, gamma))
            memo.update(zip(datasets, self._described(method, datasets, cache), strict=True))
        spectra = [memo[keys[name]] if name in keys else item for name, item in items.items()]
        return [
            replace(spectrum.truncate(self.n_eigenvalues_), name=item.name)
            for spectrum, item in zip(spectra, items.values(), strict=True)
        ]

    def _length(self, dataset: Dataset, gamma: float) -> int:
        """Return the K to compute, which covers `n_eigenvalues_`."""
        if gamma == 0:  # where every eigenvalue must be positive
            return int(self.n_eigenvalues_)
        most = N_EIGENVALUES if self.max_eigenvalues is None else self.max_eigenvalues
        n = dataset.n_samples - (dataset.n_samples // 5 if self.robust else 0)  # at most a fifth
        return max(int(self.n_eigenvalues_), min(most, n))

    @staticmethod
    def _values(signatures: Sequence[Signature]) -> FloatArray:
        return np.array([signature.values for signature in signatures])


def _shortened(item: Dataset | Signature, k: int) -> Dataset | Signature:
    is_long = isinstance(item, Signature) and item.n_eigenvalues > k
    return item.truncate(k) if is_long and isinstance(item, Signature) else item


class DistanceTransformer(_DatasetTransformer):
    """Turn each dataset into its distances to the references, for `metric="precomputed"`.

    The references are the datasets seen in `fit`, or those given. Nearest neighbours, DBSCAN and
    t-SNE take the result as it is, kernel methods through `KernelFromDistance`. Each pair is
    computed once: clones, as the folds of a cross-validation are, share the distances.

    Parameters
    ----------
    distance
        A name of `ua.available()`, a `Distance` with its settings, or a callable of two arrays.
    references
        The datasets to measure distances to, a sequence or a dict; None takes those of `fit`.
    options
        Options of the distance, such as `{"n_eigenvalues": 100}`.
    preprocess, kind, subsample, n_jobs, random_state
        As for `SignatureTransformer`.

    Attributes
    ----------
    distance_ : the distance with the settings in use
    n_samples_ : the rows drawn of each dataset, or None
    seed_ : the seed of `random_state`

    Examples
    --------
    >>> clouds = np.random.default_rng(0).normal(size=(4, 50, 3))
    >>> matrix = DistanceTransformer("mmd").fit_transform(clouds)
    >>> matrix.shape, bool((matrix == matrix.T).all())
    ((4, 4), True)
    """

    def __init__(
        self,
        distance: DistanceLike = "les",
        *,
        references: Any = None,
        options: Mapping[str, Any] | None = None,
        preprocess: Any = None,
        kind: str = "points",
        subsample: int | str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.distance = distance
        self.references = references
        self.options = options
        self.preprocess = preprocess
        self.kind = kind
        self.subsample = subsample
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Describe the references; y is not used."""
        self._fit(X)
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> FloatArray:
        """Return the distances of X to the references, (n_datasets, n_references)."""
        return self._distances(self._fit(X))

    @merged()
    def transform(self, X: Any) -> FloatArray:
        """Return the distances to the references, (n_datasets, n_references)."""
        check_is_fitted(self)
        items = self._drawn(self._read(X), self.n_samples_, self.seed_)
        require_applicable(self.distance_, items, self._references)
        warn_about_sizes(self.distance_, [*items.values(), *self._references.values()])
        return self._distances(items)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return `les_NAME` of each reference, or `les_0` where names repeat."""
        check_is_fitted(self)
        names = [str(item.name) for item in self._references.values()]
        names = names if len(set(names)) == len(names) else list(self._references)
        return np.array([f"{self.distance_.name}_{name}" for name in names], dtype=object)

    @merged()
    def _fit(self, X: Any) -> Items:
        """Choose the settings for both collections, and return that of X."""
        self.seed_, items = _seed_of(self.random_state), self._read(X)
        given = items if self.references is None else self._read(self.references)
        method = resolve_distance(self.distance, dict(self.options or {}))
        self.n_samples_ = self._size({**items, **{f"r{k}": r for k, r in given.items()}}, method)
        items = self._drawn(items, self.n_samples_, self.seed_)
        self._references = self._drawn(given, self.n_samples_, self.seed_)
        method = fit_distance(method, items, self._references)
        everything = [*items.values(), *self._references.values()]
        descriptors = self._descriptors(method, everything) if method.is_descriptor else []
        self.distance_, settled = method.settle(descriptors)  # γ by a rule is chosen here
        if self.distance_ != method:
            keys = [(self.distance_, self.seed_, identity(item)) for item in everything]
            self._shared_memo().update(zip(keys, settled, strict=True))
        return items

    def _descriptors(self, method: Distance, items: Sequence[Dataset | Signature]) -> list[Any]:
        """Return the descriptors; only those that are not the data itself are kept."""
        memo = self._shared_memo() if method.is_descriptor else {}
        keys = [(method, self.seed_, identity(item)) for item in items]
        pairs = zip(keys, items, strict=True)
        missing = {k: d for k, d in pairs if isinstance(d, Dataset) and k not in memo}
        memo.update(zip(missing, self._described(method, missing), strict=True))
        return [memo.get(key, item) for key, item in zip(keys, items, strict=True)]

    def _distances(self, items: Items) -> FloatArray:
        """Return the distances to the references; pairs known from before are not computed."""
        method, memo = self.distance_, self._shared_memo()
        rows, columns = list(items.values()), list(self._references.values())
        names = [[identity(item) for item in some] for some in (rows, columns)]
        keys = [
            [(method, self.seed_, *_in_order(a, b, method.symmetric)) for b in names[1]]
            for a in names[0]
        ]
        everything = {
            keys[i][j]: (i, j)
            for i, j in itertools.product(range(len(rows)), range(len(columns)))
        }
        missing = {key: pair for key, pair in everything.items() if key not in memo}
        if missing:
            used = [sorted({pair[side] for pair in missing.values()}) for side in (0, 1)]
            first = dict(zip(used[0], self._descriptors(method, [rows[i] for i in used[0]]), strict=True))
            second = dict(zip(used[1], self._descriptors(method, [columns[j] for j in used[1]]), strict=True))
            with self._engine(rows, method) as engine:
                found = collect(engine, compare_positions, list(missing.values()), shared=(method, first, second))
            memo.update((key, value) for key, (value, _) in zip(missing, found, strict=True))
        return np.array([[memo[key] for key in row] for row in keys])


def _in_order(a: Any, b: Any, symmetric: bool) -> tuple[Any, Any]:
    return (b, a) if symmetric and repr(b) < repr(a) else (a, b)


class KernelFromDistance(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Turn distances to the references into a kernel, for `SVC(kernel="precomputed")`.

    .. math:: k(a, b) = \exp(-\gamma\, d(a, b)^2)

    The kernel is positive semi-definite if the distance is Euclidean, as LES is; else `fit` warns
    (`IndefiniteWarning`) where it is not, and a larger γ helps.

    Parameters
    ----------
    gamma
        γ; None is 1 / median(d²) of the distances above 0 seen in `fit`.

    Attributes
    ----------
    gamma_ : the γ in use
    negative_mass_ : the share of negative eigenvalues, in absolute value, of the kernel in `fit`

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> rng = np.random.default_rng(0)
    >>> balls = [rng.normal(size=(60, d)) for d in (2, 5) * 6]
    >>> model = make_pipeline(DistanceTransformer(), KernelFromDistance(), SVC(kernel="precomputed"))
    >>> model.fit(balls, [2, 5] * 6).predict([rng.normal(size=(60, 5))])
    array([5])
    """

    def __init__(self, gamma: float | None = None) -> None:
        self.gamma = gamma

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose γ; X are the distances within the references, (n, n)."""
        X = self._checked(X, reset=True)
        if X.shape[0] != X.shape[1]:
            raise InputError(
                f"X must hold the distances of the references to each other, a square matrix; its "
                f"shape is {X.shape}. Fit to the output of DistanceTransformer.fit_transform."
            )
        squares = X[X > 0] ** 2
        self.gamma_ = 1.0
        if self.gamma is not None:
            self.gamma_ = _check.real_number("gamma", self.gamma, minimum=0.0, strict=True)
        elif squares.size:
            self.gamma_ = 1.0 / float(np.median(squares))
        kernel = np.exp(-self.gamma_ * X**2)
        self.negative_mass_ = negative_mass(np.linalg.eigvalsh((kernel + kernel.T) / 2))
        if self.negative_mass_ > 1e-6:
            warn(
                f"The kernel of these distances is not positive semi-definite: "
                f"{self.negative_mass_:.2g} of its spectrum is negative. Give gamma above "
                f"{self.gamma_:.2g}, or take a Euclidean distance, such as 'les'.",
                IndefiniteWarning,
            )
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the kernel of the distances X, (n_datasets, n_references)."""
        check_is_fitted(self)
        kernel: FloatArray = np.exp(-self.gamma_ * self._checked(X, reset=False) ** 2)
        return kernel

    def _checked(self, X: Any, *, reset: bool) -> FloatArray:
        X = validate_data(self, X, reset=reset, dtype=np.float64)
        if X.min() < 0:
            raise InputError(
                f"Negative values in data passed to KernelFromDistance: the smallest is "
                f"{X.min():g}. X must hold distances."
            )
        checked: FloatArray = X
        return checked

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = tags.input_tags.positive_only = True
        return tags
