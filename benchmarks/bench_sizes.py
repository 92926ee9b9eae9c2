"""How far apart two samples of one distribution come out when their sizes differ.

LES has a sample-size bias, the larger the further K goes into the smaller spectrum. Samples of the
standard normal distribution: 200 rows against r times as many, and the same after drawing both to
200 (`subsample="common"`); then 1000 rows against 5000 at K up to a fifth of them. Means of
several seeds; r = 1 is what sampling alone makes of it.
Run: python benchmarks/bench_sizes.py
"""

from __future__ import annotations

import warnings

import numpy as np

import unaligned as ua

N_SAMPLES = 200
RATIOS = (1.0, 1.25, 1.5, 2.0, 4.0)
SHARES = (0.1, 0.25, 0.5, 1.0)
SEEDS = range(5)


def mean_distance(
    n_features: int, ratio: float, n_samples: int = N_SAMPLES, **options: object
) -> float:
    found = []
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        small = rng.normal(size=(n_samples, n_features))
        large = rng.normal(size=(round(ratio * n_samples), n_features))
        found.append(ua.distance(small, large, **options))
    return float(np.mean(found))


def main() -> None:
    head = "".join(f"{f'r = {ratio:g}':>10s}" for ratio in RATIOS)
    print(f"{'features':>8s} {'K / N':>6s}{head}   r = {RATIOS[-1]:g}, subsample='common'")
    for n_features in (2, 3, 8, 20):
        for share in SHARES:
            k = {"n_eigenvalues": int(share * N_SAMPLES)}
            cells = "".join(f"{mean_distance(n_features, r, **k):10.2f}" for r in RATIOS)
            drawn = mean_distance(n_features, RATIOS[-1], subsample="common", **k)
            print(f"{n_features:8d} {share:6.2f}{cells}{drawn:10.2f}", flush=True)
    print(f"{'features':>8s} {'K':>6s}  1000 against 1000  1000 against 5000")
    for n_features in (3, 20):
        for k in (20, 50, 100, 200):
            one, five = (mean_distance(n_features, r, 1000, n_eigenvalues=k) for r in (1.0, 5.0))
            print(f"{n_features:8d} {k:6d} {one:18.2f} {five:18.2f}", flush=True)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ua.errors.SampleSizeWarning)
        main()
