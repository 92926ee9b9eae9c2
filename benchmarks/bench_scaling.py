"""Bars: a million points of a 3-torus in linear time, with a certificate.

Parts, each with its bar; all of them where none is named:

    table       seconds, peak memory above the data, landmarks and bound for 10³ points up to
                `--largest`; the time without σ² as a multiple of the flops needed,
                N r (d + r) 2 at the GEMM rate measured just before and after (at most 2.5 at
                10⁶); the cost per point at the largest N against that at a tenth of it (at
                most 1). `--out docs` writes scaling.csv, scaling.md and figures/size.png.
    authors     the authors' way on 12,000 points against ours on a million (at least 1)
    accuracy    streamed against eigvalsh on 8000 points of both tori (at most 1e-4)
    landmarks   landmarks taken at tol=1e-3 against those that the true error needs (at most 1.5)
    sigma       σ²: LES at a million points against ten times the pairs (at most 0.01), and how
                often 1.96 standard errors cover the truth over 20 seeds (about 95 %): the exact
                median of 160,000 points, and that of forty times the pairs of a million

Run: python benchmarks/bench_scaling.py [part ...] [--largest 1e7] [--out docs] [--points 1e6]
"""

from __future__ import annotations

import argparse
import csv
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import authors_way
import numpy as np

import unaligned as ua
from unaligned import defaults
from unaligned.data.shapes import torus2, torus3, torus_angles
from unaligned.operators import bandwidth_sampled as sampling
from unaligned.operators.bandwidth import median_of_points
from unaligned.operators.pointcloud import PointCloud
from unaligned.spectra.landmarks import Landmarks

TORI: dict[str, Callable[[int], np.ndarray]] = {
    "2-torus": lambda n: torus2(torus_angles(n, 2, rng=0)),
    "3-torus": lambda n: torus3(torus_angles(n, 3, rng=0)),
}
OPTIONS = {"n_eigenvalues": 200, "gamma": 1e-8}


