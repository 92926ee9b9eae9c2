"""References read again from the files that `unaligned describe` recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..comparison import signature
from ..data.dataset import Dataset
from ..errors import InputError, SampleSizeWarning, UnalignedError, listed, warn
from ..io.load import load_all
from ..spectra.signature import Signature
from .file import transaction
from .records import Record, restore, select, where

if TYPE_CHECKING:
    from . import Store


def drawn_references(
    store: Store, tags: Mapping[str, Any] | None, size: int, options: Mapping[str, Any]
) -> dict[str, Signature]:
    """Return signatures of `size` rows of each larger reference; warn of those without a file."""
    with transaction(store.path) as db:
        larger = [record for record in select(db, *where(tags)) if record.n_samples > size]
        origins = [restore(db, record.name).stats.get("origin") for record in larger]
    found: dict[str, Signature] = {}
    failed: dict[str, str] = {}
    files: dict[str, dict[str, Dataset]] = {}  # one file can hold many references
    seed = options.get("rng", 0)
    for record, origin in zip(larger, origins, strict=True):
        try:
            dataset = _read(record, origin, seed, files)
        except (UnalignedError, OSError) as error:
            failed[record.name] = str(error)
            continue
        drawn = dataset.subsample(size, dataset.generator(seed))
        found[record.name] = signature(drawn, **options)
    if failed:
        name, reason = next(iter(failed.items()))
        rows = listed([f"{r.name!r} ({r.n_samples})" for r in larger if r.name in failed])
        warn(
            f"subsample='common' compares at {size} rows, but these references keep all their "
            f"rows: {rows}. Reference {name!r} cannot be read again: {reason}",
            SampleSizeWarning,
        )
    return found


def _read(record: Record, origin: Any, seed: int, files: dict[str, Any]) -> Dataset:
    """Return the dataset that a reference was computed from, checked by its fingerprint."""
    if not isinstance(origin, dict):
        raise InputError("its file is not known. Add it by `unaligned describe`.")
    path, options = (origin.get(key) for key in ("path", "options"))
    if not isinstance(path, str) or not isinstance(options, dict) or "path" in options:
        raise InputError("what the store has of its file is damaged. Describe it again.")
    if str(origin) not in files:
        given: Any = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
        files[str(origin)] = load_all(path, **given)
    for dataset in files[str(origin)].values():
        if dataset.n_samples == record.rows_drawn_from:
            dataset = dataset.subsample(record.n_samples, dataset.generator(seed))
        if dataset.fingerprint == record.fingerprint:
            found: Dataset = dataset.with_options(name=record.name)
            return found
    raise InputError(f"{path!r} has other data now. Describe it again.")
