"""
A loss in training
==================

A network that draws points in the plane learns the shape of a set of photographs that it never sees. Its loss,
`ua.torch.LESLoss`, compares signatures: pixels and points in the plane share no coordinates, and no point belongs to any
photograph.
"""

# %%
# The photographs: a temple, out of focus and turned by every angle. Each is a point in 900 dimensions, and all of them lie
# on a closed curve, since a full turn ends where it began.

# needs: torch
# sphinx_gallery_thumbnail_path = 'figures/gallery/plot_loss_in_training.png'

import matplotlib.pyplot as plt
import numpy as np
import torch
from scipy import ndimage
from sklearn.datasets import load_sample_image

import unaligned as ua

sharp = load_sample_image("china.jpg").mean(axis=2)[40:360, 160:480]
temple = ndimage.zoom(ndimage.gaussian_filter(sharp, 48), 0.15)
angles = np.random.default_rng(0).uniform(0, 360, size=256)
turned = np.array([ndimage.rotate(temple, angle, reshape=False)[9:39, 9:39] for angle in angles])
photographs = torch.from_numpy(turned.reshape(256, -1) / 255.0)

# %%
# The network turns noise into points of the plane. At a large γ only the coarse shape counts, at a small one the fine shape
# too, so γ falls during training.

torch.manual_seed(0)
network = torch.nn.Sequential(
    torch.nn.Linear(2, 64),
    torch.nn.Tanh(),
    torch.nn.Linear(64, 64),
    torch.nn.Tanh(),
    torch.nn.Linear(64, 2),
).double()
gammas = (1e-1, 1e-2, 1e-3)
losses = [ua.torch.LESLoss(photographs, n_eigenvalues=15, gamma=gamma) for gamma in gammas]
optimizer = torch.optim.Adam(network.parameters(), lr=5e-3)
steps, drawn, history = 400, {}, []
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
test = torch.randn(256, 2, dtype=torch.float64)
for step in range(steps + 1):
    if step in (0, 100, steps):
        drawn[step] = network(test).detach().numpy()
    if step % 10 == 0:
        with torch.no_grad():
            history.append(losses[-1](network(test)).item())
    loss = losses[min(step * len(gammas) // steps, len(gammas) - 1)]
    optimizer.zero_grad()
    loss(network(torch.randn(256, 2, dtype=torch.float64))).backward()
    optimizer.step()
    schedule.step()

# %%
# The points end on a closed curve, as the photographs do.

figure, axes = plt.subplots(1, 5, figsize=(13, 2.9), layout="constrained")
corner = ndimage.zoom(sharp, 30 / 320)  # in focus, for us
axes[0].imshow(np.block([[corner, turned[0]], [turned[1], turned[2]]]), cmap="gray")
axes[0].set(title="temple; 3 of 256 turned", xticks=[], yticks=[])
for ax, (step, points) in zip(axes[1:], drawn.items(), strict=False):
    ax.scatter(*points.T, s=6)
    ax.set(title=f"points after {step} steps", aspect="equal", xticks=[], yticks=[])
axes[4].plot(range(0, steps + 1, 10), np.sqrt(np.maximum(history, 0)))
axes[4].set(title="LES to the photographs", xlabel="step", ylim=(0, None))
plt.show()
