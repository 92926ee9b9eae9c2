"""Layers of networks, matched across seeds, depths and training (Appendix E)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

import unaligned as ua

from .. import _check
from .._check import FloatArray, IndexArray
from .._format import jsonable
from ..cache import default_folder
from ..defaults import GAMMA, N_EIGENVALUES
from ..errors import required
from ..io.archive import made_folder
from .base import Claim, Experiment, Row, Stage, Task, Value
from .pictures import load_pictures

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

LayersOf: TypeAlias = Callable[[int], Mapping[str, ua.Dataset]]

LENET = ("input", "conv1", "conv2", "fc1", "fc2")
TINY10 = (*(f"conv{i}" for i in range(1, 9)), "fc")
ALL_CNN = (*(f"conv{i}" for i in range(1, 10)), "logits")
RESNET_STAGES = ("act", "layer1", "layer2", "layer3", "linear")
# Steps of training at which LeNet is kept, in batches of 64.
STEPS = (0, 4, 8, 16, 32, 64, 128, 256, 512)
STATISTICS = ("correlation", "p-value")
BLOCKS = ("blocks of 20 in 32", "blocks of 32 in 20")
IDENTICAL, DIFFERENT = 0.0, 1.0  # values of the variable
LEAST_SHARE = 0.7  # of the images that a network sees where inputs differ; the paper's 7000


@dataclass(frozen=True)
class Layers(Experiment):
    """Corresponding layers of networks that were trained apart, found by distances.

    A trial is a pair of LeNets. Tiny10 and the ResNets are compared once. `--full` is the paper's
    setting but for the solver (`auto` in place of Algorithm 1), CKA by minibatches, and Tiny10 in
    place of All-CNN-C, which `--train` adds.
    """

    name: ClassVar[str] = "layers"
    title: ClassVar[str] = "Matching layers of networks (Appendix E)"
    variable: ClassVar[str] = "different_inputs"
    quantities: ClassVar[tuple[str, ...]] = ("value",)
    tabulated: ClassVar[bool] = False
    quick: ClassVar[dict[str, Any]] = {
        "n_trials": 3,
        "lenet_images": 1500,
        "n_images": 800,
        "n_epochs": 1,
        "n_seeds": 3,
        "width": 48,
        "dropout": 0.0,
        "all_cnn_epochs": 3,
    }
    full: ClassVar[dict[str, Any]] = {"n_trials": 10}

    lenet_images: int = 10_000  # of MNIST's test set
    n_images: int = 10_000  # of CIFAR-10's test set, for the other networks
    n_epochs: int = 3  # of LeNet
    n_networks: int = 15  # of Tiny10
    n_eigenvalues: int = N_EIGENVALUES
    gamma: float = GAMMA
    train: bool = False  # All-CNN-C too
    n_seeds: int = 10  # of All-CNN-C
    width: int = 96
    dropout: float = 0.5
    all_cnn_epochs: int = 40

    def __post_init__(self) -> None:
        super().__post_init__()
        least = int(np.ceil(self.n_eigenvalues / LEAST_SHARE))
        for name in ("lenet_images", "n_images"):
            _check.positive_int(name, getattr(self, name), minimum=least)
            if getattr(self, name) > 10_000:
                raise ua.errors.InputError(f"{name} must be at most 10,000, all test images.")
        for name in ("n_epochs", "width", "all_cnn_epochs"):
            _check.positive_int(name, getattr(self, name))
        if _check.real_number("dropout", self.dropout, minimum=0.0) >= 1.0:
            raise ua.errors.InputError(
                f"dropout={self.dropout} must be below 1, a share of values."
            )
        for name in ("n_networks", "n_seeds"):
            _check.positive_int(name, getattr(self, name), minimum=2)

    def settings(self) -> dict[str, Any]:
        """Return everything that determines the numbers of a trial."""
        return {name: value for name, value in super().settings().items() if name != "train"}

    def stages(self) -> list[Stage]:
        """Return LeNets, their training, Tiny10, the ResNets, and with `train` All-CNN-C.

        `les-equal` is LES where all networks see the same number of different images: signatures
        of different N are biased, which the paper's N in [7000, 10,000] includes.
        """
        both = (IDENTICAL, DIFFERENT)
        stages: list[Stage] = [(("lenet-les", "lenet-imd"), (IDENTICAL,))]
        stages += [(("training-les",), (IDENTICAL,)), (("resnet-les",), (DIFFERENT,))]
        if self.train:
            stages.append((("allcnn-accuracy", "allcnn-accuracy-training"), (IDENTICAL,)))
        for network in ("tiny10", "allcnn") if self.train else ("tiny10",):
            stages += [((f"{network}-les",), both), ((f"{network}-les-equal",), (DIFFERENT,))]
            stages += [((f"{network}-cka",), (IDENTICAL,)), ((f"{network}-imd",), both)]
        return stages

    def tasks(self, methods: Iterable[str]) -> list[list[Task]]:
        """Return the tasks of each stage; only LeNets have more than one trial."""
        return [
            [task for task in stage if task.trial == 0 or task.methods[0] in _OF_SEEDS]
            for stage in super().tasks(methods)
        ]

    def pairs(self, method: str, value: Value = 0.0) -> tuple[str, ...]:
        """Return pairs of layers, networks or checkpoints, names of statistics, or seeds."""
        network = method.partition("-")[0]
        if method.startswith("allcnn-accuracy"):
            return tuple(f"seed {i}" for i in range(self.n_seeds))
        if network == "lenet":
            return _names(LENET, LENET)
        if network == "resnet":
            return (*_names(RESNET_STAGES, RESNET_STAGES), *BLOCKS)
        if network == "training":
            return (*STATISTICS, *_names(STEPS, STEPS))
        count = self.n_networks if network == "tiny10" else self.n_seeds
        return tuple(f"{i}:{j}" for i in range(count) for j in range(count) if i != j)

    def run_task(self, task: Task) -> list[Row]:
        """Return the distances of layers, the share of layers that are matched, or accuracies."""
        required("torch", "torch", "The experiment 'layers'")
        network, measured = task.methods[0].split("-")[:2]
        rows: list[Row] = {
            "lenet": self._run_lenet,
            "training": self._run_training,
            "resnet": self._run_resnet,
        }.get(network, self._run_matching if measured != "accuracy" else self._run_accuracy)(task)
        return rows

    def claims(self, table: pd.DataFrame) -> list[Claim]:
        """Return the claims of Appendix E, and what goes beyond it."""
        from .layer_claims import claims_of

        return claims_of(table)

    def notes(self, table: pd.DataFrame) -> list[str]:
        """Return the table of the paper beside ours."""
        from .layer_claims import accuracy_note

        return accuracy_note(table, self)

    def draw(self, table: pd.DataFrame) -> Figure:
        """Return margins, accuracies, and matrices of distances."""
        from .layer_claims import draw_layers

        return draw_layers(table)

    def _options(self, method: str) -> dict[str, Any]:
        name = method.split("-")[1]
        les = {"n_eigenvalues": self.n_eigenvalues, "gamma": self.gamma}
        return {"distance": name, "progress": False, **(les if name == "les" else {})}

    def _run_lenet(self, task: Task) -> list[Row]:
        from . import networks

        inputs = networks.mnist_inputs(load_pictures("mnist").images[: self.lenet_images])
        both = []
        for seed in (2 * task.trial, 2 * task.trial + 1):
            states = self._lenet_states(self.seed + seed)
            model = networks.lenet()
            model.load_state_dict(states[max(states)])
            found = ua.torch.activations(model, inputs, LENET[1:], n_samples=None, progress=False)
            both.append({"input": ua.Dataset(inputs.flatten(1)), **found})
        rows: list[Row] = []
        for method in task.methods:
            found = ua.compare(*both, **self._options(method))
            rows += _matrix_rows(method, LENET, LENET, found.distances)
        return rows

    def _lenet_states(self, seed: int) -> dict[int, Any]:
        from .networks import trained_lenet

        return trained_lenet(seed, n_epochs=self.n_epochs, n_images=60_000, steps=STEPS)

    def _run_training(self, task: Task) -> list[Row]:
        """Return the distances of `fc2` between checkpoints, and their correlation with time."""
        from . import networks

        inputs = networks.mnist_inputs(load_pictures("mnist").images[: self.lenet_images])
        states = self._lenet_states(self.seed + 2 * task.trial)
        moments, model = {}, networks.lenet()
        for step in STEPS:
            model.load_state_dict(states[step])
            found = ua.torch.activations(model, inputs, "fc2", n_samples=None, progress=False)
            moments[str(step)] = found["fc2"]
        (method,) = task.methods
        found = ua.compare(moments, **self._options(method))
        correlation = found.correlate(list(range(len(STEPS))), "spearman", rng=self.seed)
        rows = _matrix_rows(method, STEPS, STEPS, found.distances)
        values = zip(STATISTICS, (float(correlation), correlation.p_value), strict=True)
        return [{"method": method, "pair": p, "value": v} for p, v in values] + rows

    def _run_resnet(self, task: Task) -> list[Row]:
        """Return the distances of stages, and the share of blocks nearest to their own stage."""
        from . import networks

        size = min(self.n_images, 5000)
        order = task.rng().permutation(10_000)
        images, both = load_pictures("cifar10").images, []
        for half, depth in enumerate((20, 32)):
            inputs = networks.resnet_inputs(images[order[half * size : (half + 1) * size]])
            wanted = [*RESNET_STAGES, "layer?.?"]
            model = networks.resnet(depth)
            both.append(ua.torch.activations(model, inputs, wanted, progress=False))
        (method,) = task.methods
        found = ua.compare(*both, **self._options(method)).to_frame()
        stages = found.loc[list(RESNET_STAGES), list(RESNET_STAGES)].to_numpy()
        rows = _matrix_rows(method, RESNET_STAGES, RESNET_STAGES, stages)
        inner = found.loc[_blocks(found.index), _blocks(found.columns)]
        for pair, frame in zip(BLOCKS, (inner, inner.T), strict=True):
            nearest = frame.columns[frame.to_numpy().argmin(axis=1)]
            pairs = zip(frame.index, nearest, strict=True)
            same = [a.split(".")[0] == b.split(".")[0] for a, b in pairs]
            rows.append({"method": method, "pair": pair, "value": float(np.mean(same))})
        return rows

    def _run_matching(self, task: Task) -> list[Row]:
        """Return the share of layers whose nearest in another network is the same layer."""
        (method,) = task.methods
        network, distance = method.split("-")[:2]
        layers = TINY10 if network == "tiny10" else ALL_CNN
        count = self.n_networks if network == "tiny10" else self.n_seeds
        images = load_pictures("cifar10").images
        chosen = self._inputs(task, count)

        def layers_of(i: int, rows: IndexArray | None = None) -> Mapping[str, ua.Dataset]:
            from . import networks

            model = networks.tiny10(i) if network == "tiny10" else self._all_cnn(i)
            inputs = networks.cifar_inputs(images[chosen[i] if rows is None else rows])
            return ua.torch.activations(model, inputs, layers, n_samples=None, progress=False)

        if distance == "cka":
            parts = np.array_split(chosen[0], max(1, self.n_images // 1000))  # minibatches
            distances = minibatch_cka(
                ([d.values for i in range(count) for d in layers_of(i, rows).values()])
                for rows in parts
            )
        else:
            distances = self._grown(task, count, layers_of)
        shares = matching_shares(distances, count)
        return [
            {"method": method, "pair": f"{i}:{j}", "value": share}
            for (i, j), share in shares.items()
        ]

    def _inputs(self, task: Task, count: int) -> list[IndexArray]:
        """Return the positions of the images that each network sees."""
        rng = np.random.default_rng([self.seed, int(task.value)])
        if task.value == IDENTICAL:
            return [rng.permutation(10_000)[: self.n_images]] * count
        least = int(LEAST_SHARE * self.n_images)
        sizes = rng.integers(least, self.n_images, size=count, endpoint=True)
        if task.methods[0].endswith("-equal"):
            sizes[:] = least
        return [rng.permutation(10_000)[:size] for size in sizes]

    def _run_accuracy(self, task: Task) -> list[Row]:
        """Return the accuracy of every All-CNN-C on 10,000 pictures of CIFAR-10."""
        from . import networks

        rows: list[Row] = []
        for method in task.methods:
            pictures = load_pictures("cifar10", "train" if method.endswith("training") else "test")
            inputs = networks.cifar_inputs(pictures.images[:10_000])
            for i, pair in enumerate(self.pairs(method)):
                found = networks.accuracy(self._all_cnn(i), inputs, pictures.labels[:10_000])
                rows.append({"method": method, "pair": pair, "value": found})
        return rows

    def _all_cnn(self, seed: int) -> Any:
        from .networks import trained_all_cnn

        return trained_all_cnn(
            self.seed + seed,
            width=self.width,
            dropout=self.dropout,
            n_epochs=self.all_cnn_epochs,
            report=print,
        )

    def _grown(self, task: Task, count: int, layers_of: LayersOf) -> FloatArray:
        """Return the distances of all layers; each network is on disk once it is compared."""
        (method,) = task.methods
        text = json.dumps(jsonable(self.settings(), allow_nan=True), sort_keys=True)
        digest = hashlib.blake2b(f"{text}{task.value}".encode(), digest_size=8).hexdigest()
        folder = made_folder("cache folder", default_folder() / "layers", "Set XDG_CACHE_HOME.")
        path, found = folder / f"{method}-{digest}.npz", None
        if path.exists():
            found = ua.Comparison.load(path)
        for i in range(count):
            if found is not None and any(name.startswith(f"{i}:") for name in found.names):
                continue
            new = {f"{i}:{name}": dataset for name, dataset in layers_of(i).items()}
            if found is None:
                found = ua.compare(new, **self._options(method))
            else:
                found = found.add(new, progress=False)
            found.save(path)
        return found.distances  # type: ignore[union-attr]


_OF_SEEDS = ("lenet-les", "lenet-imd", "training-les")


def _names(first: Sequence[Any], second: Sequence[Any]) -> tuple[str, ...]:
    return tuple(f"{a}:{b}" for a in first for b in second)


def _matrix_rows(
    method: str, first: Sequence[Any], second: Sequence[Any], values: FloatArray
) -> list[Row]:
    pairs = zip(_names(first, second), values.ravel(), strict=True)
    return [{"method": method, "pair": pair, "value": float(value)} for pair, value in pairs]


def _blocks(names: Iterable[Any]) -> list[str]:
    return [str(name) for name in names if "." in str(name)]


def matching_shares(distances: FloatArray, count: int) -> dict[tuple[int, int], float]:
    """Return the share of layers of network i whose nearest layer of network j is the same one.

    Parameters
    ----------
    distances
        Shape (count · L, count · L): all layers of all networks, network by network.
    count
        The number of networks.
    """
    n_layers = len(distances) // count
    blocks = distances.reshape(count, n_layers, count, n_layers).swapaxes(1, 2)
    right = blocks.argmin(axis=-1) == np.arange(n_layers)
    shares = right.mean(axis=-1)
    return {(i, j): float(shares[i, j]) for i in range(count) for j in range(count) if i != j}


def minibatch_cka(batches: Iterable[Sequence[Any]]) -> FloatArray:
    r"""Return 1 - linear CKA of all pairs of representations, by minibatches.

    The unbiased HSIC is summed over minibatches (Nguyen et al., 2021); of one minibatch it is
    distance `cka` with `debiased=True`. With U-centred Gram matrices (Székely and Rizzo, 2014) it
    is an inner product, so that n_r representations of n samples of d features take
    O(n_r n² (d + n_r)) time and 4 n_r n² bytes.

    Parameters
    ----------
    batches
        For each minibatch, the representations of its samples, (n, d) each.
    """
    total: Any = 0.0
    sizes: list[float] = []  # of the first minibatch; in single precision squares would overflow
    for layers in batches:
        points = [x - x.mean(axis=0) for x in (np.asarray(x, dtype=np.float64) for x in layers)]
        sizes = sizes or [float(np.linalg.norm(x)) for x in points]
        grams = np.stack([_u_centred(x / size) for x, size in zip(points, sizes, strict=True)])
        total = total + (grams @ grams.T).astype(np.float64)
    size = np.sqrt(np.diagonal(total))
    return np.asarray(1.0 - total / np.outer(size, size))


def _u_centred(points: FloatArray) -> Any:
    """Return the U-centred Gram matrix in single precision, (n²,)."""
    gram, n = points @ points.T, len(points)
    np.fill_diagonal(gram, 0.0)
    sums = gram.sum(axis=1) / (n - 2)
    gram -= sums[:, None] + sums - gram.sum() / ((n - 1) * (n - 2))
    np.fill_diagonal(gram, 0.0)
    return gram.ravel().astype(np.float32)
