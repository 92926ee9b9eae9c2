"""Block Lanczos and Rayleigh-Ritz with a bound on the ordered eigenvalues."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import numpy as np
from numpy.random import Generator

from ... import _check
from ..._check import FloatArray
from ...engine import subtask
from ...engine.threads import own_threads
from ...errors import AccuracyWarning, warn
from ...operators.affinity import KernelAffinity
from ...operators.base import PSDOperator
from ...operators.diffusion import DiffusionOperator
from ...operators.single import SinglePrecision
from ..base import Accuracy, EigenSolver, Spectrum, negative_mass, rounding_error
from ..prices import COLUMNS_PER_VALUE, krylov_price
from .lanczos import EPS, PROBE_STEPS, PROBE_WIDTH, BlockLanczos, complement_norm

# Share of the trace outside of K/2 columns: 0.08 to 0.21 where single precision was precise enough
# on ten sets of 3000 to 6000 rows, 0.02 to 0.07 where it was not.
SLOW_DECAY = 0.075
SHOWN_ROWS = 5000  # rows from which on a solve takes seconds, and shows its progress


@dataclass(frozen=True)
class Krylov(EigenSolver):
    r"""The K largest eigenvalues from a block Krylov space, with a bound on what it missed.

    Ritz values of T = QᵀWQ lie below the eigenvalues, θᵢ ≤ λᵢ (Cauchy). Their residuals say
    nothing about an eigenvalue that the space missed, so the upper bound involves the complement.
    With B the part of WQ outside of Q, BᵀB = E RᵀR Eᵀ, and c ≥ λ_max(C), C = (I-QQᵀ)W(I-QQᵀ),
    for every shift τ > c and every i

    .. math:: \lambda_i \le \max\bigl(\tau,\ \lambda_i(T + E R^T M R E^T)\bigr), \qquad
              M = \frac{(\tau - c) I + Q_{next}^T W Q_{next}}{\tau (\tau - c)}
              \le \frac{I}{\tau - c} .

    *Proof.* In a basis that begins with Q, W = [[T, Bᵀ], [B, C]]. For t ≥ τ the matrix C - tI is
    negative definite, so by Haynsworth's inertia theorem W has as many eigenvalues above t as
    T + Bᵀ(tI - C)⁻¹B, which is at most T + Bᵀ(τI - C)⁻¹B. On [0, c] the convex 1/(τ - x) lies
    below its chord, so (τI - C)⁻¹ ≤ ((τ - c)I + C)/(τ(τ - c)), and BᵀCB is known from the next
    block. As this holds for all t ≥ τ, an ordered eigenvalue above τ is at most its counterpart
    on the right. ∎ (Indefinite operators have no left end 0 and use I/(τ - c).)

    The shift is the largest that costs half of `tol`. The bound on c decides the kind:

    - `certified`: c ≤ trace(W) - trace(T), which also bounds Σ(λᵢ - θᵢ).
    - `probabilistic`: from a few steps on the complement (see `complement_norm`); fails with a
      probability of at most 1e-6 per probe.
    - `exact`: the space is the whole space.
    - `none`: the operator is indefinite. The largest algebraic eigenvalues are clipped at 0, and
      the same test (which needs no positivity) decides when to stop.

    For 2000 to 10,000 points with their affinity in memory, from K = 100 on, and where the
    spectrum decays slowly, products after the first K/2 columns are in single precision (see
    `SinglePrecision`). Their rounding is part of the bound; where it takes more than a third of
    `tol`, the solution begins again in double precision. `stats["precision"]` tells.

    O(N² m + N m²) time for m columns, 8 N (m + 192) bytes on top of the operator.

    Parameters
    ----------
    block_size
        Columns per product; None means K/6, from 8 to 40, a multiple of 8.
    max_columns
        The largest m, rounded up to whole blocks; None means max(1000, 10 K).

    Examples
    --------
    >>> import numpy as np
    >>> from unaligned.operators.base import MatrixOperator
    >>> from unaligned.spectra.base import Accuracy
    >>> from unaligned.spectra.krylov import Krylov
    >>> operator = MatrixOperator(np.diag(0.5 ** np.arange(300)))
    >>> spectrum = Krylov().solve(operator, 3, Accuracy(), np.random.default_rng(0))
    >>> spectrum.eigenvalues.round(6)
    array([1.  , 0.5 , 0.25])
    >>> spectrum.bound_kind, spectrum.total_log_error(1e-8) <= 1e-4
    ('certified', True)
    """

    block_size: int | None = None
    max_columns: int | None = None
    name: ClassVar[str] = "krylov"

    def __post_init__(self) -> None:
        _check.optional_int("block_size", self.block_size)
        _check.optional_int("max_columns", self.max_columns)

    def price(self, n_samples: int, n_eigenvalues: int, accuracy: Accuracy, storage: str) -> float:
        """Return the operations of 4 K columns; 0 for sparse matrices: products are cheap."""
        if storage not in ("dense", "tiled"):
            return 0.0
        n, k = n_samples, n_eigenvalues
        columns = min(COLUMNS_PER_VALUE * k, self.max_columns or default_columns(k), n)
        return krylov_price(n, k, tiled=storage == "tiled", columns=columns)

    def solve(
        self, operator: PSDOperator, n_eigenvalues: int, accuracy: Accuracy, rng: Generator
    ) -> Spectrum:
        """Return the `n_eigenvalues` largest eigenvalues to `accuracy`, if the budget allows."""
        spectrum = self.attempt(operator, n_eigenvalues, accuracy, rng)
        warn_if_missed(spectrum, accuracy)
        return spectrum

    @own_threads()
    def attempt(
        self,
        operator: PSDOperator,
        n_eigenvalues: int,
        accuracy: Accuracy,
        rng: Generator,
        *,
        start: FloatArray | None = None,
    ) -> Spectrum:
        """Solve without a warning where `stats["converged"]` is False.

        `start` is the first block, (N, b), in place of `block_size` random columns; the bounds
        hold for any.
        """
        single = start is None and single_pays(operator, n_eigenvalues)
        found = self._grow(operator, n_eigenvalues, accuracy, rng, start, single)
        if found is None:
            found = self._grow(operator, n_eigenvalues, accuracy, rng, start, False)
        return cast(Spectrum, found)

    def _grow(
        self,
        operator: PSDOperator,
        n_eigenvalues: int,
        accuracy: Accuracy,
        rng: Generator,
        start: FloatArray | None,
        single: bool,
    ) -> Spectrum | None:
        """Return the spectrum; None where products in single precision miss `tol` by rounding.

        They are used, if `single`, where after K/2 columns the spectrum decays so slowly that λ_K
        is likely to be far above their rounding.
        """
        n, k = operator.n_samples, min(n_eigenvalues, operator.n_samples)
        width = self.block_size or default_block_size(k) if start is None else start.shape[1]
        width = min(n, width)
        limit = min(n, self.max_columns or default_columns(k))
        # Pages of the buffer that are never written cost nothing.
        capacity = min(n, limit + width + PROBE_WIDTH * PROBE_STEPS)
        buffer = np.empty((n, capacity), order="F")
        basis = BlockLanczos(operator, buffer, width, rng, start=start)
        test, unsure = StoppingTest(basis, k, accuracy, rng), False
        check_at = max(2 * width, k // 2) if start is None else width
        shown = min(5 * k, limit) if n >= SHOWN_ROWS else 1  # isotropic noise takes 5 K columns
        with subtask("columns of krylov", shown) as advance:
            while True:
                basis.expand()
                advance(width)
                spent = basis.columns >= limit
                if single and basis.columns >= k // 2:
                    single = False
                    if 1.0 - basis.trace() / operator.trace() > SLOW_DECAY:
                        basis.go_on_with(SinglePrecision(cast(DiffusionOperator, operator), rng))
                        unsure = True
                if unsure and basis.columns >= 1.5 * k:  # enough for the magnitude of λ_K
                    if not RitzBounds(basis, k, accuracy).is_precise:
                        return None
                    unsure = False
                if not spent and (basis.columns < check_at or test.is_early()):
                    continue
                spectrum = test.check(final=spent)
                if spectrum is not None:
                    bound = spectrum.total_log_error(accuracy.gamma)
                    close = accuracy.tol < bound <= 2.0 * accuracy.tol  # rounding may be the cause
                    return None if basis.operator.product_error and close else spectrum
                # A check costs O(m² b), which is small beside O(N² b) until m nears N.
                share = basis.columns / n if test.checks > 1 else 0.0
                check_at = int((1.08 + 0.3 * share) * basis.columns) + 1


def single_pays(operator: PSDOperator, n_eigenvalues: int) -> bool:
    """Return whether products in single precision save more than the matrix takes to convert."""
    affinity = operator.affinity if isinstance(operator, DiffusionOperator) else None
    # A given matrix may have equal entries, and then equal roundings: its error has structure.
    if not isinstance(affinity, KernelAffinity) or affinity.storage != "dense":
        return False
    return n_eigenvalues >= 100 and 2000 <= operator.n_samples <= 10_000  # a copy of 400 MB


def default_columns(n_eigenvalues: int) -> int:
    """Return the default of `max_columns`, max(1000, 10 K)."""
    return max(1000, 10 * n_eigenvalues)


def default_block_size(n_eigenvalues: int) -> int:
    """Return the default of `block_size`: K/6, from 8 to 40, a multiple of 8.

    Products with 33 columns take a quarter more time per column than with 32.
    """
    return min(max(n_eigenvalues // 48 * 8, 8), 40)


def warn_if_missed(spectrum: Spectrum, accuracy: Accuracy) -> None:
    """Warn that `tol` was not met, by how much, and what can be done."""
    if not spectrum.stats["converged"]:
        bound = spectrum.total_log_error(accuracy.gamma)
        warn(
            f"krylov stopped at {spectrum.stats['columns']} columns with an error bound of "
            f"{bound:.2g} on log(λ + γ), above tol={accuracy.tol:g}. Raise max_columns or tol, "
            "lower n_eigenvalues, or use solver='exact'.",
            AccuracyWarning,
            severity=bound,
        )


def affordable_shift(theta: FloatArray, gamma: float, budget: float) -> float:
    """Return the largest τ for which lifting all θᵢ below it to τ costs at most `budget`.

    The cost is the 2-norm of log((max(θ, τ) + γ) / (θ + γ)). A larger shift makes the
    correction BᵀB/(τ - c) smaller, so the largest affordable one is the best.
    """
    logs = np.log(theta + gamma)
    low, high = float(logs[-1]), float(logs[0]) + min(budget, 20.0)
    for _ in range(60):
        middle = 0.5 * (low + high)
        affordable = np.linalg.norm(np.maximum(middle - logs, 0.0)) <= budget
        low, high = (middle, high) if affordable else (low, middle)
    return max(float(np.exp(low)) - gamma, 0.0)


class RitzBounds:
    """Ritz values of a basis, bounds on the eigenvalues, and the bound that is good enough."""

    def __init__(self, basis: BlockLanczos, n_eigenvalues: int, accuracy: Accuracy) -> None:
        operator = basis.operator
        self.basis, self.k = basis, n_eigenvalues
        self.ritz = basis.ritz_values()
        self.rounding = self._rounding_error(float(np.abs(self.ritz[[0, -1]]).max()))
        # A basis of fewer than K columns is no obstacle: clipped eigenvalues are at least 0.
        self.theta = np.maximum(self._leading(self.ritz, 0.0), 0.0)
        self.remainder = np.inf
        if operator.definite:
            trace = operator.trace()
            left = max(trace - basis.trace(), 0.0)
            self.negative = operator.negative_share * trace
            self.remainder = left + self.negative + self.rounding + 4.0 * EPS * abs(trace)
        # Nothing below rounding can be resolved, whatever γ.
        self.gamma = max(accuracy.gamma + self.rounding, float(np.finfo(np.float64).tiny))
        unavoidable = self.spectrum("exact", self.theta).total_log_error(self.gamma)
        self.target = max(0.95 * accuracy.tol, 2.0 * unavoidable)
        # Half of `tol` is for the shift below, and rounding grows with the basis.
        self.is_precise = 3.0 * unavoidable <= accuracy.tol
        self.shift = affordable_shift(self.theta, self.gamma, 0.5 * self.target)

    def spectrum(self, kind: str, upper: FloatArray, slack: float = 0.0) -> Spectrum:
        """Return the Ritz values with bounds that include rounding."""
        operator, skew = self.basis.operator, self.basis.orthogonality
        if operator.product_error:
            kind = "probabilistic"  # the size of its rounding is measured with random vectors
        return Spectrum(
            self.theta,
            lower=np.maximum((1.0 - skew) * self.theta - self.rounding, 0.0),
            upper=(1.0 + skew) * np.maximum(upper, self.theta) + self.rounding,
            slack=slack,
            bound_kind=kind if operator.definite else "none",
            solver=Krylov.name,
        )

    def is_good(self, spectrum: Spectrum) -> bool:
        """Whether a bound meets the target."""
        return spectrum.total_log_error(self.gamma) <= self.target

    def upper(self, complement: float, shift: float) -> FloatArray:
        """Return max(τ, λᵢ(T + E Rᵀ M R Eᵀ)), (K,); inf unless τ > c."""
        gap = shift - complement - self.rounding
        if not gap > 0:
            return np.full(self.k, np.inf)
        factor = self.basis.residual
        correction = factor.T @ factor / gap
        if self.basis.operator.definite:
            chord = self.basis.next_diagonal() / gap
            # The chord starts at the smallest eigenvalue.
            chord[np.diag_indices_from(chord)] += 1.0 + self.negative / gap
            correction = factor.T @ chord @ factor / shift
        values = self.basis.ritz_values(correction)
        values = values + self._rounding_error(float(values[0]))
        return np.maximum(self._leading(values, shift), shift)

    def _leading(self, values: FloatArray, fill: float) -> FloatArray:
        """Return the first K of descending values, padded where there are fewer."""
        leading = np.full(self.k, fill)
        leading[: values.size] = values[: self.k]
        return leading

    def _rounding_error(self, largest: float) -> float:
        """Return the rounding error of a Ritz value, (√N + 2 √m + 16) · eps · ‖W‖.

        √N for products and orthogonalisation, √m for the band solver, which rotates m times;
        measured on flat and multiple spectra, where it is worst: 71 eps at N=m=638, 10 at 5.
        Products in single precision with an error e add 2.5 e √(m/N): the basis sees a share m/N
        of it, and the norm of that many errors without structure is √(2 m/N) e. On a multiple
        eigenvalue 1.28 √(m/N) e were measured; 3.0 on a matrix with blocks of equal entries, whose
        roundings have structure, and for which `single_pays` is False.
        """
        operator = self.basis.operator
        own = (2.0 * np.sqrt(self.basis.columns) + 16.0) * EPS * max(largest, 0.0)
        own += 2.5 * operator.product_error * np.sqrt(self.basis.columns / operator.n_samples)
        return rounding_error(operator, largest) + float(own)


@dataclass
class StoppingTest:
    """Decides when a basis is good enough."""

    basis: BlockLanczos
    n_eigenvalues: int
    accuracy: Accuracy
    rng: Generator
    complement: float = np.inf  # ≥ λ_max(C); C only shrinks as the basis grows: it stays true
    probe_columns: int = 0
    checks: int = 0
    previous: FloatArray | None = None  # Ritz values of the last check

    def is_early(self) -> bool:
        """Whether the trace outside of the basis says that a check would be in vain.

        Where more than a hundredth of it is left, K values took 2.2 K columns or more on all
        data tried, and the more the slower it falls between K and 2 K columns: 2.7 K to 3.5 K
        where it falls to 0.65 to 0.7, 4 K at 0.8, 4.8 K at 0.89, 5.9 K at 0.92.
        """
        operator, columns, k = self.basis.operator, self.basis.columns, self.n_eigenvalues
        if not operator.definite:
            return False
        left = operator.trace() - np.cumsum([np.trace(block) for block in self.basis.blocks])
        if left[-1] <= 0.01 * operator.trace():
            return False
        if columns < 2 * k:
            return True
        n_blocks = left.size * k / columns  # of K columns
        first, second = (left[math.ceil(n) - 1] for n in (n_blocks, 2 * n_blocks))
        return bool(columns < (2.0 + 10.0 * max(second / first - 0.6, 0.0)) * k)

    def check(self, *, final: bool) -> Spectrum | None:
        """Return the spectrum if it is good enough, or `final`; otherwise None."""
        bounds = RitzBounds(self.basis, self.n_eigenvalues, self.accuracy)
        self.checks += 1
        if self.basis.exhausted:
            found: Spectrum | None = bounds.spectrum("exact", bounds.theta)
        else:
            found = self._from_trace(bounds) or self._from_complement(bounds)
        self.previous = bounds.theta
        if found is None and final:
            found = self._best_effort(bounds)
        if found is None:
            return None
        stats = {
            "columns": self.basis.columns,
            "block_size": self.basis.width,
            "probe_columns": self.probe_columns,
            "checks": self.checks,
            "complement_norm": min(self.complement, bounds.remainder),
            "converged": bool(found.total_log_error(self.accuracy.gamma) <= self.accuracy.tol),
            "negative_mass": negative_mass(bounds.ritz),
            "precision": "single" if self.basis.operator.product_error else "double",
        }
        return replace(found, stats=stats)

    def _from_trace(self, bounds: RitzBounds) -> Spectrum | None:
        """Try the remaining trace, which bounds both Σ(λᵢ - θᵢ) and c."""
        if not np.isfinite(bounds.remainder):
            return None
        spectrum = bounds.spectrum("certified", bounds.theta, bounds.remainder)
        if not bounds.is_good(spectrum) and bounds.remainder < bounds.shift:
            spectrum = bounds.spectrum("certified", bounds.upper(bounds.remainder, bounds.shift))
        return spectrum if bounds.is_good(spectrum) else None

    def _from_complement(self, bounds: RitzBounds) -> Spectrum | None:
        """Check whether a plausible c would suffice, then probe the complement for it."""
        if self.previous is not None:
            moved = np.log((bounds.theta + bounds.gamma) / (self.previous + bounds.gamma))
            if float(np.linalg.norm(moved)) > 1e3 * bounds.target:
                return None  # too far from convergence for another eigenvalue problem
        # Beyond this share of τ the correction with 1/(τ - c) is large whatever the basis.
        wanted = 0.9 * bounds.shift
        spectrum = bounds.spectrum("probabilistic", bounds.upper(wanted, bounds.shift))
        if not bounds.is_good(spectrum):
            return None
        if self.complement > wanted:
            self._probe(wanted)
        return spectrum if self.complement <= wanted else None

    def _probe(self, goal: float | None) -> None:
        """Bound the norm of the complement, until it is known to be below or above `goal`."""
        _, upper, columns = complement_norm(self.basis, goal, self.rng)
        self.complement = min(self.complement, upper)
        self.probe_columns += columns

    def _best_effort(self, bounds: RitzBounds) -> Spectrum:
        """Return the Ritz values with the best bound available, however large."""
        self._probe(None)
        complement, kind = min((bounds.remainder, "certified"), (self.complement, "probabilistic"))
        budgets = bounds.target * 10.0 ** np.arange(7)
        shifts = [affordable_shift(bounds.theta, bounds.gamma, float(b)) for b in budgets]
        shifts.append(2.0 * (complement + bounds.rounding))
        upper = np.min([bounds.upper(complement, shift) for shift in shifts], axis=0)
        candidates = [bounds.spectrum(kind, upper)]
        if np.isfinite(bounds.remainder):
            candidates.insert(0, bounds.spectrum("certified", bounds.theta, bounds.remainder))
        return min(candidates, key=lambda spectrum: spectrum.total_log_error(bounds.gamma))
