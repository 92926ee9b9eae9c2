"""Default threads against one BLAS thread and against `n_jobs`, on a quiet and a busy machine.

Every setting runs in its own process, alternating with the others. `busy` starts as many
processes that only count as there are cores. CPU seconds include children.

    python benchmarks/bench_busy.py [quiet|busy] [repeats] [--against SRC]

`--against` names the `src` folder of another checkout, whose default is timed as well.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

SRC = Path(__file__).resolve().parent.parent / "src"

CASES = {"12 × 1500 × 19": (12, 1500, 19), "4 × 6000 × 50": (4, 6000, 50)}
CASES |= {"1 × 8000 × 3": (1, 8000, 3), "1 × 20,000 × 50": (1, 20_000, 50)}

CHILD = """
import json, resource, sys, time
import numpy as np
import unaligned as ua
count, n, d, n_jobs = json.loads(sys.argv[1])
rng = np.random.default_rng(0)
def points(n):
    if d == 3:
        a, b = rng.uniform(0, 2 * np.pi, (2, n))
        ring = 2 + np.cos(a)
        return np.stack([ring * np.cos(b), ring * np.sin(b), np.sin(a)], axis=1)
    return rng.normal(size=(n, d)) / np.sqrt(np.arange(1, d + 1))
def used():
    found = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(r.ru_utime + r.ru_stime for r in found)
ua.compare([points(600), points(600)])
time.sleep(0.5)  # BLAS threads of the warm-up spin for a while, which is not ours
data = [points(n) for _ in range(count)]
wall, cpu = time.perf_counter(), used()
if count == 1:
    ua.signature(data[0])
else:
    ua.compare(data, n_jobs=n_jobs)
print(json.dumps([time.perf_counter() - wall, used() - cpu]))
"""


def run(
    case: tuple[int, int, int], n_jobs: int | None, one_thread: bool, src: Path
) -> list[float]:
    """Return wall and CPU seconds of one setting."""
    environment = {**os.environ, "PYTHONPATH": str(src)}
    if one_thread:
        environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", CHILD, json.dumps([*case, n_jobs])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    times: list[float] = json.loads(done.stdout)
    return times


def main() -> None:
    arguments = sys.argv[1:]
    other = Path(arguments[arguments.index("--against") + 1]) if "--against" in arguments else None
    loads = [word for word in arguments if word in ("quiet", "busy")] or ["quiet", "busy"]
    repeats = next((int(word) for word in arguments if word.isdigit()), 3)
    for load in loads:
        idle = [sys.executable, "-c", "while True: pass"]
        count = (os.cpu_count() or 1) if load == "busy" else 0
        beside = [subprocess.Popen(idle) for _ in range(count)]
        try:
            compare(load, repeats, other)
        finally:
            for process in beside:
                process.kill()


def compare(load: str, repeats: int, other: Path | None) -> None:
    """Print a table of medians for one load."""
    print(f"{load}: wall s (CPU s)", flush=True)
    settings = {
        "default": (None, False, SRC),
        "one BLAS thread": (1, True, SRC),
        "n_jobs=-1": (-1, False, SRC),
    }
    if other is not None:
        settings["default of the other checkout"] = (None, False, other)
    for name, case in CASES.items():
        times: dict[str, list[list[float]]] = {setting: [] for setting in settings}
        for _ in range(repeats * (7 if case == (1, 8000, 3) else 1)):  # a tenth of a second
            for setting, values in settings.items():
                times[setting].append(run(case, *values))
        wall, cpu = (
            {s: statistics.median(row[i] for row in rows) for s, rows in times.items()}
            for i in (0, 1)
        )
        for setting in settings:
            print(f"  {name:16} {setting:30} {wall[setting]:7.2f} ({cpu[setting]:.2f})")
        best = min(wall[s] for s in ("one BLAS thread", "n_jobs=-1"))
        print(
            f"  {name:16} CPU / one BLAS thread {cpu['default'] / cpu['one BLAS thread']:.2f}"
            f" (bar 1.3), wall / best by hand {wall['default'] / best:.2f} (bar 1.5 if busy)",
            flush=True,
        )
        if other is not None:
            before = wall["default of the other checkout"]
            print(f"  {name:16} wall / other checkout {wall['default'] / before:.2f}", flush=True)


if __name__ == "__main__":
    main()
