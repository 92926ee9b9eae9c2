"""
Digits in feature spaces that have nothing in common
====================================================

Four sets of handwritten digits from scikit-learn, each as pixels, rotated at random into columns
that are no pixels any more, and as a random half of its rows. LES knows neither which
columns belong together nor which rows, and still puts the same digits side by side.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import unaligned as ua

images, labels = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
datasets, digit = {}, []
for number in (0, 1, 4, 8):
    pixels = images[labels == number]
    rotation = np.linalg.qr(rng.normal(size=(64, 64)))[0]
    datasets[f"{number}, pixels"] = pixels
    datasets[f"{number}, rotated × 3"] = 3 * pixels @ rotation
    datasets[f"{number}, half of them"] = pixels[rng.permutation(len(pixels))[:87]]
    digit += [str(number)] * 3

# %%
# Halves and wholes are compared at one size, since size alone moves LES.

found = ua.compare(datasets, subsample=87, rng=0)
test = found.permanova(digit, rng=0)
print(f"pseudo-F {test.statistic:.1f}, p = {test.p_value:.4f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
found.plot("heatmap", ax=left)
found.plot("embedding", ax=right, color=digit)
plt.show()
