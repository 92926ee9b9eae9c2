"""Do distances follow a known value or grouping? Mantel, PERMANOVA and PERMDISP by permutation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
from typing import Any, Self

import numpy as np

from .. import _check, embedding
from .._check import FloatArray, IndexArray, RNGLike
from ..embedding import AGGREGATORS, correlate_to_references, differences
from ..errors import InputError
from ..result import Comparison
from ..tags import values_of
from .energy import p_value

_BATCH_VALUES = 1 << 20  # 8 MiB of permuted distances at a time


class Correlation(float):
    """A correlation, as a float, with the p-value of its permutation test.

    Datasets are permuted against their values, so pairs that share a dataset stay together
    (Mantel, 1967); two-sided, exact for up to 8 datasets. The p-value is computed on first use,
    in O(B n²) time for B permutations of n datasets.

    Attributes
    ----------
    p_value : float
        The share of permutations whose correlation is at least as large in magnitude.
    n_permutations : int
        The number of permutations.
    is_exact : bool
        Whether all permutations are counted.
    """

    def __new__(
        cls,
        value: float,
        distances: FloatArray,
        numbers: FloatArray,
        method: str,
        n_permutations: int,
        seed: int,
        period: float | None = None,
    ) -> Self:
        """Keep what the test needs; `distances` has one number per pair, or per dataset."""
        found = super().__new__(cls, value)
        found._data, found._method, found._seed = (distances, numbers), method, seed
        found._period = period
        found.is_exact = numbers.size <= 8
        found.n_permutations = math.factorial(numbers.size) if found.is_exact else n_permutations
        return found

    _data: tuple[FloatArray, FloatArray]
    _method: str
    _seed: int
    _period: float | None
    is_exact: bool
    n_permutations: int

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return the arguments for pickle and copy."""
        settings = self._method, self.n_permutations, self._seed, self._period
        return (float(self), *self._data, *settings)

    @cached_property
    def p_value(self) -> float:
        """The share of permutations whose correlation is at least as large in magnitude."""
        distances, numbers = self._data
        index: tuple[IndexArray, ...] = (np.arange(numbers.size),)
        second = numbers
        if distances.ndim == 2:
            index = np.triu_indices(numbers.size, k=1)
            second = differences(numbers, self._period)
        first, second = (self._standard(values, index) for values in (distances, second))
        count = None if self.is_exact else self.n_permutations
        orders = _orders(numbers.size, count, np.random.default_rng(self._seed))
        null = [second[tuple(part[:, i] for i in index)] @ first[index] for part in orders]
        observed = abs(float(first[index] @ second[index]))
        return p_value(observed, np.abs(np.concatenate(null)), is_exact=self.is_exact)

    def _standard(self, values: FloatArray, index: tuple[IndexArray, ...]) -> FloatArray:
        """Return values, or their ranks, of mean 0 and norm 1 over the index."""
        chosen = values[index] / np.abs(values).max()
        if self._method == "spearman":
            from scipy.stats import rankdata

            chosen = rankdata(chosen)
        chosen = chosen - chosen.mean()
        found = np.zeros_like(values, dtype=np.float64)
        found[index] = found.T[index] = chosen / np.linalg.norm(chosen)
        return found

    def __repr__(self) -> str:
        count = f"all {self.n_permutations}" if self.is_exact else f"{self.n_permutations} random"
        return f"{float(self):.3f} (p = {self.p_value:.2g} by {count} permutations)"

    __str__ = float.__repr__


def correlation(
    comparison: Comparison,
    values: Any,
    method: str,
    aggregate: str,
    period: float | None,
    n_permutations: int,
    rng: RNGLike,
) -> Correlation:
    """Return the correlation of distances with a value of each dataset; see `Comparison`."""
    _check.one_of("aggregate", aggregate, AGGREGATORS)
    given = values_of(values, comparison.names, comparison.metadata)
    count = _check.positive_int("n_permutations", n_permutations)
    if comparison.is_square:
        distances = comparison._square("correlate")
        value = embedding.correlate(distances, given, method, period)
    elif period is not None:
        raise InputError(
            f"period={period!r} is of differences within one collection; against references "
            "the values themselves are correlated. Leave it out."
        )
    else:
        value = correlate_to_references(comparison.distances, given, aggregate, method)
        distances = embedding.aggregate(comparison.distances, aggregate)
    numbers, seed = np.asarray(given, dtype=np.float64), _check.root_seed(rng)
    return Correlation(value, distances, numbers, method, count, seed, period)


