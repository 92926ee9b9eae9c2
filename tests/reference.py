"""The paper's equations written out plainly, sharing no code with the package."""

import numpy as np
from scipy.linalg import orth
from scipy.spatial.distance import pdist, squareform


def diffusion_matrix(distances, factor=2.0):
    """Eqs. 1-4 with loops; the median is over the whole N×N matrix, zero diagonal included."""
    squared = distances**2
    K = np.exp(-squared / (factor * np.median(squared)))
    N = len(K)
    W_tilde, W_dm, W = np.empty((3, N, N))
    D_tilde = K.sum(axis=1)
    for i in range(N):
        for j in range(N):
            W_tilde[i, j] = K[i, j] / (D_tilde[i] * D_tilde[j])
    D = W_tilde.sum(axis=1)
    for i in range(N):
        W_dm[i] = W_tilde[i] / D[i]
    for i in range(N):
        for j in range(N):
            W[i, j] = np.sqrt(D[i]) * W_dm[i, j] / np.sqrt(D[j])
    return W


def diffusion_of_points(points):
    return diffusion_matrix(squareform(pdist(np.asarray(points, dtype=float))))


def eigenvalues(W, k=None):
    """All eigenvalues from large to small, negative rounding taken as 0."""
    return np.maximum(np.linalg.eigvalsh((W + W.T) / 2)[::-1], 0.0)[:k]


def les(first, second, gamma=1e-8):
    """The root of Eq. 11."""
    return np.sqrt(np.sum((np.log(first + gamma) - np.log(second + gamma)) ** 2))


def algorithm_1(W, K, M, rng, mu=2.2e-16):
    """Algorithm 1 line by line."""
    Omega = orth(rng.standard_normal((len(W), M)))
    Y = W @ Omega
    nu = mu * np.linalg.norm(Y, 2)
    Y = Y + nu * Omega
    B = Omega.T @ Y
    C = np.linalg.cholesky((B + B.T) / 2).T
    sigma = np.linalg.svd(Y @ np.linalg.inv(C), compute_uv=False)
    return np.sort(np.maximum(0.0, sigma[:K] ** 2 - nu))[::-1]


def random_spd(rng, size, condition=1e3):
    """A random SPD matrix with eigenvalues spread over `condition`."""
    Q = np.linalg.qr(rng.standard_normal((size, size)))[0]
    return with_spectrum(Q, condition ** -rng.uniform(size=size))


def with_spectrum(Q, values):
    matrix = (Q * values) @ Q.T
    return (matrix + matrix.T) / 2


def matrix_log(W):
    values, U = np.linalg.eigh(W)
    return (U * np.log(values)) @ U.T


def matrix_power(W, t):
    values, U = np.linalg.eigh(W)
    return (U * np.maximum(values, 0.0) ** t) @ U.T
