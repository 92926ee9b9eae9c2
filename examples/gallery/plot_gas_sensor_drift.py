"""
Gas sensors that age
====================

Sixteen gas sensors over 36 months (UCI, 128 features). A monitor is fitted to a random half of the
second batch, and asked about its other half and about the later batches, of which the data has all but
the 7th and 10th: have the sensors drifted? Data: :doc:`UCI </data>`, CC BY 4.0.
"""

# needs: gas_sensor_drift.npz
# sphinx_gallery_thumbnail_path = 'figures/gallery/plot_gas_sensor_drift.png'

import os
from pathlib import Path
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np

import unaligned as ua

folder = Path(os.environ.get("UNALIGNED_DATA", "../shared/data"))
stored = np.load(folder / "gas_sensor_drift.npz")
reference, other_half = np.array_split(
    np.random.default_rng(0).permutation(stored["x2"]), 2
)  # fmt: skip
monitor = ua.DriftMonitor(reference, rng=0)
print(fill(str(monitor.check(other_half, name="2, other half"))))
for number in (3, 4, 5, 6, 8, 9):
    print(fill(str(monitor.check(stored[f"x{number}"], name=str(number)))))

figure, ax = plt.subplots(figsize=(9, 4.4), layout="constrained")
monitor.plot(ax=ax)
plt.show()
