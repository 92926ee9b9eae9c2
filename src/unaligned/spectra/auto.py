"""The solvers by name, and the one that chooses."""

import math
from dataclasses import dataclass, replace
from importlib import import_module
from typing import ClassVar, NamedTuple

from numpy.random import Generator

from .. import _check, defaults
from .._format import amount
from ..defaults import SAMPLED_TOL, SMALL_ROWS
from ..engine.memory import available_memory
from ..errors import InputError
from ..operators.affinity import KernelAffinity
from ..operators.base import PSDOperator
from ..operators.diffusion import DiffusionOperator
from .base import Accuracy, EigenSolver, Spectrum
from .exact import Exact
from .prices import (
    affordable,
    announce,
    exact_price,
    krylov_price,
    landmark_price,
    sampled_pays,
    sampled_price,
)

# name -> class in the module of that name, which is imported on first use.
SOLVERS = {
    "auto": "Auto",
    "exact": "Exact",
    "nystrom": "Nystrom",
    "krylov": "Krylov",
    "landmarks": "Landmarks",
    "sampled": "Sampled",
}


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
    >>> import unaligned as ua
    >>> points = np.random.default_rng(0).normal(size=(300, 3))
    >>> ua.signature(points, n_eigenvalues=20, solver="auto").stats["chosen"]
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


def fits(n: int, tiled: bool) -> bool:
    """Whether two N×N matrices fit into half of the available memory, and may be formed."""
    return not tiled and (n <= SMALL_ROWS or 16 * n**2 <= available_memory() // 2)


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
