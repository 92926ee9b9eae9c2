"""Describes each dataset once, and compares each pair once."""

import hashlib
import itertools
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from . import _check
from ._check import FloatArray
from .cache import Cache
from .data.dataset import Dataset
from .data.facts import Facts
from .defaults import N_EIGENVALUES, STREAM_ROWS
from .engine import (
    Engine,
    EngineLike,
    Threads,
    available_cores,
    collect,
    interruptible,
    resolve_engine,
)
from .engine.memory import available_memory
from .errors import InputError, InputTypeError, merged
from .inputs import DataLike
from .metrics.base import DataDescriptor, Distance, SpectralDistance
from .preparation import prepare_additions
from .result import Comparison
from .rows.dask import DaskRows
from .spectra.pipeline import streams
from .spectra.prices import announced_together
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
    """Return the comparison of rows and columns; results of `old` are not computed again."""
    everything = [*rows.values(), *(columns or {}).values()]
    method, settled = method.settle(_descriptors(method, everything, seed, engine, cache))
    first = dict(zip(rows, settled, strict=False))
    second = None if columns is None else dict(zip(columns, settled[len(rows) :], strict=True))
    distances, bounds = all_pairs(method, first, second, old, engine)
    metadata = {name: item.metadata for name, item in rows.items() if isinstance(item, Dataset)}
    borrowed = old._borrowed if old else ()
    if not method.is_descriptor:
        borrowed = (*borrowed, *_borrowed(everything, settled))
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
        _borrowed=borrowed,
        left_out=old.left_out if old else {},
        _steps=old._steps if old else (),
    )


def _borrowed(
    items: Sequence[Any], descriptors: Sequence[Any]
) -> Iterator[tuple[str, npt.NDArray[Any], str]]:
    """Yield the label, array and digest of descriptors that are the memory of their dataset."""
    for item, descriptor in zip(items, descriptors, strict=True):
        if isinstance(item, Dataset) and not item.is_lazy:
            given = list(_arrays(item.values))
            for array in _arrays(descriptor):
                if any(np.may_share_memory(array, values) for values in given):
                    yield item.label, array, _digest(array)


def _arrays(held: Any) -> Iterator[npt.NDArray[Any]]:
    """Yield the arrays in a descriptor or in the values of a dataset."""
    if isinstance(held, np.ndarray):
        yield held
    elif sparse.issparse(held):
        yield from (held.data, held.indices, held.indptr)
    elif isinstance(held, (DataDescriptor, tuple, list)):
        for part in held.arrays if isinstance(held, DataDescriptor) else held:
            yield from _arrays(part)


def _digest(array: npt.NDArray[Any]) -> str:
    return hashlib.blake2b(np.ascontiguousarray(array).data, digest_size=16).hexdigest()


