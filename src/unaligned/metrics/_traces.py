"""What the distances between traces of graphs share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy.typing as npt

from ..spectra.density import Trace
from .base import Distance


class TraceDistance(Distance):
    """A distance between traces of a graph: one given, or that of nearest neighbours."""

    kinds: ClassVar[tuple[str, ...]] = ("points", "distances", "graph")
    is_descriptor: ClassVar[bool] = True

    def to_arrays(self, descriptor: Trace) -> dict[str, npt.NDArray[Any]]:
        """Return the parts of a trace."""
        return descriptor.to_arrays()

    def from_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Trace:
        """Return the trace of these parts."""
        return Trace.from_arrays(arrays)
