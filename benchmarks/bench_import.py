"""Bar: `import unaligned` takes at most 1.5× the import of scipy.linalg and scipy.spatial.

Fresh processes, several repeats, the fastest of each. Run: python benchmarks/bench_import.py
"""

from __future__ import annotations

import subprocess
import sys

CASES = {
    "scipy.linalg, scipy.spatial": "import scipy.linalg, scipy.spatial",
    "unaligned": "import unaligned",
    "unaligned and its verbs": "import unaligned as ua; ua.compare",
}
REPEATS = 7


def seconds(statement: str) -> float:
    code = f"import time; t=time.perf_counter(); {statement}; print(time.perf_counter()-t)"
    runs = [
        float(
            subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True
            ).stdout
        )
        for _ in range(REPEATS)
    ]
    return min(runs)


def main() -> None:
    base = None
    for name, statement in CASES.items():
        took = seconds(statement)
        base = base or took
        print(f"{name:30} {took * 1000:8.1f} ms   {took / base:5.2f} × scipy")


if __name__ == "__main__":
    main()
