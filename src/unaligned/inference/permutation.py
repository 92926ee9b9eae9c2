"""The permutation test of two datasets, permutation_test()."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _check
from .._check import FloatArray, RNGLike
from ..data.dataset import Dataset
from ..defaults import SIGNIFICANCE
from ..engine import EngineLike, resolve_engine
from ..errors import InputError, InputTypeError, SampleSizeWarning, counted, merged, warn
from ..inputs import (
    DataLike,
    as_dataset,
    data_options,
    labels_of_both,
    own_name,
    require_applicable,
    warn_about_spreads,
)
from ..metrics.base import SpectralDistance
from ..metrics.registry import DistanceLike, resolve_distance
from ..spectra.blocks import noise_floor
from . import energy
from .partition import (
    averaged,
    block_size_of,
    cut,
    cut_groups,
    describe_blocks,
    dissimilarities,
    fit_to_blocks,
    fitted_once,
    require_rows,
    row_labels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CALLER = "permutation_test()"


@dataclass(frozen=True, eq=False)
class PermutationTest:
    """The result of `permutation_test`.

    Attributes
    ----------
    p_value
        Of the hypothesis that the block signatures of both datasets have one distribution.
    squared
        The statistic U, an unbiased estimate of the squared distance of the mean signatures at the
        size of a block; negative in about half of all cases where nothing differs.
    interval
        A 95 % confidence interval of `distance`, over blocks (or groups).
    noise_floor
        The distance between the mean signatures of two samples of one dataset of this size, by
        sampling alone; on the scale of `distance`.
    block_size, n_blocks
        Rows per block, and the number of blocks of each dataset.
    n_eigenvalues, gamma
        K and γ of the block signatures; None for other descriptors.
    null
        The statistic under every permutation.
    is_exact
        Whether `null` holds all distinct permutations, and not a random sample of them.
    smallest_p_value
        The smallest p-value that the number of blocks (or groups) and permutations allows.
    is_approximate
        Whether a preprocessing step was fitted to each dataset as a whole, so that its blocks are
        not quite independent.
    n_groups, n_pairs
        With `groups`: the number of groups of each dataset, and of those in both.
    names, n_samples, distance_name
        Of the datasets and the distance.
    """

    p_value: float
    squared: float
    interval: tuple[float, float]
    noise_floor: float
    block_size: int
    n_blocks: tuple[int, int]
    n_eigenvalues: int | None
    gamma: float | None
    null: FloatArray = field(repr=False)
    is_exact: bool
    smallest_p_value: float
    is_approximate: bool = False
    n_groups: tuple[int, int] | None = None
    n_pairs: int = 0
    names: tuple[str, str] = ("a", "b")
    n_samples: tuple[int, int] = (0, 0)
    distance_name: str = "les"

    @property
    def distance(self) -> float:
        """The distance corrected for sampling noise, √max(U, 0)."""
        return math.sqrt(max(self.squared, 0.0))

    @property
    def is_significant(self) -> bool:
        """Whether the p-value is at most 0.05."""
        return self.p_value <= SIGNIFICANCE

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the null distribution and the observed statistic.

        Parameters
        ----------
        ax
            Where to draw; None makes a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes drawn on.
        """
        from ..figures import null_distribution  # upward, at call time only

        return null_distribution(self, ax=ax)

    def __repr__(self) -> str:
        first, second = map(repr, self.names)
        verdict = "differ" if self.is_significant else "show no difference"
        low, high = self.interval
        counts, what = self.n_blocks, f"blocks of {self.block_size} rows"
        if self.n_groups is not None:
            counts, what = self.n_groups, "groups" + " (paired)" * bool(self.n_pairs)
        notes = ""
        if self.smallest_p_value > SIGNIFICANCE:
            notes = f", which allow no p-value below {self.smallest_p_value:.2g}"
        if self.is_approximate:
            notes += "; approximate, since preprocessing was fitted to each dataset"
        return (
            f"{first} and {second} {verdict}: {self.distance_name} {self.distance:.3g} (95 % "
            f"interval {low:.3g} to {high:.3g}, noise floor {self.noise_floor:.3g}), "
            f"p = {self.p_value:.2g} from {counts[0]} and {counts[1]} {what}{notes}."
        )


