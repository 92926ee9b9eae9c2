"""
Three species, three gene spaces
================================

Malaria parasites of three species (Malaria Cell Atlas) through the same 48-hour cycle in red
blood cells. They have no genes in common by name, so that cells cannot be aligned; their shapes can
be compared. Each eighth of the cycle of each species is a dataset of 400 cells.
Data: :doc:`vhowick/MalariaCellAtlas </data>`, GPL-3.

The second p-value is an illustration: this setting is one of many that were tried, and at that of
:doc:`/results` LES finds the stage in another species no more often than by chance.
"""

# needs: malaria_cell_atlas/pb10xIDC.npz, malaria_cell_atlas/pf10xIDC.npz, malaria_cell_atlas/pk10xIDC.npz
# sphinx_gallery_thumbnail_path = 'figures/gallery/plot_three_species.png'

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

import unaligned as ua

folder = Path(os.environ.get("UNALIGNED_DATA", "../shared/data")) / "malaria_cell_atlas"
species = {"berghei": "pb", "falciparum": "pf", "knowlesi": "pk"}
datasets, stage, kind = {}, [], []
for name, short in species.items():
    file = np.load(folder / f"{short}10xIDC.npz", allow_pickle=False)
    counts = sparse.csr_array((file["data"], file["indices"], file["indptr"]), shape=file["shape"])
    clock = file["clock_pseudotime"].astype(float)
    for number, rows in enumerate(np.array_split(np.argsort(clock), 8)):
        datasets[f"{name} {number + 1}"] = counts[np.sort(rows)]
        stage.append(number + 1)
        kind.append(name)

# %%
# Eighths of the cycle of each species, at one size, in 20 principal components of their own.

found = ua.compare(
    datasets, preprocess=["normalize_total", "log1p", "pca:20"], subsample=400, n_eigenvalues=130,
    gamma=1e-5, rng=0,
)  # fmt: skip
by_species, by_stage = found.permanova(kind, rng=0), found.permanova(stage, rng=0)
print(f"species: p = {by_species.p_value:.4f}; part of the cycle: p = {by_stage.p_value:.4f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.8), layout="constrained")
found.plot("embedding", ax=left, color=kind, title="by species")
found.plot("embedding", ax=right, color=stage, cmap="twilight", title="by part of the cycle")
plt.show()
