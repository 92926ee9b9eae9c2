"""Eigenvalues of slowly decaying spectra in linear time, with a statistical error."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from ... import _check, defaults
from ..._check import FloatArray, IndexArray
from ...engine import Threads
from ...engine.base import CURRENT
from ...engine.memory import available_memory
from ...errors import AccuracyWarning, InputError, warn
from ...operators.affinity import CrossKernel, KernelAffinity, StreamedAffinity
from ...operators.base import PSDOperator
from ...operators.diffusion import DiffusionOperator
from ...operators.kernel import Kernel
from ...rows.reduce import RowPasses
from ...rows.source import ArrayRows
from ..base import Accuracy, EigenSolver, Spectrum
from ..krylov import Krylov
from ..prices import affordable, is_affordable, krylov_price, sampled_price
from .estimate import SampledSpectrum, estimate
from .passes import (
    Degrees,
    Design,
    degree_errors,
    exact_sums,
    functions_at,
    isolated_rows,
    sampled_products,
)
from .sizes import MOST_LANDMARKS, Sizes, first_sizes, larger_sizes

REACHED = 0.02  # about the smallest error that sampling reaches
ROUNDING = 1e-12  # of λ₁: eigenvalues below are not computed
NO_SUMS = np.empty((2, 0))


@dataclass(frozen=True)
class Sampled(EigenSolver):
    r"""Eigenvalues of slowly decaying spectra in linear time.

    1. A sample of n rows, the landmarks, gives the degrees of Eqs. 2-4 (see `Degrees`).
    2. The m leading eigenvectors of the landmarks' operator, extended to all rows by the kernel
       (Nyström), are the functions F, a subspace close to that of the leading eigenvectors of W.
    3. One pass over all rows sums FᵀF and the products of s sampled rows of W with F.
    4. The eigenvalues follow by regression, and their errors from its residuals (see
       `SampledSpectrum`).

    Rows with a diagonal entry of W above λ_K/10, such as outliers, are found by a pass of their
    own and are landmarks and sampled rows with certainty. n, m and s grow, in up to three rounds,
    until the error is at most `tol`. The bound is `statistical`: the 95 % limit of the error.
    O(N (n + s) (d + m)) time; memory does not grow with N. Passes over the rows: one for isolated
    rows, one for their degrees if there are any, and one per round.

    Sampling reaches errors of about 0.02. Below, after one round, and for up to 100,000 rows where
    three rounds miss `tol`, exact products follow: `Krylov` with the functions on all rows as its
    first block takes two to five of them, where it takes thirty from random columns, and gives its
    bound, `certified` or `probabilistic`. O(N² (d + m)) time for each product, 48 N m bytes.

    Parameters
    ----------
    max_landmarks
        The largest number of landmarks, raised to 4 K where it is less; None means 6000.
    refine
        Whether exact products follow where sampling does not reach `tol`.

    Examples
    --------
    >>> import numpy as np
    >>> from unaligned.operators.affinity import KernelAffinity
    >>> from unaligned.operators.diffusion import DiffusionOperator
    >>> from unaligned.operators.kernel import Gaussian
    >>> from unaligned.spectra.base import Accuracy
    >>> from unaligned.spectra.sampled import Sampled
    >>> points = np.random.default_rng(0).normal(size=(1000, 10))
    >>> operator = DiffusionOperator(KernelAffinity(points, Gaussian(40.0)))
    >>> solver = Sampled(max_landmarks=300)
    >>> found = solver.solve(operator, 20, Accuracy(tol=0.2), np.random.default_rng(0))
    >>> wanted = np.linalg.eigvalsh(operator.to_dense())[::-1][:20]
    >>> bool(np.linalg.norm(np.log(found.eigenvalues / wanted)) < 0.2)
    True
    """

    name: ClassVar[str] = "sampled"
    max_landmarks: int | None = None
    refine: bool = True

    def __post_init__(self) -> None:
        _check.optional_int("max_landmarks", self.max_landmarks)
        _check.flag("refine", self.refine)

    def follows(self, tol: float) -> bool:
        """Return whether exact products follow after one round: sampling does not reach `tol`."""
        return self.refine and tol < REACHED

    def price(self, n_samples: int, n_eigenvalues: int, accuracy: Accuracy, storage: str) -> float:
        """Return the operations of two rounds, and of the exact products that follow."""
        n, k = n_samples, n_eigenvalues
        is_strict = accuracy.relaxed is None or is_affordable(n, k)
        follows = self.follows(accuracy.tol if is_strict else defaults.SAMPLED_TOL)
        return sampled_price(n, k) + (krylov_price(n, k, tiled=True) if follows else 0.0)

    def solve(
        self, operator: PSDOperator, n_eigenvalues: int, accuracy: Accuracy, rng: Generator
    ) -> Spectrum:
        """Return the `n_eigenvalues` largest eigenvalues of a diffusion operator of points."""
        accuracy = affordable(accuracy, operator.n_samples, n_eigenvalues)
        spectrum = self.attempt(operator, n_eigenvalues, accuracy, rng)
        warn_if_missed(spectrum, accuracy)
        return spectrum

    def attempt(
        self, operator: PSDOperator, n_eigenvalues: int, accuracy: Accuracy, rng: Generator
    ) -> Spectrum:
        """Solve without a warning where `tol` is missed; `stats["converged"]` tells."""
        affinity = operator.affinity if isinstance(operator, DiffusionOperator) else None
        if isinstance(affinity, StreamedAffinity):
            passes = affinity.passes
        elif isinstance(affinity, KernelAffinity):
            passes = RowPasses(ArrayRows(affinity.points), Threads(1, CURRENT.get()))
        else:
            raise InputError(
                "solver='sampled' needs points with a Euclidean metric and without n_neighbors. "
                "Use solver='krylov' or 'exact'."
            )
        run = _Run(passes, affinity.kernel, n_eigenvalues, accuracy, rng)
        n_bytes = 48 * run.n * 2 * n_eigenvalues
        is_asked = self.follows(accuracy.tol)
        may_refine = is_asked or (self.refine and run.n <= defaults.PRODUCT_ROWS)
        may_refine &= run.n <= defaults.SMALL_ROWS or n_bytes <= available_memory()
        n_rounds = 1 if may_refine and is_asked else 3
        spectrum = run.solve(self.max_landmarks or MOST_LANDMARKS, n_rounds)
        affinity.entries_evaluated += run.entries
        converged = spectrum.total_log_error(accuracy.gamma) <= accuracy.tol
        if may_refine and not converged:
            if isinstance(affinity, StreamedAffinity):
                operator = DiffusionOperator(affinity.in_memory())
            # More functions would make the first block wide rather than the answer closer.
            start = run.functions(2 * n_eigenvalues + spectrum.stats["rows_isolated"])
            refined = Krylov(max_columns=5 * start.shape[1]).attempt(
                operator, n_eigenvalues, accuracy, rng, start=start
            )
            stats = {**spectrum.stats, **refined.stats}
            return replace(refined, solver=self.name, stats=stats)
        return replace(spectrum, stats={**spectrum.stats, "converged": converged})


def warn_if_missed(spectrum: Spectrum, accuracy: Accuracy) -> None:
    """Warn if the stated error is above `tol`."""
    bound, stats = spectrum.total_log_error(accuracy.gamma), spectrum.stats
    if bound > accuracy.tol:
        refined = f" and {stats['columns']} exact products" if "columns" in stats else ""
        warn(
            f"solver='sampled' states an error of log(λ + γ) of {bound:.2g} with "
            f"{stats['landmarks']} landmarks, {stats['rows_sampled']} sampled rows{refined}, "
            f"above tol={accuracy.tol:g}. "
            f"Raise tol{'' if refined else ' or max_landmarks'}, or use solver='krylov'.",
            AccuracyWarning,
            severity=bound,
        )


class _Run:
    """One solution: rows drawn once, and what the passes found so far."""

    def __init__(
        self,
        passes: RowPasses,
        kernel: Kernel,
        n_eigenvalues: int,
        accuracy: Accuracy,
        rng: Generator,
    ) -> None:
        self.passes, self.kernel, self.accuracy, self.rng = passes, kernel, accuracy, rng
        self.n, self.k = passes.source.n_rows, n_eigenvalues
        self.n_passes = self.entries = 0
        self.rounding = ROUNDING

    def solve(self, max_landmarks: int, n_rounds: int) -> Spectrum:
        """Return the spectrum of the first round that meets `tol`, or of the last one."""
        sizes = first_sizes(self.n, self.k, max_landmarks)
        most = min(self.n, max(max_landmarks, sizes.landmarks))
        order = self.rng.choice(self.n, size=most, replace=False)
        points = self.passes.take(order[: sizes.landmarks])
        tail = self._isolated_rows(points, order[: sizes.landmarks])
        for rounds_left in reversed(range(n_rounds)):
            found = self._round(sizes, points, order[: sizes.landmarks], tail)
            spectrum = found.spectrum(self.k, self.rounding)
            bound = spectrum.total_log_error(self.accuracy.gamma)
            wanted = larger_sizes(sizes, found, self.n, self.accuracy, max_landmarks)
            if not rounds_left or bound <= self.accuracy.tol or wanted == sizes:
                break
            more = self.passes.take(order[sizes.landmarks : wanted.landmarks])
            points, sizes = np.vstack([points, more]), wanted
        stats = {
            "landmarks": sizes.landmarks,
            "functions": found.ritz_values.size,
            "rows_sampled": sizes.rows,
            "rows_isolated": tail.positions.size,
            "passes": self.n_passes,
        }
        parts = ("noise", "curvature", "missing", "doubt", "unseen", "degrees")
        errors = {f"error_{name}": float(np.linalg.norm(getattr(found, name))) for name in parts}
        return replace(spectrum, stats={**stats, **errors})

    def functions(self, count: int) -> FloatArray:
        """Return the first functions of the last round on all rows, (N, count)."""
        design = self.design._replace(coefficients=self.design.coefficients[:, :count])
        found = np.empty((self.n, design.coefficients.shape[1]), order="F")
        start = 0
        for block in self.passes.blocks():
            places = np.arange(start, start + block.shape[0])
            found[places], _ = functions_at(design, block, places)
            start += block.shape[0]
        self.n_passes += 1
        return found

    def _reduce(self, function: Any, shared: Any, description: str) -> Any:
        self.n_passes += 1
        self.entries += self.n * shared[0].points.shape[0]
        return self.passes.reduce(function, shared, description)

    def _isolated_rows(self, points: FloatArray, positions: IndexArray) -> Tail:
        """Return the rows with a diagonal entry of W above λ_K/10, and their exact degrees.

        Such an entry is an eigenvalue of its own that random landmarks miss; up to 2000 such rows
        are landmarks and sampled rows with certainty.
        """
        cross = CrossKernel(points, self.kernel)
        weights = np.full(positions.size, self.n / positions.size)
        kernel = cross.fill(points, np.empty((positions.size,) * 2))
        degrees = Degrees.of(kernel, positions, weights, NO_SUMS)
        scaling = degrees.scaling(kernel, positions) * np.sqrt(weights)
        kernel *= scaling[:, None] * scaling
        usual = float(np.median(scaling**2 / weights))
        few = max(1000, 2 * self.k)  # enough for the order of magnitude of λ_K
        share = positions.size / min(few, positions.size)
        smallest = share * float(np.linalg.eigvalsh(kernel[:few, :few])[-self.k])
        found = self._reduce(isolated_rows, (cross, degrees, 2000), "isolated rows")
        smallest = max(smallest, float(found.squares[min(self.k, found.squares.size) - 1]))
        # Four times the usual entry: rows of a small dataset have large ones without isolation.
        count = int((found.squares > max(0.1 * smallest, 4.0 * usual)).sum())
        tail = Tail(found.points[:count], found.positions[:count], NO_SUMS)
        if not count:
            return tail
        points, positions, weights = self._landmarks(points, positions, tail)
        cross = CrossKernel(points, self.kernel)
        kernel = cross.fill(points, np.empty((positions.size,) * 2))
        degrees = Degrees.of(kernel, positions, weights, NO_SUMS)
        sums = self._reduce(exact_sums, (cross, degrees, count), "degrees of isolated rows")
        sums[1] += kernel[-count:, -count:] @ (1.0 / sums[0])
        return tail._replace(sums=sums)

    def _landmarks(
        self, points: FloatArray, positions: IndexArray, tail: Tail
    ) -> tuple[FloatArray, IndexArray, FloatArray]:
        """Return points, positions and weights of the landmarks, isolated rows last."""
        others = ~np.isin(positions, tail.positions)
        count = int(others.sum())
        weight = (self.n - tail.positions.size) / max(count, 1)
        return (
            np.vstack([points[others], tail.points]),
            np.concatenate([positions[others], tail.positions]),
            np.concatenate([np.full(count, weight), np.ones(tail.positions.size)]),
        )

    def _round(
        self, sizes: Sizes, points: FloatArray, positions: IndexArray, tail: Tail
    ) -> SampledSpectrum:
        """Return the spectrum from one pass over all rows."""
        points, positions, weights = self._landmarks(points, positions, tail)
        cross = CrossKernel(points, self.kernel)
        kernel = cross.fill(points, np.empty((positions.size,) * 2))
        degrees = Degrees.of(kernel, positions, weights, tail.sums)
        scaling = degrees.scaling(kernel, positions) * np.sqrt(weights)
        kernel *= scaling[:, None]
        kernel *= scaling
        n_functions = min(sizes.functions + tail.positions.size, positions.size)
        values, vectors = leading_vectors(kernel, n_functions, self.rng)
        del kernel
        kept = values > ROUNDING * values[0]
        values, vectors = values[kept], vectors[:, kept]
        coefficients = scaling[:, None] * vectors / values
        # Rounding of affinities in single precision is noise of this size in all eigenvalues.
        single = 2.0 * float(np.finfo(np.float32).eps) / np.sqrt(positions.size)
        self.rounding = ROUNDING
        # Where fewer than K values are kept, the others are 0 but for rounding, against γ.
        least = values[-1] if values.size >= self.k else 0.0
        if single < 1e-3 * (least + self.accuracy.gamma) and self.accuracy.tol > 1e-3:
            coefficients, self.rounding = coefficients.astype(np.float32), single
        drawn = np.sort(self.rng.choice(self.n, size=sizes.rows, replace=False))
        drawn = drawn[~np.isin(drawn, tail.positions)]
        everyone = np.vstack([points, self.passes.take(drawn)])
        n_uniform = positions.size - tail.positions.size
        design = self.design = Design(cross.of(everyone), degrees, coefficients, n_uniform)
        found = self._reduce(sampled_products, design, "products")
        places = np.concatenate([tail.positions, drawn])
        features, sums = functions_at(design, everyone[n_uniform:], places)
        weight = (self.n - tail.positions.size) / max(drawn.size, 1)
        weights = np.concatenate([np.ones(tail.positions.size), np.full(drawn.size, weight)])
        sampled = cross.of(everyone[n_uniform:])
        products = found.products / np.sqrt(np.prod(sums, axis=0))[:, None]
        errors = degree_errors(sampled, weights, sums, found.sums)
        return estimate(found.gram, features, products, weights, errors, self.k)


class Tail(NamedTuple):
    """Isolated rows: points, (t, d), positions, (t,), and their sums d and g, (2, t)."""

    points: FloatArray
    positions: IndexArray
    sums: FloatArray


def leading_vectors(
    matrix: FloatArray, count: int, rng: Generator
) -> tuple[FloatArray, FloatArray]:
    """Return about the `count` largest eigenvalues and their vectors, by subspace iteration.

    Four products: the last vectors are rough, and only their span with the others matters. Of
    two in a row, what lies below 1e-8 of the largest eigenvalue is rounding. O(n² m) time.
    """
    n = matrix.shape[0]
    block = min(n, count + count // 10)
    if n <= 1000 or 2 * block >= n:  # as cheap as the iteration
        values, vectors = np.linalg.eigh(matrix)
        return values[::-1][:count], vectors[:, ::-1][:, :count]
    basis = rng.normal(size=(n, block))
    for _ in range(2):
        basis, _ = np.linalg.qr(matrix @ (matrix @ basis))
    values, turn = np.linalg.eigh(basis.T @ matrix @ basis)
    return values[::-1][:count], basis @ turn[:, ::-1][:, :count]
