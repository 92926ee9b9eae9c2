"""The spectra of 200,000 rows that `bench_sampled.py` compares with, by exact passes in tiles.

The median and the degrees are exact. For each seed, m leading eigenfunctions of n landmark rows
are extended to all rows and orthonormalised (Q). The rows of WQ at 8000 sampled rows give H = QᵀWQ
and the residual WQ - QH by regression; then one pass in single-precision tiles gives WV on every
row, for the leading V of Q's Ritz vectors. With V's columns of H and of the residual R so made
exact, the eigenvalues lie between those of H + RᵀR/λ (nothing of W is left outside of Q) and of H
+ RᵀR/(λ - λ_m). The truth is the middle, its mean over seeds; its error is half the distance, and
how far the seeds are apart.

A stopped run continues where it was. Run, for minutes to hours on one thread:
    OPENBLAS_NUM_THREADS=1 python benchmarks/sampled_truth.py decaying|clusters FOLDER SEED
It adds the seed to benchmarks/sampled_truth.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from datasets import clusters, decaying
from scipy.linalg import eigh, eigvalsh

from unaligned.operators.affinity import KernelAffinity
from unaligned.operators.bandwidth import median_of_points
from unaligned.operators.diffusion import DiffusionOperator
from unaligned.operators.kernel import Gaussian
from unaligned.operators.pointcloud import PointCloud

ROWS, K, GAMMA = 200_000, 200, 1e-8
KEPT = Path(__file__).with_suffix(".json")
# name -> (points, landmarks, functions): clusters in 50 dimensions have 30 × 51 near-equal ones.
SETS = {"decaying": (decaying, 6000, 400), "clusters": (clusters, 4000, 1600)}
TILE = 4000  # rows
SAMPLED = 8000  # rows of WQ
GROUP = 10  # neighbours that share the shift of the correction
LEADING = 300  # Ritz vectors whose products are exact


def once(path: Path, compute):
    """Return the array at this path, computed at the first call."""
    if not path.exists():
        found = np.asarray(compute())
        np.save(path.with_suffix(".part.npy"), found)
        path.with_suffix(".part.npy").rename(path)
    return np.load(path)


def affinities(points, others, scale):
    """Return exp(-‖x - y‖²/σ²) in single precision."""
    products = points @ others.T
    products *= np.float32(2 / scale)
    norms = [(np.einsum("ij,ij->i", x, x) / scale).astype(np.float32) for x in (points, others)]
    products -= norms[0][:, None]
    products -= norms[1]
    return np.exp(np.minimum(products, 0, out=products), out=products)


def functions(points, scaling, scale, landmarks, n_functions):
    """Return Q, (N, m), in single precision."""
    at = scaling[landmarks]
    operator = affinities(points[landmarks], points[landmarks], scale).astype(np.float64)
    operator *= np.outer(at, at)
    n = len(landmarks)
    values, vectors = eigh(operator, subset_by_index=[n - n_functions, n - 1], overwrite_a=True)
    weights = (at[:, None] * vectors / values).astype(np.float32)
    Q = np.empty((len(points), n_functions), dtype=np.float32)
    gram = np.zeros((n_functions,) * 2)
    for start in range(0, len(points), TILE):
        rows = slice(start, start + TILE)
        Q[rows] = affinities(points[rows], points[landmarks], scale) @ weights
        Q[rows] *= scaling[rows, None].astype(np.float32)
        gram += Q[rows].astype(np.float64).T @ Q[rows]
    sizes, turn = eigh(gram)
    turn /= np.sqrt(sizes)
    for start in range(0, len(points), TILE):
        Q[start : start + TILE] = Q[start : start + TILE] @ turn
    return Q


def products(Q, points, scaling, scale, folder):
    """Return WQ in single precision, strip by strip, kept on disk."""
    scaled = Q * scaling[:, None].astype(np.float32)
    for start in range(0, len(points), TILE):

        def strip(rows=slice(start, start + TILE)):
            total = np.zeros(Q[rows].shape)
            for first in range(0, len(points), TILE):
                columns = slice(first, first + TILE)
                total += affinities(points[rows], points[columns], scale) @ scaled[columns]
            print(f"{folder} {rows.start}", flush=True)
            return (total * scaling[rows, None]).astype(np.float32)

        yield slice(start, start + TILE), once(folder / f"strip{start}.npy", strip)


def regression(Q, points, scaling, scale, rows):
    """Return H, (m, m), and RᵀR, from these rows of WQ."""
    scaled = Q * scaling[:, None].astype(np.float32)
    Z = np.zeros((len(rows), Q.shape[1]))
    for first in range(0, len(points), TILE):
        columns = slice(first, first + TILE)
        Z += affinities(points[rows], points[columns], scale) @ scaled[columns]
    Z *= scaling[rows, None]
    at = Q[rows].astype(np.float64)
    H = np.linalg.lstsq(at, Z, rcond=None)[0]
    R = Z - at @ H
    return (H + H.T) / 2, R.T @ R * (len(points) / (len(rows) - Q.shape[1]))


def limits(points, scaling, scale, folder, seed, n_landmarks, n_functions):
    """Return both limits of the eigenvalues, (2, K)."""
    rng = np.random.default_rng(seed)
    landmarks = rng.choice(len(points), n_landmarks, replace=False)
    rows = np.sort(rng.choice(len(points), min(SAMPLED, len(points)), replace=False))
    Q = once(folder / "Q.npy", lambda: functions(points, scaling, scale, landmarks, n_functions))
    H, residual = once(
        folder / "regression.npy", lambda: regression(Q, points, scaling, scale, rows)
    )
    print("regression", flush=True)
    _, turn = eigh(H)
    turn = turn[:, ::-1]
    V, n_leading = Q @ turn[:, :LEADING].astype(np.float32), min(LEADING, n_functions)
    H, residual = turn.T @ H @ turn, turn.T @ residual @ turn
    known, squares = np.zeros((n_functions, n_leading)), np.zeros((n_leading, n_leading))
    for strip, product in products(V, points, scaling, scale, folder):
        known += turn.T @ (Q[strip].astype(np.float64).T @ product)
        squares += product.astype(np.float64).T @ product
    H[:, :n_leading], H[:n_leading] = known, known.T
    H[:n_leading, :n_leading] = (known[:n_leading] + known[:n_leading].T) / 2
    residual[:n_leading, :n_leading] = squares - known.T @ known
    found = np.empty((2, K))
    theta = eigvalsh(H)[::-1]
    for out, floor in zip(found, (0.0, theta[-1]), strict=True):
        for i in range(0, K, GROUP):
            last = min(i + GROUP, K) - 1
            corrected = H + residual / (theta[(i + last) // 2] - floor)
            places = [n_functions - 1 - last, n_functions - 1 - i]
            out[i : last + 1] = eigvalsh(corrected, subset_by_index=places)[::-1]
    return found


def truth(name: str):
    """Return the mean of log(λ + γ) over the seeds kept, (K,), or None where there is none."""
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    seeds = kept.get(name, {}).get("log_eigenvalues")
    return np.mean(list(seeds.values()), axis=0) if seeds else None


def main(name: str, folder: Path, seed: int) -> None:
    make, n_landmarks, n_functions = SETS[name]
    folder = folder / name
    points = make(ROWS, 0)
    (folder / str(seed)).mkdir(parents=True, exist_ok=True)
    scale = 2 * float(once(folder / "median.npy", lambda: median_of_points(PointCloud(points))))
    print(f"σ² = {scale}", flush=True)
    operator = DiffusionOperator(KernelAffinity(points, Gaussian(scale), storage="tiled"))
    scaling = once(folder / "scaling.npy", lambda: operator.scaling)
    print("degrees", flush=True)
    single = (points - points.mean(axis=0)).astype(np.float32)
    place = folder / str(seed)
    arguments = single, scaling, scale, place, seed, n_landmarks, n_functions
    logs = np.log(once(place / "limits.npy", lambda: limits(*arguments)) + GAMMA)  # (2, K)
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    entry = kept.setdefault(name, {"log_eigenvalues": {}, "half_distance": {}})
    entry["sigma_squared"] = scale
    entry["log_eigenvalues"][str(seed)] = logs.mean(axis=0).round(7).tolist()
    entry["half_distance"][str(seed)] = float(np.linalg.norm(logs[1] - logs[0]) / 2)
    seeds = np.array(list(entry["log_eigenvalues"].values()))
    entry["seeds_apart"] = float(np.linalg.norm(seeds[0] - seeds[-1]))
    entry["command"] = f"python benchmarks/sampled_truth.py {name} FOLDER SEED"
    KEPT.write_text(json.dumps(kept) + "\n")
    print({key: value for key, value in entry.items() if key != "log_eigenvalues"}, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
