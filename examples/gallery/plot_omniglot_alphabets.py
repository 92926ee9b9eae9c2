"""
Alphabets of Omniglot
=====================

Forty-nine alphabets, drawn by hand (Omniglot, 28 × 28 pixels). Each is a dataset of 280 drawings or
more, compared at one size; LES compares the shapes of these clouds, not the letters.
Data: :doc:`Omniglot </data>`, MIT.
"""

# needs: omniglot28.npz
# sphinx_gallery_thumbnail_path = 'figures/gallery/plot_omniglot_alphabets.png'

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.offsetbox import AnnotationBbox, OffsetImage

import unaligned as ua

folder = Path(os.environ.get("UNALIGNED_DATA", "../shared/data"))
stored = np.load(folder / "omniglot28.npz")
images, alphabet = stored["images"], stored["alphabet"]
names = [str(name) for name in stored["alphabet_names"]]
skip = "Braille"  # dots only: so far from all others that a map shows nothing else
drawings = {
    name: images[alphabet == k].reshape(-1, 784) for k, name in enumerate(names) if name != skip
}
found = ua.compare(
    {name: rows.astype(float) for name, rows in drawings.items()}, preprocess="pca:40",
    subsample="common", n_eigenvalues=90, rng=0,
)  # fmt: skip

# %%
# A map of the alphabets, each with one of its letters, and the names of some.

places = found.embed("mds")
shown = ("Bengali", "Greek", "Hebrew", "Korean", "Latin", "Mongolian", "Tengwar")
figure, ax = plt.subplots(figsize=(10, 7), layout="constrained")
ax.scatter(*places.T, alpha=0)
for (x, y), (name, rows) in zip(places, drawings.items(), strict=True):
    ink = np.zeros((28, 28, 4))  # black, where there is ink
    ink[..., 3] = rows[0].reshape(28, 28) / 255
    letter = OffsetImage(ink, zoom=1.1)
    ax.add_artist(AnnotationBbox(letter, (x, y), frameon=False))
    if name in shown:
        style = {"ha": "center", "va": "top", "fontsize": 8, "color": "C0", "zorder": 4}
        ax.annotate(name, (x, y), (0, -15), textcoords="offset points", **style)
ax.set(xlabel="first coordinate of the map", ylabel="second")
plt.show()
