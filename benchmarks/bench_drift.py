"""False alarms, power, delay and cost of `ua.DriftMonitor`.

Run: python benchmarks/bench_drift.py [part …] [--keep FILE] [--share 0.1] [--seed 0]
Parts: null, gas, delay, spaces, cost, size; all without arguments. With --keep, finished
sequences are kept in a JSON file and not computed again, so that a stopped run goes on where it
was. --share runs a part of the sequences, --seed others.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from datasets import DATA

import unaligned as ua
from unaligned.data.shapes import torus2, torus_angles

Draw = Callable[[int, np.random.Generator], np.ndarray]
ALPHA, HORIZON, SEQUENCES = 0.05, 20, 1000
BATTERY = ("les", "edistance", "ks")
EVERY = ("les", "edistance", "mmd", "ks")
GAS = (2, 3, 4, 5, 6, 8, 9)  # batches after the first; there is no batch 7
ROWS = 90  # of a batch of a sequence, 3 blocks of 30


def gas(batch: int) -> np.ndarray:
    with np.load(DATA / "gas_sensor_drift.npz") as stored:
        return np.asarray(stored[f"x{batch}"], dtype=np.float64)


def clusters(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return four clusters of unequal weight, the same ones at every call."""
    centres = 4.0 * np.random.default_rng(0).normal(size=(4, 8))
    return centres[rng.choice(4, size=n, p=[0.5, 0.3, 0.15, 0.05])] + rng.normal(size=(n, 8))


FAMILIES: dict[str, Draw] = {
    "N(0, I5)": lambda n, rng: rng.normal(size=(n, 5)),
    "t3 in 5-d": lambda n, rng: rng.standard_t(3, size=(n, 5)),
    "squared exponentials, scales 1 to 10⁴": lambda n, rng: (
        rng.exponential(size=(n, 5)) ** 2 * 10.0 ** np.arange(5)
    ),
    "four clusters in 8-d": clusters,
    "2-torus": lambda n, rng: torus2(torus_angles(n, 2, rng=rng)),
    "Poisson counts of means 0.2 to 5": lambda n, rng: rng.poisson(
        [0.2, 0.5, 1.0, 2.0, 5.0], size=(n, 5)
    ).astype(float),
}


class Kept:
    """Results by name, in a JSON file where one is given."""

    def __init__(self, path: Path | None, share: float, seed: int) -> None:
        self.path, self.share, self.seed = path, share, seed
        self.found = json.loads(path.read_text()) if path and path.exists() else {}

    def runs(self, number: int) -> int:
        """Return the number of repetitions to run."""
        return max(10, round(self.share * number))

    def repeat(self, name: str, number: int, one: Callable[[np.random.Generator], Any]) -> Any:
        """Return the results of `number` repetitions; those that are kept are not run again."""
        rows = self.found.setdefault(f"{name} {self.seed}", [])
        salt = sum(map(ord, name))
        started = time.monotonic()
        while len(rows) < number:
            rows.append(one(np.random.default_rng([self.seed, salt, len(rows)])))
            if time.monotonic() - started > 10.0 or len(rows) == number:
                self.write()
                started = time.monotonic()
        return np.array(rows[:number])

    def write(self) -> None:
        """Write the file, whole or not at all."""
        if self.path:
            part = self.path.with_suffix(".part")
            part.write_text(json.dumps(self.found))
            part.replace(self.path)


def smallest(rows: np.ndarray, n_reference: int, seed: int, **options: Any) -> list[float]:
    """Return the smallest p-value of each instrument over 20 batches that follow a reference."""
    monitor = ua.DriftMonitor(
        rows[:n_reference], alpha=ALPHA, horizon=HORIZON, rng=seed, n_jobs=1, **options
    )
    size = (len(rows) - n_reference) // HORIZON
    for i in range(HORIZON):
        start = n_reference + i * size
        monitor.check(rows[start : start + size])
    found = [[r.p_value for r in check.readings] for check in monitor.history]
    return np.min(found, axis=0).tolist()


def null(kept: Kept) -> None:
    """Share of sequences of 20 batches with a false alarm, at alpha = 0.05 for all 20."""
    n_runs = kept.runs(SEQUENCES)
    limit = ALPHA + 3.0 * math.sqrt(ALPHA * (1.0 - ALPHA) / n_runs)
    print(f"{n_runs} sequences of {HORIZON} batches; at most {limit:.4f} may have an alarm")
    print("| rows | les | edistance | mmd | ks | battery |\n|---|---|---|---|---|---|")
    sixth = gas(6)

    def shuffled(rng: np.random.Generator) -> list[float]:
        rows = sixth[rng.permutation(len(sixth))]
        return smallest(rows, 700, int(rng.integers(1 << 30)), distances=EVERY, block_size=16)

    def synthetic(draw: Draw) -> Callable[[np.random.Generator], list[float]]:
        def one(rng: np.random.Generator) -> list[float]:
            rows = draw(600 + HORIZON * ROWS, rng)
            return smallest(rows, 600, int(rng.integers(1 << 30)))

        return one

    makers = {"gas sensors, batch 6 shuffled": shuffled}
    makers |= {name: synthetic(draw) for name, draw in FAMILIES.items()}
    for name, make in makers.items():
        p = kept.repeat(f"null {name}", n_runs, make)
        names = EVERY if p.shape[1] == len(EVERY) else BATTERY
        alone = dict(zip(names, (p <= ALPHA / HORIZON).mean(axis=0), strict=True))
        chosen = p[:, [names.index(instrument) for instrument in BATTERY]]
        battery = (chosen <= ALPHA / HORIZON / 3).any(axis=1).mean()
        rates = [f"{alone[i]:.3f}" if i in alone else "" for i in EVERY]
        print(f"| {name} | {' | '.join(rates)} | {battery:.3f} |", flush=True)


PARTS = {"null": null}


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
