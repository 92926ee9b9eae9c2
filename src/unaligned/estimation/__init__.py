"""What a signature will cost, found out on a small part of the data: estimate()."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import _check, _settings
from .._format import amount, duration
from ..comparison import prepare
from ..data.dataset import Dataset
from ..data.mesh import Mesh
from ..errors import InputTypeError
from ..inputs import DataLike, collection, data_options
from ..io.load import is_path
from ..spectra.pipeline import SignatureSettings, default_eigenvalues, require_enough, streams
from ..spectra.signature import Signature
from ._foresight import in_memory, streamed
from ._probes import Sample

__all__ = ["Estimate", "estimate"]

_OPTIONS = (*_settings.option_names(SignatureSettings), "preprocess", "nan_policy")
# Of datasets that are alike so many are measured.
_MEASURED = 3


@dataclass(frozen=True)
class Estimate:
    """What a signature, or a collection of them, is expected to cost.

    Attributes
    ----------
    solver
        What will be used; where `auto` chooses, what it is expected to choose.
    seconds
        Time, on this machine and as busy as it is now.
    memory_bytes
        The most memory beyond the data itself.
    n_samples, n_features, n_eigenvalues
        N, d and K; of a collection all rows together, and the largest d and K.
    reason
        How this was found.
    """

    solver: str
    seconds: float
    memory_bytes: int
    n_samples: int
    n_features: int
    n_eigenvalues: int
    reason: str

    def __str__(self) -> str:
        return (
            f"{self.n_samples:,} × {self.n_features}, K={self.n_eigenvalues}: "
            f"about {duration(self.seconds)} and {amount(self.memory_bytes)} beyond the data "
            f"with {self.solver}. {self.reason}."
        )


def estimate(
    data: DataLike | Mapping[str, DataLike] | Sequence[DataLike],
    *,
    n_eigenvalues: int | None = None,
    gamma: float | str = 1e-8,
    solver: Any = "auto",
    tol: float = 1e-4,
    **options: Any,
) -> Estimate:
    """Return what `signature` of this data will cost, before it is computed.

    The solver is run on parts of the data, of 2400 rows at the most; what it took, and how many
    landmarks or columns it needed, is carried over to all rows by the operation counts that
    `solver="auto"` goes by, and products by the numbers that a matrix stores. For data that is
    read by blocks the passes over rows and pairs are timed on some thousand rows, and reading
    on one block. Takes a second or two where the run takes minutes, and as long as one that is
    over in half a second; mostly within a factor of two.

    Parameters
    ----------
    data
        What `signature` takes; or a dict or list of datasets as `compare` takes, which sums up
        (time and rows are added, memory is that of the largest; a signature among them is free;
        of many that have the same features and about the same rows, three are measured).
    n_eigenvalues, gamma, solver, tol, **options
        As for `signature`.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(2000, 3))
    >>> found = estimate(points, n_eigenvalues=50)
    >>> found.solver, 0 < found.seconds < 60, found.n_samples
    ('landmarks', True, 2000)
    """
    given = {"n_eigenvalues": n_eigenvalues, "gamma": gamma, "solver": solver, "tol": tol}
    _check.known_options("estimate()", options, _OPTIONS)
    if not _is_collection(data):
        return _of_one(*prepare(data, {**given, **options}))
    named = collection("data", data, data_options(options))
    members = [item for item in named.values() if isinstance(item, Dataset)]
    if not members:
        raise InputTypeError("data holds Signatures only; there is nothing to compute.")
    prepared = [prepare(member, {**given, **options}) for member in members]
    k = default_eigenvalues(members, prepared[0][1].kernel)
    return _together(
        [
            (dataset, replace(settings, n_eigenvalues=settings.n_eigenvalues or k))
            for dataset, settings in prepared
        ]
    )


def _is_collection(data: Any) -> bool:
    """Whether this is several datasets; a list of rows is one."""
    if isinstance(data, Mapping):
        return True
    if not isinstance(data, (list, tuple)) or not data:
        return False
    known = isinstance(data[0], (Dataset, Signature)) or is_path(data[0])
    return known or len(np.shape(data[0])) == 2


def _together(members: Sequence[tuple[Dataset, SignatureSettings]]) -> Estimate:
    """Return the cost of all; of those that are alike some are measured."""
    alike: dict[tuple[str, int, int], list[tuple[Dataset, SignatureSettings]]] = {}
    for dataset, settings in members:
        require_enough(settings.n_eigenvalues or 1, dataset)
        size = round(2.0 * math.log2(dataset.n_samples))  # the same within a fifth or so
        alike.setdefault((dataset.kind, dataset.n_features, size), []).append((dataset, settings))
    parts, seconds = [], 0.0
    for group in alike.values():
        measured = [_of_one(*member) for member in group[:: -(-len(group) // _MEASURED)]]
        seconds += len(group) * sum(part.seconds for part in measured) / len(measured)
        parts += measured
    reason = f"{len(members)} datasets one after the other"
    if len(parts) < len(members):
        reason += f", {len(parts)} of them measured"
    return Estimate(
        " and ".join(sorted({part.solver for part in parts})),
        seconds,
        max(part.memory_bytes for part in parts),
        sum(dataset.n_samples for dataset, _ in members),
        max(part.n_features for part in parts),
        max(part.n_eigenvalues for part in parts),
        reason if len(members) > 1 else parts[0].reason,
    )


def _of_one(dataset: Dataset, settings: SignatureSettings) -> Estimate:
    if isinstance(dataset, Mesh):
        dataset = dataset.vertices  # rows drawn at random leave no faces, which LES needs not
    k = settings.n_eigenvalues or default_eigenvalues([dataset], settings.kernel)
    require_enough(k, dataset)
    sample = Sample(dataset, replace(settings, n_eigenvalues=k))
    found = streamed(sample) if streams(dataset, settings) else in_memory(sample)
    return Estimate(
        found.solver,
        found.seconds,
        found.memory_bytes,
        dataset.n_samples,
        dataset.n_features,
        k,
        found.reason,
    )
