"""`unaligned drift`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError, MissingExtraError, NotApplicableError, UnalignedError
from .app import DIFFERENT, command
from .options import (
    AsJSON,
    FileOptions,
    RunOptions,
    SignatureOptions,
    Tags,
    option,
    pairs,
    require_writable,
    words,
)
from .printing import issued_warnings, print_json, stdout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..data.dataset import Dataset
    from ..inference.drift import DriftMonitor
    from ..inference.verdict import DriftCheck

STDIN = "-"

Batches = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        show_default=False,
        help="New data, one batch per file; `-` reads CSV from stdin.",
    ),
]


@command(
    "unaligned drift new.csv --reference reference.csv",
    "unaligned drift new.csv --reference reference.csv --history drift.db --horizon 5 --json",
    "unaligned drift new.csv --reference reference.csv --distances edistance,ks --alpha 0.001",
    "unaligned drift new.csv --reference reference.csv --save monitor.npz",
    "unaligned drift new.csv --monitor monitor.npz --report drift.html",
)
def drift(
    files: Batches,
    reading: FileOptions,
    signature: SignatureOptions,
    run: RunOptions,
    reference: Annotated[
        list[str] | None,
        option("Earlier data. May be repeated; the rows are joined.", False, metavar="FILE"),
    ] = None,
    store: Annotated[
        Path | None, option("A store of signatures of earlier batches, as the reference.")
    ] = None,
    tag: Tags = None,
    monitor: Annotated[
        Path | None, option("A monitor written by --save, as the reference.")
    ] = None,
    alpha: Annotated[float | None, option("The rate of false alarms.", "0.01")] = None,
    horizon: Annotated[
        int | None, option("Batches that share alpha.", "each has it", min=1)
    ] = None,
    distances: Annotated[
        str | None, option("Instruments: les, edistance, mmd, ks.", "les,edistance,ks")
    ] = None,
    block_size: Annotated[
        int | None, option("Rows per block of les.", "from 30 to 500, by the reference")
    ] = None,
    history: Annotated[
        Path | None, option("Add the checks to a history, one SQLite file.")
    ] = None,
    save: Annotated[Path | None, option("Write the fitted monitor to a .npz file.")] = None,
    report: Annotated[Path | None, option("Write the history as an HTML page.")] = None,
    plot: Annotated[Path | None, option("Draw the history: .png, .svg or .pdf.")] = None,
    json: AsJSON = False,
) -> None:
    """Check whether new data has drifted from a reference.

    A battery of three instruments shares alpha: `les` (shape), `edistance` (position and scale)
    and `ks` (each column by itself). Batches must have the columns of the reference, in any order
    where they have names; `--distances les` takes any columns. See `ua.DriftMonitor`. Rows must be
    independent draws. The exit code is 0 if no batch has drifted, 3 if one has, 2 for bad input
    such as a missing column, and 1 if the run failed. --json prints one line per batch.
    """
    for flag, path, suffixes in (
        ("--save", save, (".npz",)),
        ("--report", report, (".html", ".htm")),
        ("--plot", plot, (".png", ".svg", ".pdf")),
    ):
        if path is not None:
            require_writable(flag, path, suffixes)
    settings = {
        "alpha": alpha,
        "horizon": horizon,
        "distances": words(distances),
        "block_size": block_size,
        "rng": run.rng,
    }
    given = {name: value for name, value in settings.items() if value is not None}
    given |= signature.given()
    kept = None
    if history is not None:
        from ..store.history import History

        if history.exists() or not history.parent.is_dir():
            kept = History(history)  # whose errors come first
    with _bad_input():
        batches, has_drifted = _load(reading, files), False
        found = _monitor(reading, reference or [], store, pairs("--tag", tag), monitor, given, run)
        for name, batch in batches.items():
            if history is None:
                check = found.check(batch, name=name)
            else:  # which gives the number
                check = found.read(batch, name=name)
                if kept is None:  # not before, so that bad input leaves no new file
                    kept = History(history)
                check = kept.add(check, found.fingerprint, most=found.horizon)
                found.history.append(check)
            has_drifted |= check.is_drift
            if json:
                print_json({**check.to_dict(), "warnings": issued_warnings()})
            else:
                stdout().print(repr(check))
    if save is not None:
        found.save(save)
    _write(found.history if kept is None else kept.checks(found.fingerprint), report, plot)
    if has_drifted:
        raise typer.Exit(DIFFERENT)


@contextmanager
def _bad_input() -> Iterator[None]:
    """Turn references that cannot be joined into bad input."""
    try:
        yield
    except NotApplicableError as error:
        raise InputError(str(error)) from error


def _monitor(
    reading: FileOptions,
    reference: Sequence[str],
    store: Path | None,
    tags: dict[str, str],
    saved: Path | None,
    settings: dict[str, Any],
    run: RunOptions,
) -> DriftMonitor:
    """Return the monitor of what was given: files, a store, or a saved monitor."""
    import unaligned as ua

    if sum((bool(reference), store is not None, saved is not None)) != 1:
        raise InputError("Give one of --reference FILE, --store FILE and --monitor FILE.")
    if saved is not None:
        if settings:
            flags = ", ".join(sorted(settings))
            raise InputError(f"The monitor has its own settings; leave out {flags}.")
        return ua.DriftMonitor.load(saved)
    settings["n_jobs"] = run.n_jobs
    if store is not None:
        references = ua.Store(store, create=False)
        signatures = [references[name] for name in references.names(tags)]
        if not signatures:
            raise InputError(f"Store {str(store)!r} has no signatures with these tags.")
        return ua.DriftMonitor(signatures, **settings)
    datasets = list(_load(reading, reference).values())
    return ua.DriftMonitor(datasets if len(datasets) > 1 else datasets[0], **settings)


def _load(reading: FileOptions, files: Sequence[str]) -> dict[str, Dataset]:
    """Return the datasets in files by name; `-` is CSV from stdin."""
    if STDIN not in files:
        return reading.load(files, short=True)
    if len(files) > 1:
        raise InputError("`-` reads the only batch from stdin; give no other files.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "stdin.csv")
        path.write_bytes(sys.stdin.buffer.read())
        try:
            return reading.load([str(path)], short=True)
        except MissingExtraError:
            raise
        except UnalignedError as error:
            raise type(error)(str(error).replace(str(path), "stdin")) from error


def _write(checks: Sequence[DriftCheck], report: Path | None, plot: Path | None) -> None:
    """Write page and figure of all checks."""
    if report is not None:
        from ..report.drift import write_drift_report

        write_drift_report(checks, report)
    if plot is not None:
        from ..figures import drift_history, save

        figure: Any = drift_history(checks).get_figure(root=True)
        save(figure, plot)
