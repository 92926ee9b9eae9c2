"""The three passes: what they claim about s² and λ is true for any landmarks, good or bad."""

from functools import partial

import numpy as np
import pytest

from unaligned.data.shapes import torus3, torus_angles
from unaligned.operators.streamed import CrossKernel
from unaligned.rows.reduce import over_blocks
from unaligned.spectra.landmarks.cholesky import Basis
from unaligned.spectra.landmarks.streamed import (
    Broadcast,
    Drawn,
    Held,
    Limits,
    gather,
    kernel_sums,
    residual_trace,
)

CLOUDS = {
    "3-torus": (torus3(torus_angles(600, rng=0)), 300.0),
    "an outlier": (np.vstack([torus3(torus_angles(599, rng=1)), np.full((1, 4), 60.0)]), 300.0),
    "noise": (np.random.default_rng(0).normal(size=(600, 8)), 16.0),
    "a line": (np.random.default_rng(1).normal(size=(600, 1)), 1.0),
}


def basis_of(points, scale, rank, seed):
    rng = np.random.default_rng(seed)
    basis = Basis(CrossKernel(points[:1], scale), np.ones((1, 1)))
    while basis.rank < rank:
        held = Held.of(basis, points)
        drawn = held.drawn(points, rank, rng)
        if held.exhausted or not drawn.size:
            break
        basis = basis.extended(drawn, rank - basis.rank)
    return basis


def passes(points, basis, n_drawn=40):
    reduce = partial(over_blocks, np.array_split(points, 3))
    known = Broadcast(basis, seed=7, n_drawn=n_drawn)
    ones = basis.solve(reduce(kernel_sums, known)[:, None])
    known = known._replace(density=basis.solve_transposed(ones)[:, 0])
    degree = basis.solve(reduce(kernel_sums, known)[:, None])[:, 0]
    return reduce(gather, known._replace(degree=degree))


def truth(points, scale):
    """Return K, s² and the eigenvalues of W, straight from Eqs. 1-4."""
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
    limits = Limits.of(found, points.shape[0])
    K, squares, eigenvalues = truth(points, scale)
    features = basis.features(points)
    density = np.maximum(features.T @ features.sum(axis=1), 1.0)
    degree = np.maximum(features.T @ (features @ (1.0 / density)), 1.0 / density)
    ratio = squares * density * degree
    assert limits.low <= ratio.min() * (1 + 1e-9)
    assert ratio.max() <= limits.high * (1 + 1e-9)
    values = np.zeros(points.shape[0])
    values[: basis.rank] = np.maximum(np.linalg.eigvalsh(found.gram)[::-1], 0.0)
    high = 1.0 if np.isinf(limits.high) else np.minimum(limits.high * values, 1.0)
    assert (eigenvalues >= limits.low * values - limits.lost - 1e-13).all()
    above = np.maximum(eigenvalues - high - 1e-13, 0.0)
    assert above.sum() <= limits.slack + 1e-12
    residual = np.trace(K) - np.trace(features.T @ features)
    assert residual <= residual_trace(found)


def test_limits_close_as_landmarks_are_added():
    points, scale = CLOUDS["a line"]
    widths = []
    for rank in (6, 12, 25):
        limits = Limits.of(passes(points, basis_of(points, scale, rank, 0)), points.shape[0])
        widths.append(limits.high - limits.low + limits.slack)
    assert widths[0] > 10 * widths[1] > 100 * widths[2]


def test_rows_are_drawn_by_their_residual_however_they_are_cut():
    points, scale = CLOUDS["an outlier"]
    basis = basis_of(points[:-1], scale, 60, 0)
    found = passes(points, basis)
    assert found.drawn.points.shape == (40, 4)
    assert (found.drawn.points == 60.0).all(axis=1).any()  # its residual is 1
    known = Broadcast(basis, np.ones(basis.rank), np.ones(basis.rank), 7, 40)
    for pieces in (1, 4):
        parts = np.array_split(points, pieces)
        starts = np.cumsum([0, *map(len, parts[:-1])])
        drawn = sum(
            (gather(rows, int(a), known) for rows, a in zip(parts[1:], starts[1:], strict=True)),
            start=gather(parts[0], 0, known),
        ).drawn
        np.testing.assert_allclose(drawn.points, found.drawn.points)


def test_joining_draws_keeps_the_largest_keys():
    one = Drawn(np.array([-1.0, -5.0]), np.array([[1.0], [5.0]]))
    other = Drawn(np.array([-2.0]), np.array([[2.0]]))
    assert one.joined(other, 2).points.ravel().tolist() == [1.0, 2.0]


def test_rows_held_out_tell_the_mean_residual_and_when_nothing_is_left():
    points, scale = CLOUDS["a line"]
    short = Held.of(basis_of(points, scale, 6, 0), points)
    full = Held.of(basis_of(points, scale, 300, 0), points)
    assert short.mean > 1e-6
    assert full.mean < 1e-12
    assert full.exhausted
    assert not short.exhausted
    drawn = short.drawn(points, 10, np.random.default_rng(0))
    assert drawn.shape == (10, 1)
