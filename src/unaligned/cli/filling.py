"""The command that fills a store: describe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError, RecipeMismatchError, counted
from .base import app, examples, flat, going_on
from .options import AsJSON, Files, Making, Running, StorePath, Tags, pairs, subsample_size
from .output import print_json, say
from .reading import Reading

if TYPE_CHECKING:
    from ..data.dataset import Dataset
    from ..spectra.signature import Signature
    from ..store import Store

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
    subsample: Annotated[
        str | None,
        typer.Option(help="Draw so many rows of each first; as many as the smallest: `common`."),
    ] = None,
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
    from ..store.additions import require_rows

    tags = pairs("--tag", tag)
    whole = reading.load(files)
    old = Store(store, create=False) if store.exists() else None
    datasets = _drawn(whole, subsample, running.seed, old)
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
        for dataset in missing.values():
            require_rows(old, dataset)
    sizes = {name: whole[name].n_samples for name in missing}
    kept = Store(store) if old is None else old  # made only when nothing is wrong
    with going_on("What is in the store stays: the same command goes on from there."):
        jobs = running.n_jobs(missing.values())
        _describe(kept, missing, sizes, options, jobs, tags=tags, replace=replace, json=json)


def _drawn(
    datasets: Mapping[str, Dataset], subsample: str | None, seed: int | None, store: Store | None
) -> Mapping[str, Any]:
    """Return the datasets with so many rows each, drawn as `compare` draws them."""
    from ..inputs import at_size, common_size
    from ..metrics.les import LES

    asked = subsample_size(subsample)
    if asked is None:
        return datasets
    size = common_size(asked, list(datasets.values()), LES())
    if seed is None:
        seed = 0 if store is None else store.options.get("rng", 0)
    return at_size(datasets, size, seed)


def _describe(
    store: Store,
    datasets: Mapping[str, Dataset],
    sizes: Mapping[str, int],
    options: Mapping[str, Any],
    jobs: int,
    *,
    tags: Mapping[str, str],
    replace: bool,
    json: bool,
) -> None:
    from .. import engine, signature

    def one(name: str) -> None:
        found = signature(datasets[name], **options)
        if sizes[name] > found.n_samples:
            found = _drawn_from(sizes[name], found)
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


def _drawn_from(n_rows: int, signature: Signature) -> Signature:
    """Return a signature that knows how many rows there were before some were drawn."""
    return replace(signature, stats={**signature.stats, "rows_drawn_from": n_rows})


def _is_there(store: Store, name: str, dataset: Dataset) -> bool:
    """Whether the store has this data under this name; other data there is refused."""
    found = store.find(name)
    if found is not None and found.fingerprint != dataset.fingerprint:
        raise InputError(
            f"Store {str(store.path)!r} has other data under the name {name!r}. Rename the file, "
            "or give --replace."
        )
    return found is not None


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
