"""The decay of a spectrum, and the γ and K that it suggests."""

from typing import NamedTuple

import numpy as np

from .. import defaults
from .._check import FloatArray

# The smallest and largest γ suggested: rounding is below, most of the signal above.
GAMMA_RANGE = (defaults.GAMMA, 1e-2)


# Rules that read γ off the spectra: the knee, and just above the last eigenvalue.
GAMMA_RULES = ("auto", "cutoff")


class Knee(NamedTuple):
    """The position at which the decay of a spectrum slows down.

    Attributes
    ----------
    position
        The number of eigenvalues before the knee.
    ratio_before, ratio_after
        The geometric mean of λᵢ/λᵢ₊₁ before and after the knee.
    """

    position: int
    ratio_before: float
    ratio_after: float


def float_floor(n_samples: int, largest: float = 1.0) -> float:
    """Return the value below which an eigenvalue is rounding: √N · eps · λ₁."""
    return float(np.sqrt(n_samples) * np.finfo(np.float64).eps * largest)


def find_knee(eigenvalues: FloatArray, floor: float) -> Knee | None:
    r"""Return where the ratios λᵢ/λᵢ₊₁ drop towards 1, or None if they do not.

    The remark on γ in Section 4.2.1 (after Ding and Ma, 2020): signal eigenvalues are well apart,
    noise eigenvalues close together. log λ is fitted by two straight lines; their slopes are the
    mean log-ratios, and the break with the smallest squared error is the knee, if the second
    slope is at most half of the first. Eigenvalues below `floor` are ignored, and so is the
    first, which is 1 for every diffusion operator. O(K²).
    """
    logs = np.log(eigenvalues[1:][eigenvalues[1:] > floor])
    shortest = 8  # eigenvalues on either side of a knee
    if logs.size < 2 * shortest:
        return None
    breaks = np.arange(shortest, logs.size - shortest + 1)
    errors = [_line(logs[:b])[1] + _line(logs[b:])[1] for b in breaks]
    best = int(breaks[int(np.argmin(errors))])
    before, after = -_line(logs[:best])[0], -_line(logs[best:])[0]
    if before <= 0 or after > 0.5 * before:
        return None
    return Knee(best + 1, float(np.exp(before)), float(np.exp(after)))


def gamma_by_rule(rule: str, eigenvalues: FloatArray, n_samples: int) -> float:
    """Return γ for this spectrum by one of `GAMMA_RULES`; a collection takes the largest.

    `"auto"` is `suggest_gamma`. `"cutoff"` is the rule of Appendix C, slightly larger than λ_K:
    the next number of one significant digit, and not below 1e-8.
    """
    if rule == "auto":
        return suggest_gamma(eigenvalues, n_samples)[0]
    last = float(eigenvalues[-1])
    if last < GAMMA_RANGE[0]:
        return GAMMA_RANGE[0]
    digit, exponent = f"{last:.0e}".split("e")  # nearest, so above or below
    return float(f"{int(digit) + (float(f'{last:.0e}') <= last)}e{exponent}")


def suggest_gamma(eigenvalues: FloatArray, n_samples: int) -> tuple[float, str]:
    """Return a γ for this spectrum, a power of ten, and the reason for it."""
    low, high = GAMMA_RANGE
    knee = find_knee(eigenvalues, float_floor(n_samples, float(eigenvalues[0])))
    if knee is None:
        return low, "no knee: the spectrum decays evenly, so γ only guards against rounding"
    level = float(eigenvalues[knee.position])
    gamma = float(10.0 ** np.clip(np.round(np.log10(level)), np.log10(low), np.log10(high)))
    return gamma, (
        f"the ratios λᵢ/λᵢ₊₁ fall from {knee.ratio_before:.3g} to {knee.ratio_after:.3g} at "
        f"i={knee.position}, where λ={level:.1e}: smaller ones look like noise"
    )


def suggest_count(eigenvalues: FloatArray, gamma: float) -> tuple[int, str]:
    """Return a K for this spectrum under γ, and the reason for it."""
    above = int((eigenvalues > gamma).sum())
    if above >= eigenvalues.size:
        return eigenvalues.size, f"all {eigenvalues.size} eigenvalues are above γ={gamma:.0e}"
    return max(above, 1), f"eigenvalue {above + 1} and all after it are below γ={gamma:.0e}"


def _line(values: FloatArray) -> tuple[float, float]:
    """Return slope and squared error of the straight line fitted to values."""
    x = np.arange(values.size) - (values.size - 1) / 2
    slope = float(x @ values / (x @ x))
    residual = values - values.mean() - slope * x
    return slope, float(residual @ residual)
