"""Every dataset described once, every pair compared once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from . import engine
from ._check import FloatArray
from .data.dataset import Dataset, Identity
from .metrics.base import Distance
from .result import Comparison
from .spectra.signature import Signature


def fill(
    method: Distance,
    rows: Mapping[str, Any],
    columns: Mapping[str, Any] | None,
    *,
    seed: int,
    preparation: Mapping[str, Any],
    n_jobs: int | None = None,
    progress: bool | None = None,
    old: Comparison | None = None,
) -> Comparison:
    """Describe what is not described yet, and compare all pairs that are not compared yet."""
    everything = [*rows.values(), *(columns or {}).values()]
    fresh: dict[Identity, Dataset] = {}  # the same data is described once, so d(A, A) is 0
    for item in everything:
        if isinstance(item, Dataset):
            fresh.setdefault(item.identity, item)
    described = engine.run(
        lambda dataset: method.describe(dataset, seed),
        list(fresh.values()),
        n_jobs=n_jobs,
        progress=progress,
        description="describing",
    )
    known = dict(zip(fresh, described, strict=True))

    def descriptor(item: Any) -> Any:
        if not isinstance(item, Dataset):
            return item
        found = known[item.identity]
        return replace(found, name=item.name) if isinstance(found, Signature) else found

    method, settled = method.settle([descriptor(item) for item in everything])
    first = dict(zip(rows, settled, strict=False))
    second = None if columns is None else dict(zip(columns, settled[len(rows) :], strict=True))
    distances, bounds = _all_pairs(method, first, second, old, progress)
    return Comparison(
        tuple(first),
        tuple(first if second is None else second),
        distances,
        bounds,
        method,
        method.name,
        method.options(),
        seed,
        second is None,
        preparation,
        first,
        second or {},
    )


def _all_pairs(
    method: Distance,
    rows: Mapping[str, Any],
    columns: Mapping[str, Any] | None,
    old: Comparison | None,
    progress: bool | None,
) -> tuple[FloatArray, FloatArray]:
    first, second = list(rows.values()), list((rows if columns is None else columns).values())
    distances, bounds = np.zeros((2, len(first), len(second)))
    n = m = 0
    if old is not None:
        n, m = old.distances.shape
        distances[:n, :m], bounds[:n, :m] = old.distances, old.error_bounds
    mirror = columns is None and method.symmetric
    pairs = [
        (i, j)
        for i in range(len(first))
        for j in range(len(second))
        if not (i < n and j < m) and not (mirror and j < i)
    ]

    def one(pair: tuple[int, int]) -> tuple[float, float]:
        a, b = first[pair[0]], second[pair[1]]
        return method.compare(a, b), method.error_bound(a, b)

    visible = False if method.is_descriptor else progress  # those pairs take no time
    results = engine.run(one, pairs, progress=visible, description="comparing")
    for (i, j), (distances[i, j], bounds[i, j]) in zip(pairs, results, strict=True):
        if mirror:
            distances[j, i], bounds[j, i] = distances[i, j], bounds[i, j]
    return distances, bounds
