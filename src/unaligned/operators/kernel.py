"""Kernels as functions of the distance, and the settings that turn points into an affinity."""

import contextlib
import inspect
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import takewhile
from types import ModuleType
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from .. import _check, defaults
from .._check import FloatArray, IndexArray
from ..data.dataset import Dataset
from ..data.preprocess import apply_steps
from ..errors import InputError, InputTypeError
from ..rows.source import SAMPLE_COLUMNS, SAMPLE_ROWS

Metric: TypeAlias = str | Callable[[FloatArray, FloatArray], float]

_EUCLIDEAN = ("euclidean", "l2", "minkowski")  # scikit-learn's minkowski has p=2
WHITENING_METRICS = ("seuclidean", "mahalanobis")  # Euclidean once the points are rescaled
_CITYBLOCK = ("cityblock", "l1", "manhattan")
BOOLEAN_METRICS = ("dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule")
METRICS = (
    *_EUCLIDEAN,
    *WHITENING_METRICS,
    *_CITYBLOCK,
    *("braycurtis", "canberra", "chebyshev", "correlation", "cosine", "hamming", "haversine"),
    "sqeuclidean",
    *BOOLEAN_METRICS,
)


def loops_for(n_samples: int | None) -> ModuleType:
    """Return the compiled loops, or the NumPy ones for few points; None stands for many.

    Loading Numba takes 450 ms. Up to 500 points NumPy takes a few milliseconds more than the
    compiled loops; at 1000 points it would be 20 ms, half of what an operator takes. Only
    `n_samples` decides, so that values are reproducible, unless Numba is not installed or
    compiles nothing (`NUMBA_DISABLE_JIT=1`).
    """
    from . import _loops_numpy

    if n_samples is not None and n_samples <= 500:
        return _loops_numpy
    if not has_numba():
        return _loops_numpy
    from . import _loops_numba

    return _loops_numba


def has_numba() -> bool:
    """Return whether Numba is installed and compiles; imports it."""
    with contextlib.suppress(ImportError):
        from numba import config

        return not getattr(config, "DISABLE_JIT", False)
    return False


def missing_numba(n_samples: int) -> str:
    """Return a sentence that names the extra, where Numba is missing and many points would gain.

    The kernels of 100,000 points of a torus take 2.6 times as long without
    (`benchmarks/bench_install.py`).
    """
    if n_samples <= 20_000 or find_spec("numba") is not None:
        return ""
    return " Numba would shorten it: pip install 'unaligned[numba]'."


@dataclass(frozen=True)
class Kernel(ABC):
    """A positive function of the distance d that is 1 at d = 0.

    A new kernel is one subclass in `KERNELS` and its name in `defaults.KERNELS`. A loop
    `<name>_from_products` in `_loops_numba` makes it several times faster.

    Attributes
    ----------
    sigma_squared
        The scale σ².
    name
        The value of the option `kernel`.
    definite_metrics
        Metrics, other than Euclidean-like ones, for which the kernel is positive definite. By
        Schoenberg (1938) exp(-f/σ) is, for every σ, if and only if f is conditionally negative
        definite.
    smooth
        Whether the kernel is a smooth function of d² at 0. If not, cancellation in d² shows in
        the affinities of near points, and their d² is computed from differences.
    """

    sigma_squared: float

    name: ClassVar[str]
    definite_metrics: ClassVar[tuple[str, ...]]
    smooth: ClassVar[bool]

    @abstractmethod
    def of_squared(self, squared: FloatArray) -> FloatArray:
        """Overwrite squared distances with affinities, and return them."""

    def of_products(
        self, loops: ModuleType, tile: FloatArray, row_norms: FloatArray, column_norms: FloatArray
    ) -> None:
        """Overwrite inner products xᵢ·xⱼ with affinities, given the squared norms."""
        loop = getattr(loops, f"{self.name}_from_products", None)
        if loop is not None:
            loop(tile, row_norms, column_norms, 1.0 / self.sigma_squared)
        else:
            loops.squared_from_products(tile, row_norms, column_norms)
            with np.errstate(over="ignore"):  # an infinite distance: the affinity is 0
                self.of_squared(tile)


@dataclass(frozen=True)
class Gaussian(Kernel):
    r"""The Gaussian kernel, Eq. 1 [eq:affkern], :math:`\exp(-d^2 / \sigma^2)`."""

    name: ClassVar[str] = "gaussian"
    definite_metrics: ClassVar[tuple[str, ...]] = ()
    smooth: ClassVar[bool] = True

    def of_squared(self, squared: FloatArray) -> FloatArray:
        """Overwrite squared distances with affinities, and return them."""
        squared *= -1.0 / self.sigma_squared
        return np.exp(squared, out=squared)


