"""What a signature will cost, predicted from counted work: estimate()."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import _check
from ._check import is_anndata, is_path
from ._format import amount, duration
from .comparison import prepare
from .data.dataset import Dataset
from .defaults import GAMMA
from .engine import one_blas
from .errors import InputTypeError, collected
from .inputs import READING, DataLike, collection, data_options
from .spectra import pipeline
from .spectra.cost_model import CostModel
from .spectra.signature import Signature


@dataclass(frozen=True)
class Estimate:
    """The predicted cost of a signature, or of a collection of them.

    Attributes
    ----------
    solver
        Its name, or the names of several.
    seconds
        The time on this machine.
    memory_bytes
        The peak of memory beyond the data itself.
    n_samples
        The number of rows; of a collection, the sum.
    n_features, n_eigenvalues
        The number of columns, and K; of a collection, the largest.
    reason
        What the time and the memory are based on.
    error
        The `tol` in use, which `tol=None` chooses; of a collection, the largest.
    sampling_noise
        The sampling noise of the data, where `tol` depends on it; of a collection, the largest.
    cheaper
        What takes less time, in words.
    """

    solver: str
    seconds: float
    memory_bytes: int
    n_samples: int
    n_features: int
    n_eigenvalues: int
    reason: str
    error: float | None = None
    sampling_noise: float | None = None
    cheaper: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = (
            f"{self.n_samples:,} × {self.n_features}, K={self.n_eigenvalues}: "
            f"about {duration(self.seconds)} and {amount(self.memory_bytes)} beyond the data "
            f"with {self.solver}. {self.reason}."
        )
        if self.sampling_noise is not None:
            text += f" Error {self.error:.2g}, sampling noise about {self.sampling_noise:.2g}."
        return text + "".join(f" {way}." for way in self.cheaper)


def estimate(
    data: DataLike | Mapping[str, DataLike] | Sequence[DataLike],
    *,
    n_eigenvalues: int | None = None,
    gamma: float | str = GAMMA,
    solver: Any = "auto",
    tol: float | None = None,
    **options: Any,
) -> Estimate:
    """Return the predicted cost of `signature`, before it is computed.

    Landmarks or columns are counted on up to 2400 rows; the operations and kernel entries of all
    rows are then multiplied by the measured time of one. Takes about a second, and is right
    within a factor of three.

    Parameters
    ----------
    data
        As for `signature`; or a dict or list as for `compare`: times and rows are added, and of
        many datasets of about the same shape three are probed.
    n_eigenvalues, gamma, solver, tol, **options
        As for `signature`; `subsample`, a number of rows, as for `compare`.

    Returns
    -------
    Estimate
        Time in seconds and memory in bytes, with the solver and the reason.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> points = np.random.default_rng(0).normal(size=(2000, 3))
    >>> found = ua.estimate(points, n_eigenvalues=50)
    >>> found.solver, 0 < found.seconds < 60, found.n_samples
    ('landmarks', True, 2000)
    """
    given = {"n_eigenvalues": n_eigenvalues, "gamma": gamma, "solver": solver, "tol": tol}
    known = (
        *_check.option_names(pipeline.SignatureSettings),
        "preprocess",
        "nan_policy",
        "subsample",
        *READING,
    )
    options = _check.with_our_names(options)
    _check.known_options("estimate()", options, known)
    size = _check.optional_int("subsample", options.pop("subsample", None))
    items: list[Any] = [data]
    if _is_collection(data) or options.get("group_by") is not None:
        named = collection("data", data, data_options(options))
        items = [item for item in named.values() if isinstance(item, Dataset)]
        if not items:
            raise InputTypeError("data holds Signatures only; there is nothing to compute.")
    prepared = [prepare(item, {**given, **options}) for item in items]
    datasets = [getattr(member, "vertices", member) for member, _ in prepared]  # of a mesh
    settings = prepared[0][1]
    found = _of_all(_subsampled(datasets, size), settings)
    fits = (settings.n_eigenvalues or 0) <= 6000
    if found.seconds < 10.0 or size is not None or not fits:
        return found
    small = _of_all(_subsampled(datasets, 6000), settings)
    if small.seconds > 0.5 * found.seconds:
        return found
    return replace(found, cheaper=(f"subsample=6000: about {duration(small.seconds)}",))


def _subsampled(datasets: Sequence[Dataset], size: int | None) -> list[Dataset]:
    """Return the datasets, those of kind points with at most `size` rows."""
    rng = np.random.default_rng(0)
    return [
        d.subsample(size, rng) if size and d.kind == "points" and size < d.n_samples else d
        for d in datasets
    ]


def _is_collection(data: Any) -> bool:
    """Whether this is several datasets; a list of rows is one."""
    if not isinstance(data, (list, tuple)) or not data:
        return isinstance(data, Mapping)
    first = data[0]
    if isinstance(first, (Dataset, Signature)) or is_path(first) or is_anndata(first):
        return True
    return np.ndim(first) == 2


def _of_all(datasets: Sequence[Dataset], settings: pipeline.SignatureSettings) -> Estimate:
    """Return the cost of some datasets, probing up to three of each shape."""
    k = settings.n_eigenvalues or pipeline.default_eigenvalues(datasets, settings.kernel)
    groups: dict[tuple[str, int, int], list[Dataset]] = {}
    for dataset in datasets:
        pipeline.require_enough(k, dataset)
        size = round(2.0 * math.log2(dataset.n_samples))  # equal within about a fifth
        groups.setdefault((dataset.kind, dataset.n_features, size), []).append(dataset)
    parts, seconds = [], 0.0
    for group in groups.values():
        with one_blas(), collected():  # `signature` warns about accuracy
            probed = [CostModel(d, settings, k).predict() for d in group[:: -(-len(group) // 3)]]
        seconds += len(group) * sum(part.seconds for part in probed) / len(probed)
        parts += probed
    if len(datasets) == 1:
        one = parts[0]._asdict()
        return Estimate(
            n_samples=datasets[0].n_samples,
            n_features=datasets[0].n_features,
            n_eigenvalues=k,
            **one,
        )
    return Estimate(
        " and ".join(sorted({part.solver for part in parts})),
        seconds,
        max(part.memory_bytes for part in parts),
        sum(dataset.n_samples for dataset in datasets),
        max(dataset.n_features for dataset in datasets),
        k,
        f"{len(datasets)} datasets one after the other, {len(parts)} of them probed",
        max((part.error for part in parts if part.error is not None), default=None),
        max((p.sampling_noise for p in parts if p.sampling_noise is not None), default=None),
    )
