"""The solvers by name, and the one that chooses."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from .. import _check
from ..data.memory import available_memory
from ..errors import InputError
from ..operators.base import PSDOperator
from ..operators.diffusion import DiffusionOperator
from .base import Accuracy, EigenSolver, Spectrum
from .exact import Exact
from .krylov import Krylov, warn_if_missed
from .landmarks import Landmarks
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
COLUMNS_PER_VALUE = 4  # m/K: 2.5 on digits, 5 on isotropic noise


@dataclass(frozen=True)
class Auto(EigenSolver):
    """The cheapest solver that meets `tol`.

    The rules, in order:

    0. Points that are read by blocks (a source of rows, or 50,000 rows and more): `landmarks`.
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
        if operator.storage == "streamed":
            streamed = Landmarks().solve(operator, k, accuracy, rng)
            return _told(streamed, "landmarks", f"N={n}: read by blocks")
        solver, price, why = _without_landmarks(operator, k)
        if operator.definite and not (n <= 500 or 4 * k > n):
            affordable = math.sqrt(price / (LANDMARK_COST * n))
            found = Landmarks(max_landmarks=max(k, math.ceil(affordable))).attempt(
                operator, k, accuracy, rng, affordable
            )
            if found is not None:
                return _told(found, "landmarks", f"up to {affordable:.0f} landmarks are cheapest")
            why = f"{why}; the residual of landmarks falls too slowly"
        if not isinstance(solver, Krylov):
            return _told(solver.solve(operator, k, accuracy, rng), "exact", why)
        found = solver.attempt(operator, k, accuracy, rng)
        if found.stats["converged"] or not _fits(operator):
            warn_if_missed(found, accuracy)
            return _told(found, "krylov", why)
        return _told(
            Exact().solve(operator, k, accuracy, rng), "exact", "krylov did not reach tol"
        )


def _without_landmarks(operator: PSDOperator, k: int) -> tuple[EigenSolver, float, str]:
    """Return the cheaper of `exact` and `krylov`, its price, and why."""
    n = operator.n_samples
    if not _fits(operator):
        return Krylov(), _krylov_price(operator, k), f"{8 * n * n / 2**30:.1f} GiB do not fit"
    if n <= 500 or 4 * k > n:
        return Exact(), EXACT_COST * n**3, f"N={n}, K={k}: nothing is cheaper"
    exact, krylov = EXACT_COST * n**3, _krylov_price(operator, k)
    if exact <= krylov:
        return Exact(), exact, f"N={n}, K={k}: fewer operations than krylov"
    return Krylov(), krylov, f"N={n}, K={k}: fewer operations than exact"


def _krylov_price(operator: PSDOperator, k: int) -> float:
    n = operator.n_samples
    m = min(COLUMNS_PER_VALUE * k, n)
    price = PRODUCT_COST * n * n * m + ORTHOGONAL_COST * n * m * m + RITZ_COST * m**3
    affinity = operator.affinity if isinstance(operator, DiffusionOperator) else operator
    if getattr(affinity, "storage", "dense") == "tiled":
        price += KERNEL_COST * n * n * m / min(max(k // 6, 8), 40)
    return price


def _fits(operator: PSDOperator) -> bool:
    """Whether two N×N matrices fit into half of the available memory, and may be made."""
    affinity = operator.affinity if isinstance(operator, DiffusionOperator) else operator
    if getattr(affinity, "storage", "dense") == "tiled":
        return False
    return 16 * operator.n_samples**2 <= available_memory() // 2


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
