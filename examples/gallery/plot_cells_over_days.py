"""
Cells over days
===============

Human embryonic stem cells that differentiate over ten days, ten surface markers by flow cytometry
(CytoTree). Two disjoint samples of each day: near in time is near in shape, up to day 6, and
days 8 and 10 are hardly told apart.
"""

# needs: cytotree_hesc_timecourse.npz
# sphinx_gallery_thumbnail_path = 'figures/gallery/plot_cells_over_days.png'

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import unaligned as ua

folder = Path(os.environ.get("UNALIGNED_DATA", "../../../shared/data"))
stored = np.load(folder / "cytotree_hesc_timecourse.npz")
markers = [str(name).split("|")[1] not in ("None", "7-AAD") for name in stored["channels"]]
rng = np.random.default_rng(0)
cells, day = {}, []
for number in (0, 2, 4, 6, 8, 10):
    rows = rng.permutation(stored[f"D{number}"][:, markers])[:3000]
    cells |= {f"day {number}{part}": rows[k::2] for k, part in enumerate("ab")}
    day += [number] * 2
found = ua.compare(cells, preprocess="arcsinh:150", n_eigenvalues=200)
correlation = found.correlate(day)
print(f"correlation with time: {correlation:.2f}, p = {correlation.p_value:.4f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.8), layout="constrained")
found.plot("heatmap", ax=left)
found.plot("embedding", ax=right, color=day, cmap="viridis")
plt.show()
