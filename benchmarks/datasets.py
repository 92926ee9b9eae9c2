"""The datasets that the bars name."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from unaligned.data.preprocess import apply_steps
from unaligned.data.shapes import torus3, torus_angles

DATA = Path(os.environ.get("UNALIGNED_DATA", Path(__file__).parents[2] / "shared" / "data"))


def digits() -> np.ndarray:
    return load_digits().data


def noise() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(3000, 100))


def five_clusters() -> np.ndarray:
    """Five clusters in 2560 dimensions, as few-shot embeddings look (Appendix D)."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(5, 2560))
    return centres[rng.integers(5, size=3000)] + 0.5 * rng.normal(size=(3000, 2560))


def klein() -> np.ndarray:
    counts = np.load(DATA / "klein2015_mesc.npz")["counts"].astype(float)
    return apply_steps(counts, ("normalize_total", "log1p"))


def cytotree() -> np.ndarray:
    stored = np.load(DATA / "cytotree_hesc_timecourse.npz")
    markers = [str(c).split("|")[1] not in ("None", "7-AAD") for c in stored["channels"]]
    return np.arcsinh(stored["D0"][:, markers] / 150)


def torus(n_samples: int) -> np.ndarray:
    return torus3(torus_angles(n_samples, 3, rng=0))


def decaying(n_samples: int, seed: int) -> np.ndarray:
    """Return a Gaussian in 50 dimensions with variances 1/i, as principal components look."""
    normal = np.random.default_rng(seed).normal(size=(n_samples, 50))
    return normal / np.sqrt(np.arange(1, 51))


def isotropic(n_samples: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n_samples, 20))


def clusters(n_samples: int, seed: int) -> np.ndarray:
    """Return 30 clusters in 50 dimensions, twice as far apart as they are wide."""
    rng = np.random.default_rng(seed)
    centres = 2.0 * rng.normal(size=(30, 50))
    return centres[rng.integers(30, size=n_samples)] + rng.normal(size=(n_samples, 50))


def heavy_tailed(n_samples: int, seed: int) -> np.ndarray:
    """Return points of Student's t with 3 degrees of freedom in 20 dimensions."""
    rng = np.random.default_rng(seed)
    radius = np.sqrt(3.0 / rng.chisquare(3.0, size=(n_samples, 1)))
    return radius * rng.normal(size=(n_samples, 20))


def swiss_roll(n_samples: int, seed: int) -> np.ndarray:
    """Return a swiss roll of diameter 2 in noise of variance 0.01 in 50 dimensions."""
    rng = np.random.default_rng(seed)
    angle, height = 1.5 * np.pi * (1.0 + 2.0 * rng.random(n_samples)), rng.random(n_samples)
    roll = np.stack([angle * np.cos(angle), 21.0 * height, angle * np.sin(angle)], axis=1) / 14.0
    points = 0.1 * rng.normal(size=(n_samples, 50))
    points[:, :3] += roll
    return points


# Spectra that decay slowly: name -> points of (rows, seed).
FAMILIES = {
    "1/i": decaying,
    "isotropic": isotropic,
    "clusters": clusters,
    "heavy-tailed": heavy_tailed,
    "swiss roll": swiss_roll,
}


# name -> (make, K, γ, the most time relative to the authors' way)
SOLVING = {
    "digits": (digits, 200, 1e-8, 1.0),
    "N(0, I100)": (noise, 200, 1e-8, 0.7),
    "five clusters": (five_clusters, 500, 1e-6, 1.0),
    "Klein": (klein, 200, 1e-8, 1.0),
    "CytoTree D0": (cytotree, 200, 1e-8, 1.0),
    "3-torus 3000": (lambda: torus(3000), 200, 1e-8, 1 / 3),
    "3-torus 8000": (lambda: torus(8000), 200, 1e-8, 1 / 5),
}
