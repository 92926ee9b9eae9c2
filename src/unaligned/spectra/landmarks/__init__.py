"""Eigenvalues in linear time from landmarks, with a deterministic certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ... import _check
from ...errors import DegenerateDataError, InputError
from ...operators.base import PSDOperator
from ...operators.diffusion import DiffusionOperator
from ..base import Accuracy, EigenSolver, Spectrum
from .cholesky import PivotedCholesky
from .growth import SOLVER, Run
from .streamed import Streamed

BUDGET = 2000


def default_budget(n_eigenvalues: int) -> int:
    """Return the most landmarks taken where nothing else is said: max(2000, 10 K)."""
    return max(BUDGET, 10 * n_eigenvalues)


@dataclass(frozen=True)
class Landmarks(EigenSolver):
    r"""Eigenvalues from the features that a few rows of the affinity give to all others.

    Landmarks are added by randomly pivoted Cholesky, :math:`K \approx F^T F`; the row sums
    of Eqs. 2-4 [eq:dmnorm, eq:dmkern, eq:dm_spd] come from sums of features, and

    .. math:: \lambda_i(W) \approx \lambda_i(F \,\mathrm{diag}(s^2)\, F^T),
              \qquad a \hat\lambda_i \le \lambda_i \le b \hat\lambda_i + e_i,
              \quad \sum_i e_i \le \sum_n s_n^2 \rho_n .

    ρ is the diagonal of the residual K - FᵀF. It bounds the row sums, hence s, hence the
    factors a and b (Ostrowski); the residual itself adds at most its trace, to all
    eigenvalues together. Landmarks are added until that meets `tol`, so the smoother the
    kernel the fewer; where the tail is heavy (high-dimensional noise) none of this helps
    before r is about N, and the bound says so.

    O(N r (d + r)) time for r landmarks, 8 N r bytes. Rows are read, products never asked for.

    Parameters
    ----------
    max_landmarks
        The most landmarks to take; None is the smaller of N and max(2000, 10 K).
    block_size
        Rows proposed at a time; None lets the block grow with the landmarks, as r/8.

    Examples
    --------
    >>> from unaligned.operators.affinity import GaussianAffinity
    >>> angle = np.linspace(0.0, 2 * np.pi, 400, endpoint=False)
    >>> circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    >>> operator = DiffusionOperator(GaussianAffinity(circle, 4.0))
    >>> found = Landmarks().solve(operator, 5, Accuracy(tol=1e-6), np.random.default_rng(0))
    >>> found.eigenvalues.round(4)
    array([1.    , 0.2425, 0.2425, 0.03  , 0.03  ])
    >>> found.stats["landmarks"] < 40, found.total_log_error(1e-8) < 1e-6
    (True, True)
    """

    name: ClassVar[str] = SOLVER
    max_landmarks: int | None = None
    block_size: int | None = None

    def __post_init__(self) -> None:
        _check.optional_int("max_landmarks", self.max_landmarks)
        _check.optional_int("block_size", self.block_size)

    def solve(
        self,
        operator: PSDOperator,
        n_eigenvalues: int,
        accuracy: Accuracy,
        rng: np.random.Generator,
    ) -> Spectrum:
        """Return the `n_eigenvalues` largest eigenvalues of a positive operator."""
        spectrum = self.attempt(operator, n_eigenvalues, accuracy, rng, np.inf)
        assert spectrum is not None  # an infinite number is never foreseen to be too many
        return spectrum

    def attempt(
        self,
        operator: PSDOperator,
        n_eigenvalues: int,
        accuracy: Accuracy,
        rng: np.random.Generator,
        affordable: float,
    ) -> Spectrum | None:
        """Do as `solve`, but give up, with None, once more landmarks are foreseen than that."""
        capacity = min(operator.n_samples, self.max_landmarks or default_budget(n_eigenvalues))
        if isinstance(operator, DiffusionOperator) and operator.storage == "streamed":
            streamed = Streamed(operator.affinity, n_eigenvalues, accuracy, capacity, rng)
            return streamed.run(affordable)
        count = min(n_eigenvalues, operator.n_samples)
        run = Run(operator, PivotedCholesky(_kernel(operator), capacity), count, accuracy, rng)
        while run.growing:
            run.grow(self.block_size)
            if run.due() and run.good_enough(run.estimate()) and run.good_enough(run.spectrum()):
                return run.finish()
            if run.foreseen(affordable) > affordable:
                return None
        return run.finish() if np.isinf(affordable) or run.factor.exhausted else None


def _kernel(operator: PSDOperator) -> PSDOperator:
    """Return the matrix to factor, refusing what is not positive semi-definite."""
    kernel = operator.affinity if isinstance(operator, DiffusionOperator) else operator
    if not kernel.definite:
        raise InputError(
            "solver='landmarks' needs a positive semi-definite affinity; this one may have "
            "negative eigenvalues (its metric is not Euclidean, or it keeps only neighbours). "
            "Take solver='krylov' or 'exact'."
        )
    if isinstance(operator, DiffusionOperator) and not (kernel.diagonal() > 0).all():
        bad = np.flatnonzero(~(kernel.diagonal() > 0))
        raise DegenerateDataError(
            f"{bad.size} rows of the affinity are zero (row {bad[0]}), so Eqs. 2-3 cannot divide "
            "by their sums. Leave these rows out, or give them an affinity to themselves."
        )
    return kernel
