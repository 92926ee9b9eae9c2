"""`unaligned info`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from .._format import amount, duration
from ..defaults import GAMMA, N_EIGENVALUES
from ..errors import MissingDataWarning, UnalignedError, UnalignedWarning
from .app import command, exit_code
from .options import AsJSON, FileOptions, Files, SignatureOptions, Subsample
from .printing import print_json, print_problem, print_table, stdout, table, with_flags

if TYPE_CHECKING:
    from ..data.dataset import Dataset


@command(
    "unaligned info cells.npy",
    "unaligned info table.csv --group-by day",
    "unaligned info cells.npy model.npy --subsample common",
    "unaligned info arrays.npz:first --json",
)
def info(
    files: Files,
    reading: FileOptions,
    signature: SignatureOptions,
    subsample: Subsample = None,
    json: AsJSON = False,
) -> None:
    """Show the contents of files, what a comparison would cost, and suggested settings.

    Shape, type, rows with NaN, duplicates; time and memory of a signature, with --subsample of as
    many rows; K and γ as the spectrum suggests them (of 2000 rows if there are more). Files that
    cannot be read are errors, and the others are shown.
    """
    from ..metrics.les import LES
    from ..preparation import common_size

    codes: list[int] = []

    def on_error(error: UnalignedError) -> None:
        print_problem("Error", error)
        codes.append(exit_code(error))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingDataWarning)  # the table has the count
        reading = replace(reading, nan_policy="omit")
        datasets = reading.load(files, short=True, on_error=on_error)
    options, size = signature.given(), None
    if subsample is not None and datasets:
        size = common_size(subsample, list(datasets.values()), LES())
    found = [dataset_info(item, options, size) for item in datasets.values()]
    if json and found:
        print_json(found)
    elif found:
        _print(found)
    if any(item["problem"] for item in found):
        codes.append(2)
    if codes:
        raise typer.Exit(max(codes))


_COST = ("solver", "seconds", "memory_bytes", "cheaper")
_ADVICE = ("n_eigenvalues", "n_eigenvalues_reason", "gamma", "gamma_reason")


def dataset_info(dataset: Dataset, options: dict[str, Any], size: int | None) -> dict[str, Any]:
    """Return contents, cost and suggestions; an error of the latter becomes the `problem`.

    `size` is a number of rows to draw first.
    """
    import unaligned as ua

    n_unique = dataset.n_samples
    if dataset.kind == "points":  # + 0.0 turns -0.0 into 0.0
        rows = (row for block in dataset.blocks() for row in block + 0.0)
        n_unique = len({hash(row.tobytes()) for row in rows})
    contents = {
        "name": dataset.name or "",
        "kind": dataset.kind,
        "n_samples": dataset.n_samples + dataset.n_dropped,
        "n_features": dataset.n_features,
        "dtype": str(getattr(dataset.values, "dtype", "float64")),
        "rows_with_nan": dataset.n_dropped,
        "duplicate_rows": dataset.n_samples - n_unique,
        **dict.fromkeys((*_COST, *_ADVICE, "problem")),
    }
    sample, n_rows = dataset, min(size or 2000, 2000)  # a spectrum of 2000 rows takes a second
    if dataset.n_samples > n_rows:
        sample = dataset.subsample(n_rows, dataset.generator(0))
    try:
        cost = ua.estimate(dataset, subsample=size, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnalignedWarning)  # they would be about the sample
            advice = ua.diagnose(sample, **options)
    except UnalignedError as error:
        return {**contents, "problem": with_flags(error)}
    suggested = {name: getattr(advice, name) for name in _ADVICE}
    return {**contents, **{name: getattr(cost, name) for name in _COST}, **suggested}


def _print(found: Sequence[dict[str, Any]]) -> None:
    """Print a table, problems, and what the suggestions mean."""
    columns = ["dataset", "rows", "columns", "type", "rows with NaN", "duplicates"]
    rows = table([*columns, "solver", "time", "memory", "suggested K", "suggested γ"], n_text=1)
    sound = [item for item in found if item["problem"] is None]
    for item in found:
        facts = ("n_samples", "n_features", "dtype", "rows_with_nan", "duplicate_rows")
        advice = ["-"] * 5
        if item in sound:
            cost = [item["solver"], duration(item["seconds"]), amount(item["memory_bytes"])]
            advice = [*cost, str(item["n_eigenvalues"]), f"{item['gamma']:.0e}"]
        rows.add_row(item["name"], *(str(item[name]) for name in facts), *advice)
    print_table("", rows)
    console = stdout()
    for item in found:
        if item not in sound:
            console.print(f"{item['name']}: {item['problem']}")
        for way in item["cheaper"] or ():
            console.print(f"{item['name']}: {with_flags(way)}")
    if sound:
        note = "K and γ are suggestions, read off each spectrum. The defaults are "
        note += f"K = min({N_EIGENVALUES}, the smallest number of rows) and γ = {GAMMA:g}."
        if len(sound) == 1:
            note += f" Here: {sound[0]['n_eigenvalues_reason']}; {sound[0]['gamma_reason']}."
        console.print(note)
