"""
Cells over days
===============

Human embryonic stem cells that differentiate over ten days, ten surface markers by flow cytometry
(CytoTree). Two disjoint samples of each day: near in time is near in shape, up to day 6, and
days 8 and 10 are hardly told apart. Samples of one day are not independent, so the correlation
with time takes one per day; six days are few for a test. It depends on the number of cells, here 1500 of
each day (:doc:`/results`). Data: :doc:`CytoTree </data>`, GPL-3.
"""

# needs: cytotree_hesc_timecourse.npz
# sphinx_gallery_thumbnail_path = 'figures/gallery/plot_cells_over_days.png'

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import unaligned as ua

folder = Path(os.environ.get("UNALIGNED_DATA", "../shared/data"))
stored = np.load(folder / "cytotree_hesc_timecourse.npz")
markers = [str(name).split("|")[1] not in ("None", "7-AAD") for name in stored["channels"]]
rng = np.random.default_rng(0)
cells, day = {}, []
for number in (0, 2, 4, 6, 8, 10):
    rows = rng.permutation(stored[f"D{number}"][:, markers])[:3000]
    cells |= {f"day {number}{part}": rows[k::2] for k, part in enumerate("ab")}
    day += [number] * 2
options = {"preprocess": "arcsinh:150", "n_eigenvalues": 200}
found = ua.compare(cells, **options)
per_day = ua.compare({name: rows for name, rows in cells.items() if name.endswith("a")}, **options)
correlation = per_day.correlate(day[::2])
print(f"correlation with time over six days: {correlation:.2f}, p = {correlation.p_value:.3f}")

# %%
# All twelve samples.

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.8), layout="constrained")
found.plot("heatmap", ax=left)
found.plot("embedding", ax=right, color=day, cmap="viridis")
plt.show()
