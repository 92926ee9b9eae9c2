"""Bar: no topological distance is slower than the plain use of its library (ratio ≤ 1.1).

Two 3-tori of 1000 points; of `geometry-score` up to 10,000. Plain ripser cannot do H2 there (300
points take 4 s, 400 points 10 s and 0.8 GB, and it grows as N^3.4), so its ratio is at 300, and
ours is timed alone at 1000. The two ways run by turns, five times, and their quickest runs are
compared: what a busy machine adds is never taken away. `mtd` and `geometry-score` draw rows at
random, the plain versions draw others, hence other values; ours runs on two threads.
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


# name -> plain way (None where it is out of reach), N, options of ours; "name, variant".
TABLE: dict[str, tuple[Callable[..., float] | None, int, dict[str, int]]] = {
    "bottleneck-h0": (plain_bottleneck(0), 1000, {}),
    "bottleneck-h1": (plain_bottleneck(1), 1000, {}),
    "bottleneck-h2": (plain_bottleneck(2), 300, {}),
    "bottleneck-h2, large": (None, 1000, {}),
    "mtd": (plain_mtd, 1000, {"n_rounds": ROUNDS["mtd"]}),
    **{
        f"geometry-score, {n}": (plain_geometry_score, n, {"n_rounds": ROUNDS["geometry-score"]})
        for n in (1000, 3000, 10_000)
    },
}


def measure(row: str) -> None:
    plain, n_samples, options = TABLE[row]
    name = row.partition(",")[0]
    a, b = (torus3(torus_angles(n_samples, 3, rng=seed)) for seed in (0, 1))
    b = 1.2 * b
    ua.distance(a[:20], b[:20], name, **options)  # imports
    theirs, ours = [], []
    for _ in range(REPEATS if plain else 1):
        if plain:
            theirs.append(timed(plain, a, b))
        ours.append(timed(ua.distance, a, b, name, **options))
    told = f"{row} N={n_samples}: {min(ours)[0]:.2f} s"
    if theirs:
        ratio = min(ours)[0] / min(theirs)[0]
        verdict = "met" if ratio <= BAR else "MISSED"
        told += f", plain {min(theirs)[0]:.2f} s, ratio {ratio:.2f} (bar {BAR}: {verdict})"
        told += f"; values {ours[0][1]:.6g}, plain {theirs[0][1]:.6g}"
    print(told, flush=True)


def main(names: list[str]) -> None:
    for row in names or TABLE:
        measure(row)


def timed(function: Callable[..., float], *args: Any, **options: Any) -> tuple[float, float]:
    """Return the seconds and the value."""
    start = time.perf_counter()
    value = function(*args, **options)
    return time.perf_counter() - start, value


if __name__ == "__main__":
    main(sys.argv[1:])
