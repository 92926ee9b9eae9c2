"""All eigenvalues by LAPACK."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from .._check import FloatArray
from .._format import amount
from ..defaults import SMALL_ROWS
from ..engine.memory import available_memory
from ..engine.threads import own_threads
from ..errors import InputError
from ..operators.base import PSDOperator
from .base import Accuracy, EigenSolver, Spectrum, descending, negative_mass, rounding_error
from .prices import exact_price


@dataclass(frozen=True)
class Exact(EigenSolver):
    """All eigenvalues by LAPACK, of which the K largest are kept.

    Exact up to rounding. O(N³) time (0.3 s at N=1800, 13 s at 6000 on two cores), 8 N² bytes on
    top of the operator.

    Examples
    --------
    >>> import numpy as np
    >>> from unaligned.operators.base import MatrixOperator
    >>> from unaligned.spectra.base import Accuracy
    >>> from unaligned.spectra.exact import Exact
    >>> operator = MatrixOperator(np.diag([0.5, 1.0, 0.25]))
    >>> Exact().solve(operator, 2, Accuracy(), np.random.default_rng(0)).eigenvalues
    array([1. , 0.5])
    """

    name: ClassVar[str] = "exact"

    def require_memory(self, n_samples: int) -> None:
        """Raise InputError if the N×N matrix and the copy that LAPACK overwrites do not fit."""
        needed = 16 * n_samples**2
        if n_samples > SMALL_ROWS and needed > (there := available_memory()):
            raise InputError(
                f"solver='exact' needs {amount(needed)} for the matrix of {n_samples} rows and a "
                f"copy; {amount(there)} are available. Use solver='auto', whose values have an "
                "error bound, or a subsample of the rows."
            )

    def price(self, n_samples: int, n_eigenvalues: int, accuracy: Accuracy, storage: str) -> float:
        """Return 2.2 N³."""
        return exact_price(n_samples)

    def solve(
        self, operator: PSDOperator, n_eigenvalues: int, accuracy: Accuracy, rng: Generator
    ) -> Spectrum:
        """Return the `n_eigenvalues` largest eigenvalues; `tol` and `rng` are ignored."""
        with own_threads():
            matrix = operator.to_dense()
        # NumPy's BLAS has threads, SciPy's has not (see engine.one_blas).
        values: FloatArray = np.linalg.eigvalsh(matrix).astype(np.float64, copy=False)
        eigenvalues = descending(values)[:n_eigenvalues]
        rounding = rounding_error(operator, float(eigenvalues[0]))
        return Spectrum(
            eigenvalues,
            lower=np.maximum(eigenvalues - rounding, 0.0),
            upper=eigenvalues + rounding,
            slack=0.0,
            bound_kind="exact" if operator.definite else "none",
            solver=self.name,
            stats={"negative_mass": negative_mass(values)},
        )
