"""Bar: `nearest` over 100,000 signatures of 200 values, 0.5 s in process and 1.5 s from the shell.

And equal to brute force; `list` at most six times as long as reading its rows unchecked.
The signatures are drawn, not computed: the search does not know.
Run: python benchmarks/bench_store.py (with --signatures for another number)
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

import unaligned as ua

K = 200


def drawn(first: ua.Signature, n_signatures: int) -> Iterator[ua.Signature]:
    """Yield signatures whose eigenvalues are those of the first, each times a random factor."""
    rng = np.random.default_rng(1)
    for i in range(n_signatures):
        values = first.eigenvalues * rng.uniform(0.5, 1.5, size=K)
        spectrum = replace(first.spectrum, eigenvalues=np.sort(values)[::-1].copy())
        yield replace(first, spectrum=spectrum, name=f"reference {i}")


def best_of(repeats: int, action) -> float:
    """Return the shortest time of several runs: others use this machine too."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def read_rows(path: Path) -> list[tuple]:
    """Return what a list of the store needs, unchecked."""
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute(
            "SELECT name, n_samples, n_features, n_eigenvalues, error_bound, fingerprint, "
            "created, json_extract(details, '$.stats.rows_drawn_from'), tags "
            "FROM signatures ORDER BY id"
        )
        return [(*row[:-1], json.loads(row[-1])) for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--signatures", type=int, default=100_000)
    n_signatures = parser.parse_args().signatures
    with tempfile.TemporaryDirectory() as folder:
        file, path = Path(folder, "new.npy"), Path(folder, "references.db")
        np.save(file, np.random.default_rng(0).normal(size=(400, 20)))
        new = ua.signature(file, n_eigenvalues=K)
        store = ua.Store(path)
        start = time.perf_counter()
        store.extend(drawn(new, n_signatures))
        size = path.stat().st_size / 2**20
        took = time.perf_counter() - start
        print(f"{n_signatures} signatures added in {took:.0f} s, {size:.0f} MiB")
        matrix = np.array([signature.values for signature in drawn(new, n_signatures)])
        brute = np.linalg.norm(matrix - new.values, axis=1)
        found = store.nearest(new, k=10)
        order = np.argsort(brute, kind="stable")[:10]
        same = [near.name for near in found] == [f"reference {i}" for i in order]
        gap = max(abs(near.distance - brute[i]) for near, i in zip(found, order, strict=True))
        print(f"equal to brute force: {same}, distances to {gap:.0e}")
        inside = best_of(5, lambda: store.nearest(new, k=10))
        command = [sys.executable, "-m", "unaligned", "nearest", str(file), "--store", str(path)]
        shell = best_of(5, lambda: subprocess.run(command, check=True, capture_output=True))
        listed, rows = best_of(3, lambda: list(store)), best_of(3, lambda: read_rows(path))
        print(f"list: {listed:.2f} s, {listed / rows:.1f} times that of its rows (bar 6)")
        print(
            f"nearest: {inside:.2f} s in process (bar 0.5), {shell:.2f} s from the shell (bar 1.5)"
        )


if __name__ == "__main__":
    main()
