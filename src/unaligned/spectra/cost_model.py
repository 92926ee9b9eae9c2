"""The time and memory of one signature, predicted from counted work."""

import math
from collections.abc import Callable
from dataclasses import replace
from timeit import default_timer, repeat
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._check import FloatArray
from ..data.dataset import Dataset
from ..data.preprocess import apply_steps, is_fitted, require_components
from ..defaults import SAMPLED_TOL
from ..engine import one_blas
from ..engine.memory import storage_for
from ..errors import about, collected
from ..operators.bandwidth_sampled import PAIRS
from ..operators.base import CHECKABLE, PSDOperator
from ..operators.kernel import KernelSettings, is_euclidean
from . import auto, pipeline, prices
from .blocks import sampling_noise, with_scale
from .bounds import sample_rows
from .krylov import Krylov, default_block_size, default_columns
from .landmarks import Landmarks, default_budget
from .landmarks.streamed import CHOICE_ROWS
from .sampled import Sampled
from .sampled.sizes import first_sizes

PROBE_ROWS = 2400  # rows; nearly all landmarks of a smooth set are found in this many


class Prediction(NamedTuple):
    """The predicted cost of one signature; see `unaligned.cost.Estimate`."""

    solver: str
    seconds: float
    memory_bytes: int
    reason: str
    error: float | None
    sampling_noise: float | None


def announce_cost(dataset: Dataset, settings: pipeline.SignatureSettings, k: int) -> None:
    """Warn if the signature takes more than a minute, before it is sent to another process.

    Warnings of other processes come with their results. Large data is probed for about a second.
    """
    n, solver, kernel = dataset.n_samples, settings.eigen_solver, settings.kernel
    is_points, storage = dataset.kind == "points", "dense"
    if (
        kernel.n_neighbors
        or dataset.kind == "graph"
        or (sparse.issparse(dataset.values) and not is_points)
    ):
        storage = "sparse"
    elif is_points and is_euclidean(kernel.metric):
        storage = storage_for(n, kernel.memory_limit)
    if solver.name == "auto" and storage != "sparse" and not prices.is_affordable(n, k):
        with one_blas(), collected():
            solver = auto.resolve_solver(CostModel(dataset, settings, k).predict().solver)
    # By default no exact products follow `sampled`: they are for a strict `tol`.
    relaxed = (lambda: SAMPLED_TOL) if settings.tol is None else None
    accuracy = replace(settings.accuracy, relaxed=relaxed)
    with about(dataset.label):
        prices.announce_solver(solver, n, k, accuracy, storage)


