"""Bar: 39 datasets of 6000 × 50 through `compare`, no slower than one Python loop, under 2 GiB.

The loop computes the same signatures one after the other, in a process of its own, reading and
importing included; 0.75 of its time is aimed at. Run: python benchmarks/bench_cli.py
(with --datasets, --rows and --jobs for other sizes)
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

GIB = 2**30
LOOP = """
import sys
import numpy as np
import unaligned as ua
found = [ua.signature(np.load(path), n_eigenvalues=200) for path in sys.argv[1:]]
[[ua.distance(a, b) for a in found] for b in found]
"""


def write(folder: Path, n_datasets: int, n_rows: int) -> list[str]:
    """Write clouds in 50 dimensions whose spectra decay at different speeds."""
    rng = np.random.default_rng(0)
    paths = []
    for i in range(n_datasets):
        power = 0.3 + 0.7 * i / max(1, n_datasets - 1)
        cloud = rng.normal(size=(n_rows, 50)) * np.arange(1, 51) ** -power
        paths.append(str(folder / f"cloud{i}.npy"))
        np.save(paths[-1], cloud)
    return paths


def timed(arguments: list[str]) -> tuple[float, float]:
    """Return the seconds and the GiB of resident memory that a process took at most."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{arguments[:3]} exited with {process.returncode}")
    return time.perf_counter() - start, usage.ru_maxrss * 1024 / GIB


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", type=int, default=39)
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--jobs", type=int, default=None, help="as of `compare`; its default")
    asked = parser.parse_args()
    jobs = [] if asked.jobs is None else ["--jobs", str(asked.jobs)]
    with tempfile.TemporaryDirectory() as folder:
        paths = write(Path(folder), asked.datasets, asked.rows)
        compare = ["-m", "unaligned", "compare", *paths, "--no-cache", "-K", "200", *jobs]
        command, memory = timed(compare)
        loop, loop_memory = timed(["-c", LOOP, *paths])
        print(
            f"{asked.datasets} datasets of {asked.rows} × 50: compare {command:.1f} s, loop "
            f"{loop:.1f} s, ratio {command / loop:.2f} (bar 1, aim 0.75); peak {memory:.2f} GiB "
            f"(bar 2; loop {loop_memory:.2f})"
        )
        kept = [word for word in compare if word != "--no-cache"] + ["--cache", f"{folder}/kept"]
        (first, _), (again, _) = timed(kept), timed(kept)
        print(f"with a cache: first {first:.1f} s, again {again:.1f} s")


if __name__ == "__main__":
    main()
