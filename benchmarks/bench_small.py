"""Bar: N=30,000, d=50, covariance eigenvalues 1/i, K=200 under 2 GiB and 5 minutes.

And the tiled operator gives the same as the dense one with the same solver, to 1e-8: at N=6000,
and at N=30,000 where 12 GiB are there.
Run: python benchmarks/bench_small.py
"""

from __future__ import annotations

import resource
import time
import warnings

import numpy as np

import unaligned as ua
from unaligned.engine.memory import available_memory
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
    for solver, n_samples in (("krylov", 6000), ("landmarks", 6000), ("krylov", 30_000)):
        if 8 * n_samples**2 > available_memory() // 2:
            print(f"N={n_samples}: too little memory for the dense operator; left out")
            continue
        dense, tiled = (both(n_samples, solver, limit) for limit in (2**40, 0))
        gap = np.linalg.norm(dense - tiled)
        print(f"N={n_samples}, {solver}: tiled against dense {gap:.1e} (bar 1e-8)", flush=True)


def both(n_samples: int, solver: str, memory_limit: int) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        options = {"n_eigenvalues": 200, "memory_limit": memory_limit, "solver": solver}
        return ua.signature(cloud(n_samples), **options).values


if __name__ == "__main__":
    main()
