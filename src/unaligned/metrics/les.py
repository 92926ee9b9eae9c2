"""The log-Euclidean signature distance (Eq. 11)."""

from dataclasses import dataclass

import numpy as np

from .. import _check
from .._check import FloatArray
from ..spectra.signature import Signature
from .base import SpectralDistance


@dataclass(frozen=True)
class LES(SpectralDistance):
    r"""The log-Euclidean signature distance.

    The root of Eq. 11 of the paper,

    .. math:: d^2 = \sum_{i=1}^K
              (\log(\lambda^{(1)}_i + \gamma) - \log(\lambda^{(2)}_i + \gamma))^2

    A lower bound of the log-Euclidean distance of the two diffusion operators under any
    alignment (Proposition 1). Not a metric: isospectral datasets have distance 0. The root is
    that of the authors' code. O(K) per pair.

    Parameters
    ----------
    settings
        Its fields are options of the distance: see `SignatureSettings`.
    squared
        Return the square, which is Eq. 11 as printed.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> rng = np.random.default_rng(0)
    >>> line, ball = rng.normal(size=(200, 1)), rng.normal(size=(300, 3))
    >>> d = ua.distance(line, ball, "les", n_eigenvalues=50)
    >>> abs(ua.distance(line, ball, "les", n_eigenvalues=50, squared=True) - d**2) < 1e-9
    True
    """

    name = "les"
    summary = "log-Euclidean distance of diffusion spectra (Eq. 11): shape, in any feature space"
    cost = "one spectrum per dataset, then K operations per pair"

    squared: bool = False

    def __post_init__(self) -> None:
        _check.flag("squared", self.squared)

    def between(self, first: Signature, second: Signature) -> float:
        """Return the distance between two comparable signatures."""
        distance = float(np.linalg.norm(first.values - second.values))
        return distance**2 if self.squared else distance

    def vector(self, descriptor: Signature) -> FloatArray:
        """Return the signature log(λ + γ), (K,)."""
        return descriptor.values

    def error_bound(self, first: Signature, second: Signature) -> float:
        """Return the sum of the two signatures' bounds, or the bound it implies for the square."""
        bound = first.total_error_bound + second.total_error_bound
        if not self.squared:
            return bound
        distance = float(np.linalg.norm(first.values - second.values))
        return bound * (2.0 * distance + bound)