def resident(field: str = "RssAnon") -> float:
    """Return MiB of this process from /proc: RssAnon leaves files and libraries out."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


class Peak:
    """The largest RssAnon while this lasts, above what it was at the start, MiB."""

    def __enter__(self) -> Peak:
        self.start, self.most, self._done = resident(), 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._done.wait(0.02):
            self.most = max(self.most, resident() - self.start)

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()


def gemm_rate(seconds: float = 1.0) -> np.ndarray:
    """Return flops of a large matrix product per second, and per second of a core."""
    a = np.random.default_rng(0).normal(size=(1500, 1500))
    a @ a
    count, started, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - started < seconds:
        a @ a
        count += 1
    spent = np.array([time.perf_counter() - started, time.process_time() - cpu])
    return count * 2.0 * 1500**3 / spent


def measured(n: int) -> dict[str, float]:
    """Return one row of the table."""
    points = TORI["3-torus"](n)
    before = gemm_rate()
    with Peak() as peak:
        started, cpu = time.perf_counter(), time.process_time()
        found = ua.signature(points, **OPTIONS)
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    rate = 0.5 * (before + gemm_rate())
    landmarks, scale = found.stats.get("landmarks", n), found.stats["seconds_operator"]
    needed = 2.0 * n * landmarks * (points.shape[1] + landmarks) / rate
    share = (seconds - scale) / seconds  # of the time that is not spent on σ²
    sigma_bound = found.stats.get("sigma_squared_bound", 0.0)
    return {
        "points": n,
        "seconds": seconds,
        "of which sigma²": scale,
        "MiB above the data": peak.most,
        "landmarks": landmarks,
        "bound": found.total_error_bound,
        "of which sigma² bound": sigma_bound,
        "µs per point": 1e6 * seconds / n,
        "flop ratio": share * seconds / needed[0],
        "flop ratio in core seconds": share * cpu / needed[1],
        "GFLOP/s": rate[0] / 1e9,
    }


def table(largest: int, out: Path | None) -> None:
    rows = []
    for n in [10**k for k in range(3, 9) if 10**k <= largest]:
        rows.append(measured(n))
        print("  ".join(f"{name} {value:.3g}" for name, value in rows[-1].items()), flush=True)
    last, before = rows[-1], rows[-2] if len(rows) > 1 else rows[-1]
    ratio = last["µs per point"] / before["µs per point"]
    print(f"cost per point at {last['points']:.0e} against {before['points']:.0e}: {ratio:.2f}")
    if out is not None:
        write(rows, out)


def write(rows: list[dict[str, float]], out: Path) -> None:
    """Write the table as CSV and markdown, and as a figure."""
    (out / "figures").mkdir(parents=True, exist_ok=True)
    with (out / "scaling.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: float(f"{v:.4g}") for k, v in row.items()} for row in rows)
    shown = ["points", "seconds", "of which sigma²", "MiB above the data", "landmarks", "bound"]
    lines = [f"| {' | '.join(shown)} |", "|" + "---|" * len(shown)]
    for row in rows:
        exponent = round(np.log10(row["points"]))
        cells = [f"10^{exponent}", *(f"{row[name]:.3g}" for name in shown[1:4])]
        lines.append(f"| {' | '.join(cells)} | {row['landmarks']:.0f} | {row['bound']:.1g} |")
    text = (
        "# How it scales\n\nA 3-torus in four dimensions, K = 200, γ = 1e-8, tol = 1e-4, two "
        "cores. Written by `python benchmarks/bench_scaling.py table --largest "
        f"{rows[-1]['points']:.0e} --out docs`; all columns are in `scaling.csv`.\n\n"
        "From 50,000 points on rows are worked on block by block and σ² is sampled: then the "
        "bound is mostly what the sampled σ² may do, and memory no longer grows.\n\n"
    )
    figure = "\n\n![Seconds and memory by number of points](figures/size.png)\n"
    (out / "scaling.md").write_text(text + "\n".join(lines) + figure, encoding="utf-8")
    draw(rows, out / "figures" / "size.png")


def draw(rows: list[dict[str, float]], path: Path) -> None:
    """Draw time and memory by number of points."""
    from unaligned import figures

    figure, (left, right) = figures.panels(2)
    n = [row["points"] for row in rows]
    left.loglog(n, [row["seconds"] for row in rows], "o-", label="in all")
    rest = [row["seconds"] - row["of which sigma²"] for row in rows]
    left.loglog(n, rest, "s--", label="without σ²")
    left.set(xlabel="points", ylabel="seconds")
    left.legend()
    right.semilogx(n, [row["MiB above the data"] for row in rows], "o-")
    right.set(xlabel="points", ylabel="MiB above the data")
    right.set_ylim(bottom=0)
    figures.save(figure, path)


def authors(n: int, n_authors: int) -> None:
    started = time.perf_counter()
    authors_way.signature(TORI["3-torus"](n_authors), 200, 1e-8, np.random.default_rng(0))
    theirs = time.perf_counter() - started
    points = TORI["3-torus"](n)
    started = time.perf_counter()
    ua.signature(points, **OPTIONS)
    ours = time.perf_counter() - started
    print(
        f"authors' way on {n_authors}: {theirs:.1f} s; ours on {n}: {ours:.1f} s; ratio "
        f"{theirs / ours:.2f} (bar 1)",
        flush=True,
    )


def accuracy(n: int) -> None:
    for name, make in TORI.items():
        points = make(n)
        exact = ua.signature(points, solver="exact", **OPTIONS)
        with patch.object(defaults, "STREAM_ROWS", 0):
            found = ua.signature(points, bandwidth=exact.sigma_squared, **OPTIONS)
        error = np.linalg.norm(found.values - exact.values)
        print(
            f"{name} N={n}: streamed against eigvalsh {error:.1e} (bar 1e-4), bound "
            f"{found.total_error_bound:.1e}, {found.stats['landmarks']} landmarks",
            flush=True,
        )


def landmarks(n: int, tol: float = 1e-3) -> None:
    for name, make in TORI.items():
        points = make(n)
        exact = ua.signature(points, solver="exact", **OPTIONS)
        options = {**OPTIONS, "tol": tol, "bandwidth": exact.sigma_squared}
        taken = ua.signature(points, **options).stats["landmarks"]
        low, high = taken // 3, taken  # too few, enough
        while high - low > max(2, taken // 100):
            middle = (low + high) // 2
            with warnings.catch_warnings():  # a short budget is what is tried
                warnings.simplefilter("ignore")
                found = ua.signature(points, solver=Landmarks(max_landmarks=middle), **options)
            error = np.linalg.norm(found.values - exact.values)
            low, high = (low, middle) if error <= tol else (middle, high)
        print(
            f"{name} N={n}, tol={tol:g}: {taken} landmarks, the true error needs {high}; ratio "
            f"{taken / high:.2f} (bar 1.5)",
            flush=True,
        )


def sigma(n: int, n_exact: int) -> None:
    points = TORI["3-torus"](n)
    usual = ua.signature(points, **OPTIONS)
    more = sampling.median_of_many_points(
        PointCloud(points), np.random.default_rng(1), n_pairs=10 * sampling.PAIRS
    )
    better = ua.signature(points, bandwidth=2.0 * more.value, **OPTIONS)
    moved = np.linalg.norm(usual.values - better.values)
    print(f"N={n}: LES against ten times the pairs {moved:.4f} (bar 0.01)", flush=True)
    cloud = PointCloud(TORI["3-torus"](n_exact))
    coverage(cloud, median_of_points(cloud), "the exact median")
    # Forty times the pairs of both sorts: a standard error of 16 % of the usual one.
    cloud, rng = PointCloud(points), np.random.default_rng(2)
    with patch.object(sampling, "REFERENCES", round(40**0.5 * sampling.REFERENCES)):
        truth = sampling.median_of_many_points(cloud, rng, n_pairs=40 * sampling.PAIRS)
    coverage(cloud, truth.value, f"the median of {truth.n_pairs:.1e} pairs")


def coverage(cloud: PointCloud, truth: float, told: str, seeds: int = 20) -> None:
    scores = []
    for seed in range(seeds):
        found = sampling.median_of_many_points(cloud, np.random.default_rng(seed))
        scores.append((found.value - truth) / found.standard_error)
    covered = np.mean(np.abs(scores) < 1.96)
    print(
        f"N={cloud.n_samples}: 1.96 standard errors cover {told} in {covered:.0%} of {seeds} "
        f"seeds (bar about 95 %); scores have mean {np.mean(scores):.2f}, deviation "
        f"{np.std(scores):.2f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    names = ("table", "authors", "accuracy", "landmarks", "sigma")
    parser.add_argument("parts", nargs="*", choices=[*names, []], help="all, where none is named")
    parser.add_argument("--largest", type=float, default=1e6, help="the last row of the table")
    parser.add_argument("--points", type=float, default=1e6, help="of 'authors' and 'sigma'")
    parser.add_argument("--exact", type=float, default=8000, help="points with an exact spectrum")
    parser.add_argument("--out", type=Path, help="the folder that the table is written to")
    given = parser.parse_args()
    ua.signature(TORI["3-torus"](2000))  # compile
    n, n_exact = int(given.points), int(given.exact)
    run: dict[str, Callable[[], None]] = {
        "table": lambda: table(int(given.largest), given.out),
        "authors": lambda: authors(n, int(1.5 * n_exact)),
        "accuracy": lambda: accuracy(n_exact),
        "landmarks": lambda: landmarks(n_exact),
        "sigma": lambda: sigma(n, 20 * n_exact),
    }
    for name in given.parts or names:
        run[name]()


if __name__ == "__main__":
    main()
