"""Bar: many datasets through a Dask cluster, two workers against one: at least 1.5 × faster.

Prints the seconds of threads, processes and both clusters, and the largest difference of the
distances between any two of them (at most 1e-8). Workers are warm: each describes a few
datasets before.
Run: python benchmarks/bench_engines.py [number of datasets, default 200]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from dask.distributed import Client, LocalCluster

import unaligned as ua


@contextmanager
def cluster(n_workers: int) -> Iterator[Client]:
    options = {"threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(n_workers=n_workers, **options) as local, Client(local) as client:
        yield client


def run(datasets: list[np.ndarray], **options: Any) -> tuple[float, np.ndarray]:
    ua.compare(datasets[:4], **options)  # compile and start
    started = time.perf_counter()
    found = ua.compare(datasets, progress=False, **options)
    return time.perf_counter() - started, found.distances


def main(count: int) -> None:
    rng = np.random.default_rng(0)
    datasets = [rng.normal(size=(2000, 10)) for _ in range(count)]
    results: dict[str, tuple[float, np.ndarray]] = {}

    def note(name: str, **options: Any) -> None:
        seconds, distances = results[name] = run(datasets, **options)
        apart = np.abs(distances - results["one thread"][1]).max()
        print(f"{name:18} {seconds:7.2f} s   {apart:.0e} from one thread", flush=True)

    note("one thread", n_jobs=1)
    note("two threads", n_jobs=2)
    note("two processes", engine="processes", n_jobs=2)
    for n_workers in (1, 2):
        with cluster(n_workers) as client:
            note(f"Dask, workers: {n_workers}", engine=client)
    one, two = (results[f"Dask, workers: {n}"][0] for n in (1, 2))
    print(f"{count} datasets of 2000 × 10: two workers are {one / two:.2f} × faster (bar 1.5)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
