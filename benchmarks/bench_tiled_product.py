"""The tiled product against a bare GEMM of the same size plus the kernel evaluation.

    python benchmarks/bench_tiled_product.py [--samples 10000] [--columns 20 400] [--repeats 3]

Three things are timed in turn, in one run, and the median of each is kept:

- the tiled product K @ B, which evaluates the kernel as it goes;
- a bare GEMM: an N×N matrix that is already there, times B (N, b);
- the kernel evaluation: the distance GEMM and the fused exp loop, tile by tile. Once over all
  N² entries (`full`), as a product that knows nothing of symmetry must, and once over the
  tiles on and above the diagonal (`half`), as the tiled product does.

The bar is a ratio of 1.5 against GEMM + full; the ratio against GEMM + half is the stricter one.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from collections.abc import Callable

import numpy as np

from unaligned.engine.threads import Workers, thread_count
from unaligned.operators.affinity import KernelAffinity
from unaligned.operators.kernel import Gaussian
from unaligned.operators.pointcloud import PointCloud, tile_of

BAR = 1.5


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the tiled product.")
    parser.add_argument("--samples", type=int, nargs="+", default=[10_000, 20_000])
    parser.add_argument("--columns", type=int, nargs="+", default=[20, 100, 400])
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    print(f"{thread_count()} threads, d={args.features}, seconds are medians of {args.repeats}")
    print("     N    b   tiled    gemm    full    half  vs gemm+full  vs gemm+half  entries/N²")
    for n_samples in args.samples:
        for n_columns in args.columns:
            report(n_samples, args.features, n_columns, args.repeats)
    print(f"peak resident {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


def report(n_samples: int, n_features: int, n_columns: int, repeats: int) -> None:
    rng = np.random.default_rng(0)
    # PCA-like: the variance of feature i is 1/i.
    points = rng.normal(size=(n_samples, n_features)) / np.sqrt(1 + np.arange(n_features))
    affinity = KernelAffinity(points, Gaussian(2.0 * n_features), storage="tiled")
    block = rng.normal(size=(n_samples, n_columns))
    affinity.matmat(block[:, :1])  # compiles, or reads the cache
    matrix = np.full((n_samples, n_samples), 0.5)
    before = affinity.entries_evaluated
    affinity.matmat(block)
    share = (affinity.entries_evaluated - before) / n_samples**2
    tiled, gemm, full, half = interleaved(
        [
            lambda: affinity.matmat(block),
            lambda: matrix @ block,
            lambda: evaluate(PointCloud(points), symmetric=False),
            lambda: evaluate(PointCloud(points), symmetric=True),
        ],
        repeats,
    )
    ratios = tiled / (gemm + full), tiled / (gemm + half)
    verdict = "ok" if ratios[0] <= BAR else "MISSED"
    print(
        f"{n_samples:6d} {n_columns:4d} {tiled:7.3f} {gemm:7.3f} {full:7.3f} {half:7.3f}"
        f"  {ratios[0]:12.2f}  {ratios[1]:12.2f}  {share:10.2f}  {verdict}"
    )


def evaluate(cloud: PointCloud, *, symmetric: bool) -> None:
    """Work the kernel out tile by tile and throw it away."""
    scratch = np.empty(cloud.tile_rows * 2 * cloud.tile_rows)
    with Workers() as workers:
        for rows in cloud.slices():
            start = rows.start if symmetric else 0
            for columns in cloud.slices(start, width=2 * cloud.tile_rows):
                cloud.affinities(
                    rows, columns, Gaussian(100.0), workers, tile_of(scratch, rows, columns)
                )


def interleaved(tasks: list[Callable[[], object]], repeats: int) -> list[float]:
    """Return the median time of each task; taking turns shares the machine's noise out."""
    times: list[list[float]] = [[] for _ in tasks]
    for _ in range(repeats):
        for task, taken in zip(tasks, times, strict=True):
            start = time.perf_counter()
            task()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in times]


if __name__ == "__main__":
    main()
