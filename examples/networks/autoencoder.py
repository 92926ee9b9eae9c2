"""An autoencoder of Fashion-MNIST with and without LES between inputs and latent codes.

Does the loss keep the geometry, and at what price? For 3 seeds each: the corrected LES distance
between pictures and codes, the share of the 10 nearest neighbours that are kept, and the error of
reconstruction, all on pictures that were not trained on.
Run: python examples/networks/autoencoder.py [folder]    (about 3 minutes; needs unaligned[torch])
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from sklearn.neighbors import NearestNeighbors
from torch import nn

import unaligned as ua
from unaligned import figures
from unaligned.experiments.pictures import load_pictures

LATENT, EPOCHS, BATCH, N_TRAIN, N_TEST, SEEDS = 8, 8, 256, 10_000, 2000, 3
WEIGHTS = (0.0, 1e-4, 1e-3)


def pictures(split: str, count: int) -> torch.Tensor:
    images = load_pictures("fashion-mnist", split).images[:count]
    return torch.tensor(np.asarray(images)).flatten(1).float() / 255.0


def network() -> tuple[nn.Module, nn.Module]:
    encoder = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, LATENT))
    return encoder, nn.Sequential(nn.Linear(LATENT, 256), nn.ReLU(), nn.Linear(256, 784))


def train(images: torch.Tensor, weight: float, seed: int) -> tuple[nn.Module, nn.Module]:
    torch.manual_seed(seed)
    encoder, decoder = network()
    geometry = ua.torch.LESLoss(block_size=64, gamma=1e-4)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(images)).split(BATCH):
            if len(rows) < BATCH:
                continue
            batch = images[rows]
            codes = encoder(batch)
            loss = nn.functional.mse_loss(decoder(codes), batch)
            if weight:
                loss = loss + weight * geometry(codes, batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return encoder, decoder


def neighbours_kept(first: np.ndarray, second: np.ndarray, k: int = 10) -> float:
    found = []
    for points in (first, second):
        nearest = NearestNeighbors(n_neighbors=k + 1).fit(points)
        found.append(nearest.kneighbors(points, return_distance=False)[:, 1:])
    return float(np.mean([len(set(a) & set(b)) / k for a, b in zip(*found, strict=True)]))


def measure(encoder: nn.Module, decoder: nn.Module, images: torch.Tensor) -> dict[str, float]:
    with torch.no_grad():
        codes = encoder(images)
        error = float(nn.functional.mse_loss(decoder(codes), images))
        loss = ua.torch.LESLoss(block_size=200, gamma=1e-4, squared=False)(codes, images)
    kept = neighbours_kept(images.numpy(), codes.numpy())
    return {"LES to the pictures": float(loss), "neighbours kept": kept, "error": error}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    images, others = pictures("train", N_TRAIN), pictures("test", N_TEST)
    found: dict[float, list[dict[str, float]]] = {}
    for weight in WEIGHTS:
        for seed in range(SEEDS):
            models = train(images, weight, seed)
            found.setdefault(weight, []).append(measure(*models, others))
            print(weight, seed, found[weight][-1], flush=True)
    names = list(found[0.0][0])
    rows = ["| weight of LES | " + " | ".join(names) + " |", "|" + "---|" * (1 + len(names))]
    for weight, runs in found.items():
        cells = [np.array([run[name] for run in runs]) for name in names]
        shown = [f"{c.mean():.3g} ± {c.std(ddof=1):.1g}" for c in cells]
        rows.append(f"| {weight:g} | " + " | ".join(shown) + " |")
    table = "\n".join(rows)
    print(table)
    (folder / "torch_autoencoder.md").write_text(table + "\n", encoding="utf-8")
    draw(found, names, folder / "torch_autoencoder.png")


def draw(found: dict[float, list[dict[str, float]]], names: list[str], path: Path) -> None:
    figure, axes = figures.panels(len(names), columns=3, width=3.2, height=2.8)
    for panel, name in zip(axes, names, strict=True):
        for i, runs in enumerate(found.values()):
            values = [run[name] for run in runs]
            panel.plot([i] * len(values), values, figures.MARKERS[i], color=figures.COLOURS[i])
        panel.set_xticks(range(len(found)), [f"{weight:g}" for weight in found])
        panel.set(xlabel="weight of LES", xlim=(-0.5, len(found) - 0.5), title=name)
    figures.save(figure, path)
    print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results/networks"))
