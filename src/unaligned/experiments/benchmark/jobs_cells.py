"""Jobs on cells and sensors: stages across species, time, and other views of the same data."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..._check import FloatArray
from ...data.preprocess import apply_steps
from ..pictures import data_file
from .jobs import Collection, Entry, job


def _arrays(name: str) -> dict[str, npt.NDArray[Any]]:
    with np.load(data_file(name), allow_pickle=False) as stored:
        return dict(stored)


def _halves(points: FloatArray, rng: np.random.Generator) -> list[FloatArray]:
    order = rng.permutation(len(points))
    return [points[order[0::2]], points[order[1::2]]]


@job(
    "malaria",
    "Which stage of life is this, in another species?",
    "Malaria Cell Atlas, three species in their own genes",
    "nearest",
    n_full=240,
)
def malaria(rng: np.random.Generator, full: bool) -> Collection:
    """Return six stages of each of three species, as principal components of its own genes."""
    entries = []
    for species in ("pb", "pf", "pk"):
        data = _arrays(f"malaria_cell_atlas/{species}10xIDC.npz")
        parts = data["data"].astype(float), data["indices"].astype(int), data["indptr"]
        counts = sparse.csr_array(parts, shape=tuple(data["shape"]))
        points = apply_steps(counts, ("normalize_total", "log1p", "pca:20"))
        # Stages after the fifth have fewer than 100 cells in a species, and are joined with it.
        stages = np.minimum(data["stage"], 5)
        for stage in range(6):
            chosen = points[stages == stage]
            entries.append(Entry(f"{species}/{stage}", chosen, str(stage), species))
    return Collection.of(entries)


@job(
    "days",
    "How much time has passed?",
    "CytoTree, stem cells of six days, two halves each",
    "order",
    same_features=True,
    n_full=1000,
)
def days(rng: np.random.Generator, full: bool) -> Collection:
    """Return two halves of the cells of each day, markers on the arcsinh scale."""
    data = _arrays("cytotree_hesc_timecourse.npz")
    named = [channel.partition("|")[2] != "None" for channel in data["channels"].tolist()]
    entries = []
    for day in (0, 2, 4, 6, 8, 10):
        points = np.arcsinh(data[f"D{day}"][:, named].astype(float) / 150.0)
        for i, half in enumerate(_halves(points, rng)):
            entries.append(Entry(f"day {day}, {i}", half, value=float(day)))
    return Collection.of(entries)


@job(
    "sensors",
    "How far have sensors drifted?",
    "gas sensor batches, two halves each",
    "order",
    same_features=True,
    n_quick=80,
    n_full=80,
)
def sensors(rng: np.random.Generator, full: bool) -> Collection:
    """Return two halves of each batch, all columns standardized together."""
    data = _arrays("gas_sensor_drift.npz")
    batches = sorted(int(name[1:]) for name in data if name.startswith("x"))
    rows = np.concatenate([data[f"x{batch}"] for batch in batches]).astype(float)
    mean, scale = rows.mean(axis=0), rows.std(axis=0)
    entries = []
    for batch in batches:
        points = (data[f"x{batch}"] - mean) / scale
        for i, half in enumerate(_halves(points, rng)):
            entries.append(Entry(f"batch {batch}, {i}", half, value=float(batch)))
    return Collection.of(entries)


@job(
    "modalities",
    "Which cell line is this, in the other modality?",
    "SNARE-seq, chromatin and RNA of four cell lines",
    "retrieval",
    n_quick=140,
    n_full=140,
)
def modalities(rng: np.random.Generator, full: bool) -> Collection:
    """Return each cell line in two feature spaces."""
    data = _arrays("snareseq_two_modalities.npz")
    entries = []
    for modality in ("atac", "rna"):
        for line in np.unique(data["cell_line"]):
            points = data[modality][data["cell_line"] == line]
            entries.append(Entry(f"{modality}/{line}", points, str(line), modality))
    return Collection.of(entries)


@job(
    "views",
    "Which day is this, rotated and with half of the genes?",
    "Klein, four days of stem cells",
    "retrieval",
    n_quick=100,
    n_full=100,
)
def views(rng: np.random.Generator, full: bool) -> Collection:
    """Return each day in all genes, and in a random half of them in other axes."""
    data = _arrays("klein2015_mesc.npz")
    points = apply_steps(data["counts"].astype(float), ("normalize_total", "log1p"))
    chosen = rng.permutation(points.shape[1])[: points.shape[1] // 2]
    rotation = np.linalg.qr(rng.normal(size=(chosen.size, chosen.size)))[0]
    entries = []
    for view, rows in (("genes", points), ("rotated", points[:, chosen] @ rotation)):
        for day in np.unique(data["day"]):
            entries.append(Entry(f"{view}/{day}", rows[data["day"] == day], str(day), view))
    return Collection.of(entries)
