"""The demo: handwritten digits in feature spaces that have nothing in common."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

import unaligned as ua

from .. import _check
from .._check import FloatArray, RNGLike


@dataclass(frozen=True)
class Demo:
    """The datasets, the distances and the conclusions of the demo."""

    comparison: ua.Comparison  # of names such as `A1`, the letter being the set of digits
    descriptions: dict[str, str]  # by name
    reading: tuple[str, ...]  # sentences computed from the distances


def run_demo(*, rng: RNGLike = None, progress: bool | None = None) -> Demo:
    """Return the LES distances between two sets of digits, each in four representations.

    scikit-learn's 1797 images of 8×8 pixels are part of that package, so nothing is downloaded.
    Takes a few seconds.
    """
    from sklearn.datasets import load_digits

    generator = np.random.default_rng(_check.root_seed(rng))
    images, labels = load_digits(return_X_y=True)
    sets = {"A": ("digits 0-4", images[labels < 5]), "B": ("digits 5-9", images[labels >= 5])}
    clouds, descriptions = {}, {}
    for letter, (digits, chosen) in sets.items():
        for number, (what, points) in enumerate(_representations(chosen, generator), start=1):
            clouds[f"{letter}{number}"] = points
            size = f"{points.shape[0]} × {points.shape[1]}"
            descriptions[f"{letter}{number}"] = f"{digits}, {what} ({size})"
    # K up to a quarter of the smallest set, where halves and wholes may be compared.
    comparison = ua.compare(clouds, n_eigenvalues=100, tol=1e-8, progress=progress)
    reading = (*_conclusions(comparison), _limitation(sets["A"][1], comparison))
    return Demo(comparison, descriptions, reading)


def _representations(images: FloatArray, rng: np.random.Generator) -> list[tuple[str, FloatArray]]:
    """Return the same digits as four point clouds, the last two without a common image."""
    n, n_pixels = images.shape
    order = rng.permutation(n)
    one_half, other_half = images[order[: n // 2]], images[order[n // 2 :]]
    rotation, _ = np.linalg.qr(rng.normal(size=(n_pixels, n_pixels)))
    enlarged = np.kron(other_half.reshape(-1, 8, 8), np.ones((1, 3, 3)))
    return [
        ("pixels", images),
        ("rotated in 64-d, scaled, shuffled", 3.0 * images[rng.permutation(n)] @ rotation),
        ("one half, 1000 random features", one_half @ rng.normal(size=(n_pixels, 1000))),
        ("other half, drawn as 24×24 pixels", enlarged.reshape(len(other_half), -1)),
    ]


def _conclusions(comparison: ua.Comparison) -> list[str]:
    """Return sentences computed from the distances."""
    names = comparison.names
    pairs = {pair: float(comparison[pair]) for pair in combinations(names, 2)}
    same = [d for (a, b), d in pairs.items() if a[0] == b[0]]
    other = {pair: d for pair, d in pairs.items() if pair[0][0] != pair[1][0]}
    closest, farthest = min(pairs, key=pairs.__getitem__), max(pairs, key=pairs.__getitem__)
    halves = min(d for (a, _), d in other.items() if a in ("A3", "A4"))
    gap = min(other.values()) / max(same)
    distances = comparison.distances + np.diag(np.full(len(names), np.inf))
    nearest = [names[j] for j in distances.argmin(axis=1)]
    right = sum(a[0] == b[0] for a, b in zip(names, nearest, strict=True))
    kinds = sorted({signature.bound_kind for signature in comparison.signatures.values()})
    apart = "so one threshold separates them" if gap > 1 else "so the two ranges overlap"
    return [
        f"Closest: {closest[0]} and {closest[1]}, distance {pairs[closest]:.2g}. "
        f"Farthest: {farthest[0]} and {farthest[1]}, {pairs[farthest]:.2f}.",
        f"Same digits: {min(same):.2f} to {max(same):.2f}. Different digits: "
        f"{min(other.values()):.2f} to {max(other.values()):.2f}; {apart} (the smallest distance "
        f"between different digits is {gap:.1f} times the largest between the same digits).",
        f"The nearest neighbour shows the same digits for {right} of {len(names)} datasets, "
        "without any information on which rows or columns correspond.",
        "A3 and A4 share no image and no feature: their distance is "
        f"{comparison['A3', 'A4']:.2f}; to any B it is at least {halves:.2f}.",
        f"Every distance is accurate to within {comparison.error_bounds.max():.0e} "
        f"(bound: {', '.join(kinds)}).",
    ]


def _limitation(images: FloatArray, comparison: ua.Comparison) -> str:
    """Return the effect of a feature space that loses structure."""
    n_components = 20
    U, s, _ = np.linalg.svd(images - images.mean(axis=0), full_matrices=False)
    kept = float((s[:n_components] ** 2).sum() / (s**2).sum())
    moved = ua.distance(comparison.signatures["A1"], U[:, :n_components] * s[:n_components])
    nearest = min(float(comparison["A1", f"B{i}"]) for i in range(1, 5))
    than = "farther than" if moved > nearest else "nearer than"
    return (
        f"Limitation: {n_components} principal components keep {kept:.0%} of the variance of A1 "
        f"but lose fine structure; their LES distance from A1 is {moved:.2f}, {than} the "
        f"different digits ({nearest:.2f})."
    )
