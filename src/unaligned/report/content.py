"""What a report shows, worked out once: order, groups, maps, correlations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .._check import FloatArray
from ..embedding import CORRELATIONS, correlate, symmetrised
from ..errors import InputError
from ..result import Comparison
from ..spectra.signature import Signature
from ..tags import Tag

MAPS = ("mds", "diffusion")
_MOST_GROUPS = 8
_CLEAR = 0.5  # mean silhouette from which groups are spoken of (Kaufman and Rousseeuw, 1990)


class Size(NamedTuple):
    """How large a dataset is."""

    name: str
    n_samples: int
    n_features: int


class Groups(NamedTuple):
    """A cut of the tree: the number of the group of each dataset, counted from 0."""

    labels: tuple[int, ...]
    n_groups: int
    silhouette: float


class Correlation(NamedTuple):
    """How distances agree with differences of a number."""

    tag: str
    pearson: float
    spearman: float
    n_pairs: int


class Map(NamedTuple):
    """Coordinates (n, 2), and how their distances correlate with the ones they stand for."""

    method: str
    places: FloatArray
    agreement: float


@dataclass(frozen=True)
class Content:
    """A comparison with its tags, and all that follows from it."""

    comparison: Comparison
    tags: Sequence[Tag] = ()

    @cached_property
    def signatures(self) -> list[tuple[str, Signature]]:
        """All signatures with their names, the references' behind the datasets'."""
        found = self.comparison.signatures.items()
        if self.comparison.is_square:
            return [*found]
        return [*found, *self.comparison.reference_signatures.items()]

    @property
    def sizes(self) -> list[Size]:
        """The sizes, where signatures know them."""
        return [Size(name, s.n_samples, s.n_features) for name, s in self.signatures]

    @property
    def bound_kinds(self) -> str:
        """The kinds of the error bounds, such as `certified, exact`."""
        return ", ".join(sorted({s.bound_kind for _, s in self.signatures}))

    @property
    def is_finite(self) -> bool:
        """Whether all distances are numbers."""
        return bool(np.isfinite(self.comparison.distances).all())

    @cached_property
    def square(self) -> FloatArray:
        """The distances, made symmetric as `embed` and `linkage` do."""
        return symmetrised(self.comparison.distances)

    @cached_property
    def places(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """The rows and the columns of all pairs, each pair once."""
        n, m = self.comparison.distances.shape
        if not self.comparison.is_square:
            i, j = np.divmod(np.arange(n * m), m)
            return i, j
        if np.array_equal(self.comparison.distances, self.comparison.distances.T):
            return np.triu_indices(n, k=1)
        i, j = np.nonzero(~np.eye(n, dtype=bool))
        return i, j

    @property
    def pairs(self) -> FloatArray:
        """Row, column and distance of each pair, (n_pairs, 3)."""
        i, j = self.places
        return np.column_stack([i, j, self.comparison.distances[i, j]])

    @property
    def pair_bounds(self) -> FloatArray:
        """The error bound of each pair, in the same order."""
        bounds: FloatArray = self.comparison.error_bounds[self.places]
        return bounds

    @cached_property
    def linkage(self) -> FloatArray | None:
        """The tree of average linkage, (n - 1, 4), where there is one."""
        enough = self.comparison.is_square and len(self.comparison.names) > 1 and self.is_finite
        return self.comparison.linkage() if enough else None

    @cached_property
    def order(self) -> list[int]:
        """The datasets as the leaves of the tree stand, or as they came."""
        from scipy.cluster.hierarchy import leaves_list

        if self.linkage is None:
            return list(range(len(self.comparison.names)))
        return [int(leaf) for leaf in leaves_list(self.linkage)]

    @cached_property
    def groups(self) -> Groups | None:
        """The cut of the tree with the best silhouette, where it separates clearly."""
        from scipy.cluster.hierarchy import fcluster
        from sklearn.metrics import silhouette_score

        n = len(self.comparison.names)
        if self.linkage is None or n < 4 or not self.square.any():
            return None
        best: Groups | None = None
        for count in range(2, min(_MOST_GROUPS, n - 1) + 1):
            labels = fcluster(self.linkage, count, criterion="maxclust")
            if not 2 <= len(set(labels)) < n:
                continue
            score = float(silhouette_score(self.square, labels, metric="precomputed"))
            if best is None or score > best.silhouette:
                best = Groups(self._in_order(labels), len(set(labels)), score)
        return best if best is not None and best.silhouette >= _CLEAR else None

    def _in_order(self, labels: Sequence[int]) -> tuple[int, ...]:
        """Return labels that count from 0 along the tree."""
        seen = dict.fromkeys(labels[i] for i in self.order)
        numbers = {label: k for k, label in enumerate(seen)}
        return tuple(numbers[label] for label in labels)

    @cached_property
    def maps(self) -> list[Map]:
        """The maps, where there are at least three datasets."""
        n = len(self.comparison.names)
        if not self.comparison.is_square or n < 3 or not self.is_finite or not self.square.any():
            return []
        found = []
        for method in MAPS:
            places = self.comparison.embed(method, 2)
            found.append(Map(method, places, self._agreement(places)))
        return found

    def _agreement(self, places: FloatArray) -> float:
        from scipy.spatial.distance import pdist

        i, j = np.triu_indices(len(places), k=1)
        drawn, true = pdist(places), self.square[i, j]
        if np.ptp(drawn) == 0 or np.ptp(true) == 0:
            return float("nan")
        return float(np.corrcoef(drawn, true)[0, 1])

    @cached_property
    def correlations(self) -> list[Correlation]:
        """How distances agree with each numeric tag that three datasets or more have."""
        if not self.comparison.is_square or not self.is_finite:
            return []
        found = []
        for tag in self.tags:
            known = {i: v for i, v in enumerate(tag.values) if isinstance(v, float)}
            if not tag.is_numeric or len(known) < 3:
                continue
            block, values = self.square[np.ix_([*known], [*known])], [*known.values()]
            try:
                pearson, spearman = (correlate(block, values, how) for how in CORRELATIONS)
            except InputError:
                continue  # all numbers or all distances are equal: there is none
            n_pairs = len(known) * (len(known) - 1) // 2
            found.append(Correlation(tag.name, pearson, spearman, n_pairs))
        return found

    @cached_property
    def size_agreement(self) -> float | None:
        """The rank correlation of distances with differences of log sizes, where it exists."""
        if not self.comparison.is_square or len(self.sizes) < 4 or not self.is_finite:
            return None
        try:
            return correlate(self.square, np.log([s.n_samples for s in self.sizes]), "spearman")
        except InputError:
            return None
