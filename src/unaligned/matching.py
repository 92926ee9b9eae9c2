"""Which reference is nearest to each dataset, and by what margin (Appendix E)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _check
from ._check import FloatArray, IndexArray
from .errors import InputError, required

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Match:
    r"""The nearest reference of each dataset, such as each layer of a network.

    Attributes
    ----------
    names, reference_names
        The datasets and the references, in their order.
    distances
        Shape (n, m).
    distance_label
        The name of the distance.
    expected
        The position of the right reference of each dataset, (n,); None where it is not known.

    Examples
    --------
    >>> import numpy as np
    >>> from unaligned.matching import Match
    >>> D = np.array([[1.0, 4.0, 9.0], [4.0, 2.0, 5.0], [9.0, 4.0, 1.0]])
    >>> names = ("conv1", "conv2", "fc")
    >>> match = Match(names, names, D, "les", np.arange(3))
    >>> match.accuracy, match.nearest["fc"], match.margin(1)
    (1.0, 'fc', 2.0)
    """

    names: tuple[str, ...]
    reference_names: tuple[str, ...]
    distances: FloatArray
    distance_label: str
    expected: IndexArray | None = None

    @property
    def positions(self) -> IndexArray:
        """The position of the nearest reference of each dataset, (n,)."""
        return np.asarray(self.distances.argmin(axis=1), dtype=np.int64)

    @property
    def nearest(self) -> dict[str, str]:
        """The nearest reference by dataset."""
        found = [self.reference_names[j] for j in self.positions]
        return dict(zip(self.names, found, strict=True))

    @property
    def n_correct(self) -> int:
        """The number of datasets whose nearest reference is the expected one."""
        return int((self.positions == self._expectation()).sum())

    @property
    def accuracy(self) -> float:
        """The share of datasets whose nearest reference is the expected one."""
        return self.n_correct / len(self.names)

    @property
    def margins(self) -> FloatArray:
        """The margin factors of all shifts, (n,), the first being 1."""
        return np.array([self.margin(shift) for shift in range(len(self.names))])

    def margin(self, shift: int) -> float:
        r"""Return the margin factor of layers that are `shift` apart (Appendix E).

        .. math:: \alpha_\delta = \frac{\min_{|k - j| = \delta} D_{jk}}{\max_i D_{ii}},
                  \qquad \alpha_0 = 1

        Above 1, every pair that is this far apart is farther than every pair of corresponding
        layers. Infinite where corresponding layers are equal.

        Parameters
        ----------
        shift
            How far apart, from 0 to n - 1.

        Returns
        -------
        float
            The factor α; 1 for a shift of 0.
        """
        n, m = self.distances.shape
        if n != m:
            raise InputError(
                f"margin(shift) needs as many references as datasets; there are {n} datasets and "
                f"{m} references."
            )
        size = _check.positive_int("shift", shift, minimum=0)
        if size >= n:
            raise InputError(f"shift={size} must be below the number of datasets, {n}.")
        if size == 0:
            return 1.0
        apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) == size
        smallest = float(self.distances[apart].min())
        largest = float(self.distances.diagonal().max())
        return smallest / largest if largest > 0 else np.inf

    def to_frame(self) -> pd.DataFrame:
        """Return a table: dataset, nearest reference, its distance, and the expected one.

        Returns
        -------
        pandas.DataFrame
            One row per dataset; whether it is correct where the right reference is known.
        """
        required("pandas", "pandas", "A DataFrame")
        import pandas as pd

        frame = pd.DataFrame(
            {"nearest": list(self.nearest.values()), "distance": self.distances.min(axis=1)},
            index=list(self.names),
        )
        if self.expected is not None:
            frame["expected"] = [self.reference_names[j] for j in self.expected]
            frame["correct"] = self.positions == self.expected
        return frame

    def _expectation(self) -> IndexArray:
        if self.expected is None:
            raise InputError(
                f"accuracy needs to know which reference is right: {len(self.names)} datasets and "
                f"{len(self.reference_names)} references are not matched by their order. Pass "
                "match(expected=...), a dict of dataset -> reference."
            )
        return self.expected

    def __repr__(self) -> str:
        shape = f"{len(self.names)} × {len(self.reference_names)}"
        known = "" if self.expected is None else f", {self.n_correct} of {len(self.names)} correct"
        return f"Match({self.distance_label}, {shape}{known})"


def expected_positions(
    expected: Any, names: Sequence[str], references: Sequence[str]
) -> IndexArray | None:
    """Return the positions of the right references: those given, or the order of the datasets."""
    if expected is None:
        return np.arange(len(names)) if len(names) == len(references) else None
    if isinstance(expected, Mapping):
        by_name = {str(name): right for name, right in expected.items()}
        for name in (*by_name, *names):
            _check.position("row", name, names)
            _check.position("entry of expected", name, list(by_name))
        expected = [by_name[name] for name in names]
    if isinstance(expected, str) or np.ndim(expected) != 1 or len(expected) != len(names):
        raise InputError(
            f"expected must be a dict of dataset -> reference, or one reference for each of the "
            f"{len(names)} datasets; got {_check.shape_of(expected)}."
        )
    return np.array([_check.position("column", right, references) for right in expected])
