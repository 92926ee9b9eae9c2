"""Signatures of datasets as features."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from ... import _check
from ..._check import FloatArray
from ...cache import Cache
from ...data.dataset import Dataset
from ...defaults import BANDWIDTH_FACTOR, GAMMA, N_EIGENVALUES
from ...errors import merged
from ...inputs import fit_distance, require_applicable, warn_about_sizes
from ...metrics.les import LES
from ...spectra.pipeline import SignatureSettings
from ...spectra.signature import Signature
from .base import DatasetTransformer, Items, identity, seed_of

# Options of a signature that are parameters of `SignatureTransformer` under the same name.
_SETTINGS = (
    *("solver", "tol", "kernel", "bandwidth", "bandwidth_factor", "metric"),
    *("n_neighbors", "robust"),
)


class SignatureTransformer(ClassNamePrefixFeaturesOutMixin, DatasetTransformer):  # type: ignore[misc]
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
    >>> import numpy as np
    >>> import unaligned as ua
    >>> clouds = np.random.default_rng(0).normal(size=(4, 50, 3))
    >>> ua.sklearn.SignatureTransformer(n_eigenvalues=10).fit_transform(clouds).shape
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
        """Choose K, γ and the number of rows; y is not used.

        Parameters
        ----------
        X
            The datasets.
        y
            Not used.

        Returns
        -------
        SignatureTransformer
            The transformer itself.
        """
        self._fit(X)
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> FloatArray:
        """Return the signatures of the data that K and γ were chosen for, (n_datasets, K).

        Parameters
        ----------
        X
            The datasets.
        y, **fit_params
            Not used.

        Returns
        -------
        ndarray
            The signatures.
        """
        return self._values(self._fit(X))

    def transform(self, X: Any) -> FloatArray:
        """Return the signatures, (n_datasets, K).

        Parameters
        ----------
        X
            The datasets.

        Returns
        -------
        ndarray
            The signatures.
        """
        return self._values(self.signatures(X))

    def signatures(self, X: Any) -> list[Signature]:
        """Return the signatures as objects, with error bounds and recipe.

        Parameters
        ----------
        X
            The datasets.

        Returns
        -------
        list
            A `Signature` of K values for each.
        """
        check_is_fitted(self)
        items = self._drawn(self._read(X), self.n_samples_, self.seed_)
        method = LES(self._settings(self.n_eigenvalues_, self.gamma_))
        self._require_enough(items, self.n_eigenvalues_, self.n_eigenvalues)
        require_applicable(method, items, {"fitted": self._extremes[0]})
        warn_about_sizes(method, [*items.values(), *self._extremes])
        return [signature.with_gamma(self.gamma_) for signature in self._computed(items)]

    @property
    def _n_features_out(self) -> int:
        return int(self.n_eigenvalues_)

    @merged()
    def _fit(self, X: Any) -> list[Signature]:
        """Choose everything, and return the signatures of X."""
        _check.optional_int("max_eigenvalues", self.max_eigenvalues)
        if self.min_gamma is not None:
            _check.real_number("min_gamma", self.min_gamma, minimum=0.0)
        self.seed_, items = seed_of(self.random_state), self._read(X)
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
        spectra: list[Signature] = [memo.get(keys.get(name), item) for name, item in items.items()]
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
