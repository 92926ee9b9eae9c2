"""Bar: no distance is slower than the plain use of what it rests on (tori N=1000, ratio ≤ 1.1).

Plain is what one would write with the library at hand, without a look at the data. Ours is the
whole of `ua.distance`: the data is read, checked for NaN, and compared. "checked" is the plain
way after scikit-learn's `check_array` of both arrays, which is what its own functions do first,
and "work" is ours without reading and checking: describe and compare. All run in turn, and the
medians of the ratios are taken; "extra" is the median of the differences to plain, which says
more than a ratio where the plain way takes a fraction of a millisecond.
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
from sklearn.utils import check_array

import unaligned as ua
from unaligned.comparison import DISTANCES
from unaligned.data.shapes import torus2, torus_angles

N_SAMPLES = 1000
BAR = 1.1

Plain = Callable[[np.ndarray, np.ndarray], float]


@dataclass(frozen=True)
class Row:
    """One line of the table: the plain way, our options, the data, repeats, what may differ."""

    plain: Plain
    options: dict[str, Any] = field(default_factory=dict)
    data: Callable[[], tuple[np.ndarray, np.ndarray]] = field(default_factory=lambda: tori)
    repeats: int = 15
    rtol: float = 1e-6


def tori() -> tuple[np.ndarray, np.ndarray]:
    first = torus2(torus_angles(N_SAMPLES, 2, rng=0))
    return first, torus2(torus_angles(N_SAMPLES, 2, rng=1), radius_scale=0.6)


def wide() -> tuple[np.ndarray, np.ndarray]:
    """Return two sets of 512 features, as embeddings have."""
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(512, 512)) / 20
    first = rng.normal(size=(N_SAMPLES, 512))
    return first, first @ mixing + 0.1 * rng.normal(size=(N_SAMPLES, 512))


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
    "frechet": Row(plain_frechet, repeats=200),
    "frechet, wide": Row(plain_frechet, data=wide, repeats=5),
    "cka": Row(plain_cka, repeats=200),
    "cka, wide": Row(plain_cka, data=wide),
    "cka, rbf": Row(plain_cka_rbf, {"kernel": "rbf"}),
    "crosslid": Row(plain_crosslid),
    "mmd, wide": Row(plain_mmd, data=wide),
    "wasserstein, wide": Row(plain_wasserstein, data=wide),
    "crosslid, wide": Row(plain_crosslid, data=wide, repeats=5),
}


def timed(function: Callable[[], float]) -> tuple[float, float]:
    start = time.perf_counter()
    value = function()
    return time.perf_counter() - start, value


def measure(name: str, row: Row) -> None:
    x, y = row.data()
    distance = name.partition(",")[0]
    method = DISTANCES[distance].from_options(row.options)
    ready = [ua.Dataset(x, name="x"), ua.Dataset(y, name="y")]
    method = method.fit(ready)
    ways: dict[str, Callable[[], float]] = {
        "plain": lambda: row.plain(x, y),
        "checked": lambda: row.plain(check_array(x), check_array(y)),
        "ours": lambda: ua.distance(x, y, distance, **row.options),
        "work": lambda: method.compare(*(method.describe(d, 0) for d in ready)),
    }
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    values: dict[str, float] = {}
    for turn in range(row.repeats + 1):
        for way, function in ways.items():
            took, value = timed(function)
            values[way] = value
            if turn:  # the first one compiles and imports
                seconds[way].append(took)
    report(name, row, seconds, values)


def report(name: str, row: Row, seconds: dict[str, list[float]], values: dict[str, float]) -> None:
    ours, plain, checked, work = (
        np.array(seconds[way]) for way in ("ours", "plain", "checked", "work")
    )
    ratio = float(np.median(ours / plain))
    verdict = "ok" if ratio <= BAR else "SLOWER"
    agree = abs(values["ours"] - values["plain"]) <= row.rtol * abs(values["plain"])
    print(
        f"{name:20s} plain {1e3 * np.median(plain):8.2f} ms  ours / plain {ratio:5.2f} "
        f"{verdict:6s} extra {1e3 * np.median(ours - plain):+8.2f} ms  ours / checked "
        f"{np.median(ours / checked):5.2f}  work / plain {np.median(work / plain):5.2f}  values "
        f"{'agree' if agree else 'DIFFER'} ({values['ours']:.6g}, {values['plain']:.6g})",
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
