"""Shape-DNA: the first eigenvalues of a Laplacian."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .. import _check
from .._check import FloatArray
from ..data.dataset import Dataset
from ..data.facts import Facts
from ..data.shapes import Mesh
from ..engine import Engine
from ..errors import DegenerateDataError, InputError, NotApplicableError, about
from ..spectra.laplacian import surface_eigenvalues
from ..spectra.pipeline import require_enough
from ..spectra.signature import Signature
from .base import SpectralDistance

_N_VALUES = 50  # K unless n_eigenvalues is given: the convention of this package


@dataclass(frozen=True)
class ShapeDNA(SpectralDistance):
    r"""The Euclidean distance of the first eigenvalues of Laplacians (Reuter et al., 2006).

    .. math:: d = \Big(\sum_{i=1}^{50} (\mu^{(1)}_i - \mu^{(2)}_i)^2\Big)^{1/2}, \qquad
              \mu_i = \ell_i / \ell_j, \quad \ell_i = (1 - \lambda_i) / \sigma^2

    with λ the leading eigenvalues of the diffusion operator W, and :math:`\ell_j` the first
    that is not zero. The first, 0, counts among the 50. The division removes σ² and the size of
    the shape. Not squared.

    With `laplacian="robust"`, for surfaces in space, the :math:`\mu_i` are eigenvalues of the
    surface's own Laplacian (Sharp and Crane, 2020) times its area: of a `Mesh` with its faces
    (`unaligned.data.shapes`), or of a cloud of points in three columns.

    Invariant to row order, rotation, translation and scale, except that the triangles made for a
    cloud depend slightly on rotation (about 1 % of a distance between different shapes). The
    diffusion variant uses the signatures of `les` and ignores γ. One spectrum per dataset, 50
    operations per pair.

    Parameters
    ----------
    settings
        Its fields are options of the distance: see `SignatureSettings`.
    laplacian
        `"diffusion"` (from W, any data) or `"robust"` (extra `topology`), which ignores all
        options of the kernel and the solver but `n_eigenvalues`.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> rng = np.random.default_rng(0)
    >>> line, ball = rng.normal(size=(300, 1)), rng.normal(size=(300, 3))
    >>> more = 5 * rng.normal(size=(300, 3))
    >>> ua.distance(line, ball, "shape-dna") > 2 * ua.distance(ball, more, "shape-dna")
    True
    """

    name = "shape-dna"
    summary = "first eigenvalues of Laplacians; laplacian='robust' needs the extra 'topology'"
    cost = "one spectrum per dataset, then 50 operations per pair"
    kinds = ("points", "distances", "affinity")

    laplacian: str = "diffusion"

    def __post_init__(self) -> None:
        _check.one_of("laplacian", self.laplacian, ("diffusion", "robust"))
        k = self.settings.n_eigenvalues
        if k is not None and k < 3:
            raise InputError(
                f"n_eigenvalues={k} must be at least 3 for 'shape-dna': the first value is always "
                "0, and the others are divided by the second."
            )

    @property
    def gives_signatures(self) -> bool:
        """Whether `describe` returns signatures; of surfaces it returns eigenvalues only."""
        return self.laplacian == "diffusion"

    def fit(self, datasets: Sequence[Dataset | Signature]) -> Self:
        """Choose K for the whole collection: 50, or the smallest N."""
        given = any(isinstance(d, Signature) for d in datasets)
        if given and self.laplacian == "robust":
            raise InputError(
                "laplacian='robust' needs the data, and a Signature was given. Give the points, "
                "or use laplacian='diffusion'."
            )
        if given or self.settings.n_eigenvalues is not None:
            return super().fit(datasets)
        smallest = min(datasets, key=lambda dataset: dataset.n_samples)
        if smallest.n_samples < 3:
            found = f"dataset {smallest.name!r} has {smallest.n_samples}"
            raise InputError(f"'shape-dna' needs at least 3 samples; {found}. Leave it out.")
        k = min(_N_VALUES, smallest.n_samples)
        return replace(self, settings=replace(self.settings, n_eigenvalues=k))

    def objection(self, first: Facts, second: Facts) -> str | None:
        """Return why the distance does not apply to this pair, or None."""
        for dataset in (first, second) if self.laplacian == "robust" else ():
            if dataset.kind != "points" or not (dataset.preprocess or dataset.n_features == 3):
                return (
                    "laplacian='robust' takes surfaces in space, points with three columns, and "
                    f"{dataset.label} is {dataset.kind} with {dataset.n_features}"
                )
        return super().objection(first, second)

    def describe(self, dataset: Dataset, seed: int, engine: Engine | None = None) -> Any:
        """Return the signature of one dataset, or the eigenvalues of its surface, (K,)."""
        if self.laplacian == "diffusion":
            return super().describe(dataset, seed, engine)
        k = self.settings.n_eigenvalues or min(_N_VALUES, dataset.n_samples)
        require_enough(k, dataset)
        values = dataset.prepared()
        if values.shape[1] != 3:
            raise NotApplicableError(
                f"laplacian='robust' takes points with three columns; {dataset.label} has "
                f"{values.shape[1]} after preprocessing."
            )
        vertices = values.toarray() if sparse.issparse(values) else np.ascontiguousarray(values)
        faces = dataset.faces if isinstance(dataset, Mesh) else None
        with about(dataset.label):
            return surface_eigenvalues(vertices, faces, k, dataset.generator(seed))

    def to_arrays(self, descriptor: Any) -> dict[str, npt.NDArray[Any]] | None:
        """Return the eigenvalues of a surface; None for signatures."""
        return {"values": descriptor} if self.laplacian == "robust" else None

    def from_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> FloatArray:
        """Return the eigenvalues of a surface."""
        return arrays["values"]

    def between(self, first: Any, second: Any) -> float:
        """Return the distance between two comparable signatures, or surfaces."""
        return float(np.linalg.norm(self.vector(first) - self.vector(second)))

    def vector(self, descriptor: Any) -> FloatArray:
        """Return the values μ, (K,)."""
        return _values(descriptor) if self.laplacian == "diffusion" else descriptor

    def error_bound(self, first: Any, second: Any) -> float:
        """Return a bound from the intervals of both spectra; NaN for surfaces."""
        if self.laplacian == "robust":
            return float("nan")
        return float(np.linalg.norm(_errors(first)) + np.linalg.norm(_errors(second)))


def _first_nonzero(signature: Signature) -> int:
    """Return the index of the first 1 - λ that is not zero; each component gives a zero."""
    gaps = 1.0 - signature.eigenvalues
    # The first λ is 1 in theory; its error tells what is zero to the solver.
    nonzero = gaps > max(1e-10, 10.0 * abs(float(gaps[0])))
    nonzero[0] = False
    if not nonzero.any():
        who = "the dataset" if signature.name is None else f"dataset {signature.name!r}"
        raise DegenerateDataError(
            f"{who}: all of the first {gaps.size} eigenvalues are 1, so it has at least as many "
            "components and nothing to divide by. Give a larger bandwidth_factor, or robust=True "
            "if the components are outliers."
        )
    return int(nonzero.argmax())


def _values(signature: Signature) -> FloatArray:
    """Return μ, (K,); 0 for the zero eigenvalues."""
    j = _first_nonzero(signature)
    values: FloatArray = (1.0 - signature.eigenvalues) / (1.0 - signature.eigenvalues[j])
    values[:j] = 0.0
    return values


def _errors(signature: Signature) -> FloatArray:
    """Return a bound on the error of each μ, (K,), from the intervals of λ."""
    if signature.bound_kind == "none":
        return np.full(signature.n_eigenvalues, np.inf)
    j, values, spectrum = _first_nonzero(signature), _values(signature), signature.spectrum
    least = 1.0 - np.minimum(spectrum.upper + spectrum.slack, 1.0)  # no eigenvalue exceeds 1
    most = 1.0 - spectrum.lower
    with np.errstate(divide="ignore"):
        errors: FloatArray = np.maximum(most / least[j] - values, values - least / most[j])
    errors[: j + 1] = 0.0  # 0 and 1 by definition
    return errors
