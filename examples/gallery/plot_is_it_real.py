"""
Is the difference real?
=======================

The digits 0 to 4 against the digits 5 to 9 (scikit-learn), and random halves of the same digits. A
permutation test of block signatures says whether two datasets differ by more than sampling, also
where they have other columns.
"""

from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import unaligned as ua

images, labels = load_digits(return_X_y=True)
low, high = images[labels < 5], images[labels >= 5]
order = np.random.default_rng(0).permutation(len(low))
rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(64, 64)))[0]
tests = {
    "0-4 and 5-9": ua.permutation_test(low, high, rng=0),
    "0-4 and 5-9 in other columns": ua.permutation_test(low, high @ rotation, rng=0),
    "halves of 0-4": ua.permutation_test(low[order[::2]], low[order[1::2]], rng=0),
}

# %%
# The statistic of the data (line) and under permutations of the blocks (bars).

figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
for ax, (title, test) in zip(axes, tests.items(), strict=True):
    print(fill(f"{title}: {test}"))
    test.plot(ax=ax)
    ax.set_title(f"{title}\np = {test.p_value:.4f}")
plt.show()
