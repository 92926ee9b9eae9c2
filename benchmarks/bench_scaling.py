"""Bars: a million points of a 3-torus in linear time, with a certificate.

Prints the table N, seconds, peak memory above the data, landmarks, bound, and the ratio of the
time to that of the flops needed, N r (d + r) 2 at the GEMM rate measured just before and after,
the σ² step left out (at most 2.5), by the clock and, as the machine may be shared, in seconds of
cores; then the error against eigvalsh on both tori (at most 1e-4).
Run: python benchmarks/bench_scaling.py [largest N, default 1000000]      (10000000 takes minutes)
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np

import unaligned as ua
from unaligned.data.shapes import torus2, torus3, torus_angles
from unaligned.spectra import compute


def resident(field: str = "RssAnon") -> float:
    """Return MiB of this process from /proc: RssAnon leaves files and libraries out."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


class Peak:
    """The largest RssAnon while this lasts, above what it was at the start, MiB."""

    def __enter__(self) -> Peak:
        self.start, self.most, self._done = resident(), 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._done.wait(0.02):
            self.most = max(self.most, resident() - self.start)

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()


def gemm_rate(seconds: float = 1.0) -> np.ndarray:
    """Return flops of a large matrix product per second, and per second of a core."""
    a = np.random.default_rng(0).normal(size=(1500, 1500))
    a @ a
    count, started, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - started < seconds:
        a @ a
        count += 1
    spent = np.array([time.perf_counter() - started, time.process_time() - cpu])
    return count * 2.0 * 1500**3 / spent


def scaling(largest: int) -> None:
    print(
        "        N  seconds  sigma2 s  core s  MiB peak    r    bound  ratio  of cores  us/point"
    )
    for n in [10**k for k in range(3, 9) if 10**k <= largest]:
        points = torus3(torus_angles(n, 3, rng=0))
        before = gemm_rate()
        with Peak() as peak:
            started, cpu = time.perf_counter(), time.process_time()
            found = ua.signature(points, n_eigenvalues=200, gamma=1e-8)
            seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
        rate = 0.5 * (before + gemm_rate())
        r, scale = found.stats.get("landmarks", n), found.stats["seconds_operator"]
        needed = 2.0 * n * r * (points.shape[1] + r) / rate
        share = (seconds - scale) / seconds  # of the time that is not spent on σ²
        print(
            f"{n:9}  {seconds:7.2f}  {scale:8.2f}  {cpu:6.1f}  {peak.most:8.0f}  {r:4}  "
            f"{found.total_error_bound:7.1g}  {share * seconds / needed[0]:5.2f}  "
            f"{share * cpu / needed[1]:8.2f}  {1e6 * seconds / n:8.1f}   "
            f"{rate[0] / 1e9:.0f} GFLOP/s, {rate[1] / 1e9:.0f} a core",
            flush=True,
        )


def accuracy(n: int = 8000) -> None:
    for name, make, angles in (("2-torus", torus2, 2), ("3-torus", torus3, 3)):
        points = make(torus_angles(n, angles, rng=0))
        exact = ua.signature(points, n_eigenvalues=200, solver="exact")
        with patch.object(compute, "STREAM_ROWS", 0):
            found = ua.signature(points, n_eigenvalues=200, bandwidth=exact.sigma_squared)
        error = np.linalg.norm(found.values - exact.values)
        print(
            f"{name} N={n}: streamed against eigvalsh {error:.1e}, bound "
            f"{found.total_error_bound:.1e}, {found.stats['landmarks']} landmarks",
            flush=True,
        )


if __name__ == "__main__":
    ua.signature(torus3(torus_angles(2000, 3, rng=1)))  # compile
    scaling(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**6)
    accuracy()
