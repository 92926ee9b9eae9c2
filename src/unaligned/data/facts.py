"""What is known of a dataset without its values. Imports nothing heavy: the shell needs it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from .. import _check

Names: TypeAlias = tuple[str, ...] | None


def column_names(names: Iterable[Any] | None) -> Names:
    """Return names of columns, or None unless every one is non-empty text.

    Numbers counted from 0, which pandas and AnnData write in place of names, give None. Names
    may repeat, as gene symbols do. Strings are interned, so that equal names of many files are
    in memory once.
    """
    found = [] if names is None else list(names)
    if not found or not all(isinstance(name, str) and name for name in found):
        return None
    return None if is_counted(found) else tuple(sys.intern(str(name)) for name in found)


def row_names(index: Sequence[Any]) -> Names:
    """Return names of rows by the same rules; an index that starts with a number is not read."""
    return column_names(index) if len(index) and isinstance(index[0], str) else None


def chosen_names(names: Names, positions: Iterable[int]) -> Names:
    """Return the names at these positions."""
    return None if names is None else tuple(names[position] for position in positions)


def is_counted(names: Sequence[Any]) -> bool:
    """Return whether names are the numbers counted from 0."""
    return all(str(name) == str(i) for i, name in enumerate(names))


class Facts(NamedTuple):
    """The fields of a `Dataset` that decide whether a distance applies.

    Attributes
    ----------
    label
        The name of the dataset in messages.
    kind, n_samples, n_features, preprocess, feature_names, sample_names
        As `Dataset` has them.
    n_dropped
        The number of rows that `nan_policy="omit"` dropped.
    """

    label: str
    kind: str
    n_samples: int
    n_features: int
    preprocess: tuple[str, ...] = ()
    n_dropped: int = 0
    feature_names: Names = None
    sample_names: Names = None

    @staticmethod
    def from_header(header: Mapping[str, Any]) -> Facts:
        """Return the facts of a header; lists, which JSON has for tuples, become tuples.

        Parameters
        ----------
        header
            The fields by name.

        Returns
        -------
        Facts
            Of the dataset in a file.
        """
        lists = {name: tuple(value) for name, value in header.items() if isinstance(value, list)}
        found = {**header, **lists}
        _check.require_types(Facts, found)
        return Facts(**found)
