"""The nearest of all references, and of groups of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .._check import FloatArray, IndexArray
from ..errors import InputError
from .records import NUMBER, where

if TYPE_CHECKING:
    from ..spectra.signature import Signature

_ROWS = 2048  # at a time: a few MB, which stay in the processor's cache


@dataclass(frozen=True)
class Neighbour:
    """A reference, or a group of them, and how far away it is.

    Attributes
    ----------
    name
        The name of the reference, or the group's value of the tag that makes groups.
    distance, error_bound
        The LES distance, or its mean, minimum or maximum over the group; the true one is no
        further away than the bound.
    tags
        The tags of the reference, or the one that makes the group.
    n_references
        The size of the group; 1 for a single reference.
    n_samples
        The rows of the reference; None for a group.
    """

    name: str
    distance: float
    error_bound: float
    tags: Mapping[str, str] = field(default_factory=dict)
    n_references: int = 1
    n_samples: int | None = None


def require_possible(aggregate: str | None, by: str | None) -> None:
    """Refuse a search that could not be answered, before anything is computed."""
    from ..embedding import AGGREGATORS

    if aggregate is not None:
        _check.one_of("aggregate", aggregate, AGGREGATORS)
    elif by is not None:
        raise InputError(f"by={by!r} makes groups: say aggregate='mean', 'min' or 'max' too.")


def scan(
    db: sqlite3.Connection, values: FloatArray, tags: Mapping[str, Any] | None
) -> tuple[IndexArray, FloatArray]:
    """Return the ids of all that have these tags, and their distances (Eq. 11, its root)."""
    condition, texts = where(tags)
    chosen = f"WHERE id IN (SELECT id FROM signatures {condition})" if condition else ""
    cursor = db.execute(f"SELECT id, data FROM vectors {chosen} ORDER BY id", texts)
    ids: list[int] = []
    squares = []
    while rows := cursor.fetchmany(_ROWS):
        ids += [row[0] for row in rows]
        matrix = np.frombuffer(b"".join(row[1] for row in rows), dtype=NUMBER)
        difference = matrix.reshape(-1, values.size) - values
        squares.append(np.einsum("ij,ij->i", difference, difference))
    if not ids:
        missing = ", ".join(f"{key}={text}" for key, text in (tags or {}).items())
        raise InputError(
            f"No signature of the store has the tags {missing}."
            if missing
            else "The store is empty. Add signatures with store.add or `unaligned describe`."
        )
    return np.array(ids), np.sqrt(np.concatenate(squares))


def single(
    db: sqlite3.Connection, mine: Signature, ids: IndexArray, distances: FloatArray, k: int
) -> list[Neighbour]:
    """Return the k nearest, equal ones in the order of adding."""
    found = []
    for i in np.argsort(distances, kind="stable")[:k]:
        name, bound, tags, n_samples = db.execute(
            "SELECT name, error_bound, tags, n_samples FROM signatures WHERE id = ?",
            (int(ids[i]),),
        ).fetchone()
        bound += mine.total_error_bound
        known = {"tags": json.loads(tags), "n_samples": n_samples}
        found.append(Neighbour(name, float(distances[i]), bound, **known))
    return found


def groups(
    db: sqlite3.Connection,
    mine: Signature,
    ids: IndexArray,
    distances: FloatArray,
    by: str | None,
    how: str,
) -> list[Neighbour]:
    """Return the groups that a tag makes, the nearest first; without one all are one group."""
    from ..embedding import AGGREGATORS

    combine = AGGREGATORS[how]
    bounds = dict(db.execute("SELECT id, error_bound FROM signatures").fetchall())
    labels = dict.fromkeys(bounds, "all") if by is None else _labels(db, by)
    places: dict[str, list[int]] = {}
    for place, key in enumerate(ids.tolist()):
        if key in labels:
            places.setdefault(labels[key], []).append(place)
    if not places:
        raise InputError(f"by={by!r} makes no groups: no signature chosen has this tag.")
    found = []
    for name, inside in places.items():
        bound = max(bounds[int(key)] for key in ids[inside]) + mine.total_error_bound
        tags = {} if by is None else {by: name}
        value = float(combine(distances[inside]))
        found.append(Neighbour(name, value, bound, tags, len(inside)))
    return sorted(found, key=lambda group: group.distance)


def _labels(db: sqlite3.Connection, by: str) -> dict[int, str]:
    """Return the value of a tag for every row that has it."""
    rows = db.execute(
        """SELECT signatures.id, label.value FROM signatures, json_each(signatures.tags) AS label
        WHERE label.key = ?""",
        (by,),
    )
    return dict(rows.fetchall())
