"""Shape-DNA: the beginning of a Laplacian's spectrum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .. import _check
from .._check import FloatArray
from ..data.dataset import Dataset
from ..data.facts import Facts
from ..data.mesh import Mesh
from ..engine import Engine
from ..errors import DegenerateDataError, InputError, NotApplicableError
from ..spectra.laplacian.surface import surface_eigenvalues
from ..spectra.pipeline import require_enough
from ..spectra.signature import Signature
from .base import SpectralDistance

DEFAULT_VALUES = 50
_ZERO = 1e-10


@dataclass(frozen=True)
class ShapeDNA(SpectralDistance):
    r"""The Euclidean distance of the first eigenvalues of Laplacians (Reuter et al., 2006).

    .. math:: d = \Big(\sum_{i=1}^{50} (\mu^{(1)}_i - \mu^{(2)}_i)^2\Big)^{1/2}, \qquad
              \mu_i = \ell_i / \ell_j, \quad \ell_i = (1 - \lambda_i) / \sigma^2

    with λ the leading eigenvalues of the diffusion operator W, and :math:`\ell_j` the first
    that is not zero. The first of all, 0, counts among the 50. The division makes shapes of any
    size comparable, and σ² cancels. A distance, not its square.

    With `laplacian="robust"`, for surfaces in space, the :math:`\mu_i` are eigenvalues of the
    surface's own Laplacian (Sharp and Crane, 2020) times its area: a `Mesh` with its faces
    (`unaligned.data.mesh`), or a cloud of points in three columns.

    Does not notice the order of rows, rotation, translation or scale, except that the triangles
    made for a cloud depend a little on rotation (about 1 % of a distance between
    different shapes). From W it shares its signatures with `les`; γ plays no part.

    One spectrum per dataset, 50 operations per pair.

    Attributes
    ----------
    laplacian
        `"diffusion"` (from W, any data) or `"robust"` (extra `topology`), where no option of
        the kernel or the solver plays a part but `n_eigenvalues`.

    Examples
    --------
    >>> import unaligned as ua
    >>> rng = np.random.default_rng(0)
    >>> line, ball = rng.normal(size=(300, 1)), rng.normal(size=(300, 3))
    >>> more = 5 * rng.normal(size=(300, 3))
    >>> ua.distance(line, ball, "shape-dna") > 2 * ua.distance(ball, more, "shape-dna")
    True
    """

    name: ClassVar[str] = "shape-dna"
    summary: ClassVar[str] = (
        "first eigenvalues of Laplacians; laplacian='robust' needs the extra 'topology'"
    )
    cost: ClassVar[str] = "one spectrum per dataset, then 50 operations per pair"
    kinds: ClassVar[tuple[str, ...]] = ("points", "distances", "affinity")

    laplacian: str = "diffusion"

    def __post_init__(self) -> None:
        _check.one_of("laplacian", self.laplacian, ("diffusion", "robust"))
        k = self.settings.n_eigenvalues
        if k is not None and k < 3:
            raise InputError(
                f"n_eigenvalues={k} must be at least 3 for 'shape-dna': the first value is always "
                "0, and the second is what the others are divided by."
            )

    @property
    def gives_signatures(self) -> bool:
        """Whether `describe` returns signatures; those of surfaces are eigenvalues alone."""
        return self.laplacian == "diffusion"

    def fit(self, datasets: Sequence[Dataset | Signature]) -> Self:
        """Settle K for the whole collection: 50, or the smallest N."""
        given = [d for d in datasets if isinstance(d, Signature)]
        if given and self.laplacian == "robust":
            raise InputError(
                "laplacian='robust' needs the data, and a Signature was given. Give the points, "
                "or leave laplacian out."
            )
        if given or self.settings.n_eigenvalues is not None:
            return super().fit(datasets)
        smallest = min(datasets, key=lambda dataset: dataset.n_samples)
        if smallest.n_samples < 3:
            raise InputError(
                f"'shape-dna' needs at least 3 samples; dataset {smallest.name!r} has "
                f"{smallest.n_samples}. Leave it out."
            )
        k = min(DEFAULT_VALUES, smallest.n_samples)
        return replace(self, settings=replace(self.settings, n_eigenvalues=k))

    def objection(self, first: Facts, second: Facts) -> str | None:
        """Return why the distance does not apply to this pair, or None."""
        if self.laplacian == "robust":
            for dataset in (first, second):
                if dataset.kind != "points" or not (dataset.preprocess or dataset.n_features == 3):
                    return (
                        "laplacian='robust' takes surfaces in space, points with three columns, "
                        f"and {dataset.label} is {dataset.kind} with {dataset.n_features}"
                    )
        return super().objection(first, second)

    def describe(self, dataset: Dataset, seed: int, engine: Engine | None = None) -> Any:
        """Return the signature of one dataset, or the eigenvalues of its surface, (K,)."""
        if self.laplacian == "diffusion":
            return super().describe(dataset, seed, engine)
        k = self.settings.n_eigenvalues or min(DEFAULT_VALUES, dataset.n_samples)
        require_enough(k, dataset)
        values = dataset.prepared()
        if values.shape[1] != 3:
            raise NotApplicableError(
                f"laplacian='robust' takes points with three columns; {dataset.label} has "
                f"{values.shape[1]} after preprocessing."
            )
        vertices = values.toarray() if sparse.issparse(values) else np.ascontiguousarray(values)
        faces = dataset.faces if isinstance(dataset, Mesh) else None
        try:
            return surface_eigenvalues(vertices, faces, k, dataset.generator(seed))
        except DegenerateDataError as error:
            raise DegenerateDataError(f"{dataset.label}: {error}") from error

    def to_arrays(self, descriptor: Any) -> dict[str, npt.NDArray[Any]] | None:
        """Return the eigenvalues of a surface; signatures are kept as such."""
        return {"values": descriptor} if self.laplacian == "robust" else None

    def from_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> FloatArray:
        """Return the eigenvalues of a surface."""
        return arrays["values"]

    def settle(self, descriptors: Sequence[Any]) -> tuple[Self, list[Any]]:
        """Settle γ where it is `"auto"` and there are signatures."""
        if self.laplacian == "robust":
            return self, list(descriptors)
        return super().settle(descriptors)

    def compare(self, first: Any, second: Any) -> float:
        """Return the distance, after making sure that the two may be compared."""
        if self.laplacian == "robust":
            return float(np.linalg.norm(first - second))
        return super().compare(first, second)

    def between(self, first: Signature, second: Signature) -> float:
        """Return the distance between two comparable signatures."""
        return float(np.linalg.norm(_values(first) - _values(second)))

    def error_bound(self, first: Any, second: Any) -> float:
        """Return what the intervals of both spectra allow; NaN for surfaces."""
        if self.laplacian == "robust":
            return float("nan")
        return float(np.linalg.norm(_errors(first)) + np.linalg.norm(_errors(second)))


def _first_nonzero(signature: Signature) -> int:
    """Return the position of the first 1 - λ that is not zero.

    The first λ is 1 in theory: how far it is from that says what the solver takes for zero. In
    data of several pieces far apart more of them are.
    """
    gaps = 1.0 - signature.eigenvalues
    beyond = np.flatnonzero(gaps > max(_ZERO, 10.0 * abs(float(gaps[0]))))
    beyond = beyond[beyond > 0]
    if not beyond.size:
        who = "the dataset" if signature.name is None else f"dataset {signature.name!r}"
        raise DegenerateDataError(
            f"{who}: all of the first {gaps.size} eigenvalues are 1, so it falls into as many "
            "pieces and nothing is left to divide by. Give a larger bandwidth_factor, or "
            "robust=True where far outliers are the pieces."
        )
    return int(beyond[0])


def _values(signature: Signature) -> FloatArray:
    """Return μ, (K,); those of the pieces are 0."""
    j = _first_nonzero(signature)
    values: FloatArray = (1.0 - signature.eigenvalues) / (1.0 - signature.eigenvalues[j])
    values[:j] = 0.0
    return values


def _errors(signature: Signature) -> FloatArray:
    """Return how wrong each μ may be, (K,), from the intervals of λ."""
    if signature.bound_kind == "none":
        return np.full(signature.n_eigenvalues, np.inf)
    j, values, spectrum = _first_nonzero(signature), _values(signature), signature.spectrum
    least = 1.0 - np.minimum(spectrum.upper + spectrum.slack, 1.0)  # no eigenvalue is above 1
    most = 1.0 - spectrum.lower
    with np.errstate(divide="ignore"):
        errors = np.maximum(most / least[j] - values, values - least / most[j])
    errors[: j + 1] = 0.0  # 0 and 1 by definition
    return np.asarray(errors, dtype=np.float64)
