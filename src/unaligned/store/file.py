"""The SQLite files of stores and histories: schema, transactions.

With a rollback journal a store is one file, safe with several processes on one machine and after
`kill -9`, and readable in read-only folders; a write-ahead log would need two more files.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import FileError, StoreError

_TIMEOUT = 60.0  # seconds to wait for other processes


class Connection(sqlite3.Connection):
    """A connection that has the path as the caller wrote it, for messages."""

    path: Path


@dataclass(frozen=True)
class Schema:
    """What a file contains."""

    name: str  # in messages
    content: str
    application_id: int  # marks the file
    version: int
    tables: tuple[str, ...]


# The vectors that every search scans have their own table: in one table with the rest a scan
# takes twice as long, and reads four times as much from disk.
STORE = Schema(
    "store",
    "store of signatures",
    0x756E616C,  # "unal"
    2,
    (
        """CREATE TABLE signatures (
            id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, fingerprint TEXT NOT NULL,
            n_samples INTEGER NOT NULL, n_features INTEGER NOT NULL,
            n_eigenvalues INTEGER NOT NULL, error_bound REAL NOT NULL, recipe TEXT NOT NULL,
            details TEXT NOT NULL, tags TEXT NOT NULL, version TEXT NOT NULL,
            created TEXT NOT NULL)""",
        """CREATE TABLE vectors (
            id INTEGER PRIMARY KEY REFERENCES signatures (id) ON DELETE CASCADE,
            data BLOB NOT NULL)""",
        """CREATE TABLE spectra (
            id INTEGER PRIMARY KEY REFERENCES signatures (id) ON DELETE CASCADE,
            eigenvalues BLOB NOT NULL, lower BLOB NOT NULL, upper BLOB NOT NULL)""",
    ),
)


def prepare(path: Path, *, create: bool, schema: Schema = STORE) -> None:
    """Create the file; raise an error if it has another schema."""
    if not create and not path.exists():
        raise FileError(
            f"There is no store {str(path)!r}. Create one with `unaligned describe FILE… --store "
            f"{path.name}`, or with ua.Store(path) in Python."
        )
    with _explained(path, schema), closing(_open(path, "rwc" if create else "rw")) as db:
        # Ten vectors of 200 values; with 4096 bytes a scan takes a third longer. New files only.
        db.execute("PRAGMA page_size = 16384")
        db.execute("BEGIN")
        exists = _version(db, path, schema) == schema.version
        db.execute("COMMIT")
        if exists:
            return
        db.execute("BEGIN IMMEDIATE")
        if _version(db, path, schema) != schema.version:  # another process may have been faster
            pragmas = {"application_id": schema.application_id, "user_version": schema.version}
            for statement in (*schema.tables, *(f"PRAGMA {k} = {v}" for k, v in pragmas.items())):
                db.execute(statement)
        db.execute("COMMIT")


@contextmanager
def transaction(
    path: Path, *, write: bool = False, schema: Schema = STORE
) -> Iterator[Connection]:
    """Yield a connection; its changes are committed together, or not at all after an error.

    Each opens a connection (0.1 ms), so that any thread and process can use the store.
    """
    with _explained(path, schema), closing(_open(path, "rw")) as db:
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        if _version(db, path, schema) != schema.version:
            what = schema.name.capitalize()
            raise FileError(f"{what} {str(path)!r} was replaced by another file. Open it again.")
        yield db
        db.execute("COMMIT")  # after an error, closing rolls back


def _open(path: Path, mode: str) -> Connection:
    address = f"{Path(os.path.abspath(path)).as_uri()}?mode={mode}"
    options: Any = {"uri": True, "timeout": _TIMEOUT, "isolation_level": None}
    db = sqlite3.connect(address, factory=Connection, **options)
    db.path = path
    return db


def _version(db: Connection, path: Path, schema: Schema) -> int:
    """Return the schema version, 0 for an empty file; call within a transaction."""
    what = f"{schema.name.capitalize()} {str(path)!r}"
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    owner: int = db.execute("PRAGMA application_id").fetchone()[0]
    (n_tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if owner != schema.application_id and (version or owner or n_tables):
        raise FileError(
            f"{str(path)!r} is an SQLite database with other content, not a {schema.content}. It "
            "was not changed; give another path."
        )
    if version not in (0, schema.version):
        raise FileError(
            f"{what} has version {version}; this unaligned supports version {schema.version}. "
            "Update unaligned."
        )
    pages, size = (db.execute(f"PRAGMA page_{what}").fetchone()[0] for what in ("count", "size"))
    # SQLite itself does not notice a truncated last page.
    if version and path.stat().st_size < pages * size:
        raise FileError(f"{what} is damaged: it is truncated. Restore a backup.")
    return version


@contextmanager
def _explained(path: Path, schema: Schema) -> Iterator[None]:
    """Turn errors of SQLite into errors with a remedy."""
    what = f"{schema.name.capitalize()} {str(path)!r}"
    try:
        yield
    except sqlite3.Error as error:
        cause = getattr(error, "sqlite_errorname", None) or ""
        if cause.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
            raise FileError(
                f"{str(path)!r} is not a {schema.content}, or it is damaged ({error}). It was "
                "not changed; give another path, or restore a backup."
            ) from error
        if cause.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM")):
            reason: object = "it is a folder" if path.is_dir() else error
            if not path.absolute().parent.is_dir():
                reason = f"the folder {str(path.parent)!r} does not exist"
            raise FileError(f"{what} cannot be opened or written: {reason}.") from error
        if cause.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise StoreError(
                f"{what} has been locked by another process for {_TIMEOUT:.0f} s. "
                "Try again when that process is done."
            ) from error
        raise StoreError(f"{what} could not be used: {error}.") from error
