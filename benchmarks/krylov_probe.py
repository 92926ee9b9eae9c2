"""How fast `krylov` is against `eigvalsh`, and how often its bound fails on random small cases.

Usage: ``python benchmarks/krylov_probe.py speed`` or ``... stress [count [largest N]]``.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator

import numpy as np
from scipy.linalg import eigvalsh
from scipy.spatial.distance import pdist
from sklearn.datasets import load_digits

from unaligned._check import FloatArray
from unaligned.errors import AccuracyWarning
from unaligned.operators.affinity import GaussianAffinity
from unaligned.operators.base import MatrixOperator
from unaligned.operators.diffusion import DiffusionOperator
from unaligned.spectra.base import Accuracy
from unaligned.spectra.krylov import Krylov


def datasets() -> Iterator[tuple[str, FloatArray, int, float]]:
    """Yield the name, the points, K and gamma of the rows of the accuracy bar."""
    rng = np.random.default_rng(0)
    yield "digits", load_digits().data, 200, 1e-8
    yield "N(0,I_100)", rng.standard_normal((3000, 100)), 200, 1e-8
    centres = 5.0 * rng.standard_normal((5, 2560)) / np.sqrt(2560) * 10
    clusters = centres[rng.integers(5, size=3000)] + rng.standard_normal((3000, 2560))
    yield "five clusters", clusters, 500, 1e-6
    angles = rng.uniform(0, 2 * np.pi, (3, 3000))
    yield "3-torus", np.vstack([np.cos(angles), np.sin(angles)]).T, 200, 1e-8


def speed() -> None:
    """Print columns, errors, bounds and CPU seconds (the best of three) of every row.

    CPU time, with OPENBLAS_NUM_THREADS=1 in the environment, is what a busy machine can measure.
    """
    print(f"{'':14} columns probe checks  kind           error    bound   krylov eigvalsh  ratio")
    for name, points, k, gamma in datasets():
        operator = DiffusionOperator(
            GaussianAffinity(points, 2.0 * float(np.median(pdist(points, "sqeuclidean"))))
        )
        matrix = operator.to_dense()
        operator.diagonal()
        truths, spectra, exact, krylov = [], [], [], []
        for repeat in range(3):
            rng = np.random.default_rng(repeat)
            start = time.process_time()
            truths.append(eigvalsh(matrix, check_finite=False)[::-1][:k])
            exact.append(time.process_time() - start)
            start = time.process_time()
            spectra.append(Krylov().solve(operator, k, Accuracy(gamma), rng))
            krylov.append(time.process_time() - start)
        spectrum = spectra[-1]
        error = _error(truths[-1], spectrum.eigenvalues, gamma)
        print(
            f"{name:14} {spectrum.stats['columns']:7} {spectrum.stats['probe_columns']:5} "
            f"{spectrum.stats['checks']:6}  {spectrum.bound_kind:13} {error:.1e}  "
            f"{spectrum.total_log_error(gamma):.1e}  {min(krylov):6.2f} {min(exact):8.2f} "
            f"{min(exact) / min(krylov):6.2f}"
        )


def random_spectrum(rng: np.random.Generator, n: int) -> FloatArray:
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


def stress(count: int = 1000, largest: int = 160) -> None:
    """Count the cases whose true error exceeds the bound, per value or in the 2-norm."""
    violations: dict[str, int] = {}
    kinds: dict[str, int] = {}
    for seed in range(count):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, largest))
        values = random_spectrum(rng, n)
        basis, _ = np.linalg.qr(rng.standard_normal((n, n)))
        matrix = (basis * values) @ basis.T
        k = int(rng.integers(1, n + 1) ** rng.choice([0.5, 1.0]))
        solver = Krylov(
            block_size=int(rng.integers(1, 17)) if rng.random() < 0.7 else None,
            max_columns=int(rng.integers(1, n + 1)) if rng.random() < 0.6 else None,
        )
        gamma = 10.0 ** rng.uniform(-10, -2)
        accuracy = Accuracy(gamma, 10.0 ** rng.uniform(-8, 0))
        spectrum = solver.solve(MatrixOperator(0.5 * (matrix + matrix.T)), k, accuracy, rng)
        errors = np.abs(np.log((values[:k] + gamma) / (spectrum.eigenvalues + gamma)))
        kinds[spectrum.bound_kind] = kinds.get(spectrum.bound_kind, 0) + 1
        covered = np.all(errors <= spectrum.log_error(gamma)) and _error(
            values[:k], spectrum.eigenvalues, gamma
        ) <= spectrum.total_log_error(gamma)
        if not covered:
            violations[spectrum.bound_kind] = violations.get(spectrum.bound_kind, 0) + 1
            ratio = np.nanmax(errors / spectrum.log_error(gamma))
            print(f"seed {seed}: N={n} K={k} {solver} {spectrum.bound_kind} by {ratio:.3g}")
    print(f"{count} cases {kinds}; violations {violations or 0}")


def _error(truth: FloatArray, estimate: FloatArray, gamma: float) -> float:
    return float(np.linalg.norm(np.log((np.maximum(truth, 0) + gamma) / (estimate + gamma))))


if __name__ == "__main__":
    warnings.simplefilter("ignore", AccuracyWarning)
    if sys.argv[1] == "speed":
        speed()
    else:
        stress(*map(int, sys.argv[2:4]))
