"""Distances between aligned SPD operators, row i with row i (Appendix B.3)."""

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
from ..defaults import GAMMA
from ..engine import one_blas
from ..errors import InputError
from ..operators.kernel import KernelSettings
from ..spectra.base import is_singular, negative_mass
from ..spectra.pipeline import operator_of, warn_if_indefinite
from .base import DataDescriptor, DataDistance
from .heat_trace import TIMES, require_powers

_NORMS = {"frobenius": 2, "nuclear": 1, "spectral": np.inf}


@dataclass(frozen=True)
class AlignedDistance(DataDistance):
    """A distance between two N×N operators with aligned rows."""

    paired_rows: ClassVar[bool] = True
    kinds: ClassVar[tuple[str, ...]] = KINDS
    cost: ClassVar[str] = "O(N³) per dataset and pair, 40 N² bytes"

    gamma: float | None = None  # on the diagonal; None means 1e-8, and 0 for kind `spd`
    kernel: KernelSettings = field(default_factory=KernelSettings)

    def __post_init__(self) -> None:
        if self.gamma is not None:
            _check.real_number("gamma", self.gamma, minimum=0.0)
        if self.kernel.robust:
            raise InputError(
                f"robust=True drops rows of each dataset by itself, and distance {self.name!r} "
                "compares row i with row i. Drop the same rows of all datasets first."
            )

    def content(self, dataset: Dataset, seed: int) -> Any:
        """Return what `between` needs of W + γI, (N, N)."""
        default = 0.0 if dataset.kind == "spd" else GAMMA
        with one_blas():
            operator = operator_of(dataset, self.kernel)[0]
            W = operator.to_dense()
            W[np.diag_indices_from(W)] += default if self.gamma is None else self.gamma
            return self.transform(W, dataset.label, definite=operator.definite)

    def objection(self, first: Facts, second: Facts) -> str | None:
        """Return why the distance does not apply to this pair, or None."""
        special = {"spd": "a matrix taken as it is", "graph": "the heat kernel of a graph"}
        made = [special.get(dataset.kind, "a diffusion operator") for dataset in (first, second)]
        if made[0] != made[1]:
            return (
                f"it compares operators of one kind, and {first.label} is {made[0]} where "
                f"{second.label} is {made[1]}"
            )
        return super().objection(first, second)

    def transform(self, W: FloatArray, label: str, *, definite: bool) -> Any:
        """Return what depends on one operator only; it may be indefinite if not `definite`."""
        return W

    def compare(self, first: DataDescriptor, second: DataDescriptor) -> float:
        """Return the distance between two descriptors."""
        with one_blas():
            return super().compare(first, second)


@dataclass(frozen=True)
class Euclidean(AlignedDistance):
    r"""The Euclidean distance of aligned operators, :math:`\|W_1 - W_2\|_F` (Appendix B.3).

    Not squared (Arsigny et al., 2006). O(N² d) per dataset, O(N²) per pair.

    Parameters
    ----------
    gamma
        γ on the diagonal; None means 1e-8, and 0 for kind `spd`.
    kernel
        Its fields are options of the distance: see `KernelSettings`.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> W1, W2 = (ua.Dataset(np.diag(values), kind="spd") for values in ([1.0, 0.5], [0.25, 0.5]))
    >>> round(ua.distance(W1, W2, "euclidean"), 6)  # 1 - 1/4
    0.75
    """

    name = "euclidean"
    summary = "Frobenius norm of the difference of aligned operators"
    cost = "O(N² d) per dataset, O(N²) per pair, 36 N² bytes"

    def between(self, first: DataDescriptor, second: DataDescriptor) -> float:
        """Return the Frobenius norm of the difference."""
        # BLAS scales the norm of a vector; that of a matrix would overflow.
        return float(scaled_norm((first.content - second.content).ravel()))


@dataclass(frozen=True)
class LogEuclidean(AlignedDistance):
    r"""The log-Euclidean distance of aligned operators.

    The root of Eq. 5 of the paper,

    .. math:: d = \|\log W_1 - \log W_2\|_F

    (Arsigny et al., 2006); not squared. `les` is a lower bound under any alignment. One
    decomposition, O(N³), per dataset, and O(N²) per pair.

    Parameters
    ----------
    gamma
        γ on the diagonal; None means 1e-8, and 0 for kind `spd`.
    kernel
        Its fields are options of the distance: see `KernelSettings`.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> W1, W2 = (ua.Dataset(np.diag(values), kind="spd") for values in ([1.0, 0.5], [0.25, 0.5]))
    >>> round(ua.distance(W1, W2, "log-euclidean"), 6)  # log 4
    1.386294
    """

    name = "log-euclidean"
    summary = "log-Euclidean distance of aligned operators (Eq. 5)"

    def transform(self, W: FloatArray, label: str, *, definite: bool) -> FloatArray:
        """Return the matrix logarithm, by eigenvectors."""
        eigenvalues, U = eigh(W)
        if is_singular(eigenvalues):
            raise _not_positive(eigenvalues[0], label)
        return np.asarray((U * np.log(eigenvalues)) @ U.T)

    def between(self, first: DataDescriptor, second: DataDescriptor) -> float:
        """Return the Frobenius norm of the difference of logarithms."""
        return float(np.linalg.norm(first.content - second.content))


