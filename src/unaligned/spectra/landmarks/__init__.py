"""Eigenvalues in linear time from landmarks, with a deterministic certificate."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from ... import _check
from ...engine.threads import own_threads
from ...errors import DegenerateDataError, InputError
from ...operators.base import PSDOperator
from ...operators.diffusion import DiffusionOperator
from ..base import Accuracy, EigenSolver, Spectrum
from .cholesky import CertifiedCholesky, PivotedCholesky

# Landmarks: 3-tori need 700 at machine precision, and 2000 cost as much as `exact` at N = 5000.
BUDGET = 2000


def default_budget(n_eigenvalues: int) -> int:
    """Return the default of `max_landmarks`, max(2000, 10 K)."""
    return max(BUDGET, 10 * n_eigenvalues)


@dataclass(frozen=True)
class Landmarks(EigenSolver):
    r"""Eigenvalues in linear time, from a low-rank factor of the affinity.

    Landmarks are added by randomly pivoted Cholesky, :math:`K \approx F^T F`; the row sums
    of Eqs. 2-4 of the paper come from sums of features, and

    .. math:: \lambda_i(W) \approx \lambda_i(F \,\mathrm{diag}(s^2)\, F^T),
              \qquad a \hat\lambda_i \le \lambda_i \le b \hat\lambda_i + e_i,
              \quad \sum_i e_i \le \sum_n s_n^2 \rho_n .

    ρ, the diagonal of the residual K - FᵀF, bounds the errors of s and hence the factors a and b
    (Ostrowski); the residual itself adds at most its trace to all eigenvalues together (see
    `RowStatistics`). Landmarks are added until the bound meets `tol`: few for a smooth kernel,
    nearly N for a heavy tail (high-dimensional noise). O(N r (d + r)) time for r landmarks,
    8 N r bytes.

    Parameters
    ----------
    max_landmarks
        The largest number of landmarks; None means min(N, max(2000, 10 K)).
    block_size
        Rows proposed at a time; None means r/8, at least 16.

    Examples
    --------
    >>> import numpy as np
    >>> from unaligned.operators.affinity import KernelAffinity
    >>> from unaligned.operators.diffusion import DiffusionOperator
    >>> from unaligned.operators.kernel import Gaussian
    >>> from unaligned.spectra.base import Accuracy
    >>> from unaligned.spectra.landmarks import Landmarks
    >>> angle = np.linspace(0.0, 2 * np.pi, 400, endpoint=False)
    >>> circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    >>> operator = DiffusionOperator(KernelAffinity(circle, Gaussian(4.0)))
    >>> found = Landmarks().solve(operator, 5, Accuracy(tol=1e-6), np.random.default_rng(0))
    >>> found.eigenvalues.round(4)
    array([1.    , 0.2425, 0.2425, 0.03  , 0.03  ])
    >>> found.stats["landmarks"] < 40, found.total_log_error(1e-8) < 1e-6
    (True, True)
    """

    name: ClassVar[str] = "landmarks"
    max_landmarks: int | None = None
    block_size: int | None = None

    def __post_init__(self) -> None:
        _check.optional_int("max_landmarks", self.max_landmarks)
        _check.optional_int("block_size", self.block_size)

    def solve(
        self, operator: PSDOperator, n_eigenvalues: int, accuracy: Accuracy, rng: Generator
    ) -> Spectrum:
        """Return the `n_eigenvalues` largest eigenvalues of a positive operator."""
        spectrum = self.attempt(operator, n_eigenvalues, accuracy, rng, np.inf)
        assert spectrum is not None  # any number of landmarks is affordable
        return spectrum

    @own_threads()
    def attempt(
        self,
        operator: PSDOperator,
        n_eigenvalues: int,
        accuracy: Accuracy,
        rng: Generator,
        affordable: float,
    ) -> Spectrum | None:
        """Solve; return None once more than `affordable` landmarks are expected to be needed."""
        capacity = min(operator.n_samples, self.max_landmarks or default_budget(n_eigenvalues))
        if isinstance(operator, DiffusionOperator) and operator.storage == "streamed":
            from .streamed import StreamedLandmarks

            solver = StreamedLandmarks(operator.affinity, n_eigenvalues, accuracy, capacity, rng)
            return solver.solve(affordable)
        kernel = operator.affinity if isinstance(operator, DiffusionOperator) else operator
        if not kernel.definite:
            raise InputError(
                "solver='landmarks' needs a positive semi-definite affinity; this one may have "
                "negative eigenvalues (a metric that is not Euclidean, or n_neighbors). "
                "Use solver='krylov' or 'exact'."
            )
        zero = np.flatnonzero(~(kernel.diagonal() > 0))
        if isinstance(operator, DiffusionOperator) and zero.size:
            raise DegenerateDataError(
                f"{zero.size} rows of the affinity are zero (row {zero[0]}), and Eqs. 2-3 divide "
                "by their sums. Drop these rows, or give them an affinity to themselves."
            )
        factor = PivotedCholesky(kernel, capacity)
        count = min(n_eigenvalues, operator.n_samples)
        grown = CertifiedCholesky(operator, factor, count, accuracy, rng)
        met = grown.reach_tolerance(self.block_size, affordable)
        return grown.finish() if met or np.isinf(affordable) or factor.exhausted else None
