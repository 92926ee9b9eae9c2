"""Solvers at work on a few rows of a dataset: what they needed, and how long they took."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order

from .._check import IndexArray
from ..data.dataset import Dataset
from ..engine import one_blas
from ..errors import collected
from ..operators.base import PSDOperator, SparseOperator
from ..rows.source import RowSource
from ..spectra.base import Accuracy, EigenSolver, Spectrum
from ..spectra.decay import GAMMA_RANGE
from ..spectra.landmarks import Landmarks
from ..spectra.nystrom import Nystrom
from ..spectra.pipeline import SignatureSettings, operator_of
from ._timing import timed

# Landmarks of a smooth set are nearly all found in so many rows.
PROBE_ROWS = 2400
SAMPLE_ROWS = 12_288  # drawn once: a source that is no array may have to read all for that
_SAMPLE_BYTES = 1 << 26
_LOCAL_ROWS = 1200  # of a graph: fewer have a spectrum of their own
_NEARLY_ALL = 0.95  # of the rows: what needs so many of them as landmarks needs all
# Rows per eigenvalue, and rows, from which on that says something of more rows.
_TELLING, _TELLING_ROWS = 2.5, 400


class Probe(NamedTuple):
    """What a solver needed and took on some of the rows."""

    n_rows: int
    n_eigenvalues: int
    seconds: float
    effort: int  # landmarks, columns, or the sketch size
    extra: int = 0  # columns that only looked for what was missed
    every: bool = False  # whether nearly all rows had to become landmarks


class Part:
    """Some rows of a dataset, with their operator."""

    def __init__(self, dataset: Dataset, settings: SignatureSettings) -> None:
        self.dataset, self.settings = dataset, settings
        self.n_rows = dataset.n_samples
        self.seconds, self.operator = timed(self._operator)
        self.n_weights = n_weights(dataset, self.operator)

    def _operator(self) -> PSDOperator:
        return operator_of(self.dataset, self.settings.kernel, np.random.default_rng(0))[0]

    def run(self, solver: EigenSolver, n_eigenvalues: int) -> Probe:
        """Return what a solver takes; landmarks are given up where nearly all rows are needed."""
        k = min(n_eigenvalues, self.operator.n_samples)
        # Its first use may build the matrix, which is work of the solver: so once only.
        seconds, found = timed(lambda: self._solved(solver, k), repeats=1)
        if found is None:
            return Probe(self.n_rows, k, seconds, self.n_rows, every=True)
        stats = found.stats
        effort = stats.get("landmarks", stats.get("columns", stats.get("sketch_size", k)))
        every = isinstance(solver, Landmarks) and effort >= _NEARLY_ALL * self.n_rows
        return Probe(self.n_rows, k, seconds, int(effort), stats.get("probe_columns", 0), every)

    def _solved(self, solver: EigenSolver, k: int) -> Spectrum | None:
        gamma = self.settings.gamma
        accuracy = Accuracy(GAMMA_RANGE[0] if isinstance(gamma, str) else gamma, self.settings.tol)
        rng, n = np.random.default_rng(0), self.operator.n_samples
        with one_blas(), collected():  # what is to be said of the accuracy, `signature` says
            if isinstance(solver, Landmarks):
                return solver.attempt(self.operator, k, accuracy, rng, _NEARLY_ALL * n)
            if isinstance(solver, Nystrom) and solver.sketch_size is not None:
                solver = replace(solver, sketch_size=min(max(solver.sketch_size, k), n))
            return solver.solve(self.operator, k, accuracy, rng)


class Sample:
    """Rows of a dataset, drawn once, from which parts are taken."""

    def __init__(self, dataset: Dataset, settings: SignatureSettings) -> None:
        self.dataset, self.settings = dataset, settings
        self.n, self.k = dataset.n_samples, settings.n_eigenvalues or 1
        self._parts: dict[int, Part] = {}

    @cached_property
    def local(self) -> bool:
        """Whether a row has affinities to few others, however many rows there are."""
        return self.settings.kernel.n_neighbors is not None or sparse_weights(self.dataset)

    @cached_property
    def _drawn(self) -> tuple[float, Dataset]:
        fitting = _SAMPLE_BYTES // (8 * self.dataset.n_features)
        size = min(self.n, max(min(SAMPLE_ROWS, fitting), PROBE_ROWS))
        if self.dataset.kind != "points":
            return 0.0, self.dataset
        rng = np.random.default_rng(0)
        seconds, rows = timed(lambda: self.dataset.subsample(size, rng), repeats=1)
        return seconds, rows

    @property
    def rows(self) -> Dataset:
        """The rows that parts are taken from."""
        return self._drawn[1]

    @cached_property
    def reading(self) -> tuple[float, float]:
        """Seconds to read one row of a source, in order; and to draw a sample. 0 in memory."""
        source = self.dataset.values
        if not isinstance(source, RowSource):
            return 0.0, 0.0
        seconds, block = timed(lambda: next(iter(source.blocks())), repeats=1)
        return seconds / block.shape[0], self._drawn[0]

    def part(self, n_rows: int) -> Part:
        """Return a part of so many rows; of sparse weights, one that hangs together."""
        n_rows = min(n_rows, self.rows.n_samples)
        if n_rows not in self._parts:
            self._parts[n_rows] = Part(self._some(n_rows), self.settings)
        return self._parts[n_rows]

    def largest(self) -> tuple[Part, Part]:
        """Return the largest part so far, after one of half of its rows."""
        n_rows = max(self._parts)
        return self.part(max(n_rows // 2, min(n_rows, 2))), self._parts[n_rows]

    def _some(self, n_rows: int) -> Dataset:
        if n_rows == self.n:
            return self.dataset
        if not sparse_weights(self.dataset):
            return self.rows.subsample(n_rows, np.random.default_rng(n_rows))
        near = neighbourhood(self.dataset.values, n_rows)
        return replace(self.dataset, values=self.dataset.values[near][:, near])

    def landmarks(self, solver: Landmarks) -> list[Probe]:
        """Return what landmarks need in parts that grow twofold, up to three."""
        size = min(PROBE_ROWS if self.n >= 20_000 else PROBE_ROWS // 2, max(self.n // 3, 500))
        size = min(size, max(self.n // 2, 32), self.n)
        probes: list[Probe] = []
        for rows in (size // 4, size // 2, size):
            probes.append(self.part(max(rows, min(self.n, 8))).run(solver, self.k))
            if probes[-1].every and rows >= max(_TELLING * self.k, _TELLING_ROWS):
                break
        return probes

    def columns(self, solver: EigenSolver) -> tuple[Part, Probe]:
        """Return what a solver with products needs in a part, and that part.

        The columns that K eigenvalues take hardly depend on the number of rows, as long as there
        are a few times as many; where a row has few neighbours, K/N decides.
        """
        n = min(self.n, max(self.n // 5, 300), max(int(4.5 * self.k), 300), PROBE_ROWS)
        k = self.k if n == self.n else max(min(self.k, round(n / 4.5)), 1)
        if self.local:
            n = min(self.n, max(self.n // 3, 300), _LOCAL_ROWS)
            k = max(round(self.k * n / self.n), 1)
        if isinstance(solver, Nystrom) and solver.sketch_size is not None:
            solver = replace(solver, sketch_size=max(solver.sketch_size * k // self.k, 1))
        part = self.part(n)
        self.part(min(n, 32)).run(solver, min(k, 4))  # compiles what is to be compiled
        return part, part.run(solver, k)


def sparse_weights(dataset: Dataset) -> bool:
    """Whether this is a matrix of weights of which few are not 0."""
    return dataset.kind != "points" and sparse.issparse(dataset.values)


def n_weights(dataset: Dataset, operator: PSDOperator | None = None) -> int:
    """Return how many numbers a product with the matrix of a dataset goes through."""
    if sparse_weights(dataset):
        return int(dataset.values.nnz)
    inner = getattr(operator, "affinity", operator)
    if isinstance(inner, SparseOperator):
        return int(inner.matrix.nnz)
    return dataset.n_samples**2


def neighbourhood(weights: Any, size: int) -> IndexArray:
    """Return nodes around a random one, of other components too where one has too few.

    Rows drawn at random would be no neighbours of each other: a graph of isolated nodes.

    Examples
    --------
    >>> chain = sparse.csr_array(np.eye(100, k=1) + np.eye(100, k=-1))
    >>> near = neighbourhood(chain, 10)
    >>> near.size, int(np.ptp(near))
    (10, 9)
    """
    graph = sparse.csr_array(weights)
    seen = np.zeros(graph.shape[0], dtype=bool)
    count = 0
    for start in np.random.default_rng(0).permutation(graph.shape[0]):
        if not seen[start]:
            order = breadth_first_order(graph, start, directed=False, return_predecessors=False)
            new = order[: size - count]
            seen[new] = True
            count += new.size
        if count == size:
            break
    return np.flatnonzero(seen)
