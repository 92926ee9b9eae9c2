"""Tests of all pairs of a collection, for compare(inference=True)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from .._check import FloatArray
from ..confidence import Inference
from ..data.dataset import Dataset
from ..defaults import SIGNIFICANCE
from ..engine import Engine
from ..errors import InputError, SampleSizeWarning, collected, warn
from ..metrics.base import Distance, SpectralDistance
from ..spectra.blocks import noise_floor
from ..spectra.signature import Signature
from . import energy
from .partition import (
    SHARE,
    block_size_of,
    cut,
    describe_blocks,
    dissimilarities,
    fit_to_blocks,
    fitted_once,
    require_rows,
)

_CALLER = "compare(inference=True)"


def infer(
    method: Distance,
    rows: Mapping[str, Dataset | Signature],
    columns: Mapping[str, Dataset | Signature] | None,
    seed: int,
    engine: Engine,
) -> Inference:
    """Return tests, corrected distances and intervals of all pairs, and noise floors.

    All datasets are cut into blocks of one size, a tenth of the smallest dataset (see
    `permutation_test`). O(n b³) time for n blocks in all, and B (n_i + n_j)² per pair.
    """
    every = [*rows.items(), *(columns or {}).items()]
    datasets = [require_rows({name: item}, method, _CALLER)[0] for name, item in every]
    size = block_size_of(None, min(dataset.n_samples for dataset in datasets))
    draws = [dataset.generator(seed) for dataset in datasets]
    fitted = [fitted_once(dataset) for dataset in datasets]
    blocks = [cut(d, size, draw) for (d, _), draw in zip(fitted, draws, strict=True)]
    counts = [len(part) for part in blocks]
    n = len(rows)
    places = list(combinations(range(n), 2))
    if columns is not None:
        places = list(product(range(n), range(n, len(every))))
    _require_blocks(places, counts, size, datasets)
    method = fit_to_blocks(_few_eigenvalues(method, size), size)
    with collected():  # the same warnings come of the datasets as a whole
        method, found = describe_blocks(method, [b for part in blocks for b in part], seed, engine)
    # 40 permutations per pair, so that 0.05 divided by the number of pairs can be reached.
    n_permutations = max(9999, 40 * len(places))
    pairs = _PairTests(method, found, counts, n_permutations, seed, engine)
    # The order of datasets must not matter; pairs of the same sizes share their permutations.
    ranks = [(count, d.fingerprint) for count, d in zip(counts, datasets, strict=True)]
    ranked = {place: sorted(place, key=lambda i: ranks[i]) for place in places}
    in_turn = sorted(places, key=lambda place: [counts[i] for i in ranked[place]])
    done = {place: pairs.test(*ranked[place]) for place in in_turn}
    tests = [done[place] for place in places]
    floors = np.array([noise_floor(pairs.squared(i)) for i in range(len(every))])
    k = method.settings.n_eigenvalues if isinstance(method, SpectralDistance) else None
    adjusted = energy.adjusted(np.array([test[1] for test in tests]))
    shape = (n, n) if columns is None else (n, len(every) - n)
    return Inference(
        **_matrices(
            shape, [(i, j if columns is None else j - n) for i, j in places], tests, adjusted
        ),
        noise_floor=floors[:n],
        reference_noise_floor=floors if columns is None else floors[n:],
        block_size=size,
        n_eigenvalues=k,
        n_permutations=pairs.n_permutations,
        is_approximate=any(changed for _, changed in fitted),
    )


def _few_eigenvalues(method: Distance, size: int) -> Distance:
    """Return the distance without its K, if that is more than blocks should have."""
    if (
        not isinstance(method, SpectralDistance)
        or (method.settings.n_eigenvalues or 0) <= size // SHARE
    ):
        return method
    return replace(method, settings=replace(method.settings, n_eigenvalues=None))


def _require_blocks(
    places: Sequence[tuple[int, int]],
    counts: Sequence[int],
    size: int,
    datasets: Sequence[Dataset],
) -> None:
    """Raise if a pair has too few blocks for a p-value of 0.05; warn if all have, adjusted."""
    smallest = min(range(len(counts)), key=lambda i: counts[i])
    numbers = [energy.Design.of(counts[i], counts[j]).n_labellings for i, j in places]
    if counts[smallest] < 2 or min(numbers, default=20) * SIGNIFICANCE < 1:
        raise InputError(
            f"{_CALLER} needs at least 4 blocks of {size} rows, that is {4 * size} rows; "
            f"{datasets[smallest].label} has {datasets[smallest].n_samples}. Leave it out."
        )
    if places and len(places) / max(numbers) > SIGNIFICANCE:
        warn(
            f"{len(places)} pairs of at most {max(counts)} blocks allow no p-value below "
            f"{len(places) / max(numbers):.2g} after Holm's adjustment: no difference can be "
            "significant. More rows, or fewer datasets, are needed.",
            SampleSizeWarning,
        )


class _PairTests:
    """The blocks of all datasets, and the tests of their pairs."""

    def __init__(
        self,
        method: Distance,
        descriptors: Sequence[Any],
        counts: Sequence[int],
        n_permutations: int,
        seed: int,
        engine: Engine,
    ) -> None:
        self.n_permutations, self.seed = n_permutations, seed
        ends = np.cumsum([0, *counts])
        self.places = [np.arange(a, b) for a, b in pairwise(ends)]
        vectors = [method.vector(descriptor) for descriptor in descriptors]
        points = [vector for vector in vectors if vector is not None]
        self._points = np.stack(points) if points else None
        self._matrix = None if points else dissimilarities(method, descriptors, engine)
        # Those of the last pair of sizes: all of them would fill the memory.
        self._labels: dict[tuple[int, int], tuple[FloatArray, bool]] = {}

    def squared(self, *datasets: int) -> FloatArray:
        """Return the dissimilarities of the blocks of some datasets."""
        index = np.concatenate([self.places[i] for i in datasets])
        if self._matrix is not None:
            return np.asarray(self._matrix[np.ix_(index, index)])
        assert self._points is not None
        points = self._points[index]
        return np.asarray(cdist(points, points, "sqeuclidean"))

    def test(self, i: int, j: int) -> tuple[float, float, tuple[float, float]]:
        """Return the statistic, the p-value and the interval of one pair."""
        sizes = self.places[i].size, self.places[j].size
        design, squared = energy.Design.of(*sizes), self.squared(i, j)
        if sizes not in self._labels:
            rng = np.random.default_rng([self.seed, *sizes])
            drawn, is_exact = design.labellings(self.n_permutations, rng)
            self._labels = {sizes: (drawn.astype(np.float64), is_exact)}
        labels, is_exact = self._labels[sizes]
        observed = float(energy.statistic(squared, design.observed[None], design)[0])
        null = energy.statistic(squared, labels, design)
        p_value = energy.p_value(observed, null, is_exact=is_exact)
        return observed, p_value, energy.interval(squared, design, 1.0 - SIGNIFICANCE)


def _matrices(
    shape: tuple[int, int],
    places: Sequence[tuple[int, int]],
    tests: Sequence[tuple[float, float, tuple[float, float]]],
    adjusted: tuple[FloatArray, FloatArray],
) -> dict[str, FloatArray]:
    """Return the results of pairs as matrices, symmetric if each pair was tested once."""
    found = {name: np.zeros(shape) for name in ("squared", "p_values", "p_holm", "p_bh")}
    for name in ("p_values", "p_holm", "p_bh"):
        found[name][:] = 1.0  # of a dataset with itself
    found["intervals"] = np.zeros((*shape, 2))
    mirrored = len(places) < shape[0] * shape[1]
    rows = zip(places, tests, *adjusted, strict=True)
    for (i, j), (squared, p_value, interval), holm, hochberg in rows:
        values = squared, p_value, holm, hochberg, np.sqrt(interval)
        for name, value in zip(found, values, strict=True):
            found[name][i, j] = value
            if mirrored:
                found[name][j, i] = value
    return found
