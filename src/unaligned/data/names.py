"""Names of columns and rows: which of those that a table or a file brings can be relied on."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

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
