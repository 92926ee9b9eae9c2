"""Dataset: values of one kind, with a name and preprocessing steps."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .. import _check, defaults
from .._check import IndexArray
from ..errors import InputError
from ..rows.files import as_source
from ..rows.source import ArrayRows, RowSource
from ..rows.transforms import preprocessed_rows
from .facts import Facts, Names, chosen_names
from .preprocess import Step, Values, apply_steps, is_fitted, parse_steps
from .values import (
    drop_missing,
    feature_names_of,
    is_from,
    require_symmetric,
    sample_names_of,
    to_values,
)

KINDS = ("points", "distances", "affinity", "spd", "graph")
# Names in other libraries, to suggest ours.
_OTHER_KINDS = {"adjacency": "graph", "precomputed": "distances", "kernel": "affinity"}


@dataclass(frozen=True, eq=False)
class Dataset:
    """Values of one kind, with a name and preprocessing steps.

    Parameters
    ----------
    values
        For `points`, rows are samples: shape (n_samples, n_features). The other kinds are
        square and symmetric. Any array-like: ndarray, memmap, SciPy sparse, a pandas, polars or
        Arrow table, a torch tensor, anything with `__array__`. Arrays are not copied; do not
        change them afterwards. An HDF5, Zarr or Dask array or a `RowSource` is read by blocks
        (see `from_source`).
    kind
        `points`; `distances` (a distance matrix); `affinity` (a similarity matrix); `spd` (a
        symmetric positive semi-definite matrix such as a covariance, whose eigenvalues are used
        as they are); `graph` (an adjacency matrix, or a networkx graph, whose kind need not be
        given).
    name
        Name in results.
    metadata
        Any information about the dataset; not used in computations.
    preprocess
        Steps such as `["log1p", "pca:50"]`, points only; part of the recipe.
    nan_policy
        `"raise"` raises on NaN and infinity; `"omit"` drops such rows with a warning.
    feature_names
        Names of the columns; None uses those of a table or a file. Distances that need the same
        features raise if the columns are in another order.
    sample_names
        Names of the rows; None uses the index of a pandas table if it is text, and for square
        kinds the names of the columns. Distances of paired rows raise if the rows are in
        another order. Dropped if rows are dropped.
    shared_unit
        Whether all columns are in one unit, as pixels and the channels of a layer are: columns of
        very different spread are then no reason for a warning.

    Examples
    --------
    >>> import unaligned as ua
    >>> dataset = ua.Dataset([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], name="three points")
    >>> dataset
    Dataset('three points', points, 3 × 2)
    """

    values: Values
    kind: str = "points"
    name: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    preprocess: tuple[str, ...] = field(default=(), kw_only=True)
    nan_policy: str = field(default="raise", kw_only=True)
    feature_names: Names = field(default=None, kw_only=True)
    sample_names: Names = field(default=None, kw_only=True)
    shared_unit: bool = field(default=False, kw_only=True)
    n_dropped: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._check_options()
        if self.kind != "graph" and is_from(self.values, "networkx"):
            if self.kind != "points":  # the default
                raise InputError(
                    f"{self.label} is a networkx graph, which has kind 'graph', not {self.kind!r}."
                )
            object.__setattr__(self, "kind", "graph")
            self._check_options()
        values = to_values(self.values, self.label)
        if isinstance(values, RowSource) and self.kind != "points":
            values = values.read()
        features = self._names("feature_names", feature_names_of, values.shape[1])
        samples = self._names("sample_names", sample_names_of, values.shape[0])
        if samples is None and self.kind != "points":
            samples = features  # rows and columns of a square matrix are the same things
        values, n_dropped = drop_missing(values, self.kind, self.label, self.nan_policy)
        if self.kind != "points":
            values = require_symmetric(values, self.kind, self.label)
        vars(self).update(
            values=values,
            n_dropped=n_dropped,
            feature_names=features,
            sample_names=None if n_dropped else samples,
        )

    def _check_options(self) -> None:
        _check.one_of("kind", self.kind, KINDS, _OTHER_KINDS)
        _check.one_of("nan_policy", self.nan_policy, ("raise", "omit"))
        if self.name is not None and not isinstance(self.name, str):
            raise InputError(f"name={self.name!r} must be text or None.")
        steps = parse_steps(self.preprocess) if self.preprocess else ()
        object.__setattr__(self, "preprocess", steps)
        if steps and self.kind != "points":
            raise InputError(f"preprocess={steps!r} needs kind 'points', not {self.kind!r}.")

    def _names(self, argument: str, names_of: Callable[[Any], Names], number: int) -> Names:
        """Return the names of columns or rows: those given, or those of the values."""
        given = getattr(self, argument)
        names = names_of(self.values) if given is None else tuple(given)
        if names is None:
            return None
        if len(names) != number or not all(isinstance(name, str) for name in names):
            what = "column" if argument == "feature_names" else "row"
            raise InputError(
                f"{argument} must be {number} strings, one for each {what} of {self.label}, not "
                f"{len(names)} starting with {names[:3]}. Pass None for no names."
            )
        return tuple(map(str, names))

    @staticmethod
    def from_source(
        source: Any,
        *,
        name: str | None = None,
        preprocess: Step | Iterable[Step] = (),
        nan_policy: str = "raise",
        metadata: Mapping[str, Any] | None = None,
        shared_unit: bool = False,
    ) -> Dataset:
        """Return a dataset of points that are read by blocks.

        Parameters
        ----------
        source
            A path (`.npy`, `.parquet`, `.h5ad`), anything with a shape and slices (memmap,
            HDF5, Zarr), a Dask array, a `RowSource`, or a function that returns an iterator of
            row blocks, the same ones at every call.
        name, preprocess, nan_policy, metadata, shared_unit
            As for `Dataset`.

        Returns
        -------
        Dataset
            Of kind `points`.

        Examples
        --------
        >>> import numpy as np
        >>> import unaligned as ua
        >>> ua.Dataset.from_source(lambda: (np.eye(3) for _ in range(5)), name="repeated")
        Dataset('repeated', points, 15 × 3)
        """
        if isinstance(source, (str, os.PathLike)) and os.fspath(source).lower().endswith(".h5ad"):
            from ..io.load import h5ad_rows  # upward, for convenience only

            source = h5ad_rows(Path(source))
        return Dataset(
            as_source(source),
            name=name,
            preprocess=parse_steps(preprocess),
            nan_policy=nan_policy,
            metadata=metadata or {},
            shared_unit=shared_unit,
        )

    @property
    def is_lazy(self) -> bool:
        """Whether the values are not in memory but read by blocks."""
        return isinstance(self.values, RowSource)

    @property
    def is_streamed(self) -> bool:
        """Whether computations should read the points by blocks instead of all at once.

        True from 50,000 rows on, and for lazy points of more than 256 MiB.
        """
        if self.kind != "points":
            return False
        large = self.is_lazy and 8 * self.n_samples * self.n_features > defaults.LAZY_BYTES
        return large or self.n_samples >= defaults.STREAM_ROWS

    @property
    def label(self) -> str:
        """Name in messages: "dataset 'liver'", or "the dataset" without a name."""
        return "the dataset" if self.name is None else f"dataset {self.name!r}"

    @property
    def n_samples(self) -> int:
        """The number of rows."""
        return int(self.values.shape[0])

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return int(self.values.shape[1])

    @property
    def facts(self) -> Facts:
        """Everything but the values that decides whether a distance applies."""
        return Facts(**{name: getattr(self, name) for name in Facts._fields})

    def prepared(self) -> Values:
        """Return the preprocessed values as float64: an ndarray, or CSR if sparse.

        Returns
        -------
        ndarray or scipy.sparse.csr_array
            Shape (n_samples, d), where d is `n_features` but after `pca`.
        """
        values = self.values.read() if self.is_lazy else self.values.astype(np.float64, copy=False)
        if not sparse.issparse(values):
            values = np.asarray(values)  # reads a memmap
        return apply_steps(values, self.preprocess) if self.preprocess else values

    def prepared_source(self) -> RowSource:
        """Return the preprocessed points as a source; each fitted step takes one pass over it.

        Returns
        -------
        RowSource
            The rows of `prepared`, read by blocks.
        """
        if not self.is_lazy and any(map(is_fitted, self.preprocess)):
            return ArrayRows(self.prepared())
        return preprocessed_rows(self.source, self.preprocess)

    @property
    def source(self) -> RowSource:
        """The raw points as a source."""
        source: RowSource = self.values if self.is_lazy else ArrayRows(self.values)
        return source

    def blocks(self, n_rows: int | None = None) -> Iterator[npt.NDArray[Any]]:
        """Yield the raw rows by dense blocks of at most `n_rows`; None is about 32 MiB.

        Parameters
        ----------
        n_rows
            The most rows of a block.

        Yields
        ------
        ndarray
            Shape (rows, n_features), dense.
        """
        return self.source.blocks(n_rows or max(1, (1 << 25) // (8 * self.n_features)))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of kind and values, the same for any memory order and any exact dtype.

        A sparse matrix has that of the same dense matrix, unless that takes more than 1 GiB.
        """
        if self.is_lazy:
            return str(self.values.summary.digest)
        head = f"{self.kind}:{self.values.shape}{':uncentred' * self._uncentred}"
        digest = hashlib.blake2b(head.encode(), digest_size=16)
        n_values, is_sparse = self.n_samples * self.n_features, sparse.issparse(self.values)
        small = not is_sparse and n_values <= 1 << 22
        arrays: Iterable[npt.NDArray[Any]] = [self.values] if small else self.blocks()
        if is_sparse and 8 * n_values > 1 << 30:
            for index in (self.values.indptr, self.values.indices):
                digest.update(index.astype(np.int64).data)
            arrays = [self.values.data]
        for array in arrays:
            values = np.array(array, dtype=np.float64, order="C")
            values += 0.0  # no -0.0
            digest.update(values.data)
        return digest.hexdigest()

    @property
    def _uncentred(self) -> bool:
        """Whether the values are sparse and standardized, which does not centre them."""
        return "standardize" in self.preprocess and sparse.issparse(self.values)

    def generator(self, seed: int) -> np.random.Generator:
        """Return the random generator of this data under a root seed.

        The fingerprint of large rows depends on the chunks of a Dask array. Their generator comes
        from the shape, the first row and the largest magnitude, the same for every source.

        Parameters
        ----------
        seed
            A non-negative integer.

        Returns
        -------
        numpy.random.Generator
            A new one; the same data and seed give the same numbers.
        """
        key = self.fingerprint
        if self.kind == "points" and 8 * self.n_samples * self.n_features > defaults.LAZY_BYTES:
            if self.is_lazy:
                peak = float(self.values.summary.peak)
            else:
                entries = self.values.data if sparse.issparse(self.values) else self.values
                peak = max(-float(entries.min(initial=0)), float(entries.max(initial=0)))
            row = self.source.take([0]) + 0.0  # no -0.0
            head = f"{self.values.shape}:{peak!r}".encode()
            key = hashlib.blake2b(head + row.tobytes(), digest_size=16).hexdigest()
        return np.random.default_rng([seed, int(key, 16)])

    def with_options(
        self,
        *,
        name: str | None = None,
        preprocess: Step | Iterable[Step] | None = None,
        nan_policy: str | None = None,
    ) -> Dataset:
        """Return the same values, not scanned again, with other options; None keeps one.

        Parameters
        ----------
        name, preprocess, nan_policy
            As for `Dataset`.

        Returns
        -------
        Dataset
            A copy that shares the values.
        """
        return self._copy(
            name=self.name if name is None else name,
            preprocess=self.preprocess if preprocess is None else preprocess,
            nan_policy=self.nan_policy if nan_policy is None else nan_policy,
        )

    def subsample(self, n_samples: int, rng: np.random.Generator) -> Dataset:
        """Return `n_samples` rows drawn without replacement, in their original order.

        Parameters
        ----------
        n_samples
            At most the number of rows.
        rng
            What draws the rows.

        Returns
        -------
        Dataset
            The rows, in memory; of square kinds, rows and columns.
        """
        return self.take(np.sort(rng.choice(self.n_samples, size=n_samples, replace=False)))

    def take(self, rows: IndexArray) -> Dataset:
        """Return the rows at these positions, in this order, read into memory.

        Parameters
        ----------
        rows
            Positions from 0.

        Returns
        -------
        Dataset
            Shape (len(rows), n_features); of square kinds, rows and columns.
        """
        values = self.values.take(rows) if self.is_lazy else self.values[rows]
        samples = chosen_names(self.sample_names, rows)
        if self.kind == "points":
            return self._copy(values=values, sample_names=samples)
        features = chosen_names(self.feature_names, rows)
        return self._copy(values=values[:, rows], feature_names=features, sample_names=samples)

    def _copy(self, cls: type[Dataset] | None = None, **changes: Any) -> Dataset:
        """Return a copy with other fields, of class `cls`; values are not validated again."""
        copy = object.__new__(cls or type(self))
        vars(copy).update({f.name: getattr(self, f.name) for f in fields(copy)}, **changes)
        copy._check_options()
        same = type(copy) is type(self) and copy.values is self.values
        if same and copy._uncentred == self._uncentred:
            vars(copy).update({k: v for k, v in vars(self).items() if k == "fingerprint"})
        return copy

    def __repr__(self) -> str:
        name = "" if self.name is None else f"{self.name!r}, "
        steps = f", preprocess={list(self.preprocess)}" if self.preprocess else ""
        return f"Dataset({name}{self.kind}, {self.n_samples} × {self.n_features}{steps})"
