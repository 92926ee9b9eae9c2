"""What a signature will cost, found out on a small part of the data: estimate()."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from . import _check, _settings
from .comparison import prepare
from .data.dataset import Dataset
from .data.readers import is_path
from .errors import InputTypeError, collected
from .intake import DataLike, collection, data_options
from .operators.bandwidth import EXACT_PAIRS
from .operators.memory import storage_for
from .operators.metric import is_euclidean
from .spectra._rates import measure
from .spectra._stream import SAMPLE_ROWS
from .spectra.auto import (
    affordable_streamed,
    choose,
    exact_price,
    krylov_price,
    landmark_price,
    resolve_solver,
)
from .spectra.base import EigenSolver
from .spectra.compute import (
    SignatureSettings,
    compute_signature,
    default_eigenvalues,
    require_enough,
    streams,
)
from .spectra.exact import Exact
from .spectra.krylov import Krylov
from .spectra.landmarks import Landmarks, default_budget
from .spectra.nystrom import Nystrom
from .spectra.signature import Signature

# Rows of the larger probe: landmarks of a smooth set are nearly all found in so many.
PROBE_ROWS = 2400
_OPTIONS = (*_settings.option_names(SignatureSettings), "preprocess", "nan_policy")
_KEPT_BYTES = 1 << 26  # what an exact median keeps at the most


@dataclass(frozen=True)
class Estimate:
    """What a signature, or a collection of them, is expected to cost.

    Attributes
    ----------
    solver
        What will be used; where `auto` chooses, what it is expected to choose.
    seconds
        Time, on this machine and as busy as it is now.
    memory_bytes
        The most memory beyond the data itself.
    n_samples, n_features, n_eigenvalues
        N, d and K; of a collection all rows together, and the largest d and K.
    reason
        How this was found.
    """

    solver: str
    seconds: float
    memory_bytes: int
    n_samples: int
    n_features: int
    n_eigenvalues: int
    reason: str

    def __str__(self) -> str:
        return (
            f"{self.n_samples:,} × {self.n_features}, K={self.n_eigenvalues}: "
            f"about {_duration(self.seconds)} and {_size(self.memory_bytes)} beyond the data "
            f"with {self.solver}. {self.reason}."
        )


def estimate(
    data: DataLike | Mapping[str, DataLike] | Sequence[DataLike],
    *,
    n_eigenvalues: int | None = None,
    gamma: float | str = 1e-8,
    solver: Any = "auto",
    tol: float = 1e-4,
    **options: Any,
) -> Estimate:
    """Return what `signature` of this data will cost, before it is computed.

    The solver is run on two samples of the rows, of 2400 at the most; what it took, and how many
    landmarks or columns it needed, is carried over to all rows by the operation counts that
    `solver="auto"` goes by. For data that is read by blocks the passes over rows and pairs are
    timed on a few thousand rows. A second or two at the most, mostly within a factor of two.

    Parameters
    ----------
    data
        What `signature` takes; or a dict or list of datasets as `compare` takes, which sums up
        (time and rows are added, memory is that of the largest; a signature among them is free).
    n_eigenvalues, gamma, solver, tol, **options
        As for `signature`.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(2000, 3))
    >>> found = estimate(points, n_eigenvalues=50)
    >>> found.solver, 0 < found.seconds < 60, found.n_samples
    ('landmarks', True, 2000)
    """
    given = {"n_eigenvalues": n_eigenvalues, "gamma": gamma, "solver": solver, "tol": tol}
    _check.known_options("estimate()", options, _OPTIONS)
    if not _is_collection(data):
        return _of_one(*prepare(data, {**given, **options}))
    named = collection("data", data, data_options(options))
    members = [item for item in named.values() if isinstance(item, Dataset)]
    if not members:
        raise InputTypeError("data holds Signatures only; there is nothing to compute.")
    prepared = [prepare(member, {**given, **options}) for member in members]
    k = default_eigenvalues(members, prepared[0][1].kernel)
    return _together(
        [
            _of_one(dataset, replace(settings, n_eigenvalues=settings.n_eigenvalues or k))
            for dataset, settings in prepared
        ]
    )


def _is_collection(data: Any) -> bool:
    """Whether this is several datasets; a list of rows is one."""
    if isinstance(data, Mapping):
        return True
    if not isinstance(data, (list, tuple)) or not data:
        return False
    known = isinstance(data[0], (Dataset, Signature)) or is_path(data[0])
    return known or len(np.shape(data[0])) == 2


def _together(parts: Sequence[Estimate]) -> Estimate:
    return Estimate(
        " and ".join(sorted({part.solver for part in parts})),
        sum(part.seconds for part in parts),
        max(part.memory_bytes for part in parts),
        sum(part.n_samples for part in parts),
        max(part.n_features for part in parts),
        max(part.n_eigenvalues for part in parts),
        f"{len(parts)} datasets one after the other" if len(parts) > 1 else parts[0].reason,
    )


def _of_one(dataset: Dataset, settings: SignatureSettings) -> Estimate:
    k = settings.n_eigenvalues or default_eigenvalues([dataset], settings.kernel)
    require_enough(k, dataset)
    probes = _Probes(dataset, replace(settings, n_eigenvalues=k))
    return _streamed(probes) if streams(dataset, settings) else _in_memory(probes)


class _Probe(NamedTuple):
    """What a solver took on some of the rows."""

    n_rows: int
    operator: float  # seconds
    solver: float  # seconds
    effort: int  # landmarks, columns, or the sketch size


class _Probes:
    """Runs solvers on a half and on the whole of a sample."""

    def __init__(self, dataset: Dataset, settings: SignatureSettings) -> None:
        self.dataset, self.settings = dataset, settings
        self.n, self.k = dataset.n_samples, settings.n_eigenvalues or 1
        # Fewer than a thousand rows say little of K = 200; a third of many is dear enough.
        size = min(PROBE_ROWS, max(self.n // 3, min(self.n // 2, 1000), min(self.n, 32)))
        self.sample = dataset.subsample(size, np.random.default_rng(0))
        half = self.sample.subsample(max(size // 2, min(size, 16)), np.random.default_rng(1))
        self.parts = (half, self.sample)
        self._run(half.subsample(min(16, half.n_samples), np.random.default_rng(2)), Exact())

    def run(self, solver: EigenSolver) -> tuple[_Probe, _Probe]:
        """Return what a solver takes on both; with landmarks for all rows the second is spared."""
        first = self._run(self.parts[0], solver)
        if first.effort >= first.n_rows and isinstance(solver, Landmarks):
            return first, first
        return first, self._run(self.parts[1], solver)

    def _run(self, part: Dataset, solver: EigenSolver) -> _Probe:
        k = min(self.k, part.n_samples)
        if isinstance(solver, Nystrom) and solver.sketch_size is not None:
            solver = replace(solver, sketch_size=min(solver.sketch_size, part.n_samples))
        settings = replace(self.settings, solver=solver, n_eigenvalues=k, sketch_size=None)
        with collected():  # whatever is to be said of the accuracy, `signature` says it
            stats = compute_signature(part, settings, 0).stats
        effort = stats.get("landmarks", stats.get("columns", stats.get("sketch_size", k)))
        seconds = stats["seconds_operator"], stats["seconds_solver"]
        return _Probe(part.n_samples, *seconds, int(effort))


def _in_memory(probes: _Probes) -> Estimate:
    """Return the cost of rows that are all in memory."""
    n, k, kernel = probes.n, probes.k, probes.settings.kernel
    points = probes.dataset.kind == "points" and is_euclidean(kernel.metric)
    sizes = [n, *(part.n_samples for part in probes.parts)]
    tiled, *probed = (
        points and storage_for(size, kernel.memory_limit) == "tiled" for size in sizes
    )
    definite = points and kernel.n_neighbors is None
    solver, pair = _chosen(probes, definite=definite, tiled=tiled)
    share = {Nystrom.name: 0.0, Krylov.name: 0.5}.get(solver, 1.0)
    foreseen = _foreseen(pair, n, share)
    prices = [_price(solver, p.n_rows, k, p.effort, t) for p, t in zip(pair, probed, strict=True)]
    seconds = _carried(
        [p.solver for p in pair], prices, _price(solver, n, k, foreseen, tiled)
    ) + _carried(
        [p.operator for p in pair],
        [float(p.n_rows) ** 2 for p in pair],
        min(n * n, 3.0 * EXACT_PAIRS),
    )
    memory = _memory(solver, n, foreseen, tiled, median=points)
    rows = f"Measured on {pair[0].n_rows} and {pair[1].n_rows} rows"
    reason = rows + _told(solver, pair[1].effort, foreseen)
    return Estimate(solver, seconds, memory, n, probes.dataset.n_features, k, reason)


def _chosen(probes: _Probes, *, definite: bool, tiled: bool) -> tuple[str, tuple[_Probe, _Probe]]:
    """Return the solver that will be used, and what it took on the samples."""
    wanted = resolve_solver(probes.settings.solver, probes.settings.sketch_size)
    if wanted.name != "auto":
        return wanted.name, probes.run(wanted)
    choice = choose(probes.n, probes.k, definite=definite, tiled=tiled)
    if choice.affordable:
        pair = probes.run(Landmarks())
        if _foreseen(pair, probes.n) <= choice.affordable:
            return Landmarks.name, pair
    return choice.solver.name, probes.run(choice.solver)


def _streamed(probes: _Probes) -> Estimate:
    """Return the cost of rows that are read by blocks."""
    n, k, d = probes.n, probes.k, probes.dataset.n_features
    pair = probes.run(Landmarks())
    effort = _foreseen(pair, min(n, SAMPLE_ROWS))
    by_name = resolve_solver(probes.settings.solver, probes.settings.sketch_size).name
    slowly = by_name == "auto" and effort > affordable_streamed(n, d, k)
    rank = min(effort, default_budget(k))
    prices = [landmark_price(p.n_rows, p.effort) for p in pair]
    seconds = _carried([p.solver for p in pair], prices, landmark_price(SAMPLE_ROWS, rank))
    rates = measure(probes.dataset, probes.settings.kernel.bandwidth, 1 if slowly else rank)
    if slowly:
        pair = probes.run(Krylov())
        effort = _foreseen(pair, n, 0.5)
        prices = [krylov_price(p.n_rows, k, tiled=False, columns=p.effort) for p in pair]
        full = krylov_price(n, k, tiled=True, columns=effort)
        seconds += _carried([p.solver for p in pair], prices, full) + rates.scale
        memory = _memory(Krylov.name, n, effort, True, median=True)
    else:
        effort, memory = rank, rates.memory_bytes
        seconds += rates.seconds(n, k)
    solver = Krylov.name if slowly else Landmarks.name
    rows = f"Measured on {pair[0].n_rows}, {pair[1].n_rows} and {rates.n_rows} rows"
    reason = rows + _told(solver, pair[1].effort, effort)
    return Estimate(solver, seconds, memory, n, d, k, reason)


def _foreseen(pair: tuple[_Probe, _Probe], n: int, share: float = 1.0) -> int:
    """Return how many landmarks or columns N rows need if that goes on growing as it did.

    `share` is how much of the growth goes on: all for landmarks; half for columns, which stop
    growing once the eigenvalues that matter have settled.
    """
    first, second = pair
    if first.n_rows == second.n_rows:  # all rows there are, or all of them were needed
        return n
    growth = np.log(max(second.effort / first.effort, 1.0)) / np.log(second.n_rows / first.n_rows)
    return int(min(second.effort * (n / second.n_rows) ** (share * growth), n))


def _price(solver: str, n: int, k: int, effort: int, tiled: bool) -> float:
    if solver == "exact":
        return exact_price(n)
    if solver == "landmarks":
        return landmark_price(n, effort)
    # Nystrom is one product with as many columns as its sketch has.
    return krylov_price(n, k, tiled=tiled, columns=effort)


def _carried(seconds: Iterable[float], prices: Iterable[float], full: float) -> float:
    """Return the seconds of the full price: those of the larger probe and the slope beyond.

    The slope lies near the mean price whatever the noise; what does not grow is in neither.
    """
    (first, second), (little, more) = seconds, prices
    mean = second / more
    slope = (second - first) / (more - little) if more > little else mean
    return second + float(np.clip(slope, 0.5 * mean, 1.25 * mean)) * (full - more)


def _memory(solver: str, n: int, effort: int, tiled: bool, *, median: bool) -> int:
    """Return the most bytes beyond the data: matrices, a basis, or the values near a median."""
    matrix = 0 if tiled else 8 * n * n
    basis = 8 * n * effort
    small = 32 * effort**2 if solver != "exact" else 0
    most = {"exact": 3 * 8 * n * n, "landmarks": basis + basis // 8}
    scale = min(16 * n * n // 2, _KEPT_BYTES) if median else matrix
    return max(most.get(solver, matrix + 2 * basis) + small, scale)


def _told(solver: str, seen: int, foreseen: int) -> str:
    if solver == "landmarks":
        return f", where {seen} landmarks did; {foreseen} are foreseen"
    return f", with {seen} columns; {foreseen} are foreseen" if solver == "krylov" else ""


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.2g} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def _size(n_bytes: int) -> str:
    mib = n_bytes / 2**20
    return f"{mib:.0f} MiB" if mib < 1024 else f"{mib / 1024:.1f} GiB"
