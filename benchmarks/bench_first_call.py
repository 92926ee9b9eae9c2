"""Bar: the first call in a fresh process is at most 2 s slower than the second.

With the compiled loops cached (after install) and without (the very first run on a machine).
Run: python benchmarks/bench_first_call.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

CODE = """
import time
t0 = time.perf_counter()
import numpy as np, unaligned as ua
x = np.random.default_rng(0).normal(size=(2000, 5))
t1 = time.perf_counter(); ua.signature(x); t2 = time.perf_counter(); ua.signature(x)
print(t1 - t0, t2 - t1, time.perf_counter() - t2)
"""


def run(cache: str) -> tuple[float, ...]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True, env=environment
    )
    return tuple(float(part) for part in done.stdout.split())


def main() -> None:
    with tempfile.TemporaryDirectory() as cache:
        print(
            f"{'':24} {'import s':>9} {'first s':>9} {'second s':>9} {'difference':>11}   bar 2 s"
        )
        for label in ("nothing cached", "cached", "cached", "cached"):
            imported, first, second = run(cache)
            print(f"{label:24} {imported:9.2f} {first:9.2f} {second:9.2f} {first - second:11.2f}")


if __name__ == "__main__":
    main()
