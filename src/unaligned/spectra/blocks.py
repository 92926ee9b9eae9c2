"""Signatures of many small blocks of rows, and the sampling noise that they show."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from .._check import FloatArray
from ..data.dataset import Dataset
from ..defaults import FEW_FEATURES, SMALL_ROWS
from ..engine import Engine, Threads, check_stop, collect, limited_blas
from ..errors import DegenerateDataError, about
from ..operators.bandwidth import estimate_scale
from ..operators.base import MatrixOperator
from ..operators.diffusion import DiffusionOperator
from ..operators.kernel import KERNELS, KernelSettings, is_euclidean
from ..operators.pointcloud import CANCELLING, FILLED_BYTES, around_median, squared_norms
from .exact import Exact
from .pipeline import SignatureSettings, compute_signature, require_enough
from .signature import Recipe, Signature

T = TypeVar("T")


def noise_floor(squared: FloatArray) -> float:
    r"""Return how far apart two samples of one dataset are by sampling alone.

    .. math:: f^2 = \frac{1}{n} \, \overline{\|s_i - s_j\|^2}_{i \ne j}
              = 2\, \mathrm{tr}\, \mathrm{cov}(s) / n

    is the mean squared distance between the mean signatures of two independent samples of n
    blocks. For the signatures of all n b rows it is a low estimate, because noise falls more
    slowly than the root of the number of rows while b is near K: 0.16, 0.21 and 0.22 from blocks
    of 200, 400 and 500 rows where two samples of 2000 rows are 0.32 apart (covariance
    eigenvalues 1/i, K=100).

    Parameters
    ----------
    squared
        Shape (n, n), the squared distances between the signatures of n ≥ 2 disjoint blocks.

    Examples
    --------
    >>> float(round(noise_floor(np.array([[0.0, 4.0], [4.0, 0.0]])), 4))
    1.4142
    """
    n = len(squared)
    total = float(squared.sum() - np.trace(squared))
    return math.sqrt(max(total, 0.0) / (n * n * (n - 1)))


def sampling_noise(
    dataset: Dataset, settings: SignatureSettings, n_eigenvalues: int, seed: int
) -> float:
    """Estimate how far apart the signatures of two samples as large as this dataset are.

    `noise_floor` of 8 random blocks of 3 K rows (fewer where there are not as many), which falls
    as the root of the number of rows. O(K³) time, whatever the size of the dataset.
    """
    n, rng = dataset.n_samples, np.random.default_rng(seed)
    size = min(3 * n_eigenvalues, n // 2)
    count = min(8, n // size)
    drawn = dataset.take(rng.permutation(n)[: count * size])
    values = drawn.prepared() if drawn.kind == "points" else drawn.values
    blocks = [Dataset(values[i * size : (i + 1) * size]) for i in range(count)]
    settings = replace(settings, n_eigenvalues=min(n_eigenvalues, size))

    def signatures(kernel: KernelSettings) -> list[Signature]:
        return block_signatures(blocks, replace(settings, kernel=kernel), seed, Threads(1))

    found = with_scale(settings.kernel, signatures)
    logs = np.array([signature.values for signature in found])
    return noise_floor(cdist(logs, logs, "sqeuclidean")) * math.sqrt(count * size / n)


def with_scale(kernel: KernelSettings, compute: Callable[[KernelSettings], T]) -> T:
    """Return `compute(kernel)`, by the mean where few rows have a median of 0 by chance."""
    try:
        return compute(kernel)
    except DegenerateDataError as error:
        if kernel.bandwidth != "median":
            raise
        with suppress(DegenerateDataError):
            return compute(replace(kernel, bandwidth="mean"))
        raise error from None


def block_signatures(
    blocks: Sequence[Dataset], settings: SignatureSettings, seed: int, engine: Engine
) -> list[Signature]:
    """Return the signatures of small datasets, the values of `solver="exact"`.

    Blocks run in batches, one BLAS thread each: O(b³) time and 24 b² bytes per block of b rows.
    """
    work = sum(float(block.n_samples) ** 3 for block in blocks)
    # Below 1e9, 0.2 s, threads cost more than they save.
    where = engine if engine.remote or work > 1e9 else Threads(1, engine.progress)
    size = max(1, len(blocks) // (4 * where.n_workers))
    batches = [blocks[start : start + size] for start in range(0, len(blocks), size)]
    bar = {"description": "describing", "unit": "batches of blocks"}
    with limited_blas(1):
        found = collect(where, _describe_batch, batches, shared=(settings, seed), **bar)
    return [signature for batch in found for signature in batch]


def _describe_batch(
    shared: tuple[SignatureSettings, int], blocks: Sequence[Dataset]
) -> list[Signature]:
    return [block_signature(block, *shared) for block in blocks]


def block_signature(dataset: Dataset, settings: SignatureSettings, seed: int) -> Signature:
    """Return the signature of one block by LAPACK, without the overhead of `compute_signature`.

    Settings other than dense points under the Euclidean metric take the usual path.
    """
    kernel, k = settings.kernel, settings.n_eigenvalues
    values: Any = dataset.prepared() if dataset.kind == "points" else None
    if sparse.issparse(values) and 8 * math.prod(values.shape) <= FILLED_BYTES:
        values = values.toarray()
    usual = not isinstance(values, np.ndarray) or not is_euclidean(kernel.metric)
    if usual or kernel.n_neighbors is not None or kernel.robust or k is None or len(values) < 2:
        small = dataset.n_samples <= SMALL_ROWS  # LAPACK takes half a second at most
        solver = replace(settings, solver="exact", sketch_size=None) if small else settings
        return compute_signature(dataset, solver, seed)
    check_stop()
    require_enough(k, dataset)
    with about(dataset.label):
        affinity, scale = _affinity(values, kernel)
        operator, gamma = DiffusionOperator(MatrixOperator(affinity)), _fixed(settings.gamma)
        rng = np.random.default_rng(seed)  # not used by LAPACK
        accuracy = settings.accuracy
        spectrum = Exact().solve(operator, k, accuracy, rng)
    recipe = Recipe.of(dataset, kernel, gamma=gamma, solver="exact", tol=accuracy.tol, seed=seed)
    return Signature(
        spectrum,
        recipe,
        n_samples=dataset.n_samples,
        n_features=dataset.n_features,
        sigma_squared=scale,
        name=dataset.name,
    )


def _fixed(gamma: float | str) -> float:
    """Return γ; a rule is applied later, to all signatures of a collection."""
    from .decay import GAMMA_RANGE

    return GAMMA_RANGE[0] if isinstance(gamma, str) else gamma


def _affinity(points: FloatArray, settings: KernelSettings) -> tuple[FloatArray, float]:
    """Return the affinity of dense points, Eq. 1 [eq:affkern], (b, b), and σ²."""
    family = KERNELS[settings.kernel]
    values = around_median(points)
    by_differences = values.shape[1] <= FEW_FEATURES or not family.smooth
    if not by_differences:
        norms = squared_norms(values)
        squared: FloatArray = -2.0 * (values @ values.T)
        squared += norms[:, None]
        squared += norms
        np.maximum(squared, 0.0, out=squared)
        np.fill_diagonal(squared, 0.0)
        scale = estimate_scale(squared, settings).sigma_squared
        by_differences = float(norms.max()) > CANCELLING * scale
    if by_differences:
        squared = cdist(values, values, "sqeuclidean")
        scale = estimate_scale(squared, settings).sigma_squared
    return family(scale).of_squared(squared), scale
