"""Error bounds and invariances on random nasty data, against long double arithmetic.

Each run draws new data; the seed is printed at the end. `UNALIGNED_TEST_SEED=n` repeats a run.
"""

import os
import warnings

import dask.array as dask
import numpy as np
import pytest
from scipy import sparse

import unaligned as ua
from unaligned import defaults
from unaligned.operators import pointcloud

BATCHES, CASES = 54, 100
GAMMAS = (0.0, 1e-12, 1e-8, 1e-2)
SOLVERS = ("auto", "exact", "krylov", "landmarks", "nystrom")
BOUNDS = ("exact", "certified", "probabilistic")
LONG = np.longdouble


def long_eigenvalues(matrix):
    """Return all eigenvalues of a symmetric matrix in long double, descending.

    Rotated by the double precision eigenvectors, orthonormal to long double, the off-diagonal is
    rounding: it enters the eigenvalues by its square over the gap, and where gaps are as small, a
    Jacobi rotation removes it.
    """
    A = (matrix + matrix.T) / 2
    V = np.linalg.eigh(A.astype(float))[1].astype(LONG)
    for _ in range(2):  # Newton-Schulz
        V = V @ (3 * np.eye(len(V), dtype=LONG) - V.T @ V) / 2
    A = V.T @ A @ V
    gaps = np.abs(np.subtract.outer(np.diag(A), np.diag(A)))
    scale = np.abs(A).max()
    close = np.triu((gaps < 1e-12 * scale) & (np.abs(A) > 1e-21 * scale), 1)
    for p, q in zip(*np.nonzero(close), strict=True):
        if A[p, q] != 0:
            theta = (A[q, q] - A[p, p]) / (2 * A[p, q])
            t = (1 if theta >= 0 else -1) / (abs(theta) + np.sqrt(theta**2 + 1))
            c = 1 / np.sqrt(t**2 + 1)
            R = np.array([[c, t * c], [-t * c, c]])
            A[:, [p, q]] = A[:, [p, q]] @ R
            A[[p, q]] = R.T @ A[[p, q]]
    return np.sort(np.diag(A))[::-1]


def diffusion_matrix(affinity):
    """Eqs. 2-4 in long double."""
    density = affinity.sum(axis=1)
    W = affinity / np.outer(density, density)
    root = np.sqrt(W.sum(axis=1))
    return W / np.outer(root, root)


def squared_distances(points):
    difference = points[:, None].astype(LONG) - points[None].astype(LONG)
    return (difference**2).sum(axis=2)


def operator_of(values, kind):
    if kind == "spd":
        return values.astype(LONG)
    if kind == "affinity":
        return diffusion_matrix(values.astype(LONG))
    squares = squared_distances(values) if kind == "points" else values.astype(LONG) ** 2
    return diffusion_matrix(np.exp(-squares / (2 * np.median(squares))))


