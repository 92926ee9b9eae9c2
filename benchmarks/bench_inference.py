"""Level, power, coverage, bias and cost of `ua.permutation_test`.

Run: python benchmarks/bench_inference.py [part …] [--keep FILE] [--share 0.1] [--seed 0]
Parts: null, power, sizes, cells, cost, many, rule; all but the last without arguments. With
--keep, finished rows are kept in a JSON file and not computed again. --share runs a part of the
repetitions, --seed others.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from datasets import DATA, digits

import unaligned as ua
from unaligned.data.shapes import torus2, torus_angles
from unaligned.engine import Threads, limited_blas
from unaligned.inference.partition import cut
from unaligned.spectra.blocks import block_signature, block_signatures
from unaligned.spectra.pipeline import SignatureSettings

Draw = Callable[[int, np.random.Generator], np.ndarray]
N_PERMUTATIONS = 999  # the p-values of 9999 differ in the third digit


def torus(n: int, rng: np.random.Generator, scale: float = 1.0) -> np.ndarray:
    return torus2(torus_angles(n, 2, rng=rng), radius_scale=scale)


def moved(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return the torus, rotated into six dimensions and scaled."""
    return 3.7 * torus(n, rng) @ np.linalg.qr(rng.normal(size=(6, 6)))[0][:3]


def normal(n: int, rng: np.random.Generator, d: int = 5) -> np.ndarray:
    return rng.normal(size=(n, d))


