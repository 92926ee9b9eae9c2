"""The SQLite file of a store: schema, transactions.

With a rollback journal a store is one file, safe with several processes on one machine and after
`kill -9`, and readable in read-only folders; a write-ahead log would need two more files.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ..errors import FileError, StoreError

VERSION = 2  # of the schema
_APPLICATION_ID = 0x756E616C  # "unal", which marks the file as a store
_TIMEOUT = 60.0  # seconds to wait for other processes

# The vectors that every search scans have their own table: in one table with the rest a scan
# takes twice as long, and reads four times as much from disk.
_TABLES = (
    """CREATE TABLE signatures (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, fingerprint TEXT NOT NULL,
        n_samples INTEGER NOT NULL, n_features INTEGER NOT NULL, n_eigenvalues INTEGER NOT NULL,
        error_bound REAL NOT NULL, recipe TEXT NOT NULL, details TEXT NOT NULL,
        tags TEXT NOT NULL, version TEXT NOT NULL, created TEXT NOT NULL)""",
    """CREATE TABLE vectors (
        id INTEGER PRIMARY KEY REFERENCES signatures (id) ON DELETE CASCADE,
        data BLOB NOT NULL)""",
    """CREATE TABLE spectra (
        id INTEGER PRIMARY KEY REFERENCES signatures (id) ON DELETE CASCADE,
        eigenvalues BLOB NOT NULL, lower BLOB NOT NULL, upper BLOB NOT NULL)""",
)


def prepare(path: Path, *, create: bool) -> None:
    """Create the file; raise an error if it is not a store."""
    if not create and not path.exists():
        raise FileError(
            f"There is no store {str(path)!r}. Create one with `unaligned describe FILE… --store "
            f"{path.name}`, or with ua.Store(path) in Python."
        )
    with _explained(path), closing(_open(path, "rwc" if create else "rw")) as db:
        # Ten vectors of 200 values; with 4096 bytes a scan takes a third longer. New files only.
        db.execute("PRAGMA page_size = 16384")
        db.execute("BEGIN")
        exists = _version(db, path) == VERSION
        db.execute("COMMIT")
        if exists:
            return
        db.execute("BEGIN IMMEDIATE")
        if _version(db, path) != VERSION:  # another process may have been faster
            pragmas = {"application_id": _APPLICATION_ID, "user_version": VERSION}
            for statement in (*_TABLES, *(f"PRAGMA {k} = {v}" for k, v in pragmas.items())):
                db.execute(statement)
        db.execute("COMMIT")


@contextmanager
def transaction(path: Path, *, write: bool = False) -> Iterator[sqlite3.Connection]:
    """Yield a connection; its changes are committed together, or not at all after an error.

    Each opens a connection (0.1 ms), so that any thread and process can use the store.
    """
    with _explained(path), closing(_open(path, "rw")) as db:
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        if _version(db, path) != VERSION:
            raise FileError(f"Store {str(path)!r} was replaced by another file. Open it again.")
        yield db
        db.execute("COMMIT")  # after an error, closing rolls back


def _open(path: Path, mode: str) -> sqlite3.Connection:
    address = f"{Path(os.path.abspath(path)).as_uri()}?mode={mode}"
    return sqlite3.connect(address, uri=True, timeout=_TIMEOUT, isolation_level=None)


def _version(db: sqlite3.Connection, path: Path) -> int:
    """Return the schema version, 0 for an empty file; call within a transaction."""
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    owner: int = db.execute("PRAGMA application_id").fetchone()[0]
    (n_tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if owner != _APPLICATION_ID and (version or owner or n_tables):
        raise FileError(
            f"{str(path)!r} is an SQLite database of another program, not a store of "
            "signatures. It was not changed; give another path."
        )
    if version not in (0, VERSION):
        raise FileError(
            f"Store {str(path)!r} has version {version}; this unaligned supports version "
            f"{VERSION}. Update unaligned."
        )
    pages, size = (db.execute(f"PRAGMA page_{what}").fetchone()[0] for what in ("count", "size"))
    # SQLite itself does not notice a truncated last page.
    if version and path.stat().st_size < pages * size:
        raise FileError(f"Store {str(path)!r} is damaged: it is truncated. Restore a backup.")
    return version


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into errors with a remedy."""
    try:
        yield
    except sqlite3.Error as error:
        cause = getattr(error, "sqlite_errorname", None) or ""
        if cause.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
            raise FileError(
                f"{str(path)!r} is not a store of signatures, or it is damaged ({error}). It was "
                "not changed; give another path, or restore a backup."
            ) from error
        if cause.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM")):
            reason: object = "it is a folder" if path.is_dir() else error
            if not path.absolute().parent.is_dir():
                reason = f"the folder {str(path.parent)!r} does not exist"
            message = f"Store {str(path)!r} cannot be opened or written: {reason}."
            raise FileError(message) from error
        if cause.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise StoreError(
                f"Store {str(path)!r} has been locked by another process for {_TIMEOUT:.0f} s. "
                "Try again when that process is done."
            ) from error
        raise StoreError(f"Store {str(path)!r} could not be used: {error}.") from error
