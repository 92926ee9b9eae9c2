"""What each package adds to an installation, and what Numba earns.

Sizes are those of the installed files, of a package together with what only it needs beside the
core; import times are the least of several fresh processes. Signatures with the defaults are
computed with and without Numba, in CPU time. NumPy vectorises `exp` for AVX-512 alone, so run it
twice, the second time as it would go on a machine without:

    python benchmarks/bench_install.py
    NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL AVX512_SPR" python benchmarks/bench_install.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from importlib.metadata import distribution

import numpy as np
from bench_import import seconds
from datasets import torus
from packaging.requirements import Requirement

import unaligned as ua

CORE = ("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "typer", "rich")
EXTRA = {"numba": "numba", "pandas": "pandas", "matplotlib": "matplotlib.figure"}


def closure(names: Iterable[str]) -> set[str]:
    """Return these packages and all that they need."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name not in found:
            found.add(name)
            needs = [Requirement(line) for line in distribution(name).requires or ()]
            waiting += [n.name for n in needs if not n.marker or n.marker.evaluate({"extra": ""})]
    return found


def mebibytes(names: Iterable[str]) -> float:
    files = (file for name in names for file in distribution(name).files or ())
    paths = {file.locate() for file in files}
    return sum(os.stat(path).st_size for path in paths if os.path.isfile(path)) / 2**20


def sizes() -> None:
    core = closure(CORE)
    print(f"{'the core':12} {mebibytes(core):5.0f} MiB")
    print(f"{'with all':12} {mebibytes(closure([*CORE, *EXTRA])):5.0f} MiB")
    for name in CORE[:3]:
        print(f"  {name:12} {mebibytes([name]):3.0f} MiB")
    for name, module in EXTRA.items():
        more = closure([name]) - core
        took = seconds(f"import {module}") - seconds("import numpy")
        others = ", ".join(sorted(more - {name}))
        print(f"{name:12} {mebibytes(more):5.0f} MiB, import {took:.2f} s, with {others}")


def signatures() -> None:
    """Print the CPU seconds of signatures with the defaults."""
    rng = np.random.default_rng(0)
    clouds = {
        "N(0, I₂₀), N=3000": rng.normal(size=(3000, 20)),
        "variances 1/i², 10,000 × 30": rng.normal(size=(10_000, 30)) / np.arange(1, 31),
        "3-torus, N=8000": torus(8000),
        "3-torus, N=100,000": torus(100_000),
    }
    ua.signature(clouds["3-torus, N=8000"][:700])  # compiles
    for name, points in clouds.items():
        runs = []
        for _ in range(3):
            start = time.process_time()
            ua.signature(points, rng=0)
            runs.append(time.process_time() - start)
        print(f"{name}\t{min(runs)}")


def numba() -> None:
    found = []
    for disabled in ("0", "1"):
        done = subprocess.run(
            [sys.executable, __file__, "signatures"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "NUMBA_DISABLE_JIT": disabled},
        )
        found.append(dict(line.split("\t") for line in done.stdout.splitlines()))
    for name, took in found[0].items():
        ratio = float(found[1][name]) / float(took)
        print(f"{name:28} {float(took):6.2f} CPU s with Numba, {ratio:.2f} × without")


if __name__ == "__main__":
    for part in sys.argv[1:] or ("sizes", "numba"):
        {"sizes": sizes, "numba": numba, "signatures": signatures}[part]()
