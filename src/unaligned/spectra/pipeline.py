"""From a dataset to its signature: operator, solver, spectrum, log(λ + γ)."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from .. import _check, defaults
from .._check import IndexArray
from ..data.dataset import Dataset
from ..engine import Engine, Threads, one_blas
from ..engine.threads import own_threads
from ..errors import DegenerateDataError, IndefiniteWarning, InputError, about, warn
from ..operators.affinity import streamed_affinity
from ..operators.base import PSDOperator, require_positive
from ..operators.diffusion import DiffusionOperator, build_operator
from ..operators.kernel import Gaussian, KernelSettings, is_euclidean
from ..operators.outliers import outlying_rows
from .auto import resolve_solver
from .base import Accuracy, EigenSolver
from .decay import GAMMA_RANGE, GAMMA_RULES, gamma_by_rule
from .prices import announce_solver, relaxed_tol
from .signature import Recipe, Signature


@dataclass(frozen=True)
class SignatureSettings:
    """What determines a signature besides the data: options of `unaligned.signature`.

    Parameters
    ----------
    n_eigenvalues
        K; None means min(200, N), with the smallest N of a collection.
    gamma
        γ of log(λ + γ), not negative: eigenvalues below it count as noise. `"auto"` chooses it
        at the knee of the spectrum, `"cutoff"` just above λ_K (Appendix C), at least 1e-8; a
        collection gets the largest γ of its datasets.
    solver
        `"auto"` (see `Auto`), `"exact"`, `"krylov"`, `"landmarks"`, `"nystrom"`, `"sampled"`, or
        a solver with its own settings, such as `Krylov`.
    sketch_size
        M of Algorithm 1, with `solver="nystrom"` only, from K to N; None means min(2K, N).
    tol
        Wanted 2-norm of the error of the K values, positive. None is 1e-4 where that takes up to
        2.5·10¹² operations (about a minute), else max(0.05, a fifth of the sampling noise of the
        data). It applies to the solver; the error bound also includes the error of a sampled σ²
        (N > 44,721), which is about 0.01.
    kernel
        As options, its fields: see `KernelSettings`.
    """

    n_eigenvalues: int | None = None
    gamma: float | str = defaults.GAMMA
    solver: str | EigenSolver = "auto"
    sketch_size: int | None = None
    tol: float | None = None
    kernel: KernelSettings = field(default_factory=KernelSettings)

    def __post_init__(self) -> None:
        # Plain numbers: they go into recipes, and recipes into files.
        k = _check.optional_int("n_eigenvalues", self.n_eigenvalues)
        object.__setattr__(self, "n_eigenvalues", k)
        if isinstance(self.gamma, str):
            _check.one_of("gamma", self.gamma, GAMMA_RULES, or_number=True)
        else:
            gamma = _check.real_number("gamma", self.gamma, minimum=0.0)
            object.__setattr__(self, "gamma", gamma)
        if self.tol is not None:
            tol = _check.real_number("tol", self.tol, minimum=0.0, strict=True)
            object.__setattr__(self, "tol", tol)
        resolve_solver(self.solver, self.sketch_size)

    @property
    def eigen_solver(self) -> EigenSolver:
        """The solver that `solver` and `sketch_size` describe."""
        return resolve_solver(self.solver, self.sketch_size)

    @property
    def accuracy(self) -> Accuracy:
        """The accuracy of the spectrum; if γ is chosen later, `tol` holds for the smallest."""
        gamma = GAMMA_RANGE[0] if isinstance(self.gamma, str) else self.gamma
        return Accuracy(gamma, defaults.TOL if self.tol is None else self.tol)


def compute_signature(
    dataset: Dataset, settings: SignatureSettings, seed: int, engine: Engine | None = None
) -> Signature:
    """Return the signature of a dataset: operator, solver, spectrum, log(λ + γ).

    Points that are read by blocks are processed by `engine`, by default on local threads.
    """
    solver, accuracy, rng = settings.eigen_solver, settings.accuracy, dataset.generator(seed)
    scale_rng, gamma = rng.spawn(1)[0], accuracy.gamma
    with one_blas():
        k = settings.n_eigenvalues or default_eigenvalues([dataset], settings.kernel)
        require_enough(k, dataset)
        with about(dataset.label):
            solver.require_memory(dataset.n_samples)
        started = time.perf_counter()
        operator, outliers = _build(dataset, settings, scale_rng, engine or Threads(1))
        if k > operator.n_samples:
            raise InputError(
                f"n_eigenvalues={k} needs at least {k} samples; {dataset.label} has "
                f"{operator.n_samples} left after robust=True excluded {outliers.size}. "
                "Lower n_eigenvalues."
            )
        found: dict[str, float] = {}  # what `tol=None` came to, where 1e-4 takes too long

        def relaxed() -> float:
            from .blocks import sampling_noise  # which computes signatures of blocks

            found["sampling_noise"] = noise = sampling_noise(dataset, settings, k, seed)
            found["tol"] = relaxed_tol(noise)
            return found["tol"]

        if settings.tol is None:
            accuracy = replace(accuracy, relaxed=relaxed)
        built = time.perf_counter()
        with about(dataset.label):
            announce_solver(solver, operator.n_samples, k, accuracy, operator.storage)
            spectrum = solver.solve(operator, k, accuracy, rng)
            if operator.entry_error > 0:
                # Relative errors δ of the entries of K change an eigenvalue by 3 δ λ + δ or less.
                error = 4.0 * operator.entry_error
                lower, upper = np.maximum(spectrum.lower - error, 0.0), spectrum.upper + error
                spectrum = replace(spectrum, lower=lower, upper=upper)
            if operator.sigma_squared_error > 0:
                from .bounds import with_scale_error

                spectrum = with_scale_error(spectrum, operator, gamma, scale_rng)
        solved = time.perf_counter()
    if not operator.definite:
        negative = spectrum.stats.get("negative_mass", 0.0)
        warn_if_indefinite(negative, dataset.label, metric=settings.kernel.metric)
    if isinstance(settings.gamma, str):
        gamma = gamma_by_rule(settings.gamma, spectrum.eigenvalues, dataset.n_samples)
    tol = found.get("tol", accuracy.tol)
    recipe = Recipe.of(
        dataset, settings.kernel, gamma=gamma, solver=solver.name, tol=tol, seed=seed
    )
    return Signature(
        spectrum,
        recipe,
        n_samples=dataset.n_samples,
        n_features=dataset.n_features,
        sigma_squared=None if operator.sigma_squared is None else float(operator.sigma_squared),
        name=dataset.name,
        fingerprint=dataset.fingerprint,
        stats={
            "seconds_operator": built - started,
            "seconds_solver": solved - built,
            "storage": operator.storage,
            "kernel_entries": operator.entries_evaluated,
            "rows_dropped": dataset.n_dropped,
            "rows_set_aside": outliers.tolist(),
            **spectrum.stats,
            **found,
        },
    )


@own_threads()
def _build(
    dataset: Dataset, settings: SignatureSettings, rng: np.random.Generator, engine: Engine
) -> tuple[PSDOperator, IndexArray]:
    """Return the operator, in memory or read by blocks, and the rows excluded as outliers."""
    if not streams(dataset, settings):
        return operator_of(dataset, settings.kernel, rng)
    with about(dataset.label):
        affinity = streamed_affinity(dataset.prepared_source(), settings.kernel, rng, engine)
    return DiffusionOperator(affinity), np.empty(0, dtype=np.int64)


def streams(dataset: Dataset, settings: SignatureSettings) -> bool:
    """Return whether the points are read by blocks: if they should be, and the settings allow."""
    kernel = settings.kernel
    if settings.eigen_solver.name not in ("auto", "landmarks", "sampled"):
        return False
    if not is_euclidean(kernel.metric) or kernel.n_neighbors is not None or kernel.robust:
        return False
    return dataset.is_streamed


def operator_of(
    dataset: Dataset, kernel: KernelSettings, rng: np.random.Generator | None = None
) -> tuple[PSDOperator, IndexArray]:
    """Return the operator of a dataset in memory, and the rows that `robust` excluded.

    `rng` draws pairs where there are too many for an exact median.
    """
    if dataset.n_samples < 2 and dataset.kind != "spd":
        raise DegenerateDataError(
            f"{dataset.label} has one row; at least two are needed. Leave it out."
        )
    without_kernel = dataset.kind not in ("points", "distances")
    unused = None
    if dataset.kind != "points" and not is_euclidean(kernel.metric):
        unused = f"metric={kernel.metric!r}"
    elif without_kernel and kernel.kernel != Gaussian.name:
        unused = f"kernel={kernel.kernel!r}"
    elif without_kernel and kernel.n_neighbors is not None:
        unused = f"n_neighbors={kernel.n_neighbors}"
    if unused:
        raise InputError(
            f"{unused} has no effect on {dataset.label}, which is of kind {dataset.kind!r}. "
            "Leave it out, or pass the points themselves."
        )
    outliers: IndexArray = np.empty(0, dtype=np.int64)
    with about(dataset.label):
        values = dataset.prepared()
    if kernel.robust:
        if dataset.kind != "points":
            raise InputError(f"robust=True works on points; {dataset.label} is {dataset.kind!r}.")
        outlying = outlying_rows(values)
        values, outliers = values[~outlying], np.flatnonzero(outlying)
    if dataset.kind == "spd":
        values = values.toarray() if sparse.issparse(values) else values
        require_positive(values, dataset.label)
    with about(dataset.label):
        return build_operator(values, dataset.kind, kernel, rng), outliers


def default_eigenvalues(datasets: Sequence[Dataset], kernel: KernelSettings) -> int:
    """Return min(200, the smallest N), N being what `robust` leaves of a dataset."""
    smallest = defaults.N_EIGENVALUES
    for dataset in datasets:
        n = dataset.n_samples
        # `robust` excludes at most a fifth of the rows, so large datasets need no check.
        if kernel.robust and dataset.kind == "points" and n < 5 * defaults.N_EIGENVALUES:
            n -= int(outlying_rows(dataset.prepared()).sum())
        smallest = min(smallest, n)
    return smallest


def warn_if_indefinite(negative: float, label: str, *, metric: Any = "euclidean") -> None:
    """Warn if clipping removed more of the spectrum's mass than rounding explains."""
    if negative > 1e-10:
        share = f"{negative:.1%}" if negative >= 1e-3 else f"{100.0 * negative:.1g}%"
        remedy = "Use a Euclidean metric without n_neighbors to avoid this."
        if metric == "cosine":
            remedy = (
                "Pass preprocess=['l2'] in place of metric='cosine': Euclidean distances of rows "
                "of length 1 depend on the same angles, and their kernel is positive."
            )
        warn(
            f"the matrix is not positive semi-definite; {share} of the spectrum's mass is "
            f"negative and clipped to 0. {remedy}",
            IndefiniteWarning,
            label=label,
            severity=negative,
        )


def require_enough(n_eigenvalues: int, dataset: Dataset) -> None:
    """Raise InputError for more eigenvalues than the dataset has rows."""
    if n_eigenvalues > dataset.n_samples:
        raise InputError(
            f"n_eigenvalues={n_eigenvalues} needs at least {n_eigenvalues} samples; "
            f"{dataset.label} has {dataset.n_samples}. Lower n_eigenvalues, or leave "
            f"{dataset.label} out."
        )
