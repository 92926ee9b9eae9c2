"""Jobs on trained networks: which layer this is, and which task will be hard."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..._check import FloatArray
from ...errors import required
from ..pictures import load_pictures
from .jobs import Collection, Entry, job

_N_IMAGES = 1000  # test pictures from which rows are drawn


def _pooled(model: Any, inputs: Any, names: Iterable[str]) -> dict[str, FloatArray]:
    """Return the outputs of layers, averaged over space, (n, channels)."""
    torch = required("torch", "torch", "Networks")
    found: dict[str, FloatArray] = {}
    with torch.no_grad():
        for name, layer in model.named_children():
            inputs = layer(inputs)
            if name in names:
                mean = inputs.mean(dim=(2, 3)) if inputs.ndim == 4 else inputs
                found[name] = mean.double().numpy()
    return found


def _layers(rng: np.random.Generator, full: bool, *, paired: bool) -> Collection:
    required("torch", "torch", "Networks")
    from ..networks import cifar_inputs, tiny10

    images = load_pictures("cifar10").images
    names = [*(f"conv{i}" for i in range(1, 9)), "fc"]
    seeds = rng.permutation(15)[: 15 if full else 3]
    shared = rng.permutation(len(images))
    entries = []
    for seed in seeds:
        rows = (shared if paired else rng.permutation(len(images)))[:_N_IMAGES]
        for name, points in _pooled(tiny10(int(seed)), cifar_inputs(images[rows]), names).items():
            entries.append(Entry(f"{seed}/{name}", points, name, str(seed)))
    return Collection.of(entries)


@job("layers", "Which layer is this?", "Tiny10, other pictures for each network", "nearest")
def layers(rng: np.random.Generator, full: bool) -> Collection:
    """Return 9 layers of networks that were initialised independently."""
    return _layers(rng, full, paired=False)


@job(
    "layers-paired",
    "Which layer is this, from the same pictures?",
    "Tiny10, the same pictures for all networks",
    "nearest",
    paired_rows=True,
)
def layers_paired(rng: np.random.Generator, full: bool) -> Collection:
    """Return 9 layers of networks that see the same pictures."""
    return _layers(rng, full, paired=True)


@job("stages", "Which stage of a ResNet is this?", "ResNet-20 and ResNet-32", "nearest")
def stages(rng: np.random.Generator, full: bool) -> Collection:
    """Return the three stages of two networks, each of two disjoint sets of pictures."""
    required("torch", "torch", "Networks")
    from ..networks import resnet, resnet_inputs

    images = load_pictures("cifar10").images
    entries = []
    for depth in (20, 32):
        model, rows = resnet(depth), rng.permutation(len(images))[: 2 * _N_IMAGES]
        for half in (0, 1):
            inputs = resnet_inputs(images[rows[half::2]])
            found = _pooled(model, inputs, ("layer1", "layer2", "layer3"))
            for name, points in found.items():
                entries.append(Entry(f"ResNet-{depth}/{name}/{half}", points, name, str(depth)))
    return Collection.of(entries)


@job(
    "tasks",
    "Which few-shot task is hard?",
    "FC100 classes mixed into CIFAR-10, ResNet-20 embeddings",
    "prediction",
    same_features=True,
)
def tasks(rng: np.random.Generator, full: bool) -> Collection:
    """Return reference tasks of seen classes, and new ones with 0 to 5 unseen classes."""
    from ..few_shot import SHARES, load_benchmark

    benchmark = load_benchmark("fc100", "resnet20")
    n_references, n_each = (10, 5) if full else (4, 2)
    drawn = [(f"reference {i}", 0.0, "reference") for i in range(n_references)]
    drawn += [(f"{share:g} unseen, {i}", share, "new") for share in SHARES for i in range(n_each)]
    entries = []
    for name, share, label in drawn:
        classes = benchmark.draw(share, rng)
        accuracy = benchmark.accuracies(classes, 5, n_draws=5, n_query=15, rng=rng).mean()
        points = benchmark.points(classes, 120)
        entries.append(Entry(name, points, label, value=-float(accuracy)))  # hard tasks are far
    return Collection.of(entries)
