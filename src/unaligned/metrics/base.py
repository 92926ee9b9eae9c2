"""The distance interface, and the bases of distances of spectra and of data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.spatial.distance import cdist

from .. import _check
from .._check import FloatArray
from ..data.dataset import KINDS, Dataset
from ..data.facts import Facts, Names
from ..data.preprocess import is_fitted
from ..defaults import FEW_FEATURES
from ..engine import Engine
from ..errors import InputError, RecipeMismatchError, about
from ..operators.pointcloud import LARGEST, SMALLEST, require_representable, squared_norms
from ..spectra.decay import gamma_by_rule
from ..spectra.pipeline import (
    SignatureSettings,
    compute_signature,
    default_eigenvalues,
    require_enough,
)
from ..spectra.signature import Signature

# A difference below this share of its terms has lost 6 of their 16 digits to cancellation.
CANCELLED = 1e-6


class Distance(ABC):
    """A distance between datasets; instances are frozen settings.

    `describe` runs once per dataset, `compare` once per pair of descriptors.

    Attributes
    ----------
    name
        The name in `ua.distance`.
    summary, cost
        One line each for `ua.available`.
    same_features
        Whether column j must be the same feature in both datasets.
    paired_rows
        Whether row i must be the same sample in both datasets.
    symmetric
        Whether d(A, B) = d(B, A).
    kinds
        The kinds of data that it accepts.
    is_descriptor
        Whether the work is done per dataset, and pairs are cheap.
    extra
        The optional extra that it needs, or None.
    thread_safe
        Whether it may run on several threads without being asked to.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    cost: ClassVar[str]
    same_features: ClassVar[bool] = False
    paired_rows: ClassVar[bool] = False
    symmetric: ClassVar[bool] = True
    kinds: ClassVar[tuple[str, ...]] = KINDS
    is_descriptor: ClassVar[bool] = False
    extra: ClassVar[str | None] = None
    thread_safe: ClassVar[bool] = True

    @classmethod
    def from_options(cls, options: dict[str, Any]) -> Self:
        """Return the distance with these flat options; unknown ones raise `OptionError`.

        Parameters
        ----------
        options
            Option -> value, those of nested settings included.

        Returns
        -------
        Distance
            Of this class.
        """
        names = _check.option_names(cls)
        arguments = ("rng", "references")  # of `compare`
        _check.known_options(f"distance {cls.name!r}", options, names, arguments)
        return _check.from_options(cls, options)

    def options(self) -> dict[str, Any]:
        """Return the settings as flat options, the inverse of `from_options`.

        Returns
        -------
        dict
            Option -> value.
        """
        return _check.to_options(self)

    def fit(self, datasets: Sequence[Dataset | Signature]) -> Self:
        """Return the distance with the settings that depend on the whole collection.

        Parameters
        ----------
        datasets
            All datasets and references.

        Returns
        -------
        Distance
            Itself where no setting depends on them.
        """
        return self

    @abstractmethod
    def describe(self, dataset: Dataset, seed: int) -> Any:
        """Return the descriptor of one dataset.

        Parameters
        ----------
        dataset
            Of one of the `kinds`.
        seed
            The root seed, for `Dataset.generator`.

        Returns
        -------
        object
            What `compare` takes.
        """

    def to_arrays(self, descriptor: Any) -> dict[str, npt.NDArray[Any]] | None:
        """Return a descriptor as arrays for a file; None if it is the data or a signature.

        Parameters
        ----------
        descriptor
            A result of `describe`.

        Returns
        -------
        dict or None
            Name -> array.
        """
        return None

    def from_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Any:
        """Return the descriptor, the inverse of `to_arrays`.

        Parameters
        ----------
        arrays
            A result of `to_arrays`.

        Returns
        -------
        object
            The descriptor.
        """
        raise InputError(
            f"The file has descriptors of {self.name!r}, which stores none: it is damaged or was "
            "written by another version. Compute the comparison again."
        )

    def settle(self, descriptors: Sequence[Any]) -> tuple[Self, list[Any]]:
        """Return the distance and the descriptors with settings that need all descriptors.

        Parameters
        ----------
        descriptors
            Of all datasets and references.

        Returns
        -------
        distance : Distance
            With these settings.
        descriptors : list
            In the same order.
        """
        return self, list(descriptors)

    @abstractmethod
    def compare(self, first: Any, second: Any) -> float:
        """Return the distance between two descriptors.

        Parameters
        ----------
        first, second
            Results of `describe`.

        Returns
        -------
        float
            Squared or not, as the distance defines it.
        """

    def vector(self, descriptor: Any) -> FloatArray | None:
        """Return the point whose Euclidean distances are this distance; None if it has none.

        Parameters
        ----------
        descriptor
            A result of `describe`.

        Returns
        -------
        ndarray or None
            Shape (k,), the same k for all descriptors.
        """
        return None

    def error_bound(self, first: Any, second: Any) -> float:
        """Return a bound on the error of `compare`; NaN where none is known.

        Parameters
        ----------
        first, second
            Results of `describe`.

        Returns
        -------
        float
            In the unit of the distance.
        """
        return float("nan")

    def objection(self, first: Facts, second: Facts) -> str | None:
        """Return why the distance does not apply to this pair, or None.

        Parameters
        ----------
        first, second
            What is known of the two datasets.

        Returns
        -------
        str or None
            Words that continue "the distance does not apply: ".
        """
        for dataset in (first, second):
            if dataset.kind not in self.kinds:
                return f"it takes {' or '.join(self.kinds)}, and {dataset.label} is {dataset.kind}"
        reason = _row_mismatch(first, second) if self.paired_rows else None
        return reason or (feature_mismatch(first, second) if self.same_features else None)


