"""The solvers by name, and the one that chooses."""

import math
from dataclasses import dataclass, replace
from importlib import import_module
from typing import ClassVar, NamedTuple

from numpy.random import Generator

from .. import _check, defaults
from .._format import amount, duration
from ..defaults import SAMPLED_TOL, SMALL_ROWS
from ..engine.memory import available_memory
from ..errors import CostWarning, InputError, warn
from ..operators.affinity import KernelAffinity
from ..operators.base import PSDOperator
from ..operators.diffusion import DiffusionOperator
from ..operators.kernel import missing_numba
from .base import Accuracy, EigenSolver, Spectrum
from .exact import Exact

# name -> class in the module of that name, which is imported on first use.
SOLVERS = {
    "auto": "Auto",
    "exact": "Exact",
    "nystrom": "Nystrom",
    "krylov": "Krylov",
    "landmarks": "Landmarks",
    "sampled": "Sampled",
}

# Operations up to which `tol=None` means 1e-4: about a minute on two cores.
AFFORDABLE = 2.5e12
RATE = 4.3e10  # operations per second of two cores
COLUMNS_PER_VALUE = 4  # m/K expected of `krylov`: 2.5 on digits, 5 on isotropic noise


@dataclass(frozen=True)
class Auto(EigenSolver):
    """The cheapest solver that meets `tol`.

    `tol=None` is 1e-4; but where landmarks fail, and the operations of rule 5 (with N² kernels
    computed in every pass, whatever the memory) exceed 2.5·10¹², max(0.05, a fifth of the
    sampling noise). The rules, in order:

    0. Points read by blocks (50,000 rows and more, or a source of more than 256 MiB): `landmarks`.
       If a sample predicts that more than max(2000, 10 K) are needed: `krylov`, with the points in
       memory, for up to 100,000 rows and `tol` < 0.05, else `sampled`. That aims at an error of
       0.05 where `tol` is smaller, and warns.
    1. An operator that may have negative eigenvalues: `exact` if its N² matrix fits into memory
       and is no more expensive, else `krylov`.
    2. N ≤ 500, or K > N/4: `exact`. Nothing is cheaper.
    3. A positive affinity: `landmarks`, as long as the number of landmarks that it predicts from
       its residuals costs less than rule 5. Trying costs a few percent.
    4. Points and `tol` ≥ 0.05: `sampled`, where three times its first round costs less than rule
       5. If it misses `tol`, rule 5 follows.
    5. `exact` or `krylov`, whichever needs fewer operations, with m = 4 K columns for `krylov`;
       `krylov` if the N² matrix does not fit into memory. If `krylov` misses `tol` and the matrix
       fits, `exact` follows.

    `stats["chosen"]` and `stats["why"]` say what was done.

    Examples
    --------
    >>> import numpy as np
    >>> from unaligned.operators.base import MatrixOperator
    >>> operator = MatrixOperator(np.diag([0.5, 1.0, 0.25]))
    >>> Auto().solve(operator, 2, Accuracy(), np.random.default_rng(0)).stats["chosen"]
    'exact'
    """

    name: ClassVar[str] = "auto"

    def solve(
        self, operator: PSDOperator, n_eigenvalues: int, accuracy: Accuracy, rng: Generator
    ) -> Spectrum:
        """Return the `n_eigenvalues` largest eigenvalues."""
        n, k = operator.n_samples, n_eigenvalues
        if isinstance(operator, DiffusionOperator) and operator.storage == "streamed":
            return _solve_streamed(operator, k, accuracy, rng)
        tiled = operator.storage == "tiled"
        choice = choose(n, k, definite=operator.definite, tiled=tiled)
        why = choice.why
        if choice.affordable:
            from .landmarks import Landmarks

            solver = Landmarks(max_landmarks=max(k, math.ceil(choice.affordable)))
            found = solver.attempt(operator, k, accuracy, rng, choice.affordable)
            if found is not None:
                return _explained(found, f"up to {choice.affordable:.0f} landmarks are cheapest")
            why = f"{why}; the residual of landmarks falls too slowly"
            is_points = isinstance(getattr(operator, "affinity", None), KernelAffinity)
            accuracy = affordable(accuracy, n, k) if is_points else accuracy
            if is_points and sampled_pays(n, k, accuracy.tol, choice.price):
                from .sampled import Sampled

                announce("sampled", n, k, sampled_price(n, k))
                found = Sampled(refine=False).attempt(operator, k, accuracy, rng)
                if found.stats["converged"]:
                    return _explained(found, "three rounds of sampled rows are cheapest")
        announce(choice.solver, n, k, choice.price)
        if choice.solver == "exact":
            return _explained(Exact().solve(operator, k, accuracy, rng), why)
        from .krylov import Krylov, warn_if_missed

        found = Krylov().attempt(operator, k, accuracy, rng)
        if not found.stats["converged"] and fits(n, tiled):
            found = Exact().solve(operator, k, accuracy, rng)
            return _explained(found, "krylov did not reach tol")
        warn_if_missed(found, accuracy)
        return _explained(found, why)


