"""Dataset: values of one kind, with a name and the preprocessing they ask for."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .. import _check, defaults
from ..errors import InputError
from ..rows.files import as_source
from ..rows.source import ArrayRows, RowSource, dense, is_large
from ..rows.transforms import prepared_rows
from .convert import feature_names_of, is_network, sample_names_of, to_values
from .facts import Facts, Names, chosen_names
from .preprocess import Step, Values, apply_steps, is_fitted, parse_steps
from .validate import checked_names, require_symmetric, rows_per_block, without_missing

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, eq=False)
class Identity:
    """The values and the preprocessing of a dataset, as a key of dicts.

    Only where glimpses agree are all values read for their fingerprint: most data differ in
    their first row, and hashing all takes longer than some distances.
    """

    dataset: Dataset

    def __hash__(self) -> int:
        return hash((self.dataset.glimpse, self.dataset.preprocess))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Identity):
            return NotImplemented
        mine, yours = self.dataset, other.dataset
        alike = (mine.glimpse, mine.preprocess) == (yours.glimpse, yours.preprocess)
        return alike and (mine is yours or mine.fingerprint == yours.fingerprint)


_FILLED_BYTES = 1 << 30
KINDS = ("points", "distances", "affinity", "spd", "graph")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Values of one kind, a name, and how they are to be preprocessed.

    Parameters
    ----------
    values
        For `points`, rows are samples: shape (n_samples, n_features). The other kinds are
        square and symmetric. Anything array-like is taken: ndarray, memmap, SciPy sparse, a
        pandas, polars or Arrow table, a torch tensor, whatever has `__array__`. Arrays are not
        copied; do not change them afterwards. An HDF5 or Zarr array, a Dask array or a
        `RowSource` stays where it is and is read by blocks (see `from_source`).
    kind
        `points`; `distances` (a distance matrix); `affinity` (a similarity matrix); `spd` (a
        symmetric positive semi-definite matrix, its eigenvalues taken as they are, such as a
        covariance); `graph` (an adjacency matrix, or a networkx graph).
    name
        How results call it.
    metadata
        Whatever should travel along; not used in any computation.
    preprocess
        Steps such as `["log1p", "pca:50"]`, points only; part of the recipe.
    nan_policy
        `"raise"` refuses NaN and infinity; `"omit"` drops such rows and says how many.
    feature_names
        What the columns are called; None takes the names that a table, or a file that is read
        by blocks, has. Distances that need the same features refuse columns in another order.
    sample_names
        What the rows are called; None takes the index of a pandas table where it is text, and
        for square kinds the names of the columns. Distances of paired rows refuse rows in
        another order. Where rows were dropped there are none.

    Examples
    --------
    >>> dataset = Dataset([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], name="three points")
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
    n_dropped: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._check_options()
        if self.kind != "graph" and is_network(self.values):
            raise InputError(
                f"{self.label} is a networkx graph, and kind={self.kind!r} is not. "
                "Give it as Dataset(graph, kind='graph')."
            )
        values = to_values(self.values, self.label)
        if isinstance(values, RowSource) and self.kind != "points":
            values = values.read()
        features, samples = self._names(*values.shape)
        values, dropped = without_missing(values, self.kind, self.label, self.nan_policy)
        if self.kind != "points":
            require_symmetric(values, self.kind, self.label)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "n_dropped", dropped)
        object.__setattr__(self, "feature_names", features)
        object.__setattr__(self, "sample_names", None if dropped else samples)

    def _check_options(self) -> None:
        _check.one_of("kind", self.kind, KINDS)
        _check.one_of("nan_policy", self.nan_policy, ("raise", "omit"))
        if self.name is not None and not isinstance(self.name, str):
            raise InputError(f"name={self.name!r} must be text or None.")
        object.__setattr__(self, "preprocess", parse_steps(self.preprocess))
        if self.preprocess and self.kind != "points":
            raise InputError(
                f"preprocess={self.preprocess!r} works on kind 'points', not {self.kind!r}."
            )

    def _names(self, n_samples: int, n_features: int) -> tuple[Names, Names]:
        """Return the names of columns and of rows: those given, or those that the values have."""
        features, samples = self.feature_names, self.sample_names
        features = feature_names_of(self.values) if features is None else features
        samples = sample_names_of(self.values) if samples is None else samples
        features = checked_names("feature_names", features, n_features, "column", self.label)
        samples = checked_names("sample_names", samples, n_samples, "row", self.label)
        # Row i of a square matrix is what its column i is.
        return features, features if samples is None and self.kind != "points" else samples

    @staticmethod
    def from_source(
        source: Any,
        *,
        name: str | None = None,
        preprocess: Step | Iterable[Step] = (),
        nan_policy: str = "raise",
        metadata: Mapping[str, Any] | None = None,
    ) -> Dataset:
        """Return a dataset of points that stay where they are and are read by blocks.

        Parameters
        ----------
        source
            A path (`.npy`, `.parquet`, `.h5ad`), anything with a shape and slices (memmap,
            HDF5, Zarr), a Dask array, a `RowSource`, or a function that returns an iterator of
            row blocks, the same ones at every call.
        name, preprocess, nan_policy, metadata
            As for `Dataset`.

        Examples
        --------
        >>> def blocks():
        ...     rng = np.random.default_rng(0)
        ...     return (rng.normal(size=(100, 3)) for _ in range(5))
        >>> Dataset.from_source(blocks, name="drawn")
        Dataset('drawn', points, 500 × 3)
        """
        return Dataset(
            as_source(source),
            name=name,
            preprocess=parse_steps(preprocess),
            nan_policy=nan_policy,
            metadata=metadata or {},
        )

    @property
    def is_lazy(self) -> bool:
        """Whether the rows are elsewhere, to be read by blocks."""
        return isinstance(self.values, RowSource)

    @property
    def is_streamed(self) -> bool:
        """Whether computations should read the points by blocks instead of all at once.

        True from 50,000 rows on, and for lazy points of more than 256 MiB.
        """
        if self.kind != "points":
            return False
        large = self.is_lazy and is_large(8 * self.n_samples * self.n_features)
        return large or self.n_samples >= defaults.STREAM_ROWS

    @property
    def label(self) -> str:
        """What messages call it: dataset 'liver', or the dataset where it has no name."""
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
        """What decides whether a distance applies, without the values."""
        return Facts(
            self.label,
            self.kind,
            self.n_samples,
            self.n_features,
            self.preprocess,
            self.n_dropped,
            self.feature_names,
            self.sample_names,
        )

    def prepared(self) -> Values:
        """Return the values as float64 with the preprocessing done: ndarray, or CSR if sparse."""
        if isinstance(self.values, RowSource):
            return apply_steps(self.values.read(), self.preprocess)
        values = self.values.astype(np.float64, copy=False)
        if not sparse.issparse(values):
            values = np.asarray(values)  # a memmap is read here, and here only
        return apply_steps(values, self.preprocess)

    def prepared_source(self) -> RowSource:
        """Return the points with the preprocessing done, to be read by blocks.

        Steps that must know all rows (`standardize`, `pca`) learn what they need in a pass over
        the blocks of a source; values that are in memory are preprocessed there.
        """
        if isinstance(self.values, RowSource):
            return prepared_rows(self.values, self.preprocess)
        if not any(map(is_fitted, self.preprocess)):
            return prepared_rows(ArrayRows(self.values), self.preprocess)
        return ArrayRows(self.prepared())

    def blocks(self, n_rows: int | None = None) -> Iterator[npt.NDArray[Any]]:
        """Yield the raw rows, `n_rows` at a time (about 32 MiB where None), sparse ones dense."""
        n_rows = n_rows or rows_per_block(self.n_features)
        if isinstance(self.values, RowSource):
            yield from self.values.blocks(n_rows)
            return
        for start in range(0, self.n_samples, n_rows):
            yield dense(self.values[start : start + n_rows])

    @cached_property
    def fingerprint(self) -> str:
        """A hash of kind and values; the same for any memory order and any exact dtype.

        Sparse values have that of the same values filled in, unless these are more than 1 GiB.
        """
        if isinstance(self.values, RowSource):
            return self.values.summary.digest
        digest = hashlib.blake2b(self._head, digest_size=16)
        for piece in self._hashed():
            digest.update(np.ascontiguousarray(piece).data)
        return digest.hexdigest()

    def _hashed(self) -> Iterator[npt.NDArray[Any]]:
        if sparse.issparse(self.values) and 8 * self.n_samples * self.n_features > _FILLED_BYTES:
            yield self.values.indptr.astype(np.int64)  # hashing the zeros would take long
            yield self.values.indices.astype(np.int64)
            yield self.values.data.astype(np.float64) + 0.0  # no -0.0
            return
        for block in self.blocks():
            yield block.astype(np.float64) + 0.0

    @cached_property
    def glimpse(self) -> tuple[Hashable, ...]:
        """The kind, the shape and the first row: where these differ, so do fingerprints."""
        lazy = isinstance(self.values, RowSource)
        first = self.values.summary.first if lazy else dense(self.values[:1])
        first = first.astype(np.float64) + 0.0  # no -0.0
        return self.kind, self.values.shape, self._uncentred, first.tobytes()

    @property
    def _head(self) -> bytes:
        return f"{self.kind}:{self.values.shape}{':uncentred' * self._uncentred}".encode()

    @property
    def _uncentred(self) -> bool:
        """Whether sparse values are standardized, without centring: other data comes out."""
        return "standardize" in self.preprocess and sparse.issparse(self.values)

    @property
    def identity(self) -> Identity:
        """What two datasets of the same values and preprocessing share, a key of dicts."""
        return Identity(self)

    def generator(self, seed: int) -> np.random.Generator:
        """Return the generator that belongs to this data under a root seed."""
        return np.random.default_rng([seed, int(self.fingerprint, 16)])

    def with_options(
        self,
        *,
        name: str | None = None,
        preprocess: Step | Iterable[Step] | None = None,
        nan_policy: str | None = None,
    ) -> Dataset:
        """Return the same values, not scanned again, with other options; None keeps one."""
        return self._copy(
            name=self.name if name is None else name,
            preprocess=self.preprocess if preprocess is None else preprocess,
            nan_policy=self.nan_policy if nan_policy is None else nan_policy,
        )

    def subsample(self, n_samples: int, rng: np.random.Generator) -> Dataset:
        """Return `n_samples` rows drawn without replacement, in their original order."""
        rows = np.sort(rng.choice(self.n_samples, size=n_samples, replace=False))
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
            cached = vars(self).keys() & {"fingerprint", "glimpse"}
            vars(copy).update({key: vars(self)[key] for key in cached})
        return copy

    def __repr__(self) -> str:
        name = "" if self.name is None else f"{self.name!r}, "
        steps = f", preprocess={list(self.preprocess)}" if self.preprocess else ""
        return f"Dataset({name}{self.kind}, {self.n_samples} × {self.n_features}{steps})"
