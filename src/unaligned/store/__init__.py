"""Store: signatures in one SQLite file, with tags and nearest-neighbour search."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from .. import _check
from ..errors import counted
from . import records
from .file import prepare, transaction
from .records import Neighbour, Record

if TYPE_CHECKING:  # `unaligned list` must not import what computes signatures
    import pandas as pd

    from ..inputs import DataLike
    from ..spectra.signature import Recipe, Signature

__all__ = ["Neighbour", "Record", "Store"]


class Store:
    """A collection of signatures in one SQLite file, with tags, for nearest-neighbour search.

    All signatures of a store have the recipe and the K of the first, so that any two can be
    compared. Every change is atomic and on disk when the method returns; threads and processes
    of one machine may read and write concurrently.

    Parameters
    ----------
    path
        The file, created if missing; files of older versions are upgraded.
    create
        Create the file; otherwise a missing file is an error.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import unaligned as ua
    >>> rng = np.random.default_rng(0)
    >>> store = ua.Store(f"{tempfile.mkdtemp()}/references.db")
    >>> for n in (1, 2, 3):
    ...     cloud = ua.signature(rng.normal(size=(99, n)), n_eigenvalues=20)
    ...     added = store.add(cloud, name=f"{n}-d", tags={"even": n == 2})
    >>> [near.name for near in store.nearest(rng.normal(size=(99, 3)), k=2)]
    ['3-d', '2-d']
    >>> store.to_frame()[["n_samples", "tag:even"]].to_dict("index")["2-d"]
    {'n_samples': 99, 'tag:even': 'True'}
    >>> ua.signature(rng.normal(size=(50, 4)), **store.options)
    Signature(K=20, gamma=1e-08, 50 × 4, ...)
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = True) -> None:
        self.path: Path = _check.file_path("path", path)
        prepare(self.path, create=create)

    def add(
        self,
        signature: Signature,
        *,
        name: str | None = None,
        tags: Mapping[str, Any] | None = None,
        replace: bool = False,
    ) -> bool:
        """Add a signature, and return whether it is new.

        If the store has the same signature under this name, only the tags are added to it.

        Parameters
        ----------
        signature
            Of the same recipe and K as the others, otherwise RecipeMismatchError is raised.
        name
            Its name in the store; None takes `signature.name`.
        tags
            Such as `{"tissue": "liver"}`; values are stored as text.
        replace
            Replace another signature of this name, which is an error otherwise.

        Returns
        -------
        bool
            False if the store had it under this name.
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
        """Add all signatures or none, and return how many are new; other processes wait.

        Parameters
        ----------
        signatures
            As for `add`, of one recipe and K.
        names
            One per signature, None for its own; None takes the own name of each.
        tags, replace
            As for `add`, the same for all.

        Returns
        -------
        int
            The number that the store did not have.
        """
        labels = records.as_text(tags)
        called = repeat(None) if names is None else names
        with transaction(self.path, write=True) as db:
            return sum(
                records.insert(db, signature, name, labels, replace)
                for signature, name in zip(signatures, called, strict=names is not None)
            )

    def tag(self, name: str, tags: Mapping[str, Any]) -> None:
        """Add tags to those of a signature.

        Parameters
        ----------
        name
            The name of the signature.
        tags
            As for `add`; the value of a tag that is there is replaced.
        """
        with transaction(self.path, write=True) as db:
            records.require(db, name)
            records.add_tags(db, name, records.as_text(tags))

    def get(self, name: str) -> Signature:
        """Return a signature; same as `store[name]`.

        Parameters
        ----------
        name
            The name of the signature; an unknown one raises InputError.

        Returns
        -------
        Signature
            As it was added, under its name in the store.
        """
        with transaction(self.path) as db:
            records.require(db, name)
            return records.restore(db, name)

    def find(self, name: str) -> Record | None:
        """Return the record of a signature, or None if there is none of this name.

        Parameters
        ----------
        name
            The name of the signature.

        Returns
        -------
        Record or None
            Without its values.
        """
        _check.utf8_text("name", name)
        with transaction(self.path) as db:
            return next(iter(records.select(db, "WHERE name = ?", [name])), None)

    def remove(self, *names: str) -> None:
        """Remove all of these signatures or none.

        Parameters
        ----------
        *names
            The names of the signatures.
        """
        with transaction(self.path, write=True) as db:
            for name in names:
                records.require(db, name)
                db.execute("DELETE FROM signatures WHERE name = ?", (name,))

    def names(self, tags: Mapping[str, Any] | None = None) -> list[str]:
        """Return the names of the signatures with all these tags, in the order of adding.

        Parameters
        ----------
        tags
            Such as `{"tissue": "liver"}`; None takes all signatures.

        Returns
        -------
        list
            The names.
        """
        return [record.name for record in self.records(tags)]

    def records(self, tags: Mapping[str, Any] | None = None) -> list[Record]:
        """Return the records of the signatures with all these tags, in the order of adding.

        Parameters
        ----------
        tags
            As for `names`.

        Returns
        -------
        list
            A `Record` of each.
        """
        with transaction(self.path) as db:
            return records.select(db, *records.where(tags))

    def to_frame(self, tags: Mapping[str, Any] | None = None) -> pd.DataFrame:
        """Return the records as a DataFrame by name, with a column `tag:…` for each tag.

        Parameters
        ----------
        tags
            As for `names`.

        Returns
        -------
        pandas.DataFrame
            One row per signature.
        """
        return records.frame(self.records(tags))

    @property
    def recipe(self) -> Recipe | None:
        """The recipe of all signatures, None if the store is empty."""
        with transaction(self.path) as db:
            return records.recipe_and_k(db)[0]

    @property
    def options(self) -> dict[str, Any]:
        """Options of `ua.signature` for signatures of this store, {} if the store is empty."""
        with transaction(self.path) as db:
            recipe, k = records.recipe_and_k(db)
        return {} if recipe is None else recipe.options(k)

    def nearest(
        self,
        data: DataLike,
        k: int = 5,
        *,
        aggregate: str | None = None,
        by: str | None = None,
        tags: Mapping[str, Any] | None = None,
        subsample: int | str | None = None,
        max_distance: float | None = None,
    ) -> list[Neighbour]:
        """Return the k nearest references by LES, the nearest first.

        Computes all n distances, O(n K): about 0.2 s for 100,000 references of 200 values.
        Warns (`SampleSizeWarning`) if sample sizes differ so much that they bias the distances,
        and (`DataWarning`) if all references have another number of columns than the data.

        Parameters
        ----------
        data
            A `Signature`, or data for `ua.signature`, which gets the options of the store.
        k
            Number of neighbours.
        aggregate
            `"mean"`, `"min"` or `"max"`: rank groups of references by it (Section 5.3).
        by
            The tag whose values form the groups; None forms one group.
        tags
            Search only references with all these tags.
        subsample
            Rows of the data to draw first. `"common"` compares at one size on both sides, that of
            the smallest, the data included: references that are larger are read again from their
            files, which `unaligned describe` records, and as many of their rows are drawn.
        max_distance
            Leave out references, or groups, that are farther away.

        Returns
        -------
        list
            Up to k `Neighbour`, which are references, or groups of them.
        """
        from .search import nearest  # imports what computes signatures

        k = _check.positive_int("k", k)
        return nearest(
            self,
            data,
            k,
            aggregate=aggregate,
            by=by,
            tags=tags,
            subsample=subsample,
            max_distance=max_distance,
        )

    def export(
        self, path: str | os.PathLike[str], *, tags: Mapping[str, Any] | None = None
    ) -> int:
        """Write the signatures to a .csv, .json or .npz file, and return their number.

        JSON and NPZ contain eigenvalues and recipe too.

        Parameters
        ----------
        path
            The file; its suffix gives the format.
        tags
            As for `names`.

        Returns
        -------
        int
            The number of signatures written.
        """
        write = records.WRITERS[_check.suffix_of("path", path, records.WRITERS)]
        with transaction(self.path) as db:
            found = records.select(db, *records.where(tags))
            pairs = [(record, records.restore(db, record.name)) for record in found]
        write(path, pairs)
        return len(pairs)

    def __getitem__(self, name: str) -> Signature:
        return self.get(name)

    def __len__(self) -> int:
        with transaction(self.path) as db:
            count: int = db.execute("SELECT count(*) FROM signatures").fetchone()[0]
        return count

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.find(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: no file stays open between calls."""

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r}, {counted(len(self), 'signature')})"