def _row_mismatch(first: Facts, second: Facts) -> str | None:
    """Return why row i of the two datasets is not the same sample, or None."""
    if first.n_samples != second.n_samples:
        reason: str | None = (
            f"{first.label} has {first.n_samples} rows where {second.label} has {second.n_samples}"
        )
    elif first.n_dropped or second.n_dropped:
        dropped = first if first.n_dropped else second
        reason = f"nan_policy='omit' dropped rows of {dropped.label}"
    else:
        reason = _name_mismatch("row", first, first.sample_names, second, second.sample_names)
    return reason and f"it compares row i with row i, and {reason}"


def feature_mismatch(first: Facts, second: Facts) -> str | None:
    """Return why column j of the two datasets is not the same feature, or None."""
    fitted = next(filter(is_fitted, (*first.preprocess, *second.preprocess)), None)
    if fitted is not None:
        reason: str | None = (
            f"the preprocess step {fitted!r} is fitted to each dataset by itself, which gives "
            "each its own axes and units; fit it to the references for all (fit_on='references'), "
            "or give the results of one transform of all rows"
        )
    elif first.n_features != second.n_features:
        reason = (
            f"{first.label} has {first.n_features} columns where {second.label} has "
            f"{second.n_features}"
        )
    else:
        reason = _name_mismatch("column", first, first.feature_names, second, second.feature_names)
    return reason and f"it needs the same features, and {reason}"


def _name_mismatch(
    what: str, first: Facts, mine: Names, second: Facts, yours: Names
) -> str | None:
    """Return how the names of rows or columns differ; None where they agree or one has none."""
    if mine is None or yours is None or mine == yours:
        return None
    known = set(yours)
    missing = [name for name in mine if name not in known]
    if missing:
        shown = ", ".join(map(repr, missing[:3])) + (", …" if len(missing) > 3 else "")
        return (
            f"{second.label} has no {what} {shown}, which {first.label} has; use the same {what} "
            f"names, or give arrays or .npy files, whose {what}s are matched by position"
        )
    i = next(i for i, name in enumerate(mine) if name != yours[i])
    remedy = {
        "column": "columns= does where a table is read from a file",
        "row": "second.loc[first.index] does in pandas",
    }[what]
    return (
        f"{first.label} has {mine[i]!r} as {what} {i} where {second.label} has {yours[i]!r}; "
        f"bring the {what}s of all datasets into one order, as {remedy}"
    )


