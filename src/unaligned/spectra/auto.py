"""The solvers by name, and the one that chooses."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from .. import _check
from .._format import amount
from ..engine.memory import available_memory
from ..errors import InputError
from ..operators.base import PSDOperator
from ..operators.diffusion import DiffusionOperator
from .base import Accuracy, EigenSolver, Spectrum
from .exact import Exact
from .krylov import Krylov, default_block_size, warn_if_missed
from .landmarks import Landmarks, default_budget
from .nystrom import Nystrom

# Costs in multiples of one multiply-add inside a large matrix product. Only their ratios matter;
# on two cores at 43 G multiply-adds a second: eigvalsh 1.3 s at N=3000, landmarks 0.1 s there with
# 540 of them, krylov 1.1 s with 1023 columns, and the chosen one was never much dearer than the
# best of the three on the datasets of benchmarks/bench_accuracy.py.
EXACT_COST = 2.2  # × N³
LANDMARK_COST = 3.5  # × N r²
PRODUCT_COST = 1.0  # × N² m, dense
KERNEL_COST = 50.0  # × N² per pass of a tiled operator
ORTHOGONAL_COST = 3.0  # × N m²
RITZ_COST = 8.0  # × m³
MOST_ROWS = 100_000  # for products without the matrix: minutes, and the square of that beyond
COLUMNS_PER_VALUE = 4  # m/K: 2.5 on digits, 5 on isotropic noise


@dataclass(frozen=True)
class Auto(EigenSolver):
    """The cheapest solver that meets `tol`.

    The rules, in order:

    0. Points that are read by blocks (50,000 rows and more, or a source of more than 256 MiB):
       `landmarks`. Where a sample foresees too many of them, and there are 100,000 rows at the
       most: `krylov`, with the points in memory.
    1. An operator that may have negative eigenvalues: `exact` where its N² matrix fits into
       memory and is no dearer, else `krylov`.
    2. N ≤ 500, or K > N/4: `exact`. Nothing is cheaper.
    3. A positive affinity: `landmarks` is begun. Now and then it foresees from its residuals how
       many landmarks the certificate will take; it goes on as long as that costs less than the
       alternatives of rule 4, and is given up otherwise. This probe costs a few percent.
    4. `exact` or `krylov`, whichever the flop counts favour, with m = 4 K columns for `krylov`;
       `krylov` where the N² matrix does not fit into memory. Should `krylov` miss `tol`, and
       the matrix fits, `exact` follows.

    `stats["chosen"]` and `stats["why"]` tell what was done.

    Examples
    --------
    >>> from unaligned.operators.base import MatrixOperator
    >>> operator = MatrixOperator(np.diag([0.5, 1.0, 0.25]))
    >>> Auto().solve(operator, 2, Accuracy(), np.random.default_rng(0)).stats["chosen"]
    'exact'
    """

    name: ClassVar[str] = "auto"

    def solve(
        self,
        operator: PSDOperator,
        n_eigenvalues: int,
        accuracy: Accuracy,
        rng: np.random.Generator,
    ) -> Spectrum:
        """Return the `n_eigenvalues` largest eigenvalues."""
        n, k = operator.n_samples, n_eigenvalues
        if isinstance(operator, DiffusionOperator) and operator.storage == "streamed":
            return _by_blocks(operator, k, accuracy, rng)
        tiled = operator.storage == "tiled"
        choice = choose(n, k, definite=operator.definite, tiled=tiled)
        why = choice.why
        if choice.affordable:
            found = Landmarks(max_landmarks=max(k, math.ceil(choice.affordable))).attempt(
                operator, k, accuracy, rng, choice.affordable
            )
            if found is not None:
                told = f"up to {choice.affordable:.0f} landmarks are cheapest"
                return _told(found, "landmarks", told)
            why = f"{why}; the residual of landmarks falls too slowly"
        if not isinstance(choice.solver, Krylov):
            return _told(choice.solver.solve(operator, k, accuracy, rng), "exact", why)
        found = choice.solver.attempt(operator, k, accuracy, rng)
        if found.stats["converged"] or not fits(n, tiled):
            warn_if_missed(found, accuracy)
            return _told(found, "krylov", why)
        return _told(
            Exact().solve(operator, k, accuracy, rng), "exact", "krylov did not reach tol"
        )


def _by_blocks(
    operator: DiffusionOperator, k: int, accuracy: Accuracy, rng: np.random.Generator
) -> Spectrum:
    """Return what rule 0 says of points that are read by blocks."""
    n, n_features = operator.n_samples, operator.affinity.passes.source.n_features
    affordable = affordable_streamed(n, n_features, k)
    found = Landmarks().attempt(operator, k, accuracy, rng, affordable)
    if found is not None:
        return _told(found, "landmarks", f"N={n}: read by blocks")
    here = DiffusionOperator(operator.affinity.in_memory())
    slowly = Krylov().solve(here, k, accuracy, rng)
    return _told(slowly, "krylov", "the residual of landmarks falls too slowly")


class Choice(NamedTuple):
    """What `auto` does with so many rows in memory: landmarks up to a number, or else this."""

    solver: EigenSolver
    price: float
    why: str
    affordable: float  # landmarks; 0 where they are not tried


def choose(n: int, k: int, *, definite: bool, tiled: bool) -> Choice:
    """Return what rules 1 to 4 say of N rows and K eigenvalues.

    Examples
    --------
    >>> choose(400, 100, definite=True, tiled=False)[:3]
    (Exact(), 140800000.0, 'N=400, K=100: nothing is cheaper')
    """
    small = n <= 500 or 4 * k > n
    exact, krylov = exact_price(n), krylov_price(n, k, tiled=tiled)
    solver: EigenSolver = Exact() if small or exact <= krylov else Krylov()
    why = f"N={n}, K={k}: fewer operations than {'krylov' if exact <= krylov else 'exact'}"
    if not fits(n, tiled):
        solver, why = Krylov(), f"{amount(8 * n * n)} do not fit"
    elif small:
        why = f"N={n}, K={k}: nothing is cheaper"
    price = exact if isinstance(solver, Exact) else krylov
    tried = definite and not small
    affordable = math.sqrt(price / landmark_price(n, 1)) if tried else 0.0
    return Choice(solver, price, why, affordable)


def exact_price(n: int) -> float:
    """Return the operations of `exact`."""
    return EXACT_COST * n**3


def landmark_price(n: int, landmarks: int) -> float:
    """Return the operations of `landmarks` with so many of them."""
    return LANDMARK_COST * n * landmarks**2


def krylov_price(n: int, k: int, *, tiled: bool, columns: int | None = None) -> float:
    """Return the operations of `krylov` with so many columns, by default those foreseen."""
    m = min(COLUMNS_PER_VALUE * k, n) if columns is None else columns
    price = PRODUCT_COST * n * n * m + ORTHOGONAL_COST * n * m * m + RITZ_COST * m**3
    if tiled:
        price += KERNEL_COST * n * n * m / default_block_size(k)
    return price


def fits(n: int, tiled: bool) -> bool:
    """Whether two N×N matrices fit into half of the available memory, and may be made."""
    return not tiled and 16 * n**2 <= available_memory() // 2


def affordable_streamed(n: int, n_features: int, k: int) -> float:
    """Return how many landmarks rule 0 takes: any number where the points cannot be brought here.

    They can if they are few enough for products with all of them.
    """
    here = n <= MOST_ROWS and 4 * 8 * n * n_features <= available_memory()
    return default_budget(k) if here else math.inf


def _told(spectrum: Spectrum, chosen: str, why: str) -> Spectrum:
    return replace(spectrum, stats={**spectrum.stats, "chosen": chosen, "why": why})


SOLVERS: dict[str, type[EigenSolver]] = {
    solver.name: solver for solver in (Auto, Exact, Nystrom, Krylov, Landmarks)
}


def resolve_solver(solver: str | EigenSolver, sketch_size: int | None = None) -> EigenSolver:
    """Return the solver of this name; an instance is returned as it is.

    Examples
    --------
    >>> resolve_solver("nystrom", sketch_size=400)
    Nystrom(sketch_size=400, bound='certified')
    """
    if isinstance(solver, EigenSolver):
        if sketch_size is not None:
            raise InputError("sketch_size goes with solver='nystrom' given by name.")
        return solver
    name = _check.one_of("solver", solver, SOLVERS)
    if sketch_size is None:
        return SOLVERS[name]()
    if name != "nystrom":
        raise InputError(
            f"sketch_size={sketch_size!r} belongs to solver='nystrom', not to solver={name!r}."
        )
    return Nystrom(sketch_size)
