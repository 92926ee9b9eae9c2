"""
Two photographs, in colour and in grey
======================================

The two photographs inside scikit-learn, a temple and a flower, as clouds of patches of 5 × 5 pixels:
75 columns in colour, 25 in grey, of the left and of the right half. No column of one is a column of
the other. Without colour the flower moves by 74 to 80, the temple by 11 to 17; the left half
of the temple in colour is as near to the flower in colour as to itself in grey.
"""

# needs: PIL
# sphinx_gallery_thumbnail_path = 'figures/gallery/plot_image_patches.png'

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

import unaligned as ua

SIDE, COUNT = 5, 1000
rng = np.random.default_rng(0)


def patches(picture: np.ndarray) -> np.ndarray:
    """Return random patches as rows, each without its mean."""
    rows, columns = (rng.integers(size - SIDE, size=COUNT) for size in picture.shape[:2])
    cut = np.stack(
        [picture[r : r + SIDE, c : c + SIDE].ravel() for r, c in zip(rows, columns, strict=True)]
    )
    return cut - cut.mean(axis=1, keepdims=True)


# %%
# Eight datasets: two photographs, two halves, colour and grey.

pictures = {name: load_sample_image(f"{name}.jpg") / 255 for name in ("china", "flower")}
datasets, tags = {}, []
for name, picture in pictures.items():
    for side, half in zip(("left", "right"), np.array_split(picture, 2, axis=1), strict=True):
        datasets[f"{name} {side}, colour"] = patches(half)
        datasets[f"{name} {side}, grey"] = patches(half.mean(axis=2))
        tags += [name] * 2
found = ua.compare(datasets, n_eigenvalues=200)

print(found.to_frame().round(1))

figure, axes = plt.subplot_mosaic(
    [["china", "map"], ["flower", "map"]], figsize=(11, 5), width_ratios=[1, 1.8],
    layout="constrained",
)  # fmt: skip
for name, picture in pictures.items():
    axes[name].imshow(picture)
    axes[name].axis("off")
found.plot("embedding", ax=axes["map"], color=tags)
plt.show()