@merged()
def permutation_test(
    a: DataLike,
    b: DataLike,
    *,
    distance: DistanceLike = "les",
    groups: tuple[Sequence[Any], Sequence[Any]] | str | None = None,
    block_size: int | None = None,
    n_permutations: int = 9999,
    rng: RNGLike = None,
    n_jobs: int | None = None,
    engine: EngineLike = None,
    progress: bool | None = None,
    **options: Any,
) -> PermutationTest:
    r"""Test whether two datasets differ by more than sampling, in whatever spaces they live.

    Each dataset is cut into disjoint random blocks of b rows, and each block gets its own
    signature, with its own σ². If both datasets are samples of one geometry, up to isometry and
    scale, all block signatures are exchangeable, so a permutation test is exact, also for unequal
    sizes. The statistic is

    .. math:: U = \|\bar s - \bar t\|^2 - \mathrm{tr}\,\mathrm{cov}(s)/n_s
              - \mathrm{tr}\,\mathrm{cov}(t)/n_t

    for distances that are Euclidean in a descriptor (`les`, `netlsd`, `shape-dna`): an unbiased
    estimate of the squared distance of the mean signatures, free of the bias of unequal sizes. For
    the others it is the energy statistic of the distances between blocks. O(n b³) time for n
    blocks.

    Rows must be independent draws; otherwise give `groups`. The null hypothesis is that block
    signatures have one distribution. Steps of `preprocess` that are fitted (`pca`, `standardize`)
    are fitted to each dataset, and the test is then approximate. Of a dataset with more than 200
    blocks, 200 are drawn.

    Parameters
    ----------
    a, b
        As in `distance`, but not signatures.
    distance
        As in `compare`, but for distances of paired rows.
    groups
        Where rows are not independent, such as cells of a donor: the groups of the rows of a and
        of b, one label per row, or a column of `obs` of two AnnData. The same number of blocks
        of every group is averaged, and groups are permuted. Groups in both datasets are paired:
        permuted within.
    block_size
        b; None takes a tenth of the smaller dataset (with `groups`, a quarter of the smallest
        group), between 30 and 500.
    n_permutations
        Random permutations; all distinct ones are enumerated where there are no more than this.
    rng
        Seed or generator; None always gives the same result for the same data.
    n_jobs
        Batches of blocks at a time; None is one per core.
    engine, progress
        As in `compare`.
    **options
        As in `compare`. `n_eigenvalues` (K) defaults to a third of b.

    Returns
    -------
    PermutationTest
        The p-value, the distance corrected for noise and its interval, and the noise floor.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> draw = np.random.default_rng(0)
    >>> five, six = draw.normal(size=(600, 5)), draw.normal(size=(900, 6))
    >>> ua.permutation_test(five, six).p_value < 0.01
    True
    >>> ua.permutation_test(five, draw.normal(size=(900, 5)) @ np.eye(5, 20)).n_blocks
    (10, 15)
    """
    n_permutations = _check.positive_int("n_permutations", n_permutations)
    seed, given = _check.root_seed(rng), data_options(options)
    method = resolve_distance(distance, options)
    first, second = own_name(a) or "a", own_name(b) or "b"
    first, second = (first, second) if first != second else ("a", "b")
    items = {first: as_dataset(a, first, given), second: as_dataset(b, second, given)}
    datasets = require_rows(items, method, _CALLER)
    require_applicable(method, {first: items[first]}, {second: items[second]})
    warn_about_spreads(method, datasets)
    groups = labels_of_both("groups", groups, a, b)
    blocks = _blocks(datasets, groups, block_size, seed)
    method = fit_to_blocks(method, blocks.size)
    jobs = -1 if engine is None and n_jobs is None else n_jobs
    with resolve_engine(engine, jobs, progress) as where:
        method, described = describe_blocks(method, blocks.datasets, seed, where)
        squared = averaged(dissimilarities(method, described, where), blocks.per_item)
    counts = blocks.design.n_first, blocks.design.n_second
    design, prints = blocks.design, [int(dataset.fingerprint, 16) for dataset in datasets]
    if prints[0] > prints[1]:  # the order of a and b must not matter
        squared, design = np.roll(squared, counts[1], axis=(0, 1)), design.exchanged()
    shuffles = np.random.default_rng([seed, *sorted(prints)])
    labels, is_exact = design.labellings(n_permutations, shuffles)
    settings = method.settings if isinstance(method, SpectralDistance) else None
    return PermutationTest(
        **evaluate(squared, design, labels, is_exact=is_exact),
        block_size=blocks.size,
        n_blocks=(counts[0] * blocks.per_item, counts[1] * blocks.per_item),
        n_eigenvalues=None if settings is None else settings.n_eigenvalues,
        gamma=None if settings is None else float(settings.gamma),
        is_approximate=blocks.is_approximate,
        n_groups=None if groups is None else counts,
        n_pairs=len(blocks.design.pairs),
        names=(first, second),
        n_samples=(datasets[0].n_samples, datasets[1].n_samples),
        distance_name=method.name,
    )


