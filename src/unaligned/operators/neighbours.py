"""The k-NN kernel: Gaussian affinities between near neighbours only."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ..errors import InputError
from .base import SparseOperator
from .nearest import nearest_neighbours, nearest_of_distances
from .points import Points
from .rows import squared_distances_of_pairs


def neighbour_affinity(
    points: Points,
    n_neighbors: int,
    sigma_squared: float,
    *,
    precomputed: bool = False,
) -> SparseOperator:
    r"""Return the sparse Gaussian affinity between near neighbours.

    .. math:: K_{ij} = \exp(-d_{ij}^2 / \sigma^2) \text{ if } i \in N_k(j) \text{ or } j \in N_k(i)

    and 0 elsewhere; every point is its own neighbour. Cutting a positive kernel off leaves
    negative eigenvalues, so it is not `definite`. Where distances tie, those of smaller index
    are neighbours (see `nearest_neighbours`). N² d time at worst (a tree where there are few
    features), O(N k) memory.

    Parameters
    ----------
    points
        Shape (N, d), dense or CSR; with `precomputed`, the squared distances, (N, N).
    n_neighbors
        k, the point itself included.
    sigma_squared
        The kernel scale σ².

    Examples
    --------
    >>> K = neighbour_affinity(np.array([[0.0], [1.0], [3.0]]), 2, 1.0)
    >>> K.to_dense().round(4)
    array([[1.    , 0.3679, 0.    ],
           [0.3679, 1.    , 0.0183],
           [0.    , 0.0183, 1.    ]])
    """
    n_samples = int(points.shape[0])
    if n_neighbors > n_samples:
        raise InputError(
            f"n_neighbors={n_neighbors} needs at least as many samples; there are {n_samples}. "
            "Lower n_neighbors, or leave it out to keep all affinities."
        )
    first = np.repeat(np.arange(n_samples), n_neighbors - 1)
    if precomputed:
        second = nearest_of_distances(points, n_neighbors - 1).ravel()
        squared = points[first, second]
    else:
        second = nearest_neighbours(points, n_neighbors - 1).ravel()
        squared = squared_distances_of_pairs(points, first, second)
    weights = np.exp(-squared / sigma_squared)
    directed = sparse.csr_array((weights, (first, second)), shape=(n_samples, n_samples))
    matrix = directed.maximum(directed.T) + sparse.eye_array(n_samples, format="csr")
    affinity = SparseOperator(matrix, definite=False)
    affinity.sigma_squared = sigma_squared
    affinity.entries_evaluated = int(weights.size)
    return affinity
