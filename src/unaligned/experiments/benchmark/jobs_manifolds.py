"""Jobs on manifolds: the number of dimensions under noise, scale and rotation."""

from __future__ import annotations

import numpy as np

from ..._check import FloatArray
from ...data.shapes import torus2, torus3, torus_angles
from .jobs import Collection, Entry, job

_POOL = 2000  # points of each, from which rows are drawn


def _hidden(points: FloatArray, rng: np.random.Generator, noise: float) -> FloatArray:
    """Return the points in ten columns: other axes, another scale, and noise."""
    axes = np.linalg.qr(rng.normal(size=(10, 10)))[0][: points.shape[1]]
    spread = points.std(axis=0).mean()
    noisy = points @ axes + noise * spread * rng.normal(size=(len(points), 10))
    return np.asarray(rng.uniform(0.2, 5.0) * noisy)


@job(
    "tori",
    "Does a torus of three dimensions become one of two?",
    "T2, T3 and T3 with a shrinking radius (Section 5.1), in other axes and scales",
    "crossing",
    n_full=1000,
)
def tori(rng: np.random.Generator, full: bool) -> Collection:
    """Return T2, T3, and T3 whose smallest radius is scaled by c, all in ten dimensions."""
    datasets: dict[str, FloatArray] = {
        "T2": torus2(torus_angles(_POOL, 3, rng=rng)),
        "T3": torus3(torus_angles(_POOL, 3, rng=rng)),
    }
    scales = np.linspace(0.05, 0.95, 19 if full else 10)
    for scale in scales:
        datasets[f"T3 × {scale:.2f}"] = torus3(torus_angles(_POOL, 3, rng=rng), radius_scale=scale)
    hidden = {name: _hidden(points, rng, 0.01) for name, points in datasets.items()}
    labels = ["low", "high", *["between"] * len(scales)]
    return Collection(hidden, labels, values=[0.0, 1.0, *scales])


@job(
    "dimension",
    "How many dimensions has it?",
    "spheres and tori of 1 to 3 dimensions, under noise and scale",
    "nearest",
    n_full=1000,
)
def dimension(rng: np.random.Generator, full: bool) -> Collection:
    """Return spheres and products of circles of 1 to 3 dimensions at three levels of noise."""
    entries = []
    for level, noise in enumerate((0.0, 0.05, 0.1)):
        for d in (1, 2, 3):
            sphere = rng.normal(size=(_POOL, d + 1))
            sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
            angles = rng.uniform(0, 2 * np.pi, size=(_POOL, d))
            product = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
            for shape, points in (("sphere", sphere), ("torus", product)):
                hidden = _hidden(points, rng, noise)
                entries.append(Entry(f"{shape} {d}, {noise:g}", hidden, str(d), str(level)))
    return Collection.of(entries)
