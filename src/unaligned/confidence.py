"""Inference: how sure the distances of a comparison are."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ._check import FloatArray
from .defaults import SIGNIFICANCE


@dataclass(frozen=True, eq=False)
class Inference:
    """How sure the distances of a comparison are, from disjoint blocks of rows.

    Attributes
    ----------
    squared
        Unbiased estimates of the squared distances of mean block signatures, the shape of
        `Comparison.distances`; see `permutation_test`.
    intervals
        95 % confidence intervals of `corrected`, (n, m, 2).
    p_values, p_holm, p_bh
        Of permutation tests, as they are and adjusted for the number of pairs (Holm, 1979;
        Benjamini and Hochberg, 1995); 1 for a dataset with itself.
    noise_floor, reference_noise_floor
        Of each dataset and reference, (n,) and (m,): the distance between the mean block
        signatures of two samples of this size, by sampling alone; on the scale of `corrected`.
    block_size, n_eigenvalues
        Rows and K of all blocks.
    n_permutations
        Per pair; all distinct ones where there are no more.
    is_approximate
        Whether a preprocessing step was fitted to each dataset as a whole.
    """

    squared: FloatArray
    intervals: FloatArray
    p_values: FloatArray
    p_holm: FloatArray
    p_bh: FloatArray
    noise_floor: FloatArray
    reference_noise_floor: FloatArray
    block_size: int
    n_eigenvalues: int | None
    n_permutations: int
    is_approximate: bool = False

    @property
    def corrected(self) -> FloatArray:
        """The distances corrected for sampling noise and size, √max(U, 0)."""
        return np.sqrt(np.maximum(self.squared, 0.0))

    @property
    def is_significant(self) -> npt.NDArray[np.bool_]:
        """Whether each difference is significant at 0.05 after Holm's adjustment."""
        return np.asarray(self.p_holm <= SIGNIFICANCE)

    def to_dict(self) -> dict[str, Any]:
        """Return all values by name, the corrected distances included.

        Returns
        -------
        dict
            Arrays stay arrays.
        """
        return {"corrected": self.corrected, **vars(self)}

    def __repr__(self) -> str:
        shape = " × ".join(map(str, self.squared.shape))
        return f"Inference({shape}, blocks of {self.block_size} rows)"
