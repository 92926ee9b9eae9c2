"""Bar: N=30,000, d=50, covariance eigenvalues 1/i, K=200 under 2 GiB and 5 minutes.

And the tiled operator gives the same as the dense one with the same solver, to 1e-8 (at N=6000).
Run: python benchmarks/bench_small.py
"""

from __future__ import annotations

import resource
import time
import warnings

import numpy as np

import unaligned as ua
from unaligned.errors import AccuracyWarning

GIB = 2**30


def cloud(n_samples: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n_samples, 50)) / np.sqrt(np.arange(1, 51))


def main() -> None:
    start = time.perf_counter()
    found = ua.signature(cloud(30_000), n_eigenvalues=200, memory_limit=GIB)
    took = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"N=30000: {took:.0f} s (bar 300), peak {peak / GIB:.2f} GiB resident (bar 2), {found}")
    print({key: found.stats[key] for key in ("chosen", "why", "kernel_entries", "converged")})
    points = cloud(6000)
    for solver in ("krylov", "landmarks"):
        values = []
        for limit in (GIB, 0):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", AccuracyWarning)
                options = {"n_eigenvalues": 200, "memory_limit": limit, "solver": solver}
                values.append(ua.signature(points, **options).values)
        gap = np.linalg.norm(values[0] - values[1])
        print(f"N=6000, {solver}: tiled against dense {gap:.1e} (bar 1e-8)")


if __name__ == "__main__":
    main()
