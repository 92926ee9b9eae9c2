"""Commands about a store of references: nearest, list, remove, export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import counted
from ._results import FORMATS, number, require_file
from .base import app, examples, flat
from .options import AsJSON, Files, StorePath, Tags, pairs, subsample_size
from .output import print_json, say, show, table
from .reading import Reading

if TYPE_CHECKING:
    from ..store import Neighbour


@app.command(
    epilog=examples(
        "unaligned nearest new.npy --store refs.db",
        "unaligned nearest new.npy --store refs.db -k 3 --tag source=scans",
        "unaligned nearest new.npy --store refs.db --aggregate mean --by source",
    )
)
@flat
def nearest(
    files: Files,
    store: StorePath,
    reading: Reading,
    k: Annotated[int, typer.Option("-k", min=1, help="How many.")] = 5,
    aggregate: Annotated[
        str | None,
        typer.Option(help="How unlike the references are together: `mean`, `min` or `max`."),
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="With --aggregate: a tag, whose values make groups.")
    ] = None,
    subsample: Annotated[
        str | None,
        typer.Option(
            help="Draw so many rows first; as many as the smallest reference has: `common`."
        ),
    ] = None,
    tag: Tags = None,
    json: AsJSON = False,
) -> None:
    """Find the references in a store that a dataset is most like.

    The dataset's signature is made as those in the store were. Only references that have all
    tags given are looked at. Distances between unlike numbers of rows are large for that alone:
    then a warning says so, and --subsample helps.
    """
    from .. import Store
    from ..store.additions import require_rows

    references = Store(store, create=False)
    wanted = pairs("--tag", tag)
    datasets = reading.load(files)
    for dataset in datasets.values():  # of all, before the first is computed
        require_rows(references, dataset)
    size = subsample_size(subsample)
    found = {
        name: references.nearest(
            dataset, k, aggregate=aggregate, by=by, tags=wanted, subsample=size
        )
        for name, dataset in datasets.items()
    }
    if json:
        print_json({name: [asdict(near) for near in row] for name, row in found.items()})
        return
    for name, row in found.items():
        _print_neighbours(name, row, aggregate, by)


def _print_neighbours(
    name: str, row: Sequence[Neighbour], aggregate: str | None, by: str | None
) -> None:
    if aggregate is None:
        shown = table(["reference", "tags", "rows", "distance", "error ≤"], first=2)
    else:
        columns = [by or "references", "how many", f"{aggregate} distance", "error ≤"]
        shown = table(columns, first=1)
    for near in row:
        known = [str(near.n_references)] if aggregate else [_told(near.tags), str(near.n_samples)]
        shown.add_row(near.name, *known, number(near.distance), f"{near.error_bound:.1g}")
    show(f"Nearest to {name}", shown)


@app.command(
    "list",
    epilog=examples(
        "unaligned list --store refs.db", "unaligned list --store refs.db --tag source=scans"
    ),
)
def list_(store: StorePath, tag: Tags = None, json: AsJSON = False) -> None:
    """List the signatures in a store."""
    from .. import Store

    records = Store(store, create=False).records(pairs("--tag", tag))
    if json:
        print_json([asdict(record) for record in records])
        return
    columns = ["name", "tags", "made", "rows", "columns", "K", "error ≤"]
    shown = table(columns, first=3)
    for record in records:
        drawn = f" of {record.rows_drawn_from}" if record.rows_drawn_from else ""
        sizes = (f"{record.n_samples}{drawn}", record.n_features, record.n_eigenvalues)
        bound = f"{record.error_bound:.1g}"
        shown.add_row(
            record.name, _told(record.tags), record.created[:10], *map(str, sizes), bound
        )
    show(f"{store}: {counted(len(records), 'signature')}", shown)


@app.command(epilog=examples("unaligned remove model --store refs.db"))
def remove(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of signatures.")],
    store: StorePath,
) -> None:
    """Remove signatures from a store, all of these or none."""
    from .. import Store

    unique = list(dict.fromkeys(names))
    Store(store, create=False).remove(*unique)
    say(f"Removed: {', '.join(unique)}.")


@app.command(
    epilog=examples(
        "unaligned export --store refs.db --out signatures.csv",
        "unaligned export --store refs.db --out scans.json --tag source=scans",
    )
)
def export(
    store: StorePath,
    out: Annotated[Path, typer.Option(help="The file: .csv, .json or .npz.")],
    tag: Tags = None,
) -> None:
    """Write the signatures in a store to a file that other programs read."""
    from .. import Store

    require_file("out", out, FORMATS)
    count = Store(store, create=False).export(out, tags=pairs("--tag", tag))
    say(f"Written: {out}, {counted(count, 'signature')}.")


def _told(tags: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in tags.items())
