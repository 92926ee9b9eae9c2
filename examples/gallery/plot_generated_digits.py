"""
Generated against real images
=============================

Five generators of digits, fitted to one half of scikit-learn's images, and the other half as what a
perfect generator would give. The Fréchet distance (FID) compares means and covariances, LES
the shape of the cloud: by Fréchet, but not by LES, one normal distribution is as good as images
held out.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity

import unaligned as ua

rng = np.random.default_rng(0)
real = rng.permutation(load_digits().data / 16)[:1600]
train, held_out = np.split(real, 2)
n = len(train)
covariance = np.cov(train.T) + 1e-3 * np.eye(64)  # some pixels are never inked
mixture = GaussianMixture(10, reg_covar=1e-3, random_state=0).fit(train)
density = KernelDensity(bandwidth=0.1).fit(train)
samples = {
    "held out": held_out,
    "kernel density": density.sample(n, random_state=0),
    "mixture of 10": mixture.sample(n)[0],
    "one normal": rng.multivariate_normal(train.mean(axis=0), covariance, size=n),
    "20 images, jittered": train[rng.integers(20, size=n)] + rng.normal(0, 0.05, (n, 64)),
    "blurred": (2 * train + np.roll(train, 1, axis=1) + np.roll(train, -1, axis=1)) / 4,
}
les = ua.compare(samples, {"train": train}, n_eigenvalues=200)
frechet = ua.compare(samples, {"train": train}, distance="frechet")

# %%
# Ten images of each, and both distances to the training half.

figure = plt.figure(figsize=(11, 5), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=[1.5, 1])
for ax, (name, rows) in zip(left.subplots(len(samples)), samples.items(), strict=True):
    ax.imshow(np.hstack(rows[:10].reshape(-1, 8, 8)), cmap="gray_r", vmin=0, vmax=1)
    ax.set_ylabel(name, rotation=0, ha="right", va="center")
    ax.set(xticks=[], yticks=[])
bars, place = right.subplots(), np.arange(len(samples))
bars.barh(place - 0.2, les.distances[:, 0], 0.36, label="LES")
bars.barh(place + 0.2, frechet.distances[:, 0], 0.36, label="Fréchet")
bars.set(xscale="log", xlabel="distance to the training half", yticks=[])
bars.invert_yaxis()
bars.legend()
plt.show()
