"""The contribution of each part of the spectrum to a distance."""

from typing import NamedTuple

import numpy as np

from .._check import FloatArray
from ..spectra.signature import Signature


class Decade(NamedTuple):
    """A power of ten of the spectrum: 10^(exponent - 1) < λ + γ <= 10^exponent.

    Attributes
    ----------
    exponent
        The upper end, as a power of ten.
    n_eigenvalues
        The number of eigenvalues in it.
    share
        Their share of the squared distance, from 0 to 1.
    """

    exponent: int
    n_eigenvalues: int
    share: float


def contributions(first: Signature, second: Signature) -> FloatArray:
    """Return the squared differences of two signatures, (K,), the terms of Eq. 11 [eq:lesdist].

    Their sum is the squared LES distance. O(K).
    """
    first.require_comparable(second)
    return np.asarray((first.values - second.values) ** 2)


def decades(first: Signature, second: Signature) -> list[Decade]:
    """Return the share of each power of ten of the spectrum in the squared LES distance."""
    first.require_comparable(second)
    return decade_shares(first.values, second.values)


def decade_shares(first: FloatArray, second: FloatArray) -> list[Decade]:
    """Return the share of each decade in the squared distance of log(λ + γ), (K,) each.

    An eigenvalue belongs to the decade of the geometric mean of the two λᵢ + γ. Shares sum to 1;
    where the distance is 0 they are all 0.
    """
    squares = (first - second) ** 2
    total = float(squares.sum())
    # e of 10^(e - 1) < x <= 10^e; λ₁ + γ, slightly above 1, gets e = 0.
    of = np.ceil((first + second) / (2 * np.log(10.0)) - 1e-6).astype(np.int64)
    return [
        Decade(int(e), int((of == e).sum()), float(squares[of == e].sum()) / total if total else 0)
        for e in np.unique(of)[::-1]
    ]
