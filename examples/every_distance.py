"""One pair of datasets, every distance, one table.

The same digits twice, in the same feature space and with as many rows, so that even distances that
need shared features and paired rows apply; and then in another feature space, where most do not.
Run: python examples/every_distance.py    (pip install 'unaligned[transport,topology]')
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

import unaligned as ua

# Persistence grows steeply with N, and this is an example.
N_SAMPLES = 150
OPTIONS = {
    "mtd": {"batch_size": 100, "other_batch_size": 150, "n_rounds": 3},
    "geometry-score": {"n_rounds": 50},
    "crosslid": {"n_neighbors": 20},
}


def measure(a: np.ndarray, b: np.ndarray, name: str) -> tuple[str, float]:
    """Return the distance, or why there is none, and the seconds it took."""
    start = time.perf_counter()
    try:
        told = f"{ua.distance(a, b, name, **OPTIONS.get(name, {})):.4g}"
    except ua.errors.NotApplicableError:
        told = "not applicable"
    except ua.errors.MissingExtraError as error:
        told = str(error).splitlines()[0]
    return told, time.perf_counter() - start


def main() -> None:
    images, labels = load_digits(return_X_y=True)
    zeros, ones = images[labels == 0][:N_SAMPLES], images[labels == 1][:N_SAMPLES]
    cropped = ones[:, 8:56]  # other columns
    rows = []
    for name, needs in ua.available().iterrows():
        same, seconds = measure(zeros, ones, name)
        other, _ = measure(zeros, cropped, name)
        rows.append((name, same, other, needs["same features"], needs["paired rows"], seconds))
    columns = ["distance", "zeros, ones", "other columns", "same features", "paired rows", "s"]
    print(pd.DataFrame(rows, columns=columns).round(2).to_string(index=False))


if __name__ == "__main__":
    main()
