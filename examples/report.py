"""Two reports of real data: ageing gas sensors by batch, and stem cells by day.

Run: python examples/report.py [folder]    (UNALIGNED_DATA names the folder of the data)
Then open gas_sensors.html and stem_cells.html in a browser, or send them to somebody.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

import unaligned as ua

DATA = Path(os.environ.get("UNALIGNED_DATA", Path(__file__).parents[2] / "shared" / "data"))


def gas_sensors() -> tuple[ua.Comparison, dict[str, list[int]]]:
    """Return batches of readings of the same sensors over 36 months; the seventh is absent."""
    stored = np.load(DATA / "gas_sensor_drift.npz")
    numbers = sorted(int(key[1:]) for key in stored.files if key.startswith("x"))
    batches = {f"batch {k}": stored[f"x{k}"] for k in numbers}
    # Batches have 161 to 2300 readings: compared at one size, or size would be part of it. Columns
    # of resistances are up to 10⁵ times as wide as those of relative changes.
    found = ua.compare(
        batches, n_eigenvalues=100, subsample="common", preprocess="standardize", rng=0
    )
    return found, {"batch": numbers}


def stem_cells() -> tuple[ua.Comparison, dict[str, list[int]]]:
    """Return differentiating stem cells on six days: ten surface markers of 1500 cells each."""
    stored = np.load(DATA / "cytotree_hesc_timecourse.npz")
    markers = [str(name).split("|")[1] not in ("None", "7-AAD") for name in stored["channels"]]
    days = [0, 2, 4, 6, 8, 10]
    cells = {f"day {day}": stored[f"D{day}"][:, markers] for day in days}
    found = ua.compare(cells, preprocess="arcsinh:150", subsample=1500, rng=0)
    return found, {"day": days}


def main(folder: Path) -> None:
    if not DATA.is_dir():
        print(f"There is no data at {DATA}; set UNALIGNED_DATA.")
        return
    folder.mkdir(parents=True, exist_ok=True)
    command = "python examples/report.py"
    for name, title, make in (
        ("gas_sensors", "Gas sensors, batch by batch", gas_sensors),
        ("stem_cells", "Stem cells, day by day", stem_cells),
    ):
        found, tags = make()
        path = folder / f"{name}.html"
        found.report(path, title=title, tags=tags, command=command)
        print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results/report"))
