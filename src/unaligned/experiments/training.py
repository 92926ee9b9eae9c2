"""Episodic training of an embedder with a ridge head in closed form (Bertinetto et al., 2019).

Every episode is a small task of training classes: the head is fitted to the support images, and
the loss of the query images goes back through it into the embedder. Needs PyTorch.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from .. import _check, engine
from ..errors import FileError, InputError
from ..io.archive import read_archive, write_archive
from . import embedders
from .networks import CIFAR100, prepared

ARCHITECTURES: dict[str, Callable[[], Any]] = {
    "conv4": embedders.conv4,
    "resnet12": embedders.resnet12,
}
_FORMAT = "unaligned-embedder"


@dataclass(frozen=True)
class Training:
    """Settings of a training; its episodes depend on them alone, however often it is stopped.

    Training takes place in bfloat16 where the processor has it; the embedder itself is float32.
    """

    architecture: str = "conv4"
    n_episodes: int = 10_000
    n_way: int = 5
    n_support: int = 10
    n_query: int = 10
    rate: float = 2e-3  # of Adam, down to 0 along half a cosine
    seed: int = 0

    def __post_init__(self) -> None:
        _check.one_of("architecture", self.architecture, ARCHITECTURES)
        for name in ("n_episodes", "n_way", "n_support", "n_query"):
            _check.positive_int(name, getattr(self, name))


def ridge_scores(support: Any, labels: Any, query: Any, penalty: Any) -> Any:
    """Return the scores of query points by ridge regression on one-hot labels, differentiable.

    W = Xᵀ (X Xᵀ + λI)⁻¹ Y, by the n support points rather than the d features.

    Parameters
    ----------
    support, labels
        Points (n, d) and their classes (n,).
    query
        Points (m, d).
    penalty
        λ > 0, a number or a tensor that is learned.
    """
    targets = functional.one_hot(labels).to(support.dtype)
    gram = support @ support.T + penalty * torch.eye(len(support), dtype=support.dtype)
    return (query @ support.T) @ torch.linalg.solve(gram, targets)


def train(
    settings: Training,
    classes: Mapping[str, npt.NDArray[Any]],
    path: Path,
    *,
    per_checkpoint: int = 250,
) -> Any:
    """Return the trained embedder; a stopped training continues from its checkpoint at `path`.

    Parameters
    ----------
    settings
        Architecture, episodes and rates.
    classes
        The images of every training class, (n, 32, 32, 3) of uint8.
    path
        The `.npz` that is written after every `per_checkpoint` episodes.
    """
    if len(classes) < settings.n_way:
        raise InputError(f"n_way={settings.n_way} needs as many classes; got {len(classes)}.")
    learner = _Learner(settings, path)
    images = [classes[name] for name in sorted(classes)]
    starts = range(learner.n_done, settings.n_episodes, per_checkpoint)
    title = f"training {path.stem}, {per_checkpoint} episodes"
    for start in engine.steps(starts, len(starts), title):
        for number in range(start, min(start + per_checkpoint, settings.n_episodes)):
            learner.step(number, *episode(settings, number, images))
        learner.save()
    return learner.network.eval()


def episode(
    settings: Training, number: int, classes: list[npt.NDArray[Any]]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the images of an episode, flipped and shifted at random, support before query."""
    rng = np.random.default_rng([settings.seed, number])
    each = settings.n_support + settings.n_query
    chosen = rng.choice(len(classes), settings.n_way, replace=False)
    drawn = [classes[i][rng.choice(len(classes[i]), each, replace=False)] for i in chosen]
    images = np.stack(drawn).swapaxes(0, 1).reshape(-1, *drawn[0].shape[1:])
    labels = np.tile(np.arange(settings.n_way), each)
    flips = rng.random(len(images)) < 0.5
    images = np.where(flips[:, None, None, None], images[:, :, ::-1], images)
    most = 4  # pixels of the random shift
    padded = np.pad(images, ((0, 0), (most, most), (most, most), (0, 0)), mode="reflect")
    shifts = rng.integers(0, 2 * most + 1, size=(len(images), 2))
    height, width = images.shape[1:3]
    shifted = [p[y : y + height, x : x + width] for p, (y, x) in zip(padded, shifts, strict=True)]
    return np.stack(shifted), labels


