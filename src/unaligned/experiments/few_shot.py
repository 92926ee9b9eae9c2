"""Few-shot tasks: classes that an embedder has seen or not, tasks of them, and their accuracy."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _check
from .._check import FloatArray
from ..cache import default_folder
from ..errors import FileError, required
from ..io.archive import made_folder
from ..rows.files import first_line
from .cifar100 import CIFAR100, N_IMAGES
from .pictures import data_file, load_pictures

BENCHMARKS = ("fc100", "cifar-fs", "omniglot")
EMBEDDERS = ("resnet20", "conv4", "resnet12")
# Of a training: 28 minutes of one core for Conv-4, 27 hours for ResNet-12 (1.6 s per episode).
EPISODES = {"conv4": 20_000, "resnet12": 60_000}
MAX_STEPS = 100_000  # of the linear SVM: liblinear's own limit, whatever `max_iter` is
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # of classes that the embedder has not seen
_CIFAR10 = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
_OMNIGLOT: dict[str, Any] = {"n_episodes": 500, "n_way": 20, "n_support": 3, "n_query": 3}


@dataclass(frozen=True)
class Benchmark:
    """The embeddings of classes that an embedder was trained on, and of others.

    Classes `alphabet/character` are drawn from one alphabet at a time.
    """

    seen: Mapping[str, FloatArray]  # class -> (images, d)
    unseen: Mapping[str, FloatArray]
    n_way: int = 5  # classes per task

    def draw(self, share: float, rng: np.random.Generator) -> tuple[str, ...]:
        """Return the classes of a random task, of which this share is unseen."""
        n_unseen = round(share * self.n_way)
        counts = ((self.seen, self.n_way - n_unseen), (self.unseen, n_unseen))
        return tuple(name for classes, n in counts for name in _draw(classes, n, rng))

    def points(self, classes: Sequence[str], per_class: int | None = None) -> FloatArray:
        """Return the embeddings of a task, the first images of each class."""
        return np.concatenate([self._of(name)[:per_class] for name in classes])

    def accuracies(
        self,
        classes: Sequence[str],
        shot: int,
        *,
        n_draws: int,
        n_query: int | None = None,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Return the accuracies of a linear SVM on `shot` random images per class, by draw.

        The multi-class machine of Crammer and Singer (2001), as in MetaOptNet; tested on all
        other images of the task, or `n_query` of each class.
        """
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.svm import LinearSVC

        points = [self._of(name) for name in classes]
        found = []
        for _ in range(n_draws):
            orders = [rng.permutation(len(those)) for those in points]
            last = None if n_query is None else shot + n_query
            support, query = (
                [those[order[a:b]] for those, order in zip(points, orders, strict=True)]
                for a, b in ((0, shot), (shot, last))
            )
            # C as in MetaOptNet. The seed is of the order of steps, not of the optimum.
            options = {"C": 0.1, "random_state": 0, "max_iter": MAX_STEPS}
            head = LinearSVC(multi_class="crammer_singer", **options)
            # scikit-learn before 1.9.1 counts steps in unset memory (its issue 34029) and warns.
            with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
                head.fit(np.concatenate(support), _labels(support))
            if head.n_iter_ == MAX_STEPS:
                message = f"The linear SVM did not converge in {MAX_STEPS} steps."
                warnings.warn(message, ConvergenceWarning, stacklevel=2)
            found.append(head.score(np.concatenate(query), _labels(query)))
        return np.array(found)

    def _of(self, name: str) -> FloatArray:
        return self.seen[name] if name in self.seen else self.unseen[name]


def _labels(parts: Sequence[FloatArray]) -> npt.NDArray[np.int64]:
    return np.repeat(np.arange(len(parts)), [len(part) for part in parts])


def _draw(classes: Mapping[str, Any], n: int, rng: np.random.Generator) -> list[str]:
    """Return n random classes, of one alphabet where classes have one."""
    groups: dict[str, list[str]] = {}
    for name in classes:
        groups.setdefault(name.partition("/")[0] if "/" in name else "", []).append(name)
    large = [names for names in groups.values() if len(names) >= n]
    names = large[rng.integers(len(large))]
    return [names[i] for i in rng.choice(len(names), n, replace=False)]


def load_benchmark(name: str, embedder: str, n_episodes: int | None = None) -> Benchmark:
    """Return the embeddings of a benchmark; trains the embedder first where it must be trained.

    Parameters
    ----------
    name
        `"fc100"` or `"cifar-fs"`, whose unseen classes are their test classes of CIFAR-100;
        `"omniglot"`, 20 characters of an alphabet, embedded by a Conv-4 of its own.
    embedder
        `"resnet20"`, trained on CIFAR-10, whose ten classes are the seen ones, 600 training
        images each; `"conv4"` or `"resnet12"`, trained here on the training classes of the
        benchmark, which are the seen ones.
    n_episodes
        Of the training, by default `EPISODES`. It is kept in the cache folder of this user, and
        continues if stopped.
    """
    required("torch", "torch", "Embedding images")
    from . import embedders, networks, training

    _check.one_of("benchmark", name, BENCHMARKS)
    _check.one_of("embedder", embedder, EMBEDDERS)
    folder = made_folder("cache folder", default_folder() / "embedders", "Set XDG_CACHE_HOME.")
    pixels, n_way = networks.CIFAR100, 5
    if name == "omniglot":
        seen, unseen = _omniglot()
        settings = training.Training(**_OMNIGLOT)
        n_way, path = settings.n_way, folder / "conv4-omniglot.npz"
    else:
        data, split = CIFAR100.open(), name.replace("-", "_")
        unseen = data.load(data.classes(split, "test"))
        if embedder == "resnet20":
            seen, pixels = _cifar10(), networks.IMAGENET
        else:
            seen = data.load(data.classes(split, "train"))
            settings = training.Training(embedder, n_episodes or EPISODES[embedder])
            path = folder / f"{embedder}-{name}-{settings.n_episodes}.npz"
    if pixels is networks.IMAGENET:
        network = networks.resnet(20)[:-1]  # without its classifier
    else:
        network = training.train(settings, seen, path)
    first, second = (embedders.embed_classes(network, c, folder, pixels) for c in (seen, unseen))
    return Benchmark(first, second, n_way)


def _cifar10() -> dict[str, npt.NDArray[Any]]:
    """Return the first 600 training images of every class."""
    images, labels = load_pictures("cifar10", "train")
    return {name: images[labels == i][:N_IMAGES] for i, name in enumerate(_CIFAR10)}


def _omniglot() -> tuple[dict[str, npt.NDArray[Any]], dict[str, npt.NDArray[Any]]]:
    """Return the drawings of each character, of background and of evaluation alphabets."""
    path = data_file("omniglot28.npz")
    try:
        with np.load(path, allow_pickle=False) as stored:
            images, numbers, evaluation, alphabets, names = (
                stored[key]
                for key in ("images", "class_id", "evaluation", "alphabet", "alphabet_names")
            )
    except Exception as error:  # zipfile, zlib and NumPy raise many kinds on foreign bytes
        raise FileError(f"Cannot read {str(path)!r}: {first_line(error)}.") from error
    padded = np.pad(images, ((0, 0), (2, 2), (2, 2)))  # to 32 pixels
    parts: tuple[dict[str, npt.NDArray[Any]], ...] = ({}, {})
    for number in np.unique(numbers):
        chosen = np.flatnonzero(numbers == number)
        first = chosen[0]
        drawings = np.repeat(padded[chosen][..., None], 3, axis=-1)
        parts[int(evaluation[first])][f"{names[alphabets[first]]}/{number}"] = drawings
    return parts[0], parts[1]
