"""Distances to references, and kernels of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ... import _check
from ..._check import FloatArray
from ...data.dataset import Dataset
from ...engine import collect
from ...errors import IndefiniteWarning, InputError, InputTypeError, merged, warn
from ...execution import compare_positions
from ...inputs import fit_distance, require_applicable, warn_about_sizes
from ...metrics.base import Distance
from ...metrics.registry import DistanceLike, resolve_distance
from ...spectra.base import negative_mass
from ...spectra.signature import Signature
from .base import DatasetTransformer, Items, identity, seed_of


class DistanceTransformer(DatasetTransformer):
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
    >>> import numpy as np
    >>> import unaligned as ua
    >>> clouds = np.random.default_rng(0).normal(size=(4, 50, 3))
    >>> matrix = ua.sklearn.DistanceTransformer("mmd").fit_transform(clouds)
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
        """Describe the references; y is not used.

        Parameters
        ----------
        X
            The datasets.
        y
            Not used.

        Returns
        -------
        DistanceTransformer
            The transformer itself.
        """
        self._fit(X)
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> FloatArray:
        """Return the distances of X to the references, (n_datasets, n_references).

        Parameters
        ----------
        X
            The datasets.
        y, **fit_params
            Not used.

        Returns
        -------
        ndarray
            The distances.
        """
        return self._distances(self._fit(X))

    @merged()
    def transform(self, X: Any) -> FloatArray:
        """Return the distances to the references, (n_datasets, n_references).

        Parameters
        ----------
        X
            The datasets.

        Returns
        -------
        ndarray
            The distances.
        """
        check_is_fitted(self)
        items = self._drawn(self._read(X), self.n_samples_, self.seed_)
        given = dict(self.options or {}).get("n_eigenvalues")
        self._require_enough(items, self.distance_.options().get("n_eigenvalues"), given)
        require_applicable(self.distance_, items, self._references)
        warn_about_sizes(self.distance_, [*items.values(), *self._references.values()])
        return self._distances(items)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return `les_NAME` of each reference, or `les_0` where names repeat.

        Parameters
        ----------
        input_features
            Not used.

        Returns
        -------
        ndarray
            Shape (n_references,), of strings.
        """
        check_is_fitted(self)
        names = [str(item.name) for item in self._references.values()]
        names = names if len(set(names)) == len(names) else list(self._references)
        return np.array([f"{self.distance_.name}_{name}" for name in names], dtype=object)

    @merged()
    def _fit(self, X: Any) -> Items:
        """Choose the settings for both collections, and return that of X."""
        self.seed_, items = seed_of(self.random_state), self._read(X)
        given = items if self.references is None else self._read(self.references)
        method = resolve_distance(self.distance, dict(self.options or {}))
        if type(method).__hash__ is None:
            raise InputTypeError(
                f"distance={method!r} cannot be hashed, so what was computed cannot be kept. "
                f"Write @dataclass(frozen=True) above {type(method).__name__}."
            )
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
        missing = {
            keys[i][j]: (i, j)
            for i, j in np.ndindex(len(rows), len(columns))
            if keys[i][j] not in memo
        }
        if missing:
            shared = (method, self._descriptors(method, rows), self._descriptors(method, columns))
            with self._engine(rows, method) as engine:
                found = collect(engine, compare_positions, list(missing.values()), shared=shared)
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
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> from unaligned.sklearn import DistanceTransformer, KernelFromDistance
    >>> rng = np.random.default_rng(0)
    >>> balls = [rng.normal(size=(60, d)) for d in (2, 5) * 6]
    >>> svc = SVC(kernel="precomputed")
    >>> model = make_pipeline(DistanceTransformer(), KernelFromDistance(), svc)
    >>> model.fit(balls, [2, 5] * 6).predict([rng.normal(size=(60, 5))])
    array([5])
    """

    def __init__(self, gamma: float | None = None) -> None:
        self.gamma = gamma

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose γ, and check whether the kernel is positive semi-definite.

        Parameters
        ----------
        X
            The distances within the references, (n, n).
        y
            Not used.

        Returns
        -------
        KernelFromDistance
            The transformer itself.
        """
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
        """Return the kernel of distances.

        Parameters
        ----------
        X
            Distances to the references, (n_datasets, n_references).

        Returns
        -------
        ndarray
            Shape (n_datasets, n_references), values from 0 to 1.
        """
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
