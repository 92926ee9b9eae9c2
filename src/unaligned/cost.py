"""What a signature will cost, predicted from counted work: estimate()."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse

from . import _check
from ._format import amount, duration
from .comparison import prepare
from .data.dataset import Dataset
from .defaults import GAMMA, TOL
from .engine import one_blas
from .engine.memory import storage_for
from .errors import InputTypeError, collected
from .inputs import DataLike, collection, data_options
from .operators.bandwidth import EXACT_PAIRS
from .operators.base import CHECKABLE, PSDOperator
from .operators.kernel import is_euclidean
from .spectra import auto, pipeline
from .spectra.base import Accuracy
from .spectra.bounds import sample_rows
from .spectra.decay import GAMMA_RANGE
from .spectra.krylov import Krylov, default_block_size, default_columns
from .spectra.landmarks import Landmarks, default_budget
from .spectra.landmarks.streamed import SAMPLE_ROWS
from .spectra.signature import Signature

__all__ = ["Estimate", "estimate"]

PROBE_ROWS = 2400  # rows; nearly all landmarks of a smooth set are found in this many


@dataclass(frozen=True)
class Estimate:
    """The predicted cost of a signature, or of a collection of them.

    `seconds` is the time on this machine, `memory_bytes` the peak beyond the data itself,
    `reason` what both are based on. For a collection, `n_samples` is the sum, `n_features` and
    `n_eigenvalues` are the largest.
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
            f"about {duration(self.seconds)} and {amount(self.memory_bytes)} beyond the data "
            f"with {self.solver}. {self.reason}."
        )


