"""The main job in seconds: handwritten digits in feature spaces that have nothing in common."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

import unaligned as ua

from .. import _check
from .._check import FloatArray, RNGLike

_FAMILIES = {"A": "digits 0-4", "B": "digits 5-9"}
_COMPONENTS = 20


@dataclass(frozen=True)
class Demo:
    """What the demo compared, what came out, and what that says.

    Attributes
    ----------
    comparison
        The LES distances; names are codes such as `A1`, the letter being the family.
    descriptions
        Code -> what the dataset is.
    reading
        Sentences computed from the numbers.
    """

    comparison: ua.Comparison
    descriptions: dict[str, str]
    reading: tuple[str, ...]


def run_demo(*, rng: RNGLike = None, progress: bool | None = None) -> Demo:
    """Return the LES distances between two sets of digits, each in four disguises.

    scikit-learn's 1797 images of 8×8 pixels come with that package, so nothing is downloaded.
    Takes a few seconds.
    """
    generator = np.random.default_rng(_check.root_seed(rng))
    images = _load_digits()
    disguised = {
        f"{family}{number}": (f"{_FAMILIES[family]}, {what}", points)
        for family, family_images in images.items()
        for number, (what, points) in enumerate(_disguises(family_images, generator), start=1)
    }
    clouds = {code: points for code, (_, points) in disguised.items()}
    descriptions = {
        code: f"{what} ({points.shape[0]} × {points.shape[1]})"
        for code, (what, points) in disguised.items()
    }
    comparison = ua.compare(clouds, progress=progress)
    reading = (*_read(comparison), _read_limit(images["A"], comparison))
    return Demo(comparison, descriptions, reading)


def _load_digits() -> dict[str, FloatArray]:
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return {"A": images[labels < 5], "B": images[labels >= 5]}


def _disguises(images: FloatArray, rng: np.random.Generator) -> list[tuple[str, FloatArray]]:
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


def _read(comparison: ua.Comparison) -> list[str]:
    """Return what the distances say, from the distances."""
    pairs = {pair: comparison[pair] for pair in combinations(comparison.names, 2)}
    within = {pair: d for pair, d in pairs.items() if pair[0][0] == pair[1][0]}
    between = {pair: d for pair, d in pairs.items() if pair not in within}
    nearest, farthest = min(pairs, key=pairs.__getitem__), max(pairs, key=pairs.__getitem__)
    gap = min(between.values()) / max(within.values())
    right = sum(_nearest(comparison, name)[0] == name[0] for name in comparison.names)
    apart = "so one threshold separates them" if gap > 1 else "so the two ranges overlap"
    return [
        f"Closest: {nearest[0]} and {nearest[1]}, {pairs[nearest]:.2g} apart. "
        f"Farthest: {farthest[0]} and {farthest[1]}, {pairs[farthest]:.2f}.",
        f"Same digits in other clothes: {_span(within)}. Other digits: {_span(between)}; "
        f"{apart} (the nearest strangers are {gap:.1f} times as far as the most distant kin).",
        f"The nearest neighbour shows the same digits for {right} of {len(comparison.names)} "
        "datasets, and nothing told the method which rows or columns belong together.",
        f"A3 and A4 share no image and no feature: {comparison['A3', 'A4']:.2f} apart, and both "
        f"at least {min(d for (a, _), d in between.items() if a in ('A3', 'A4')):.2f} from any B.",
        f"Every distance is right to within {comparison.error_bounds.max():.0e} "
        f"({_bound_kinds(comparison)}).",
    ]


def _read_limit(images: FloatArray, comparison: ua.Comparison) -> str:
    """Return what a feature space that loses structure does, by number."""
    centred = images - images.mean(axis=0)
    U, s, _ = np.linalg.svd(centred, full_matrices=False)
    kept = float((s[:_COMPONENTS] ** 2).sum() / (s**2).sum())
    reduced = U[:, :_COMPONENTS] * s[:_COMPONENTS]
    moved = ua.distance(comparison.signatures["A1"], reduced)
    strangers = min(comparison["A1", f"B{i}"] for i in range(1, 5))
    than = "farther than" if moved > strangers else "nearer than"
    return (
        f"Its limit: {_COMPONENTS} principal components keep {kept:.0%} of the variance of A1 "
        f"and lose fine structure; LES sees that, and puts them {moved:.2f} from A1, {than} "
        f"the other digits ({strangers:.2f})."
    )


def _nearest(comparison: ua.Comparison, name: str) -> str:
    others = [other for other in comparison.names if other != name]
    return min(others, key=lambda other: float(comparison[name, other]))


def _span(distances: dict[tuple[str, str], float]) -> str:
    return f"{min(distances.values()):.2f} to {max(distances.values()):.2f}"


def _bound_kinds(comparison: ua.Comparison) -> str:
    kinds = sorted({signature.bound_kind for signature in comparison.signatures.values()})
    return f"bound: {', '.join(kinds)}"