@dataclass(frozen=True)
class Laplacian(Kernel):
    r"""The Laplacian kernel, :math:`\exp(-d / \sigma)`.

    Not in the paper. Its spectrum decays slowly, so it resolves more of the fine structure and
    needs more landmarks.
    """

    name: ClassVar[str] = "laplacian"
    # d is conditionally negative definite for these: sums of |x - y| or [x ≠ y], and halves or
    # multiples of squared Euclidean distances.
    definite_metrics: ClassVar[tuple[str, ...]] = (
        *_CITYBLOCK,
        *("correlation", "cosine", "hamming", "sqeuclidean"),
    )
    smooth: ClassVar[bool] = False

    def of_squared(self, squared: FloatArray) -> FloatArray:
        """Overwrite squared distances with affinities, and return them."""
        squared *= 1.0 / self.sigma_squared
        np.sqrt(squared, out=squared)
        np.negative(squared, out=squared)
        return np.exp(squared, out=squared)


KERNELS: dict[str, type[Kernel]] = {kernel.name: kernel for kernel in (Gaussian, Laplacian)}


@dataclass(frozen=True)
class KernelSettings:
    """How points become an affinity: options of `unaligned.signature`.

    Parameters
    ----------
    bandwidth
        The scale σ²: `"median"` or `"mean"` of all squared distances, times `bandwidth_factor`; or
        a number, which is σ² itself.
    bandwidth_factor
        σ² = bandwidth_factor · median(d²), positive; the paper takes 2.
    metric
        The distance d between rows: `"euclidean"`, any metric of scikit-learn's
        `pairwise_distances`, such as `"cosine"` or `"cityblock"`, or a callable of two rows. With
        other metrics than Euclidean ones the affinity may be indefinite, and its eigenvalues then
        have no bound.
    n_neighbors
        Keep only the affinities to this many nearest neighbours, at least 2 and a point itself
        included; None keeps all.
    memory_limit
        Bytes that the matrix of a dense affinity may take; above, it is computed in tiles.
        None is a quarter of the available memory.
    robust
        Drop gross outliers first, rows far from almost all others; points and the Euclidean
        metric only. `stats["rows_set_aside"]` of a signature lists them.
    kernel
        `"gaussian"`, exp(-d²/σ²), or `"laplacian"`, exp(-d/σ), whose spectrum decays slowly.
    """

    bandwidth: str | float = defaults.BANDWIDTH_RULES[0]
    bandwidth_factor: float = defaults.BANDWIDTH_FACTOR
    metric: Metric = "euclidean"
    n_neighbors: int | None = None
    memory_limit: int | None = None
    robust: bool = False
    kernel: str = defaults.KERNELS[0]

    def __post_init__(self) -> None:
        if isinstance(self.bandwidth, str):
            _check.one_of("bandwidth", self.bandwidth, defaults.BANDWIDTH_RULES, or_number=True)
        else:
            _check.real_number("bandwidth", self.bandwidth, minimum=0.0, strict=True)
        _check.real_number("bandwidth_factor", self.bandwidth_factor, minimum=0.0, strict=True)
        _check_metric(self.metric)
        _check.optional_int("n_neighbors", self.n_neighbors, minimum=2)
        _check.optional_int("memory_limit", self.memory_limit, minimum=0)
        _check.one_of("kernel", self.kernel, KERNELS)
        if _check.flag("robust", self.robust) and not is_euclidean(self.metric):
            raise InputError(
                f"robust=True works with metric='euclidean', not with metric={self.metric!r}. "
                "Leave one of them out."
            )
        # Not a field, and so no option: given once, all datasets of one call share it.
        object.__setattr__(self, "_metric_name", _name_of(self.metric))

    @property
    def metric_name(self) -> str:
        """The name of the metric in recipes, the same for all aliases of a metric.

        A callable is known by its qualified name. A lambda, a closure or an object has none
        that is stable: its name holds for this settings object only, so that signatures made
        in different calls are not comparable.
        """
        name: str = self._metric_name  # type: ignore[attr-defined]
        return name


def is_euclidean(metric: object) -> bool:
    """Return whether a metric is the Euclidean one under any of its names."""
    return isinstance(metric, str) and metric in _EUCLIDEAN


