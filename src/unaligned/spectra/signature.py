"""Signature: log(λ + γ) with the recipe that made it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from .. import _check, defaults
from .._check import FloatArray
from .._format import jsonable
from ..data.dataset import Dataset
from ..errors import InputError, RecipeMismatchError, restoring
from ..operators.kernel import KernelSettings
from .base import BOUND_KINDS, Spectrum

_FORMAT = "unaligned-signature"
_IDENTITY = ("n_samples", "n_features", "sigma_squared", "name", "fingerprint")
_ARRAYS = ("eigenvalues", "lower", "upper")


@dataclass(frozen=True)
class Recipe:
    """Everything that determines a signature besides the data.

    Signatures may be compared if the first group of fields agrees; the second records how this
    one was computed.

    Attributes
    ----------
    gamma
        γ of log(λ + γ).
    kernel
        `gaussian` or `laplacian`; for an affinity `diffusion`, for a graph `heat`, for an SPD
        matrix `none`.
    bandwidth, bandwidth_factor
        The rule or value of σ², and its factor; `none` and 1 where there is no σ².
    metric
        Its name; `precomputed` for square kinds.
    n_neighbors
        Of a k-NN kernel; None for the full one.
    robust
        Whether outliers were excluded.
    preprocess
        The steps applied to the points.
    kind
        That of the dataset.
    solver, tol, seed
        The solver, the 2-norm of the error that was wanted, and the root seed.
    version
        Of this package.
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
    tol: float = field(default=defaults.TOL, compare=False)
    seed: int = field(default=0, compare=False)
    version: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.kernel == "diffusion" and self.bandwidth != "none":
            # Version 0.1.0 wrote this for the Gaussian kernel, the only one it had.
            object.__setattr__(self, "kernel", "gaussian")

    @staticmethod
    def of(dataset: Dataset, kernel: KernelSettings, **computation: Any) -> Recipe:
        """Return the recipe of a dataset's signature, neutral where a setting has no effect.

        Parameters
        ----------
        dataset
            Its kind and preprocessing become part of the recipe.
        kernel
            The settings of the kernel.
        **computation
            `gamma`, `solver`, `tol` and `seed`.

        Returns
        -------
        Recipe
            Of the running version.
        """
        from .. import __version__

        free = dataset.kind in ("spd", "affinity", "graph")  # no σ² and no metric
        operators = {"spd": "none", "graph": "heat", "affinity": "diffusion"}
        given = free or dataset.kind == "distances"
        scale = kernel.bandwidth if isinstance(kernel.bandwidth, str) else float(kernel.bandwidth)
        return Recipe(
            kernel=operators.get(dataset.kind, kernel.kernel),
            bandwidth="none" if free else scale,
            bandwidth_factor=1.0 if free else float(kernel.bandwidth_factor),
            metric="precomputed" if given else kernel.metric_name,
            n_neighbors=None if free else kernel.n_neighbors,
            robust=kernel.robust,
            preprocess=tuple(map(str, dataset.preprocess)),
            kind=dataset.kind,
            version=__version__,
            **computation,
        )

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Recipe:
        """Return the recipe from its fields as JSON has them.

        Parameters
        ----------
        values
            The fields by name.

        Returns
        -------
        Recipe
            Its steps of preprocessing are a tuple again.
        """
        found = {**values, "preprocess": tuple(values["preprocess"])}
        _check.require_types(Recipe, found)
        for name in ("gamma", "bandwidth", "bandwidth_factor", "tol"):
            if not isinstance(found.get(name), str | None):
                _check.real_number(name, found[name], minimum=0.0)
        _check.positive_int("seed", found.get("seed", 0), minimum=0)
        return Recipe(**found)

    def options(self, n_eigenvalues: int) -> dict[str, Any]:
        """Return the options of `ua.signature` that give this recipe.

        Parameters
        ----------
        n_eigenvalues
            K, which is not part of a recipe.

        Returns
        -------
        dict
            Keywords of `ua.signature`, `rng` included.
        """
        names = ["gamma", "solver", "tol", "robust"]
        if self.bandwidth != "none":
            names += ["kernel", "bandwidth", "bandwidth_factor", "n_neighbors"]
        if self.metric != "precomputed":
            names.append("metric")
        options = {name: getattr(self, name) for name in names}
        return {
            "n_eigenvalues": n_eigenvalues,
            **options,
            "preprocess": self.preprocess or None,
            "rng": self.seed,
        }

    def differences(self, other: Recipe) -> dict[str, tuple[Any, Any]]:
        """Return the fields that prevent a comparison: name -> (value here, value there).

        Parameters
        ----------
        other
            The recipe to compare with.

        Returns
        -------
        dict
            Empty if signatures of the two may be compared.
        """
        names = [f.name for f in fields(self) if f.compare]
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in names}
        differing = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
        # The metric of a distance matrix is unknown.
        if "precomputed" in differing.get("metric", ()):
            del differing["metric"]
        return differing


