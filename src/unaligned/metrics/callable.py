"""A user's own function as a distance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..data.dataset import Dataset
from ..errors import NumericalError
from .base import Distance


@dataclass(frozen=True)
class CallableDistance(Distance):
    """Any function of two arrays, taken as it is.

    Nothing is assumed about it: not symmetry, and not d(A, A) = 0.
    """

    name: ClassVar[str] = "callable"
    summary: ClassVar[str] = "a function of two arrays"
    cost: ClassVar[str] = "the function, once per ordered pair"
    symmetric: ClassVar[bool] = False

    function: Callable[[Any, Any], float]

    def describe(self, dataset: Dataset, seed: int) -> Any:
        """Return the preprocessed values."""
        return dataset.prepared()

    def compare(self, first: Any, second: Any) -> float:
        """Return what the function returns, as a float."""
        value = self.function(first, second)
        if np.size(value) != 1 or np.asarray(value).dtype.kind not in "biuf" or np.isnan(value):
            raise NumericalError(
                f"The distance function returned {value!r}; it must return one number."
            )
        return float(np.asarray(value).item())
