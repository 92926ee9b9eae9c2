"""Distances between operators whose rows belong together (Appendix B.3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.linalg import eigh, eigvalsh  # NumPy's: its BLAS is the one with threads here
from scipy.linalg import norm as scaled_norm
from scipy.linalg.lapack import dpotrf, dsygst

from .. import _check
from .._check import FloatArray
from ..data.dataset import KINDS, Dataset
from ..data.facts import Facts
from ..engine import one_blas
from ..errors import InputError, NotApplicableError
from ..operators.kernel import KernelSettings
from ..spectra.base import is_singular, negative_mass
from ..spectra.pipeline import operator_of, warn_if_indefinite
from .imd import TIMES, require_powers
from .points import DataDistance, Described

# Up to here η leaves its logarithm nine digits; operators of points, with γ = 1e-8, stay below.
_NEAR_ONE = 1.0 - 1e-8
_MADE = {"spd": "a matrix taken as it is", "graph": "the heat kernel of a graph"}
NORMS = {"frobenius": 2, "nuclear": 1, "spectral": np.inf}


@dataclass(frozen=True)
class AlignedDistance(DataDistance):
    """A distance between two N×N operators, row i of one belonging to row i of the other.

    Equal operators are at distance exactly 0, and both directions give the same bits.

    Attributes
    ----------
    gamma
        Added to the diagonal; None stands for 1e-8, and for 0 with matrices of kind `spd`.
    kernel
        How points become an affinity.
    """

    paired_rows: ClassVar[bool] = True
    kinds: ClassVar[tuple[str, ...]] = KINDS
    cost: ClassVar[str] = "O(N³) per dataset and pair, 40 N² bytes"

    gamma: float | None = None
    kernel: KernelSettings = field(default_factory=KernelSettings)

    def __post_init__(self) -> None:
        if self.gamma is not None:
            _check.real_number("gamma", self.gamma, minimum=0.0)
        if self.kernel.robust:
            raise InputError(
                "robust=True sets rows of each dataset aside by itself, and distance "
                f"{self.name!r} compares row i with row i. Leave the same rows of all datasets "
                "out first."
            )

    def content(self, dataset: Dataset, seed: int) -> Any:
        """Return what `between` needs of W + γI, (N, N)."""
        gamma = self.gamma
        if gamma is None:
            gamma = 0.0 if dataset.kind == "spd" else 1e-8
        with one_blas():
            operator = operator_of(dataset, self.kernel)[0]
            W = operator.to_dense()
            W[np.diag_indices_from(W)] += gamma
            return self.transform(W, dataset.label, definite=operator.definite)

    def objection(self, first: Facts, second: Facts) -> str | None:
        """Return why the distance does not apply to this pair, or None."""
        made = [_MADE.get(dataset.kind, "a diffusion operator") for dataset in (first, second)]
        if made[0] != made[1]:
            return (
                f"it compares operators that were made in one way, and {first.label} is {made[0]} "
                f"where {second.label} is {made[1]}"
            )
        return super().objection(first, second)

    def transform(self, W: FloatArray, label: str, *, definite: bool) -> Any:
        """Return the part of the work that needs only one operator; the operator itself here.

        Where not `definite`, the affinity may have negative eigenvalues that are no rounding.
        """
        return W

    def compare(self, first: Described, second: Described) -> float:
        """Return the distance, after making sure that the rows can belong together."""
        sizes = len(first.arrays[0]), len(second.arrays[0])
        if sizes[0] != sizes[1]:
            raise NotApplicableError(
                f"distance {self.name!r} does not apply: it compares row i with row i, and the "
                f"datasets have {sizes[0]} and {sizes[1]} rows."
            )
        with one_blas():
            return super().compare(first, second)


@dataclass(frozen=True)
class Euclidean(AlignedDistance):
    r"""The plain distance of two aligned operators, :math:`\|W_1 - W_2\|_F` (Appendix B.3).

    The baseline of Arsigny et al. (2006); not squared. O(N² d) per dataset, O(N²) per pair.
    """

    name: ClassVar[str] = "euclidean"
    summary: ClassVar[str] = "Frobenius norm of the difference of aligned operators"
    cost: ClassVar[str] = "O(N² d) per dataset, O(N²) per pair, 36 N² bytes"

    def between(self, first: Described, second: Described) -> float:
        """Return the Frobenius norm of the difference."""
        # As a vector it goes to BLAS, which scales: a matrix is squared as it is.
        return float(scaled_norm((first.content - second.content).ravel()))


@dataclass(frozen=True)
class LogEuclidean(AlignedDistance):
    r"""The log-Euclidean distance of aligned operators, the root of Eq. 5 [eq:lem].

    .. math:: d = \|\log W_1 - \log W_2\|_F

    (Arsigny et al., 2006); not squared. `les` is its lower bound when rows are not aligned. One
    decomposition, O(N³), per dataset, and O(N²) per pair.
    """

    name: ClassVar[str] = "log-euclidean"
    summary: ClassVar[str] = "log-Euclidean distance of aligned operators (Eq. 5)"

    def transform(self, W: FloatArray, label: str, *, definite: bool) -> FloatArray:
        """Return the matrix logarithm, by eigenvectors."""
        eigenvalues, U = eigh(W)
        _require_positive(eigenvalues, label)
        logarithm: FloatArray = (U * np.log(eigenvalues)) @ U.T
        return logarithm

    def between(self, first: Described, second: Described) -> float:
        """Return the Frobenius norm of the difference of logarithms."""
        return float(np.linalg.norm(first.content - second.content))


@dataclass(frozen=True)
class AffineInvariant(AlignedDistance):
    r"""The affine-invariant distance of aligned operators (Pennec et al., 2006).

    .. math:: d = \|\log(W_1^{-1/2} W_2 W_1^{-1/2})\|_F = \Big(\sum_i \log^2 \mu_i\Big)^{1/2}

    with μ the generalised eigenvalues of (W₂, W₁). The paper prints
    :math:`\|\log(W_1^{-1} W_2)\|_F`; taken as a plain norm of that non-symmetric matrix it is
    another number, so the generalised eigenvalues are used. Those of (W₂, W₁) themselves leave
    four digits to operators of condition 10⁸, as small ones are lost beside large ones; so they
    are taken from η = (μ - 1) / (μ + 1), the eigenvalues of (W₂ - W₁, W₂ + W₁), which lie
    between -1 and 1 and keep both ends: log μ = 2 artanh η. Where some |η| is 1 but for 1e-8
    its own rounding shows, and μ is p / q, the shares p and q of either side being the
    eigenvalues of (W₂, W₁ + W₂) and (W₁, W₁ + W₂): what small eigenvalues the matrices hold
    beside large ones, those keep. The mean diagonals are taken out first, so that μ lies around
    1 whatever the units. One eigenvalue problem per pair, O(N³), five where some |η| is so near 1.
    """

    name: ClassVar[str] = "affine-invariant"
    summary: ClassVar[str] = "affine-invariant distance of aligned operators"

    def transform(self, W: FloatArray, label: str, *, definite: bool) -> tuple[FloatArray, float]:
        """Return the operator over its mean diagonal, and the logarithm of that."""
        unit = float(np.trace(W)) / len(W)
        if not unit > 0:
            raise _not_positive(eigvalsh(W)[0], label)
        W /= unit
        return W, float(np.log(unit))

    def arrays(self, content: tuple[FloatArray, float]) -> tuple[FloatArray, ...]:
        """Return the operator over its mean diagonal, and the logarithm of that."""
        return content[0], np.array([content[1]])

    def between(self, first: Described, second: Described) -> float:
        """Return the norm of the logarithms of the generalised eigenvalues."""
        (W1, log_unit1), (W2, log_unit2) = first.content, second.content
        factor, failed = dpotrf((W1 + W2).T, lower=1, clean=0, overwrite_a=1)
        if failed or is_singular(factor.diagonal() ** 2):  # pivots lie between the eigenvalues
            raise _more_singular(first, second)
        reduced, _ = dsygst((W2 - W1).T, factor, lower=1, overwrite_a=1)
        ratios = eigvalsh(reduced)  # reads the lower half
        if np.abs(ratios).max() < _NEAR_ONE:
            logarithms = 2.0 * np.arctanh(ratios)
        else:  # one of them is singular, or next to it
            shares1, shares2 = (_shares(operator, factor) for operator in (first, second))
            logarithms = np.log(shares2) - np.log(shares1[::-1])
        return float(np.linalg.norm(logarithms + log_unit2 - log_unit1))


@dataclass(frozen=True)
class SpectralGW(AlignedDistance):
    r"""The spectral Gromov-Wasserstein distance of aligned operators (Mémoli, 2011).

    .. math:: d = \sup_{t>0} e^{-(t + 1/t)} \|W_1^t - W_2^t\|

    as in Appendix B.3, the supremum over 256 times from 0.1 to 10. The paper does not name the
    norm; Frobenius is taken, and `norm` chooses another. With the decompositions
    :math:`W_k = U_k \Lambda_k U_k^T`, one per dataset, and :math:`C = U_1^T U_2`,

    .. math:: \|W_1^t - W_2^t\| = \|\Lambda_1^t C - C \Lambda_2^t\|

    so that all times share one product, O(N³) per pair and O(N²) per time; the other norms take
    O(N³) at those times that the Frobenius norm does not rule out.

    Attributes
    ----------
    norm
        `"frobenius"`, `"nuclear"` (the one that heat traces bound from below) or `"spectral"`.
    """

    name: ClassVar[str] = "spectral-gw"
    summary: ClassVar[str] = "sup over t of the distance of aligned heat kernels"
    cost: ClassVar[str] = "O(N³) per dataset and pair, 256 N² operations, 45 N² bytes"

    norm: str = "frobenius"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check.one_of("norm", self.norm, NORMS)

    def transform(
        self, W: FloatArray, label: str, *, definite: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return eigenvalues, clipped at 0, and eigenvectors."""
        eigenvalues, U = eigh(W)
        if not definite:
            warn_if_indefinite(negative_mass(eigenvalues), label)
        return np.maximum(eigenvalues, 0.0), U

    def arrays(self, content: tuple[FloatArray, FloatArray]) -> tuple[FloatArray, ...]:
        """Return both."""
        return content

    def between(self, first: Described, second: Described) -> float:
        """Return the supremum over all times.

        Times are tried in the order of an upper bound, until none can exceed what was found.
        """
        (values1, U1), (values2, U2) = first.content, second.content
        C = U1.T @ U2
        # In the unit of the largest eigenvalue no power overflows; the weights take it back.
        unit = max(float(values1[-1]), float(values2[-1])) or 1.0
        require_powers(unit)
        powers1, powers2 = ((values / unit) ** TIMES[:, None] for values in (values1, values2))
        weights = np.exp(TIMES * np.log(unit) - (TIMES + 1.0 / TIMES))
        bounds = weights * _upper_bounds(powers1, powers2, C, self.norm)
        best = 0.0
        for i in np.argsort(-bounds):
            if bounds[i] <= best:
                break
            best = max(best, float(weights[i]) * _norm(powers1[i], powers2[i], C, self.norm))
        return best


