"""
Meshes of animals and people
============================

Ten surfaces that ship with CGAL (Debian package ``libcgal-demo``): two different samples of 1500 points of
each, the second turned and enlarged. LES neither knows which point is which nor how the shapes are
placed, and finds the other sample of the same surface first.
"""

# needs: /usr/share/doc/libcgal-dev/data.tar.gz
# sphinx_gallery_thumbnail_path = 'figures/gallery/plot_meshes.png'

import tarfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import unaligned as ua

NAMES = ["bear", "camel", "cow", "dino", "elephant", "hand", "homer", "lion", "man", "pig"]
ARCHIVE = Path("/usr/share/doc/libcgal-dev/data.tar.gz")
rng = np.random.default_rng(0)


def read_off(text: str) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices and triangles of an OFF file."""
    lines = [line.split() for line in text.splitlines() if line.strip() and line[0] != "#"]
    n, m = map(int, lines[1][:2])
    points = np.array([words[:3] for words in lines[2 : 2 + n]], dtype=float)
    return points, np.array([words[1:4] for words in lines[2 + n : 2 + n + m]], dtype=int)


def sample(points: np.ndarray, faces: np.ndarray, n: int = 1500) -> np.ndarray:
    """Return points drawn evenly from the surface."""
    corners = points[faces]
    edges = corners[:, 1:] - corners[:, :1]
    area = np.linalg.norm(np.cross(edges[:, 0], edges[:, 1]), axis=1)
    chosen = rng.choice(len(faces), size=n, p=area / area.sum())
    weights = rng.dirichlet(np.ones(3), size=n)
    return np.einsum("ij,ijk->ik", weights, corners[chosen])


with tarfile.open(ARCHIVE) as archive:
    files = {name: archive.extractfile(f"data/meshes/{name}.off") for name in NAMES}
    meshes = {name: read_off(file.read().decode()) for name, file in files.items()}
first = {name: sample(*mesh) for name, mesh in meshes.items()}
turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
second = {name: 9 * sample(*mesh) @ turn for name, mesh in meshes.items()}

# %%
# The nearest of the second samples to each of the first.

found = ua.compare(first, second)
right = np.mean(found.distances.argmin(axis=1) == np.arange(len(NAMES)))
print(f"{right:.0%} find the other sample of their own surface")

figure = plt.figure(figsize=(12, 5.2), layout="constrained")
shapes, matrix = figure.subfigures(1, 2, width_ratios=[1, 1.1])
for ax, (name, points) in zip(shapes.subplots(2, 5).flat, first.items(), strict=True):
    centred = points - points.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2]
    ax.scatter(*(centred @ axes[:2].T).T, c=centred @ axes[2], s=2, cmap="viridis")
    ax.set(title=name, aspect="equal")
    ax.axis("off")
found.plot("heatmap", ax=matrix.subplots(), title=f"{right:.0%} find their own surface")
plt.show()
