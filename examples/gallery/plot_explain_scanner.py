"""
Why two datasets differ
=======================

Digits before and after a fault: from some day on, two lines of pixels of the scanner are
noisy. ``ua.explain`` leaves out one line of the images after another; where the distance falls by
more than noise, the line makes the difference.
"""

from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import unaligned as ua

rng = np.random.default_rng(0)
before, after = np.split(rng.permutation(load_digits().data)[:1796], 2)
after = after.copy()
after.reshape(-1, 8, 8)[:, [3, 6]] += rng.normal(0, 6, size=(len(after), 2, 8))

lines = {f"line {k}": list(range(8 * k, 8 * k + 8)) for k in range(8)}
found = ua.explain(
    ua.Dataset(before, name="before"), ua.Dataset(after, name="after"),
    by="features", feature_groups=lines, rng=0,
)  # fmt: skip
print(fill(found.summary))

figure, axes = plt.subplots(
    1, 3, figsize=(11, 4), width_ratios=[0.6, 0.6, 1.6], layout="constrained"
)
for ax, rows, title in zip(axes, (before, after), ("before", "after"), strict=False):
    tiles = rows[:12].reshape(4, 3, 8, 8).transpose(0, 2, 1, 3).reshape(32, 24)
    ax.imshow(tiles, cmap="gray_r", vmin=0, vmax=16)
    ax.set(title=title, xticks=[], yticks=[])
found.plot(ax=axes[2])
plt.show()