def estimate(
    data: DataLike | Mapping[str, DataLike] | Sequence[DataLike],
    *,
    n_eigenvalues: int | None = None,
    gamma: float | str = GAMMA,
    solver: Any = "auto",
    tol: float = TOL,
    **options: Any,
) -> Estimate:
    """Return the predicted cost of `signature`, before it is computed.

    Landmarks or columns are counted on up to 2400 rows; the operations and kernel entries of all
    rows are then multiplied by the measured time of one. Takes about a second, and is right
    within a factor of three.

    Parameters
    ----------
    data
        As for `signature`; or a dict or list as for `compare`: times and rows are added, and of
        many datasets of about the same shape three are probed.
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
    known = (*_check.option_names(pipeline.SignatureSettings), "preprocess", "nan_policy")
    _check.known_options("estimate()", options, known)
    if not _is_collection(data):
        return _of_one(*prepare(data, {**given, **options}))
    named = collection("data", data, data_options(options))
    members = [item for item in named.values() if isinstance(item, Dataset)]
    if not members:
        raise InputTypeError("data holds Signatures only; there is nothing to compute.")
    prepared = [prepare(member, {**given, **options}) for member in members]
    k = pipeline.default_eigenvalues(members, prepared[0][1].kernel)
    return _of_all([(d, replace(s, n_eigenvalues=s.n_eigenvalues or k)) for d, s in prepared])


def _is_collection(data: Any) -> bool:
    """Whether this is several datasets; a list of rows is one."""
    if not isinstance(data, (list, tuple)) or not data:
        return isinstance(data, Mapping)
    known = isinstance(data[0], (Dataset, Signature)) or _check.is_path(data[0])
    return known or len(np.shape(data[0])) == 2


def _of_all(members: Sequence[tuple[Dataset, pipeline.SignatureSettings]]) -> Estimate:
    """Return the cost of a collection, probing up to three datasets of each shape."""
    groups: dict[tuple[str, int, int], list[Any]] = {}
    for dataset, settings in members:
        pipeline.require_enough(settings.n_eigenvalues or 1, dataset)
        size = round(2.0 * math.log2(dataset.n_samples))  # equal within about a fifth
        groups.setdefault((dataset.kind, dataset.n_features, size), []).append((dataset, settings))
    parts, seconds = [], 0.0
    for group in groups.values():
        probed = [_of_one(*member) for member in group[:: -(-len(group) // 3)]]
        seconds += len(group) * sum(part.seconds for part in probed) / len(probed)
        parts += probed
    probed_only = f", {len(parts)} of them probed" if len(parts) < len(members) else ""
    reason = f"{len(members)} datasets one after the other{probed_only}"
    return Estimate(
        " and ".join(sorted({part.solver for part in parts})),
        seconds,
        max(part.memory_bytes for part in parts),
        sum(dataset.n_samples for dataset, _ in members),
        max(part.n_features for part in parts),
        max(part.n_eigenvalues for part in parts),
        reason if len(members) > 1 else parts[0].reason,
    )


def _of_one(dataset: Dataset, settings: pipeline.SignatureSettings) -> Estimate:
    dataset = getattr(dataset, "vertices", dataset)  # of a mesh, whose faces LES ignores
    k = settings.n_eigenvalues or pipeline.default_eigenvalues([dataset], settings.kernel)
    pipeline.require_enough(k, dataset)
    with one_blas(), collected():  # `signature` warns about accuracy
        return _Model(dataset, settings, k).estimate()


class _Model:
    """The cost of one signature: operations counted for N rows, times measured on a few."""

    def __init__(self, dataset: Dataset, settings: pipeline.SignatureSettings, k: int) -> None:
        self.dataset, self.settings, self.kernel = dataset, settings, settings.kernel
        self.n, self.k, self.solver = dataset.n_samples, k, settings.eigen_solver
        gamma = GAMMA_RANGE[0] if isinstance(settings.gamma, str) else settings.gamma
        self.accuracy = Accuracy(gamma, settings.tol)
        points = dataset.kind == "points"
        self.is_euclidean = points and is_euclidean(self.kernel.metric)
        self.is_gaussian = self.is_euclidean and self.kernel.n_neighbors is None
        self.is_streamed = pipeline.streams(dataset, settings)
        large = self.is_gaussian and storage_for(self.n, self.kernel.memory_limit) == "tiled"
        self.is_tiled = self.is_streamed or large
        self.is_given_sparse = not points and sparse.issparse(dataset.values)
        self.is_sparse = self.is_given_sparse or self.kernel.n_neighbors is not None
        neighbors = self.kernel.n_neighbors or 0
        self.n_entries = dataset.values.nnz if self.is_given_sparse else 2 * self.n * neighbors
        self.rows, self.reading = self._sample()

    def _sample(self) -> tuple[Dataset, float]:
        """Return preprocessed rows, and the seconds to read and preprocess all rows."""
        if self.dataset.kind != "points":
            return self.dataset, 0.0
        components = [int(s[4:]) for s in self.dataset.preprocess if s.startswith("pca:")]
        size = min(self.n, max([PROBE_ROWS, *components]))
        drawn, seconds = self.dataset.subsample(size, np.random.default_rng(0)), 0.0
        if self.dataset.preprocess:
            seconds = _seconds(drawn.prepared) * self.n / size
        if self.dataset.is_lazy:
            n_passes = 5 if self.is_streamed else 2
            started = perf_counter()
            n_rows = next(iter(self.dataset.values.blocks())).shape[0]
            seconds += n_passes * (perf_counter() - started) * self.n / n_rows
        return Dataset(drawn.prepared(), name=self.dataset.name), seconds

    def part(self, n_rows: int) -> PSDOperator:
        """Return the operator of a few rows; that of a given sparse matrix is whole."""
        rows = self.rows
        if not self.is_given_sparse and n_rows < rows.n_samples:
            rows = rows.subsample(n_rows, np.random.default_rng(n_rows))
        return pipeline.operator_of(rows, self.kernel, np.random.default_rng(0))[0]

    def estimate(self) -> Estimate:
        """Return the predicted cost, following the rules of `Auto`."""
        solver, effort, seconds, reason = self._solver()
        seconds += self._operator_seconds() + self.reading + 0.005
        memory, d = self._memory(solver, effort), self.dataset.n_features
        return Estimate(solver, seconds, memory, self.n, d, self.k, reason)

    def _solver(self) -> tuple[str, int, float, str]:
        """Return the solver, its landmarks or columns, its time, and the reason."""
        n, k, solver, affordable = self.n, self.k, self.solver, math.inf
        is_auto = solver.name == "auto"
        if is_auto and self.is_streamed:
            solver, affordable = Krylov(), auto.affordable_streamed(n, self.dataset.n_features, k)
        elif is_auto:
            checked = self.dataset.kind not in ("distances", "affinity") or n <= CHECKABLE
            definite = self.is_gaussian or (checked and self.part(300).definite)
            choice = auto.choose(n, k, definite=definite, tiled=self.is_tiled)
            solver, affordable = auto.resolve_solver(choice.solver), choice.affordable
        if isinstance(solver, Landmarks) or (is_auto and affordable):
            rank, reason = self._landmarks()
            if rank <= affordable:
                rank = min(rank, getattr(solver, "max_landmarks", None) or default_budget(k))
                return "landmarks", rank, self._landmark_seconds(rank), reason
        if solver.name == "exact":
            return "exact", n, self._exact_seconds(), f"{n}³ operations counted"
        columns, reason = self._columns()
        seconds = self._column_seconds(columns)
        spent = isinstance(solver, Krylov) and columns >= default_columns(k)
        if is_auto and spent and auto.fits(n, self.is_tiled):  # then `exact` follows
            return "exact", n, seconds + self._exact_seconds(), reason
        return solver.name, columns, seconds, reason

    def _landmarks(self) -> tuple[int, str]:
        """Return the predicted number of landmarks: a power of N, fitted to two subsamples."""
        p, ranks = min(self.n, max(min(PROBE_ROWS, self.n // 2), 32)), []
        for n_rows in (max(p // 2, min(p, 8)), p):
            operator, rng = self.part(n_rows), np.random.default_rng(0)
            k, most = min(self.k, operator.n_samples), 0.95 * operator.n_samples
            found = Landmarks().attempt(operator, k, self.accuracy, rng, most)
            ranks.append(int(most) + 1 if found is None else int(found.stats["landmarks"]))
        n = min(self.n, SAMPLE_ROWS) if self.is_streamed else self.n
        rank = int(ranks[1] * max(ranks[1] / ranks[0], 1.0) ** math.log2(n / p))
        rank = n if ranks[1] >= most else min(rank, n)  # nearly all rows: then all
        return rank, f"{p} rows needed {ranks[1]} landmarks; {rank} are expected"

    def _columns(self) -> tuple[int, str]:
        """Return the predicted number of columns of `krylov` or `nystrom`."""
        if self.solver.name == "nystrom":
            columns = min(getattr(self.solver, "sketch_size", None) or 2 * self.k, self.n)
            return columns, f"Operations of {columns} columns counted"
        most = min(getattr(self.solver, "max_columns", None) or default_columns(self.k), self.n)
        # K eigenvalues take as many columns of any matrix with several times as many rows.
        p = min(self.n, max(int(4.5 * self.k), 300), PROBE_ROWS)
        if self.is_sparse and self.n > p:
            columns = min(auto.COLUMNS_PER_VALUE * self.k, most)
            return columns, f"{columns} columns are expected"
        k = self.k if p == self.n else max(min(self.k, round(p / 4.5)), 1)
        found = Krylov().attempt(self.part(p), k, self.accuracy, np.random.default_rng(0))
        needed = found.stats["columns"]
        columns = min(int(needed * self.k / k), most)
        return columns, f"{p} rows needed {needed} columns; {columns} are expected"

    @cached_property
    def entry_seconds(self) -> float:
        """The time of one kernel entry."""
        operator = self.part(PROBE_ROWS // 2)
        index = np.arange(min(256, operator.n_samples))
        affinity: Any = getattr(operator, "affinity", operator)
        return _seconds(lambda: affinity.rows(index)) / (index.size * operator.n_samples)

    def _exact_seconds(self) -> float:
        return multiply_add_seconds() * auto.exact_price(self.n) + self.entry_seconds * self.n**2

    def _landmark_seconds(self, rank: int) -> float:
        n, unit, entry = self.n, multiply_add_seconds(), self.entry_seconds
        if not self.is_streamed:
            return unit * auto.landmark_price(n, rank) + 2.0 * entry * n * rank
        sample = sample_rows(self.k)  # two spectra of these measure the effect of σ²
        fixed = auto.landmark_price(SAMPLE_ROWS, rank) + 2.0 * auto.exact_price(sample)
        return unit * (fixed + 3.0 * n * rank**2) + entry * (3.0 * n * rank + 2.0 * sample**2)

    def _column_seconds(self, columns: int) -> float:
        n, width, unit = self.n, default_block_size(self.k), multiply_add_seconds()
        price = auto.krylov_price(n, self.k, tiled=self.is_tiled, columns=columns)
        if self.is_tiled:
            return unit * price
        operator = self.part(PROBE_ROWS // 2)
        block, ratio = np.ones((operator.n_samples, width)), n / operator.n_samples
        one = _seconds(lambda: operator.matmat(block)) / width * ratio
        trace = n if self.dataset.kind == "graph" else 0  # takes N products
        products = (columns + trace) * one * (1.0 if self.is_sparse else ratio)
        matrix = 0.0 if self.is_sparse else self.entry_seconds * n**2
        return products + matrix + unit * (price - n**2 * columns)

    def _operator_seconds(self) -> float:
        """Return the time of σ², distances, neighbours and outliers."""
        p = min(self.n, PROBE_ROWS if self.is_gaussian else PROBE_ROWS // 2)
        seconds, ratio = _seconds(lambda: self.part(p)), self.n / p
        if self.is_given_sparse:
            return seconds
        if self.is_gaussian and self.kernel.bandwidth == "median":
            return seconds * min(ratio**2, 3.0 * EXACT_PAIRS / p**2)
        linear = self.is_gaussian or (self.is_euclidean and self.rows.n_features <= 15)  # trees
        return seconds * ratio ** (1 if linear else 2)

    def _memory(self, solver: str, effort: int) -> int:
        """Return the peak bytes of a solver with so many landmarks or columns."""
        n, is_graph = self.n, self.dataset.kind == "graph"
        matrix = 24 * self.n_entries if self.is_sparse else 8 * n**2
        operator = 2 * matrix
        if is_graph:
            operator = 40 * n * min(n, 512)  # five blocks of columns for the trace
        elif self.is_euclidean:  # the pairs that the median keeps, and copies of the points
            operator = min(8 * n**2, 1 << 26) + 32 * n * self.rows.n_features
        if solver == "landmarks" and self.is_streamed:
            return 10 * SAMPLE_ROWS * effort + 128 * effort**2 + (1 << 26)
        basis = 8 * n * (effort + effort // 4 + 192) + 16 * effort**2
        work = basis if self.is_tiled else basis + matrix
        exact, landmarks = (40 if is_graph else 24) * n**2, 9 * n * effort + 32 * effort**2
        work = {"exact": exact, "landmarks": landmarks}.get(solver, work)
        return max(work, operator, 1 << 20)


@lru_cache(maxsize=1)
def multiply_add_seconds() -> float:
    """Return the time of one multiply-add inside a matrix product, the unit of all prices."""
    matrix = np.ones((384, 384))
    return _seconds(lambda: matrix @ matrix) / 384**3


def _seconds(function: Callable[[], Any]) -> float:
    """Return the shortest time of two to five calls: the first may compile or import."""
    times: list[float] = []
    while len(times) < 2 or (len(times) < 5 and sum(times) < 0.1):
        started = perf_counter()
        function()
        times.append(perf_counter() - started)
    return min(times)
