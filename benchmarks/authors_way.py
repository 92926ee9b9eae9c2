"""The authors' way: what Algorithms 1 and 2 of the paper say, written straightforwardly.

The baseline of every benchmark here; nothing in the package uses it.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, orth, solve_triangular, svd
from scipy.spatial.distance import pdist, squareform

Array = np.ndarray


def diffusion_operator(points: Array) -> Array:
    """Eqs. 1-4 with σ² = 2·median: pdist, squareform, median, exp, two normalisations."""
    squared = squareform(pdist(points, "sqeuclidean"))
    affinity = np.exp(-squared / (2 * np.median(squared)))
    density = affinity.sum(axis=1)
    affinity = affinity / density[:, None] / density[None, :]
    root = np.sqrt(affinity.sum(axis=1))
    return affinity / root[:, None] / root[None, :]


def approximate_eigenvalues(W: Array, n_eigenvalues: int, rng: np.random.Generator) -> Array:
    """Algorithm 1 with M = 2K."""
    Omega = orth(rng.standard_normal((W.shape[0], 2 * n_eigenvalues)))
    Y = W @ Omega
    nu = 2.2e-16 * np.linalg.norm(Y, 2)
    Y = Y + nu * Omega
    B = Omega.T @ Y
    C = cholesky((B + B.T) / 2, lower=False)
    factor = solve_triangular(C, Y.T, trans="T").T
    sigma = svd(factor, full_matrices=False)[1]
    return np.maximum(0.0, sigma[:n_eigenvalues] ** 2 - nu)


def signature(points: Array, n_eigenvalues: int, gamma: float, rng: np.random.Generator) -> Array:
    """F_LES of Algorithm 2."""
    return np.log(approximate_eigenvalues(diffusion_operator(points), n_eigenvalues, rng) + gamma)


def exact_signature(points: Array, n_eigenvalues: int, gamma: float) -> Array:
    """Return the truth that errors are measured against: eigvalsh of the same operator."""
    eigenvalues = np.linalg.eigvalsh(diffusion_operator(points))[::-1][:n_eigenvalues]
    return np.log(np.maximum(eigenvalues, 0.0) + gamma)