def _orders(n: int, count: int | None, rng: np.random.Generator) -> Iterator[IndexArray]:
    """Yield all orders of n items, or `count` random ones, in batches."""
    step = max(1, _BATCH_VALUES // (n * n))
    if count is None:
        everything = np.array(list(permutations(range(n))))
        yield from (everything[a : a + step] for a in range(0, len(everything), step))
        return
    for start in range(0, count, step):
        yield np.argsort(rng.random((min(step, count - start), n)), axis=1)


@dataclass(frozen=True)
class GroupTest:
    """The result of a permutation test of groups of datasets.

    Attributes
    ----------
    method
        `"PERMANOVA"` or `"PERMDISP"`.
    statistic
        The pseudo-F.
    p_value
        The share of groupings with an F at least as large.
    smallest_p_value
        The smallest that the number of datasets and permutations allows.
    r_squared
        The share of the squared distances that lies between the groups; PERMANOVA only.
    groups
        The number of datasets in each group.
    spread
        The mean distance of the datasets of a group to its centroid; PERMDISP only.
    n_permutations
        The number of groupings counted.
    is_exact
        Whether all distinct groupings were counted.
    """

    method: str
    statistic: float
    p_value: float
    smallest_p_value: float
    r_squared: float | None
    groups: dict[str, int]
    spread: dict[str, float] | None
    n_permutations: int
    is_exact: bool

    def __repr__(self) -> str:
        what = "centres" if self.method == "PERMANOVA" else "spreads"
        verdict = "differ" if self.p_value <= 0.05 else "cannot be told apart"
        share = "" if self.r_squared is None else f", R² = {self.r_squared:.2f}"
        floor = ""
        if self.smallest_p_value > 0.05:
            floor = f"; so few datasets allow no p-value below {self.smallest_p_value:.2g}"
        return (
            f"{self.method}: the {what} of {len(self.groups)} groups {verdict} "
            f"(F = {self.statistic:.3g}{share}, p = {self.p_value:.2g}{floor})."
        )


def group_test(
    comparison: Comparison, test: str, groups: Any, n_permutations: int, rng: RNGLike
) -> GroupTest:
    """Return the test of this name, `"permanova"` or `"dispersion"`; see `Comparison`."""
    distances = comparison._square(test)
    labels = values_of(groups, comparison.names, comparison.metadata, "groups")
    if np.shape(labels) != (len(comparison.names),):
        raise InputError(
            f"groups must have one label for each of the {len(comparison.names)} datasets; got "
            f"{_check.shape_of(labels)}."
        )
    for name, label in zip(comparison.names, labels, strict=True):
        if _check.is_missing(label):
            raise InputError(f"groups has no label for dataset {name!r}.")
    count = _check.positive_int("n_permutations", n_permutations)
    generator = np.random.default_rng(_check.root_seed(rng))
    run = permanova if test == "permanova" else permdisp
    return run(distances, labels, count, generator)


def permanova(
    distances: FloatArray, labels: Sequence[str], n_permutations: int, rng: np.random.Generator
) -> GroupTest:
    r"""Test whether groups of datasets have different centres (Anderson, 2001).

    .. math:: F = \frac{(S_T - S_W) / (a - 1)}{S_W / (n - a)}, \quad
              S_T = \frac1n \sum_{i<j} d_{ij}^2, \quad
              S_W = \sum_g \frac1{n_g} \sum_{i<j \in g} d_{ij}^2 .
    """
    codes, counts = _groups(labels)
    squared, n, a = distances**2, len(codes), len(counts)
    total = float(np.triu(squared, 1).sum()) / n
    sizes = np.array(list(counts.values()), dtype=np.float64)

    def statistic(batch: IndexArray) -> FloatArray:
        within = np.zeros(len(batch))
        for group, size in enumerate(sizes):
            member = (batch == group).astype(np.float64)
            within += np.einsum("ij,ij->i", member @ squared, member) / (2.0 * size)
        with np.errstate(divide="ignore", invalid="ignore"):
            found: FloatArray = (total - within) / (a - 1) / (within / (n - a))
        return found

    result, null, is_exact = _permuted(statistic, codes, sizes, n_permutations, rng)
    share = 1.0 / (1.0 + (n - a) / ((a - 1) * result)) if result > 0 else 0.0
    return _result("PERMANOVA", result, null, is_exact, counts, r_squared=share)


def permdisp(
    distances: FloatArray, labels: Sequence[str], n_permutations: int, rng: np.random.Generator
) -> GroupTest:
    """Test whether groups of datasets have different spreads (Anderson, 2006).

    The F of a one-way analysis of variance of the distances to the centroids of the groups, in
    the principal coordinates with positive eigenvalues.
    """
    codes, counts = _groups(labels)
    if max(counts.values()) < 3:
        raise InputError(
            "dispersion() needs a group of three or more datasets: two are always equally far "
            "from their centroid. Use permanova(), or larger groups."
        )
    n, a = len(codes), len(counts)
    sizes = np.array(list(counts.values()), dtype=np.float64)
    centred = distances**2 - (distances**2).mean(axis=0)
    weights, axes = np.linalg.eigh(-0.5 * (centred - centred.mean(axis=1)[:, None]))
    points = axes * np.sqrt(np.maximum(weights, 0.0))
    rounding = 1e-14 * n * float(weights[-1])  # of the squares of coordinates

    def to_centroids(batch: IndexArray) -> FloatArray:
        members = batch[:, None, :] == np.arange(a)[:, None]  # (B, a, n)
        centroids = members @ points / sizes[:, None]
        own = np.take_along_axis(centroids, batch[:, :, None], axis=1)
        return np.asarray(np.linalg.norm(points - own, axis=2))

    def statistic(batch: IndexArray) -> FloatArray:
        lengths = to_centroids(batch)
        members = (batch[:, None, :] == np.arange(a)[:, None]).astype(np.float64)
        means = np.einsum("bgn,bn->bg", members, lengths) / sizes
        between = (sizes * (means - lengths.mean(axis=1)[:, None]) ** 2).sum(axis=1)
        own = np.take_along_axis(means, batch, axis=1)
        within = ((lengths - own) ** 2).sum(axis=1)
        between, within = (np.where(part > rounding, part, 0.0) for part in (between, within))
        with np.errstate(divide="ignore", invalid="ignore"):
            found: FloatArray = between / (a - 1) / (within / (n - a))
        return found

    result, null, is_exact = _permuted(statistic, codes, sizes, n_permutations, rng)
    lengths = to_centroids(codes[None])[0]
    spread = {name: float(lengths[codes == g].mean()) for g, name in enumerate(counts)}
    return _result("PERMDISP", result, null, is_exact, counts, spread=spread)


def _groups(labels: Sequence[str]) -> tuple[IndexArray, dict[str, int]]:
    """Return the group of each dataset as a number, and the sizes of the groups by name."""
    names = [str(label) for label in labels]
    counts = {name: names.count(name) for name in dict.fromkeys(names)}
    if len(counts) < 2 or len(counts) == len(names):
        raise InputError(
            f"A test of groups needs at least two groups, and a group of two or more datasets; "
            f"{len(names)} datasets form {len(counts)} groups. Give another value to group by."
        )
    order = list(counts)
    return np.array([order.index(name) for name in names]), counts


def _permuted(
    statistic: Callable[[IndexArray], FloatArray],
    codes: IndexArray,
    sizes: FloatArray,
    n_permutations: int,
    rng: np.random.Generator,
) -> tuple[float, FloatArray, bool]:
    """Return the statistic, its values under permutations, and whether these are all."""
    n = len(codes)
    n_distinct = math.factorial(n) // math.prod(math.factorial(int(size)) for size in sizes)
    is_exact = n_distinct <= n_permutations
    if is_exact:
        everything = np.array(list(_groupings(tuple(range(n)), [int(size) for size in sizes])))
        step = max(1, _BATCH_VALUES // (n * n))
        batches = (everything[start : start + step] for start in range(0, n_distinct, step))
    else:
        batches = (codes[orders] for orders in _orders(n, n_permutations, rng))
    observed = float(statistic(codes[None])[0])
    if np.isnan(observed):
        raise InputError(
            "All distances are 0, or all datasets are equally far from the centroids of their "
            "groups, so groups cannot be tested."
        )
    null = np.concatenate([statistic(batch) for batch in batches])
    return observed, np.nan_to_num(null, nan=0.0, posinf=np.inf), is_exact


def _groupings(items: tuple[int, ...], sizes: list[int]) -> Iterator[IndexArray]:
    """Yield all distinct assignments of items 0 … n - 1 to groups of these sizes."""
    n = sum(sizes)

    def assign(free: tuple[int, ...], group: int, codes: IndexArray) -> Iterator[IndexArray]:
        if group == len(sizes) - 1:
            codes[list(free)] = group
            yield codes.copy()
            return
        for chosen in combinations(free, sizes[group]):
            codes[list(chosen)] = group
            rest = tuple(item for item in free if item not in chosen)
            yield from assign(rest, group + 1, codes)

    yield from assign(items, 0, np.zeros(n, dtype=np.int64))


def _result(
    method: str,
    observed: float,
    null: FloatArray,
    is_exact: bool,
    counts: dict[str, int],
    *,
    r_squared: float | None = None,
    spread: dict[str, float] | None = None,
) -> GroupTest:
    # Groups of equal size can change names without changing the statistic.
    same = [list(counts.values()).count(size) for size in set(counts.values())]
    n_equal = math.prod(math.factorial(count) for count in same)
    smallest = n_equal / null.size if is_exact else 1.0 / (null.size + 1)
    return GroupTest(
        method,
        observed,
        # F may be infinite; its arc tangent has the same order.
        p_value(math.atan(observed), np.arctan(null), is_exact=is_exact),
        smallest,
        r_squared,
        counts,
        spread,
        null.size,
        is_exact,
    )
