"""Algorithm 1 of the paper, the fixed-rank Nyström sketch."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from scipy.linalg import LinAlgError, cholesky, eigh, qr, solve_triangular, svdvals

from .. import _check
from .._check import FloatArray
from ..errors import InputError
from ..operators.base import PSDOperator
from .base import Accuracy, EigenSolver, Spectrum, descending, rounding_error
from .bounds import sketch_bounds

MU = 2.2e-16  # μ of Algorithm 1, relative to the norm of the sketch


@dataclass(frozen=True)
class Nystrom(EigenSolver):
    """Fixed-rank Nyström sketch, Algorithm 1 of the paper (Tropp et al., 2017).

    Always an underestimate: small where the spectrum decays fast, 2 to 6 in the 2-norm of
    log(λ + γ) where it decays slowly (digits, Gaussian noise). O(M N² + M² N) time, 8 N M bytes
    on top of the operator.

    Parameters
    ----------
    sketch_size
        M, the number of random vectors; None means min(2K, N).
    bound
        `"certified"`: trace(W) - trace(Ŵ_M) with the untruncated Ŵ_M, which always holds.
        `"expectation"`: Proposition 2, which holds on average over the random vectors.
        `stats["proposition_2"]` has both parts of Proposition 2 in either case.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> from unaligned.spectra.nystrom import Nystrom
    >>> points = np.random.default_rng(0).normal(size=(200, 2))
    >>> solver = Nystrom(sketch_size=60, bound="expectation")
    >>> ua.signature(points, n_eigenvalues=20, solver=solver).bound_kind
    'expectation'
    """

    name: ClassVar[str] = "nystrom"
    sketch_size: int | None = None
    bound: str = "certified"

    def __post_init__(self) -> None:
        _check.optional_int("sketch_size", self.sketch_size)
        _check.one_of("bound", self.bound, ("certified", "expectation"))

    def price(self, n_samples: int, n_eigenvalues: int, accuracy: Accuracy, storage: str) -> float:
        """Return the operations of one product with M columns, and of their factors."""
        n, M = n_samples, min(self.sketch_size or 2 * n_eigenvalues, n_samples)
        kernel = 50 if storage == "tiled" else 0
        return float(n * n * (M + kernel) + 3 * n * M * M)

    def solve(
        self, operator: PSDOperator, n_eigenvalues: int, accuracy: Accuracy, rng: Generator
    ) -> Spectrum:
        """Return estimates of the `n_eigenvalues` largest eigenvalues; `tol` is ignored."""
        if not operator.definite:
            raise InputError(
                "solver='nystrom' needs a positive semi-definite operator, and this one may "
                "have negative eigenvalues (its metric, n_neighbors or the matrix given). "
                "Use solver='krylov' or 'exact'."
            )
        M = min(2 * n_eigenvalues, operator.n_samples)
        if self.sketch_size is not None:
            M = self.sketch_size
            if not n_eigenvalues <= M <= operator.n_samples:
                raise InputError(
                    f"sketch_size={M} must lie between n_eigenvalues={n_eigenvalues} and the "
                    f"number of samples, {operator.n_samples}. Leave it out for 2K."
                )
        squares, nu, how = _sketch(operator, M, rng)
        eigenvalues = descending(squares[:n_eigenvalues] - nu)
        # W + νI minus its sketch is positive semi-definite with this trace.
        trace = operator.trace()
        missing = max(trace + operator.n_samples * nu - float(squares.sum()), 0.0)
        missing += operator.negative_share * trace
        proposition = sketch_bounds(eigenvalues, trace, missing, M, accuracy.gamma)
        # Dividing by a nearly singular C adds to a dense solver's rounding; measured on the same
        # matrices: at most 6.4 M eps, where M is close to N.
        rounding = rounding_error(operator, float(eigenvalues[0])) + 8 * M * nu
        slack, kind = missing, "certified"
        if self.bound == "expectation":
            slack, kind = 1.5 * proposition.eigenvalue_sum, "expectation"
        return Spectrum(
            eigenvalues,
            lower=np.maximum(eigenvalues - rounding, 0.0),
            upper=eigenvalues + rounding,
            slack=slack,
            bound_kind=kind,
            solver=self.name,
            stats={
                "sketch_size": M,
                "factorisation": how,
                "missing_trace": missing,
                "proposition_2": proposition._asdict(),
            },
        )


def _sketch(
    operator: PSDOperator, sketch_size: int, rng: Generator
) -> tuple[FloatArray, float, str]:
    """Return Σ² of all M singular values, the shift ν, and how Ωᵀ Y was factorised."""
    gaussian = rng.standard_normal((operator.n_samples, sketch_size))
    Omega = qr(gaussian, mode="economic", overwrite_a=True, check_finite=False)[0]
    Y: FloatArray = operator.matmat(Omega)
    nu = MU * float(np.linalg.norm(Y, 2))
    Y += nu * Omega
    B = Omega.T @ Y
    B = (B + B.T) / 2
    try:
        C = cholesky(B, lower=True, check_finite=False)
        factor: Any = solve_triangular(C, Y.T, lower=True, check_finite=False).T
        how = "cholesky"
    except LinAlgError:
        # Rounding made B indefinite: drop its non-positive directions. That shrinks the sketch,
        # so it stays an underestimate and the certificate holds.
        weights, V = eigh(B)
        kept = weights > max(nu, weights[-1] * sketch_size * np.finfo(np.float64).eps)
        factor = (Y @ V[:, kept]) / np.sqrt(weights[kept])
        how = f"cholesky failed; {int(kept.sum())} of {sketch_size} eigen-directions kept"
    squares: FloatArray = np.zeros(sketch_size)
    if factor.shape[1]:
        sigma = svdvals(factor, overwrite_a=True, check_finite=False)
        squares[: sigma.size] = sigma**2
    return squares, nu, how
