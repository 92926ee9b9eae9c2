"""False alarms, power, delay and cost of `ua.DriftMonitor`.

Run: python benchmarks/bench_drift.py [part …] [--keep FILE] [--share 0.1] [--seed 0]
Parts: null, gas, delay, spaces, figure, cost, size; all without arguments. With --keep, finished
sequences are kept in a JSON file and not computed again, so that a stopped run goes on where it
was. --share runs a part of the sequences, --seed others. `figure` writes --figure FILE.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from datasets import DATA
from kept import Kept

import unaligned as ua
from unaligned.data.shapes import torus2, torus_angles
from unaligned.engine import Threads

Draw = Callable[[int, np.random.Generator], np.ndarray]
ALPHA, HORIZON, SEQUENCES = 0.05, 20, 1000
BATTERY = ("les", "edistance", "ks")
EVERY = ("les", "edistance", "mmd", "ks")
GAS = (2, 3, 4, 5, 6, 8, 9)  # batches after the first; there is no batch 7
ROWS = 90  # of a batch of a sequence, 4 blocks of 22


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
            return smallest(rows, 600, int(rng.integers(1 << 30)), distances=EVERY, block_size=22)

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


def gas_table(kept: Kept) -> None:
    """Print what each instrument sees in the gas sensors, at alpha = 0.01 for each batch."""
    first = gas(1)

    def p_values(monitor: ua.DriftMonitor, batch: np.ndarray) -> list[float]:
        return [reading.p_value for reading in monitor.read(batch).readings]

    monitor = ua.DriftMonitor(first, distances=EVERY, n_jobs=1)
    print("| batch | rows | les | edistance | mmd | ks | battery |\n|---|---|---|---|---|---|---|")
    for number in GAS:
        batch = gas(number)
        p = p_values(monitor, batch)
        verdict = "drift" if _battery(np.array([p]))[0] else "no drift"
        values = " | ".join(f"{value:.1g}{' *' * (value <= 0.01)}" for value in p)
        print(f"| {number} | {len(batch)} | {values} | {verdict} |", flush=True)

    def split(rng: np.random.Generator) -> list[list[float]]:
        rows = first[rng.permutation(len(first))]
        fitted = ua.DriftMonitor(rows[:300], distances=EVERY, n_jobs=1)
        dead = rows[300:].copy()
        dead[:, rng.integers(dead.shape[1])] = 0.0
        return [p_values(fitted, batch) for batch in (rows[300:], dead)]

    found = kept.repeat("gas splits", kept.runs(200), split)
    for name, p in (("null split", found[:, 0]), ("one dead sensor of 128", found[:, 1])):
        rates = " | ".join(f"{rate:.3f}" for rate in (p <= 0.01).mean(axis=0))
        battery = _battery(p).mean()
        print(f"| {name}, share of {len(p)} flagged | 145 | {rates} | {battery:.3f} |", flush=True)


def _battery(p: np.ndarray, alpha: float = 0.01) -> np.ndarray:
    """Return whether the battery flags batches, from the p-values of all instruments, (n, 4)."""
    chosen = p[:, [EVERY.index(instrument) for instrument in BATTERY]]
    return np.asarray((chosen <= alpha / len(BATTERY)).any(axis=1))


def delay(kept: Kept) -> None:
    """Batches of 100 rows until the alarm, where batch 6 is mixed into batch 1."""
    first, sixth = gas(1), gas(6)

    def stream(rng: np.random.Generator, share: float) -> list[list[float]]:
        rows = first[rng.permutation(len(first))]
        monitor = ua.DriftMonitor(
            rows[:245], distances=EVERY, alpha=ALPHA, horizon=HORIZON, block_size=20, n_jobs=1
        )
        n_new, found = round(100 * share), []
        for _ in range(HORIZON):
            old = rows[245 + rng.permutation(200)[: 100 - n_new]]
            new = sixth[rng.permutation(len(sixth))[:n_new]]
            check = monitor.check(np.vstack([old, new]))
            found.append([reading.p_value for reading in check.readings])
            if max(found[-1]) <= ALPHA / HORIZON / 3:  # all have seen it
                break
        return found + [[1.0] * len(EVERY)] * (HORIZON - len(found))

    print(f"alpha = {ALPHA} over {HORIZON} batches; median delay (share detected)")
    print("| mixed in | les | edistance | mmd | ks | battery |\n|---|---|---|---|---|---|")
    for share in (0.0, 0.05, 0.1, 0.2, 0.5):
        found = kept.repeat(f"delay {share}", kept.runs(100), lambda rng, s=share: stream(rng, s))
        level = ALPHA / HORIZON
        alarms = [found[:, :, i] <= level for i in range(len(EVERY))]
        flat = found.reshape(-1, len(EVERY))
        alarms.append(_battery(flat, level).reshape(found.shape[:2]))
        cells = []
        for alarm in alarms:
            seen = alarm.any(axis=1)
            batches = np.where(seen, alarm.argmax(axis=1) + 1.0, np.inf)
            middle = float(np.median(batches))
            shown = f"{middle:.0f}" if math.isfinite(middle) else f"> {HORIZON}"
            cells.append(f"{shown} ({seen.mean():.2f})")
        print(f"| {share:.0%} | {' | '.join(cells)} |", flush=True)


def figure(kept: Kept) -> None:
    """Draw the gas sensors over time: reference 300 rows of batch 1, at alpha = 0.01 per batch."""
    first = gas(1)
    rows = first[np.random.default_rng(kept.seed).permutation(len(first))]
    monitor = ua.DriftMonitor(ua.Dataset(rows[:300], name="batch 1"), n_jobs=1)
    monitor.check(rows[300:], name="rest of batch 1")
    dead = rows[300:].copy()
    dead[:, 40] = 0.0
    monitor.check(dead, name="one dead sensor")
    for number in GAS:
        monitor.check(gas(number), name=f"batch {number}")
    for check in monitor.history:
        print(check)
    monitor.plot().get_figure(root=True).savefig(kept.figure, dpi=130, bbox_inches="tight")


def spaces(kept: Kept) -> None:
    """Batches in other feature spaces, by les alone: 5 batches of 160 rows at alpha = 0.05."""
    sixth = gas(6)
    spread = sixth.std(axis=0)
    others = {number: gas(number) / spread for number in (2, 3, 8, 9)}

    def rotated(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rows @ np.linalg.qr(rng.normal(size=(rows.shape[1],) * 2))[0]

    def some(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rows[:, rng.permutation(rows.shape[1])[:64]]

    def sequence(rng: np.random.Generator) -> list[bool]:
        rows = (sixth / spread)[rng.permutation(len(sixth))]
        monitor = ua.DriftMonitor(
            rows[:1500], distances="les", alpha=0.05, horizon=5, n_jobs=1, rng=0
        )
        starts = range(1500, 2300, 160)
        batches = [rotated(rows[start : start + 160], rng) for start in starts]
        found = [any(monitor.read(batch).is_drift for batch in batches)]
        found.append(monitor.read(some(rows[1500:1660], rng)).is_drift)
        for batch in others.values():
            chosen = batch[rng.permutation(len(batch))[:160]]
            found.append(monitor.read(rotated(chosen, rng)).is_drift)
        return found

    rates = kept.repeat("spaces", kept.runs(SEQUENCES), sequence).mean(axis=0)
    names = ["5 rotated batches, any alarm", "64 of 128 columns"]
    names += [f"gas batch {number}, rotated" for number in others]
    print("| batches | share flagged |\n|---|---|")
    for name, rate in zip(names, rates, strict=True):
        print(f"| {name} | {rate:.3f} |")


def cost(kept: Kept) -> None:
    """CPU time of a check of 1000 × 128, and of the batch's own block signatures and kernels."""
    rng = np.random.default_rng(kept.seed)
    for n_reference in (10_000, 100_000):
        monitor = ua.DriftMonitor(rng.normal(size=(n_reference, 128)), n_jobs=1)
        shape, kernel = monitor._baseline.view.instruments[:2]
        checks, parts = [], []
        for _ in range(9):
            batch = rng.normal(size=(1000, 128))
            started = time.process_time()
            monitor.read(batch)
            checks.append(time.process_time() - started)
            started = time.process_time()
            data = ua.Dataset(batch[: 1000 // shape.size * shape.size])
            shape.distances(data, 0, Threads(1))
            kernel._for(1000).distances(ua.Dataset(batch[:992]), 0, Threads(1))
            parts.append(time.process_time() - started)
        ratio = np.median(np.array(checks[1:]) / np.array(parts[1:]))
        print(
            f"{n_reference} reference rows: check {np.median(checks):.3f} s, signatures and "
            f"kernels {np.median(parts):.3f} s, ratio {ratio:.2f}",
            flush=True,
        )


LOADING = """
import sys, time, tracemalloc
import unaligned as ua
ua.DriftMonitor
started = time.perf_counter()
monitor = ua.DriftMonitor.load(sys.argv[1])
print(f"loaded in {time.perf_counter() - started:.2f} s")
tracemalloc.start()
again = ua.DriftMonitor.load(sys.argv[1])
held, peak = (number / 2**20 for number in tracemalloc.get_traced_memory())
print(f"holds {held:.1f} MiB, peak while loading {peak:.1f} MiB")
"""


def size(kept: Kept) -> None:
    """Measure a monitor of 100,000 × 128 rows: fit, file, seconds to load, memory."""
    rng = np.random.default_rng(kept.seed)
    started = time.perf_counter()
    monitor = ua.DriftMonitor(rng.normal(size=(100_000, 128)))
    print(f"fitted in {time.perf_counter() - started:.1f} s, blocks of {monitor.block_size} rows")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "monitor.npz")
        monitor.save(path)
        print(f"file of {path.stat().st_size / 2**20:.1f} MiB", flush=True)
        subprocess.run([sys.executable, "-c", LOADING, str(path)], check=True)


PARTS = {
    "null": null,
    "gas": gas_table,
    "delay": delay,
    "spaces": spaces,
    "figure": figure,
    "cost": cost,
    "size": size,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figure", type=Path, default=Path("drift.png"))
    given = parser.parse_args()
    warnings.simplefilter("ignore", ua.errors.UnalignedWarning)
    kept = Kept(given.keep, given.share, given.seed, given.figure)
    for part in given.parts or PARTS:
        print(f"\n## {part}: {PARTS[part].__doc__}", flush=True)
        PARTS[part](kept)


if __name__ == "__main__":
    main()
