"""What the distances between traces of graphs share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy.typing as npt

from .. import _check, _settings
from ..data.dataset import KINDS, Dataset
from ..data.facts import Facts, Names
from ..data.preprocess import is_fitted
from ..engine import Engine
from ..errors import InputError, RecipeMismatchError
from ..spectra.decay import suggest_gamma
from ..spectra.laplacian import Trace
from ..spectra.pipeline import (
    SignatureSettings,
    compute_signature,
    default_eigenvalues,
    require_comparable,
    require_enough,
)
from ..spectra.signature import Signature

# What options are called in other libraries, or in the paper; only to suggest ours.
_ELSEWHERE = {
    "sigma": "bandwidth",
    "k": "n_eigenvalues",
    "n_components": "n_eigenvalues",
    "reg": "epsilon",
    "random_state": "rng",
    "seed": "rng",
}
_ORDERED = {
    "column": "columns= does where a table is read from a file",
    "row": "second.loc[first.index] does in pandas",
}


class Distance(ABC):
    """A way from two datasets to one number; instances are frozen settings.

    `describe` runs once per dataset, `compare` once per pair of descriptors.

    Attributes
    ----------
    name
        The name by which `ua.distance` knows it.
    summary
        One line for the table of distances.
    cost
        What it costs, for the same table.
    same_features, paired_rows
        What it needs: columns that mean the same in both datasets; rows that belong together.
    symmetric
        Whether d(A, B) = d(B, A).
    kinds
        The kinds of data that it takes.
    is_descriptor
        Whether the work is done once per dataset, so that comparing many is cheap.
    extra
        The optional extra that it needs, if any.
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

    @classmethod
    def from_options(cls, options: dict[str, Any]) -> Self:
        """Return the distance with these flat options, refusing unknown ones."""
        names = _settings.option_names(cls)
        if not options.keys() <= set(names):
            also = {word: ours for word, ours in _ELSEWHERE.items() if ours in (*names, "rng")}
            _check.known_options(f"distance {cls.name!r}", options, names, also)
        return _settings.from_options(cls, options)

    def options(self) -> dict[str, Any]:
        """Return the settings as `from_options` takes them."""
        return _settings.to_options(self)

    def fit(self, datasets: Sequence[Dataset | Signature]) -> Self:
        """Return the distance with what depends on the whole collection settled."""
        return self

    @abstractmethod
    def describe(self, dataset: Dataset, seed: int) -> Any:
        """Return the descriptor of one dataset."""

    def to_arrays(self, descriptor: Any) -> dict[str, npt.NDArray[Any]] | None:
        """Return a descriptor as arrays for a file; None where it is the data, or a signature."""
        return None

    def from_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Any:
        """Return the descriptor that `to_arrays` took apart."""
        raise InputError(
            f"The file holds descriptors of {self.name!r}, which keeps none: it is damaged, or of "
            "another version. Make the comparison again."
        )

    def settle(self, descriptors: Sequence[Any]) -> tuple[Self, list[Any]]:
        """Return the distance and all descriptors with what only they together decide."""
        return self, list(descriptors)

    @abstractmethod
    def compare(self, first: Any, second: Any) -> float:
        """Return the distance between two descriptors."""

    def error_bound(self, first: Any, second: Any) -> float:
        """Return a bound on the error of `compare`; NaN where none is known."""
        return float("nan")

    def objection(self, first: Facts, second: Facts) -> str | None:
        """Return why the distance does not apply to this pair, or None."""
        for dataset in (first, second):
            if dataset.kind not in self.kinds:
                return f"it takes {' or '.join(self.kinds)}, and {dataset.label} is {dataset.kind}"
        reason = _other_rows(first, second) if self.paired_rows else None
        return reason or (_other_features(first, second) if self.same_features else None)


def _other_rows(first: Facts, second: Facts) -> str | None:
    """Return why row i of these two is not the same sample, or None."""
    needs = "it compares row i with row i, and"
    if first.n_samples != second.n_samples:
        return (
            f"{needs} {first.label} has {first.n_samples} rows where {second.label} has "
            f"{second.n_samples}"
        )
    if first.n_dropped or second.n_dropped:
        dropped = first if first.n_dropped else second
        return f"{needs} nan_policy='omit' dropped rows of {dropped.label}"
    found = _other_names("row", first, first.sample_names, second, second.sample_names)
    return found and f"{needs} {found}"


