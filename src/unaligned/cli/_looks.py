"""What `info` finds out about a dataset."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from .._format import amount, duration
from ..errors import UnalignedError, UnalignedWarning, counted
from .output import fits, out, print_json, table
from .wording import in_shell

if TYPE_CHECKING:
    from ..data.dataset import Dataset

_LOOKED_AT = 2000  # rows: a spectrum of so many takes a second


@dataclass(frozen=True)
class Look:
    """What `info` says of one dataset."""

    name: str
    kind: str
    n_samples: int
    n_features: int
    dtype: str
    rows_with_nan: int
    duplicate_rows: int
    solver: str | None = None
    seconds: float | None = None
    memory_bytes: int | None = None
    n_eigenvalues: int | None = None
    n_eigenvalues_reason: str | None = None
    gamma: float | None = None
    gamma_reason: str | None = None
    problem: str | None = None


def look_at(dataset: Dataset, options: dict[str, Any]) -> Look:
    """Return what is known of a dataset; what cannot be computed is said as its problem."""
    plain: dict[str, Any] = {
        "name": dataset.name or "",
        "kind": dataset.kind,
        "n_samples": dataset.n_samples + dataset.n_dropped,
        "n_features": dataset.n_features,
        "dtype": str(getattr(dataset.values, "dtype", "float64")),
        "rows_with_nan": dataset.n_dropped,
        "duplicate_rows": _duplicates(dataset),
    }
    try:
        return Look(**plain, **_cost(dataset, options), **_suggestions(dataset, options))
    except UnalignedError as error:
        return Look(**plain, problem=in_shell(error))


def _duplicates(dataset: Dataset) -> int:
    """Return how many rows are the same as an earlier one; for a matrix that means nothing."""
    if dataset.kind != "points":
        return 0
    seen = {hash(row.tobytes()) for block in dataset.blocks() for row in block + 0.0}  # no -0.0
    return dataset.n_samples - len(seen)


def _cost(dataset: Dataset, options: dict[str, Any]) -> dict[str, Any]:
    import unaligned as ua

    found = ua.estimate(dataset, **options)
    names = ("solver", "seconds", "memory_bytes")
    return {name: getattr(found, name) for name in names}


def _suggestions(dataset: Dataset, options: dict[str, Any]) -> dict[str, Any]:
    import unaligned as ua

    part = dataset
    if dataset.n_samples > _LOOKED_AT:
        part = dataset.subsample(_LOOKED_AT, dataset.generator(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnalignedWarning)  # of a part they would mislead
        found = ua.diagnose(part, **options)
    return {
        "n_eigenvalues": found.n_eigenvalues,
        "n_eigenvalues_reason": found.n_eigenvalues_reason,
        "gamma": found.gamma,
        "gamma_reason": found.gamma_reason,
    }


def print_looks(looks: Sequence[Look], *, json: bool) -> None:
    """Print what was found as a table, or in words where the terminal is too narrow for it."""
    if json:
        print_json([asdict(look) for look in looks])
        return
    columns = ["dataset", "rows", "columns", "type", "rows with NaN", "duplicates"]
    shown = table([*columns, "solver", "time", "memory", "suggested K", "suggested γ"], first=1)
    for look in looks:
        shown.add_row(*_cells(look))
    console = out()
    if fits(shown):
        console.print(shown)
    else:
        for look in looks:
            console.print(_sentence(look))
    for look in looks:
        if look.problem is not None:
            console.print(f"{look.name}: {look.problem}")
    sound = [look for look in looks if look.problem is None]
    if sound:
        console.print(_note(sound))


def _note(looks: Sequence[Look]) -> str:
    """Return what the suggestions are, and why these where there is one dataset only."""
    note = "K and γ are suggestions, read off each spectrum; without -K and --gamma it is "
    note += "K = min(200, the smallest number of rows) and γ = 1e-08."
    if len(looks) > 1:
        return note
    return f"{note} Here: {looks[0].n_eigenvalues_reason}; {looks[0].gamma_reason}."


def _cells(look: Look) -> list[str]:
    facts = (look.n_samples, look.n_features, look.dtype, look.rows_with_nan, look.duplicate_rows)
    found = [look.name, *map(str, facts)]
    if look.seconds is None or look.memory_bytes is None or look.gamma is None:
        return [*found, *["-"] * 5]
    cost = [str(look.solver), duration(look.seconds), amount(look.memory_bytes)]
    return [*found, *cost, str(look.n_eigenvalues), f"{look.gamma:.0e}"]


def _sentence(look: Look) -> str:
    name, rows, columns, dtype, missing, twice, solver, time, memory, k, gamma = _cells(look)
    bad = f"{counted(int(missing), 'row')} with NaN, {counted(int(twice), 'duplicate')}"
    said = f"{name}: {rows} × {columns} {dtype}, {bad}"
    if look.problem is not None:
        return said
    return f"{said}; {solver}, {time}, {memory}; suggested: K={k}, γ={gamma}"