class _Learner:
    """An embedder with its head, optimiser and checkpoint."""

    def __init__(self, settings: Training, path: Path) -> None:
        self.settings, self.path, self.n_done = settings, path, 0
        with torch.random.fork_rng():
            torch.manual_seed(settings.seed)
            self.network = ARCHITECTURES[settings.architecture]()
        self.network.to(memory_format=torch.channels_last)
        # log λ, log of the scale of the scores
        self.head = torch.nn.Parameter(torch.tensor([math.log(50.0), math.log(10.0)]))
        self._optimizer = torch.optim.Adam([*self.network.parameters(), self.head])
        self.losses: list[float] = []
        self.accuracies: list[float] = []
        if path.exists():
            self._restore()

    def step(self, number: int, images: npt.NDArray[Any], labels: npt.NDArray[Any]) -> None:
        """Learn from one episode."""
        settings = self.settings
        pace = (1 + math.cos(math.pi * number / settings.n_episodes)) / 2
        self._optimizer.param_groups[0]["lr"] = settings.rate * pace
        self.network.train()
        n, targets = settings.n_way * settings.n_support, torch.from_numpy(labels)
        with torch.random.fork_rng():
            torch.manual_seed(number)  # of dropout
            with torch.autocast("cpu", torch.bfloat16):
                points = self.network(prepared(images, CIFAR100))
        points = points.float()
        penalty, scale = self.head.exp()
        scores = scale * ridge_scores(points[:n], targets[:n], points[n:], penalty)
        loss = functional.cross_entropy(scores, targets[n:])
        self._optimizer.zero_grad()
        torch.autograd.backward(loss)
        self._optimizer.step()
        self.n_done = number + 1
        self.losses.append(loss.item())
        self.accuracies.append(float((scores.argmax(1) == targets[n:]).float().mean()))

    def save(self) -> None:
        """Write everything that the next episode needs."""
        arrays = {f"network/{k}": v.numpy() for k, v in self.network.state_dict().items()}
        arrays["head"] = self.head.detach().numpy()
        for i, state in self._optimizer.state_dict()["state"].items():
            arrays |= {f"optimizer/{i}/{name}": value.numpy() for name, value in state.items()}
        arrays["losses"], arrays["accuracies"] = np.array(self.losses), np.array(self.accuracies)
        header = {"settings": asdict(self.settings), "n_done": self.n_done}
        write_archive(self.path, _FORMAT, header, arrays)

    def _restore(self) -> None:
        header, arrays = read_archive(self.path, _FORMAT)
        if header["settings"] != asdict(self.settings):
            raise FileError(
                f"{str(self.path)!r} is a training with other settings ({header['settings']}). "
                "Delete it, or give the settings it was made with."
            )
        state: dict[int, dict[str, Any]] = {}
        weights = {}
        for name, value in arrays.items():
            kind, _, rest = name.partition("/")
            if kind == "network":
                weights[rest] = torch.from_numpy(value)
            elif kind == "optimizer":
                i, _, key = rest.partition("/")
                state.setdefault(int(i), {})[key] = torch.from_numpy(value)
        self.network.load_state_dict(weights)
        with torch.no_grad():
            self.head.copy_(torch.from_numpy(arrays["head"]))
        groups = self._optimizer.state_dict()["param_groups"]
        self._optimizer.load_state_dict({"state": state, "param_groups": groups})
        self.losses, self.accuracies = arrays["losses"].tolist(), arrays["accuracies"].tolist()
        self.n_done = header["n_done"]
