"""Store: signatures kept in one file, and searched."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from .. import _check
from ..errors import counted
from . import file as _file
from . import records as _rows
from . import search as _search
from .records import Record
from .search import Neighbour

if TYPE_CHECKING:  # what computes signatures comes when one is to be computed
    import pandas as pd

    from ..inputs import DataLike
    from ..spectra.signature import Recipe, Signature

__all__ = ["Neighbour", "Record", "Store"]


class Store:
    """Signatures in one SQLite file, with tags, to be searched for the nearest.

    All signatures of a store were made alike (`recipe`, K), so that any two may be compared:
    the first one decides. Every change is atomic and on disk when the method returns; any
    number of threads and processes of one machine may read and write at once.

    Parameters
    ----------
    path
        The file; made where it is missing. A store of an older version is brought up to date, a
        newer one refused.
    create
        False refuses a file that is missing.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import unaligned as ua
    >>> rng = np.random.default_rng(0)
    >>> store = ua.Store(Path(tempfile.mkdtemp()) / "references.db")
    >>> for n in (1, 2, 3):
    ...     cloud = ua.signature(rng.normal(size=(99, n)), n_eigenvalues=20)
    ...     added = store.add(cloud, name=f"{n}-d", tags={"even": n == 2})
    >>> [near.name for near in store.nearest(rng.normal(size=(99, 3)), k=2)]
    ['3-d', '2-d']
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = True) -> None:
        self.path: Path = _check.file_path("path", path)
        _file.prepare(self.path, create=create)

    def add(
        self,
        signature: Signature,
        *,
        name: str | None = None,
        tags: Mapping[str, Any] | None = None,
        replace: bool = False,
    ) -> bool:
        """Keep a signature, and return whether it is new.

        A name that is there already with the same data made the same way stays as it is (tags
        are added to those it has); with other data it is refused, or with `replace` replaced.

        Parameters
        ----------
        signature
            Made as those that are there; otherwise RecipeMismatchError says what differs.
        name
            How it is called here; None takes its own name.
        tags
            Such as `{"tissue": "liver"}`; values are kept as text.
        """
        return self.extend([signature], names=[name], tags=tags, replace=replace) == 1

    def extend(
        self,
        signatures: Iterable[Signature],
        *,
        names: Iterable[str | None] | None = None,
        tags: Mapping[str, Any] | None = None,
        replace: bool = False,
    ) -> int:
        """Keep many signatures at once, all or none, and return how many are new.

        Other processes wait meanwhile; where signatures take long to compute, `add` each.
        """
        labels = _rows.as_text(tags)
        called = repeat(None) if names is None else names
        with _file.transaction(self.path, write=True) as db:
            return sum(
                _rows.insert(db, signature, name, labels, replace)
                for signature, name in zip(signatures, called, strict=names is not None)
            )

    def tag(self, name: str, tags: Mapping[str, Any]) -> None:
        """Add tags to those of a signature."""
        with _file.transaction(self.path, write=True) as db:
            _rows.require(db, name, self.path)
            _rows.add_tags(db, name, _rows.as_text(tags))

    def get(self, name: str) -> Signature:
        """Return a signature as it was added; `store[name]` does the same."""
        with _file.transaction(self.path) as db:
            _rows.require(db, name, self.path)
            return _rows.restore(db, name, self.path)

    def find(self, name: str) -> Record | None:
        """Return what is known of a signature without its values, or None."""
        with _file.transaction(self.path) as db:
            return _rows.find(db, name)

    def remove(self, *names: str) -> None:
        """Remove signatures, all of these or none."""
        with _file.transaction(self.path, write=True) as db:
            for name in names:
                _rows.require(db, name, self.path)
                db.execute("DELETE FROM signatures WHERE name = ?", (name,))

    def names(self, tags: Mapping[str, Any] | None = None) -> list[str]:
        """Return the names of those that have all these tags, in the order they were added."""
        return [record.name for record in self.records(tags)]

    def records(self, tags: Mapping[str, Any] | None = None) -> list[Record]:
        """Return what is known of those that have all these tags, in the order of adding."""
        with _file.transaction(self.path) as db:
            return _rows.records(db, tags)

    def to_frame(self, tags: Mapping[str, Any] | None = None) -> pd.DataFrame:
        """Return what is known of those that have all these tags as a DataFrame by name.

        A column for each tag, named `tag:organ`; NaN where a signature lacks it.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import unaligned as ua
        >>> store = ua.Store(Path(tempfile.mkdtemp()) / "references.db")
        >>> made = ua.signature(np.random.default_rng(0).normal(size=(99, 3)), n_eigenvalues=20)
        >>> store.add(made, name="liver 1", tags={"organ": "liver"})
        True
        >>> store.to_frame()[["n_samples", "tag:organ"]].to_dict("index")
        {'liver 1': {'n_samples': 99, 'tag:organ': 'liver'}}
        """
        from .export import frame

        return frame(self.records(tags))

    @property
    def recipe(self) -> Recipe | None:
        """What all signatures here were made with; None while there is none."""
        with _file.transaction(self.path) as db:
            found = _rows.pattern(db)
        return None if found is None else found[0]

    @property
    def options(self) -> dict[str, Any]:
        """What `ua.signature` must be given for a signature that fits; empty while all do.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import unaligned as ua
        >>> store = ua.Store(Path(tempfile.mkdtemp()) / "references.db")
        >>> points = np.random.default_rng(0).normal(size=(99, 3))
        >>> store.add(ua.signature(points, n_eigenvalues=20, gamma=1e-6), name="first")
        True
        >>> ua.signature(points[:50], **store.options)
        Signature(K=20, gamma=1e-06, 50 × 3, ...)
        """
        with _file.transaction(self.path) as db:
            found = _rows.pattern(db)
        return {} if found is None else _rows.options_of(*found)

    def nearest(
        self,
        data: DataLike,
        k: int = 5,
        *,
        aggregate: str | None = None,
        by: str | None = None,
        tags: Mapping[str, Any] | None = None,
        subsample: int | str | None = None,
    ) -> list[Neighbour]:
        """Return the k nearest references by LES, the nearest first.

        Every distance is worked out, O(n K): 100,000 references of 200 values take about 0.2 s.
        Sizes so different that they decide the distances are a `SampleSizeWarning`; another
        number of columns than all references have is a `DataWarning`.

        Parameters
        ----------
        data
            A `Signature`, or what `ua.signature` takes: then it is made as those here were.
        k
            How many.
        aggregate
            `"mean"`, `"min"` or `"max"`: how unlike groups of references are (Section 5.3).
        by
            The tag whose values make the groups; None makes one group of all.
        tags
            Only references that have all these tags.
        subsample
            Draw so many rows of the data first; `"common"`: as many as the smallest of these
            references has.
        """
        from . import additions as _new  # and with it what computes signatures

        k = _check.positive_int("k", k)
        _search.require_possible(aggregate, by)
        mine = _new.described(self, data, subsample, tags)
        with _file.transaction(self.path) as db:
            _rows.require_fitting(db, mine, "This signature does not fit the store")
            ids, distances = _search.scan(db, mine.values, tags)
            _new.warn_of_differences(db, mine, self.path, tags, of_data=mine is not data)
            if aggregate is None:
                return _search.single(db, mine, ids, distances, k)
            return _search.groups(db, mine, ids, distances, by, aggregate)[:k]

    def export(
        self, path: str | os.PathLike[str], *, tags: Mapping[str, Any] | None = None
    ) -> int:
        """Write the signatures to a .csv, .json or .npz file, and return how many they are.

        A table with a row per signature; in JSON and NPZ with eigenvalues and recipe.
        """
        from .export import writer  # when it is asked for

        write = writer(path)
        with _file.transaction(self.path) as db:
            records = _rows.records(db, tags)
            pairs = [(record, _rows.restore(db, record.name, self.path)) for record in records]
        write(path, pairs)
        return len(pairs)

    def __getitem__(self, name: str) -> Signature:
        """Return a signature by its name, as `get` does."""
        return self.get(name)

    def __len__(self) -> int:
        with _file.transaction(self.path) as db:
            count: int = db.execute("SELECT count(*) FROM signatures").fetchone()[0]
        return count

    def __contains__(self, name: object) -> bool:
        with _file.transaction(self.path) as db:
            return _rows.has(db, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing stays open between calls."""

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r}, {counted(len(self), 'signature')})"
