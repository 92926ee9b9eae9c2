"""The paper's two propositions as computable bounds, and the log-Hilbert-Schmidt distance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import eigvalsh

from .. import _check
from .._check import FloatArray
from ..data.values import to_values
from ..errors import InputError, InputTypeError
from .base import is_singular

# Where abs(log(1 - x)) <= 1.5 x stops to hold; the condition of Proposition 2.
LOG_CONDITION = 0.5828


class SketchBounds(NamedTuple):
    """Both parts of Proposition 2, and whether its condition is known to hold.

    Attributes
    ----------
    eigenvalue_sum
        Bound on the expected sum of eigenvalue errors, Eq. 7 [eq:eigbound].
    log_sum
        Bound on the expected sum of errors of log(λ + γ), Eq. 8 [eq:logeigbound].
    condition_holds
        Whether every relative error is known to be at most 0.5828, as part two requires.
    """

    eigenvalue_sum: float
    log_sum: float
    condition_holds: bool


def sketch_bounds(
    eigenvalues: FloatArray, trace: float, missing: float, sketch_size: int, gamma: float
) -> SketchBounds:
    r"""Return Proposition 2 [prop:evalest_bound] a posteriori.

    .. math:: \frac{K}{M-K-1} \sum_{i>K} \lambda_i, \qquad
              \frac{1.5\,K}{(M-K-1)(\lambda_K+\gamma)} \sum_{i>K} \lambda_i

    The proposition speaks of true eigenvalues. A sketch never overestimates, so the tail is at
    most trace(W) minus the sum of the K estimates, and λ_K is at least its estimate: what is
    returned bounds the paper's right-hand sides from above.

    Parameters
    ----------
    eigenvalues
        The K estimates λ̂, descending.
    trace
        The trace of W.
    missing
        trace(W) - trace(Ŵ_M), what the untruncated sketch missed; no eigenvalue is off by more.
    sketch_size
        M, which must exceed K + 1; otherwise the bounds are infinite.
    gamma
        The regularisation γ.

    Examples
    --------
    >>> sketch_bounds(np.array([1.0, 0.5]), 1.75, 0.05, 5, 0.0).eigenvalue_sum
    0.25
    """
    k = eigenvalues.size
    tail = max(trace - float(eigenvalues.sum()), 0.0)
    smallest = float(eigenvalues[-1]) + gamma
    room = sketch_size - k - 1
    if room <= 0:
        return SketchBounds(float("inf"), float("inf"), False)
    eigenvalue_sum = k / room * tail
    log_sum = 1.5 * eigenvalue_sum / smallest if smallest > 0 else float("inf")
    condition_holds = missing <= LOG_CONDITION * (smallest + missing)
    return SketchBounds(eigenvalue_sum, log_sum, bool(condition_holds))


def log_euclidean_bounds(W1: npt.ArrayLike, W2: npt.ArrayLike) -> tuple[float, float]:
    r"""Bound the log-Euclidean distance of two SPD matrices from both sides by eigenvalues alone.

    Proposition 1 [prop:lelb], roots taken:

    .. math:: \sum_i (\log\lambda^{(1)}_i - \log\lambda^{(2)}_i)^2 \le
              \|\log W_1 - \log W_2\|_F^2 \le
              \sum_i (\log\lambda^{(1)}_i - \log\lambda^{(2)}_{N-i+1})^2

    The lower bound is attained when both share eigenvectors in the same order, the upper when
    in opposite order. O(N³) time.

    Parameters
    ----------
    W1, W2
        Symmetric positive definite matrices of one shape, (N, N).

    Returns
    -------
    lower, upper
        Bounds on the distance itself, not on its square.

    Examples
    --------
    >>> lower, upper = log_euclidean_bounds(np.diag([1.0, 2.0]), np.diag([2.0, 1.0]))
    >>> lower, round(upper, 6)
    (0.0, 0.980258)
    """
    first, second = (_log_spectrum(name, W) for name, W in (("W1", W1), ("W2", W2)))
    if first.size != second.size:
        raise InputError(
            f"W1 and W2 must have one shape; they are of size {first.size} and {second.size}. "
            "For matrices of different sizes use ua.distance, which compares leading eigenvalues."
        )
    lower = float(np.linalg.norm(first - second))
    upper = float(np.linalg.norm(first - second[::-1]))
    return lower, upper


def log_hilbert_schmidt(
    spectrum1: npt.ArrayLike, spectrum2: npt.ArrayLike, gamma: float, mu: float
) -> float:
    r"""Return the lower bound of the log-Hilbert-Schmidt distance that eigenvalues allow.

    Section 4.2.1, for regularised operators W₁ + γI and W₂ + μI (Minh et al., 2014), with
    the eigenvalues of both in the same order:

    .. math:: d^2 = (\log\gamma - \log\mu)^2 +
              \sum_i (\log(\lambda^{(1)}_i/\gamma + 1) - \log(\lambda^{(2)}_i/\mu + 1))^2

    With γ = μ it is the LES distance. A shorter spectrum is continued with zeros, which is what
    the operator of finite rank has.

    Parameters
    ----------
    spectrum1, spectrum2
        Eigenvalues, not negative, in any order.
    gamma, mu
        Regularisation of the first and of the second operator, positive.

    Examples
    --------
    >>> log_hilbert_schmidt([1.0, 0.5], [1.0, 0.5], 1e-8, 1e-8)
    0.0
    """
    gamma = _check.real_number("gamma", gamma, minimum=0.0, strict=True)
    mu = _check.real_number("mu", mu, minimum=0.0, strict=True)
    first = np.log1p(_spectrum("spectrum1", spectrum1) / gamma)
    second = np.log1p(_spectrum("spectrum2", spectrum2) / mu)
    size = max(first.size, second.size)
    difference = np.pad(first, (0, size - first.size)) - np.pad(second, (0, size - second.size))
    return float(np.hypot(np.log(gamma) - np.log(mu), np.linalg.norm(difference)))


def _log_spectrum(name: str, matrix: npt.ArrayLike) -> FloatArray:
    values = to_values(matrix, name)
    W = np.asarray(values.toarray() if sparse.issparse(values) else values, dtype=np.float64)
    if W.shape[0] != W.shape[1]:
        raise InputError(f"{name} must be a square matrix; its shape is {W.shape}.")
    if not np.isfinite(W).all() or not np.allclose(
        W, W.T, rtol=1e-8, atol=1e-10 * np.abs(W).max()
    ):
        raise InputError(f"{name} must be finite and symmetric. Symmetrise it: (W + W.T) / 2.")
    eigenvalues = np.asarray(eigvalsh(W), dtype=np.float64)[::-1]
    if is_singular(eigenvalues):
        raise InputError(
            f"{name} must be clearly positive definite; its smallest eigenvalue is "
            f"{eigenvalues[-1]:g}. Regularise it: {name} + gamma * numpy.eye({W.shape[0]})."
        )
    logs: FloatArray = np.log(eigenvalues)
    return logs


def _spectrum(name: str, values: npt.ArrayLike) -> FloatArray:
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise InputTypeError(
            f"{name} must hold real numbers, not {_check.shape_of(values)} (dtype {array.dtype}). "
            "Of a Signature pass its .eigenvalues."
        )
    spectrum = np.sort(array.astype(np.float64).ravel())[::-1]
    if not np.isfinite(spectrum).all() or spectrum.size == 0 or spectrum[-1] < 0:
        raise InputError(f"{name} must hold finite eigenvalues that are not negative.")
    return spectrum
