"""Signature: log(λ + γ) with the recipe that made it."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from .. import _check
from .._check import FloatArray
from .._format import jsonable
from ..data.dataset import Dataset
from ..errors import FileError, InputError, RecipeMismatchError
from ..io.archive import read_archive, write_archive
from ..operators.kernel import KernelSettings
from .base import Spectrum

_FORMAT = "unaligned-signature"
_TEXT = " For the numbers alone write numpy.savetxt(path, signature.values)."
_IDENTITY = ("n_samples", "n_features", "sigma_squared", "name", "fingerprint")
_ARRAYS = ("eigenvalues", "lower", "upper")


@dataclass(frozen=True)
class Recipe:
    """All that went into a signature besides the data.

    The first group decides which signatures may be compared; the second says how this one
    came about.
    """

    gamma: float
    kernel: str
    bandwidth: str | float
    bandwidth_factor: float
    metric: str
    n_neighbors: int | None
    robust: bool
    preprocess: tuple[str, ...]

    kind: str = field(default="points", compare=False)
    solver: str = field(default="exact", compare=False)
    tol: float = field(default=1e-4, compare=False)
    seed: int = field(default=0, compare=False)
    version: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.kernel == "diffusion" and self.bandwidth != "none":
            # Version 0.1.0 wrote this for the Gaussian kernel, the only one it had.
            object.__setattr__(self, "kernel", "gaussian")

    @staticmethod
    def of(
        dataset: Dataset,
        kernel: KernelSettings,
        *,
        gamma: float,
        solver: str,
        tol: float,
        seed: int,
    ) -> Recipe:
        """Return the recipe of a dataset's signature, without what has no effect on its kind."""
        from .. import __version__

        free = dataset.kind in ("spd", "affinity", "graph")  # no scale and no metric of ours
        operators = {"spd": "none", "graph": "heat", "affinity": "diffusion"}
        given = free or dataset.kind == "distances"
        scale = kernel.bandwidth if isinstance(kernel.bandwidth, str) else float(kernel.bandwidth)
        return Recipe(
            gamma=gamma,
            kernel=operators.get(dataset.kind, kernel.kernel),
            bandwidth="none" if free else scale,
            bandwidth_factor=1.0 if free else float(kernel.bandwidth_factor),
            metric="precomputed" if given else kernel.metric_name,
            n_neighbors=None if free else kernel.n_neighbors,
            robust=kernel.robust,
            preprocess=dataset.preprocess,
            kind=dataset.kind,
            solver=solver,
            tol=tol,
            seed=seed,
            version=__version__,
        )

    def differences(self, other: Recipe) -> dict[str, tuple[Any, Any]]:
        """Return what forbids a comparison: field -> (here, there)."""
        pairs = {
            f.name: (getattr(self, f.name), getattr(other, f.name))
            for f in fields(self)
            if f.compare
        }
        differing = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
        # A distance matrix does not say which metric made it.
        if "precomputed" in differing.get("metric", ()):
            del differing["metric"]
        return differing

    def require_same(self, other: Recipe) -> None:
        """Raise RecipeMismatchError where the two recipes do not allow a comparison."""
        differing = self.differences(other)
        if differing:
            told = "; ".join(f"{name}: {a!r} and {b!r}" for name, (a, b) in differing.items())
            raise RecipeMismatchError(
                f"These signatures were made differently ({told}), so their distance means "
                "nothing. Make both with the same settings; data that needs different "
                "preprocessing is best preprocessed before it comes here."
            )


