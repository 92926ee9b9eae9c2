"""`imd` against a straightforward version: a loop over rows, then quadrature.

Two plain quadratures are timed, one probe after the other and the authors' way (all probes
together, every step orthogonalised against all before), and the quicker of them is the bar.
Ratios of the median over repeats that alternate, in one run: the machine is noisy.

    python benchmarks/bench_imd.py [repeats]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from datasets import torus
from scipy import sparse

from unaligned.data.dataset import Dataset
from unaligned.metrics.heat_trace import IMD, SCALE, TIMES

N_NEIGHBORS, N_STEPS, N_PROBES = 5, 10, 100


def row_loop_graph(points: np.ndarray) -> sparse.csr_matrix:
    """Return the normalised Laplacian of the graph of nearest neighbours, row by row."""
    n = len(points)
    graph = sparse.lil_matrix((n, n))
    squares = (points * points).sum(axis=1)
    for i in range(n):
        nearest = np.argpartition(squares - 2 * points @ points[i], N_NEIGHBORS + 1)
        nearest = nearest[: N_NEIGHBORS + 1]
        graph[i, nearest[nearest != i]] = 1
    graph = graph.tocsr()
    graph = graph.maximum(graph.T)
    scale = sparse.diags(1 / np.sqrt(np.asarray(graph.sum(axis=1)).ravel()))
    return (sparse.eye(n) - scale @ graph @ scale).tocsr()


def probe_by_probe(L: sparse.csr_matrix, rng: np.random.Generator) -> np.ndarray:
    """Return the tridiagonal matrices of one Lanczos run per probe."""
    runs = []
    for _ in range(N_PROBES):
        v = rng.normal(size=L.shape[0])
        v /= np.linalg.norm(v)
        basis, T = [v], np.zeros((N_STEPS, N_STEPS))
        for j in range(N_STEPS):
            w = L @ basis[j]
            T[j, j] = w @ basis[j]
            for u in basis:
                w = w - (w @ u) * u
            if j + 1 < N_STEPS:
                T[j, j + 1] = T[j + 1, j] = np.linalg.norm(w)
                basis.append(w / T[j, j + 1])
        runs.append(T)
    return np.array(runs)


def all_probes(L: sparse.csr_matrix, rng: np.random.Generator) -> np.ndarray:
    """Return the same with all probes at once and full orthogonalisation by einsum."""
    V = np.zeros((L.shape[0], N_STEPS, N_PROBES))
    T = np.zeros((N_PROBES, N_STEPS, N_STEPS))
    v = rng.normal(size=(L.shape[0], N_PROBES))
    V[:, 0] = v / np.linalg.norm(v, axis=0)
    for j in range(N_STEPS):
        w = L @ V[:, j]
        T[:, j, j] = np.einsum("ij,ij->j", w, V[:, j])
        if j + 1 < N_STEPS:
            w -= np.einsum("ijk,jk->ik", V, np.einsum("ijk,ik->jk", V, w))
            beta = np.linalg.norm(w, axis=0)
            T[:, j, j + 1] = T[:, j + 1, j] = beta
            V[:, j + 1] = w / beta
    return T


def plain(points: np.ndarray, lanczos: Callable[..., np.ndarray]) -> np.ndarray:
    L = row_loop_graph(points)
    nodes, vectors = np.linalg.eigh(lanczos(L, np.random.default_rng(0)))
    weights = vectors[:, 0] ** 2
    heat = (np.exp(-TIMES[:, None, None] * nodes) * weights).sum(-1).mean(-1)
    control = TIMES * np.exp(-TIMES) * ((nodes * weights).sum(-1).mean() - 1)
    return SCALE * (heat + control)


def ours(points: np.ndarray) -> np.ndarray:
    return SCALE * IMD().describe(Dataset(points), 0).values


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    clouds = {
        "3-torus 3000 × 4": torus(3000),
        "N(0, I) 3000 × 10": np.random.default_rng(0).normal(size=(3000, 10)),
        "N(0, I) 3000 × 100": np.random.default_rng(0).normal(size=(3000, 100)),
    }
    ways = {
        "ours": ours,
        "probe by probe": lambda points: plain(points, probe_by_probe),
        "all probes": lambda points: plain(points, all_probes),
    }
    ours(clouds["3-torus 3000 × 4"][:50])  # imports
    for name, points in clouds.items():
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(repeats):
            for way, function in ways.items():
                started = time.perf_counter()
                function(points)
                seconds[way].append(time.perf_counter() - started)
        median = {way: float(np.median(s)) for way, s in seconds.items()}
        bar = min(m for way, m in median.items() if way != "ours")
        told = ", ".join(f"{way} {m:.3f} s" for way, m in median.items())
        print(f"{name}: {told}; {bar / median['ours']:.1f} times faster (bar: 3)")


if __name__ == "__main__":
    main()
