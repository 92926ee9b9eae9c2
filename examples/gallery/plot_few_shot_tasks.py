"""
Few-shot tasks: which will be hard?
===================================

Tasks of five digits each. The known ones are clean; the new ones are more or less noisy. The mean
distance of a new task to the known ones needs no labels, and says beforehand how well a
classifier will do that sees five labelled examples per class (Section 5.3 of the paper).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import unaligned as ua

images, labels = load_digits(return_X_y=True)
images = images / 16
rng = np.random.default_rng(0)


def task(noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Return 300 images of five classes, and their labels."""
    classes = rng.choice(10, size=5, replace=False)
    rows = np.concatenate([rng.choice(np.flatnonzero(labels == k), 60) for k in classes])
    return images[rows] + rng.normal(0, noise, size=(300, 64)), labels[rows]


def accuracy(points: np.ndarray, classes: np.ndarray, shots: int = 5) -> float:
    """Return the mean accuracy of nearest centroids over 20 draws of labelled examples."""
    names, hits = np.unique(classes), []
    for _ in range(20):
        shown = np.stack([rng.choice(np.flatnonzero(classes == k), shots) for k in names])
        centroids = points[shown].mean(axis=1)
        squared = ((points[:, None, :] - centroids) ** 2).sum(axis=2)
        right = names[squared.argmin(axis=1)] == classes
        hits.append(np.delete(right, shown).mean())
    return float(np.mean(hits))


# %%
# Six known tasks, eighteen new ones.

known = {f"known {i}": task(0.05)[0] for i in range(6)}
levels = np.repeat([0.05, 0.1, 0.2, 0.3, 0.4, 0.5], 3)
new = {f"new {i}": task(level) for i, level in enumerate(levels)}
scores = [accuracy(*drawn) for drawn in new.values()]
found = ua.compare({name: points for name, (points, _) in new.items()}, known, n_eigenvalues=150)
correlation = found.correlate(scores)

figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
shown = ax.scatter(found.aggregate("mean"), scores, c=levels, cmap="viridis", s=60)
figure.colorbar(shown, label="noise of the new task")
ax.set(xlabel="mean LES to the known tasks", ylabel="accuracy with 5 shots")
ax.set_title(f"correlation {correlation:.2f}")
plt.show()
