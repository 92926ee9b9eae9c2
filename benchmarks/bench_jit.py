"""Does Numba earn its size? The kernel evaluation and whole signatures with and without it.

"Without" is what NumPy offers: the Gram trick, then `exp` in place. NumPy vectorises `exp` for
AVX-512 alone, so run it twice, the second time as it would go on a machine without:

    python benchmarks/bench_jit.py
    NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL AVX512_SPR" python benchmarks/bench_jit.py
"""

from __future__ import annotations

import statistics
import time
from importlib.metadata import files

import numpy as np
from datasets import torus

import unaligned as ua
from unaligned.operators.affinity import KernelAffinity
from unaligned.operators.kernel import Gaussian
from unaligned.operators.pointcloud import PointCloud

REPEATS = 5


def numpy_rows(points: np.ndarray, index: np.ndarray, scale: float) -> np.ndarray:
    norms = np.einsum("ij,ij->i", points, points)
    tile = points[index] @ points.T
    tile *= -2.0
    tile += norms[index, None]
    tile += norms
    np.maximum(tile, 0.0, out=tile)
    tile /= -scale
    return np.exp(tile, out=tile)


def numpy_affinities(self, rows, columns, kernel, workers, out=None):
    """Stand in for PointCloud.affinities, with NumPy alone."""
    norms = np.einsum("ij,ij->i", self.values, self.values)
    tile = self.values[rows] @ self.values[columns].T
    tile *= -2.0
    tile += norms[rows][:, None]
    tile += norms[columns]
    np.maximum(tile, 0.0, out=tile)
    kernel.of_squared(tile)
    if out is None:
        return tile
    out[...] = tile
    return out


def median_time(function, *args) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        function(*args)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    size = sum(f.locate().stat().st_size for p in ("numba", "llvmlite") for f in files(p) or [])
    print(f"numba and llvmlite: {size / 2**20:.0f} MiB on disk")
    with_jit = PointCloud.affinities
    for d in (4, 50):
        points = np.random.default_rng(0).normal(size=(20_000, d))
        affinity, index = KernelAffinity(points, Gaussian(2.0 * d)), np.arange(500)
        affinity.rows(index)
        ours = median_time(affinity.rows, index)
        plain = median_time(numpy_rows, points, index, 2.0 * d)
        entries = 1e-9 * index.size * len(points)
        print(
            f"rows, d={d:2}: {ours / entries:.2f} ns per entry with, {plain / entries:.2f} "
            f"without: {plain / ours:.1f} ×"
        )
    for n in (3000, 8000):
        points = torus(n)
        ua.signature(points)
        ours = median_time(ua.signature, points)
        PointCloud.affinities = numpy_affinities
        plain = median_time(ua.signature, points)
        PointCloud.affinities = with_jit
        print(
            f"signature of a 3-torus, N={n}: {ours:.2f} s with, {plain:.2f} s without the kernel "
            f"loop: {plain / ours:.2f} ×"
        )


if __name__ == "__main__":
    main()
