"""Random blocks of rows of two datasets, and the signatures of their matrices of distances."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .. import _check
from .._check import FloatArray, IndexArray
from ..data.dataset import Dataset
from ..engine import Engine, limited_blas, resolve_engine
from ..errors import DataWarning, InputError, warn
from ..inference.partition import SHARE, SMALLEST_BLOCK
from ..metrics.base import squared_distances
from ..operators.bandwidth import estimate_scale
from ..operators.base import MatrixOperator
from ..operators.diffusion import DiffusionOperator
from ..operators.kernel import KERNELS
from ..spectra.pipeline import SignatureSettings

FEWEST_BLOCKS = 4  # of each dataset: fewer do not show noise
LEAST_ROWS = 10  # of a block


class Block(NamedTuple):
    """Rows of one dataset: their values, and their squared distances, (b, b)."""

    values: FloatArray
    squared: FloatArray


@dataclass(frozen=True)
class Plan:
    """The rows of every block: blocks come in decks of `per_deck` disjoint ones of `size` rows.

    `orders[side]`, (n_decks, n): every deck is another random order of the rows, whose
    beginning is cut into blocks; the rest stands in for rows that are left out.
    """

    orders: tuple[IndexArray, IndexArray]
    per_deck: int
    size: int

    @cached_property
    def rows(self) -> tuple[IndexArray, IndexArray]:
        """The rows of the blocks of each dataset, (n_blocks, size)."""
        used = self.per_deck * self.size
        first, second = (order[:, :used].reshape(-1, self.size) for order in self.orders)
        return first, second

    @staticmethod
    def of(
        datasets: tuple[Dataset, Dataset],
        block_size: int | None,
        n_repeats: int,
        seed: int,
        *,
        pools: tuple[IndexArray, IndexArray] | None = None,
        n_left: int | None = None,
        least: int = SMALLEST_BLOCK,
    ) -> Plan:
        """Return blocks of 1000 rows per repetition, in as many partitions as that takes.

        Both datasets have equally many blocks; a larger one is sampled. `pools` are the rows
        that may be used, all by default, and `n_left` how many of them a deck may use. Blocks
        have `least` rows unless their size is given.
        """
        smallest = min(datasets, key=lambda dataset: dataset.n_samples)
        n_used = n_left or smallest.n_samples
        # Beyond 250 rows blocks take longer and rank causes no better.
        size = min(max(n_used // FEWEST_BLOCKS, least), 250)
        if block_size is not None:
            size = _check.positive_int("block_size", block_size, minimum=LEAST_ROWS)
        if n_used < FEWEST_BLOCKS * size:
            raise InputError(
                f"explain() needs {FEWEST_BLOCKS} blocks of block_size={size} rows, that is "
                f"{FEWEST_BLOCKS * size}; {smallest.label} has {n_used}. Give more rows, or a "
                "smaller block_size."
            )
        n_all = n_repeats * max(1000 // size, FEWEST_BLOCKS)
        per_deck = min(n_used // size, n_all)
        n_decks = max(1, n_all // per_deck)
        # Of a large dataset so many rows that a quarter of them, chance included, suffices.
        n_kept = per_deck * size * (1 if n_left is None else 16)
        orders = []
        for side, dataset in enumerate(datasets):
            rng = dataset.generator(seed)
            pool = pools[side] if pools else np.arange(dataset.n_samples)
            orders.append(np.stack([rng.permutation(pool)[:n_kept] for _ in range(n_decks)]))
        return Plan((orders[0], orders[1]), per_deck, size)

    def decks(self, n_done: int) -> Iterator[slice]:
        """Yield the decks among the first `n_done` blocks; the last may hold fewer blocks."""
        for start in range(0, n_done, self.per_deck):
            stop = min(start + self.per_deck, n_done)
            if start == 0 or stop - start >= FEWEST_BLOCKS:
                yield slice(start, stop)


def dense_rows(dataset: Dataset, rows: IndexArray) -> FloatArray:
    """Return rows of prepared points as a dense array; `dataset` is `fitted_once`."""
    values = dataset.take(rows).prepared()
    if sparse.issparse(values):
        values = values.toarray()
    found: FloatArray = np.ascontiguousarray(values, dtype=np.float64)
    return found


def read_block(dataset: Dataset, rows: IndexArray) -> Block:
    """Return a block of points, or of a matrix of distances."""
    values = dense_rows(dataset, rows)
    is_matrix = dataset.kind == "distances"
    return Block(values, values**2 if is_matrix else squared_distances(values, values))


def affinity_of(squared: FloatArray, kernel: str, sigma_squared: float) -> FloatArray:
    """Return the affinities of squared distances, (b, b)."""
    return KERNELS[kernel](sigma_squared).of_squared(squared.copy())


def eigenvalues_of(affinity: FloatArray) -> FloatArray:
    """Return all eigenvalues of the diffusion operator, descending, (b,). By LAPACK, O(b³)."""
    matrix = DiffusionOperator(MatrixOperator(affinity)).to_dense()
    return np.asarray(np.maximum(np.linalg.eigvalsh(matrix)[::-1], 0.0))


def log_spectrum(
    squared: FloatArray, settings: SignatureSettings, n_eigenvalues: int
) -> FloatArray:
    """Return log(λ + γ) of the K largest eigenvalues, (K,); σ² is that of these distances."""
    scale = estimate_scale(squared, settings.kernel).sigma_squared
    eigenvalues = eigenvalues_of(affinity_of(squared, settings.kernel.kernel, scale))
    return np.asarray(np.log(eigenvalues[:n_eigenvalues] + float(settings.gamma)))


@dataclass(frozen=True)
class Request:
    """What is explained, on which blocks, and how signatures are computed."""

    datasets: tuple[Dataset, Dataset]
    plan: Plan
    settings: SignatureSettings
    seed: int
    n_jobs: int | None = None
    progress: bool | None = None

    @property
    def n_eigenvalues(self) -> int:
        """K of whole blocks: as given, or a third of their rows."""
        k, size = self.settings.n_eigenvalues, self.plan.size
        if k is not None and k > size:
            raise InputError(
                f"n_eigenvalues={k} needs blocks of at least {k} rows; block_size is {size}. "
                "Lower n_eigenvalues, or leave it out."
            )
        return k or max(size // SHARE, 3)

    def run(
        self,
        function: Any,
        task: Any,
        rows: tuple[IndexArray, IndexArray] | None = None,
        *,
        keep: bool = True,
    ) -> list[Any]:
        """Return `function(task, (side, rows))` of all blocks, those of both datasets by turns.

        `rows` has one entry per block, those of the plan by default. Ctrl-C keeps what is done,
        if that is four blocks of each dataset, with a warning; without `keep` it raises.
        """
        both = zip(*(rows or self.plan.rows), strict=True)
        items = [(side, own) for pair in both for side, own in enumerate(pair)]
        done: list[Any] = []
        jobs = -1 if self.n_jobs is None else self.n_jobs
        try:
            with resolve_engine(None, jobs, self.progress) as at, limited_blas(1):
                _collect(at, function, items, task, done)
        except KeyboardInterrupt:
            if not keep or len(done) < 2 * FEWEST_BLOCKS:
                raise
            warn(
                f"Stopped by Ctrl-C after {len(done)} of {len(items)} blocks; the result is that "
                "of these.",
                DataWarning,
            )
        return done[: len(done) // 2 * 2]


def _collect(at: Engine, function: Any, items: list[Any], task: Any, done: list[Any]) -> None:
    """Append the results to `done` as they come."""
    with (
        at.progress.task("explaining", len(items), unit="blocks") as advance,
        closing(at.map(function, items, shared=task)) as results,  # type: ignore[type-var]
    ):
        for found in results:
            done.append(found)
            advance()
