"""Time courses of cells: CytoTree, the Malaria Cell Atlas, or a file such as Schiebinger's."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import unaligned as ua

from ..errors import FileError, InputError
from ..io.anndata import looks_like_counts

CYTOTREE = "CytoTree"
SPECIES = {"P. berghei": "pb", "P. falciparum": "pf", "P. knowlesi": "pk"}
DAYS = ("D0", "D2", "D4", "D6", "D8", "D10")
N_BINS = 9  # of the phase of each species
_STEPS = ("normalize_total", "log1p")  # of raw counts


@dataclass(frozen=True)
class TimeCourse:
    """Groups of cells, one per time point."""

    groups: Mapping[str, Any]  # (N, d) each, an array or sparse, rows in random order
    times: Mapping[str, float]
    period: float | None = None  # of cyclic times
    stages: Mapping[str, int] = field(default_factory=dict)  # the most frequent of each group

    @property
    def smallest(self) -> int:
        """The number of cells of the smallest group."""
        return min(int(values.shape[0]) for values in self.groups.values())

    @property
    def n_features(self) -> int:
        """The number of genes or markers."""
        return int(next(iter(self.groups.values())).shape[1])


def names_of(course: str, data: str | None) -> tuple[str, ...]:
    """Return the names of the groups of a course, in the order of time."""
    if data is not None:
        return tuple(_labelled(data))
    return DAYS if course == CYTOTREE else tuple(str(i + 1) for i in range(N_BINS))


@lru_cache(maxsize=4)  # all four courses: 0.2 GB
def read_course(course: str, data: str | None, n_genes: int, seed: int) -> TimeCourse:
    """Return the course of this name, or that of a file."""
    if data is not None:
        found = _of_file(data)
    else:
        found = _cytotree() if course == CYTOTREE else _malaria(SPECIES[course])
    rng = np.random.default_rng(seed)
    kept = _most_variable(found.groups, n_genes)
    groups = {
        name: values[:, kept][rng.permutation(values.shape[0])]
        for name, values in found.groups.items()
    }
    return TimeCourse(groups, found.times, found.period, found.stages)


@lru_cache(maxsize=1)
def principal_groups(n_components: int, n_genes: int, seed: int) -> dict[str, Any]:
    """Return the groups of three species, `pb 1` to `pk 9`, in components of each species."""
    found: dict[str, Any] = {}
    for species, code in SPECIES.items():
        groups = read_course(species, None, n_genes, seed).groups
        ends = np.cumsum([values.shape[0] for values in groups.values()])
        together = ua.Dataset(_stacked(groups.values()), preprocess=(f"pca:{n_components}",))
        parts = np.split(np.asarray(together.prepared()), ends[:-1])
        found |= {f"{code} {name}": part for name, part in zip(groups, parts, strict=True)}
    return found


def _stacked(matrices: Any) -> Any:
    matrices = list(matrices)
    return sparse.vstack(matrices) if sparse.issparse(matrices[0]) else np.concatenate(matrices)


def _stored(name: str) -> Any:
    path = Path(os.environ.get("UNALIGNED_DATA", "../shared/data"), name)
    if not path.is_file():
        raise FileError(
            f"There is no {str(path)!r}. Set UNALIGNED_DATA to the folder with the data of the "
            "experiment, or give a time course of your own with --data cells.h5ad."
        )
    return np.load(path)


def _cytotree() -> TimeCourse:
    """Return the 10 surface markers, without scatter, dead-cell stain and clock."""
    stored = _stored("cytotree_hesc_timecourse.npz")
    markers = [str(c).split("|")[1] not in ("None", "7-AAD") for c in stored["channels"]]
    groups = {day: np.arcsinh(stored[day][:, markers] / 150) for day in DAYS}
    return TimeCourse(groups, {day: float(day[1:]) for day in DAYS})


def _malaria(code: str) -> TimeCourse:
    """Return bins of the phase of one species with equal numbers of cells.

    Equal numbers, because LES has a bias of sample size. The time of a bin is the circular mean.
    """
    stored = _stored(f"malaria_cell_atlas/{code}10xIDC.npz")
    parts = stored["data"].astype(np.float64), stored["indices"].astype(int), stored["indptr"]
    counts = sparse.csr_array(parts, shape=tuple(stored["shape"]))
    values = ua.Dataset(counts, preprocess=_STEPS).prepared()
    phases = stored["clock_pseudotime"].astype(np.float64)
    bins = np.argsort(np.argsort(phases, kind="stable")) * N_BINS // phases.size
    groups, times, stages = {}, {}, {}
    for i in range(N_BINS):
        name, inside = str(i + 1), bins == i
        groups[name] = values[inside]
        mean = np.angle(np.exp(1j * phases[inside]).mean())
        times[name] = float(mean % (2 * math.pi))
        stages[name] = int(np.bincount(stored["stage"][inside]).argmax())
    return TimeCourse(groups, times, 2 * math.pi, stages)


@lru_cache(maxsize=1)
def _labelled(path: str) -> dict[str, ua.Dataset]:
    """Return the groups of an AnnData file by `obs["day"]`, named by their day."""
    if not path.endswith((".h5ad", ".zarr")):
        raise InputError(f"data={path!r} must be an AnnData file, .h5ad or .zarr.")
    found = ua.load_all(path, group_by="day", lazy=False, preprocess=_STEPS)
    named = {str(dataset.metadata["day"]): dataset for dataset in found.values()}
    wrong = [name for name, d in named.items() if isinstance(d.metadata["day"], str)]
    if wrong:
        raise InputError(
            f"data={path!r}: obs['day'] must be numbers, and it has {wrong[0]!r}. Convert it to "
            "days, such as 0.5."
        )
    if len(named) < 4:
        raise InputError(
            f"data={path!r}: obs['day'] has {len(named)} values, {', '.join(named)}; the "
            "experiment needs at least 4 time points."
        )
    return named


def _of_file(path: str) -> TimeCourse:
    """Return the course of a file, whose values are normalised if they are raw counts."""
    named = _labelled(path)
    times = {name: float(dataset.metadata["day"]) for name, dataset in named.items()}
    are_counts = all(looks_like_counts(dataset.values) for dataset in named.values())
    groups = {name: d.prepared() if are_counts else d.values for name, d in named.items()}
    return TimeCourse(groups, times)


def _most_variable(groups: Mapping[str, Any], n: int) -> Any:
    """Return the positions of the n columns of largest variance over all cells, ascending."""
    total = sum(values.shape[0] for values in groups.values())
    sums = [np.ravel(values.sum(axis=0)) for values in groups.values()]
    squares = [np.ravel((values * values).sum(axis=0)) for values in groups.values()]
    variance = np.sum(squares, axis=0) / total - (np.sum(sums, axis=0) / total) ** 2
    return np.sort(np.argsort(-variance, kind="stable")[:n])
