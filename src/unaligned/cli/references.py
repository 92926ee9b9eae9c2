"""Commands about a store of references: describe, nearest, list, remove, export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError, RecipeMismatchError, counted
from ._results import number
from .base import app, examples, flat, going_on
from .options import AsJSON, Files, Making, Running, StorePath, Tags, pairs
from .output import print_json, say, show, table
from .reading import Reading

if TYPE_CHECKING:
    from ..data.dataset import Dataset
    from ..store import Neighbour, Store


_FREE = ("solver", "tol")  # may differ among signatures that are compared


@app.command(
    epilog=examples(
        "unaligned describe cells.npy model.npy --store refs.db",
        "unaligned describe digits.csv --store refs.db --tag source=scans --tag year=2024",
        "unaligned describe table.csv --group-by day --store days.db --jobs 2",
    )
)
@flat
def describe(
    files: Files,
    store: StorePath,
    reading: Reading,
    making: Making,
    running: Running,
    tag: Tags = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace signatures of these names.")
    ] = False,
    json: AsJSON = False,
) -> None:
    """Compute signatures and keep them in a store.

    A line (with --json an object) is printed for each as soon as it is on disk. What is in the
    store already is not computed again, so a run that was stopped goes on where it was;
    several may fill one store at once. All signatures of a store are made alike: the first
    decides, and the options of later runs follow.
    """
    from .. import Store

    tags = pairs("--tag", tag)
    datasets = reading.load(files)
    old = Store(store, create=False) if store.exists() else None
    missing = dict(datasets)
    if old is not None and not replace:
        missing = {name: d for name, d in datasets.items() if not _is_there(old, name, d)}
        for name in datasets.keys() - missing.keys():
            old.tag(name, tags)
    if len(missing) < len(datasets):
        n_there = len(datasets) - len(missing)
        say(f"In the store already: {n_there} of {counted(len(datasets), 'dataset')}.")
    options = _settled(old, making.given(), list(missing.values()))
    if running.seed is not None:
        options["rng"] = running.seed
    if old is not None:
        _require_rows(old, missing)
    kept = Store(store) if old is None else old  # made only when nothing is wrong
    with going_on("What is in the store stays: the same command goes on from there."):
        jobs = running.n_jobs(missing.values())
        _describe(kept, missing, options, jobs, tags, replace=replace, json=json)


def _describe(
    store: Store,
    datasets: Mapping[str, Dataset],
    options: Mapping[str, Any],
    jobs: int,
    tags: Mapping[str, str],
    *,
    replace: bool,
    json: bool,
) -> None:
    from .. import engine, signature

    def one(name: str) -> None:
        found = signature(datasets[name], **options)
        store.add(found, name=name, tags=tags, replace=replace)
        facts = {"n_samples": found.n_samples, "n_features": found.n_features}
        if json:
            print_json({"name": name, **facts, "error_bound": found.total_error_bound})
        else:
            typer.echo(
                f"{name}: {found.n_samples} × {found.n_features}, K={found.n_eigenvalues}, "
                f"error ≤ {found.total_error_bound:.1g} {found.bound_kind}"
            )

    engine.run(one, list(datasets), n_jobs=jobs, progress=False, description="describing")


def _is_there(store: Store, name: str, dataset: Dataset) -> bool:
    """Whether the store has this data under this name; other data there is refused."""
    found = store.find(name)
    if found is not None and found.fingerprint != dataset.fingerprint:
        raise InputError(
            f"Store {str(store.path)!r} has other data under the name {name!r}. Rename the file, "
            "or give --replace."
        )
    return found is not None


def _require_rows(store: Store, datasets: Mapping[str, Dataset]) -> None:
    """Refuse a dataset too small for the store's K, which no option can lower any more."""
    k = store.options.get("n_eigenvalues", 0)
    for name, dataset in datasets.items():
        if dataset.n_samples < k:
            raise InputError(
                f"The signatures in {str(store.path)!r} have {k} values, which takes {k} rows; "
                f"dataset {name!r} has {dataset.n_samples}. Leave it out, or describe all files "
                f"into another store with -K {dataset.n_samples}."
            )


def _settled(
    store: Store | None, given: dict[str, Any], datasets: list[Dataset]
) -> dict[str, Any]:
    """Return the options of all signatures: those of the store, or of its first."""
    from ..metrics.registry import resolve_distance

    if given.get("gamma") == "auto":
        raise InputError(
            "gamma='auto' chooses one for each dataset, and all signatures of a store need the "
            "same. `unaligned info` suggests a number."
        )
    options = {} if store is None else store.options
    steps = [dataset.preprocess for dataset in datasets if dataset.preprocess]
    asked = {**given, "preprocess": steps[0]} if steps else given
    for name, value in asked.items():
        if store is not None and name not in _FREE and value != options.get(name, value):
            raise RecipeMismatchError(
                f"{name}={value!r} was asked for, and the signatures in {str(store.path)!r} have "
                f"{options[name]!r}. Leave it out, or use another store."
            )
    if not options and datasets:  # the first signatures decide on K
        first = resolve_distance("les", given).fit(datasets)
        given = {**given, "n_eigenvalues": first.options()["n_eigenvalues"]}
    return {**options, **given}


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
    tag: Tags = None,
    json: AsJSON = False,
) -> None:
    """Find the references in a store that a dataset is most like.

    The dataset's signature is made as those in the store were. Only references that have all
    tags given are looked at.
    """
    from .. import Store

    references = Store(store, create=False)
    wanted = pairs("--tag", tag)
    datasets = reading.load(files)
    _require_rows(references, datasets)
    found = {
        name: references.nearest(dataset, k, aggregate=aggregate, by=by, tags=wanted)
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
        shown = table(["reference", "tags", "distance", "error ≤"], first=2)
    else:
        columns = [by or "references", "how many", f"{aggregate} distance", "error ≤"]
        shown = table(columns, first=1)
    for near in row:
        second = str(near.n_references) if aggregate else _told(near.tags)
        shown.add_row(near.name, second, number(near.distance), f"{near.error_bound:.1g}")
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
        sizes = (record.n_samples, record.n_features, record.n_eigenvalues)
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

    count = Store(store, create=False).export(out, tags=pairs("--tag", tag))
    say(f"Written: {out}, {counted(count, 'signature')}.")


def _told(tags: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in tags.items())
