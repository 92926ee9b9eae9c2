"""From a dataset to its signature: operator, solver, spectrum, log(λ + γ)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from .. import _check
from .._check import IndexArray
from ..data.dataset import Dataset
from ..engine import Engine, Threads, one_blas
from ..errors import (
    DegenerateDataError,
    IndefiniteWarning,
    InputError,
    RecipeMismatchError,
    about,
    warn,
)
from ..operators.affinity import streamed_affinity
from ..operators.base import PSDOperator, require_positive
from ..operators.diffusion import DiffusionOperator, build_operator
from ..operators.kernel import Gaussian, KernelSettings, is_euclidean
from ..operators.outliers import outlying_rows
from .auto import resolve_solver
from .base import Accuracy, EigenSolver, Spectrum
from .decay import GAMMA_RANGE, suggest_gamma
from .scale_error import with_scale_error
from .signature import Recipe, Signature

DEFAULT_EIGENVALUES = 200
_NEGATIVE_MASS = 1e-10  # less than this is rounding
_NONE_ASIDE: IndexArray = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class SignatureSettings:
    """Everything that decides a signature besides the data.

    Attributes
    ----------
    n_eigenvalues
        K; None stands for min(200, the smallest N of the collection).
    gamma
        The regularisation γ of log(λ + γ); `"auto"` reads one γ off all spectra.
    solver
        A name, or an `EigenSolver` with settings of its own.
    sketch_size
        M of Algorithm 1, with `solver="nystrom"`.
    tol
        The wanted 2-norm of the error of the K values log(λ + γ). The solver is held to it;
        what a sampled σ² (N > 44,721) may add stands in the bound, and is about 0.01.
    kernel
        How points become an affinity.
    """

    n_eigenvalues: int | None = None
    gamma: float | str = 1e-8
    solver: str | EigenSolver = "auto"
    sketch_size: int | None = None
    tol: float = 1e-4
    kernel: KernelSettings = field(default_factory=KernelSettings)

    def __post_init__(self) -> None:
        # Plain numbers: they go into recipes, and recipes into files.
        k = _check.optional_int("n_eigenvalues", self.n_eigenvalues)
        object.__setattr__(self, "n_eigenvalues", k)
        if isinstance(self.gamma, str):
            _check.one_of("gamma", self.gamma, ("auto",))
        else:
            gamma = _check.real_number("gamma", self.gamma, minimum=0.0)
            object.__setattr__(self, "gamma", gamma)
        tol = _check.real_number("tol", self.tol, minimum=0.0, strict=True)
        object.__setattr__(self, "tol", tol)
        resolve_solver(self.solver, self.sketch_size)

    @property
    def eigen_solver(self) -> EigenSolver:
        """The solver that `solver` and `sketch_size` describe."""
        return resolve_solver(self.solver, self.sketch_size)


def compute_signature(
    dataset: Dataset, settings: SignatureSettings, seed: int, engine: Engine | None = None
) -> Signature:
    """Return the signature of a dataset: operator, solver, spectrum, log(λ + γ).

    Points that are read by blocks are read and worked on where `engine` says, by default here.

    Examples
    --------
    >>> points = Dataset(np.random.default_rng(0).normal(size=(99, 2)))
    >>> compute_signature(points, SignatureSettings(n_eigenvalues=20), seed=0).values.shape
    (20,)
    """
    with one_blas():
        return _compute(dataset, settings, seed, engine or Threads(1))


def _compute(
    dataset: Dataset, settings: SignatureSettings, seed: int, engine: Engine
) -> Signature:
    k = settings.n_eigenvalues or default_eigenvalues([dataset], settings.kernel)
    require_enough(k, dataset)
    with about(dataset.label):
        settings.eigen_solver.require_memory(dataset.n_samples)
    started = time.perf_counter()
    for_scale = dataset.generator(seed).spawn(1)[0]
    operator, aside = _operator(dataset, settings, for_scale, engine)
    _require_left(k, dataset, operator, aside)
    built = time.perf_counter()
    spectrum, gamma = _solve(operator, k, dataset, settings, seed, for_scale)
    stats = {
        "seconds_operator": built - started,
        "seconds_solver": time.perf_counter() - built,
        "storage": operator.storage,
        "kernel_entries": operator.entries_evaluated,
        "rows_dropped": dataset.n_dropped,
        "rows_set_aside": aside.tolist(),
        **spectrum.stats,
    }
    solver, tol = settings.eigen_solver.name, settings.tol
    recipe = Recipe.of(dataset, settings.kernel, gamma=gamma, solver=solver, tol=tol, seed=seed)
    return Signature(
        spectrum,
        recipe,
        n_samples=dataset.n_samples,
        n_features=dataset.n_features,
        sigma_squared=None if operator.sigma_squared is None else float(operator.sigma_squared),
        name=dataset.name,
        fingerprint=dataset.fingerprint,
        stats=stats,
    )


def _operator(
    dataset: Dataset, settings: SignatureSettings, rng: np.random.Generator, engine: Engine
) -> tuple[PSDOperator, IndexArray]:
    """Return the operator, by blocks where the points are read so, and the rows set aside."""
    if not streams(dataset, settings):
        return operator_of(dataset, settings.kernel, rng)
    with about(dataset.label):
        affinity = streamed_affinity(dataset.prepared_source(), settings.kernel, rng, engine)
    return DiffusionOperator(affinity), _NONE_ASIDE


def _solve(
    operator: PSDOperator,
    n_eigenvalues: int,
    dataset: Dataset,
    settings: SignatureSettings,
    seed: int,
    for_scale: np.random.Generator,
) -> tuple[Spectrum, float]:
    """Return the spectrum, and γ: the one that was given, or the one read off."""
    # The smallest γ that may be read off asks most of the solver, so tol holds for any other.
    gamma = GAMMA_RANGE[0] if isinstance(settings.gamma, str) else settings.gamma
    accuracy, rng = Accuracy(gamma, settings.tol), dataset.generator(seed)
    with about(dataset.label):
        spectrum = settings.eigen_solver.solve(operator, n_eigenvalues, accuracy, rng)
        spectrum = with_scale_error(spectrum, operator, gamma, for_scale)
    if not operator.definite:
        warn_if_indefinite(spectrum.stats.get("negative_mass", 0.0), dataset.label)
    if isinstance(settings.gamma, str):
        gamma = suggest_gamma(spectrum.eigenvalues, dataset.n_samples)[0]
    return spectrum, gamma


def streams(dataset: Dataset, settings: SignatureSettings) -> bool:
    """Return whether the points are read by blocks: if they should be, and the settings allow."""
    kernel = settings.kernel
    if settings.eigen_solver.name not in ("auto", "landmarks"):
        return False
    if not is_euclidean(kernel.metric) or kernel.n_neighbors is not None or kernel.robust:
        return False
    return dataset.is_streamed


def warn_if_indefinite(negative: float, label: str) -> None:
    """Warn where clipping took away a share of the spectrum's mass that is no rounding."""
    if negative > _NEGATIVE_MASS:
        warn(
            f"{label}: the affinity is not positive semi-definite; {negative:.1%} of the "
            "spectrum's mass is negative and counts as 0. Euclidean-like metrics without "
            "n_neighbors have no such loss.",
            IndefiniteWarning,
        )