def default_jobs(items: Iterable[Any], *, thread_safe: bool = True) -> int:
    """Return how many datasets, or pairs, `n_jobs=None` computes at a time.

    One per core, each with one BLAS thread, if their matrices fit into memory; one with all
    threads, where the largest dataset would keep the others waiting.
    """
    cores = available_cores()
    sizes = [item.n_samples for item in items if isinstance(item, Dataset)]
    largest, total = max(sizes, default=0), sum(n * n for n in sizes)
    if not thread_safe or cores * largest**2 > 1.25 * total:  # threads gain 80 %
        return 1
    # 24 bytes per pair of rows (the affinity and a solver's copies), in half of the memory.
    needed = 24 * min(largest, STREAM_ROWS) ** 2
    small = cores * needed <= 1 << 30  # 1 GiB: not worth asking how much there is
    return cores if small else max(1, min(cores, available_memory() // 2 // needed))


def compare_pair(
    method: Distance, first: Dataset | Signature, second: Dataset | Signature, seed: int
) -> float:
    """Return the distance of one pair."""
    with interruptible():
        engine = Threads(default_jobs([first, second], thread_safe=method.thread_safe))
        descriptors = _descriptors(method, [first, second], seed, engine, None)
        method, settled = method.settle(descriptors)
        return method.compare(*settled)


@merged()
def grow(
    old: Comparison,
    datasets: Mapping[str, DataLike],
    n_jobs: int | None,
    engine: EngineLike,
    progress: bool | None,
) -> Comparison:
    """Return a comparison with more datasets; see `Comparison.add`."""
    if old.distance is None or not old._descriptors:
        raise InputError(
            f"This comparison cannot grow: distance {old.distance_name!r} needs data or settings "
            "that its file does not hold. Run compare() on all datasets again."
        )
    if not isinstance(datasets, Mapping):
        raise InputTypeError(
            f"datasets must be a dict of name -> data, not {_check.shape_of(datasets)}."
        )
    taken = [name for name in map(str, datasets) if name in old.names]
    if taken:
        raise InputError(f"datasets: the name {taken[0]!r} is in the comparison already.")
    for label, array, digest in old._borrowed:
        if _digest(array) != digest:
            raise InputError(
                f"The values of {label} were changed after they were compared, and distance "
                f"{old.distance_name!r} needs the old ones. Run compare() on all datasets again, "
                "or on copies of the arrays."
            )
    added = prepare_additions(datasets, old.distance, old)
    if n_jobs is None and engine is None:
        n_jobs = default_jobs(added.values(), thread_safe=old.distance.thread_safe)
    with resolve_engine(engine, n_jobs, progress) as at:
        return fill(
            old.distance,
            {**old._descriptors, **added},
            None if old.is_square else old._references,
            seed=old.seed,
            preparation=old.preparation,
            engine=at,
            old=old,
        )


def _facts(method: Distance, items: Mapping[str, Any]) -> dict[str, Facts]:
    """Return the facts of the datasets among `items`."""
    known = {name: item.facts for name, item in items.items() if isinstance(item, Dataset)}
    if method.paired_rows:  # only then are the names of rows, which can be many, kept
        return known
    return {name: facts._replace(sample_names=None) for name, facts in known.items()}


def _descriptors(
    method: Distance, items: Sequence[Any], seed: int, engine: Engine, cache: Cache | None
) -> list[Any]:
    """Return the descriptors of datasets; items that are descriptors are returned unchanged."""
    datasets = [item for item in items if isinstance(item, Dataset)]
    keys = dict(zip(map(id, datasets), _keys(datasets), strict=True))
    unique: dict[Hashable, Dataset] = {}  # equal data is described once, so d(A, A) is 0
    for dataset in datasets:
        unique.setdefault(keys[id(dataset)], dataset)
    described = describe_all(method, list(unique.values()), seed, engine, cache)
    known = dict(zip(unique, described, strict=True))

    def descriptor(item: Any) -> Any:
        if not isinstance(item, Dataset):
            return item
        found = known[keys[id(item)]]
        return replace(found, name=item.name) if isinstance(found, Signature) else found

    return [descriptor(item) for item in items]


def _keys(datasets: Sequence[Dataset]) -> list[Hashable]:
    """Return a key of each dataset, equal for equal values and preprocessing.

    All values are hashed only if shape and first row agree: it takes longer than some distances.
    """

    def glimpse(dataset: Dataset) -> Hashable:
        first: Any = dataset.values[:1] if in_memory else np.empty(0)
        first = first.toarray() if sparse.issparse(first) else first
        return dataset.values.shape, (first.astype(float) + 0.0).tobytes()  # no -0.0

    in_memory = not any(dataset.is_lazy for dataset in datasets)
    pairs = [(dataset, glimpse(dataset)) for dataset in datasets]
    n_alike = Counter(seen for _, seen in pairs)
    return [(d.fingerprint, d.preprocess) if n_alike[seen] > 1 else seen for d, seen in pairs]


def describe_all(
    method: Distance,
    datasets: Sequence[Dataset],
    seed: int,
    engine: Engine,
    cache: Cache | None = None,
) -> list[Any]:
    """Return the descriptors of datasets, from the cache if they are there.

    Datasets run in parallel. If a few are read by blocks, their blocks are sent to a remote
    engine instead, one dataset after the other, so that no worker is idle.
    """
    found = [None if cache is None else cache.find(method, d, seed) for d in datasets]
    missing = [i for i, descriptor in enumerate(found) if descriptor is None]
    split: list[int] = []
    if engine.remote and isinstance(method, SpectralDistance):
        split = [i for i in missing if streams(datasets[i], method.settings)]
    if len(split) >= engine.n_workers:  # but chunks of Dask stay where they are
        split = [i for i in split if isinstance(datasets[i].values, DaskRows)]
    whole = [i for i in missing if i not in split]
    inner, local = None if engine.remote else engine, Threads(1, engine.progress)
    bar = {"description": "describing", "unit": "datasets"}
    with announced_together(datasets[i].n_samples for i in missing):
        if engine.remote and isinstance(method, SpectralDistance) and whole:
            from .spectra.cost_model import announce_cost  # which imports all solvers

            k = method.settings.n_eigenvalues or N_EIGENVALUES
            largest = max(whole, key=lambda i: datasets[i].n_samples)
            announce_cost(datasets[largest], method.settings, k)
        for where, chosen, used in ((engine, whole, inner), (local, split, engine)):
            some, shared = [datasets[i] for i in chosen], (method, seed, used, cache)
            described = collect(where, _describe, some, shared=shared, **bar)
            for i, descriptor in zip(chosen, described, strict=True):
                found[i] = descriptor
    return found


def _describe(shared: tuple[Distance, int, Engine | None, Cache | None], dataset: Dataset) -> Any:
    method, seed, engine, cache = shared
    if not isinstance(method, SpectralDistance):
        return method.describe(dataset, seed)
    found = method.describe(dataset, seed, engine)
    if cache is not None:  # at once: a run that is killed later keeps it
        cache.keep(method, dataset, seed, found)
    return found


def all_pairs(
    method: Distance,
    rows: Mapping[str, Any],
    columns: Mapping[str, Any] | None,
    old: Comparison | None,
    engine: Engine,
) -> tuple[FloatArray, FloatArray]:
    """Return the distances and error bounds of all pairs, those of `old` copied."""
    first, second = list(rows.values()), list((rows if columns is None else columns).values())
    distances, bounds = np.zeros((2, len(first), len(second)))
    n = m = 0
    if old is not None:
        n, m = old.distances.shape
        distances[:n, :m], bounds[:n, :m] = old.distances, old.error_bounds
    mirror = columns is None and method.symmetric
    everything = itertools.product(range(len(first)), range(len(second)))
    missing = [(i, j) for i, j in everything if i >= n or j >= m]
    pairs = [(i, j) for i, j in missing if i <= j or not mirror]
    shared = (method, first, second)
    if method.is_descriptor:  # comparing descriptors is too cheap to be sent
        results = [compare_positions(shared, pair) for pair in pairs]
    else:
        bar = {"description": "comparing", "unit": "pairs"}
        results = collect(engine, compare_positions, pairs, shared=shared, **bar)
    for (i, j), (distances[i, j], bounds[i, j]) in zip(pairs, results, strict=True):
        if mirror:
            distances[j, i], bounds[j, i] = distances[i, j], bounds[i, j]
    return distances, bounds


def compare_positions(
    shared: tuple[Distance, Any, Any], pair: tuple[int, int]
) -> tuple[float, float]:
    """Return the distance and its error bound of descriptors at a row and a column."""
    method, first, second = shared
    a, b = first[pair[0]], second[pair[1]]
    return method.compare(a, b), method.error_bound(a, b)
