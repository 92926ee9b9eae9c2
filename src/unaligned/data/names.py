"""Names of columns: which of those that a table or a file brings can be relied on."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any


def column_names(found: Iterable[Any] | None) -> tuple[str, ...] | None:
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
    if not names or is_counted(names):
        return None
    if not all(isinstance(name, str) and name for name in names):
        return None
    return tuple(sys.intern(str(name)) for name in names)


def is_counted(names: Sequence[Any]) -> bool:
    """Return whether these are the numbers from 0 on, which name nothing."""
    return [str(name) for name in names] == [str(i) for i in range(len(names))]
