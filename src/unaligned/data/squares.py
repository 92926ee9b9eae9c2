"""Whether points look like a square matrix of another kind."""

import numpy as np
from scipy import sparse

from .dataset import Dataset


def matrix_kind(dataset: Dataset) -> str | None:
    """Return the kind that the values of points seem to be, `graph` or `distances`, or None.

    Both are square, symmetric and non-negative with a zero diagonal. Other entries of 0 are
    missing edges; without any it is a distance matrix. Preprocessed and lazy points are not
    examined. O(N²) time for such a matrix, O(N) for nearly all others.
    """
    values, n = dataset.values, dataset.n_samples
    if dataset.kind != "points" or dataset.preprocess or dataset.is_lazy:
        return None
    if n < 3 or n != dataset.n_features or values.diagonal().any():
        return None
    first = abs(values[[0]] - values[:, [0]].T.astype(np.float64))
    if first.max() > 1e-8 * values[[0]].max() or values.min() < 0:
        return None
    values = values.astype(np.float64, copy=False)  # differences of unsigned integers wrap
    largest = float(values.max())
    if largest == 0 or float(abs(values - values.T).max()) > 1e-8 * largest:
        return None
    n_edges = values.nnz if sparse.issparse(values) else int(np.count_nonzero(values))
    return "distances" if n_edges == n * (n - 1) else "graph"
