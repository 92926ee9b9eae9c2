"""The graph of a dataset: nearest neighbours of points, or the adjacency that was given."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..errors import InputError
from .points import require_representable

# Core-time at N=3000: a tree 0.01 s at d=3 and 0.10 s at d=10, the matrix product 0.05 and 0.06.
# The tree grows slower with N, so it comes back for large sets.
_FEW_FEATURES = 8
_MANY_SAMPLES = 10_000


def adjacency_of(values: Any, kind: str, n_neighbors: int) -> Any:
    """Return the weights between the nodes, (N, N): a `graph` as it is, otherwise neighbours.

    Parameters
    ----------
    values
        `points` (dense or CSR), `distances` or a `graph` (dense or sparse).
    kind
        Which of them.
    n_neighbors
        k, the point itself not counted; plays no part for a `graph`.
    """
    if kind == "graph":
        return values
    return neighbour_graph(values, n_neighbors, precomputed=kind == "distances")


def neighbour_graph(
    points: Any, n_neighbors: int, *, precomputed: bool = False
) -> sparse.csr_array:
    r"""Return the symmetrised graph of exact nearest neighbours, with weights 0 and 1.

    .. math:: A_{ij} = 1 \text{ if } i \in N_k(j) \text{ or } j \in N_k(i), \text{ else } 0

    A point is not its own neighbour. Where distances tie (duplicates, integer data) any of the
    nearest are taken, and which may depend on the order of rows. N² d time at worst (a tree
    where there are few features), O(N k) memory.

    Parameters
    ----------
    points
        Shape (N, d), dense or CSR; with `precomputed`, distances, (N, N).
    n_neighbors
        k, the point itself not counted.

    Examples
    --------
    >>> import numpy as np
    >>> neighbour_graph(np.array([[0.0], [1.0], [3.0]]), 1).toarray()
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    from sklearn.neighbors import NearestNeighbors

    n_samples, n_features = (int(size) for size in points.shape)
    if n_neighbors >= n_samples:
        raise InputError(
            f"n_neighbors={n_neighbors} needs more than {n_neighbors} samples; there are "
            f"{n_samples}. Lower n_neighbors."
        )
    algorithm = "auto"
    if precomputed:
        points = points.toarray() if sparse.issparse(points) else points
    elif sparse.issparse(points):
        require_representable(float(np.abs(points.data).max(initial=0.0)))
    else:
        require_representable(float(np.abs(points).max()))
        # What all points share would eat the digits in which they differ.
        points = points - points.mean(axis=0)
        if n_features > _FEW_FEATURES and n_samples <= _MANY_SAMPLES:
            algorithm = "brute"
    metric = "precomputed" if precomputed else "euclidean"
    search = NearestNeighbors(n_neighbors=n_neighbors, metric=metric, algorithm=algorithm)
    directed = sparse.csr_array(search.fit(points).kneighbors_graph(mode="connectivity"))
    return directed.maximum(directed.T)
