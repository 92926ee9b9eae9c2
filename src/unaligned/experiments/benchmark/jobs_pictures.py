"""Jobs on pictures: alphabets, classes, and the quality of generators."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..._check import FloatArray
from ..pictures import data_file, load_pictures
from .jobs import Collection, Entry, job


def _thirds(points: FloatArray, classes: npt.NDArray[Any], rng: np.random.Generator) -> Collection:
    """Return three disjoint random parts of each class."""
    entries = []
    for number in np.unique(classes):
        rows = rng.permutation(np.flatnonzero(classes == number))
        for part in range(3):
            name = f"class {number}, {part}"
            entries.append(Entry(name, points[rows[part::3]], str(number), str(part)))
    return Collection.of(entries)


@job(
    "digits",
    "Which digit is this?",
    "digits of scikit-learn, random thirds",
    "nearest",
    same_features=True,
    n_quick=57,
    n_full=57,
)
def digits(rng: np.random.Generator, full: bool) -> Collection:
    """Return three parts of each of ten digits, 8 × 8 pixels."""
    from sklearn.datasets import load_digits

    images, classes = load_digits(return_X_y=True)
    keep = slice(None) if full else np.isin(classes, rng.permutation(10)[:6])
    return _thirds(images[keep], classes[keep], rng)


@job(
    "clothes",
    "Which class of clothes is this?",
    "Fashion-MNIST, random thirds",
    "nearest",
    same_features=True,
)
def clothes(rng: np.random.Generator, full: bool) -> Collection:
    """Return three parts of classes of clothes, 28 × 28 pixels."""
    images, classes = load_pictures("fashion-mnist")
    chosen = np.isin(classes, np.arange(10) if full else rng.permutation(10)[:6])
    flat = images[chosen].reshape(chosen.sum(), -1) / 255.0
    return _thirds(flat, classes[chosen], rng)


@job(
    "alphabets",
    "Which alphabet is this?",
    "Omniglot, random halves of the drawers",
    "nearest",
    same_features=True,
    n_quick=140,
    n_full=140,
)
def alphabets(rng: np.random.Generator, full: bool) -> Collection:
    """Return two halves of the drawers of each alphabet, averaged to 14 × 14 pixels."""
    with np.load(data_file("omniglot28.npz"), allow_pickle=False) as stored:
        images, alphabet, drawer = (stored[name] for name in ("images", "alphabet", "drawer"))
        names = stored["alphabet_names"].tolist()
    small = images.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(len(images), -1)
    halves = rng.permutation(np.unique(drawer))
    entries = []
    for number in rng.permutation(len(names))[: len(names) if full else 8]:
        for part in (0, 1):
            rows = (alphabet == number) & np.isin(drawer, halves[part::2])
            name = names[number]
            entries.append(Entry(f"{name}, {part}", small[rows], name, str(part)))
    return Collection.of(entries)


@job(
    "generators",
    "How good is a generator?",
    "mixtures of 1 to 50 Gaussians against Fashion-MNIST",
    "ranking",
    same_features=True,
    n_full=1000,
)
def generators(rng: np.random.Generator, full: bool) -> Collection:
    """Return held-out pictures, and samples of mixtures, whose value is minus their likelihood."""
    from sklearn.decomposition import PCA
    from sklearn.mixture import GaussianMixture

    images = load_pictures("fashion-mnist").images
    rows = rng.permutation(len(images))
    n_train = 6000 if full else 3000
    scores = PCA(20, random_state=0).fit_transform(images.reshape(len(images), -1) / 255.0)
    train, test = scores[rows[:n_train]], scores[rows[n_train : n_train + 2000]]
    entries = [Entry("pictures", test, "reference")]
    for n_components in (1, 2, 5, 10, 20, 50):
        seed = int(rng.integers(2**31))
        mixture = GaussianMixture(n_components, reg_covar=1e-3, random_state=seed).fit(train)
        likelihood = float(mixture.score(test))  # good generators are near
        sample = mixture.sample(2000)[0]
        name = f"{n_components} Gaussians"
        entries.append(Entry(name, sample, "generator", value=-likelihood))
    return Collection.of(entries)
