"""Planted causes, null pairs, dimensions and cost of `ua.explain`.

Run: python benchmarks/bench_explain.py [part …] [--keep FILE] [--share 0.1] [--seed 0]
Parts: planted, null, dimension, cost; all without arguments. With --keep, finished pairs are kept
in a JSON file and not computed again, so that a stopped run goes on where it was. --share runs a
part of the repetitions, --seed others.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from datasets import load_digits
from kept import Kept

import unaligned as ua
from unaligned.data.shapes import torus2, torus_angles
from unaligned.explanation.scale import dimension

SEEDS, NULL_PAIRS = 20, 100


class Pair(NamedTuple):
    """Two datasets, the labels of their rows, and the label or column that was planted."""

    a: np.ndarray
    b: np.ndarray
    labels: tuple[np.ndarray, np.ndarray] | None
    cause: str


def new_digit(rng: np.random.Generator, is_planted: bool, is_same: bool = True) -> Pair:
    """400 rows of nine digits; the second has 40 of the tenth beside the same, or other, rows."""
    digits = load_digits()
    order = rng.permutation(len(digits.target))
    cause = int(rng.integers(10))
    old, new = (order[(digits.target[order] == cause) == is_new] for is_new in (False, True))
    same = old[:400] if is_same and is_planted else old[400:800]
    first, second = old[:400], np.r_[same, new[:40] if is_planted else old[800:840]]
    labels = digits.target[first], digits.target[second]
    return Pair(digits.data[first], digits.data[second], labels, str(cause))


def thick_sector(rng: np.random.Generator, is_planted: bool) -> Pair:
    """Return 2-tori of 600 points; one of ten sectors of the second fills a fourth direction."""
    cause, sides, labels = int(rng.integers(10)), [], []
    for is_thick in (False, is_planted):
        angles = torus_angles(600, 2, rng=rng)
        sectors = (angles[:, 0] / (2.0 * np.pi) * 10).astype(int) % 10
        fourth = rng.normal(size=600) * (sectors == cause) * is_thick
        sides.append(np.c_[torus2(angles), fourth])
        labels.append(sectors)
    return Pair(sides[0], sides[1], (labels[0], labels[1]), str(cause))


def noisy_feature(rng: np.random.Generator, is_planted: bool) -> Pair:
    """400 rows of 20 features that are mixtures of 5; one of the second is replaced by noise."""
    mix, cause = rng.normal(size=(5, 20)), int(rng.integers(20))
    a, b = (rng.normal(size=(400, 5)) @ mix + 0.1 * rng.normal(size=(400, 20)) for _ in range(2))
    if is_planted:
        b[:, cause] = b[:, cause].std() * rng.normal(size=400)
    return Pair(a, b, None, str(cause))


def missing_cluster(rng: np.random.Generator, is_planted: bool) -> Pair:
    """400 rows of five clusters in 20-d; the second lacks one."""
    centres, cause, sides, labels = 3.0 * rng.normal(size=(5, 20)), int(rng.integers(5)), [], []
    for lacks in (False, is_planted):
        present = [i for i in range(5) if not (lacks and i == cause)]
        own = rng.choice(present, size=400)
        sides.append(centres[own] + rng.normal(size=(400, 20)))
        labels.append(own)
    return Pair(sides[0], sides[1], (labels[0], labels[1]), str(cause))


CAUSES: dict[str, Callable[[np.random.Generator, bool], Pair]] = {
    "a new digit, 40 rows added to 400": new_digit,
    "one of ten sectors of a torus thickened": thick_sector,
    "one feature of 20 replaced by noise": noisy_feature,
    "one cluster of five missing": missing_cluster,
}


def explained(make: Callable[..., Pair], is_planted: bool) -> Callable[..., list[float]]:
    def one(rng: np.random.Generator) -> list[float]:
        pair = make(rng, is_planted)
        by = "features" if pair.labels is None else "rows"
        found = ua.explain(pair.a, pair.b, by=by, labels=pair.labels, n_jobs=1)
        rank = 1 + found.labels.index(pair.cause) if pair.cause in found.labels else 99
        marked = pair.cause in found.labels and found.exceeds_noise[rank - 1]
        return [rank, float(marked), float(found.exceeds_noise.any())]

    return one


def planted(kept: Kept) -> None:
    """How often the cause ranks first, and is marked."""
    n = kept.runs(SEEDS)
    print("| cause | first | marked | ranks of the others |\n|---|---|---|---|")
    harder = {"a new digit, 40 rows and 400 others": partial(new_digit, is_same=False)}
    for name, make in {**CAUSES, **harder}.items():
        ranks, marked, _ = kept.repeat(f"planted {name}", n, explained(make, True)).T
        late = ", ".join(str(int(rank)) for rank in ranks if rank > 1)
        print(f"| {name} | {sum(ranks == 1)}/{n} | {marked.sum():.0f}/{n} | {late} |", flush=True)


def null(kept: Kept) -> None:
    """Share of pairs in which something is marked though nothing is planted."""
    n, total = kept.runs(NULL_PAIRS) // len(CAUSES), 0
    print(f"| {n} null pairs of each | marked |\n|---|---|")
    for name, make in CAUSES.items():
        found = kept.repeat(f"null {name}", n, explained(make, False))
        total += int(found[:, 2].sum())
        print(f"| {name} | {found[:, 2].sum():.0f}/{n} |", flush=True)
    print(f"| all | {total}/{n * len(CAUSES)} |")


def sphere(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    points = rng.normal(size=(n, d + 1))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def flat_torus(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    angles = rng.uniform(0.0, 2.0 * np.pi, size=(n, d))
    return np.c_[np.cos(angles), np.sin(angles)]


def dimensions(kept: Kept) -> None:
    """Return the intrinsic dimension of 3000 points of spheres and tori, least and most of 5."""
    print("| d | sphere | sphere in 50-d | torus | torus in 50-d |\n|---|---|---|---|---|")
    for d in range(1, 7):
        cells = []
        for draw in (sphere, flat_torus):
            for wide in (False, True):

                def one(rng: np.random.Generator, draw: Any = draw, wide: bool = wide) -> float:
                    points = draw(3000, d, rng)  # noqa: B023
                    if wide:
                        turn = np.linalg.qr(rng.normal(size=(50, 50)))[0]
                        points = points @ turn[: points.shape[1]]
                    return float(dimension(ua.Dataset(points), 3000, 0).value)

                found = kept.repeat(f"dimension {draw.__name__} {d} {wide}", 5, one)
                cells.append(f"{found.min():.2f}-{found.max():.2f}")
        print(f"| {d} | {' | '.join(cells)} |", flush=True)


def cost(kept: Kept) -> None:
    """Time of 2 × 3000 rows × 50 features against 50 plain signatures of that size."""
    rng = np.random.default_rng(kept.seed)
    a, b = (rng.normal(size=(3000, 50)) for _ in range(2))
    started = time.perf_counter()
    for _ in range(3):
        ua.signature(a + rng.normal(size=(1, 50)))
    plain = 50 * (time.perf_counter() - started) / 3
    for by, labels in (("features", None), ("rows", "auto"), ("scale", None)):
        started = time.perf_counter()
        ua.explain(a, b, by=by, labels=labels, progress=False)
        seconds = time.perf_counter() - started
        print(f"{by}: {seconds:.1f} s, {seconds / plain:.2f} × 50 signatures", flush=True)


PARTS = {"planted": planted, "null": null, "dimension": dimensions, "cost": cost}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore", ua.errors.UnalignedWarning)
    kept = Kept(given.keep, given.share, given.seed)
    for part in given.parts or PARTS:
        print(f"\n## {part}: {PARTS[part].__doc__}", flush=True)
        PARTS[part](kept)


if __name__ == "__main__":
    main()
