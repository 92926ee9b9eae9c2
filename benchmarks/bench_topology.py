"""Bar: no topological distance is slower than the plain use of its library (ratio ≤ 1.1).

Two 3-tori of 1000 points; H2, for which that is out of reach of ripser, at 250. Each way is timed
five times by turns, medians are compared; on a busy machine trust processor time. `mtd` and
`geometry-score` draw rows at random, the plain versions draw others, hence other values.
Run: python benchmarks/bench_topology.py [names]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import gudhi
import numpy as np
from ripser import ripser
from scipy.spatial.distance import cdist

import unaligned as ua
from unaligned.data.shapes import torus3, torus_angles

REPEATS = 5
BAR = 1.1
ROUNDS = {"mtd": 1, "geometry-score": 200}


def plain_bottleneck(dimension: int) -> Callable[..., float]:
    def distance(a: np.ndarray, b: np.ndarray) -> float:
        first, second = (ripser(x, maxdim=dimension)["dgms"][dimension] for x in (a, b))
        return gudhi.bottleneck_distance(first, second)

    return distance


def plain_mtd(a: np.ndarray, b: np.ndarray) -> float:
    """Both directions of one round, all of Q."""
    return (cross_barcode(a[:200], b) + cross_barcode(b[:200], a)) / 2


def cross_barcode(P: np.ndarray, Q: np.ndarray) -> float:
    both = np.vstack([P, Q])  # the published code has Q first, which is several times slower
    D = cdist(both, both)
    D[len(P) :, len(P) :] = 0.0
    bars = ripser(D, maxdim=1, distance_matrix=True)["dgms"][1]
    return (bars[:, 1] - bars[:, 0]).sum()


def plain_geometry_score(a: np.ndarray, b: np.ndarray) -> float:
    first, second = (plain_living_times(x, ROUNDS["geometry-score"]) for x in (a, b))
    return ((first - second) ** 2).sum()


def plain_living_times(points: np.ndarray, n_rounds: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    total = np.zeros(100)
    for _ in range(n_rounds):
        distances = cdist(points, points[rng.integers(len(points), size=64)])
        order = np.argsort(distances, axis=1)
        table = np.dstack([order, np.take_along_axis(distances, order, axis=1)])
        alpha_max = distances.max() * len(points) / 5000 / 128
        tree = gudhi.WitnessComplex(table).create_simplex_tree(
            max_alpha_square=alpha_max, limit_dimension=2
        )
        tree.compute_persistence(homology_coeff_field=2)
        bars = np.minimum(tree.persistence_intervals_in_dimension(1).reshape(-1, 2), alpha_max)
        events = np.unique(np.append(bars, [0.0, alpha_max]))
        middles = (events[:-1] + events[1:]) / 2
        alive = ((bars[:, :1] <= middles) & (middles < bars[:, 1:])).sum(axis=0)
        total += np.bincount(alive, np.diff(events), minlength=100)[:100] / alpha_max
    return total / n_rounds


PLAIN = {
    "bottleneck-h0": (plain_bottleneck(0), 1000, {}),
    "bottleneck-h1": (plain_bottleneck(1), 1000, {}),
    "bottleneck-h2": (plain_bottleneck(2), 250, {}),
    "mtd": (plain_mtd, 1000, {"n_rounds": ROUNDS["mtd"]}),
    "geometry-score": (plain_geometry_score, 1000, {"n_rounds": ROUNDS["geometry-score"]}),
}


def main(names: list[str]) -> None:
    for name in names or PLAIN:
        plain, n_samples, options = PLAIN[name]
        a, b = (torus3(torus_angles(n_samples, 3, rng=seed)) for seed in (0, 1))
        b = 1.2 * b
        ua.distance(a[:20], b[:20], name, **options)  # imports
        theirs, ours = [], []
        for _ in range(REPEATS):
            theirs.append(timed(plain, a, b))
            ours.append(timed(ua.distance, a, b, name, **options))
        t, o = (np.median([run[:2] for run in runs], axis=0) for runs in (theirs, ours))
        wall, cpu = o / t
        verdict = "met" if wall <= BAR else "MISSED"
        print(
            f"{name} N={n_samples}: {o[0]:.2f} s, plain {t[0]:.2f} s, ratio {wall:.2f} "
            f"(bar {BAR}: {verdict}), of processor time {cpu:.2f}; "
            f"values {ours[0][2]:.6g}, plain {theirs[0][2]:.6g}",
            flush=True,
        )


def timed(
    function: Callable[..., float], *args: Any, **options: Any
) -> tuple[float, float, float]:
    """Return wall time, processor time and value."""
    wall, cpu = time.perf_counter(), time.process_time()
    value = function(*args, **options)
    return time.perf_counter() - wall, time.process_time() - cpu, value


if __name__ == "__main__":
    main(sys.argv[1:])