def wide(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return N(0, I₅) embedded in 20 dimensions."""
    return normal(n, rng) @ np.linalg.qr(rng.normal(size=(20, 20)))[0][:5]


def clusters(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return four clusters of unequal weight, the same ones at every call."""
    centres = 4.0 * np.random.default_rng(0).normal(size=(4, 8))
    return centres[rng.choice(4, size=n, p=[0.5, 0.3, 0.15, 0.05])] + rng.normal(size=(n, 8))


def heavy(n: int, rng: np.random.Generator, df: int = 3) -> np.ndarray:
    return rng.standard_t(df, size=(n, 5))


def markers(day: str) -> np.ndarray:
    """Return the ten surface markers of a day of the CytoTree time course."""
    stored = np.load(DATA / "cytotree_hesc_timecourse.npz")
    chosen = [str(c).split("|")[1] not in ("None", "7-AAD") for c in stored["channels"]]
    return np.arcsinh(stored[day][:, chosen] / 150)


def split(points: np.ndarray, n: int, m: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return two disjoint samples of n and m rows."""
    rows = rng.permutation(len(points))[: n + m]
    return points[rows[:n]], points[rows[n:]]


def pair(first: Draw, second: Draw, n: int, m: int) -> Callable[[np.random.Generator], Any]:
    return lambda rng: (first(n, rng), second(m, rng))


def null_families() -> dict[str, Callable[[np.random.Generator], Any]]:
    images, cells = digits(), markers("D0")
    return {
        "2-torus, 300 and 300, one moved": pair(torus, moved, 300, 300),
        "2-torus, 240 and 720": pair(torus, torus, 240, 720),
        "N(0, I5), 240 and 360 in 20-d": pair(normal, wide, 240, 360),
        "four clusters, 300 and 300": pair(clusters, clusters, 300, 300),
        "t3 in 5-d, 240 and 360": pair(heavy, heavy, 240, 360),
        "digits split, 600 and 1197": lambda rng: split(images, 600, 1197, rng),
        "cells of D0, 400 and 800": lambda rng: split(cells, 400, 800, rng),
    }


# Name -> (the pair at 600 rows each, rejections of the prototype in the issue)
ALTERNATIVES: dict[str, tuple[Draw, Draw, float]] = {
    "2-torus, inner radius x 0.9": (torus, lambda n, rng: torus(n, rng, 0.9), 0.96),
    "2-torus, inner radius x 0.95": (torus, lambda n, rng: torus(n, rng, 0.95), 0.46),
    "N(0, I5) and N(0, I6)": (normal, lambda n, rng: normal(n, rng, 6), 1.00),
    "N(0, I5) and t10 in 5-d": (normal, lambda n, rng: heavy(n, rng, 10), 0.79),
}


def run(make: Callable[[np.random.Generator], Any], n_runs: int, seed: int) -> dict[str, Any]:
    """Return p-values, statistics and intervals of many tests."""
    found: dict[str, list[Any]] = {"p": [], "squared": [], "low": [], "high": []}
    for number in range(n_runs):
        first, second = make(np.random.default_rng([seed, number]))
        test = ua.permutation_test(first, second, n_permutations=N_PERMUTATIONS, n_jobs=1)
        found["p"].append(test.p_value)
        found["squared"].append(test.squared)
        found["low"].append(test.interval[0])
        found["high"].append(test.interval[1])
    return found


class Kept:
    """Results by name, in a JSON file where one is given."""

    def __init__(self, path: Path | None, share: float, seed: int) -> None:
        self.path, self.share, self.seed = path, share, seed
        self.found = json.loads(path.read_text()) if path and path.exists() else {}

    def runs(self, number: int) -> int:
        """Return the number of repetitions to run."""
        return max(10, round(self.share * number))

    def __call__(self, name: str, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return the arrays of a row, computed unless they are kept."""
        if name not in self.found:
            self.found[name] = compute()
            if self.path:
                self.path.write_text(json.dumps(self.found))
        return {key: np.array(values) for key, values in self.found[name].items()}


def null(kept: Kept) -> None:
    """Rejections where nothing differs, and how often the interval contains 0."""
    print(f"{'null pairs':34s} {'runs':>5s} {'at .05':>7s} {'at .01':>7s} {'has 0':>6s}   mean U")
    pooled = []
    for seed, (name, make) in enumerate(null_families().items()):
        n_runs = kept.runs(1000)
        found = kept(
            f"null {name}", lambda make=make, n=n_runs, s=kept.seed + seed: run(make, n, s)
        )
        p, u = found["p"], found["squared"]
        pooled.append(p)
        error = u.std(ddof=1) / np.sqrt(u.size)
        print(
            f"{name:34s} {p.size:5d} {(p <= 0.05).mean():7.3f} {(p <= 0.01).mean():7.3f} "
            f"{(found['low'] == 0).mean():6.3f}   {u.mean():.4f} ± {error:.4f}",
            flush=True,
        )
    every = np.concatenate(pooled)
    print(
        f"{'pooled':34s} {every.size:5d} {(every <= 0.05).mean():7.3f} "
        f"{(every <= 0.01).mean():7.3f}"
    )


def power(kept: Kept) -> None:
    """Rejections of true differences, and coverage of the interval."""
    head = f"{'alternative, 600 and 600':34s} {'at .05':>7s} {'issue':>6s} {'mean U':>7s}"
    print(f"{head} {'truth':>7s} {'covered':>8s}")
    for seed, (name, (first, second, wanted)) in enumerate(ALTERNATIVES.items()):
        make, n_runs = pair(first, second, 600, 600), kept.runs(500)
        found = kept(
            f"power {name}", lambda make=make, n=n_runs, s=kept.seed + 100 + seed: run(make, n, s)
        )
        true = kept(f"truth {name}", lambda a=first, b=second: truth(a, b, 60))["squared"][0]
        inside = (found["low"] <= np.sqrt(true)) & (np.sqrt(true) <= found["high"])
        print(
            f"{name:34s} {(found['p'] <= 0.05).mean():7.3f} {wanted:6.2f} "
            f"{found['squared'].mean():7.3f} {true:7.3f} {inside.mean():8.3f}",
            flush=True,
        )


def truth(first: Draw, second: Draw, size: int, n_rows: int = 100_000) -> dict[str, Any]:
    """Return the squared distance of the mean signatures of blocks, from fresh rows."""
    rng, settings = np.random.default_rng(12345), SignatureSettings(n_eigenvalues=size // 3)
    means, noise = [], 0.0
    for draw in (first, second):
        blocks = (ua.Dataset(draw(size, rng)) for _ in range(n_rows // size))
        values = np.stack([block_signature(block, settings, 0).values for block in blocks])
        means.append(values.mean(axis=0))
        noise += values.var(axis=0, ddof=1).sum() / len(values)
    return {"squared": [float(((means[0] - means[1]) ** 2).sum() - noise)]}


def sizes(kept: Kept) -> None:
    """U of one distribution at many sizes against 1000 rows, and plain LES beside it."""
    print(f"{'rows against 1000 of the same':34s} {'mean U':>8s} {'st. error':>9s} {'LES':>7s}")
    draws: dict[str, Draw] = {"2-torus": torus, "N(0, I5)": normal}
    for (name, draw), n in itertools.product(draws.items(), (300, 600, 1000, 2000, 5000)):

        def compute(draw: Draw = draw, n: int = n) -> dict[str, Any]:
            found = run(pair(draw, draw, n, 1000), kept.runs(100), kept.seed + 200 + n)
            found["les"] = [
                ua.distance(*pair(draw, draw, n, 1000)(np.random.default_rng([n, i])))
                for i in range(3)
            ]
            return found

        found = kept(f"sizes {name} {n}", compute)
        u = found["squared"]
        error = u.std(ddof=1) / np.sqrt(u.size)
        label = f"{name}, {n}"
        print(f"{label:34s} {u.mean():8.4f} {error:9.4f} {found['les'].mean():7.2f}", flush=True)


def cells(kept: Kept) -> None:
    """CytoTree, ten surface markers: same-day pairs, D0 against D6, and all pairs of days."""
    days = {day: markers(day) for day in ("D0", "D2", "D4", "D6", "D8", "D10")}
    per_day = kept.runs(200) // len(days) + 1
    for seed, (day, points) in enumerate(days.items()):
        found = kept(
            f"cells {day}",
            lambda x=points, s=kept.seed + 300 + seed: run(
                lambda rng: split(x, 1000, 1000, rng), per_day, s
            ),
        )
        print(f"{day}: {int((found['p'] <= 0.05).sum())} of {per_day} same-day pairs at 0.05")
    late = (days["D0"], days["D6"])
    found = kept(
        "cells D0 D6",
        lambda: run(
            lambda rng: tuple(x[rng.permutation(len(x))[:1000]] for x in late),
            kept.runs(200),
            kept.seed + 310,
        ),
    )
    print(f"D0 and D6: {int((found['p'] <= 0.05).sum())} of {found['p'].size} at 0.05", flush=True)
    for first, second in itertools.combinations(days, 2):

        def compute(a: str = first, b: str = second) -> dict[str, Any]:
            test = ua.permutation_test(days[a], days[b])
            return {
                "p": [test.p_value],
                "squared": [test.squared],
                "ends": test.interval,
                "floor": [test.noise_floor],
                "size": [test.block_size],
            }

        found = kept(f"cells all {first} {second}", compute)
        distance, (low, high) = np.sqrt(max(found["squared"][0], 0)), found["ends"]
        print(
            f"{first:>4s} {second:>4s}: {distance:6.3f} ({low:.3f} to {high:.3f}), floor "
            f"{found['floor'][0]:.3f}, p = {found['p'][0]:.1e}, b = {found['size'][0]}",
            flush=True,
        )


def cost(_kept: Kept) -> None:
    """Time a test of two 6000 × 50 datasets against its block signatures one after another."""
    rng = np.random.default_rng(0)
    scales = 1.0 / np.sqrt(np.arange(1, 51))
    first, second = (ua.Dataset(rng.normal(size=(6000, 50)) * scales) for _ in range(2))
    blocks = [*cut(first, 500, rng), *cut(second, 500, rng)]
    settings = SignatureSettings(n_eigenvalues=166)
    block_signature(blocks[0], settings, 0)
    ratios = []
    for _ in range(3):
        started = time.perf_counter()
        with limited_blas(1):
            for block in blocks:
                ua.signature(block, n_eigenvalues=166, solver="exact")
        plain = time.perf_counter() - started
        started = time.perf_counter()
        with limited_blas(1):
            block_signatures(blocks, settings, 0, Threads(1))
        serial = time.perf_counter() - started
        started = time.perf_counter()
        ua.permutation_test(first, second)
        ratios.append((time.perf_counter() - started) / serial)
        print(
            f"ua.signature of {len(blocks)} blocks {plain:.2f} s, block signatures on one core "
            f"{serial:.2f} s, the test {ratios[-1]:.2f} x of that"
        )
    print(f"median {np.median(ratios):.2f}; the bar is 1.5")


def many(_kept: Kept) -> None:
    """`compare` of 40 datasets with and without inference."""
    rng = np.random.default_rng(0)
    clouds = {f"set {i}": rng.normal(size=(1500, 3 + i % 4)) for i in range(40)}
    ua.compare({"a": clouds["set 0"], "b": clouds["set 1"]}, inference=True)
    took = []
    for options in ({}, {"inference": True}):
        started = time.perf_counter()
        ua.compare(clouds, **options)
        took.append(time.perf_counter() - started)
    print(
        f"40 datasets of 1500 rows: {took[0]:.1f} s, with inference {took[1]:.1f} s, "
        f"{took[1] / took[0]:.2f} x; the bar is 3"
    )


def rule(kept: Kept) -> None:
    """Power by block size and K, the study behind the rule."""
    studies: dict[int, dict[str, tuple[Draw, Draw]]] = {
        600: {name: (first, second) for name, (first, second, _) in ALTERNATIVES.items()},
        2000: {
            "2-torus, inner radius x 0.975": (torus, lambda n, rng: torus(n, rng, 0.975)),
            "N(0, I5) and t20 in 5-d": (normal, lambda n, rng: heavy(n, rng, 20)),
        },
    }
    for n, alternatives in studies.items():
        for (name, (first, second)), share in itertools.product(alternatives.items(), SHARES):
            size, make = max(n // share, 30), pair(first, second, n, n)
            cells = []
            for part in (6, 4, 3, 2):

                def compute(
                    make: Any = make, size: int = size, part: int = part
                ) -> dict[str, Any]:
                    options = {"block_size": size, "n_eigenvalues": size // part}
                    tests = (
                        ua.permutation_test(
                            *make(np.random.default_rng([400, i])),
                            n_permutations=199,
                            n_jobs=1,
                            **options,
                        )
                        for i in range(kept.runs(200))
                    )
                    return {"p": [test.p_value for test in tests]}

                found = kept(f"rule {n} {name} {share} {part}", compute)
                cells.append(f"K=b/{part} {(found['p'] <= 0.05).mean():.2f}")
            print(f"{name:30s} N={n} b={size:4d} " + "  ".join(cells), flush=True)


SHARES = (20, 10, 8, 6, 4)  # N / b of the study
PARTS = {"null": null, "power": power, "sizes": sizes, "cells": cells, "cost": cost, "many": many}
PARTS |= {"rule": rule}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=", ".join(PARTS))
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    kept = Kept(given.keep, given.share, given.seed)
    warnings.simplefilter("ignore", ua.errors.SampleSizeWarning)
    for name in given.parts or [name for name in PARTS if name != "rule"]:
        print(f"# {name}")
        PARTS[name](kept)


if __name__ == "__main__":
    main()
