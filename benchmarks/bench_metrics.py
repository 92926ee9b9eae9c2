"""Time of the log-Euclidean and the affine-invariant distance of r matrices (Section 3.2).

Every logarithm is taken once, so LE takes O(r N³ + r² N²) time where AI takes O(r² N³): one
eigenvalue problem per pair. SPD matrices of N = 200, the least of five repeats, one BLAS thread.
Run: python benchmarks/bench_metrics.py
"""

import os
import time

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np

import unaligned as ua

N = 200


def matrices(count: int) -> list[ua.Dataset]:
    """Return covariances, which are SPD."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(count, 2 * N, N))
    return [ua.Dataset(np.cov(rows.T), kind="spd", name=str(i)) for i, rows in enumerate(points)]


def seconds(given: list[ua.Dataset], name: str) -> float:
    """Return the least time of five comparisons."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        ua.compare(given, distance=name, n_jobs=1, progress=False)
        times.append(time.perf_counter() - start)
    return min(times)


print("| matrices | log-euclidean, ms | affine-invariant, ms | ratio |\n|---|---|---|---|")
for count in (2, 5, 10, 20):
    le, ai = (seconds(matrices(count), name) for name in ("log-euclidean", "affine-invariant"))
    print(f"| {count} | {1000 * le:.1f} | {1000 * ai:.1f} | {le / ai:.2f} |", flush=True)
