"""Every dataset described once, every pair compared once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from . import _check
from ._check import FloatArray
from .cache import Cache
from .data.dataset import Dataset, Identity
from .data.facts import Facts
from .engine import Engine, Threads, collect, interruptible
from .errors import InputError, InputTypeError
from .inputs import DataLike, newcomers
from .metrics.base import Distance, SpectralDistance
from .result import Comparison
from .rows.dask import DaskRows
from .spectra.pipeline import streams
from .spectra.signature import Signature


def fill(
    method: Distance,
    rows: Mapping[str, Any],
    columns: Mapping[str, Any] | None,
    *,
    seed: int,
    preparation: Mapping[str, Any],
    engine: Engine,
    cache: Cache | None = None,
    old: Comparison | None = None,
) -> Comparison:
    """Describe what is not described yet, and compare all pairs that are not compared yet."""
    everything = [*rows.values(), *(columns or {}).values()]
    method, settled = method.settle(_descriptors(method, everything, seed, engine, cache))
    first = dict(zip(rows, settled, strict=False))
    second = None if columns is None else dict(zip(columns, settled[len(rows) :], strict=True))
    distances, bounds = _all_pairs(method, first, second, old, engine)
    metadata = {name: item.metadata for name, item in rows.items() if isinstance(item, Dataset)}
    return Comparison(
        names=tuple(first),
        reference_names=tuple(first if second is None else second),
        distances=distances,
        error_bounds=bounds,
        distance=method,
        distance_name=method.name,
        options=method.options(),
        seed=seed,
        is_square=second is None,
        preparation=preparation,
        _descriptors=first,
        _references=second or {},
        _facts={**(old._facts if old else {}), **_facts(method, rows)},
        _reference_facts=old._reference_facts if old else _facts(method, columns or {}),
        metadata={**(old.metadata if old else {}), **metadata},
    )


def between(
    method: Distance, first: Dataset | Signature, second: Dataset | Signature, seed: int
) -> float:
    """Return the distance of one pair, worked out in this thread, with nothing kept of it."""

    def descriptor(item: Dataset | Signature) -> Any:
        return method.describe(item, seed) if isinstance(item, Dataset) else item

    with interruptible():
        one = descriptor(first)
        other = one if _same(first, second) else descriptor(second)
        method, settled = method.settle([one, other])
        return method.compare(*settled)


def _same(first: Dataset | Signature, second: Dataset | Signature) -> bool:
    if not isinstance(first, Dataset) or not isinstance(second, Dataset):
        return False
    return first.identity == second.identity


def _facts(method: Distance, items: Mapping[str, Any]) -> dict[str, Facts]:
    """Return what is known of datasets; of what is described already there is nothing new.

    The names of rows, which can be many, are kept only where newcomers are paired by them.
    """
    known = {name: item.facts for name, item in items.items() if isinstance(item, Dataset)}
    if method.paired_rows:
        return known
    return {name: facts.without_samples() for name, facts in known.items()}


def _descriptors(
    method: Distance, items: Sequence[Any], seed: int, engine: Engine, cache: Cache | None
) -> list[Any]:
    """Return the descriptors of datasets; what is one already stays as it is."""
    fresh: dict[Identity, Dataset] = {}  # the same data is described once, so d(A, A) is 0
    for item in items:
        if isinstance(item, Dataset):
            fresh.setdefault(item.identity, item)
    described = describe_all(method, list(fresh.values()), seed, engine, cache)
    known = dict(zip(fresh, described, strict=True))

    def descriptor(item: Any) -> Any:
        if not isinstance(item, Dataset):
            return item
        found = known[item.identity]
        return replace(found, name=item.name) if isinstance(found, Signature) else found

    return [descriptor(item) for item in items]


def grow(old: Comparison, datasets: Mapping[str, DataLike], engine: Engine) -> Comparison:
    """Return a comparison with more datasets; see `Comparison.add`."""
    if old.distance is None or not old._descriptors:
        raise InputError(
            f"This comparison cannot grow: distance {old.distance_name!r} has settings or "
            "descriptors that the file could not hold (an object or a function among its "
            "options, or the data itself). Run compare() on all datasets again."
        )
    if not isinstance(datasets, Mapping):
        raise InputTypeError(
            f"datasets must be a dict of name -> data, not {_check.shape_of(datasets)}."
        )
    taken = [name for name in map(str, datasets) if name in old.names]
    if taken:
        raise InputError(f"datasets: the name {taken[0]!r} is in the comparison already.")
    return fill(
        old.distance,
        {**old._descriptors, **newcomers(datasets, old.distance, old)},
        None if old.is_square else old._references,
        seed=old.seed,
        preparation=old.preparation,
        engine=engine,
        old=old,
    )


def describe_all(
    method: Distance,
    datasets: Sequence[Dataset],
    seed: int,
    engine: Engine,
    cache: Cache | None = None,
) -> list[Any]:
    """Return the descriptors of datasets; those in the cache are not computed."""
    if cache is None:
        return _describe_fresh(method, datasets, seed, engine)
    found = [cache.find(method, dataset, seed) for dataset in datasets]
    missing = [dataset for dataset, old in zip(datasets, found, strict=True) if old is None]
    fresh = iter(_describe_fresh(method, missing, seed, engine, cache))
    return [next(fresh) if old is None else old for old in found]


def _describe_fresh(
    method: Distance,
    datasets: Sequence[Dataset],
    seed: int,
    engine: Engine,
    cache: Cache | None = None,
) -> list[Any]:
    """Return the descriptors of datasets: side by side, or each spread out by blocks of rows.

    A few datasets that are read by blocks would leave most of a cluster idle, so their blocks go
    there instead, one dataset after the other.
    """
    spread = [dataset for dataset in datasets if engine.remote and _by_blocks(method, dataset)]
    if len(spread) >= engine.n_workers:  # a Dask array stays where it is all the same
        spread = [dataset for dataset in spread if isinstance(dataset.values, DaskRows)]
    whole = [dataset for dataset in datasets if not any(dataset is other for other in spread)]
    told = {"description": "describing", "unit": "datasets"}
    here = Threads(1, engine.progress)
    shared = (method, seed, None if engine.remote else engine, cache)
    beside = iter(collect(engine, _describe, whole, shared=shared, **told))
    after = iter(collect(here, _describe, spread, shared=(method, seed, engine, cache), **told))
    return [
        next(after if any(dataset is other for other in spread) else beside)
        for dataset in datasets
    ]


def _describe(shared: tuple[Distance, int, Engine | None, Cache | None], dataset: Dataset) -> Any:
    method, seed, engine, cache = shared
    if not isinstance(method, SpectralDistance):
        return method.describe(dataset, seed)
    found = method.describe(dataset, seed, engine)
    if cache is not None:  # as soon as it is there: a run that is killed later loses nothing
        cache.keep(method, dataset, seed, found)
    return found


def _by_blocks(method: Distance, dataset: Dataset) -> bool:
    return isinstance(method, SpectralDistance) and streams(dataset, method.settings)


def _all_pairs(
    method: Distance,
    rows: Mapping[str, Any],
    columns: Mapping[str, Any] | None,
    old: Comparison | None,
    engine: Engine,
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

    results = _compare_all(method, first, second, pairs, engine)
    for (i, j), (distances[i, j], bounds[i, j]) in zip(pairs, results, strict=True):
        if mirror:
            distances[j, i], bounds[j, i] = distances[i, j], bounds[i, j]
    return distances, bounds


def _compare_all(
    method: Distance,
    first: Sequence[Any],
    second: Sequence[Any],
    pairs: Sequence[tuple[int, int]],
    engine: Engine,
) -> list[tuple[float, float]]:
    shared = (method, first, second)
    if method.is_descriptor:  # the work is done; these pairs are not worth sending
        return [_compare(shared, pair) for pair in pairs]
    return collect(engine, _compare, pairs, shared=shared, description="comparing", unit="pairs")


def _compare(
    shared: tuple[Distance, Sequence[Any], Sequence[Any]], pair: tuple[int, int]
) -> tuple[float, float]:
    method, first, second = shared
    a, b = first[pair[0]], second[pair[1]]
    return method.compare(a, b), method.error_bound(a, b)
