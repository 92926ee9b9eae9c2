"""What the error of a sampled σ² does to a signature."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import eigvalsh

from .._check import FloatArray
from ..errors import AccuracyWarning, warn
from ..operators.affinity import KernelAffinity
from ..operators.base import PSDOperator
from ..operators.diffusion import DiffusionOperator
from ..operators.kernel import Kernel
from .base import Spectrum, descending

# Rows of the sample, and no fewer than four times K: on tori and on CytoTree the norm of the
# slopes from 1000 rows (43.1, 32.5, 42.5) is within 5 % of that from 4000 (44.2, 32.7, 44.8).
_SAMPLE_ROWS = 1000
_STANDARD_ERRORS = 2.0
_STEP = 1e-3  # of log σ²: log(λ + γ) is smooth on this scale, and moves far beyond rounding
_NARROW = 0.01  # relative: up to here the slope says how far a value moves
_TOLD = 0.1  # a movement of LES beyond which the user is told: that between seeds of small data


def sample_rows(n_eigenvalues: int) -> int:
    """Return how many rows the effect of σ² on K eigenvalues is read off."""
    return max(_SAMPLE_ROWS, 4 * n_eigenvalues)


def slopes(points: FloatArray, kernel: Kernel, n_eigenvalues: int, gamma: float) -> FloatArray:
    r"""Return :math:`\partial \log(\lambda_i + \gamma) / \partial \log \sigma^2`, (K,).

    A central difference of two spectra of these points, (n, d): O(n³), 0.2 s for 1000 points.

    Examples
    --------
    >>> from unaligned.operators.kernel import Gaussian
    >>> points = np.random.default_rng(0).normal(size=(200, 2))
    >>> np.round(slopes(points, Gaussian(3.0), 3, 1e-8), 1) + 0.0
    array([ 0. , -1. , -0.7])
    """
    below, above = (
        _logs(points, kernel, float(np.exp(step)), n_eigenvalues, gamma)
        for step in (-_STEP, _STEP)
    )
    slope: FloatArray = (above - below) / (2.0 * _STEP)
    return slope


def _logs(
    points: FloatArray, kernel: Kernel, factor: float, n_eigenvalues: int, gamma: float
) -> FloatArray:
    """Return log(λ + γ) of W of these points, (K,), with σ² times this factor."""
    scaled = replace(kernel, sigma_squared=factor * kernel.sigma_squared)
    matrix = DiffusionOperator(KernelAffinity(points, scaled)).to_dense()
    found = eigvalsh(matrix, overwrite_a=True, check_finite=False)
    logs: FloatArray = np.log(descending(found)[:n_eigenvalues] + gamma)
    return logs


def _moved(
    points: FloatArray, kernel: Kernel, relative: float, n_eigenvalues: int, gamma: float
) -> FloatArray:
    """Return how far log(λ + γ) moves if σ² is off by this much, relative to it, (K,)."""
    if relative <= _NARROW:
        return relative * np.abs(slopes(points, kernel, n_eigenvalues, gamma))
    smallest = float(np.finfo(np.float64).eps)  # a gap may begin at 0: then W is the identity
    here, *ends = (
        _logs(points, kernel, factor, n_eigenvalues, gamma)
        for factor in (1.0, max(1.0 - relative, smallest), 1.0 + relative)
    )
    moved: FloatArray = np.abs(np.array(ends) - here).max(axis=0)
    return moved


def with_scale_error(
    spectrum: Spectrum, operator: PSDOperator, gamma: float, rng: np.random.Generator
) -> Spectrum:
    r"""Return the spectrum with limits that hold for the true σ² but for one case in twenty.

    With δ the relative standard error of σ² and gᵢ the slope of log(λᵢ + γ) in log σ²,

    .. math:: l_i + \gamma \to (l_i + \gamma)\, e^{-2 \delta |g_i|}, \qquad
              u_i + \gamma \to (u_i + \gamma)\, e^{2 \delta |g_i|} .

    The slopes come from a random sample of the rows: the spectrum of W is that of an
    integral operator that all samples share, and δ ~ 1e-4 makes the second order (δ² times the
    curvature) nothing. All values move together with one σ², so the 2-norm grows by
    2 δ ‖g‖, which is what a second spectrum at another σ² would show. Where 2 δ is beyond
    1 %, as for a median in a gap of the distances, 2 δ \|gᵢ\| is how far log(λᵢ + γ) of the
    sample moves to σ² (1 ± 2 δ). Rests on a standard error and a sample, hence
    `probabilistic`. A norm above 0.1 is told by an `AccuracyWarning`.
    """
    scale, error = operator.sigma_squared, operator.sigma_squared_error
    affinity = operator.affinity if isinstance(operator, DiffusionOperator) else operator
    if scale is None or not error > 0 or not hasattr(affinity, "sample"):
        return spectrum
    points = affinity.sample(sample_rows(spectrum.n_eigenvalues), rng)
    relative = _STANDARD_ERRORS * error / scale
    moved = _moved(points, affinity.kernel, relative, spectrum.n_eigenvalues, gamma)
    bound = float(np.linalg.norm(moved))
    if bound > _TOLD:
        _warn(bound, scale, relative)
    stats = {
        **spectrum.stats,
        "sigma_squared_standard_error": error,
        "sigma_squared_bound": bound,
    }
    kept = spectrum.bound_kind in ("expectation", "none")
    return replace(
        spectrum,
        lower=np.maximum((spectrum.lower + gamma) * np.exp(-moved) - gamma, 0.0),
        upper=(spectrum.upper + gamma) * np.exp(moved) - gamma,
        bound_kind=spectrum.bound_kind if kept else "probabilistic",
        stats=stats,
    )


def _warn(bound: float, scale: float, relative: float) -> None:
    """Say that σ² is not known well enough, why, and what can be done."""
    where = "in a gap of the distances, as between clusters that are far apart"
    if relative <= _NARROW:
        where = "where there are few distances"
    warn(
        f"bandwidth='median' gives σ²={scale:.4g} ± {relative * scale:.2g}, which bounds the "
        f"error of log(λ + γ) by {bound:.2g} only: the median falls {where}. "
        "Give bandwidth='mean' or a number (σ² itself).",
        AccuracyWarning,
    )
