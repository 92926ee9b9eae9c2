"""What is known of a dataset without its values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .names import Names


class Facts(NamedTuple):
    """What decides whether a distance applies; kept where the data itself is not.

    Attributes
    ----------
    label
        What messages call the dataset.
    kind, n_samples, n_features, preprocess, n_dropped, feature_names, sample_names
        As `Dataset` has them.

    Examples
    --------
    >>> facts = Facts("dataset 'x'", "points", 99, 3, ("log1p",), feature_names=("a", "b", "c"))
    >>> Facts.from_header(facts.to_header()) == facts
    True
    """

    label: str
    kind: str
    n_samples: int
    n_features: int
    preprocess: tuple[str, ...] = ()
    n_dropped: int = 0
    feature_names: Names = None
    sample_names: Names = None

    def without_samples(self) -> Facts:
        """Return the facts without the names of rows, of which there may be a million."""
        return self._replace(sample_names=None)

    def to_header(self) -> dict[str, Any]:
        """Return the facts as plain words and numbers, for a file."""
        return self._asdict()

    @staticmethod
    def from_header(header: Mapping[str, Any]) -> Facts:
        """Return the facts that `to_header` took apart; JSON has lists for tuples."""
        plain = (tuple(part) if isinstance(part, list) else part for part in header.values())
        parts: dict[str, Any] = dict(zip(header, plain, strict=True))
        return Facts(**parts)
