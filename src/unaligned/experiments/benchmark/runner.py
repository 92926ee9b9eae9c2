"""Run the cells of the benchmark, and resume a stopped run."""

from __future__ import annotations

import csv
import io
import json
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

import unaligned as ua

from ... import engine
from ...errors import FileError, InputError
from ...io.archive import append_text, made_folder, write_text
from .jobs import Collection, Job, load_jobs
from .methods import Method
from .process import run_limited
from .scores import SCORES, mantel

SIZES = ("equal", "unequal")
# Of the reasons for an empty cell, those that another run may not have.
_TEMPORARY = ("missing data", "missing package", "failed")
_REASONS = {
    "NotApplicableError": "not applicable",
    "MissingExtraError": "missing package",
    "FileError": "missing data",
}


@dataclass(frozen=True)
class Cell:
    """One method on one job at one seed."""

    job: str
    sizes: str
    method: str
    seed: int
    status: str = ""  # ok, not applicable, over limit, missing data, missing package, failed
    score: float = float("nan")
    seconds: float = float("nan")
    peak_mb: float = float("nan")
    p_value: float = float("nan")  # of Mantel's test, where the score is a correlation in time
    limit: float = float("nan")
    detail: str = ""

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What identifies a cell."""
        return self.job, self.sizes, self.method, self.seed


@dataclass(frozen=True)
class Settings:
    """How the cells are computed; those of one folder share them."""

    full: bool = False
    limit: float = 10.0  # seconds of CPU time per cell

    @property
    def prepare_limit(self) -> float:
        """Seconds of CPU time for the data of a job."""
        return 3600.0 if self.full else 300.0


class CellFile:
    """`cells.csv` of one folder; cells are appended, and of equal ones the last counts."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.path = folder / "cells.csv"
        known = folder / "settings.json"
        now = {"full": settings.full, "version": ua.__version__}
        self.cells: dict[tuple[str, str, str, int], Cell] = {}
        self._lock = threading.Lock()
        if not self.path.exists():
            write_text(known, json.dumps(now) + "\n")
            write_text(self.path, ",".join(f.name for f in fields(Cell)) + "\n")
            return
        try:
            then = json.loads(known.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            then = None
        if then != now:
            raise InputError(
                f"out={str(folder)!r} has cells of other settings ({then}, now {now}). Give "
                "another --out, or delete its cells.csv."
            )
        self.cells = {cell.key: cell for cell in self._read()}

    def _read(self) -> Iterable[Cell]:
        numbers = {f.name for f in fields(Cell) if f.type == "float"}
        try:
            text = self.path.read_text(encoding="utf-8")
            end = text.rfind("\n") + 1
            if end == 0:
                raise ValueError("it has no header")
            if end < len(text):  # the last line of a run that was killed
                write_text(self.path, text[:end])
            lines = csv.DictReader(io.StringIO(text[:end]))
            for line in lines:
                row: dict[str, Any] = {f.name: line[f.name] for f in fields(Cell)}
                row |= {name: float(row[name]) for name in numbers}
                yield Cell(**{**row, "seed": int(row["seed"])})
        except (OSError, KeyError, TypeError, ValueError, csv.Error) as error:
            raise FileError(
                f"Cannot resume from {str(self.path)!r}: {error!r}. Delete the damaged line or "
                "the file, and its cells are computed again."
            ) from error

    def add(self, cell: Cell) -> None:
        """Write a finished cell."""
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(asdict(cell).values())
        with self._lock:
            self.cells[cell.key] = cell
            append_text(self.path, line.getvalue())

    def is_done(self, cell: Cell, limit: float) -> bool:
        """Return whether a cell need not be computed (again)."""
        found = self.cells.get(cell.key)
        if found is None or found.status in _TEMPORARY:
            return False
        return found.status != "over limit" or found.limit >= limit


def run(
    jobs: Sequence[Job],
    methods: Sequence[Method],
    out: str | Path,
    *,
    settings: Settings,
    n_seeds: int = 3,
    n_jobs: int | None = None,
    modules: Sequence[str] = (),
    progress: bool | None = None,
) -> list[Cell]:
    """Return all cells; those on disk are not computed again.

    Seeds come one after the other, slow distances last, so that a stopped run has most of the
    table. A cell over its limit at one seed is not tried at others.
    """
    folder = made_folder("out", out, "Give another one with --out.")
    file, by_name = CellFile(folder, settings), {method.name: method for method in methods}
    wanted = [
        Cell(job.name, sizes, method.name, seed, limit=settings.limit)
        for seed in range(n_seeds)
        for job in jobs
        for sizes in SIZES
        for method in methods
    ]
    in_order = sorted(wanted, key=lambda cell: by_name[cell.method].is_slow)
    known = {job.name: job for job in jobs}
    slow = {
        cell.key[:3]
        for cell in file.cells.values()
        if cell.status == "over limit" and cell.limit >= settings.limit
    }
    problems: dict[tuple[str, int], tuple[str, str]] = {}

    def finish(cell: Cell) -> None:
        method, job = by_name[cell.method], known[cell.job]
        if cell.key[:3] in slow:
            cell = _ended(cell, "over limit", "at another seed")
        elif (cell.job, cell.seed) in problems:
            cell = _ended(cell, *problems[cell.job, cell.seed])
        else:
            reason = job.objection(method.resolved())
            if reason:
                cell = _ended(cell, "not applicable", reason)
            else:
                cell = _computed(cell, job, method, folder, settings, modules)
        if cell.status == "over limit":
            slow.add(cell.key[:3])
        file.add(cell)

    at_once = engine.available_cores() if n_jobs is None else n_jobs
    for seed in range(n_seeds):
        todo = [c for c in in_order if c.seed == seed and not file.is_done(c, settings.limit)]
        problems |= _prepare(todo, folder, settings, modules, at_once, progress)
        label = f"seed {seed + 1} of {n_seeds}"
        engine.run(finish, todo, n_jobs=at_once, progress=progress, description=label)
    return [file.cells[cell.key] for cell in wanted]


def _ended(cell: Cell, status: str, detail: str) -> Cell:
    return Cell(*cell.key, status=status, limit=cell.limit, detail=" ".join(detail.split()))


def data_path(folder: Path, job: str, seed: int) -> Path:
    """Return the file of a job's data."""
    return folder / "data" / f"{job}-{seed}.npz"


def _prepare(
    todo: Sequence[Cell],
    folder: Path,
    settings: Settings,
    modules: Sequence[str],
    at_once: int,
    progress: bool | None,
) -> dict[tuple[str, int], tuple[str, str]]:
    """Write the data of all jobs that need it, and return why some could not."""
    made_folder("out", folder / "data", "Give another one with --out.")
    problems: dict[tuple[str, int], tuple[str, str]] = {}

    def make(item: tuple[str, int]) -> None:
        path = data_path(folder, *item)
        if path.exists():
            return
        outcome = run_limited(_make, (*item, settings.full, path, modules), settings.prepare_limit)
        if outcome.status != "ok":
            known = {**_REASONS, "over limit": "over limit"}
            detail = (
                outcome.detail
                if outcome.status in known
                else f"{outcome.status}: {outcome.detail}"
            )
            problems[item] = known.get(outcome.status, "failed"), detail

    needed = list(dict.fromkeys((cell.job, cell.seed) for cell in todo))
    engine.run(make, needed, n_jobs=at_once, progress=progress, description="data")
    return problems


def _make(job: str, seed: int, full: bool, path: Path, modules: Sequence[str]) -> None:
    load_jobs(*modules)[job].collection(seed, full=full).save(path)


def _computed(
    cell: Cell, job: Job, method: Method, folder: Path, settings: Settings, modules: Sequence[str]
) -> Cell:
    """Return a cell with its score, time and memory."""
    n_rows = job.n_full if settings.full else job.n_quick
    arguments = (data_path(folder, cell.job, cell.seed), cell, n_rows, method, modules)
    outcome = run_limited(_score, arguments, cell.limit)
    if outcome.status == "over limit":
        return _ended(cell, outcome.status, outcome.detail)
    if outcome.status != "ok":
        status = _REASONS.get(outcome.status, "failed")
        name = "" if status != "failed" else f"{outcome.status}: "
        return _ended(cell, status, name + outcome.detail)
    score, p_value, seconds = outcome.value
    if np.isnan(score):
        return _ended(cell, "failed", "all distances are equal, or not numbers")
    return Cell(
        *cell.key,
        status="ok",
        score=score,
        seconds=seconds,
        peak_mb=outcome.peak_mb,
        p_value=p_value,
        limit=cell.limit,
    )


def _score(
    path: Path, cell: Cell, n_rows: int, method: Method, modules: Sequence[str]
) -> tuple[float, float, float]:
    """Return the score of one cell, the p-value of Mantel's test, and the CPU time."""
    job = load_jobs(*modules)[cell.job]
    unequal, rng = cell.sizes == "unequal", np.random.default_rng([cell.seed, 1])
    items = Collection.load(path).drawn(n_rows, rng, unequal=unequal, paired=job.paired_rows)
    started = time.process_time()
    distances = method.distances(items.datasets)
    seconds = time.process_time() - started
    score = SCORES[job.score](distances, items)
    p_value = mantel(distances, items, rng) if job.score == "order" else float("nan")
    return score, p_value, seconds
