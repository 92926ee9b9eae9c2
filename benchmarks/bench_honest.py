"""Bar: a bound called exact or certified is never broken, a probabilistic one once in 1000.

Random matrices of known spectra (fast, slow, clustered, flat, low rank, multiple), random K, γ,
tol and budgets, some of them cut short; every solver on each. Prints what was broken, by how much.
Run: python benchmarks/bench_honest.py [count [largest N]]
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter

import numpy as np

from unaligned.errors import AccuracyWarning
from unaligned.operators.base import MatrixOperator
from unaligned.spectra.base import Accuracy, EigenSolver
from unaligned.spectra.exact import Exact
from unaligned.spectra.krylov import Krylov
from unaligned.spectra.landmarks import Landmarks
from unaligned.spectra.nystrom import Nystrom


def random_spectrum(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return n eigenvalues of a random shape: fast, slow, clustered, flat, low rank, multiple."""
    i = np.arange(n)
    shape = rng.integers(8)
    if shape == 0:
        values = np.exp(-rng.uniform(0.01, 1.0) * i)
    elif shape == 1:
        values = (i + 1.0) ** -rng.uniform(0.2, 3.0)
    elif shape == 2:
        values = np.repeat(rng.uniform(0, 1, n), rng.integers(1, 40))[:n]
    elif shape == 3:
        values = 1.0 + 10.0 ** -rng.uniform(1, 14) * rng.standard_normal(n)
    elif shape == 4:
        values = np.where(i < rng.integers(n + 1), rng.uniform(0, 1, n), 0.0)
    elif shape == 5:
        values = np.concatenate([[1.0], rng.uniform(0, 0.1, n)])[:n]
    elif shape == 6:
        values = np.floor(6 * rng.uniform(0, 1, n)) / 6 + 10.0 ** -rng.uniform(3, 15)
    else:
        values = rng.uniform(0, 1, n) ** rng.uniform(1, 20)
    return np.sort(np.maximum(values, 0.0))[::-1] * 10.0 ** rng.uniform(-3, 3)


def random_solvers(rng: np.random.Generator, n: int, k: int) -> list[EigenSolver]:
    """Return every solver with random settings, its budget cut short now and then."""
    cut = int(rng.integers(1, n + 1)) if rng.random() < 0.6 else None
    return [
        Exact(),
        Nystrom(sketch_size=int(rng.integers(k, n + 1)) if rng.random() < 0.5 else None),
        Krylov(
            block_size=int(rng.integers(1, 17)) if rng.random() < 0.7 else None, max_columns=cut
        ),
        Landmarks(max_landmarks=cut),
    ]


def stress(count: int = 1000, largest: int = 160) -> None:
    """Count the cases whose true error exceeds the bound, per value or in the 2-norm."""
    seen, broken = Counter(), Counter()
    for seed in range(count):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, largest))
        values = random_spectrum(rng, n)
        basis, _ = np.linalg.qr(rng.standard_normal((n, n)))
        matrix = (basis * values) @ basis.T
        k = int(rng.integers(1, n + 1) ** rng.choice([0.5, 1.0]))
        gamma = 10.0 ** rng.uniform(-10, -2)
        accuracy = Accuracy(gamma, 10.0 ** rng.uniform(-8, 0))
        for solver in random_solvers(rng, n, k):
            spectrum = solver.solve(MatrixOperator(0.5 * (matrix + matrix.T)), k, accuracy, rng)
            errors = np.abs(np.log((values[:k] + gamma) / (spectrum.eigenvalues + gamma)))
            row = solver.name, spectrum.bound_kind
            seen[row] += 1
            bound, total = spectrum.log_error(gamma), spectrum.total_log_error(gamma)
            if (errors > bound).any() or np.linalg.norm(errors) > total:
                broken[row] += 1
                ratio = max(np.nanmax(errors / bound), np.linalg.norm(errors) / total)
                print(f"seed {seed}: N={n} K={k} {solver} {spectrum.bound_kind}: {ratio:.3g}")
    for row, number in sorted(seen.items()):
        print(f"{row[0]:10} {row[1]:14} {number:6} cases, {broken[row]} broken")


if __name__ == "__main__":
    warnings.simplefilter("ignore", AccuracyWarning)
    stress(*map(int, sys.argv[1:3]))
