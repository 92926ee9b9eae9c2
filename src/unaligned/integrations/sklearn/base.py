"""What the transformers of datasets share: reading X, and what clones know of each other."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from ... import _check
from ...cache import Cache
from ...data.dataset import Dataset
from ...data.preprocess import parse_steps
from ...engine import Engine, resolve_engine
from ...errors import InputError, InputTypeError
from ...execution import default_jobs, describe_all
from ...inputs import DataLike, as_dataset, is_one, own_name
from ...metrics.base import Distance
from ...preparation import common_size, subsample_all
from ...spectra.pipeline import require_enough
from ...spectra.signature import Signature

Items = dict[str, Dataset | Signature]


class DatasetTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
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
        clone.__dict__["_memo"] = self._shared_memo()
        return clone

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        return tags

    def _read(self, X: Any) -> Items:
        """Return the datasets of X by position and name."""
        options: dict[str, Any] = {"preprocess": parse_steps(self.preprocess) or None}
        options["kind"] = None if self.kind == "points" else self.kind
        pairs = list(_pairs(X))
        if not pairs:
            raise InputError("X is empty: 0 samples (datasets), and a minimum of 1 is required.")
        # The same dataset may occur twice, as it does in bootstrap samples.
        return {f"{i}": as_dataset(value, name, options) for i, (name, value) in enumerate(pairs)}

    def _shared_memo(self) -> dict[Hashable, Any]:
        memo: dict[Hashable, Any] = self.__dict__.setdefault("_memo", {})
        return memo

    def _engine(self, items: Iterable[Any], method: Distance) -> AbstractContextManager[Engine]:
        jobs = default_jobs(items, thread_safe=method.thread_safe)
        return resolve_engine(None, jobs if self.n_jobs is None else self.n_jobs, False)

    def _described(
        self, method: Distance, datasets: Mapping[Any, Dataset], cache: Cache | None = None
    ) -> list[Any]:
        with self._engine(datasets.values(), method) as engine:
            return describe_all(method, list(datasets.values()), self.seed_, engine, cache)

    def _drawn(self, items: Items, size: int | None, seed: int) -> Items:
        return items if size is None else subsample_all(items, size, seed)

    def _require_enough(self, items: Items, k: int | None, given: int | None) -> None:
        """Raise for a dataset with fewer rows than K, which `fit` chose if none was `given`."""
        for item in items.values():
            if isinstance(item, Signature) or k is None or item.n_samples >= k:
                continue
            if given is not None:
                require_enough(k, item)
            raise InputError(
                f"{item.label} has {item.n_samples} rows, and fit chose n_eigenvalues={k} for the "
                f"datasets that it saw. Give n_eigenvalues={item.n_samples} or less; with "
                "subsample, a number of rows in place of 'common'."
            )

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


def seed_of(random_state: Any) -> int:
    """Return the root seed of scikit-learn's `random_state`."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return _check.root_seed(random_state)


def identity(item: Dataset | Signature) -> Hashable:
    """Return what determines the descriptor of a dataset besides method and seed."""
    if isinstance(item, Signature):
        return "signature", item.values.tobytes()
    return item.kind, item.fingerprint, item.preprocess
