"""Points that flow from a blob to the geometry of a ring and of a sphere in other dimensions.

The loss knows only the signature of the target: 40 numbers, no coordinates.
Run: python examples/torch_flow.py [folder]    (about a minute; needs unaligned[torch])
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

import unaligned as ua
from unaligned import figures

N, STEPS, SHOWN = 300, 400, (0, 40, 400)


def ring(generator: torch.Generator) -> torch.Tensor:
    angle = 2 * torch.pi * torch.rand(N, generator=generator, dtype=torch.float64)
    return torch.stack([angle.cos(), angle.sin()], dim=1)


def sphere(generator: torch.Generator) -> torch.Tensor:
    points = torch.randn(N, 3, generator=generator, dtype=torch.float64)
    return points / points.norm(dim=1, keepdim=True)


def flow(
    target: torch.Tensor, n_features: int, seed: int
) -> tuple[list[torch.Tensor], list[float]]:
    """Return the points at some steps of descent, and the loss at every step."""
    reference = ua.signature(target.numpy(), n_eigenvalues=40, gamma=1e-4, solver="exact")
    loss_of = ua.torch.LESLoss(reference)
    generator = torch.Generator().manual_seed(seed)
    points = torch.randn(N, n_features, generator=generator, dtype=torch.float64)
    points.requires_grad_()
    optimizer = torch.optim.Adam([points], lr=0.03)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    kept, losses = [points.detach().clone()], []
    for step in range(1, STEPS + 1):
        optimizer.zero_grad()
        loss = loss_of(points)
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(float(loss.detach()))
        if step in SHOWN:
            kept.append(points.detach().clone())
    return kept, losses


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
        kept, losses = flow(target, n_features, seed=row)
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
        panels[3].plot(losses, color=figures.COLOURS[row])
        panels[3].set(yscale="log", xlabel="step")
        panels[3].set_title(f"squared LES to {name}", fontsize=10)
        radius = kept[-1] - kept[-1].mean(dim=0)
        radius = radius.norm(dim=1)
        print(
            f"  squared LES {losses[0]:.1f} -> {losses[-1]:.3f}; relative spread of the radius ",
            end="",
        )
        print(f"{float(radius.std() / radius.mean()):.3f}")
    figures.save(figure, folder / "torch_flow.png")
    print(folder / "torch_flow.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results/torch"))
