"""The file of a store: opened, checked, made, brought up to date.

SQLite with its rollback journal: one file, safe with several processes on one machine and after
`kill -9`, readable from folders where nothing may be written. A write-ahead log would need two
more files beside it for that.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ..errors import FileError, StoreError

VERSION = 2
_APPLICATION = 0x756E616C  # "unal", in the header of the file: whose database it is
_PAGE_BYTES = 16384  # ten vectors of 200 values; with 4096 scanning takes a third longer
_PATIENCE = 60.0  # seconds to wait for other processes

# What every search scans stands by itself: beside the rest it takes twice as long, and reads four
# times as much where the file is not in memory yet.
_TABLES = (
    """CREATE TABLE signatures (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        fingerprint TEXT NOT NULL,
        n_samples INTEGER NOT NULL,
        n_features INTEGER NOT NULL,
        n_eigenvalues INTEGER NOT NULL,
        error_bound REAL NOT NULL,
        recipe TEXT NOT NULL,
        details TEXT NOT NULL,
        tags TEXT NOT NULL,
        version TEXT NOT NULL,
        created TEXT NOT NULL
    )""",
    """CREATE TABLE vectors (
        id INTEGER PRIMARY KEY REFERENCES signatures (id) ON DELETE CASCADE,
        data BLOB NOT NULL
    )""",
    """CREATE TABLE spectra (
        id INTEGER PRIMARY KEY REFERENCES signatures (id) ON DELETE CASCADE,
        eigenvalues BLOB NOT NULL,
        lower BLOB NOT NULL,
        upper BLOB NOT NULL
    )""",
)
# In version 1 everything stood in one table.
_FROM_1_TO_2 = (
    "ALTER TABLE signatures RENAME TO old",
    *_TABLES,
    """INSERT INTO signatures SELECT id, name, fingerprint, n_samples, n_features, n_eigenvalues,
        error_bound, recipe, details, tags, version, created FROM old""",
    "INSERT INTO vectors SELECT id, vector FROM old",
    "INSERT INTO spectra SELECT id, eigenvalues, lower, upper FROM old",
    "DROP TABLE old",
)


def prepare(path: Path, *, create: bool) -> None:
    """Make the file, or bring it up to date; refuse what is no store."""
    if not create and not path.exists():
        raise FileError(
            f"There is no store {str(path)!r}. Make one with `unaligned describe FILE… --store "
            f"{path.name}`, or with ua.Store(path) in Python."
        )
    with _explained(path), closing(_open(path, "rwc" if create else "rw")) as db:
        db.execute(f"PRAGMA page_size = {_PAGE_BYTES}")  # takes effect in a new file only
        db.execute("BEGIN")
        found = _version(db, path)
        db.execute("COMMIT")
        if found == VERSION:
            return
        db.execute("BEGIN IMMEDIATE")
        found = _version(db, path)  # another process may have been quicker
        for statement in {0: _TABLES, 1: _FROM_1_TO_2}.get(found, ()):
            db.execute(statement)
        db.execute(f"PRAGMA application_id = {_APPLICATION}")
        db.execute(f"PRAGMA user_version = {VERSION}")
        db.execute("COMMIT")


@contextmanager
def transaction(path: Path, *, write: bool = False) -> Iterator[sqlite3.Connection]:
    """Give a connection; what is done inside happens as one, or not at all.

    Connections are made anew each time, a tenth of a millisecond: a store can be used from any
    thread and any process, and nothing stays open.
    """
    with _explained(path), closing(_open(path, "rw")) as db:
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        if _version(db, path) != VERSION:
            raise FileError(f"Store {str(path)!r} was replaced by another file. Open it again.")
        yield db
        db.execute("COMMIT")  # not after an error: closing then rolls back


def _open(path: Path, mode: str) -> sqlite3.Connection:
    address = f"{Path(os.path.abspath(path)).as_uri()}?mode={mode}"
    return sqlite3.connect(address, uri=True, timeout=_PATIENCE, isolation_level=None)


def _version(db: sqlite3.Connection, path: Path) -> int:
    """Return the schema version of a store, 0 for an empty file; inside of a transaction."""
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    owner: int = db.execute("PRAGMA application_id").fetchone()[0]
    (n_tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if owner != _APPLICATION and (version or owner or n_tables):
        raise FileError(
            f"{str(path)!r} is an SQLite database of something else, not a store of signatures. "
            "It was left as it is; give another path."
        )
    if version > VERSION:
        raise FileError(
            f"Store {str(path)!r} has version {version}, and this unaligned knows versions up to "
            f"{VERSION}. Update unaligned."
        )
    pages, size = (db.execute(f"PRAGMA page_{what}").fetchone()[0] for what in ("count", "size"))
    if (
        version and path.stat().st_size < pages * size
    ):  # SQLite itself misses a part of the last page
        raise FileError(
            f"Store {str(path)!r} is damaged: its end is missing. Bring back a copy of it."
        )
    return version


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn what SQLite raises into errors that say what to do."""
    try:
        yield
    except sqlite3.Error as error:
        cause = getattr(error, "sqlite_errorname", None) or ""
        if cause.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
            raise FileError(
                f"{str(path)!r} is not a store of signatures, or it is damaged ({error}). It was "
                "left as it is; give another path, or bring back a copy."
            ) from error
        if cause.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM")):
            reason: object = "it is a folder" if path.is_dir() else error
            if not path.absolute().parent.is_dir():
                reason = f"there is no folder {str(path.parent)!r}"
            raise FileError(
                f"Store {str(path)!r} cannot be opened or written: {reason}."
            ) from error
        if cause.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise StoreError(
                f"Store {str(path)!r} has been held by another process for {_PATIENCE:.0f} s. "
                "Run the same command again when that one is done."
            ) from error
        raise StoreError(f"Store {str(path)!r} could not be used: {error}.") from error