def _solve_streamed(
    operator: DiffusionOperator, k: int, accuracy: Accuracy, rng: Generator
) -> Spectrum:
    """Apply rule 0."""
    from .landmarks import Landmarks, default_budget

    n, n_features = operator.n_samples, operator.affinity.passes.source.n_features
    found = Landmarks().attempt(operator, k, accuracy, rng, default_budget(k))
    if found is not None:
        return _explained(found, f"N={n}: read by blocks")
    why, accuracy = "the residual of landmarks falls too slowly", affordable(accuracy, n, k)
    if streamed_fallback(n, n_features, k, accuracy.tol) == "sampled":
        from .sampled import Sampled, warn_if_missed

        announce("sampled", n, k, sampled_price(n, k))
        wanted = replace(accuracy, tol=max(accuracy.tol, SAMPLED_TOL))
        found = Sampled(refine=False).attempt(operator, k, wanted, rng)
        warn_if_missed(found, accuracy)
        return _explained(found, why)
    from .krylov import Krylov

    announce("krylov", n, k, krylov_price(n, k, tiled=True))
    in_memory = DiffusionOperator(operator.affinity.in_memory())
    return _explained(Krylov().solve(in_memory, k, accuracy, rng), why)


def _explained(spectrum: Spectrum, why: str) -> Spectrum:
    """Return the spectrum with the solver chosen and the reason in its statistics."""
    return replace(spectrum, stats={**spectrum.stats, "chosen": spectrum.solver, "why": why})


class Choice(NamedTuple):
    """What rules 1 to 5 choose for N rows in memory."""

    solver: str  # "exact" or "krylov", where landmarks are not tried or too many
    price: float  # its operations
    why: str
    affordable: float  # landmarks; 0 where they are not tried


def choose(n: int, k: int, *, definite: bool, tiled: bool) -> Choice:
    """Return what rules 1 to 5 choose for N rows and K eigenvalues."""
    small = n <= 500 or 4 * k > n
    exact, krylov = exact_price(n), krylov_price(n, k, tiled=tiled)
    solver = "exact" if small or exact <= krylov else "krylov"
    why = f"N={n}, K={k}: fewer operations than {'krylov' if exact <= krylov else 'exact'}"
    if not fits(n, tiled):
        solver, why = "krylov", f"{amount(8 * n * n)} do not fit"
    elif small:
        why = f"N={n}, K={k}: nothing is cheaper"
    price = exact if solver == "exact" else krylov
    tried = definite and not small
    return Choice(solver, price, why, math.sqrt(price / landmark_price(n, 1)) if tried else 0.0)


# Prices are in multiply-adds inside a large matrix product; only their ratios matter. At 43 G of
# these a second (two cores): eigvalsh 1.3 s at N=3000, landmarks 0.1 s there with 540 of them,
# krylov 1.1 s with 1023 columns; benchmarks/bench_accuracy.py compares choices.


