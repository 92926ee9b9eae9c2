"""The solvers by name, and the one that chooses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .. import _check
from ..errors import InputError
from ..operators.base import PSDOperator
from .base import Accuracy, EigenSolver, Spectrum
from .exact import Exact
from .nystrom import Nystrom


@dataclass(frozen=True)
class Auto(EigenSolver):
    """The cheapest solver that meets `tol`."""

    name: ClassVar[str] = "auto"

    def solve(
        self,
        operator: PSDOperator,
        n_eigenvalues: int,
        accuracy: Accuracy,
        rng: np.random.Generator,
    ) -> Spectrum:
        """Return the `n_eigenvalues` largest eigenvalues."""
        return Exact().solve(operator, n_eigenvalues, accuracy, rng)


SOLVERS: dict[str, type[EigenSolver]] = {
    "auto": Auto,
    "exact": Exact,
    "nystrom": Nystrom,
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