def some_points(rng):
    """Return nasty points, and what they are."""
    n = int(rng.choice([2, 3, 4, 7, 12, 30, 60]))
    d = int(rng.choice([1, 2, 3, 8, 9, 20, 40]))
    points = rng.normal(size=(n, d))
    what = rng.choice(
        ["normal", "ties", "duplicates", "sorted", "far", "collinear", "heavy", "clusters", "near"]
    )
    if what == "ties":
        points = rng.integers(0, 3, size=(n, d)).astype(float)
    elif what == "duplicates":
        points[: n // 3] = points[0]
    elif what == "sorted":
        points = np.sort(points, axis=0)
    elif what == "far":
        points[: max(1, n // 20)] += 10.0 ** rng.integers(1, 9)
    elif what == "collinear":
        points = np.column_stack([points, points @ rng.normal(size=(d, 2)) + 30.0])
    elif what == "heavy":
        points = rng.standard_t(1.5, size=(n, d))
    elif what == "clusters":
        points += 10.0 ** rng.integers(1, 4) * rng.integers(0, 3, size=(n, 1))
    elif what == "near":
        points[n // 2 :] = points[: n - n // 2] + 1e-9 * rng.normal(size=(n - n // 2, d))
    return points * 10.0 ** rng.integers(-30, 30), f"{what} {n} × {points.shape[1]}"


def some_matrix(rng, kind):
    """Return a positive matrix of this kind with nasty eigenvalues, and what it is."""
    points, what = some_points(rng)
    squares = squared_distances(points).astype(float)
    if kind == "distances":
        return np.sqrt(squares), f"distances, {what}"
    if kind == "affinity":
        scale = np.median(squares) or 1.0
        return np.exp(-squares / (scale * 10.0 ** rng.uniform(-1, 1))), f"affinity, {what}"
    n = len(points)
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    values = 10.0 ** -rng.uniform(0, rng.choice([0.1, 3, 16, 40]), size=n)
    values[rng.random(n) < 0.2] = values[0]
    matrix = (Q * values) @ Q.T * 10.0 ** rng.integers(-20, 20)
    return (matrix + matrix.T) / 2, f"spd {n}, smallest {values.min():.0e}"


def error_beyond_bound(signature, truth):
    """Return by how much log(λ + γ) misses the truth beyond its bounds, each and in the 2-norm."""
    gamma = signature.recipe.gamma
    truth = np.maximum(truth[: signature.n_eigenvalues], 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.abs(signature.values - np.log(truth + LONG(gamma))).astype(float)
        # What long double itself leaves open.
        slack = np.log1p(1e-17 * float(truth[0]) / (truth.astype(float) + gamma)) + 1e-15
        error[np.isnan(error)] = 0.0  # log 0 on both sides
        each = error - signature.error_bound - slack  # NaN where both are infinite
        total = np.linalg.norm(error) - signature.total_error_bound - np.linalg.norm(slack)
    return float(np.nanmax(np.append(each, total)))


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(BATCHES))
def test_bounds_hold_against_long_double(batch):
    rng = np.random.default_rng([int(os.environ["UNALIGNED_TEST_SEED"]), batch])
    for _ in range(CASES):
        kind = str(rng.choice(["points", "points", "distances", "affinity", "spd"]))
        values, what = some_points(rng) if kind == "points" else some_matrix(rng, kind)
        options = {
            "gamma": float(rng.choice(GAMMAS)),
            "solver": str(rng.choice(SOLVERS)),
            "n_eigenvalues": int(rng.integers(1, len(values) + 1)),
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ua.errors.UnalignedWarning)
            try:
                found = ua.signature(ua.Dataset(values, kind=kind), **options)
            except ua.errors.UnalignedError:
                continue  # a clear error is an answer
        if found.bound_kind in BOUNDS:
            truth = long_eigenvalues(operator_of(values, kind))
            missed = error_beyond_bound(found, truth)
            excess = f"{missed:.2g} beyond the {found.bound_kind} bound"
            assert missed <= 0, f"{what}, {options}: {excess}"


def forms_of(points, rng):
    """Yield the same points in another order of rows or columns, and in other storages."""
    yield "rows", points[rng.permutation(len(points))]
    yield "columns", points[:, rng.permutation(points.shape[1])]
    yield "CSR", sparse.csr_array(points)
    yield "streamed", ua.Dataset.from_source(lambda: iter(np.array_split(points, 2)))
    yield "dask", dask.from_array(points, chunks=(max(1, len(points) // 3), -1))


@pytest.mark.slow
@pytest.mark.parametrize("stream_rows", [defaults.STREAM_ROWS, 2])
@pytest.mark.parametrize("batch", range(6))
def test_signatures_do_not_depend_on_order_or_storage(batch, stream_rows, monkeypatch):
    rng = np.random.default_rng([int(os.environ["UNALIGNED_TEST_SEED"]), 1000 + batch])
    for _ in range(25):
        points, what = some_points(rng)
        options = {"gamma": float(rng.choice(GAMMAS[1:]))}
        with warnings.catch_warnings(), monkeypatch.context() as patch:
            patch.setattr(pointcloud, "FILLED_BYTES", int(rng.choice([0, 1 << 26])))
            warnings.simplefilter("ignore", ua.errors.UnalignedWarning)
            try:
                plain = ua.signature(points, **options)
            except ua.errors.UnalignedError:
                continue  # a clear error is an answer
            patch.setattr(defaults, "STREAM_ROWS", stream_rows)
            for name, form in forms_of(points, rng):
                other = ua.signature(form, n_eigenvalues=plain.n_eigenvalues, **options)
                # A sampled σ² has 95 % limits; twice them, as there are many cases.
                sampled = other.stats.get("sigma_squared_bound", 0.0)
                allowed = plain.total_error_bound + other.total_error_bound + sampled
                moved = ua.distance(plain, other)
                assert moved <= allowed + 1e-12, f"{what}, {options}, {name}: {moved:.2g}"