def _other_features(first: Facts, second: Facts) -> str | None:
    """Return why the columns of these two do not mean the same, or None."""
    needs = "it needs the same features, and"
    for dataset in (first, second):
        for step in filter(is_fitted, dataset.preprocess):
            return (
                f"{needs} the preprocess step {step!r} is fitted to each dataset by itself, which "
                "gives each its own axes and units; fit one transform to all rows together and "
                "give its results"
            )
    if first.n_features != second.n_features:
        return (
            f"{needs} {first.label} has {first.n_features} columns where {second.label} has "
            f"{second.n_features}"
        )
    found = _other_names("column", first, first.feature_names, second, second.feature_names)
    return found and f"{needs} {found}"


def _other_names(what: str, first: Facts, mine: Names, second: Facts, yours: Names) -> str | None:
    """Return how the names of rows or columns differ; None where they agree, or one has none."""
    if mine is None or yours is None or mine is yours or mine == yours:
        return None
    known = set(yours)
    missing = [name for name in mine if name not in known]
    if missing:
        shown = ", ".join(map(repr, missing[:3])) + (", …" if len(missing) > 3 else "")
        return (
            f"{second.label} has no {what} {shown}, which {first.label} has; name the {what}s "
            f"alike, or give arrays or .npy files, whose {what}s are matched by position"
        )
    i = next(i for i, name in enumerate(mine) if name != yours[i])
    return (
        f"{first.label} has {mine[i]!r} as {what} {i} where {second.label} has {yours[i]!r}; "
        f"bring the {what}s of all datasets into one order, as {_ORDERED[what]}"
    )


@dataclass(frozen=True)
class SpectralDistance(Distance):
    """A distance between the leading eigenvalues of one operator per dataset.

    The descriptor is a `Signature`; subclasses only say how two of them are compared.
    """

    is_descriptor: ClassVar[bool] = True

    settings: SignatureSettings = field(default_factory=SignatureSettings)

    @property
    def gives_signatures(self) -> bool:
        """Whether `describe` returns signatures, with these settings too."""
        return True

    def fit(self, datasets: Sequence[Dataset | Signature]) -> Self:
        """Settle K for the whole collection; a K that some dataset cannot have is refused."""
        k = self.settings.n_eigenvalues
        given = {d.n_eigenvalues for d in datasets if isinstance(d, Signature)}
        fresh = [d for d in datasets if isinstance(d, Dataset)]
        if k is not None and given - {k}:
            raise RecipeMismatchError(
                f"n_eigenvalues={k} was asked for, and a signature given has {max(given - {k})} "
                f"values. Cut longer ones with .truncate({k}), or leave n_eigenvalues out."
            )
        if k is None:
            sizes = [d.n_samples for d in fresh]
            k = min(given) if given else default_eigenvalues(fresh, self.settings.kernel)
            if given and k > min([k, *sizes]):
                raise RecipeMismatchError(
                    f"A signature given has {k} values, and the smallest dataset only "
                    f"{min(sizes)} samples. Cut the signatures with .truncate({min(sizes)})."
                )
        for dataset in fresh:
            require_enough(k, dataset)
        return replace(self, settings=replace(self.settings, n_eigenvalues=k))

    def describe(self, dataset: Dataset, seed: int, engine: Engine | None = None) -> Signature:
        """Return the signature of one dataset (Algorithm 2, its first loop).

        Blocks of rows, where there are any, are worked on by `engine`.
        """
        return compute_signature(dataset, self.settings, seed, engine)

    def settle(self, descriptors: Sequence[Signature]) -> tuple[Self, list[Signature]]:
        """Settle γ where it is `"auto"`: the largest that any of the spectra asks for."""
        if self.settings.gamma != "auto":
            return self, list(descriptors)
        gamma = max(suggest_gamma(s.eigenvalues, s.n_samples)[0] for s in descriptors)
        settled = replace(self, settings=replace(self.settings, gamma=gamma))
        return settled, [signature.with_gamma(gamma) for signature in descriptors]

    def compare(self, first: Signature, second: Signature) -> float:
        """Return the distance, after making sure that the two may be compared."""
        require_comparable(first, second)
        return self.between(first, second)

    @abstractmethod
    def between(self, first: Signature, second: Signature) -> float:
        """Return the distance between two comparable signatures."""


class TraceDistance(Distance):
    """A distance between traces of a graph: one given, or that of nearest neighbours."""

    kinds: ClassVar[tuple[str, ...]] = ("points", "distances", "graph")
    is_descriptor: ClassVar[bool] = True

    def to_arrays(self, descriptor: Trace) -> dict[str, npt.NDArray[Any]]:
        """Return the parts of a trace."""
        return descriptor.to_arrays()

    def from_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Trace:
        """Return the trace of these parts."""
        return Trace.from_arrays(arrays)
