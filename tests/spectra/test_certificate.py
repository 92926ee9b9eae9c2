"""The three passes over streamed rows: limits of s² and λ hold for any landmarks."""

from functools import partial

import numpy as np
import pytest

from unaligned.data.shapes import torus3, torus_angles
from unaligned.operators.affinity import CrossKernel
from unaligned.operators.kernel import Gaussian
from unaligned.rows.reduce import over_blocks
from unaligned.spectra.landmarks.streamed import (
    Basis,
    PassSettings,
    RowDraw,
    kernel_sums,
    residual_diagonal,
    scaled_gram,
)

CLOUDS = {
    "3-torus": (torus3(torus_angles(600, rng=0)), 300.0),
    "an outlier": (np.vstack([torus3(torus_angles(599, rng=1)), np.full((1, 4), 60.0)]), 300.0),
    "noise": (np.random.default_rng(0).normal(size=(600, 8)), 16.0),
    "a line": (np.random.default_rng(1).normal(size=(600, 1)), 1.0),
}


def basis_of(points, scale, rank, seed):
    rng = np.random.default_rng(seed)
    basis = Basis(CrossKernel(points[:1], Gaussian(scale)), np.ones((1, 1)))
    while basis.rank < rank:
        left = residual_diagonal(basis, points)
        drawn = RowDraw.of(points, left, rng.random(left.size), rank).points
        if left.sum() < 0 or not drawn.size:
            break
        basis = basis.extended(drawn, rank - basis.rank)
    return basis


def passes(points, basis, n_drawn=40):
    reduce = partial(over_blocks, np.array_split(points, 3))
    known = PassSettings(basis, seed=7, n_drawn=n_drawn)
    ones = basis.solve(reduce(kernel_sums, known)[:, None])
    known = known._replace(density=basis.solve_transposed(ones)[:, 0])
    degree = basis.solve(reduce(kernel_sums, known)[:, None])[:, 0]
    return reduce(scaled_gram, known._replace(degree=degree))


def truth(points, scale):
    """Return K, s² and the eigenvalues of W by Eqs. 1-4."""
    K = np.exp(-((points[:, None] - points[None]) ** 2).sum(axis=2) / scale)
    density = K.sum(axis=1)
    degree = (K / density[None]).sum(axis=1) / density
    squares = 1.0 / (density**2 * degree)
    W = np.sqrt(squares)[:, None] * K * np.sqrt(squares)
    return K, squares, np.linalg.eigvalsh(W)[::-1]


@pytest.mark.parametrize("name", CLOUDS)
@pytest.mark.parametrize("rank", [5, 40, 150, 400])
@pytest.mark.parametrize("seed", range(2))
def test_limits_hold_for_any_landmarks(name, rank, seed):
    points, scale = CLOUDS[name]
    basis = basis_of(points, scale, rank, seed)
    found = passes(points, basis)
    limits = found.statistics.scaling_limits(nonnegative=True)
    K, squares, eigenvalues = truth(points, scale)
    features = basis.features(points)
    density = np.maximum(features.T @ features.sum(axis=1), 1.0)
    degree = np.maximum(features.T @ (features @ (1.0 / density)), 1.0 / density)
    ratio = squares * density * degree
    assert limits[0] <= ratio.min() * (1 + 1e-9)
    assert ratio.max() <= limits[1] * (1 + 1e-9)
    spectrum = found.statistics.spectrum(found.gram, points.shape[0], limits, 1.0)
    assert (eigenvalues >= spectrum.lower - 1e-13).all()
    above = np.maximum(eigenvalues - spectrum.upper - 1e-13, 0.0)
    assert above.sum() <= spectrum.slack + 1e-12
    residual = np.trace(K) - np.trace(features.T @ features)
    assert residual <= found.statistics.residual_trace


def test_limits_close_as_landmarks_are_added():
    points, scale = CLOUDS["a line"]
    widths = []
    for rank in (6, 12, 25):
        statistics = passes(points, basis_of(points, scale, rank, 0)).statistics
        limits = statistics.scaling_limits(nonnegative=True)
        widths.append(limits[1] - limits[0] + limits[1] * statistics.sums.scaled_residual)
    assert widths[0] > 10 * widths[1] > 100 * widths[2]


def test_rows_drawn_by_residual_do_not_depend_on_blocks():
    points, scale = CLOUDS["an outlier"]
    basis = basis_of(points[:-1], scale, 60, 0)
    found = passes(points, basis)
    assert found.drawn.points.shape == (40, 4)
    assert (found.drawn.points == 60.0).all(axis=1).any()  # its residual is 1
    known = PassSettings(basis, np.ones(basis.rank), np.ones(basis.rank), 7, 40)
    for pieces in (1, 4):
        parts = np.array_split(points, pieces)
        starts = np.cumsum([0, *map(len, parts[:-1])])
        drawn = sum(
            (
                scaled_gram(rows, int(a), known)
                for rows, a in zip(parts[1:], starts[1:], strict=True)
            ),
            start=scaled_gram(parts[0], 0, known),
        ).drawn
        np.testing.assert_allclose(drawn.points, found.drawn.points)


def test_merging_draws_keeps_the_largest_keys():
    one = RowDraw(np.array([-1.0, -5.0]), np.array([[1.0], [5.0]]))
    other = RowDraw(np.array([-2.0]), np.array([[2.0]]))
    assert one.merge(other, 2).points.ravel().tolist() == [1.0, 2.0]


def test_statistics_tell_when_only_rounding_is_left():
    points, scale = CLOUDS["a line"]
    short, full = (basis_of(points, scale, rank, 0) for rank in (6, 300))
    assert residual_diagonal(short, points).mean() > 1e-6
    assert np.abs(residual_diagonal(full, points)).mean() < 1e-12
    assert not passes(points, short).statistics.exhausted
    assert passes(points, full).statistics.exhausted
