"""
Layers of two networks
======================

Two networks of scikit-learn with five hidden layers, trained from different seeds on different halves
of the digits. Their units have nothing in common, and the images they are shown differ too;
for five of the six layers of one, inputs included, the layer of the other nearest in LES is the
corresponding one. The fourth hidden layer is nearer to the fifth.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import unaligned as ua

WIDTHS = (48, 40, 32, 24, 16)
images, labels = load_digits(return_X_y=True)
images = images / 16
order = np.random.default_rng(0).permutation(len(images))
halves = np.array_split(order, 2)


def layers(seed: int, rows: np.ndarray, letter: str) -> dict[str, ua.Dataset]:
    """Return the activations of a trained network, layer by layer."""
    network = MLPClassifier(WIDTHS, max_iter=300, random_state=seed)
    network.fit(images[rows], labels[rows])
    active, found = images[rows], {f"{letter} input": images[rows]}
    for number, (weights, bias) in enumerate(
        zip(network.coefs_[:-1], network.intercepts_[:-1], strict=True), start=1
    ):
        active = np.maximum(active @ weights + bias, 0)
        found[f"{letter}{number}"] = active
    # The units of a layer share one scale, also where some are hardly ever active.
    return {name: ua.Dataset(rows, shared_unit=True) for name, rows in found.items()}


# %%
# A rectangular comparison; a marked cell is the smallest of its row.

found = ua.compare(layers(0, halves[0], "A"), layers(1, halves[1], "B"), n_eigenvalues=200)
nearest = found.distances.argmin(axis=1)
right = np.mean(nearest == np.arange(len(nearest)))
figure, ax = plt.subplots(figsize=(6.4, 5), layout="constrained")
found.plot("heatmap", ax=ax)
ax.scatter(nearest, np.arange(len(nearest)), marker="s", s=900, fc="none", ec="white", lw=2)
ax.set_title(f"{right:.0%} of the layers find their own")
plt.show()