def require_comparable(first: Signature, second: Signature) -> None:
    """Refuse two signatures of different recipes or lengths, saying what differs."""
    first.recipe.require_same(second.recipe)
    if first.n_eigenvalues != second.n_eigenvalues:
        shorter = min(first.n_eigenvalues, second.n_eigenvalues)
        raise RecipeMismatchError(
            f"These signatures have {first.n_eigenvalues} and {second.n_eigenvalues} values. "
            f"Cut the longer one with .truncate({shorter}), or compute both with one "
            "n_eigenvalues."
        )


def operator_of(
    dataset: Dataset, kernel: KernelSettings, rng: np.random.Generator | None = None
) -> tuple[PSDOperator, IndexArray]:
    """Return the operator of a dataset, and the rows that `robust` set aside.

    `rng` draws pairs where there are too many for an exact median. What is wrong with the data
    is said with its name.
    """
    if dataset.n_samples < 2 and dataset.kind != "spd":
        raise DegenerateDataError(
            f"{dataset.label} has one row, and a geometry needs at least two. Leave it out."
        )
    _require_used(dataset, kernel)
    with about(dataset.label):
        values = dataset.prepared()
    aside = _NONE_ASIDE
    if kernel.robust:
        if dataset.kind != "points":
            raise InputError(f"robust=True works on points; {dataset.label} is {dataset.kind!r}.")
        outlying = outlying_rows(values)
        values, aside = values[~outlying], np.flatnonzero(outlying)
    if dataset.kind == "spd":
        values = values.toarray() if sparse.issparse(values) else values
        require_positive(values, dataset.label)
    with about(dataset.label):
        return build_operator(values, dataset.kind, kernel, rng), aside


def default_eigenvalues(datasets: Sequence[Dataset], kernel: KernelSettings) -> int:
    """Return min(200, the smallest N), N being what `robust` leaves of a dataset."""
    return min([DEFAULT_EIGENVALUES, *(_rows_left(dataset, kernel) for dataset in datasets)])


def _rows_left(dataset: Dataset, kernel: KernelSettings) -> int:
    n_samples = dataset.n_samples
    # Four fifths of the rows are never set aside, so a large dataset needs no look.
    if not kernel.robust or dataset.kind != "points" or n_samples >= 5 * DEFAULT_EIGENVALUES:
        return n_samples
    return n_samples - int(outlying_rows(dataset.prepared()).sum())


def _require_used(dataset: Dataset, kernel: KernelSettings) -> None:
    """Refuse settings of the kernel that this kind of data would pass over in silence."""
    unused = []
    if dataset.kind != "points" and not is_euclidean(kernel.metric):
        unused.append(f"metric={kernel.metric!r}")
    if dataset.kind not in ("points", "distances"):
        if kernel.kernel != Gaussian.name:
            unused.append(f"kernel={kernel.kernel!r}")
        if kernel.n_neighbors is not None:
            unused.append(f"n_neighbors={kernel.n_neighbors}")
    if unused:
        raise InputError(
            f"{unused[0]} has no effect on {dataset.label}, which is of kind {dataset.kind!r}. "
            "Leave it out, or give the points themselves."
        )


def _require_left(
    n_eigenvalues: int, dataset: Dataset, operator: PSDOperator, aside: IndexArray
) -> None:
    """Refuse more eigenvalues than rows are left after outliers were set aside."""
    if n_eigenvalues > operator.n_samples:
        raise InputError(
            f"n_eigenvalues={n_eigenvalues} needs at least {n_eigenvalues} samples; "
            f"{dataset.label} has {operator.n_samples} left after robust=True set {aside.size} "
            "aside. Lower n_eigenvalues."
        )


def require_enough(n_eigenvalues: int, dataset: Dataset) -> None:
    """Refuse more eigenvalues than the dataset has rows."""
    if n_eigenvalues > dataset.n_samples:
        raise InputError(
            f"n_eigenvalues={n_eigenvalues} needs at least {n_eigenvalues} samples; "
            f"{dataset.label} has {dataset.n_samples}. Lower n_eigenvalues, or leave "
            f"{dataset.label} out."
        )