def evaluate(
    squared: FloatArray, design: energy.Design, labels: energy.Labels, *, is_exact: bool
) -> dict[str, Any]:
    """Return p-value, statistic, interval and noise floor from the dissimilarities of items."""
    observed = float(energy.statistic(squared, design.observed[None], design)[0])
    null = energy.statistic(squared, labels, design)
    low, high = energy.interval(squared, design, 1.0 - SIGNIFICANCE)
    n = design.n_first
    floors = noise_floor(squared[:n, :n]), noise_floor(squared[n:, n:])
    return {
        "p_value": energy.p_value(observed, null, is_exact=is_exact),
        "squared": observed,
        "interval": (math.sqrt(low), math.sqrt(high)),
        "noise_floor": math.hypot(*floors) / math.sqrt(2.0),
        "null": null,
        "is_exact": is_exact,
        "smallest_p_value": 1.0 / (len(null) if is_exact else len(null) + 1),
    }


class _Blocks(NamedTuple):
    datasets: list[Dataset]  # the blocks of both datasets
    size: int  # rows of a block
    per_item: int  # blocks whose mean is one item of the design
    design: energy.Design
    is_approximate: bool


def _blocks(
    datasets: Sequence[Dataset], groups: Any, block_size: int | None, seed: int
) -> _Blocks:
    """Return both datasets cut into blocks; raise if there are too few."""
    draws = [dataset.generator(seed) for dataset in datasets]
    fitted = [fitted_once(dataset) for dataset in datasets]
    whole, is_approximate = [found for found, _ in fitted], any(changed for _, changed in fitted)
    if groups is None:
        size = block_size_of(block_size, min(dataset.n_samples for dataset in whole))
        parts = [cut(d, size, draw) for d, draw in zip(whole, draws, strict=True)]
        design = energy.Design.of(len(parts[0]), len(parts[1]))
        _require_blocks(design, size, whole)
        return _Blocks([*parts[0], *parts[1]], size, 1, design, is_approximate)
    is_pair = isinstance(groups, (Sequence, np.ndarray)) and not isinstance(groups, str)
    if not is_pair or len(groups) != 2:
        raise InputTypeError(
            "groups must be a pair, the labels of the rows of a and those of the rows of b, or a "
            f"column of obs of two AnnData; not {_check.shape_of(groups)}."
        )
    sides = [row_labels("groups", *both) for both in zip(groups, whole, strict=True)]
    design, size, per_group = _group_design(sides, whole, block_size)
    parts = [
        cut_groups(dataset, *side, size, per_group, draw)
        for dataset, side, draw in zip(whole, sides, draws, strict=True)
    ]
    return _Blocks([*parts[0], *parts[1]], size, per_group, design, is_approximate)


def _require_blocks(design: energy.Design, size: int, datasets: Sequence[Dataset]) -> None:
    """Raise if there are too few blocks for a p-value of 0.05."""
    few = min(design.n_first, design.n_second)
    if few >= 2 and design.n_labellings * SIGNIFICANCE >= 1:
        return
    smallest = min(datasets, key=lambda dataset: dataset.n_samples)
    raise InputError(
        f"{_CALLER} needs at least 4 blocks of block_size={size} rows, that is {4 * size} rows; "
        f"{smallest.label} has {smallest.n_samples}. Give more rows, or a smaller block_size."
    )


def _group_design(
    sides: Sequence[tuple[npt.NDArray[np.str_], list[str]]],
    datasets: Sequence[Dataset],
    block_size: int | None,
) -> tuple[energy.Design, int, int]:
    """Return the design of a test of groups, the block size, and the blocks of each group."""
    (_, first), (_, second) = sides
    for (_, found), dataset in zip(sides, datasets, strict=True):
        if len(found) < 2:
            raise InputError(
                f"groups: {dataset.label} has one group, so no test exists: the variation between "
                "groups is not known. Give at least two groups of each dataset (four for a "
                "p-value below 0.05)."
            )
    counts = [
        (int((labels == group).sum()), group, dataset)
        for (labels, found), dataset in zip(sides, datasets, strict=True)
        for group in found
    ]
    n_rows, group, dataset = min(counts, key=lambda count: count[0])
    size = block_size_of(block_size, n_rows, n_blocks=4)  # only the mean of a group counts
    if n_rows < size:
        what = f"block_size={size}" if block_size else f"the {size} of the smallest default block"
        remedy = f", or give block_size={n_rows}" if n_rows >= 4 else ""
        raise InputError(
            f"groups: {group!r} of {dataset.label} has {counted(n_rows, 'row')}, fewer than "
            f"{what}. Leave the group out{remedy}."
        )
    pairs = [(i, len(first) + second.index(g)) for i, g in enumerate(first) if g in second]
    design = energy.Design(len(first), len(second), np.array(pairs, dtype=np.int64).reshape(-1, 2))
    if design.n_labellings * SIGNIFICANCE < 1:
        warn(
            f"{len(first)} and {len(second)} groups{' (paired)' * bool(pairs)} allow no p-value "
            f"below {1 / design.n_labellings:.2g}: no difference can be significant at "
            f"{SIGNIFICANCE}. More groups are needed, not more rows.",
            SampleSizeWarning,
        )
    return design, size, n_rows // size
