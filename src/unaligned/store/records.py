"""Signatures as rows: put in, checked, taken out."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .._check import FloatArray
from .._format import jsonable
from ..errors import FileError, InputError, InputTypeError, RecipeMismatchError

if TYPE_CHECKING:  # listing a store takes no more than numpy
    from ..spectra.signature import Recipe, Signature

NUMBER = np.dtype("<f8")  # whatever the machine
DRAWN_FROM = "rows_drawn_from"  # among the stats of a signature
_IDENTITY = ("name", "fingerprint", "n_samples", "n_features")


@dataclass(frozen=True)
class Record:
    """What a store says of one signature, without its values.

    `rows_drawn_from` is how many rows there were before `unaligned describe --subsample`; None
    where all were taken.
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


def insert(
    db: sqlite3.Connection,
    signature: Signature,
    name: str | None,
    tags: Mapping[str, str],
    replace: bool,
) -> bool:
    """Put a signature in, and return whether it is new."""
    from ..spectra.signature import Signature

    if not isinstance(signature, Signature):
        raise InputTypeError(
            f"A store keeps signatures, not {_check.shape_of(signature)}. "
            "Write store.add(ua.signature(data, **store.options), name=...)."
        )
    name = signature.name if name is None else name
    if not name or not isinstance(name, str):
        raise InputError(f"name={name!r}: a signature needs a name in a store. Give name='...'.")
    if not replace and has(db, name):
        _require_same(db, signature, name)
        add_tags(db, name, tags)
        return False
    db.execute("DELETE FROM signatures WHERE name = ?", (name,))
    require_fitting(db, signature, f"{name!r} cannot join this store")
    _write(db, signature, name, tags)
    return True