def _upper_bounds(
    powers1: FloatArray, powers2: FloatArray, C: FloatArray, norm: str
) -> FloatArray:
    """Return what the norm of W₁ᵗ - W₂ᵗ cannot exceed, for all times, (256,).

    The Frobenius norm is at least the spectral one, and √N times it at least the nuclear one.
    Its square is a difference of traces here, so what those may have lost is added.
    """
    own = (powers1**2).sum(axis=1) + (powers2**2).sum(axis=1)
    cross = np.einsum("ti,ti->t", powers1 @ C**2, powers2)
    lost = 1e-15 * len(C) * own
    bounds: FloatArray = np.sqrt(np.maximum(own - 2.0 * cross, 0.0) + lost)
    if norm == "nuclear":
        traces = powers1.sum(axis=1) + powers2.sum(axis=1)
        bounds = np.minimum(np.sqrt(len(C)) * bounds, traces)
    return bounds


def _norm(powers1: FloatArray, powers2: FloatArray, C: FloatArray, norm: str) -> float:
    """Return the norm of W₁ᵗ - W₂ᵗ from the powers of their eigenvalues."""
    if norm == "frobenius":
        return float(np.linalg.norm((powers1[:, None] - powers2) * C))
    difference = np.diag(powers1) - (C * powers2) @ C.T
    return float(np.linalg.norm(eigvalsh(difference), NORMS[norm]))