class CostModel:
    """The cost of one signature: operations counted for N rows, times measured on a few."""

    def __init__(self, dataset: Dataset, settings: pipeline.SignatureSettings, k: int) -> None:
        self.dataset, self.kernel, self.solver = dataset, settings.kernel, settings.eigen_solver
        self.n, self.k, self.accuracy = dataset.n_samples, k, settings.accuracy
        self.settings = settings
        self.noise: float | None = None
        neighbors, is_points = self.kernel.n_neighbors, dataset.kind == "points"
        self.is_euclidean = is_points and is_euclidean(self.kernel.metric)
        self.is_matrix_free = self.is_euclidean and neighbors is None
        self.is_streamed = pipeline.streams(dataset, settings)
        large = storage_for(self.n, self.kernel.memory_limit) == "tiled"
        self.is_tiled = self.is_streamed or (self.is_matrix_free and large)
        self.is_given_sparse = not is_points and sparse.issparse(dataset.values)
        self.is_sparse = self.is_given_sparse or neighbors is not None
        self.rows, self.reading = self._sample()

    def _sample(self) -> tuple[Dataset, float]:
        """Return preprocessed rows, and the seconds to read and preprocess all rows."""
        if self.dataset.kind != "points":
            return self.dataset, 0.0
        steps = self.dataset.preprocess
        first = next(
            (i for i, s in enumerate(steps) if s.startswith("pca:") and is_fitted(s)), None
        )
        count = 0 if first is None else int(steps[first][4:])
        if count:  # the error is about all rows, not about the sample
            require_components(count, self.dataset.values.shape)
        size = min(self.n, max(PROBE_ROWS, count))
        drawn = self.dataset.subsample(size, np.random.default_rng(0))
        drawn = drawn.with_options(preprocess=steps[:first])
        seconds = _seconds(drawn.prepared) * self.n / size if drawn.preprocess else 0.0
        rows = drawn.prepared()
        if first is not None:
            shape = (self.n, rows.shape[1])
            n_entries = (rows.nnz if sparse.issparse(rows) else rows.size) * self.n // size
            price = prices.pca_price(shape, count, n_entries, self.dataset.is_lazy)
            seconds += price * _product_seconds()
            rows = apply_steps(_rough_components(rows, count), steps[first + 1 :])
        if self.dataset.is_lazy:
            started = default_timer()
            n_rows = next(iter(self.dataset.values.blocks())).shape[0]
            n_passes = (5 if self.is_streamed else 2) * self.n / n_rows
            seconds += n_passes * (default_timer() - started)
        return Dataset(rows, name=self.dataset.name), seconds

    def part(self, n_rows: int) -> PSDOperator:
        """Return the operator of a few rows; that of a given sparse matrix is whole."""
        rows = self.rows
        if not self.is_given_sparse and n_rows < rows.n_samples:
            rows = rows.subsample(n_rows, np.random.default_rng(n_rows))

        def operator(kernel: KernelSettings) -> PSDOperator:
            return pipeline.operator_of(rows, kernel, np.random.default_rng(0))[0]

        return (
            with_scale(self.kernel, operator) if rows is not self.rows else operator(self.kernel)
        )

    def predict(self) -> Prediction:
        """Return the predicted cost."""
        solvers, reason = self._solvers()
        seconds = sum(self._solver_seconds(*solver) for solver in solvers.items())
        seconds += self._operator_seconds() + self.reading + 0.005
        memory = max(self._memory(*solver) for solver in solvers.items())
        return Prediction(
            list(solvers)[-1], seconds, memory, reason, self.accuracy.tol, self.noise
        )

    def _solvers(self) -> tuple[dict[str, int], str]:
        """Return the solvers that `Auto` would run with their landmarks or columns, and why."""
        n, k, solver, affordable = self.n, self.k, self.solver, math.inf
        is_auto = solver.name == "auto"
        if is_auto and self.is_streamed:
            affordable = default_budget(k)
        elif is_auto:
            checked = self.dataset.kind not in ("distances", "affinity") or n <= CHECKABLE
            definite = self.is_matrix_free or (checked and self.part(300).definite)
            choice = auto.choose(n, k, definite=definite, tiled=self.is_tiled)
            solver, affordable = auto.resolve_solver(choice.solver), choice.affordable
        if isinstance(solver, Landmarks) or (is_auto and affordable):
            rank, reason = self._landmarks()
            if rank <= affordable:
                most = getattr(solver, "max_landmarks", None) or default_budget(k)
                return {"landmarks": min(rank, most)}, reason
        if is_auto and self.is_matrix_free and affordable:
            self._relax()
            tol, d = self.accuracy.tol, self.dataset.n_features
            if self.is_streamed:
                solver = auto.resolve_solver(auto.streamed_fallback(n, d, k, tol))
            elif prices.sampled_pays(n, k, tol, choice.price):
                solver = auto.resolve_solver("sampled")
        if solver.name == "exact":
            return {"exact": n}, f"{n}³ operations counted"
        if solver.name == "sampled":
            self._relax()
            sampled = {"sampled": first_sizes(n, k).landmarks}
            if isinstance(solver, Sampled) and solver.follows(self.accuracy.tol) and not is_auto:
                columns = prices.COLUMNS_PER_VALUE * k
                return {"krylov": columns, **sampled}, "Operations of exact products counted"
            return sampled, "Operations of two rounds counted"
        columns, reason = self._columns()
        spent = isinstance(solver, Krylov) and columns >= default_columns(k)
        missed = is_auto and spent and auto.fits(n, self.is_tiled)
        return {solver.name: columns, **({"exact": n} if missed else {})}, reason

    def _relax(self) -> None:
        """Set the accuracy that `tol=None` means, and the sampling noise behind it."""

        def relaxed() -> float:
            self.noise = sampling_noise(self.rows, self.settings, self.k, 0)
            self.noise *= math.sqrt(self.rows.n_samples / self.n)
            return prices.relaxed_tol(self.noise)

        if self.settings.tol is None:
            accuracy = replace(self.accuracy, relaxed=relaxed)
            self.accuracy = prices.affordable(accuracy, self.n, self.k)

    def _landmarks(self) -> tuple[int, str]:
        """Return the predicted number of landmarks: a power of N, fitted to two subsamples."""
        p, ranks = min(self.n, max(min(PROBE_ROWS, self.n // 2), 32)), []
        for n_rows in (max(p // 2, min(p, 8)), p):
            operator, rng = self.part(n_rows), np.random.default_rng(0)
            k, most = min(self.k, operator.n_samples), 0.95 * operator.n_samples
            found = Landmarks().attempt(operator, k, self.accuracy, rng, most)
            ranks.append(int(most) + 1 if found is None else int(found.stats["landmarks"]))
        n = min(self.n, CHOICE_ROWS) if self.is_streamed else self.n
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
            columns = min(prices.COLUMNS_PER_VALUE * self.k, most)
            return columns, f"{columns} columns are expected"
        k = self.k if p == self.n else max(min(self.k, round(p / 4.5)), 1)
        found = Krylov().attempt(self.part(p), k, self.accuracy, np.random.default_rng(0))
        needed = found.stats["columns"]
        columns = min(int(needed * self.k / k), most)
        return columns, f"{p} rows needed {needed} columns; {columns} are expected"

    def _solver_seconds(self, solver: str, effort: int) -> float:
        """Return the time of a solver with this number of landmarks or columns."""
        n, k, operator = self.n, self.k, self.part(PROBE_ROWS // 2)
        unit, entry = _unit_seconds(operator)
        if solver == "exact":
            return unit * prices.exact_price(n) + entry * n**2
        if solver == "sampled":
            return unit * prices.sampled_price(n, k)
        if solver == "landmarks" and self.is_streamed:
            sample = sample_rows(k)  # two spectra of these measure the effect of σ²
            fixed = prices.landmark_price(CHOICE_ROWS, effort) + 2.0 * prices.exact_price(sample)
            passes = 3.0 * n * effort
            return unit * (fixed + passes * effort) + entry * (passes + 2.0 * sample**2)
        if solver == "landmarks":
            return unit * prices.landmark_price(n, effort) + 2.0 * entry * n * effort
        price = prices.krylov_price(n, k, tiled=self.is_tiled, columns=effort)
        if self.is_tiled:
            return unit * price
        block = np.ones((operator.n_samples, default_block_size(k)))
        growth, formed = (1, 0) if self.is_sparse else (2, n**2)  # exponent; entries
        one = _seconds(lambda: operator.matmat(block)) / block.shape[1]
        one *= (n / operator.n_samples) ** growth
        trace = n if self.dataset.kind == "graph" else 0  # takes N products
        return (effort + trace) * one + entry * formed + unit * (price - n**2 * effort)

    def _operator_seconds(self) -> float:
        """Return the time of σ², distances, neighbours and outliers."""
        p = min(self.n, PROBE_ROWS if self.is_matrix_free else PROBE_ROWS // 2)
        seconds, ratio = _seconds(lambda: self.part(p)), self.n / p
        if self.is_given_sparse:
            return seconds
        if self.is_matrix_free and self.kernel.bandwidth == "median":
            return seconds * min(ratio**2, 3.0 * PAIRS / p**2)
        linear = self.is_matrix_free or (self.is_euclidean and self.rows.n_features <= 15)  # trees
        return seconds * ratio ** (1 if linear else 2)

    def _memory(self, solver: str, effort: int) -> int:
        """Return the peak bytes of a solver with this number of landmarks or columns."""
        if solver == "sampled":  # the landmarks' matrix, tiles, and sums
            return 16 * effort**2 + 64 * effort * self.k + (1 << 27)
        if solver == "landmarks" and self.is_streamed:
            return 10 * CHOICE_ROWS * effort + 128 * effort**2 + (1 << 26)
        n, kind, neighbors = self.n, self.dataset.kind, self.kernel.n_neighbors or 0
        n_entries = self.dataset.values.nnz if self.is_given_sparse else 2 * n * neighbors
        matrix = 24 * n_entries if self.is_sparse else 8 * n**2
        operator = 40 * n * min(n, 512) if kind == "graph" else 2 * matrix  # its trace by blocks
        if self.is_euclidean:  # the pairs that the median keeps, and copies of the points
            operator = min(8 * n**2, 1 << 26) + 32 * n * self.rows.n_features
        basis = 8 * n * (effort + effort // 4 + 192) + 16 * effort**2
        exact, landmarks = (40 if kind == "graph" else 24) * n**2, 9 * n * effort + 32 * effort**2
        iterative = basis if self.is_tiled else basis + matrix
        work = {"exact": exact, "landmarks": landmarks}.get(solver, iterative)
        return max(work, operator, 1 << 20)


def _unit_seconds(operator: PSDOperator) -> tuple[float, float]:
    """Return the time of a multiply-add in a matrix product, and of a kernel entry."""
    index = np.arange(min(256, operator.n_samples))
    affinity: Any = getattr(operator, "affinity", operator)
    return _product_seconds(), _seconds(lambda: affinity.rows(index)) / (
        index.size * operator.n_samples
    )


def _product_seconds() -> float:
    """Return the time of a multiply-add in a matrix product."""
    matrix = np.ones((384, 384))
    return _seconds(lambda: matrix @ matrix) / 384**3


def _rough_components(values: Any, n_components: int) -> FloatArray:
    """Return principal components that are good enough to predict a cost."""
    from sklearn.decomposition import TruncatedSVD

    scores = TruncatedSVD(n_components, n_iter=2, random_state=0).fit_transform(values)
    return np.asarray(scores - scores.mean(axis=0), dtype=np.float64)


def _seconds(function: Callable[[], Any]) -> float:
    """Return the shortest time of three calls: the first may compile or import."""
    return min(repeat(function, number=1, repeat=3))
