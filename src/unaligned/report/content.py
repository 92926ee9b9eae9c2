"""The content of a report, computed once: order, groups, maps, correlations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._check import FloatArray
from ..embedding import CORRELATIONS, correlate, symmetrised
from ..errors import InputError
from ..inference.association import Correlation
from ..result import Comparison
from ..spectra.signature import Signature
from ..tags import Tag


class Groups(NamedTuple):
    """A cut of the tree: the number of the group of each dataset, counted from 0."""

    labels: tuple[int, ...]
    n_groups: int
    silhouette: float


class TagCorrelation(NamedTuple):
    """Correlation of distances with differences of a number, and the p-value of Pearson's."""

    tag: str
    pearson: float
    spearman: float
    n_pairs: int
    p_value: float


class Map(NamedTuple):
    """Coordinates (n, 2), and the correlation of their distances with the true ones."""

    method: str
    places: FloatArray
    agreement: float


@dataclass(frozen=True)
class Content:
    """A comparison with its tags, explanations of pairs, and everything derived from it."""

    comparison: Comparison
    tags: Sequence[Tag] = ()
    why: Sequence[Mapping[str, Any]] = ()

    @cached_property
    def signatures(self) -> list[tuple[str, Signature]]:
        """All signatures with their names, those of the references last."""
        found = [*self.comparison.signatures.items()]
        references = self.comparison.reference_signatures.items()
        return found if self.comparison.is_square else [*found, *references]

    @property
    def bound_kinds(self) -> str:
        """The kinds of the error bounds, such as `certified, exact`."""
        return ", ".join(sorted({s.bound_kind for _, s in self.signatures}))

    @property
    def is_finite(self) -> bool:
        """Whether all distances are finite."""
        return bool(np.isfinite(self.comparison.distances).all())

    @cached_property
    def square(self) -> FloatArray:
        """The distances, made symmetric as in `embed` and `linkage`."""
        return symmetrised(self.comparison.distances)

    @cached_property
    def places(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """The rows and columns of all pairs, each pair once."""
        n, m = self.comparison.distances.shape
        if not self.comparison.is_square:
            i, j = np.divmod(np.arange(n * m), m)
            return i, j
        if np.array_equal(self.comparison.distances, self.comparison.distances.T):
            return np.triu_indices(n, k=1)
        i, j = np.nonzero(~np.eye(n, dtype=bool))
        return i, j

    @property
    def pair_distances(self) -> FloatArray:
        """The distance of each pair, (n_pairs,)."""
        return np.asarray(self.comparison.distances[self.places])

    @cached_property
    def linkage(self) -> FloatArray | None:
        """The tree of average linkage, (n - 1, 4), if there is one."""
        enough = self.comparison.is_square and len(self.comparison.names) > 1 and self.is_finite
        return self.comparison.linkage() if enough else None

    @cached_property
    def order(self) -> list[int]:
        """The datasets in the order of the leaves of the tree, or as given."""
        from scipy.cluster.hierarchy import leaves_list

        if self.linkage is None:
            return list(range(len(self.comparison.names)))
        return [int(leaf) for leaf in leaves_list(self.linkage)]

    @cached_property
    def groups(self) -> Groups | None:
        """The cut of the tree with the best mean silhouette, if that is at least 0.5.

        The threshold is that of Kaufman and Rousseeuw (1990) for a reasonable structure.
        """
        from scipy.cluster.hierarchy import fcluster
        from sklearn.metrics import silhouette_score

        n = len(self.comparison.names)
        if self.linkage is None or n < 4 or not self.square.any():
            return None
        best: Groups | None = None
        for count in range(2, min(8, n - 1) + 1):
            labels = fcluster(self.linkage, count, criterion="maxclust")
            seen = dict.fromkeys(labels[i] for i in self.order)
            if not 2 <= len(seen) < n:
                continue
            score = float(silhouette_score(self.square, labels, metric="precomputed"))
            if best is None or score > best.silhouette:
                numbers = {label: k for k, label in enumerate(seen)}  # 0, 1, … along the tree
                best = Groups(tuple(numbers[label] for label in labels), len(seen), score)
        return best if best is not None and best.silhouette >= 0.5 else None

    @cached_property
    def maps(self) -> list[Map]:
        """The maps of three or more datasets, by each method."""
        from scipy.spatial.distance import pdist, squareform

        n = len(self.comparison.names)
        if not self.comparison.is_square or n < 3 or not self.is_finite or not self.square.any():
            return []
        found, true = [], squareform(self.square, checks=False)
        for method in ("mds", "diffusion"):
            places = self.comparison.embed(method, 2)
            drawn = pdist(places)
            varies = np.ptp(drawn) > 0 and np.ptp(true) > 0
            agreement = float(np.corrcoef(drawn, true)[0, 1]) if varies else float("nan")
            found.append(Map(method, places, agreement))
        return found

    @cached_property
    def correlations(self) -> list[TagCorrelation]:
        """The correlation with each numeric tag that three or more datasets have."""
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
                continue  # undefined: all numbers or all distances are equal
            n_pairs = len(known) * (len(known) - 1) // 2
            numbers = np.array(values)
            p_value = Correlation(pearson, block, numbers, "pearson", 9999, 0).p_value
            found.append(TagCorrelation(tag.name, pearson, spearman, n_pairs, p_value))
        return found

    @cached_property
    def size_correlation(self) -> float | None:
        """The rank correlation of distances with differences of log sizes, if defined."""
        if not self.comparison.is_square or len(self.signatures) < 4 or not self.is_finite:
            return None
        try:
            sizes = [s.n_samples for _, s in self.signatures]
            return correlate(self.square, np.log(sizes), "spearman")
        except InputError:
            return None