class _Stats(TypedDict, total=False):
    """The types of the `stats` that are read; files have outliers as a number or as rows."""

    rows_dropped: int
    rows_set_aside: int | list[int]
    sampling_noise: float


@dataclass(frozen=True, eq=False)
class Signature:
    r"""The log-Euclidean signature of one dataset, Algorithm 2 of the paper.

    .. math:: F_i = \log(\lambda_i + \gamma), \qquad i = 1, \dots, K

    Attributes
    ----------
    spectrum
        The eigenvalues and their bounds.
    recipe
        How it was computed; signatures of different recipes cannot be compared.
    n_samples, n_features
        The size of the dataset.
    sigma_squared
        The kernel scale σ², or None.
    name, fingerprint
        Identify the data.
    stats
        Time, solver, kernel entries evaluated, rows dropped.

    Examples
    --------
    >>> import numpy as np
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
                f"{positive}. Use a positive gamma, or a smaller n_eigenvalues."
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
        """The number of eigenvalues, K."""
        return self.spectrum.n_eigenvalues

    @property
    def bound_kind(self) -> str:
        """How far the error bound can be relied on, such as `exact` or `certified`."""
        return self.spectrum.bound_kind

    @cached_property
    def error_bound(self) -> FloatArray:
        """Bound on the error of each value, (K,); inf where the kind is `none`."""
        bound = self.spectrum.log_error(self.recipe.gamma)
        return np.full_like(bound, np.inf) if self.bound_kind == "none" else bound

    @cached_property
    def total_error_bound(self) -> float:
        """Bound on the 2-norm of the error of all values, to which `tol` applies."""
        bound = self.spectrum.total_log_error(self.recipe.gamma)
        return float("inf") if self.bound_kind == "none" else bound

    def truncate(self, n_eigenvalues: int) -> Signature:
        """Return the signature of the first `n_eigenvalues` values only.

        Parameters
        ----------
        n_eigenvalues
            At most K.

        Returns
        -------
        Signature
            Its `values` are (n_eigenvalues,).
        """
        k = _check.positive_int("n_eigenvalues", n_eigenvalues)
        if k > self.n_eigenvalues:
            raise InputError(
                f"n_eigenvalues={k} is more than this signature has, {self.n_eigenvalues}. "
                "Compute it again with a larger n_eigenvalues."
            )
        return replace(self, spectrum=self.spectrum.truncate(k))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Return the values, so that `numpy.asarray(signature)` is the vector of Eq. 11."""
        convert = np.array if copy else np.asarray  # numpy 1.26 knows no copy=None
        return convert(self.values, dtype=dtype)

    def with_gamma(self, gamma: float) -> Signature:
        """Return the signature of the same eigenvalues under another γ.

        Parameters
        ----------
        gamma
            γ, not negative; 0 needs positive eigenvalues.

        Returns
        -------
        Signature
            The bounds of its values follow the new γ.
        """
        gamma = _check.real_number("gamma", gamma, minimum=0.0)
        return replace(self, recipe=replace(self.recipe, gamma=gamma))

    def require_comparable(self, other: Signature) -> None:
        """Raise RecipeMismatchError if recipe or K differ from those of another signature.

        Parameters
        ----------
        other
            The signature to be compared with this one.
        """
        differing = self.recipe.differences(other.recipe)
        if differing:
            values = "; ".join(f"{name}: {a!r} and {b!r}" for name, (a, b) in differing.items())
            raise RecipeMismatchError(
                f"These signatures were made differently ({values}), so their distance has no "
                "meaning. Compute both with the same settings; preprocess data that needs "
                "different preprocessing beforehand."
            )
        if self.n_eigenvalues != other.n_eigenvalues:
            shorter = min(self.n_eigenvalues, other.n_eigenvalues)
            raise RecipeMismatchError(
                f"These signatures have {self.n_eigenvalues} and {other.n_eigenvalues} values. "
                f"Shorten the longer one with .truncate({shorter}), or compute both with the same "
                "n_eigenvalues."
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the signature to one `.npz` file, atomically and without pickle.

        Parameters
        ----------
        path
            A `.npz` file; an existing one is replaced.
        """
        from ..io.archive import write_archive

        remedy = " For the numbers alone write numpy.savetxt(path, signature.values)."
        write_archive(path, _FORMAT, *self.to_parts(), remedy=remedy)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Signature:
        """Read a signature that `save` wrote.

        Parameters
        ----------
        path
            The `.npz` file.

        Returns
        -------
        Signature
            With spectrum, bounds, recipe and `stats`.
        """
        from ..io.archive import read_archive

        header, arrays = read_archive(path, _FORMAT)
        with restoring(f"The signature in {os.fspath(path)!r}"):
            return Signature.from_parts(header, arrays)

    def to_parts(self) -> tuple[dict[str, Any], dict[str, FloatArray]]:
        """Return the signature as a JSON-able header and arrays.

        Returns
        -------
        header : dict
            Everything but the arrays.
        arrays : dict
            `eigenvalues` and their bounds, `lower` and `upper`, each (K,).
        """
        spectrum = self.spectrum
        header = {
            "recipe": asdict(self.recipe),
            "slack": spectrum.slack,
            "bound_kind": spectrum.bound_kind,
            "solver": spectrum.solver,
            "stats": jsonable(self.stats, allow_nan=True),
            **{name: getattr(self, name) for name in _IDENTITY},
        }
        return header, {name: getattr(spectrum, name) for name in _ARRAYS}

    @staticmethod
    def from_parts(header: Mapping[str, Any], arrays: Mapping[str, FloatArray]) -> Signature:
        """Return the signature from the result of `to_parts`.

        Parameters
        ----------
        header, arrays
            The result of `to_parts`.

        Returns
        -------
        Signature
            Equal to the one that was written.
        """
        eigenvalues, lower, upper = (
            _check.stored_numbers(name, arrays[name], 0.0, np.inf) for name in _ARRAYS
        )
        if not (eigenvalues.ndim == 1 <= eigenvalues.size == lower.size == upper.size):
            raise ValueError("eigenvalues and their bounds differ in length")
        if eigenvalues[0] == np.inf or (np.diff(eigenvalues) > 0).any():
            raise ValueError("eigenvalues must be finite and descending")
        _check.one_of("bound_kind", header["bound_kind"], BOUND_KINDS)
        _check.require_types(Spectrum, header)
        if header["slack"] < 0:
            raise ValueError("slack must not be negative")
        about_bounds = (header[name] for name in ("slack", "bound_kind", "solver"))
        spectrum = Spectrum(eigenvalues, lower, upper, *about_bounds)
        known = {name: header[name] for name in (*_IDENTITY, "stats")}
        _check.require_types(Signature, known)
        _check.require_types(_Stats, known["stats"])
        n, k = known["n_samples"], spectrum.n_eigenvalues
        if not (1 <= k <= n < 2**63 and 1 <= known["n_features"] < 2**63):
            raise ValueError(f"K={k} and a size of {n} × {known['n_features']} do not fit")
        if known["sigma_squared"] is not None:
            _check.real_number("sigma_squared", known["sigma_squared"], minimum=0.0, strict=True)
        return Signature(spectrum, Recipe.from_dict(header["recipe"]), **known)

    def __repr__(self) -> str:
        name = "" if self.name is None else f"{self.name!r}, "
        noise = self.stats.get("sampling_noise")
        noise = "" if noise is None else f", sampling noise about {noise:.2g}"
        return (
            f"Signature({name}K={self.n_eigenvalues}, gamma={self.recipe.gamma:g}, "
            f"{self.n_samples} × {self.n_features}, error ≤ {self.total_error_bound:.2g} "
            f"{self.bound_kind}{noise})"
        )
