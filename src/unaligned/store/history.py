"""History: the checks of drift monitors in one SQLite file."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import _check
from .._format import jsonable
from ..errors import InputError, counted, restoring
from ..inference.verdict import DriftCheck
from .file import Schema, prepare, transaction

_SCHEMA = Schema(
    "history",
    "history of drift checks",
    0x756E6168,  # "unah"
    1,
    (
        """CREATE TABLE checks (
            id INTEGER PRIMARY KEY, monitor TEXT NOT NULL, number INTEGER NOT NULL,
            time TEXT NOT NULL, name TEXT NOT NULL, p_value REAL NOT NULL,
            is_drift INTEGER NOT NULL, details TEXT NOT NULL, UNIQUE (monitor, number))""",
    ),
)


class History:
    """The checks of drift monitors in one SQLite file.

    Every check is on disk when `add` returns; processes of one machine may add concurrently, and
    none is lost. Checks are numbered for each monitor by itself.

    Parameters
    ----------
    path
        The file, created if missing.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import unaligned as ua
    >>> rng = np.random.default_rng(0)
    >>> monitor = ua.DriftMonitor(rng.normal(size=(400, 3)), alpha=0.05)
    >>> history = History(Path(tempfile.mkdtemp()) / "drift.db")
    >>> for _ in range(2):
    ...     added = history.add(monitor.check(rng.normal(size=(150, 3))), monitor.fingerprint)
    >>> [check.number for check in history.checks(monitor.fingerprint)]
    [1, 2]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: Path = _check.file_path("history", path)
        prepare(self.path, create=True, schema=_SCHEMA)

    def add(self, check: DriftCheck, monitor: str, *, most: int | None = None) -> DriftCheck:
        """Add a check of the monitor with this fingerprint, and return it with its number.

        A number above `most` is an error: another process has added the last check meanwhile.
        """
        with transaction(self.path, write=True, schema=_SCHEMA) as db:
            query = "SELECT coalesce(max(number), 0) + 1 FROM checks WHERE monitor = ?"
            check = replace(check, number=db.execute(query, (monitor,)).fetchone()[0])
            if most is not None and check.number > most:
                raise InputError(
                    f"History {str(self.path)!r} has all {most} checks of this monitor's horizon: "
                    "alpha is spent. Make a new monitor, with a larger horizon."
                )
            details = json.dumps(jsonable(check.to_dict()), allow_nan=False)
            facts = check.number, check.time, check.name, check.p_value, int(check.is_drift)
            db.execute(
                "INSERT INTO checks (monitor, number, time, name, p_value, is_drift, details) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (monitor, *facts, details),
            )
        return check

    def checks(self, monitor: str | None = None) -> list[DriftCheck]:
        """Return the checks of one monitor, or all, in the order of adding."""
        chosen, values = ("", ()) if monitor is None else ("WHERE monitor = ?", (monitor,))
        with transaction(self.path, schema=_SCHEMA) as db:
            rows = db.execute(
                f"SELECT details FROM checks {chosen} ORDER BY id", values
            ).fetchall()
        with restoring(f"History {str(self.path)!r}", " Restore a backup."):
            return [DriftCheck.from_dict(json.loads(row[0])) for row in rows]

    def __len__(self) -> int:
        with transaction(self.path, schema=_SCHEMA) as db:
            count: Any = db.execute("SELECT count(*) FROM checks").fetchone()[0]
        return int(count)

    def __repr__(self) -> str:
        return f"History({str(self.path)!r}, {counted(len(self), 'check')})"
