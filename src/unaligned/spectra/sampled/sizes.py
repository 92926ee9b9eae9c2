"""How many landmarks, functions and sampled rows an error takes, by counted work."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from ..base import Accuracy
from .estimate import DEGREES_SHARE, SUBSPACE_SHARE, SampledSpectrum

MOST_LANDMARKS = 6000  # their matrix takes 288 MB


class Sizes(NamedTuple):
    """The numbers of landmarks n, of functions m, and of sampled rows s."""

    landmarks: int
    functions: int
    rows: int

    def work(self, n_samples: int) -> float:
        """Return the multiply-adds of one round; one affinity takes 200, of about 50 features.

        >>> round(Sizes(2000, 400, 1000).work(200_000) / 200_000 / 1e6, 1)  # per row
        2.0
        """
        n, m, s = self
        passes = n_samples * ((n + s) * (m + 200) + m * m)
        return float(passes + 5 * n * n * m + s * m * m + 20 * m**3)


def first_sizes(n_samples: int, n_eigenvalues: int, max_landmarks: int = MOST_LANDMARKS) -> Sizes:
    """Return the sizes of the first round.

    One round of these reaches 0.1 on Gaussians with variances 1/i. With fewer than 4 K landmarks,
    or where few functions end amid close eigenvalues, stated errors are too small.
    """
    n = min(n_samples, max(max_landmarks, 4 * n_eigenvalues), max(2000, 10 * n_eigenvalues))
    m = min(n, max(11 * n_eigenvalues // 4, 60))
    s = max(1000, 4 * m)
    return Sizes(n, m, s if 2 * s < n_samples else n_samples)  # all rows have no noise


def larger_sizes(
    sizes: Sizes,
    found: SampledSpectrum,
    n_samples: int,
    accuracy: Accuracy,
    max_landmarks: int = MOST_LANDMARKS,
) -> Sizes:
    r"""Return the cheapest sizes whose predicted error is at most 0.7 `tol`, or the best ones.

    The residual of a function is what random landmarks mix in of the eigenfunctions beyond m,

    .. math:: \|R_i\|^2 \propto \frac{1}{n} \Big(1 - \frac{n}{N}\Big) \sum_{j > m} \lambda_j^2

    with the λ beyond those known on a power law. The prediction is scaled by what it says of these
    sizes. At most 1600 functions, and 2²³ sampled rows × functions: 64 MB for each thread and sum.
    """
    theta = np.maximum(found.ritz_values, 1e-300)
    known = min(sizes.functions, theta.size)  # fewer where the landmarks have a low rank
    # The last quarter is biased by noise, so the law is fitted before it.
    first, last = max(known // 3, 1), min(max(3 * known // 4, 2), known)
    decay = math.log(theta[first - 1] / theta[last - 1]) / max(math.log(last / first), 1e-9)
    decay = min(max(decay, 0.6), 8.0)
    relative = found.residual / np.maximum(found.values + accuracy.gamma, 1e-300) ** 2

    def tail(n: int, m: int) -> float:
        left = max(1.0 / n - 1.0 / n_samples, 0.0)
        return float(left * float(m) ** (1.0 - 2.0 * decay))

    def error(wanted: Sizes) -> float:
        n, m, s = wanted
        squares = relative * tail(n, m) / max(tail(*sizes[:2]), 1e-300)
        noise = 4.0 * squares * s / max(s - m, 1) ** 2 * (1.0 - s / n_samples)
        beyond = float(theta[last - 1]) * (last / m) ** decay  # λ_m, as `doubt` has it
        shares = np.clip(beyond / np.maximum(found.values, 1e-300), SUBSPACE_SHARE, 1.0)
        parts = noise, (shares * squares) ** 2, (0.5 * m / s * squares) ** 2
        degrees = float(np.sum((DEGREES_SHARE * found.degrees) ** 2)) * sizes.landmarks / n
        return math.sqrt(float(np.sum(parts)) + degrees)

    n, m, s = sizes
    steps = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0)
    choices = [
        Sizes(a, b, c)
        for a, b, ratio in itertools.product(
            {min(int(n * step), max_landmarks, n_samples) for step in steps},
            {min(int(m * step), 1600, n_samples) for step in steps},
            (4.0, 6.0, 8.0, 12.0, 16.0, 24.0),
        )
        if 2 * b <= a and a >= n and b >= m
        for c in [min(int(ratio * b), n_samples, max((1 << 23) // b, s))]
        if c >= s
    ]
    choices = sorted(set(choices) or {sizes})
    stated = float(np.linalg.norm(found.half_widths))
    wanted = 0.7 * accuracy.tol * error(sizes) / max(stated, 1e-300)
    good = [choice for choice in choices if error(choice) <= wanted]
    if good:
        return min(good, key=lambda choice: choice.work(n_samples))
    return min(choices, key=error)