def depends_on_units(metric: object) -> bool:
    """Return whether a metric adds up differences of columns in the units of each column."""
    names = (*_EUCLIDEAN, *_CITYBLOCK, "sqeuclidean", "chebyshev")
    return isinstance(metric, str) and metric in names


class UnevenColumns(NamedTuple):
    """The columns with the largest and the smallest spread, and the ratio of these."""

    large: str
    small: str
    ratio: float


def uneven_columns(dataset: Dataset) -> UnevenColumns | None:
    """Return the columns whose spreads differ most, if they do so more than a hundredfold.

    The spread is the interquartile range of up to 256 rows after steps of `preprocess` that act on
    rows, or where that is 0 the standard deviation. Nothing is returned for other kinds than
    points, beyond 200 columns, for a `shared_unit`, after `standardize`, for columns that are
    constant but for a few rows, and for spreads that fall along the columns, as those of principal
    components do. Data that is read by blocks is not read again. O(256 d) time.
    """
    steps, d = dataset.preprocess, dataset.n_features
    named = [step.replace("@", ":").partition(":")[0] for step in steps]
    if dataset.kind != "points" or not 2 <= d <= SAMPLE_COLUMNS:
        return None
    if dataset.shared_unit or "standardize" in named:
        return None
    if dataset.is_lazy:
        rows = dataset.values.summary.sample
    else:
        n = dataset.n_samples
        some = np.random.default_rng(0).choice(n, min(n, SAMPLE_ROWS), replace=False)
        rows = dataset.values[np.sort(some)]
        rows = (rows.toarray() if sparse.issparse(rows) else rows).astype(np.float64)
    if len(rows) < 20:  # too few for quartiles
        return None
    try:
        if steps:
            own = takewhile(lambda step: not step.startswith("pca"), steps)
            rows = apply_steps(rows, tuple(own))
    except InputError:  # which the computation raises for all rows
        return None
    spreads = _spreads(rows)
    known = np.flatnonzero(spreads > 0)
    if known.size < 2:
        return None
    order = known[np.argsort(spreads[known], kind="stable")]
    small, large = int(order[0]), int(order[-1])
    ratio = float(spreads[large] / spreads[small])
    # Beyond 100 the smaller column hardly counts. Spreads that fall are principal components.
    if ratio <= 100.0 or (known.size >= 5 and _rank_correlation(order) < -0.8):
        return None
    names = dataset.feature_names or range(d)
    return UnevenColumns(f"column {names[large]!r}", f"column {names[small]!r}", ratio)


def _spreads(rows: FloatArray) -> FloatArray:
    """Return the spread of each column, (d,); 0 if it is constant but for a few rows."""
    ordered, n = np.sort(rows, axis=0), len(rows)
    with np.errstate(over="ignore"):
        spreads = ordered[3 * n // 4] - ordered[n // 4]
        same = np.flatnonzero(spreads == 0)
        # 5 % of the rows off the median: an edge pixel has no scale of its own.
        varied = (rows[:, same] != ordered[n // 2, same]).mean(axis=0) >= 0.05
        spreads[same] = np.where(varied, rows[:, same].std(axis=0), 0.0)
    return np.asarray(spreads)


def _rank_correlation(order: IndexArray) -> float:
    """Return the rank correlation of spreads with positions, from the columns by spread."""
    ranks = np.argsort(np.argsort(order))
    return float(np.corrcoef(ranks, np.arange(ranks.size))[0, 1])


def _name_of(metric: Metric) -> str:
    if isinstance(metric, str):
        aliases = next((names for names in (_EUCLIDEAN, _CITYBLOCK) if metric in names), (metric,))
        return aliases[0]
    own = getattr(metric, "__qualname__", None)
    name = f"{metric.__module__}.{own or type(metric).__name__}"
    stable = own is not None and "<" not in own and not inspect.ismethod(metric)
    return name if stable else f"{name}#{secrets.token_hex(4)}"


def _check_metric(metric: object) -> None:
    if metric == "precomputed":
        raise InputError(
            "metric='precomputed' is not supported: give the distances as a dataset of "
            "kind='distances'."
        )
    if isinstance(metric, str):
        _check.one_of("metric", metric, METRICS)
    elif not callable(metric):
        raise InputTypeError(
            f"metric={metric!r} must be the name of a metric or a callable of two rows, "
            f"not {type(metric).__name__}."
        )
