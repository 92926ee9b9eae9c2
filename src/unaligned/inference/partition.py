"""Datasets cut into disjoint random blocks of rows, and the dissimilarities of those blocks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from .. import _check
from .._check import FloatArray, IndexArray
from ..data.dataset import Dataset
from ..data.preprocess import is_fitted
from ..defaults import N_EIGENVALUES
from ..engine import Engine
from ..errors import (
    InputError,
    InputTypeError,
    NotApplicableError,
    NumericalError,
    collected,
    counted,
    repeat,
)
from ..execution import all_pairs, describe_all
from ..metrics.base import Distance, SpectralDistance
from ..spectra.blocks import block_signatures
from ..spectra.signature import Signature

# Rows of a block, from the power study in docs/studies.md: fewer than 30 have too few
# eigenvalues, more than 500 take long and add no power.
SMALLEST_BLOCK, LARGEST_BLOCK = 30, 500
MOST_BLOCKS = 200  # of one dataset: 5 s and 100,000 rows; more rows are sampled
SHARE = 3  # K is a third of the rows of a block, by the same study

Method = TypeVar("Method", bound=Distance)


def block_size_of(block_size: int | None, n_rows: int, *, n_blocks: int = 10) -> int:
    """Return the given block size, or a share of the rows within limits: a tenth by default."""
    if block_size is not None:
        return _check.positive_int("block_size", block_size, minimum=4)
    return min(max(n_rows // n_blocks, SMALLEST_BLOCK), LARGEST_BLOCK)


def require_rows(
    items: Mapping[str, Dataset | Signature], method: Distance, caller: str
) -> list[Dataset]:
    """Return the items; raise unless all are samples of rows that may be cut into blocks."""
    datasets = []
    for name, item in items.items():
        if isinstance(item, Signature):
            raise InputTypeError(
                f"{caller} needs the data itself; {name!r} is a Signature, which has no rows to "
                "cut into blocks. Pass the points."
            )
        datasets.append(item)
        if item.kind in ("graph", "spd"):
            raise InputError(
                f"{caller} cuts datasets into blocks of rows; {item.label} is of kind "
                f"{item.kind!r}, whose rows are not samples. Pass points or distances."
            )
    if method.paired_rows:
        raise NotApplicableError(
            f"{caller} draws different rows of each dataset, but distance {method.name!r} "
            "compares row i with row i. 'les' needs no paired rows."
        )
    return datasets


def fitted_once(dataset: Dataset) -> tuple[Dataset, bool]:
    """Return the dataset with fitted preprocessing applied to all rows, and whether it had any.

    Steps such as `pca` have no meaning within a block. The others act on rows, and stay.
    """
    if not any(map(is_fitted, dataset.preprocess)):
        return dataset, any("@" in step for step in dataset.preprocess)  # fitted to one side
    values = dataset.prepared_source() if dataset.is_lazy else dataset.prepared()
    return Dataset(values, name=dataset.name), True


def cut(dataset: Dataset, size: int, rng: np.random.Generator) -> list[Dataset]:
    """Return disjoint random blocks of `size` rows; the remainder is dropped."""
    n_blocks = min(dataset.n_samples // size, MOST_BLOCKS)
    return take_blocks(dataset, rng.permutation(dataset.n_samples)[: n_blocks * size], size)


def cut_groups(
    dataset: Dataset,
    labels: npt.NDArray[Any],
    groups: Sequence[Any],
    size: int,
    n_blocks: int,
    rng: np.random.Generator,
) -> list[Dataset]:
    """Return `n_blocks` disjoint random blocks of every group, group by group."""
    rows = [rng.permutation(np.flatnonzero(labels == group)) for group in groups]
    return take_blocks(dataset, np.concatenate([r[: n_blocks * size] for r in rows]), size)


def take_blocks(dataset: Dataset, rows: IndexArray, size: int) -> list[Dataset]:
    """Return consecutive blocks of these rows."""
    if dataset.is_lazy:
        dataset, rows = dataset.take(rows), np.arange(rows.size)
    parts = [dataset.take(part) for part in rows.reshape(-1, size)]
    name = dataset.name or "dataset"
    return [part.with_options(name=f"{name}, block {i}") for i, part in enumerate(parts)]


def fit_to_blocks(method: Method, size: int) -> Method:
    """Return the distance with K chosen for blocks: a third of their rows, at most 200."""
    if not isinstance(method, SpectralDistance):
        return method
    k = method.settings.n_eigenvalues
    if k is not None and k > size:
        raise InputError(
            f"n_eigenvalues={k} needs blocks of at least {k} rows; block_size is {size}. Lower "
            "n_eigenvalues, leave it out, or give a larger block_size."
        )
    k = k or min(max(size // SHARE, 3), N_EIGENVALUES)
    return replace(method, settings=replace(method.settings, n_eigenvalues=k))


def describe_blocks(
    method: Distance, blocks: Sequence[Dataset], seed: int, engine: Engine
) -> tuple[Distance, list[Any]]:
    """Return the descriptors of blocks, and the distance with what it chose for all of them.

    Warnings name the dataset and not the block.
    """
    with collected() as notes:
        if isinstance(method, SpectralDistance) and method.gives_signatures:
            found: list[Any] = list(block_signatures(blocks, method.settings, seed, engine))
        else:
            found = describe_all(method, blocks, seed, engine)
    repeat((note._replace(label=_of_whole(note.label)) for note in notes), set())
    return method.settle(found)


def _of_whole(label: str | None) -> str | None:
    """Return the label of the dataset from that of a block, as `take_blocks` names it."""
    return label and f"blocks of {re.sub(r', block [0-9]+', '', label)}"


def dissimilarities(method: Distance, descriptors: Sequence[Any], engine: Engine) -> FloatArray:
    """Return M of `energy.statistic`: squared distances if they are Euclidean, else distances."""
    vectors = [method.vector(descriptor) for descriptor in descriptors]
    points = [vector for vector in vectors if vector is not None]
    if points:
        squared: FloatArray = cdist(points, points, "sqeuclidean")
        return squared
    named = {str(i): descriptor for i, descriptor in enumerate(descriptors)}
    distances = all_pairs(method, named, None, None, engine)[0]
    if not np.isfinite(distances).all():
        raise NumericalError(
            f"Distance {method.name!r} gives infinite distances between blocks of rows, which "
            "cannot be tested. Use another distance."
        )
    return 0.5 * (distances + distances.T)


def averaged(squared: FloatArray, n_blocks: int) -> FloatArray:
    """Return the squared distances of the means of `n_blocks` consecutive items each."""
    if n_blocks == 1:
        return squared
    n = len(squared) // n_blocks
    means = squared.reshape(n, n_blocks, n, n_blocks).mean(axis=(1, 3))
    own = np.diagonal(means)
    return np.asarray(means - 0.5 * (own[:, None] + own))


def row_labels(
    argument: str, labels: Any, dataset: Dataset
) -> tuple[npt.NDArray[np.str_], list[str]]:
    """Return the label of every row as text, and the groups in the order in which they occur."""
    found = np.asarray(labels)
    if found.shape != (dataset.n_samples,):
        dropped = ""
        if dataset.n_dropped:
            dropped = f" ({counted(dataset.n_dropped, 'row')} with NaN dropped; drop them first)"
        raise InputError(
            f"{argument}: {dataset.label} has {dataset.n_samples} rows{dropped}, and its labels "
            f"have shape {found.shape}. Give one label per row."
        )
    items: list[Any] = found.tolist()
    if found.dtype.kind in "mM":  # of one unit, since tolist() makes numbers of nanoseconds
        dates = found.astype(f"{found.dtype.kind}8[ns]").astype(str).tolist()
        items = [None if date == "NaT" else date for date in dates]
    missing = next((i for i, item in enumerate(items) if _check.is_missing(item)), None)
    if missing is not None:
        raise InputError(
            f"{argument}: row {missing} of {dataset.label} has no label ({found[missing]}). "
            "Give every row a label, or leave the row out."
        )
    texts = {item: _text(item) for item in dict.fromkeys(items)}
    return np.array([texts[item] for item in items]), list(dict.fromkeys(texts.values()))


def _text(label: Any) -> str:
    """Return a label as text, the same for 1, 1.0, "1" and b"1"."""
    if isinstance(label, bytes):
        return label.decode(errors="replace")
    return str(int(label) if isinstance(label, float) and label.is_integer() else label)
