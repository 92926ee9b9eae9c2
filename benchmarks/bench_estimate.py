"""Bar: `ua.estimate` is within a factor of three of the truth, in about a second.

For sets from 10³ rows on: predicted and true seconds and peak memory beyond the data, their
ratios, the time of the estimate itself, and the predicted and the chosen solver. Each set runs
in its own process, so that none reuses memory freed by another.
Run: python benchmarks/bench_estimate.py [largest N, default 1000000]
"""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
from bench_scaling import Peak
from datasets import digits, noise

import unaligned as ua
from unaligned.data.shapes import torus2, torus3, torus_angles


def points(name: str) -> np.ndarray:
    kind, _, count = name.partition(" ")
    n = int(float(count or 0))
    makers = {
        "digits": digits,
        "noise": noise,
        "2-torus": lambda: torus2(torus_angles(n, 2, rng=0)),
        "3-torus": lambda: torus3(torus_angles(n, 3, rng=0)),
        "normal10": lambda: np.random.default_rng(0).normal(size=(n, 10)),
    }
    return makers[kind]()


def row(name: str) -> None:
    data = points(name)
    ua.signature(torus3(torus_angles(600, 3, rng=1)), n_eigenvalues=20)  # compile
    started = time.perf_counter()
    predicted = ua.estimate(data)
    own = time.perf_counter() - started
    with Peak() as peak:
        started = time.perf_counter()
        found = ua.signature(data)
        seconds = time.perf_counter() - started
    used = found.stats["chosen"]
    memory = predicted.memory_bytes / 2**20
    print(
        f"{name:14}  {predicted.seconds:8.2f}  {seconds:8.2f}  {predicted.seconds / seconds:5.2f} "
        f"{memory:8.0f}  {peak.most:8.0f}  {memory / max(peak.most, 1.0):5.2f}  {own:6.2f}  "
        f"{own / seconds:5.2f}  {predicted.solver} {used}"
        f" {found.stats.get('landmarks', found.stats.get('columns', ''))}",
        flush=True,
    )
    print(f"    {predicted}", flush=True)


def main(largest: float) -> None:
    print(
        "set              seconds      true  ratio       MiB      true  ratio     own  share  "
        "solver predicted and chosen"
    )
    names = ["digits", "noise", "normal10 1e3", "normal10 5e3"]
    sizes = [10**k for k in range(3, 9) if 10**k <= largest]
    names += [f"{kind} {n:.0e}" for kind in ("2-torus", "3-torus") for n in sizes]
    for name in names:
        sys.stdout.flush()
        subprocess.run([sys.executable, __file__, "--row", name], check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--row"]:
        row(sys.argv[2])
    else:
        main(float(sys.argv[1]) if len(sys.argv) > 1 else 1e6)
