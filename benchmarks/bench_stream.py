"""Bar: 5·10⁶ × 16 float32 in a .npy (320 MB) within 250 MiB of anonymous memory.

The points lie near a 3-dimensional manifold (a 3-torus, turned into 16 dimensions, with noise).
RssAnon is what this process holds beyond files and libraries; the start is after the imports and
a first small signature, so compiled loops and libraries do not count.
Run: python benchmarks/bench_stream.py [rows, default 5000000] [path]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from bench_scaling import Peak

import unaligned as ua
from unaligned.data.shapes import torus3, torus_angles

FEATURES = 16


def write(path: Path, n_rows: int) -> None:
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(FEATURES, FEATURES)))[0][:4]
    header = {"descr": "<f4", "fortran_order": False, "shape": (n_rows, FEATURES)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, n_rows, 100_000):
            size = min(100_000, n_rows - start)
            points = torus3(torus_angles(size, 3, rng=start)) @ turn
            points += 1e-4 * rng.normal(size=points.shape)
            file.write(points.astype(np.float32).tobytes())


def main(n_rows: int, path: Path) -> None:
    if not path.exists():
        write(path, n_rows)
    warm = np.random.default_rng(0).normal(size=(1500, FEATURES))
    ua.signature(warm, n_eigenvalues=10)  # compile, load
    with Peak() as peak:
        started, cpu = time.perf_counter(), time.process_time()
        dataset = ua.Dataset.from_source(path, name="on disk")
        found = ua.signature(dataset, n_eigenvalues=200, gamma=1e-8)
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    print(
        f"{n_rows} × {FEATURES} float32, {path.stat().st_size / 2**20:.0f} MiB on disk: "
        f"{seconds:.0f} s ({cpu:.0f} core s), RssAnon {peak.most:.0f} MiB above the start "
        f"(bar 250), {found.stats['landmarks']} landmarks, bound {found.total_error_bound:.1g} "
        f"{found.bound_kind}"
    )


if __name__ == "__main__":
    rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else 5_000_000
    place = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    if place is not None:
        main(rows, place)
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(rows, Path(folder) / "points.npy")
