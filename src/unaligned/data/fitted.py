"""Preprocessing of rows that are read by blocks: what a step must know is learnt in one pass."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .._check import FloatArray
from .derived import MappedRows
from .preprocess import ROW_BY_ROW, apply_steps, require_components
from .sources import ArrayRows, RowSource

# Up to so many features PCA takes its axes from the covariance, 8 d² bytes; beyond, the rows
# are read into memory.
_MOST_FEATURES = 2000


def prepared_rows(source: RowSource, steps: tuple[str, ...]) -> RowSource:
    """Return the rows with the steps done block by block, one pass for each that must learn.

    Examples
    --------
    >>> source = ArrayRows(np.array([[1.0, 5.0], [3.0, 5.0]]))
    >>> prepared_rows(source, ("standardize",)).read()
    array([[-1.,  0.],
           [ 1.,  0.]])
    """
    for step in steps:
        name, _, argument = step.partition(":")
        if name in ROW_BY_ROW:
            source = MappedRows(source, partial(apply_steps, steps=(step,)))
        elif name == "standardize":
            source = MappedRows(source, _scaler(source).transform)
        elif source.n_features <= _MOST_FEATURES:
            mean, axes = _axes(source, int(float(argument)))
            source = MappedRows(source, partial(_scores, mean, axes), axes.shape[1])
        else:
            source = ArrayRows(apply_steps(source.read(), (step,)))
    return source


def _scaler(source: RowSource) -> Any:
    """Return scikit-learn's scaler with the means and variances of all rows."""
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler()
    for block in source.blocks():
        scaler.partial_fit(block.astype(np.float64))
    return scaler


def _axes(source: RowSource, n_components: int) -> tuple[FloatArray, FloatArray]:
    """Return the mean, (d,), and the first principal axes, (d, k): O(N d²) time, 8 d² bytes."""
    require_components(n_components, source.shape)
    d = source.n_features
    sums, products = np.zeros(d), np.zeros((d, d))
    # The mean of the first rows is near enough to that of all for the squares to keep digits.
    centre = next(source.blocks()).mean(axis=0, dtype=np.float64)
    for block in source.blocks():
        rows = block.astype(np.float64) - centre
        sums += rows.sum(axis=0)
        products += rows.T @ rows
    shift = sums / source.n_rows
    _, vectors = np.linalg.eigh(products - source.n_rows * np.outer(shift, shift))
    axes = vectors[:, ::-1][:, :n_components]
    # Signs as scikit-learn has them: the largest entry of an axis is positive.
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=0)[None, :], axis=0)
    mean: FloatArray = centre + shift
    return mean, np.ascontiguousarray(axes * np.sign(largest))


def _scores(mean: FloatArray, axes: FloatArray, rows: FloatArray) -> FloatArray:
    scores: FloatArray = (rows - mean) @ axes
    return scores