def _shares(operator: Described, factor: FloatArray) -> FloatArray:
    """Return the eigenvalues of (W, W₁ + W₂), ascending, (N,); a singular W is refused."""
    W, log_unit = operator.content
    own = eigvalsh(W)
    _require_positive(own, operator.label, unit=np.exp(log_unit))
    reduced, _ = dsygst(W.T, factor, lower=1)
    # The trace of the sum is 2 N here, so that no share is less, whatever rounding says.
    shares: FloatArray = np.maximum(eigvalsh(reduced), own[0] / (2.0 * len(W)))
    return shares


def _require_positive(eigenvalues: FloatArray, label: str, unit: float = 1.0) -> None:
    """Refuse an operator that is singular but for rounding; eigenvalues ascend."""
    if is_singular(eigenvalues):
        raise _not_positive(float(eigenvalues[0] * unit), label)


def _more_singular(first: Described, second: Described) -> InputError:
    """Return what to say where the sum of two operators is singular, of the one to blame."""
    spectra = [(eigvalsh(operator.content[0]), operator) for operator in (first, second)]
    eigenvalues, worse = min(spectra, key=lambda found: found[0][0] / found[0][-1])
    return _not_positive(float(eigenvalues[0] * np.exp(worse.content[1])), worse.label)


def _not_positive(smallest: float, label: str) -> InputError:
    return InputError(
        f"{label}: the operator has the eigenvalue {smallest:g}, and a logarithm needs clearly "
        "positive ones. Give a larger gamma."
    )