def _write(
    db: sqlite3.Connection, signature: Signature, name: str, tags: Mapping[str, str]
) -> None:
    header, arrays = signature.to_parts()
    recipe = json.dumps(header.pop("recipe"))
    identity = {key: header.pop(key) for key in _IDENTITY} | {"name": name}
    row = {
        **identity,
        "n_eigenvalues": signature.n_eigenvalues,
        "error_bound": signature.total_error_bound,
        "recipe": recipe,
        "details": json.dumps(header),
        "tags": json.dumps(tags),
        "version": signature.recipe.version,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    columns, places = ", ".join(row), ", ".join(f":{key}" for key in row)
    key = db.execute(f"INSERT INTO signatures ({columns}) VALUES ({places})", row).lastrowid
    db.execute("INSERT INTO vectors VALUES (?, ?)", (key, _bytes(signature.values)))
    spectrum = [_bytes(arrays[part]) for part in ("eigenvalues", "lower", "upper")]
    db.execute("INSERT INTO spectra VALUES (?, ?, ?, ?)", (key, *spectrum))


def restore(db: sqlite3.Connection, name: str, path: Path) -> Signature:
    """Take a signature out as it was put in."""
    from ..spectra.signature import Signature

    row = db.execute(
        f"""SELECT {", ".join(_IDENTITY)}, recipe, details, eigenvalues, lower, upper
        FROM signatures JOIN spectra USING (id) WHERE name = ?""",
        (name,),
    ).fetchone()
    try:
        *identity, recipe, details, eigenvalues, lower, upper = row
        header = {
            **dict(zip(_IDENTITY, identity, strict=True)),
            **json.loads(details),
            "recipe": json.loads(recipe),
        }
        blobs = {"eigenvalues": eigenvalues, "lower": lower, "upper": upper}
        arrays = {key: np.frombuffer(blob, dtype=NUMBER) for key, blob in blobs.items()}
        return Signature.from_parts(header, arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(
            f"Store {str(path)!r}: the row of {name!r} is damaged ({error}). "
            "Remove it and describe its data again."
        ) from error


def records(db: sqlite3.Connection, tags: Mapping[str, Any] | None) -> list[Record]:
    """Return what is known of those that have all these tags, in the order of adding."""
    return _records(db, *where(tags))


def find(db: sqlite3.Connection, name: str) -> Record | None:
    """Return what is known of one signature, or None."""
    return next(iter(_records(db, "WHERE name = ?", [name])), None)


def _records(db: sqlite3.Connection, condition: str, texts: list[str]) -> list[Record]:
    columns = [field.name for field in fields(Record)]
    drawn = f"json_extract(details, '$.stats.{DRAWN_FROM}')"
    known = [drawn if name == DRAWN_FROM else name for name in columns]
    rows = db.execute(f"SELECT {', '.join(known)} FROM signatures {condition} ORDER BY id", texts)
    found = [dict(zip(columns, row, strict=True)) for row in rows]
    return [Record(**{**row, "tags": json.loads(row["tags"])}) for row in found]


def by_size(db: sqlite3.Connection, tags: Mapping[str, Any] | None) -> list[tuple[str, int]]:
    """Return name and rows of the smallest and of the largest that have all these tags."""
    condition, texts = where(tags)
    # SQLite takes the name from the row that has the extreme.
    pairs = (
        db.execute(f"SELECT name, {extreme}(n_samples) FROM signatures {condition}", texts)
        for extreme in ("min", "max")
    )
    return [(name, size) for name, size in (found.fetchone() for found in pairs) if name]


def shared_columns(
    db: sqlite3.Connection, tags: Mapping[str, Any] | None
) -> tuple[int | None, int]:
    """Return the number of columns that all with these tags have, or None; how many they are."""
    condition, texts = where(tags)
    least, most, count = db.execute(
        f"SELECT min(n_features), max(n_features), count(*) FROM signatures {condition}", texts
    ).fetchone()
    return (least if least == most else None), count


def pattern(db: sqlite3.Connection) -> tuple[Recipe, int] | None:
    """Return the recipe and the K of all signatures, None while there is none."""
    from ..spectra.signature import Recipe

    row = db.execute("SELECT recipe, n_eigenvalues FROM signatures ORDER BY id LIMIT 1").fetchone()
    if row is None:
        return None
    recipe = json.loads(row[0])
    return Recipe(**{**recipe, "preprocess": tuple(recipe["preprocess"])}), row[1]


def require_fitting(db: sqlite3.Connection, signature: Signature, what: str) -> None:
    """Refuse a signature that was made otherwise than those that are here."""
    found = pattern(db)
    if found is None:
        return
    recipe, k = found
    differing = signature.recipe.differences(recipe)
    if signature.n_eigenvalues != k:
        differing["n_eigenvalues"] = (signature.n_eigenvalues, k)
    if differing:
        told = "; ".join(f"{key}: {a!r}, here {b!r}" for key, (a, b) in differing.items())
        raise RecipeMismatchError(
            f"{what}: it was made differently ({told}). Make it with "
            "ua.signature(data, **store.options), or keep it in another store."
        )


def _require_same(db: sqlite3.Connection, signature: Signature, name: str) -> None:
    """Refuse a name that stands for something else."""
    from ..spectra.signature import Recipe

    fingerprint, recipe, k = db.execute(
        "SELECT fingerprint, recipe, n_eigenvalues FROM signatures WHERE name = ?", (name,)
    ).fetchone()
    here = {**asdict(Recipe(**json.loads(recipe))), "n_eigenvalues": k}
    mine = jsonable(asdict(signature.recipe), allow_nan=True)  # a tuple of steps is a list there
    mine["n_eigenvalues"] = signature.n_eigenvalues
    differing = [key for key in mine if key != "version" and mine[key] != here.get(key)]
    if fingerprint != signature.fingerprint:
        differing = ["its data", *differing]
    if differing:
        raise InputError(
            f"name={name!r} is in the store already and differs in {', '.join(differing)}. "
            "Choose another name, or pass replace=True."
        )


def options_of(recipe: Recipe, n_eigenvalues: int) -> dict[str, Any]:
    """Return what `ua.signature` must be given for a signature of this recipe."""
    options: dict[str, Any] = {
        "n_eigenvalues": n_eigenvalues,
        "gamma": recipe.gamma,
        "solver": recipe.solver,
        "tol": recipe.tol,
        "rng": recipe.seed,
        "robust": recipe.robust,
        "preprocess": recipe.preprocess or None,
    }
    if recipe.bandwidth != "none":  # there is a kernel
        options |= {
            "bandwidth": recipe.bandwidth,
            "bandwidth_factor": recipe.bandwidth_factor,
            "n_neighbors": recipe.n_neighbors,
            "kernel": recipe.kernel,
        }
    if recipe.metric != "precomputed":
        options["metric"] = recipe.metric
    return options


def has(db: sqlite3.Connection, name: object) -> bool:
    """Whether there is a signature of this name."""
    if not isinstance(name, str):
        return False
    return db.execute("SELECT 1 FROM signatures WHERE name = ?", (name,)).fetchone() is not None


def require(db: sqlite3.Connection, name: str, path: Path) -> None:
    """Refuse a name that is not there, naming the nearest one."""
    if not has(db, name):
        names = [row[0] for row in db.execute("SELECT name FROM signatures LIMIT 10000")]
        near = _check.did_you_mean(name, names)
        raise InputError(f"Store {str(path)!r} has no signature {name!r}.{near}")


def add_tags(db: sqlite3.Connection, name: str, tags: Mapping[str, str]) -> None:
    """Add tags to those of a signature."""
    if tags:
        (old,) = db.execute("SELECT tags FROM signatures WHERE name = ?", (name,)).fetchone()
        merged = json.dumps({**json.loads(old), **tags})
        db.execute("UPDATE signatures SET tags = ? WHERE name = ?", (merged, name))


def as_text(tags: Mapping[str, Any] | None) -> dict[str, str]:
    """Return tags with their values as text, as they are kept and looked for."""
    if tags is not None and not isinstance(tags, Mapping):
        raise InputTypeError(f"tags={tags!r} must be a dict such as {{'tissue': 'liver'}}.")
    return {str(key): str(value) for key, value in (tags or {}).items()}


def where(tags: Mapping[str, Any] | None) -> tuple[str, list[str]]:
    """Return the condition that a row has all these tags, and its values."""
    pairs = as_text(tags)
    one = "EXISTS (SELECT 1 FROM json_each(signatures.tags) WHERE key = ? AND value = ?)"
    condition = " AND ".join([one] * len(pairs))
    return f"WHERE {condition}" if pairs else "", [text for pair in pairs.items() for text in pair]


def _bytes(values: FloatArray) -> bytes:
    return values.astype(NUMBER, copy=False).tobytes()