@dataclass(frozen=True)
class AffineInvariant(AlignedDistance):
    r"""The affine-invariant distance of aligned operators (Pennec et al., 2006).

    .. math:: d = \|\log(W_1^{-1/2} W_2 W_1^{-1/2})\|_F = \Big(\sum_i \log^2 \mu_i\Big)^{1/2}

    with μ the generalised eigenvalues of (W₂, W₁). The paper prints
    :math:`\|\log(W_1^{-1} W_2)\|_F`, which as the norm of a non-symmetric matrix is another
    number. μ itself is accurate to four digits for operators of condition 10⁸, so η =
    (μ - 1) / (μ + 1) is computed, the eigenvalues of (W₂ - W₁, W₂ + W₁), and
    log μ = 2 artanh η. If some \|η\| is within 1e-8 of 1, μ is p / q with p and q the eigenvalues
    of (W₂, W₁ + W₂) and (W₁, W₁ + W₂), which are accurate at both ends. Operators are divided by
    their mean diagonal first, so that μ is around 1 in any unit. One eigenvalue problem per
    pair, O(N³); five if some \|η\| is close to 1.

    Parameters
    ----------
    gamma
        γ on the diagonal; None means 1e-8, and 0 for kind `spd`.
    kernel
        Its fields are options of the distance: see `KernelSettings`.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> W1, W2 = (ua.Dataset(np.diag(values), kind="spd") for values in ([1.0, 0.5], [0.25, 0.5]))
    >>> round(ua.distance(W1, W2, "affine-invariant"), 6)  # log 4
    1.386294
    """

    name = "affine-invariant"
    summary = "affine-invariant distance of aligned operators"

    def transform(self, W: FloatArray, label: str, *, definite: bool) -> tuple[FloatArray, float]:
        """Return the operator over its mean diagonal, and the logarithm of the latter."""
        unit = float(np.trace(W)) / len(W)
        if not unit > 0:
            raise _not_positive(eigvalsh(W)[0], label)
        W /= unit
        return W, float(np.log(unit))

    def arrays(self, content: tuple[FloatArray, float]) -> tuple[FloatArray, ...]:
        """Return the operator over its mean diagonal, and the logarithm of the latter."""
        return content[0], np.array([content[1]])

    def between(self, first: DataDescriptor, second: DataDescriptor) -> float:
        """Return the norm of the logarithms of the generalised eigenvalues."""
        (W1, log_unit1), (W2, log_unit2) = first.content, second.content
        factor, failed = dpotrf((W1 + W2).T, lower=1, clean=0, overwrite_a=1)
        if failed or is_singular(factor.diagonal() ** 2):  # pivots lie between the eigenvalues
            spectra = [(eigvalsh(operator.content[0]), operator) for operator in (first, second)]
            own, worse = min(spectra, key=lambda found: found[0][0] / found[0][-1])
            raise _not_positive(own[0] * np.exp(worse.content[1]), worse.label)
        reduced, _ = dsygst((W2 - W1).T, factor, lower=1, overwrite_a=1)
        ratios = eigvalsh(reduced)  # reads the lower half
        # Up to here η leaves nine digits to its logarithm, as it does for points with γ = 1e-8.
        if np.abs(ratios).max() < 1.0 - 1e-8:
            logarithms = 2.0 * np.arctanh(ratios)
        else:
            shares1, shares2 = (_shares(operator, factor) for operator in (first, second))
            logarithms = np.log(shares2) - np.log(shares1[::-1])
        return float(np.linalg.norm(logarithms + log_unit2 - log_unit1))


def _shares(operator: DataDescriptor, factor: FloatArray) -> FloatArray:
    """Return the eigenvalues of (W, W₁ + W₂), ascending, (N,); raise if W is singular."""
    W, log_unit = operator.content
    own = eigvalsh(W)
    if is_singular(own):
        raise _not_positive(own[0] * np.exp(log_unit), operator.label)
    reduced, _ = dsygst(W.T, factor, lower=1)
    # The trace of the sum is 2 N, so no exact share is below this bound.
    return np.asarray(np.maximum(eigvalsh(reduced), own[0] / (2.0 * len(W))))


