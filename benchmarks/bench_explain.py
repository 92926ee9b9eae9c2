"""Planted causes, null pairs, dimensions and cost of `ua.explain`.

Run: python benchmarks/bench_explain.py [part …] [--keep FILE] [--share 0.1] [--seed 0]
Parts: planted, null, dimension, cost; all without arguments. With --keep, finished pairs are kept
in a JSON file and not computed again, so that a stopped run goes on where it was. --share runs a
part of the repetitions, --seed others.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from datasets import load_digits
from kept import Kept

import unaligned as ua
from unaligned.data.shapes import torus2, torus_angles

SEEDS, NULL_PAIRS = 20, 100


class Pair(NamedTuple):
    """Two datasets, the labels of their rows, and the label or column that was planted."""

    a: np.ndarray
    b: np.ndarray
    labels: tuple[np.ndarray, np.ndarray] | None
    cause: str


def new_digit(rng: np.random.Generator, is_planted: bool) -> Pair:
    """400 rows of nine digits each; 40 of the tenth join the second."""
    digits = load_digits()
    order = rng.permutation(len(digits.target))
    cause = int(rng.integers(10))
    old, new = (order[(digits.target[order] == cause) == is_new] for is_new in (False, True))
    first, second = old[:400], np.r_[old[400:800], new[:40] if is_planted else old[800:840]]
    labels = digits.target[first], digits.target[second]
    return Pair(digits.data[first], digits.data[second], labels, str(cause))


def thick_sector(rng: np.random.Generator, is_planted: bool) -> Pair:
    """Return 2-tori of 1000 points; one of ten sectors of the second fills a fourth direction."""
    cause, sides, labels = int(rng.integers(10)), [], []
    for is_thick in (False, is_planted):
        angles = torus_angles(1000, 2, rng=rng)
        sectors = (angles[:, 0] / (2.0 * np.pi) * 10).astype(int) % 10
        fourth = rng.normal(size=1000) * (sectors == cause) * is_thick
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
    "a new digit, 40 of 440 rows": new_digit,
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
    for name, make in CAUSES.items():
        ranks, marked, _ = kept.repeat(f"planted {name}", n, explained(make, True)).T
        late = ", ".join(str(int(rank)) for rank in ranks if rank > 1)
        print(f"| {name} | {sum(ranks == 1)}/{n} | {marked.sum():.0f}/{n} | {late} |", flush=True)


def null(kept: Kept) -> None:
    """Share of pairs in which something is marked though nothing is planted."""
    n = kept.runs(NULL_PAIRS)
    print(f"| {n} null pairs of | marked |\n|---|---|")
    for name, make in CAUSES.items():
        found = kept.repeat(f"null {name}", n, explained(make, False))
        print(f"| {name} | {found[:, 2].mean():.2f} |", flush=True)


PARTS = {"planted": planted, "null": null}


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
