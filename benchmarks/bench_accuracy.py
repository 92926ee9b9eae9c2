"""Bars: error against eigvalsh at most 1e-3 with the defaults, no slower than the authors' way.

Both from points to signature, alternating in one run, median of several repeats.
Run: python benchmarks/bench_accuracy.py [name …]
"""

from __future__ import annotations

import statistics
import sys
import time

import authors_way
import numpy as np
from datasets import SOLVING

import unaligned as ua

REPEATS = 15  # medians of five vary by a third on a shared machine


def timed(function, *args, **options):
    start = time.perf_counter()
    result = function(*args, **options)
    return time.perf_counter() - start, result


def main() -> None:
    ua.signature(np.random.default_rng(0).normal(size=(600, 5)), n_eigenvalues=50)  # compile
    names = sys.argv[1:] or list(SOLVING)
    print(
        f"{'dataset':14} {'N':>5} {'K':>4} | {'error':>8} {'bound':>8} {'kind':13} "
        f"{'authors err':>11} | {'ours s':>7} {'theirs s':>8} {'ratio':>6} {'bar':>5}  solver"
    )
    for name in names:
        make, k, gamma, bar = SOLVING[name]
        points = make()
        ours_s, theirs_s = [], []
        for repeat in range(REPEATS if len(points) < 5000 else 3):
            took, found = timed(ua.signature, points, n_eigenvalues=k, gamma=gamma)
            ours_s.append(took)
            rng = np.random.default_rng(repeat)
            took, theirs = timed(authors_way.signature, points, k, gamma, rng)
            theirs_s.append(took)
        truth = authors_way.exact_signature(points, k, gamma)
        error, their_error = (np.linalg.norm(v - truth) for v in (found.values, theirs))
        ours, others = statistics.median(ours_s), statistics.median(theirs_s)
        good = error <= 1e-3 and ours <= bar * others and error <= found.total_error_bound
        print(
            f"{name:14} {len(points):5} {k:4} | {error:8.1e} {found.total_error_bound:8.1e} "
            f"{found.bound_kind:13} {their_error:11.2g} | {ours:7.2f} {others:8.2f} "
            f"{ours / others:6.2f} {bar:5.2f}  {found.stats['chosen']} "
            f"{'pass' if good else 'FAIL'}",
            flush=True,
        )


if __name__ == "__main__":
    main()
