"""
What LES sees: spectra of five shapes
=====================================

A line, a disc, two clusters of 400 and 200 points, a torus and noise in ten dimensions, 600 points
each, and the eigenvalues that LES compares. Below γ = 1e-8, the dotted line, they do not count.
"""

import matplotlib.pyplot as plt
import numpy as np

import unaligned as ua
from unaligned.data.shapes import torus2, torus_angles

rng = np.random.default_rng(0)
n = 600
angle, radius = rng.uniform(0, 2 * np.pi, n), np.sqrt(rng.uniform(size=n))
shapes = {
    "line": np.column_stack([np.linspace(-1, 1, n), np.zeros(n)]),
    "disc": np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]),
    "two clusters": rng.normal(size=(n, 2)) + np.repeat([[-8, 0], [8, 0]], [400, 200], axis=0),
    "torus": torus2(torus_angles(n, rng=0)),
    "noise, 10-d": rng.normal(size=(n, 10)),
}
found = ua.compare(shapes, n_eigenvalues=100)

# %%
# Each shape above, its spectrum below. The noise is shown by its first two columns.

figure, axes = plt.subplots(2, 5, figsize=(12, 5), sharey="row", layout="constrained")
for (above, below), (name, points) in zip(axes.T, shapes.items(), strict=True):
    above.scatter(*points[:, :2].T / np.abs(points[:, :2]).max(), s=3, color="C0")
    above.set(title=name, xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), xticks=[], yticks=[], aspect=1)
    above.spines[:].set_visible(False)
    below.semilogy(np.arange(1, 101), np.maximum(found.signatures[name].eigenvalues, 1e-16), lw=2)
    below.axhline(1e-8, color="0.4", ls=":")
    below.set(xlabel="i", ylim=(1e-16, 3))
axes[1, 0].set_ylabel("eigenvalue λᵢ of W")
plt.show()

# %%
# The distances between them.

print(found.to_frame().round(1))

# %%
# How many eigenvalues lie above γ.

for name, signature in found.signatures.items():
    print(f"{name:13s} {(signature.eigenvalues > 1e-8).sum():3d}")

# %%
# The second eigenvalue of two clusters of equal size: half of the distances are those between the
# clusters, and σ² is as large.

equal = rng.normal(size=(n, 2)) + np.repeat([[-8, 0], [8, 0]], n // 2, axis=0)
for factor in (2, 0.5):
    signature = ua.signature(equal, n_eigenvalues=10, bandwidth_factor=factor)
    print(f"bandwidth_factor={factor}: second eigenvalue {signature.eigenvalues[1]:.2f}")
