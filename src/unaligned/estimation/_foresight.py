"""What one signature will cost: what probes needed and took, carried over to all rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from ..engine.memory import storage_for
from ..operators.affinity import CHECKABLE
from ..operators.bandwidth import EXACT_PAIRS
from ..operators.graph import HeatKernel
from ..operators.metric import is_euclidean
from ..operators.outliers import REFERENCES
from ..spectra.auto import (
    ORTHOGONAL_COST,
    RITZ_COST,
    affordable_streamed,
    choose,
    fits,
    landmark_price,
    resolve_solver,
)
from ..spectra.base import EigenSolver
from ..spectra.exact import Exact
from ..spectra.krylov import Krylov, default_block_size, default_columns
from ..spectra.landmarks import Landmarks, default_budget
from ..spectra.landmarks.streamed import SAMPLE_ROWS
from . import _memory
from ._probes import PROBE_ROWS, Part, Probe, Sample, n_weights
from ._rates import (
    beyond_cache,
    large_product_seconds,
    measure,
    multiply_add_seconds,
    product_seconds,
)
from ._timing import timed

# A stream reads all rows for their mean, for σ², and in three passes; and draws three samples.
_READ, _DRAWN = 5, 3
_AROUND = 0.005  # seconds for checks, hashes and the like, whatever the size
_TILED_ROWS = 1500
_STEEPEST = 1.5  # how much faster than before landmarks may grow with every doubling


class Foreseen(NamedTuple):
    """The solver, what it needs, and how this was found."""

    solver: str
    seconds: float
    memory_bytes: int
    reason: str
    columns: int = 0


def in_memory(sample: Sample) -> Foreseen:
    """Return the cost of rows that are all in memory."""
    wanted = resolve_solver(sample.settings.solver, sample.settings.sketch_size)
    kernel, n, k = sample.settings.kernel, sample.n, sample.k
    dense_points = _gaussian(sample)
    tiled = dense_points and storage_for(n, kernel.memory_limit) == "tiled"
    choice = choose(n, k, definite=_definite(sample), tiled=tiled)
    solver = choice.solver if wanted.name == "auto" else wanted
    found = None
    if isinstance(wanted, Landmarks) or (wanted.name == "auto" and choice.affordable):
        most = math.inf if isinstance(wanted, Landmarks) else choice.affordable
        found = _by_landmarks(sample, wanted, most)
    if found is None:
        found = (
            _by_rows(sample) if isinstance(solver, Exact) else _by_products(sample, solver, tiled)
        )
    spent = isinstance(solver, Krylov) and found.columns >= _budget(solver, k)
    if spent and wanted.name == "auto" and fits(n, tiled):  # then `exact` follows
        last = _by_rows(sample)
        found = last._replace(seconds=found.seconds + last.seconds, reason=found.reason)
    reading = 2 * sample.n * sample.reading[0] + sample.reading[1]
    around = _operator_seconds(sample) + reading + _AROUND
    return found._replace(seconds=found.seconds + around)


def streamed(sample: Sample) -> Foreseen:
    """Return the cost of rows that are read by blocks."""
    wanted = resolve_solver(sample.settings.solver, sample.settings.sketch_size)
    n, k, d = sample.n, sample.k, sample.dataset.n_features
    solver = wanted if isinstance(wanted, Landmarks) else Landmarks()
    probes = sample.landmarks(solver)
    effort = foreseen_landmarks(probes, min(n, SAMPLE_ROWS))
    if wanted.name == "auto" and effort > affordable_streamed(n, d, k):
        found = _by_products(sample, Krylov(), True)
        rates = measure(sample.rows, n, sample.settings.kernel.bandwidth, 1)
        return found._replace(seconds=found.seconds + rates.scale)
    rank = min(effort, solver.max_landmarks or default_budget(k))
    rates = measure(sample.rows, n, sample.settings.kernel.bandwidth, rank)
    prices = [landmark_price(p.n_rows, p.effort) for p in probes]
    seconds = carried([p.seconds for p in probes], prices, landmark_price(SAMPLE_ROWS, rank))
    reading = _READ * n * sample.reading[0] + _DRAWN * sample.reading[1]
    reason = (
        f"Measured on {probes[-1].n_rows} and {rates.n_rows} rows, where {probes[-1].effort} "
        f"landmarks did; {rank} are foreseen"
    )
    total = seconds + rates.seconds(n, k) + reading
    return Foreseen(Landmarks.name, total, rates.memory_bytes, reason)


def _by_landmarks(sample: Sample, wanted: EigenSolver, most: float) -> Foreseen | None:
    """Return the cost of landmarks; None where more than `most` are foreseen."""
    solver = wanted if isinstance(wanted, Landmarks) else Landmarks()
    probes = sample.landmarks(solver)
    effort = foreseen_landmarks(probes, sample.n)
    if effort > most:
        return None
    effort = min(effort, solver.max_landmarks or default_budget(sample.k))
    prices = [landmark_price(p.n_rows, p.effort) for p in probes]
    full, unit = landmark_price(sample.n, effort), multiply_add_seconds()
    seconds = carried([p.seconds for p in probes], prices, full, unit)
    reason = (
        f"Measured on {probes[-1].n_rows} rows, where {probes[-1].effort} landmarks did; "
        f"{effort} are foreseen"
    )
    return Foreseen(Landmarks.name, seconds, _memory.of_landmarks(sample, effort), reason)


def _by_rows(sample: Sample) -> Foreseen:
    """Return the cost of all eigenvalues of the whole matrix."""
    n = sample.n
    part = sample.part(min(n, max(n // 2, 256), 1000))
    size = part.operator.n_samples
    part.operator.diagonal()  # builds what is built once
    filling, matrix = timed(part.operator.to_dense)
    half = max(size // 2, 1)
    seconds = [timed(partial(np.linalg.eigvalsh, matrix[:h, :h]))[0] for h in (half, size)]
    # Half of the work is as N³ in caches and the other as N² numbers to be read: both are fitted.
    cubic = (seconds[1] / size**2 - seconds[0] / half**2) / max(size - half, 1)
    cubic = float(np.clip(cubic, 0.6 * seconds[1] / size**3, seconds[1] / size**3))
    square = seconds[1] / size**2 - cubic * size
    growth = (n / size) ** 2
    if isinstance(part.operator, HeatKernel):
        growth = n * n_weights(sample.dataset) / (size * part.n_weights)
    total = square * n**2 + cubic * n**3 + filling * growth
    return Foreseen(Exact.name, total, _memory.of_rows(sample), f"Measured on {size} rows")


def _by_products(sample: Sample, solver: EigenSolver, tiled: bool) -> Foreseen:
    """Return the cost of a basis of some columns, from products with the whole matrix."""
    part, probe = sample.columns(solver)
    n, k = sample.n, sample.k
    columns = min(int(probe.effort * k / probe.n_eigenvalues), n)
    if isinstance(solver, Krylov):
        columns = min(columns, _budget(solver, k))
    here, there = (
        solver.block_size or default_block_size(count) if isinstance(solver, Krylov) else most
        for count, most in ((probe.n_eigenvalues, probe.effort), (k, columns))
    )
    small = product_seconds(part.operator, here) / here
    own = probe.seconds - small * (probe.effort + probe.extra) - _trace_seconds(part, 1.0)
    rest = _rest_seconds(max(own, 0.1 * probe.seconds), probe, n, columns, there / here)
    one = _column_seconds(sample, part, small, there, tiled)
    growth = n / probe.n_rows * n_weights(sample.dataset) / part.n_weights
    total = rest + one * (columns + probe.extra) + _trace_seconds(part, growth)
    reason = f"Measured on {probe.n_rows} rows, with {probe.effort} columns"
    if probe.n_eigenvalues < k:
        reason += f" for {probe.n_eigenvalues} eigenvalues"
    memory = _memory.of_columns(sample, columns, tiled)
    return Foreseen(solver.name, total, memory, f"{reason}; {columns} are foreseen", columns)


def _budget(solver: Krylov, k: int) -> int:
    """Return the most columns that `krylov` takes."""
    return solver.max_columns or default_columns(k)


def _trace_seconds(part: Part, growth: float) -> float:
    """Return the seconds of the trace of a heat kernel: as many columns as there are rows."""
    if not isinstance(part.operator, HeatKernel):
        return 0.0
    width = min(_memory.WIDE, part.n_rows)
    return product_seconds(part.operator, width) / width * part.n_rows * growth


def _rest_seconds(own: float, probe: Probe, n: int, columns: int, wider: float) -> float:
    """Return the seconds besides products: operations, and what a step takes however small."""
    unit = multiply_add_seconds()
    work = _orthogonal(probe.n_rows, probe.effort)
    rate = float(np.clip(own / work, unit, 3.0 * unit))
    per_step = max(own - rate * work, 0.0) / probe.effort
    return rate * _orthogonal(n, columns) + per_step * columns / wider


def _column_seconds(sample: Sample, part: Part, small: float, width: int, tiled: bool) -> float:
    """Return the seconds of one column of a product with the whole matrix."""
    if tiled:
        kernel = replace(sample.settings.kernel, memory_limit=0)
        some = sample.part(min(sample.n, _TILED_ROWS))
        operator = Part(some.dataset, replace(sample.settings, kernel=kernel)).operator
        return product_seconds(operator, width) / width * (sample.n / some.n_rows) ** 2
    if part.operator.storage == "dense" and beyond_cache(sample.n):
        return large_product_seconds(sample.n, width) / width
    if sample.local and part.dataset.kind == "points":
        return small * sample.n / part.n_rows
    return small * n_weights(sample.dataset) / part.n_weights


def _orthogonal(n: int, columns: int) -> float:
    """Return the operations on a basis besides the products."""
    return ORTHOGONAL_COST * n * columns**2 + RITZ_COST * columns**3


def _gaussian(sample: Sample) -> bool:
    """Whether this is the Gaussian kernel of all pairs of points."""
    kernel = sample.settings.kernel
    euclidean = sample.dataset.kind == "points" and is_euclidean(kernel.metric)
    return euclidean and kernel.n_neighbors is None


def _definite(sample: Sample) -> bool:
    """Whether the operator is expected to be positive semi-definite."""
    if _gaussian(sample):
        return True
    checked = sample.dataset.kind in ("distances", "affinity")
    if checked and sample.n > CHECKABLE:
        return False
    return bool(sample.part(min(sample.n, 300)).operator.definite)


def _operator_seconds(sample: Sample) -> float:
    """Return the seconds until there is an operator: σ², distances, neighbours, tests."""
    if _gaussian(sample):  # up to a thousand rows the median is found in another way
        sample.part(min(sample.n, max(sample.n // 4, 16), PROBE_ROWS))
    parts = sample.largest()
    seconds = [part.seconds for part in parts]
    if sample.dataset.kind == "points" and is_euclidean(sample.settings.kernel.metric):
        *prices, full = (
            n * min(n, REFERENCES) ** 2.0
            if sample.settings.kernel.robust
            else min(n**2, 3.0 * EXACT_PAIRS)
            for n in (parts[0].n_rows, parts[1].n_rows, sample.n)
        )
        return carried(seconds, prices, full)
    if sample.local:
        return seconds[1] * n_weights(sample.dataset) / max(parts[1].n_weights, 1)
    ratio = parts[1].n_rows / parts[0].n_rows
    power = math.log(seconds[1] / seconds[0]) / math.log(ratio) if ratio > 1 else 2.0
    return seconds[1] * float((sample.n / parts[1].n_rows) ** np.clip(power, 2.0, 3.0))


def foreseen_landmarks(probes: Sequence[Probe], n: int) -> int:
    """Return how many landmarks N rows need if that goes on growing as it did.

    The growth from one doubling of the rows to the next goes on, but no faster than a power of
    the rows would.

    Examples
    --------
    >>> seen = {600: 426, 1200: 512, 2400: 542}
    >>> foreseen_landmarks([Probe(n, 200, 0.1, seen[n]) for n in seen], 10_000)
    556
    """
    last = probes[-1]
    if last.every or len(probes) < 2 or last.n_rows >= n:
        return n if last.every else last.effort
    doublings = math.log2(n / last.n_rows)
    before = probes[-2]
    grown = max(last.effort - before.effort, 0)
    share = 1.0
    if len(probes) > 2 and before.effort > probes[-3].effort:
        share = min(grown / (before.effort - probes[-3].effort), _STEEPEST)
    steps = np.diff(np.append(np.arange(0.0, doublings), doublings))
    further = grown * float((steps * share ** np.arange(1, steps.size + 1)).sum())
    power = (last.effort / before.effort) ** doublings * last.effort
    return int(min(last.effort + further, max(power, last.effort), n))


def carried(
    seconds: Sequence[float], prices: Sequence[float], full: float, unit: float = math.inf
) -> float:
    """Return the seconds of the full price: those of the last probe and the slope beyond.

    The slope lies near the mean price whatever the noise, and near what one `unit` of the price
    takes; what does not grow is in neither. A probe that took longer than a smaller one would
    lead to expect was disturbed.

    Examples
    --------
    >>> round(carried([0.3, 0.5], [1.0, 2.0], 10.0), 3)
    2.1
    """
    second, more = seconds[-1], prices[-1]
    first, little = (seconds[-2], prices[-2]) if len(prices) > 1 else (second, more)
    second = min(second, first * more / little)
    mean = second / more
    slope = (second - first) / (more - little) if more > little else mean
    least = 0.3 * mean
    most = max(min(1.25 * mean, 1.5 * unit), least)
    return second + float(np.clip(slope, least, most)) * (full - more)