@dataclass(frozen=True)
class SpectralDistance(Distance):
    """A distance between the leading eigenvalues of one operator per dataset.

    The descriptor is a `Signature`; subclasses implement `between`.
    """

    is_descriptor: ClassVar[bool] = True

    settings: SignatureSettings = field(default_factory=SignatureSettings)

    @property
    def gives_signatures(self) -> bool:
        """Whether `describe` returns signatures with these settings."""
        return True

    def fit(self, datasets: Sequence[Dataset | Signature]) -> Self:
        """Choose K for the whole collection; raise if some dataset has fewer samples."""
        k = self.settings.n_eigenvalues
        given = {d.n_eigenvalues for d in datasets if isinstance(d, Signature)}
        fresh = [d for d in datasets if isinstance(d, Dataset)]
        if k is not None and given - {k}:
            raise RecipeMismatchError(
                f"n_eigenvalues={k} was requested, and a given signature has {max(given - {k})} "
                f"values. Shorten longer ones with .truncate({k}), or leave n_eigenvalues out."
            )
        if k is None:
            sizes = [d.n_samples for d in fresh]
            k = min(given) if given else default_eigenvalues(fresh, self.settings.kernel)
            if given and k > min([k, *sizes]):
                raise RecipeMismatchError(
                    f"A given signature has {k} values, and the smallest dataset only "
                    f"{min(sizes)} samples. Shorten the signatures with .truncate({min(sizes)})."
                )
        for dataset in fresh:
            require_enough(k, dataset)
        return replace(self, settings=replace(self.settings, n_eigenvalues=k))

    def describe(self, dataset: Dataset, seed: int, engine: Engine | None = None) -> Signature:
        """Return the signature of one dataset (Algorithm 2, first loop).

        `engine` processes the row blocks of a streamed dataset.
        """
        return compute_signature(dataset, self.settings, seed, engine)

    def settle(self, descriptors: Sequence[Signature]) -> tuple[Self, list[Signature]]:
        """Choose γ if it is a rule: the largest that the rule gives for any of the spectra."""
        rule = self.settings.gamma
        if not isinstance(rule, str) or not self.gives_signatures:
            return self, list(descriptors)
        gamma = max(gamma_by_rule(rule, s.eigenvalues, s.n_samples) for s in descriptors)
        settled = replace(self, settings=replace(self.settings, gamma=gamma))
        return settled, [signature.with_gamma(gamma) for signature in descriptors]

    def compare(self, first: Signature, second: Signature) -> float:
        """Return the distance; raise if the recipes differ."""
        if self.gives_signatures:
            first.require_comparable(second)
        return self.between(first, second)

    @abstractmethod
    def between(self, first: Signature, second: Signature) -> float:
        """Return the distance between two comparable signatures."""


@dataclass(frozen=True, eq=False)
class DataDescriptor:
    """What `DataDistance.compare` needs of one dataset."""

    content: Any  # the points, or what is computed from them
    arrays: tuple[FloatArray, ...]  # those of `content` that determine the distance
    label: str  # the dataset in messages
    seed: int

    def precedes(self, other: DataDescriptor) -> bool | None:
        """Return whether this comes first in a total order of contents; None if they are equal.

        The first row nearly always decides, so it is compared before the rest.
        """
        if self is other:
            return None
        for mine, yours in zip(self.arrays, other.arrays, strict=True):
            if mine.shape != yours.shape:
                return mine.shape < yours.shape
            for rows in (slice(0, 1), slice(1, None)):
                differ = np.flatnonzero(mine[rows] != yours[rows])
                if differ.size:
                    return bool(mine[rows].flat[differ[0]] < yours[rows].flat[differ[0]])
        return None


