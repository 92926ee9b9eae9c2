"""Signatures as rows of a store: insert, select, restore, export."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .. import _check
from .._format import jsonable
from ..errors import (
    InputError,
    InputTypeError,
    RecipeMismatchError,
    required,
    restoring,
)
from .file import Connection

if TYPE_CHECKING:  # `unaligned list` imports nothing heavier than numpy
    import pandas as pd

    from ..spectra.signature import Recipe, Signature

DTYPE = np.dtype("<f8")  # of the arrays in the file, on every machine
_IDENTITY = ("name", "fingerprint", "n_samples", "n_features")


@dataclass(frozen=True)
class Record:
    """Facts about a stored signature, without its values.

    Attributes
    ----------
    name
        In the store.
    n_samples, n_features, n_eigenvalues
        The size of the dataset, and K.
    error_bound
        On the 2-norm of the error of the values.
    tags
        Tag -> value, both as text.
    fingerprint
        Of the data.
    created
        When it was added (ISO 8601, UTC).
    rows_drawn_from
        The number of rows before subsampling; None if there was none.
    """

    name: str
    n_samples: int
    n_features: int
    n_eigenvalues: int
    error_bound: float
    tags: Mapping[str, str]
    fingerprint: str
    created: str
    rows_drawn_from: int | None = None


@dataclass(frozen=True)
class Neighbour:
    """A reference and its LES distance, or a group of references.

    Attributes
    ----------
    name
        Of the reference; of a group, its value of the tag that forms groups.
    distance
        The LES distance; of a group, the mean, minimum or maximum over its references.
    error_bound
        A bound on the error of the distance.
    tags
        Tag -> value, both as text; of a group, the tag that forms groups.
    n_references
        The number of references in the group.
    n_samples
        The rows of the reference; None for a group.
    """

    name: str
    distance: float
    error_bound: float
    tags: Mapping[str, str] = field(default_factory=dict)
    n_references: int = 1
    n_samples: int | None = None


def insert(
    db: Connection,
    signature: Signature,
    name: str | None,
    tags: Mapping[str, str],
    replace: bool,
) -> bool:
    """Insert a signature, and return whether it is new."""
    from ..spectra.signature import Signature

    if not isinstance(signature, Signature):
        raise InputTypeError(
            f"A store keeps signatures, not {_check.shape_of(signature)}. "
            "Write store.add(ua.signature(data, **store.options), name=...)."
        )
    name = signature.name if name is None else name
    if not name or not isinstance(name, str):
        raise InputError(f"name={name!r}: a signature needs a name in a store. Give name='...'.")
    own = {"fingerprint": signature.fingerprint, "version": signature.recipe.version}
    for what, text in {"name": name, **own}.items():
        _check.utf8_text(what, text)
    if not replace and select(db, "WHERE name = ?", [name]):
        _require_same(db, signature, name)
        add_tags(db, name, tags)
        return False
    db.execute("DELETE FROM signatures WHERE name = ?", (name,))
    require_fitting(db, signature, f"{name!r} cannot be added to this store")
    header, arrays = signature.to_parts()
    row = {
        **{key: header.pop(key) for key in _IDENTITY},
        "name": name,
        "n_eigenvalues": signature.n_eigenvalues,
        "error_bound": signature.total_error_bound,
        "recipe": json.dumps(header.pop("recipe")),
        "details": json.dumps(header),
        "tags": json.dumps(tags),
        "version": signature.recipe.version,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    columns, places = ", ".join(row), ", ".join(f":{key}" for key in row)
    key = db.execute(f"INSERT INTO signatures ({columns}) VALUES ({places})", row).lastrowid
    parts = (signature.values, arrays["eigenvalues"], arrays["lower"], arrays["upper"])
    vector, *spectrum = (part.astype(DTYPE, copy=False).tobytes() for part in parts)
    db.execute("INSERT INTO vectors VALUES (?, ?)", (key, vector))
    db.execute("INSERT INTO spectra VALUES (?, ?, ?, ?)", (key, *spectrum))
    return True


def restore(db: Connection, name: str) -> Signature:
    """Return a signature as it was inserted."""
    from ..spectra.signature import Signature

    row = db.execute(
        f"""SELECT {", ".join(_IDENTITY)}, recipe, details, eigenvalues, lower, upper
        FROM signatures JOIN spectra USING (id) WHERE name = ?""",
        (name,),
    ).fetchone()
    with row_of(db, name):
        *identity, recipe, details, eigenvalues, lower, upper = row
        header = dict(zip(_IDENTITY, identity, strict=True)) | json.loads(details)
        blobs = {"eigenvalues": eigenvalues, "lower": lower, "upper": upper}
        arrays = {key: np.frombuffer(blob, dtype=DTYPE) for key, blob in blobs.items()}
        return Signature.from_parts({**header, "recipe": json.loads(recipe)}, arrays)


def row_of(db: Connection, name: str) -> AbstractContextManager[None]:
    """Turn errors about the values of a row into one that names the file and the row."""
    remedy = " Remove it and describe its data again."
    return restoring(f"Store {str(db.path)!r}: the row of {name!r}", remedy)


def select(db: Connection, condition: str, values: Sequence[str | int]) -> list[Record]:
    """Return the records that satisfy an SQL condition, in the order of adding."""
    names = [field.name for field in fields(Record)]
    nested = {"rows_drawn_from": "json_extract(details, '$.stats.rows_drawn_from')"}
    columns = ", ".join(nested.get(name, name) for name in names)
    rows = db.execute(f"SELECT {columns} FROM signatures {condition} ORDER BY id", values)
    found = []
    for row in rows:
        facts = dict(zip(names, row, strict=True))
        with row_of(db, facts["name"]):
            facts["tags"] = json.loads(facts["tags"])
            _check.require_types(Record, facts)
            _check.positive_int("n_samples", facts["n_samples"])
            if facts["error_bound"] < 0:
                raise ValueError("error_bound must not be negative")
            found.append(Record(**facts))
    return found


def where(tags: Mapping[str, Any] | None) -> tuple[str, list[str]]:
    """Return the SQL condition that a row has all these tags, and its values."""
    pairs = as_text(tags)
    one = "EXISTS (SELECT 1 FROM json_each(signatures.tags) WHERE key = ? AND value = ?)"
    condition = " AND ".join([one] * len(pairs))
    return f"WHERE {condition}" if pairs else "", [text for pair in pairs.items() for text in pair]


def require(db: Connection, name: str) -> None:
    """Raise an error if there is no signature of this name."""
    _check.utf8_text("name", name)
    if db.execute("SELECT 1 FROM signatures WHERE name = ?", (name,)).fetchone() is None:
        names = [str(row[0]) for row in db.execute("SELECT name FROM signatures LIMIT 10000")]
        near = _check.did_you_mean(name, names)
        raise InputError(f"Store {str(db.path)!r} has no signature {name!r}.{near}")


def add_tags(db: Connection, name: str, tags: Mapping[str, str]) -> None:
    """Add tags to those of a signature."""
    if tags:
        (old,) = select(db, "WHERE name = ?", [name])
        merged = json.dumps({**old.tags, **tags})
        db.execute("UPDATE signatures SET tags = ? WHERE name = ?", (merged, name))


def as_text(tags: Mapping[str, Any] | None) -> dict[str, str]:
    """Return tags with keys and values as text, as they are stored."""
    if tags is not None and not isinstance(tags, Mapping):
        raise InputTypeError(f"tags={tags!r} must be a dict such as {{'tissue': 'liver'}}.")
    found = {str(key): str(value) for key, value in (tags or {}).items()}
    for text in itertools.chain(*found.items()):
        _check.utf8_text("tags", text)
    return found


def recipe_and_k(db: Connection) -> tuple[Recipe | None, int]:
    """Return the recipe and the K of all signatures, None and 0 if there is none."""
    row = db.execute(
        "SELECT name, recipe, n_eigenvalues FROM signatures ORDER BY id LIMIT 1"
    ).fetchone()
    if row is None:
        return None, 0
    name, recipe, k = row
    with row_of(db, name):
        return _recipe(recipe), _check.positive_int("n_eigenvalues", k)


def _recipe(text: str) -> Recipe:
    from ..spectra.signature import Recipe

    return Recipe.from_dict(json.loads(text))


def require_fitting(db: Connection, signature: Signature, what: str) -> None:
    """Raise an error if a signature has another recipe or K than those of the store."""
    recipe, k = recipe_and_k(db)
    if recipe is None:
        return
    differing = signature.recipe.differences(recipe)
    if signature.n_eigenvalues != k:
        differing["n_eigenvalues"] = (signature.n_eigenvalues, k)
    if differing:
        details = "; ".join(f"{key}: {a!r}, here {b!r}" for key, (a, b) in differing.items())
        raise RecipeMismatchError(
            f"{what}: its settings differ ({details}). Compute it with "
            "ua.signature(data, **store.options), or use another store."
        )


def _require_same(db: Connection, signature: Signature, name: str) -> None:
    """Raise an error if the store has another signature under this name."""
    fingerprint, recipe, k = db.execute(
        "SELECT fingerprint, recipe, n_eigenvalues FROM signatures WHERE name = ?", (name,)
    ).fetchone()
    given = {"its data": signature.fingerprint, "n_eigenvalues": signature.n_eigenvalues}
    given |= asdict(signature.recipe)
    with row_of(db, name):
        stored = {"its data": fingerprint, "n_eigenvalues": k, **asdict(_recipe(recipe))}
    differing = [key for key in given if key != "version" and given[key] != stored[key]]
    if differing:
        raise InputError(
            f"name={name!r} is in the store already and differs in {', '.join(differing)}. "
            "Choose another name, or pass replace=True."
        )


Pairs: TypeAlias = Sequence[tuple[Record, "Signature"]]
PathLike: TypeAlias = str | os.PathLike[str]


def frame(records: Sequence[Record]) -> pd.DataFrame:
    """Return records as a table by name, with a column for each tag."""
    required("pandas", "pandas", "A DataFrame")
    import pandas as pd

    facts = [field.name for field in fields(Record) if field.name not in ("name", "tags")]
    columns = {key: [getattr(record, key) for record in records] for key in facts}
    for key in sorted({key for record in records for key in record.tags}):
        columns[f"tag:{key}"] = [record.tags.get(key) for record in records]
    names = pd.Index([record.name for record in records], name="name", dtype=object)
    return pd.DataFrame(columns, index=names)


def _write_csv(path: PathLike, pairs: Pairs) -> None:
    required("pandas", "pandas", "A .csv file")
    import pandas as pd

    from ..io.archive import write_text

    known = frame([record for record, _ in pairs])
    tags = [key for key in map(str, known.columns) if key.startswith("tag:")]
    known = known[["n_samples", "n_features", "error_bound", "fingerprint", *tags]]
    values = pd.DataFrame([signature.values for _, signature in pairs], index=known.index)
    values.columns = pd.Index([f"v{i + 1}" for i in range(values.shape[1])])
    write_text(path, known.join(values).to_csv(lineterminator="\n"))


def _write_json(path: PathLike, pairs: Pairs) -> None:
    from ..io.archive import write_text

    rows = []
    for record, signature in pairs:
        arrays = {"eigenvalues": signature.eigenvalues, "values": signature.values}
        rows.append({**asdict(record), "recipe": asdict(signature.recipe), **arrays})
    write_text(path, json.dumps(jsonable(rows), indent=1) + "\n")


def _write_npz(path: PathLike, pairs: Pairs) -> None:
    from ..io.archive import whole_file

    arrays = {
        "names": np.array([record.name for record, _ in pairs], dtype=str),
        "tags": np.array([json.dumps(dict(record.tags)) for record, _ in pairs], dtype=str),
        "n_samples": np.array([record.n_samples for record, _ in pairs], dtype=np.int64),
        "error_bounds": np.array([record.error_bound for record, _ in pairs]),
        "values": np.array([signature.values for _, signature in pairs]),
        "eigenvalues": np.array([signature.eigenvalues for _, signature in pairs]),
        "recipe": np.array(json.dumps(asdict(pairs[0][1].recipe)) if pairs else "", dtype=str),
    }
    with whole_file(path) as stream:
        np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]


WRITERS = {".csv": _write_csv, ".json": _write_json, ".npz": _write_npz}
