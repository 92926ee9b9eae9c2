"""Bar: no distance is slower than the plain use of what it rests on (tori N=1000, ratio ≤ 1.1).

Plain is what one would write with the library at hand, without a look at the data. Ours is the
whole of `ua.distance`: the data is read, checked for NaN, and compared. "checked" is the plain
way after scikit-learn's `check_array` of both arrays, which is what its own functions do first,
and "work" is ours without reading and checking: describe and compare. All run in turn, each after
a pause in which the BLAS threads of the one before, of NumPy or of SciPy, stop spinning. What
takes less than 0.2 s is called again and again until that has passed, as `timeit` does: right
after a pause a single call of 0.1 ms measures how cold the caches are. The medians of the ratios
are taken; "extra" is the median of the differences to plain, which says more than a ratio where
the plain way takes a fraction of a millisecond.
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
PAUSE = 0.15  # seconds
BATCH = 0.2  # seconds, as `timeit` takes

Plain = Callable[[np.ndarray, np.ndarray], float]


@dataclass(frozen=True)
class Row:
    """One line of the table: the plain way, our options, the data, repeats, what may differ."""

    plain: Plain
    options: dict[str, Any] = field(default_factory=dict)
    data: Callable[[], tuple[np.ndarray, np.ndarray]] = field(default_factory=lambda: tori)
    repeats: int = 11
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


def operator(x: np.ndarray) -> np.ndarray:
    """Return W of Eqs. 1-4 as one would write it."""
    from scipy.spatial.distance import cdist

    squared = cdist(x, x, "sqeuclidean")
    K = np.exp(-squared / (2 * np.median(squared)))
    density = K.sum(axis=1)
    K /= np.outer(density, density)
    root = np.sqrt(K.sum(axis=1))
    return K / np.outer(root, root)


def spectra(x: np.ndarray, y: np.ndarray, k: int) -> list[np.ndarray]:
    from scipy.linalg import eigvalsh

    n = len(x) - 1
    return [eigvalsh(operator(z), subset_by_index=[n - k + 1, n])[::-1] for z in (x, y)]


def plain_les(x: np.ndarray, y: np.ndarray) -> float:
    first, second = (np.log(np.maximum(values, 0) + 1e-8) for values in spectra(x, y, 200))
    return float(np.linalg.norm(first - second))


def plain_imd_diffusion(x: np.ndarray, y: np.ndarray) -> float:
    t = np.logspace(-1, 1, 256)[:, None]
    first, second = ((np.maximum(v, 0) ** t).sum(axis=1) for v in spectra(x, y, 200))
    return float(np.max(np.exp(-2 * (t + 1 / t))[:, 0] * np.abs(first - second)))


def plain_shape_dna(x: np.ndarray, y: np.ndarray) -> float:
    first, second = ((1 - v) / (1 - v[1]) for v in spectra(x, y, 50))
    return float(np.linalg.norm(first[1:] - second[1:]))


def plain_netlsd(x: np.ndarray, y: np.ndarray) -> float:
    from scipy.linalg import eigvalsh
    from scipy.sparse.csgraph import laplacian
    from sklearn.neighbors import kneighbors_graph

    def heat(z: np.ndarray) -> np.ndarray:
        graph = kneighbors_graph(z, 5)
        graph = graph.maximum(graph.T)
        values = eigvalsh(laplacian(graph, normed=True).toarray())
        return np.exp(-np.logspace(-2, 2, 250)[:, None] * values).mean(axis=1)

    return float(np.linalg.norm(heat(x) - heat(y)))


def regular(x: np.ndarray) -> np.ndarray:
    return operator(x) + 1e-8 * np.eye(len(x))


def plain_euclidean(x: np.ndarray, y: np.ndarray) -> float:
    return float(np.linalg.norm(regular(x) - regular(y)))


def plain_log_euclidean(x: np.ndarray, y: np.ndarray) -> float:
    from scipy.linalg import eigh

    def logarithm(W: np.ndarray) -> np.ndarray:
        values, U = eigh(W)
        return (U * np.log(values)) @ U.T

    return float(np.linalg.norm(logarithm(regular(x)) - logarithm(regular(y))))


def plain_affine_invariant(x: np.ndarray, y: np.ndarray) -> float:
    from scipy.linalg import eigvalsh

    return float(np.linalg.norm(np.log(eigvalsh(regular(x), regular(y)))))


def plain_spectral_gw(x: np.ndarray, y: np.ndarray) -> float:
    from scipy.linalg import eigh

    (v1, U1), (v2, U2) = eigh(regular(x)), eigh(regular(y))
    return max(
        np.exp(-(t + 1 / t)) * float(np.linalg.norm((U1 * v1**t) @ U1.T - (U2 * v2**t) @ U2.T))
        for t in np.logspace(-1, 1, 256)
    )


# name of the distance -> its plain use; "name, variant" where there are several.
TABLE: dict[str, Row] = {
    "les": Row(plain_les, repeats=5, rtol=1e-3),
    "imd-diffusion": Row(plain_imd_diffusion, repeats=5),
    "shape-dna": Row(plain_shape_dna, repeats=5),
    "netlsd": Row(plain_netlsd, repeats=5),
    "euclidean": Row(plain_euclidean),
    "log-euclidean": Row(plain_log_euclidean, repeats=5, rtol=1e-4),
    "affine-invariant": Row(plain_affine_invariant, repeats=5, rtol=1e-3),
    "spectral-gw": Row(plain_spectral_gw, repeats=1),
    "wasserstein": Row(plain_wasserstein),
    "gromov-wasserstein": Row(plain_gromov, repeats=3),
    "mmd": Row(plain_mmd),
    "frechet": Row(plain_frechet, repeats=11),
    "frechet, wide": Row(plain_frechet, data=wide, repeats=5),
    "cka": Row(plain_cka, repeats=11),
    "cka, wide": Row(plain_cka, data=wide),
    "cka, rbf": Row(plain_cka_rbf, {"kernel": "rbf"}),
    "crosslid": Row(plain_crosslid),
    "mmd, wide": Row(plain_mmd, data=wide),
    "wasserstein, wide": Row(plain_wasserstein, data=wide),
    "crosslid, wide": Row(plain_crosslid, data=wide, repeats=5),
}


def timed(function: Callable[[], float]) -> tuple[float, float]:
    """Return the seconds of one call, and what it returned."""
    time.sleep(PAUSE)
    start, calls = time.perf_counter(), 0
    while calls == 0 or time.perf_counter() - start < BATCH:
        value = function()
        calls += 1
    return (time.perf_counter() - start) / calls, value


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
