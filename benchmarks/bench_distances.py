"""Bar: no distance is slower than the plain use of what it rests on (tori N=1000, ratio ≤ 1.1).

Ours is the whole of `ua.distance`, checks and fingerprints included; plain is what one would
write with the library at hand. Both run in turn, and the median of the ratios is taken.
Run: python benchmarks/bench_distances.py [name ...]
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import unaligned as ua
from unaligned.data.shapes import torus2, torus_angles

N_SAMPLES = 1000
BAR = 1.1

Plain = Callable[[np.ndarray, np.ndarray], float]


@dataclass(frozen=True)
class Row:
    """One line of the table: options of ours, the plain way, repeats, and what may differ."""

    plain: Plain
    options: dict[str, Any] = field(default_factory=dict)
    repeats: int = 15
    rtol: float = 1e-6


def pair() -> tuple[np.ndarray, np.ndarray]:
    first = torus2(torus_angles(N_SAMPLES, 2, rng=0))
    return first, torus2(torus_angles(N_SAMPLES, 2, rng=1), radius_scale=0.6)


def plain_wasserstein(x: np.ndarray, y: np.ndarray) -> float:
    import ot

    return float(np.sqrt(ot.emd2([], [], ot.dist(x, y))))


def plain_gromov(x: np.ndarray, y: np.ndarray) -> float:
    import ot

    C1, C2 = (ot.dist(z, z, metric="euclidean") for z in (x, y))
    return float(np.sqrt(ot.gromov.gromov_wasserstein2(C1, C2)))


def plain_mmd(x: np.ndarray, y: np.ndarray) -> float:
    from scipy.spatial.distance import pdist
    from sklearn.metrics.pairwise import rbf_kernel

    gamma = 0.5 / np.median(pdist(np.vstack([x, y]))) ** 2
    xx, yy, xy = (rbf_kernel(*z, gamma=gamma).mean() for z in ((x, x), (y, y), (x, y)))
    return float(np.sqrt(xx + yy - 2 * xy))


def plain_frechet(x: np.ndarray, y: np.ndarray) -> float:
    from scipy.linalg import sqrtm

    S1, S2 = np.cov(x, rowvar=False), np.cov(y, rowvar=False)
    gap = np.sum((x.mean(axis=0) - y.mean(axis=0)) ** 2)
    return float(gap + np.trace(S1 + S2 - 2 * sqrtm(S1 @ S2).real))


def plain_cka(x: np.ndarray, y: np.ndarray) -> float:
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    cross, first, second = (np.linalg.norm(M) for M in (x.T @ y, x.T @ x, y.T @ y))
    return float(1 - cross**2 / (first * second))


def plain_cka_rbf(x: np.ndarray, y: np.ndarray) -> float:
    from scipy.spatial.distance import pdist
    from sklearn.metrics.pairwise import rbf_kernel

    def centred(z: np.ndarray) -> np.ndarray:
        K = rbf_kernel(z, gamma=0.5 / np.median(pdist(z)) ** 2)
        return K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()

    K, L = centred(x), centred(y)
    return float(1 - np.vdot(K, L) / (np.linalg.norm(K) * np.linalg.norm(L)))


def plain_crosslid(x: np.ndarray, y: np.ndarray) -> float:
    from sklearn.neighbors import NearestNeighbors

    def one_way(a: np.ndarray, b: np.ndarray) -> float:
        r = NearestNeighbors(n_neighbors=100).fit(b).kneighbors(a)[0]
        return float(np.mean(-1.0 / np.log(r / r[:, -1:]).mean(axis=1)))

    return 0.5 * (one_way(x, y) + one_way(y, x))


# name of the distance -> its plain use; "name, variant" where there are several.
TABLE: dict[str, Row] = {
    "wasserstein": Row(plain_wasserstein),
    "gromov-wasserstein": Row(plain_gromov, repeats=3),
    "mmd": Row(plain_mmd),
    "frechet": Row(plain_frechet, repeats=50),
    "cka": Row(plain_cka, repeats=50),
    "cka, rbf": Row(plain_cka_rbf, {"kernel": "rbf"}),
    "crosslid": Row(plain_crosslid),
}


def timed(function: Callable[[], float]) -> tuple[float, float]:
    start = time.perf_counter()
    value = function()
    return time.perf_counter() - start, value


def measure(name: str, row: Row) -> None:
    x, y = pair()
    distance = name.partition(",")[0]
    ratios, ours, theirs = [], [], []
    for turn in range(row.repeats + 1):
        mine, value = timed(lambda: ua.distance(x, y, distance, **row.options))
        plain, expected = timed(lambda: row.plain(x, y))
        if turn:  # the first one compiles and imports
            ratios.append(mine / plain)
            ours.append(mine)
            theirs.append(plain)
    ratio = float(np.median(ratios))
    agrees = abs(value - expected) <= row.rtol * abs(expected)
    verdict = "ok" if ratio <= BAR else "SLOWER"
    print(
        f"{name:20s} ours {1e3 * np.median(ours):9.2f} ms  plain {1e3 * np.median(theirs):9.2f} "
        f"ms  ratio {ratio:5.2f} {verdict:6s} values {'agree' if agrees else 'DIFFER'} "
        f"({value:.6g}, {expected:.6g})",
        flush=True,
    )


def main() -> None:
    wanted = sys.argv[1:] or list(TABLE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the plain way has warnings of its own
        for name in wanted:
            measure(name, TABLE[name])


if __name__ == "__main__":
    main()
