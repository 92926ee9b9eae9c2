"""Stochastic Lanczos quadrature: how the eigenvalues of a matrix lie, from products with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._check import FloatArray

# Probes worked on together: this many bytes of them stay in a core's cache.
_BLOCK_BYTES = 1 << 20
_FEWEST = 8  # columns; with fewer a sparse product spends its time on indices
_BREAKDOWN = 1e-10  # a residual this small, of a matrix of norm 1, is rounding


@dataclass(frozen=True, eq=False)
class Quadrature:
    r"""Nodes θ and weights ω that average a function over the eigenvalues of a matrix.

    .. math:: \frac{1}{N} \operatorname{tr} f(A) \approx
              \frac{1}{p} \sum_{l=1}^p \sum_{k=1}^m \omega_{lk} f(\theta_{lk})

    Attributes
    ----------
    nodes, weights
        Shape (p, m): one row per probe. Weights of a row sum to 1.
    """

    nodes: FloatArray
    weights: FloatArray

    @property
    def n_steps(self) -> int:
        """The number of nodes per probe, m."""
        return int(self.nodes.shape[1])


def lanczos_quadrature(
    matrix: Any, n_steps: int, n_probes: int, rng: np.random.Generator
) -> Quadrature:
    r"""Return the Gauss quadrature of a symmetric matrix seen from random directions.

    Each probe is a direction v drawn uniformly from the sphere. m Lanczos steps from it give a
    tridiagonal T = U Θ Uᵀ, and :math:`v^T f(A) v \approx \sum_k U_{1k}^2 f(\Theta_{kk})`, exact
    for polynomials of degree 2m - 1 (Ubaru, Chen and Saad, 2017). There is no
    reorthogonalisation: what rounding repeats of a converged eigenvalue shares its weight.

    Blocked: all probes of a block go through one product with the matrix per step. O(m p nnz)
    time, 4 N blocks of at most p columns of memory.

    Parameters
    ----------
    matrix
        Shape (N, N), symmetric, of norm about 1, dense or sparse.
    n_steps
        m; no more than N are taken.
    n_probes
        p.

    Examples
    --------
    >>> rule = lanczos_quadrature(np.diag([0.0, 1.0]), 2, 5, np.random.default_rng(0))
    >>> bool(np.allclose(rule.nodes, [0.0, 1.0])), bool(np.allclose(rule.weights.sum(axis=1), 1))
    (True, True)
    """
    n = int(matrix.shape[0])
    width = min(n_probes, max(_FEWEST, _BLOCK_BYTES // (8 * n)))
    counts = [min(width, n_probes - start) for start in range(0, n_probes, width)]
    parts = [_tridiagonal(matrix, min(n_steps, n), count, rng) for count in counts]
    nodes, vectors = np.linalg.eigh(np.concatenate(parts))
    return Quadrature(nodes, vectors[:, 0, :] ** 2)


def _tridiagonal(matrix: Any, n_steps: int, n_probes: int, rng: np.random.Generator) -> FloatArray:
    """Return the matrices T of Lanczos runs from random directions, (n_probes, m, m)."""
    current = rng.standard_normal((int(matrix.shape[0]), n_probes))
    current /= _norms(current)
    previous = np.zeros_like(current)
    beta = np.zeros(n_probes)
    T = np.zeros((n_probes, n_steps, n_steps))
    for step in range(n_steps):
        residual = matrix @ current
        alpha = np.einsum("ij,ij->j", current, residual)
        T[:, step, step] = alpha
        if step + 1 == n_steps:
            break
        previous *= beta
        residual -= previous
        np.multiply(current, alpha, out=previous)  # its place is free now
        residual -= previous
        beta = _norms(residual)
        # A probe whose space is exhausted goes on with zeros: they have no weight.
        beta[beta < _BREAKDOWN] = 0.0
        residual *= np.divide(1.0, beta, out=np.zeros_like(beta), where=beta > 0)
        T[:, step, step + 1] = T[:, step + 1, step] = beta
        previous, current = current, residual
    return T


def _norms(block: FloatArray) -> FloatArray:
    norms: FloatArray = np.sqrt(np.einsum("ij,ij->j", block, block))
    return norms
