"""Propositions 1 and 2, the log-Hilbert-Schmidt distance, and the effect of a sampled σ²."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import eigh, eigvalsh

from .. import _check
from .._check import FloatArray
from ..data.values import to_values
from ..errors import AccuracyWarning, InputError, InputTypeError, warn
from ..operators.affinity import KernelAffinity
from ..operators.base import PSDOperator
from ..operators.diffusion import DiffusionOperator
from ..operators.kernel import Kernel
from .base import Spectrum, descending, is_singular


class SketchBounds(NamedTuple):
    """Both parts of Proposition 2, and whether its condition is known to hold."""

    eigenvalue_sum: float  # bounds the expected sum of eigenvalue errors, Eq. 8 [eq:eigbound]
    log_sum: float  # bounds that of the errors of log(λ + γ), Eq. 9 [eq:logeigbound]
    condition_holds: bool  # whether all relative errors are at most 0.5828, as Eq. 9 requires


def sketch_bounds(
    eigenvalues: FloatArray, trace: float, missing: float, sketch_size: int, gamma: float
) -> SketchBounds:
    r"""Return Proposition 2 [prop:evalest_bound] a posteriori.

    .. math:: \frac{K}{M-K-1} \sum_{i>K} \lambda_i, \qquad
              \frac{1.5\,K}{(M-K-1)(\lambda_K+\gamma)} \sum_{i>K} \lambda_i

    The proposition is about true eigenvalues. A sketch never overestimates, so the tail is at
    most trace(W) minus the sum of the K estimates, and λ_K is at least its estimate: the
    result bounds the right-hand sides of Eqs. 8 and 9 from above. `eigenvalues` are the K
    estimates, `missing` is trace(W) - trace(Ŵ_M) of the untruncated sketch, which no eigenvalue
    error exceeds. Infinite unless M exceeds K + 1.
    """
    k = eigenvalues.size
    tail = max(trace - float(eigenvalues.sum()), 0.0)
    smallest = float(eigenvalues[-1]) + gamma
    room = sketch_size - k - 1
    if room <= 0:
        return SketchBounds(float("inf"), float("inf"), False)
    eigenvalue_sum = k / room * tail
    log_sum = 1.5 * eigenvalue_sum / smallest if smallest > 0 else float("inf")
    # abs(log(1 - x)) ≤ 1.5 x holds up to x = 0.5828, the condition of Proposition 2.
    condition_holds = missing <= 0.5828 * (smallest + missing)
    return SketchBounds(eigenvalue_sum, log_sum, bool(condition_holds))


def log_euclidean_bounds(W1: npt.ArrayLike, W2: npt.ArrayLike) -> tuple[float, float]:
    r"""Bound the log-Euclidean distance of two SPD matrices by their eigenvalues.

    Proposition 1 of the paper, roots taken:

    .. math:: \sum_i (\log\lambda^{(1)}_i - \log\lambda^{(2)}_i)^2 \le
              \|\log W_1 - \log W_2\|_F^2 \le
              \sum_i (\log\lambda^{(1)}_i - \log\lambda^{(2)}_{N-i+1})^2

    The lower bound is attained when both share eigenvectors in the same order, the upper one
    when in opposite order. O(N³) time.

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
    >>> import numpy as np
    >>> import unaligned as ua
    >>> lower, upper = ua.log_euclidean_bounds(np.diag([1.0, 2.0]), np.diag([2.0, 1.0]))
    >>> lower, round(upper, 6)
    (0.0, 0.980258)
    """
    first, second = (_log_spectrum(name, W) for name, W in (("W1", W1), ("W2", W2)))
    if first.size != second.size:
        raise InputError(
            f"W1 and W2 must have the same shape; their sizes are {first.size} and "
            f"{second.size}. Use ua.distance, which compares leading eigenvalues."
        )
    return float(np.linalg.norm(first - second)), float(np.linalg.norm(first - second[::-1]))


def log_hilbert_schmidt(
    spectrum1: npt.ArrayLike,
    spectrum2: npt.ArrayLike,
    gamma: float,
    mu: float,
    *,
    aligned: bool = False,
) -> float:
    r"""Return the log-Hilbert-Schmidt distance, or its lower bound by eigenvalues.

    The distance of regularised operators W₁ + γI and W₂ + μI (Minh et al., 2014; Eq. 7), which
    is computed with `aligned=True`, is

    .. math:: d^2 = (\log\gamma - \log\mu)^2 +
              \|\log(W_1/\gamma + I) - \log(W_2/\mu + I)\|_{HS}^2 .

    By default the last term is its lower bound by eigenvalues in the same order,

    .. math:: \sum_i (\log(\lambda^{(1)}_i/\gamma + 1) - \log(\lambda^{(2)}_i/\mu + 1))^2 ,

    which the distance attains when both operators share eigenvectors in the same order. With
    γ = μ the bound is the LES distance. A shorter spectrum is padded with zeros, the remaining
    eigenvalues of an operator of finite rank. O(N³) time if aligned.

    Parameters
    ----------
    spectrum1, spectrum2
        Eigenvalues, not negative, in any order; with `aligned=True` the symmetric matrices W₁
        and W₂ of one shape, (N, N), row i of both being the same sample.
    gamma, mu
        Regularisation of the first and of the second operator, positive.
    aligned
        Whether matrices with aligned rows are given.

    Returns
    -------
    float
        The distance or its lower bound, not squared.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> ua.log_hilbert_schmidt([1.0, 0.5], [0.5, 1.0], 1e-8, 1e-8)
    0.0
    >>> W1, W2 = np.diag([1.0, 0.5]), np.diag([0.5, 1.0])
    >>> round(ua.log_hilbert_schmidt(W1, W2, 1e-8, 1e-8, aligned=True), 6)
    0.980258
    """
    gamma = _check.real_number("gamma", gamma, minimum=0.0, strict=True)
    mu = _check.real_number("mu", mu, minimum=0.0, strict=True)
    if _check.flag("aligned", aligned):
        first = _regularised_log("spectrum1", spectrum1, gamma)
        second = _regularised_log("spectrum2", spectrum2, mu)
        if first.shape != second.shape:
            raise InputError(
                "aligned=True needs matrices of the same shape; their sizes are "
                f"{len(first)} and {len(second)}. Pass their eigenvalues, without aligned."
            )
    else:
        first = np.log1p(_sorted_spectrum("spectrum1", spectrum1) / gamma)
        second = np.log1p(_sorted_spectrum("spectrum2", spectrum2) / mu)
        size = max(first.size, second.size)
        first, second = (np.pad(logs, (0, size - logs.size)) for logs in (first, second))
    return float(np.hypot(np.log(gamma) - np.log(mu), np.linalg.norm(first - second)))


def _regularised_log(name: str, matrix: npt.ArrayLike, gamma: float) -> FloatArray:
    """Return log(W/γ + I), (N, N)."""
    W = _symmetric(name, matrix)
    eigenvalues, U = eigh(W)
    if is_singular(eigenvalues + gamma):
        raise InputError(
            f"{name} + {gamma:g} I must be clearly positive definite; the smallest eigenvalue of "
            f"{name} is {eigenvalues[0]:g}. Give a larger gamma and mu."
        )
    return np.asarray((U * np.log1p(eigenvalues / gamma)) @ U.T)


def _symmetric(name: str, matrix: npt.ArrayLike) -> FloatArray:
    """Return a symmetric matrix as a dense array; raise for anything else."""
    values = to_values(matrix, name)
    W = np.asarray(values.toarray() if sparse.issparse(values) else values, dtype=np.float64)
    if W.shape[0] != W.shape[1]:
        raise InputError(f"{name} must be a square matrix; its shape is {W.shape}.")
    rounding = 1e-10 * np.abs(W).max()
    if not np.isfinite(W).all() or not np.allclose(W, W.T, rtol=1e-8, atol=rounding):
        raise InputError(f"{name} must be finite and symmetric. Symmetrise it: (W + W.T) / 2.")
    return W


def _log_spectrum(name: str, matrix: npt.ArrayLike) -> FloatArray:
    W = _symmetric(name, matrix)
    eigenvalues = np.asarray(eigvalsh(W), dtype=np.float64)[::-1]
    if is_singular(eigenvalues):
        raise InputError(
            f"{name} must be clearly positive definite; its smallest eigenvalue is "
            f"{eigenvalues[-1]:g}. Regularise it: {name} + gamma * numpy.eye({W.shape[0]})."
        )
    return np.asarray(np.log(eigenvalues))


def _sorted_spectrum(name: str, values: npt.ArrayLike) -> FloatArray:
    array = np.asarray(values)
    is_signature = hasattr(values, "eigenvalues")  # whose array are logarithms
    if is_signature or array.dtype.kind not in "biuf":
        raise InputTypeError(
            f"{name} must hold real numbers, not {_check.shape_of(values)} (dtype {array.dtype}). "
            "For a Signature pass its .eigenvalues."
        )
    if array.ndim > 1:
        raise InputError(
            f"{name} must be eigenvalues, not an array of shape {array.shape}. For matrices "
            "with aligned rows pass aligned=True; otherwise pass numpy.linalg.eigvalsh(W)."
        )
    spectrum = np.sort(array.astype(np.float64).ravel())[::-1]
    if not np.isfinite(spectrum).all() or spectrum.size == 0 or spectrum[-1] < 0:
        raise InputError(f"{name} must hold finite, nonnegative eigenvalues.")
    return spectrum


def sample_rows(n_eigenvalues: int) -> int:
    """Return the number of rows on which the effect of σ² on K eigenvalues is measured.

    On tori and on CytoTree the norm of the slopes from 1000 rows (43.1, 32.5, 42.5) is within
    5 % of that from 4000 (44.2, 32.7, 44.8).
    """
    return max(1000, 4 * n_eigenvalues)


def slopes(points: FloatArray, kernel: Kernel, n_eigenvalues: int, gamma: float) -> FloatArray:
    r"""Return :math:`\partial \log(\lambda_i + \gamma) / \partial \log \sigma^2`, (K,).

    A central difference of two spectra of these points, (n, d): O(n³), 0.2 s for 1000 points.
    """
    step = 1e-3  # of log σ²: log(λ + γ) is smooth on this scale, and moves far beyond rounding
    below, above = (
        _log_values(points, kernel, float(np.exp(sign * step)), n_eigenvalues, gamma)
        for sign in (-1.0, 1.0)
    )
    return np.asarray((above - below) / (2.0 * step))


def _log_values(
    points: FloatArray, kernel: Kernel, factor: float, n_eigenvalues: int, gamma: float
) -> FloatArray:
    """Return log(λ + γ) of W of these points, (K,), with σ² times this factor."""
    scaled = replace(kernel, sigma_squared=max(factor * kernel.sigma_squared, 1e-300))
    matrix = DiffusionOperator(KernelAffinity(points, scaled)).to_dense()
    found = eigvalsh(matrix, overwrite_a=True, check_finite=False)
    return np.asarray(np.log(descending(found)[:n_eigenvalues] + gamma))


def with_scale_error(
    spectrum: Spectrum, operator: PSDOperator, gamma: float, rng: np.random.Generator
) -> Spectrum:
    r"""Return the spectrum with 95 % confidence limits for the true σ², where that was sampled.

    With δ the relative standard error of σ² and gᵢ the slope of log(λᵢ + γ) in log σ²,

    .. math:: l_i + \gamma \to (l_i + \gamma)\, e^{-2 \delta |g_i|}, \qquad
              u_i + \gamma \to (u_i + \gamma)\, e^{2 \delta |g_i|} .

    The slopes come from a random sample of the rows: the spectrum of W is that of an integral
    operator that all samples share, and δ ~ 1e-4 makes the second order negligible. All values
    move together with σ², so the 2-norm grows by 2 δ ‖g‖. Where 2 δ exceeds 1 %, as for a median
    in a gap of the distances, 2 δ \|gᵢ\| is the change of log(λᵢ + γ) of the sample between σ²
    and σ² (1 ± 2 δ). `probabilistic`, as it rests on a standard error and a sample. A norm above
    0.1, the distance between two samples of small data, gives an `AccuracyWarning`.
    """
    scale, error = operator.sigma_squared, operator.sigma_squared_error
    affinity = operator.affinity if isinstance(operator, DiffusionOperator) else operator
    if scale is None or not error > 0 or not hasattr(affinity, "sample"):
        return spectrum
    k = spectrum.n_eigenvalues
    points = affinity.sample(sample_rows(k), rng)
    relative = 2.0 * error / scale
    narrow = relative <= 0.01
    if narrow:
        moved = relative * np.abs(slopes(points, affinity.kernel, k, gamma))
    else:
        # A gap may begin at 0, but for rounding: there W is the identity, but for duplicates.
        lower = 1.0 - relative if relative < 1.0 - 1e-9 else 0.0
        here, *ends = (
            _log_values(points, affinity.kernel, factor, k, gamma)
            for factor in (1.0, lower, 1.0 + relative)
        )
        moved = np.abs(np.array(ends) - here).max(axis=0)
    bound = float(np.linalg.norm(moved))
    if bound > 0.1:
        where = "where there are few distances" if narrow else "in a gap of the distances"
        warn(
            f"bandwidth='median' gives σ²={scale:.4g} ± {relative * scale:.2g}, an error of up to "
            f"{bound:.2g} in log(λ + γ): the median falls {where}. "
            "Use bandwidth='mean' or a number (σ² itself).",
            AccuracyWarning,
            severity=bound,
        )
    sampled = {"sigma_squared_standard_error": error, "sigma_squared_bound": bound}
    kept = spectrum.bound_kind in ("expectation", "statistical", "none")
    return replace(
        spectrum,
        lower=np.maximum((spectrum.lower + gamma) * np.exp(-moved) - gamma, 0.0),
        upper=(spectrum.upper + gamma) * np.exp(moved) - gamma,
        bound_kind=spectrum.bound_kind if kept else "probabilistic",
        stats={**spectrum.stats, **sampled},
    )