class DataDistance(Distance):
    """A distance computed from the data of both sides rather than from spectra.

    Equal data has distance exactly 0. A symmetric distance gives the same bits in both
    directions: the contents of a pair decide which one comes first.
    """

    kinds: ClassVar[tuple[str, ...]] = ("points",)
    min_samples: ClassVar[int] = 1

    @property
    def zero_for_equal_data(self) -> bool:
        """Whether equal data has distance 0."""
        return True

    def describe(self, dataset: Dataset, seed: int) -> DataDescriptor:
        """Return what `between` needs of one dataset."""
        content = self.content(dataset, seed)
        return DataDescriptor(content, self.arrays(content), dataset.label, seed)

    def content(self, dataset: Dataset, seed: int) -> Any:
        """Return the result of the work that needs one dataset only; here the dense points."""
        return dense_points(dataset)

    def arrays(self, content: Any) -> tuple[FloatArray, ...]:
        """Return the arrays of the content that determine the distance."""
        return (content,)

    def compare(self, first: DataDescriptor, second: DataDescriptor) -> float:
        """Return the distance between two descriptors."""
        in_order = first.precedes(second)
        if in_order is None and self.zero_for_equal_data:
            return 0.0
        if self.symmetric and in_order is False:
            first, second = second, first
        return float(self.between(first, second))

    @abstractmethod
    def between(self, first: DataDescriptor, second: DataDescriptor) -> float:
        """Return the distance between two descriptors in order."""

    def objection(self, first: Facts, second: Facts) -> str | None:
        """Return why the distance does not apply to this pair, or None."""
        for dataset in (first, second):
            if dataset.n_samples < self.min_samples:
                return (
                    f"it needs at least {self.min_samples} rows, and {dataset.label} has "
                    f"{dataset.n_samples}"
                )
        return super().objection(first, second)


def dense_points(dataset: Dataset) -> FloatArray:
    """Return the preprocessed values as a dense float64 array, (N, d)."""
    values = dataset.prepared()
    if sparse.issparse(values):
        values = values.toarray()
    points: FloatArray = np.ascontiguousarray(values, dtype=np.float64)
    require_range(points, dataset.label)
    return points


def require_range(values: FloatArray, label: str) -> None:
    """Raise if squares of the values overflow or underflow; zeros are allowed."""
    if not SMALLEST**2 <= float(np.vdot(values, values)) <= LARGEST**2:
        with about(label):
            require_representable(float(np.abs(values).max(initial=0.0)))


def centred(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the column means, (d,), exact for constant columns, and the points minus them."""
    # Sums over the rows of a narrow array are faster column by column.
    order: Literal["F", "C"] = "F" if points.shape[1] <= FEW_FEATURES else "C"
    rest: FloatArray = np.subtract(points, points[0], order=order)
    shift = rest.sum(axis=0) / len(rest)
    rest -= shift
    return points[0] + shift, rest


def squared_distances(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return ‖xᵢ - yⱼ‖² of all pairs, (N, M); equal rows have exactly 0.

    With many features by a matrix product of centred points. Pairs that still suffer from
    cancellation, such as those close together far from the others, are recomputed from
    differences. O(N M d) time, 8 N M bytes.
    """
    if first.shape[1] <= FEW_FEATURES:
        return np.asarray(cdist(first, second, "sqeuclidean"))
    centre = 0.5 * (first.mean(axis=0) + second.mean(axis=0))
    x = first - centre
    y = x if second is first else second - centre
    squared: FloatArray = -2.0 * (x @ y.T)
    norms = squared_norms(y)
    for row, norm in enumerate(squared_norms(x)):
        sizes = norm + norms
        squared[row] += sizes
        close = np.flatnonzero(squared[row] <= CANCELLED * sizes)
        if close.size:
            squared[row, close] = cdist(first[[row]], second[close], "sqeuclidean")[0]
    return squared
