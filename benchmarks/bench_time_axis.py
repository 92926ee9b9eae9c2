"""Which distance follows time where features are shared: LES, or one that knows positions.

500 cells of each CytoTree day, ten markers; Pearson's correlation of distances with |Δday|, over
random samples of cells. Run: python benchmarks/bench_time_axis.py
"""

from __future__ import annotations

import numpy as np
from datasets import DATA

import unaligned as ua

N_CELLS, N_SAMPLES = 500, 10
DISTANCES = ("les", "edistance", "mmd", "wasserstein")


def days() -> dict[str, np.ndarray]:
    stored = np.load(DATA / "cytotree_hesc_timecourse.npz")
    markers = [str(c).split("|")[1] not in ("None", "7-AAD") for c in stored["channels"]]
    names = ("D0", "D2", "D4", "D6", "D8", "D10")
    return {day: np.arcsinh(stored[day][:, markers] / 150) for day in names}


def main() -> None:
    cells = days()
    times = {day: float(day[1:]) for day in cells}
    print(f"Pearson with |Δday|, {N_CELLS} cells per day, mean ± std of {N_SAMPLES} samples")
    for distance in DISTANCES:
        found = []
        for seed in range(N_SAMPLES):
            rng = np.random.default_rng(seed)
            drawn = {d: x[rng.choice(len(x), N_CELLS, replace=False)] for d, x in cells.items()}
            result = ua.compare(drawn, distance=distance, progress=False)
            found.append(result.correlate(times))
        print(f"{distance:12} {np.mean(found):.2f} ± {np.std(found, ddof=1):.2f}", flush=True)


if __name__ == "__main__":
    main()