@dataclass(frozen=True, eq=False)
class Signature:
    r"""The log-Euclidean signature of one dataset, F_LES of Algorithm 2 [alg:lesd].

    .. math:: F_i = \log(\lambda_i + \gamma), \qquad i = 1, \dots, K

    Attributes
    ----------
    spectrum
        The eigenvalues and what is known about their error.
    recipe
        What made it; signatures of different recipes refuse to be compared.
    n_samples, n_features
        The size of the dataset.
    sigma_squared
        The kernel scale σ², None where there is no kernel.
    name, fingerprint
        Which data it was.
    stats
        Time, solver, kernel entries evaluated, rows dropped.

    Examples
    --------
    >>> import unaligned as ua
    >>> points = np.random.default_rng(0).normal(size=(99, 2))
    >>> signature = ua.signature(points, n_eigenvalues=20)
    >>> signature.truncate(5).values.shape, signature.bound_kind
    ((5,), 'exact')
    """

    spectrum: Spectrum
    recipe: Recipe
    n_samples: int
    n_features: int
    sigma_squared: float | None = None
    name: str | None = None
    fingerprint: str = ""
    stats: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        positive = int((self.eigenvalues > 0).sum())
        if self.recipe.gamma == 0 and positive < self.n_eigenvalues:
            who = "the dataset" if self.name is None else f"dataset {self.name!r}"
            raise InputError(
                f"gamma=0 needs {self.n_eigenvalues} positive eigenvalues; {who} has only "
                f"{positive}. Give a positive gamma, or a smaller n_eigenvalues."
            )

    @cached_property
    def values(self) -> FloatArray:
        """The signature log(λ + γ), (K,)."""
        values: FloatArray = np.log(self.eigenvalues + self.recipe.gamma)
        values.flags.writeable = False
        return values

    @property
    def eigenvalues(self) -> FloatArray:
        """The K largest eigenvalues, descending."""
        return self.spectrum.eigenvalues

    @property
    def n_eigenvalues(self) -> int:
        """K."""
        return self.spectrum.n_eigenvalues

    @property
    def bound_kind(self) -> str:
        """What stands behind the error bound, such as `exact` or `certified`."""
        return self.spectrum.bound_kind

    @cached_property
    def error_bound(self) -> FloatArray:
        """Bound on the error of each value, (K,); inf where the kind is `none`."""
        if self.bound_kind == "none":
            return np.full(self.n_eigenvalues, np.inf)
        return self.spectrum.log_error(self.recipe.gamma)

    @cached_property
    def total_error_bound(self) -> float:
        """Bound on the 2-norm of the error of all values, the number that `tol` asks for."""
        if self.bound_kind == "none":
            return float("inf")
        return self.spectrum.total_log_error(self.recipe.gamma)

    def truncate(self, n_eigenvalues: int) -> Signature:
        """Return the signature of the first `n_eigenvalues` values only."""
        k = _check.positive_int("n_eigenvalues", n_eigenvalues)
        if k > self.n_eigenvalues:
            raise InputError(
                f"n_eigenvalues={k} is more than this signature has, {self.n_eigenvalues}. "
                "Compute it again with a larger n_eigenvalues."
            )
        return replace(self, spectrum=self.spectrum.truncate(k))

    def with_gamma(self, gamma: float) -> Signature:
        """Return the signature of the same eigenvalues under another γ."""
        gamma = _check.real_number("gamma", gamma, minimum=0.0)
        return replace(self, recipe=replace(self.recipe, gamma=gamma))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the signature to one `.npz` file, atomically and without pickle."""
        header, arrays = self.to_parts()
        write_archive(path, _FORMAT, header, arrays, remedy=_TEXT)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Signature:
        """Read a signature that `save` wrote."""
        header, arrays = read_archive(path, _FORMAT)
        try:
            return Signature.from_parts(header, arrays)
        except (KeyError, TypeError, ValueError) as error:
            raise FileError(
                f"{os.fspath(path)!r} lacks a part of a signature: {error}."
            ) from error

    def to_parts(self) -> tuple[dict[str, Any], dict[str, FloatArray]]:
        """Return the signature as a JSON-able header and arrays."""
        spectrum = self.spectrum
        header = {
            "recipe": asdict(self.recipe),
            "slack": spectrum.slack,
            "bound_kind": spectrum.bound_kind,
            "solver": spectrum.solver,
            "stats": jsonable(self.stats, allow_nan=True),
            **{name: getattr(self, name) for name in _IDENTITY},
        }
        arrays = {name: getattr(spectrum, name) for name in _ARRAYS}
        return header, arrays

    @staticmethod
    def from_parts(header: Mapping[str, Any], arrays: Mapping[str, FloatArray]) -> Signature:
        """Return the signature that `to_parts` took apart."""
        recipe = dict(header["recipe"], preprocess=tuple(header["recipe"]["preprocess"]))
        eigenvalues, lower, upper = (np.asarray(arrays[name], dtype=float) for name in _ARRAYS)
        if not (eigenvalues.ndim == 1 <= eigenvalues.size == lower.size == upper.size):
            raise ValueError("eigenvalues and their bounds must be of one length")
        known = (header["slack"], header["bound_kind"], header["solver"])
        spectrum = Spectrum(eigenvalues, lower, upper, *known)
        identity = {name: header[name] for name in _IDENTITY}
        return Signature(spectrum, Recipe(**recipe), stats=header["stats"], **identity)

    def __repr__(self) -> str:
        name = "" if self.name is None else f"{self.name!r}, "
        return (
            f"Signature({name}K={self.n_eigenvalues}, gamma={self.recipe.gamma:g}, "
            f"{self.n_samples} × {self.n_features}, error ≤ {self.total_error_bound:.2g} "
            f"{self.bound_kind})"
        )

    def _repr_html_(self) -> str:
        """Return a small table for notebooks."""
        terms = {
            "name": self.name,
            "K": self.n_eigenvalues,
            "γ": f"{self.recipe.gamma:g}",
            "rows × columns": f"{self.n_samples} × {self.n_features}",
            "error": f"≤ {self.total_error_bound:.2g} ({self.bound_kind})",
            "solver": self.spectrum.solver,
        }
        rows = "".join(
            f"<tr><th>{term}</th><td>{html.escape(str(value))}</td></tr>"
            for term, value in terms.items()
            if value is not None
        )
        return f"<table><caption>Signature</caption><tbody>{rows}</tbody></table>"
