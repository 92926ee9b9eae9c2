"""Point clouds with a known shape: the tori of the paper's Appendix B."""

from __future__ import annotations

import numpy as np

from .. import _check
from .._check import FloatArray, RNGLike

RADII = (10.0, 3.0, 1.0)


def torus_angles(n_samples: int, n_angles: int = 3, *, rng: RNGLike = None) -> FloatArray:
    """Return angles drawn uniformly from [0, 2π], (n_samples, n_angles).

    Give the same angles to several tori to couple them point by point (Appendix B.3). As
    everywhere here, `rng=None` is the seed 0.
    """
    n_samples = _check.positive_int("n_samples", n_samples)
    seed = rng if isinstance(rng, np.random.Generator) else _check.root_seed(rng)
    generator = np.random.default_rng(seed)
    return generator.uniform(0.0, 2.0 * np.pi, size=(n_samples, n_angles))


def torus2(angles: FloatArray, *, radius_scale: float = 1.0) -> FloatArray:
    """Return points of the 2-torus in space, (N, 3); Appendix B [appeq:tori_eqs].

    The minor radius R₂ = 3 is scaled by `radius_scale`, the paper's c: with c → 0 the torus
    becomes a circle.

    Examples
    --------
    >>> torus2(np.zeros((1, 2)))
    array([[13.,  0.,  0.]])
    """
    r1, r2, _ = RADII
    theta1, theta2 = angles[:, 0], angles[:, 1]
    r2 = radius_scale * r2
    ring = r1 + r2 * np.cos(theta2)
    return np.column_stack([ring * np.cos(theta1), ring * np.sin(theta1), r2 * np.sin(theta2)])


def torus3(angles: FloatArray, *, radius_scale: float = 1.0) -> FloatArray:
    """Return points of the 3-torus in four dimensions, (N, 4); Appendix B [appeq:tori_eqs].

    The smallest radius R₃ = 1 is scaled by `radius_scale`: with c → 0 it becomes a 2-torus.

    Examples
    --------
    >>> torus3(np.zeros((1, 3)))
    array([[14.,  0.,  0.,  0.]])
    """
    r1, r2, r3 = RADII
    theta1, theta2, theta3 = angles[:, 0], angles[:, 1], angles[:, 2]
    r3 = radius_scale * r3
    tube = r2 + r3 * np.cos(theta3)
    ring = r1 + tube * np.cos(theta2)
    return np.column_stack(
        [
            ring * np.cos(theta1),
            ring * np.sin(theta1),
            tube * np.sin(theta2),
            r3 * np.sin(theta3),
        ]
    )
