"""What solvers cost in operations, and the announcement of long work.

Operations are multiply-adds inside a large matrix product; only their ratios matter. At 43 G of
these a second (two cores): eigvalsh 1.3 s at N=3000, landmarks 0.1 s there with 540 of them,
krylov 1.1 s with 1023 columns; benchmarks/bench_accuracy.py compares choices.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .._format import duration
from ..defaults import COVARIANCE_COLUMNS, SAMPLED_TOL
from ..errors import CostWarning, warn
from ..operators.kernel import missing_numba
from .base import Accuracy, EigenSolver

# Operations up to which `tol=None` means 1e-4: about a minute on two cores.
AFFORDABLE = 2.5e12
RATE = 4.3e10  # operations per second of two cores
FEWER = 6000  # rows that an announcement proposes
LINEAR = ("landmarks", "sampled")  # solvers whose work grows linearly with the rows
COLUMNS_PER_VALUE = 4  # m/K expected of `krylov`: 2.5 on digits, 5 on isotropic noise


def exact_price(n: int) -> float:
    """Return the operations of `exact`."""
    return 2.2 * n**3


def landmark_price(n: int, landmarks: int) -> float:
    """Return the operations of `landmarks` with this number of landmarks."""
    return 3.5 * n * landmarks**2


def krylov_price(n: int, k: int, *, tiled: bool, columns: int | None = None) -> float:
    """Return the operations of `krylov` with m columns, 4 K by default."""
    m = min(COLUMNS_PER_VALUE * k, n) if columns is None else columns
    # Products, orthogonalisation and Ritz values.
    price = float(n * n * m + 3 * n * m * m + 8 * m**3)
    if tiled:  # the kernel is computed again in each pass
        from .krylov import default_block_size

        price += 50 * n * n * m / default_block_size(k)
    return price


def sampled_price(n: int, k: int) -> float:
    """Return the operations of two rounds of `sampled`; the second takes twice as many."""
    from .sampled.sizes import first_sizes

    return 3.0 * first_sizes(n, k).work(n)


def pca_price(shape: tuple[int, int], n_components: int, n_entries: int, blocks: bool) -> float:
    """Return the operations of `data.preprocess.pca`, or of its form by blocks.

    A decomposition of the covariance takes 4 d³, of all singular vectors 6 N d min(N, d). ARPACK
    takes 4 to 16 products with a vector per component, each ten times as slow as in a block.
    """
    (n, d), smaller = shape, min(shape)
    is_sparse = n_entries < n * d
    covariance = (10.0 * n_entries**2 / n if is_sparse else float(n * d * d)) + 4.0 * d**3
    if blocks:
        return covariance if d <= COVARIANCE_COLUMNS else 8.0 * n_entries * (n_components + 10)
    if d <= COVARIANCE_COLUMNS and (is_sparse or n >= 10 * d):
        return covariance
    if smaller <= 1000 or n_components == smaller:
        return 6.0 * n * d * smaller
    return 150.0 * n_entries * n_components


def sampled_pays(n: int, k: int, tol: float, price: float) -> bool:
    """Return whether `sampled` may reach `tol` in fewer operations than `price`.

    >>> sampled_pays(20_000, 200, 0.1, krylov_price(20_000, 200, tiled=True))
    True
    """
    return tol >= SAMPLED_TOL and sampled_price(n, k) < price


def is_affordable(n: int, k: int) -> bool:
    """Return whether `tol=None` means 1e-4."""
    return min(exact_price(n), krylov_price(n, k, tiled=True)) <= AFFORDABLE


def affordable(accuracy: Accuracy, n: int, k: int) -> Accuracy:
    """Return the accuracy with its relaxed `tol` where the other takes too many operations."""
    if accuracy.relaxed is None or is_affordable(n, k):
        return accuracy
    return Accuracy(accuracy.gamma, accuracy.relaxed())


def relaxed_tol(noise: float) -> float:
    """Return the `tol` for data with this sampling noise: a fifth of it, at least 0.05."""
    return max(SAMPLED_TOL, noise / 5.0)


# The rows of all datasets of the call, whose work is announced as one.
_SIZES: ContextVar[tuple[int, ...]] = ContextVar("_SIZES", default=())


@contextmanager
def announced_together(sizes: Iterable[int]) -> Iterator[None]:
    """Count the work of datasets with these numbers of rows as one in announcements."""
    token = _SIZES.set(tuple(sizes))
    try:
        yield
    finally:
        _SIZES.reset(token)


def announce(solver: str, n: int, k: int, price: float, of_fewer: float | None = None) -> None:
    """Warn if the work takes more than a minute, and say what 6000 rows would take.

    `of_fewer` are their operations, by default those of `auto`. The other datasets of the call are
    assumed to take as much, in proportion to their rows, or to the square of them.
    """
    sizes = _SIZES.get() if len(_SIZES.get()) > 1 else (n,)
    power = 1 if solver in LINEAR else 2
    total = price * sum((size / n) ** power for size in sizes)
    if total <= 60.0 * RATE:
        return
    if of_fewer is None:
        of_fewer = min(exact_price(FEWER), krylov_price(FEWER, min(k, FEWER), tiled=False))
    fewer = of_fewer * sum((min(size, FEWER) / FEWER) ** power for size in sizes)
    time = duration(price / RATE)
    text = f"solver={solver!r} will take about {time} for {n:,} rows on two cores"
    if len(sizes) > 1:
        text += f", and all {len(sizes)} datasets about {duration(total / RATE)} at this rate"
    if fewer < total:
        text += f"; subsample={FEWER}: about {duration(fewer / RATE)}"
    warn(f"{text}.{missing_numba(n)}", CostWarning, severity=total)


def announce_solver(solver: EigenSolver, n: int, k: int, accuracy: Accuracy, storage: str) -> None:
    """Announce the work of a solver that was asked for."""
    of_fewer = solver.price(FEWER, min(k, FEWER), accuracy, "dense")
    announce(solver.name, n, k, solver.price(n, k, accuracy, storage), of_fewer or None)
