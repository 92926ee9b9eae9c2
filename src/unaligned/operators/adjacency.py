"""The graph of a dataset: nearest neighbours of points, or the adjacency that was given."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..errors import InputError
from .nearest import nearest_neighbours, nearest_of_distances


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

    A point is not its own neighbour. Where distances tie (duplicates, integer data) those of
    smaller index are taken, so there the graph depends on the order of rows, and on nothing
    else (see `nearest_neighbours`). N² d time at worst (a tree where there are few features),
    O(N k) memory.

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
    n_samples = int(points.shape[0])
    if n_neighbors >= n_samples:
        raise InputError(
            f"n_neighbors={n_neighbors} needs more than {n_neighbors} samples; there are "
            f"{n_samples}. Lower n_neighbors."
        )
    if precomputed:
        distances = points.toarray() if sparse.issparse(points) else points
        nearest = nearest_of_distances(distances, n_neighbors)
    else:
        nearest = nearest_neighbours(points, n_neighbors)
    starts = np.arange(0, nearest.size + 1, n_neighbors)
    directed = sparse.csr_array(
        (np.ones(nearest.size), nearest.ravel(), starts), shape=(n_samples, n_samples)
    )
    return directed.maximum(directed.T)
