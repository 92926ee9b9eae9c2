"""
Digits in feature spaces that have nothing in common
====================================================

Four of scikit-learn's handwritten digits, three disjoint samples of 58 images each: one as pixels,
one rotated at random into columns that are no pixels any more, and one in 100 columns. LES knows
neither which columns belong together nor which rows, and still finds the samples of one digit near
each other. Zeros and eights are of one shape: 58 images do not tell them apart.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import unaligned as ua

images, labels = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
datasets, digit = {}, []
for number in (0, 1, 4, 8):
    first, second, third = rng.permutation(images[labels == number])[:174].reshape(3, 58, 64)
    datasets[f"{number}, pixels"] = first
    datasets[f"{number}, rotated × 3"] = 3 * second @ np.linalg.qr(rng.normal(size=(64, 64)))[0]
    datasets[f"{number}, 100 columns"] = third @ np.linalg.qr(rng.normal(size=(100, 64)))[0].T
    digit += [str(number)] * 3

# %%
# The samples have no row in common, so that a permutation test of the digits is valid. They have
# one size, since size alone moves LES.

found = ua.compare(datasets)
test = found.permanova(digit, rng=0)
print(f"pseudo-F {test.statistic:.1f}, p = {test.p_value:.4f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
found.plot("heatmap", ax=left)
found.plot("embedding", ax=right, color=digit)
plt.show()