def exact_price(n: int) -> float:
    """Return the operations of `exact`."""
    return 2.2 * n**3


def landmark_price(n: int, landmarks: int) -> float:
    """Return the operations of `landmarks` with this number of landmarks."""
    return 3.5 * n * landmarks**2


def krylov_price(n: int, k: int, *, tiled: bool, columns: int | None = None) -> float:
    """Return the operations of `krylov` with m columns, 4 K by default."""
    m = min(COLUMNS_PER_VALUE * k, n) if columns is None else columns
    # Products, orthogonalisation and Ritz values.
    price = float(n * n * m + 3 * n * m * m + 8 * m**3)
    if tiled:  # the kernel is computed again in each pass
        from .krylov import default_block_size

        price += 50 * n * n * m / default_block_size(k)
    return price


def fits(n: int, tiled: bool) -> bool:
    """Whether two N×N matrices fit into half of the available memory, and may be formed."""
    return not tiled and (n <= SMALL_ROWS or 16 * n**2 <= available_memory() // 2)


def affordable(accuracy: Accuracy, n: int, k: int) -> Accuracy:
    """Return the accuracy with its relaxed `tol` where the other takes too many operations."""
    price = min(exact_price(n), krylov_price(n, k, tiled=True))
    if accuracy.relaxed is None or price <= AFFORDABLE:
        return accuracy
    return Accuracy(accuracy.gamma, accuracy.relaxed())


def relaxed_tol(noise: float) -> float:
    """Return the `tol` for data with this sampling noise: a fifth of it, at least 0.05."""
    return max(SAMPLED_TOL, noise / 5.0)


def sampled_pays(n: int, k: int, tol: float, price: float) -> bool:
    """Return whether `sampled` may reach `tol` in fewer operations than `price`.

    >>> sampled_pays(20_000, 200, 0.1, krylov_price(20_000, 200, tiled=True))
    True
    """
    return tol >= SAMPLED_TOL and sampled_price(n, k) < price


def sampled_price(n: int, k: int) -> float:
    """Return the operations of two rounds of `sampled`; the second takes twice as many."""
    from .sampled.sizes import first_sizes

    return 3.0 * first_sizes(n, k).work(n)


def announce(solver: str, n: int, k: int, price: float) -> None:
    """Warn if the work takes more than a minute, and say what a subsample would take."""
    if price > 60.0 * RATE:
        size = 6000
        other = min(exact_price(size), krylov_price(size, min(k, size), tiled=False))
        warn(
            f"solver={solver!r} will take about {duration(price / RATE)} for {n:,} rows on two "
            f"cores; subsample={size}: about {duration(other / RATE)}.{missing_numba(n)}",
            CostWarning,
            severity=price,
        )


def streamed_fallback(n: int, n_features: int, k: int, tol: float) -> str:
    """Return the solver of rule 0 where landmarks are too many.

    >>> streamed_fallback(60_000, 50, 200, 1e-4), streamed_fallback(200_000, 50, 200, 1e-4)
    ('krylov', 'sampled')
    """
    fits_memory = n <= defaults.PRODUCT_ROWS and 4 * 8 * n * n_features <= available_memory()
    cheaper = sampled_pays(n, k, tol, krylov_price(n, k, tiled=True))
    return "krylov" if fits_memory and not cheaper else "sampled"


def resolve_solver(solver: str | EigenSolver, sketch_size: int | None = None) -> EigenSolver:
    """Return the solver of this name; an instance is returned as it is."""
    if isinstance(solver, EigenSolver):
        if sketch_size is not None:
            raise InputError("sketch_size goes with solver='nystrom' given by name.")
        return solver
    name = _check.one_of("solver", solver, SOLVERS)
    if sketch_size is not None and name != "nystrom":
        raise InputError(
            f"sketch_size={sketch_size!r} belongs to solver='nystrom', not to solver={name!r}."
        )
    options = {} if sketch_size is None else {"sketch_size": sketch_size}
    found: EigenSolver = getattr(import_module(f".{name}", __package__), SOLVERS[name])(**options)
    return found
