"""`unaligned describe`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError, RecipeMismatchError, counted
from .app import command, resumable
from .options import (
    AsJSON,
    FileOptions,
    Files,
    RunOptions,
    SignatureOptions,
    StorePath,
    Subsample,
    Tags,
    option,
    pairs,
)
from .printing import print_json, print_message

if TYPE_CHECKING:
    from ..data.dataset import Dataset
    from ..store import Store


@command(
    "unaligned describe cells.npy model.npy --store refs.db",
    "unaligned describe digits.csv --store refs.db --tag source=scans --tag year=2024",
    "unaligned describe table.csv --group-by day --store days.db --jobs 2",
)
def describe(
    files: Files,
    store: StorePath,
    reading: FileOptions,
    signature: SignatureOptions,
    run: RunOptions,
    subsample: Subsample = None,
    tag: Tags = None,
    replace: Annotated[bool, option("Replace signatures.", False, "--replace")] = False,
    json: AsJSON = False,
) -> None:
    """Compute signatures and add them to a store.

    A line (with --json an object) is printed for each as soon as it is on disk. Signatures
    already in the store are not computed again, so an interrupted run continues; several
    processes may write to one store. All signatures of a store share the settings of the first.
    """
    from .. import Store, engine
    from .. import signature as compute
    from ..execution import default_jobs
    from ..metrics.les import LES
    from ..preparation import common_size, subsample_all
    from ..spectra.prices import announced_together
    from ..store.search import require_rows

    tags = pairs("--tag", tag)
    whole = reading.load(files)
    target = Store(store, create=False) if store.exists() else None
    datasets: Mapping[str, Any] = whole
    if subsample is not None:
        stored = 0 if target is None else target.options.get("rng", 0)
        seed = stored if run.rng is None else run.rng
        datasets = subsample_all(whole, common_size(subsample, list(whole.values()), LES()), seed)
    missing = dict(datasets)
    if target is not None and not replace:
        missing = {name: d for name, d in datasets.items() if not _is_in(target, name, d)}
        for name in datasets.keys() - missing.keys():
            target.tag(name, tags)
    if len(missing) < len(datasets):
        n_stored = len(datasets) - len(missing)
        print_message(f"Already in the store: {n_stored} of {counted(len(datasets), 'dataset')}.")
    options = _settings_of(target, signature.given(), list(missing.values()))
    if run.rng is not None:
        options["rng"] = run.rng
    if target is None:
        target = Store(store)  # created only once the input is valid
    for dataset in missing.values():
        require_rows(target, dataset)

    def add(name: str) -> None:
        found = compute(missing[name], **options)
        n_rows, stats = whole[name].n_samples, dict(found.stats)
        if n_rows > found.n_samples:
            stats["rows_drawn_from"] = n_rows
        stats["origin"] = reading.origin_of(whole[name])
        found = dataclasses.replace(found, stats=stats)
        target.add(found, name=name, tags=tags, replace=replace)
        facts = {"n_samples": found.n_samples, "n_features": found.n_features}
        if json:
            print_json({"name": name, **facts, "error_bound": found.total_error_bound})
        else:
            typer.echo(
                f"{name}: {found.n_samples} × {found.n_features}, K={found.n_eigenvalues}, "
                f"error ≤ {found.total_error_bound:.1g} {found.bound_kind}"
            )

    sizes = [dataset.n_samples for dataset in missing.values()]
    again = "Stored signatures are kept: run the same command to continue."
    with resumable(again), announced_together(sizes):
        jobs = default_jobs(missing.values()) if run.n_jobs is None else run.n_jobs
        engine.run(add, list(missing), n_jobs=jobs, progress=False, description="describing")


def _is_in(store: Store, name: str, dataset: Dataset) -> bool:
    """Whether the store has this data under this name; raise an error if it has other data."""
    found = store.find(name)
    if found is not None and found.fingerprint != dataset.fingerprint:
        raise InputError(
            f"Store {str(store.path)!r} has other data under the name {name!r}. Rename the file, "
            "or give --replace."
        )
    return found is not None


def _settings_of(
    store: Store | None, given: dict[str, Any], datasets: list[Dataset]
) -> dict[str, Any]:
    """Return the options of `ua.signature`: those of the store, or those given for a new one."""
    from ..metrics.registry import resolve_distance

    if isinstance(given.get("gamma"), str):
        raise InputError(
            f"gamma={given['gamma']!r} chooses one for each dataset, and all signatures of a "
            "store need the same. `unaligned info` suggests a number."
        )
    options = {} if store is None else store.options
    steps = [dataset.preprocess for dataset in datasets if dataset.preprocess]
    asked = {**given, "preprocess": steps[0]} if steps else given
    for name, value in asked.items():
        # The solver and its tolerance may differ within a store.
        if name not in ("solver", "tol") and value != options.get(name, value):
            raise RecipeMismatchError(
                f"{name}={value!r} differs from the signatures in the store, which have "
                f"{options[name]!r}. Leave it out, or use another store."
            )
    if not options and datasets:  # the first signatures determine K
        first = resolve_distance("les", given).fit(datasets)
        given = {**given, "n_eigenvalues": first.options()["n_eigenvalues"]}
    return {**options, **given}