def _not_positive(smallest: float, label: str) -> InputError:
    return InputError(
        f"{label}: the operator has the eigenvalue {smallest:g}, and a logarithm needs clearly "
        "positive ones. Give a larger gamma."
    )


@dataclass(frozen=True)
class SpectralGW(AlignedDistance):
    r"""The spectral Gromov-Wasserstein distance of aligned operators (Mémoli, 2011).

    .. math:: d = \sup_{t>0} e^{-(t + 1/t)} \|W_1^t - W_2^t\|

    as in Appendix B.3, over 256 times from 0.1 to 10. The paper does not name the norm;
    Frobenius is the default. With :math:`W_k = U_k \Lambda_k U_k^T`, once per dataset, and
    :math:`C = U_1^T U_2`,

    .. math:: \|W_1^t - W_2^t\| = \|\Lambda_1^t C - C \Lambda_2^t\|

    so all times share one product: O(N³) per pair and O(N²) per time. The other norms take O(N³)
    at the times that the Frobenius norm does not exclude.

    Parameters
    ----------
    gamma
        γ on the diagonal; None means 1e-8, and 0 for kind `spd`.
    kernel
        Its fields are options of the distance: see `KernelSettings`.
    norm
        `"frobenius"`, `"nuclear"` (bounded from below by heat traces) or `"spectral"`.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> W1, W2 = (ua.Dataset(np.diag(values), kind="spd") for values in ([1.0, 0.5], [0.25, 0.5]))
    >>> round(ua.distance(W1, W2, "spectral-gw"), 6)  # (1 - 1/4ᵗ) exp(-t - 1/t) at its largest
    0.106108
    """

    name = "spectral-gw"
    summary = "sup over t of the distance of aligned heat kernels"
    cost = "O(N³) per dataset and pair, 256 N² operations, 45 N² bytes"

    norm: str = "frobenius"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check.one_of("norm", self.norm, _NORMS)

    def transform(self, W: FloatArray, label: str, *, definite: bool) -> Any:
        """Return eigenvalues, clipped at 0, and eigenvectors."""
        eigenvalues, U = eigh(W)
        if not definite:
            warn_if_indefinite(negative_mass(eigenvalues), label, metric=self.kernel.metric)
        return np.maximum(eigenvalues, 0.0), U

    def arrays(self, content: tuple[FloatArray, FloatArray]) -> tuple[FloatArray, ...]:
        """Return both."""
        return content

    def between(self, first: DataDescriptor, second: DataDescriptor) -> float:
        """Return the supremum over all times, in the order of an upper bound."""
        (values1, U1), (values2, U2) = first.content, second.content
        C = U1.T @ U2
        # In units of the largest eigenvalue no power overflows; the weights restore the unit.
        unit = max(float(values1[-1]), float(values2[-1])) or 1.0
        require_powers(unit)
        powers1, powers2 = ((values / unit) ** TIMES[:, None] for values in (values1, values2))
        weights = np.exp(TIMES * np.log(unit) - (TIMES + 1.0 / TIMES))
        bounds = weights * self._upper_bounds(powers1, powers2, C)
        best = 0.0
        for i in np.argsort(-bounds):
            if bounds[i] <= best:  # no later time can exceed it
                break
            if self.norm == "frobenius":
                value = np.linalg.norm((powers1[i][:, None] - powers2[i]) * C)
            else:
                difference = np.diag(powers1[i]) - (C * powers2[i]) @ C.T
                value = np.linalg.norm(eigvalsh(difference), _NORMS[self.norm])
            best = max(best, float(weights[i]) * float(value))
        return best

    def _upper_bounds(self, powers1: FloatArray, powers2: FloatArray, C: FloatArray) -> FloatArray:
        """Return upper bounds of the norm of W₁ᵗ - W₂ᵗ for all times, (256,)."""
        # The Frobenius norm bounds the spectral one, and √N times it the nuclear one. Its square
        # is a difference of traces, so the possible cancellation is added.
        own = (powers1**2).sum(axis=1) + (powers2**2).sum(axis=1)
        cross = np.einsum("ti,ti->t", powers1 @ C**2, powers2)
        rounding = 1e-15 * len(C) * own
        bounds: FloatArray = np.sqrt(np.maximum(own - 2.0 * cross, 0.0) + rounding)
        if self.norm == "nuclear":
            traces = powers1.sum(axis=1) + powers2.sum(axis=1)
            bounds = np.minimum(np.sqrt(len(C)) * bounds, traces)
        return bounds
