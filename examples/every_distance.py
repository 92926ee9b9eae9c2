"""One pair of datasets, every distance, one table.

Handwritten zeros against other zeros ("alike"), against ones ("unlike"), and against ones of
which only some pixels are kept ("other columns"), where distances that need shared features do
not apply. A distance means little by itself: compare "unlike" with "alike". All sets have as many
rows, so that even distances of paired rows answer, though row i of one digit has nothing to do
with row i of another.
Run: python examples/every_distance.py    (pip install 'unaligned[transport,topology]')
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

import unaligned as ua

N_SAMPLES = 89  # there are 178 zeros; persistence and transport grow steeply with N
OPTIONS = {"geometry-score": {"n_rounds": 100}, "crosslid": {"n_neighbors": 20}}


def measure(a: np.ndarray, b: np.ndarray, name: str) -> str:
    """Return the distance in four digits, or why there is none."""
    try:
        return f"{ua.distance(a, b, name, **OPTIONS.get(name, {})):.4g}"
    except (ua.errors.NotApplicableError, ua.errors.InputError):  # or too few rows for it
        return "not applicable"
    except ua.errors.MissingExtraError:
        return "extra missing"


def main() -> None:
    images, labels = load_digits(return_X_y=True)
    zeros, ones = images[labels == 0], images[labels == 1][:N_SAMPLES]
    zeros, more_zeros = zeros[:N_SAMPLES], zeros[N_SAMPLES:]
    rows = []
    for name, needs in ua.available().iterrows():
        alike = measure(zeros, more_zeros, name)  # the first call imports and compiles
        start = time.perf_counter()
        unlike = measure(zeros, ones, name)
        seconds = time.perf_counter() - start
        other = measure(zeros, ones[:, 8:56], name)
        needed = [need for need in ("same features", "paired rows") if needs[need]]
        rows.append((name, alike, unlike, other, ", ".join(needed) or "nothing", seconds))
    columns = ["distance", "alike", "unlike", "other columns", "needs", "seconds"]
    print(pd.DataFrame(rows, columns=columns).round(2).to_string(index=False))


if __name__ == "__main__":
    main()
