"""Points that flow from a blob to the geometry of a ring and of a sphere in other dimensions.

The loss knows only the signature of the target: 30 numbers, no coordinates. γ falls from 0.1, at
which only the coarse shape counts, to 1e-4.
Run: python examples/networks/flow.py [folder]    (under a minute; needs unaligned[torch])
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

import unaligned as ua
from unaligned import figures

N, STEPS, SHOWN = 200, 600, (0, 150, 600)
GAMMAS = (1e-1, 1e-2, 1e-3, 1e-4)


def ring(generator: torch.Generator) -> torch.Tensor:
    angle = 2 * torch.pi * torch.rand(N, generator=generator, dtype=torch.float64)
    return torch.stack([angle.cos(), angle.sin()], dim=1)


def sphere(generator: torch.Generator) -> torch.Tensor:
    points = torch.randn(N, 3, generator=generator, dtype=torch.float64)
    return points / points.norm(dim=1, keepdim=True)


def flow(
    target: torch.Tensor, n_features: int, seed: int
) -> tuple[list[torch.Tensor], list[float]]:
    """Return the points at some steps of descent, and LES at γ = 1e-4 every 10 steps."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.randn(N, n_features, generator=generator, dtype=torch.float64)
    points.requires_grad_()
    losses = [
        ua.torch.LESLoss(ua.signature(target.numpy(), n_eigenvalues=30, gamma=g, solver="exact"))
        for g in GAMMAS
    ]
    optimizer = torch.optim.Adam([points], lr=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    kept, distances = [], []
    for step in range(STEPS + 1):
        if step in SHOWN:
            kept.append(points.detach().clone())
        if step % 10 == 0:
            with torch.no_grad():
                distances.append(float(losses[-1](points).sqrt()))
        optimizer.zero_grad()
        losses[min(step * len(GAMMAS) // STEPS, len(GAMMAS) - 1)](points).backward()
        optimizer.step()
        schedule.step()
    return kept, distances


def principal(points: torch.Tensor, n_components: int) -> torch.Tensor:
    """Return the first principal components, and print how much of the variance they have."""
    centred = points - points.mean(dim=0)
    _, sizes, axes = torch.linalg.svd(centred, full_matrices=False)
    share = float(sizes[:n_components].square().sum() / sizes.square().sum())
    print(f"  {n_components} principal components have {share:.1%} of the variance")
    return centred @ axes[:n_components].T


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator().manual_seed(0)
    cases = [
        ("a ring in 2-d", ring(generator), 3, 2),
        ("a sphere in 3-d", sphere(generator), 5, 3),
    ]
    figure, axes = figures.panels(8, columns=4, width=3.0, height=3.0, projection=None)
    for row, (name, target, n_features, shown) in enumerate(cases):
        print(f"{name}, from a blob in {n_features}-d")
        kept, distances = flow(target, n_features, seed=row)
        panels = axes[4 * row : 4 * row + 4]
        for i, (step, points) in enumerate(zip(SHOWN, kept, strict=True)):
            place = principal(points, shown)
            if shown == 3:
                slot = panels[i].get_subplotspec()
                panels[i].remove()
                panels[i] = figure.add_subplot(slot, projection="3d")
            panels[i].scatter(*place.T.numpy(), s=4, color=figures.COLOURS[row])
            panels[i].set_aspect("equal")
            panels[i].set_title(
                f"blob in {n_features}-d" if step == 0 else f"step {step}", fontsize=10
            )
        panels[3].plot(range(0, STEPS + 1, 10), distances, color=figures.COLOURS[row])
        panels[3].set(yscale="log", xlabel="step")
        panels[3].set_title(f"LES to {name}", fontsize=10)
        radius = (kept[-1] - kept[-1].mean(dim=0)).norm(dim=1)
        spread = float(radius.std() / radius.mean())
        print(f"  LES {distances[0]:.1f} -> {distances[-1]:.2f}; radius varies by {spread:.1%}")
    figures.save(figure, folder / "torch_flow.png")
    print(folder / "torch_flow.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results/networks"))
