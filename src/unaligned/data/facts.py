"""What is known of a dataset without its values."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

Names: TypeAlias = tuple[str, ...] | None


def column_names(found: Iterable[Any] | None) -> Names:
    """Return names of columns, or None where they are not all named.

    Every name must be text and not empty. Numbers counted from 0, which pandas and AnnData write
    where there are no names, are none. A name may occur twice, as symbols of genes do: the order
    of the others still tells whether two tables agree. Equal names of many files are in memory
    once.

    Examples
    --------
    >>> column_names(["CD4", "CD8", "CD8"])
    ('CD4', 'CD8', 'CD8')
    >>> column_names(["0", "1", "2"]), column_names(["CD4", ""]), column_names([1.5, 2.5])
    (None, None, None)
    """
    names = [] if found is None else list(found)
    if not names or not all(isinstance(name, str) and name for name in names):
        return None
    if is_counted(names):
        return None
    return tuple(sys.intern(str(name)) for name in names)


def row_names(index: Sequence[Any]) -> Names:
    """Return names of rows by the same rules; of a million numbers only the first is looked at.

    Examples
    --------
    >>> row_names(["ann", "bob"]), row_names(range(10**6))
    (('ann', 'bob'), None)
    """
    return column_names(index) if len(index) and isinstance(index[0], str) else None


def chosen_names(names: Names, places: Iterable[int]) -> Names:
    """Return the names of the rows or columns that were chosen.

    Examples
    --------
    >>> chosen_names(("a", "b", "c"), [0, 2])
    ('a', 'c')
    """
    return None if names is None else tuple(names[place] for place in places)


def is_counted(names: Sequence[Any]) -> bool:
    """Return whether these are the numbers from 0 on, which name nothing."""
    return all(str(name) == str(i) for i, name in enumerate(names))


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
