"""
Embedding models on one corpus
==============================

Seven ways to embed the same 600 digits in 5 to 60 dimensions, beside their 64 pixels. LES compares the shapes of the
clouds and needs no pairs; CKA compares which images are alike, and needs the same images in the same
order.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF, PCA, FastICA
from sklearn.kernel_approximation import RBFSampler
from sklearn.manifold import Isomap
from sklearn.random_projection import GaussianRandomProjection

import unaligned as ua

corpus = load_digits().data[:600] / 16
models = {
    "PCA 20": PCA(20),
    "PCA 5": PCA(5),
    "random 30": GaussianRandomProjection(30, random_state=0),
    "NMF 15": NMF(15, random_state=0, max_iter=1000),
    "ICA 15": FastICA(15, random_state=0, whiten="unit-variance", max_iter=1000, tol=1e-3),
    "Fourier 60": RBFSampler(gamma=0.05, n_components=60, random_state=0),
    "Isomap 5": Isomap(n_components=5, n_neighbors=12),
}
embedded = {"pixels": corpus} | {
    name: model.fit_transform(corpus) for name, model in models.items()
}

# %%
# Users of an embedding take Euclidean distances of its rows as they are, and so do both distances:
# its columns share one unit, also where their spreads differ, as those of NMF do.

embedded = {name: ua.Dataset(rows, shared_unit=True) for name, rows in embedded.items()}
les = ua.compare(embedded, n_eigenvalues=200)
cka = ua.compare(embedded, distance="cka")

figure, axes = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
for ax, found, title in zip(axes, (les, cka), ("LES: shape", "1 - CKA: pairs"), strict=True):
    found.plot("heatmap", ax=ax, order="tree", annotate=True, title=title)
plt.show()
