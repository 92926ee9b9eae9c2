"""Data in: whatever the public verbs are given, as named datasets of a size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from . import _check
from .data.dataset import Dataset
from .data.facts import Facts
from .data.preprocess import parse_steps
from .errors import (
    InputError,
    InputTypeError,
    NotApplicableError,
    RecipeMismatchError,
    SampleSizeWarning,
    warn,
)
from .io.load import load
from .io.registry import is_path, name_of, names_of
from .metrics.base import Distance, SpectralDistance
from .result import Comparison
from .spectra.signature import Signature

DataLike: TypeAlias = Any

SIZE_RATIO = 4.0
_DRAW = "Pass subsample='common' to compare at one size."


def own_name(data: DataLike) -> str | None:
    """Return the name that data brings along, or None; that of a path is the file's."""
    if is_path(data):
        return name_of(data)
    return data.name if isinstance(data, (Dataset, Signature)) else None


def collection(
    argument: str, data: Any, data_options: dict[str, Any]
) -> dict[str, Dataset | Signature]:
    """Return name -> Dataset or Signature, names being unique."""
    if isinstance(data, Mapping):
        items = list(data.items())
    elif (
        isinstance(data, (str, bytes)) or not isinstance(data, Iterable) or hasattr(data, "shape")
    ):
        raise InputTypeError(
            f"{argument} must be a dict of name -> data or a list of datasets, not "
            f"{_check.shape_of(data)}. For two datasets write [a, b], for those of a file "
            "load_all(path)."
        )
    else:
        given = list(data)
        of_paths = iter(names_of([value for value in given if is_path(value)]))
        items = [
            (next(of_paths) if is_path(value) else own_name(value) or str(i), value)
            for i, value in enumerate(given)
        ]
    if not items:
        raise InputError(f"{argument} is empty. Give at least one dataset.")
    named: dict[str, Dataset | Signature] = {}
    for name, value in items:
        if name is None:
            raise InputTypeError(f"{argument}: the name None must be text, or a number or date.")
        text = str(name)  # days, months and clusters are names as well
        if text in named:
            forms = dict.fromkeys(repr(other) for other, _ in items if str(other) == text)
            told = f" ({' and '.join(forms)})" if len(forms) > 1 else ""
            raise InputError(
                f"{argument}: the name {text!r} occurs twice{told}. Names must be unique."
            )
        named[text] = as_dataset(value, text, data_options)
    return named


def as_dataset(
    data: DataLike, name: str | None, data_options: dict[str, Any]
) -> Dataset | Signature:
    """Return data as a Dataset under this name; a Signature stays what it is.

    One without a name gets this one.
    """
    if isinstance(data, Signature):
        return replace(data, name=data.name or name)
    if isinstance(data, Dataset):
        steps = data_options["preprocess"]
        if steps and data.preprocess and steps != data.preprocess:
            raise InputError(
                f"{data.label} has its own preprocessing {list(data.preprocess)}; "
                "leave out preprocess=, or build the Dataset without it."
            )
        return data.with_options(name=name, **data_options)
    given = {key: value for key, value in data_options.items() if value is not None}
    if is_path(data):
        return load(data, name=name, **given)
    return Dataset(data, name=name, **given)


def data_options(options: dict[str, Any]) -> dict[str, Any]:
    """Take out of `options` those that belong to the datasets."""
    steps = options.pop("preprocess", None)
    return {
        "preprocess": None if steps is None else parse_steps(steps),
        "nan_policy": options.pop("nan_policy", None),
    }


def require_as_asked(options: Mapping[str, Any], items: Sequence[Dataset | Signature]) -> None:
    """Refuse options that a signature given as data was not made with; it cannot be remade."""
    for item in items:
        if not isinstance(item, Signature):
            continue
        fields = ["gamma", "preprocess", "robust"]
        if item.sigma_squared is not None:
            fields += ["bandwidth", "bandwidth_factor", "n_neighbors", "kernel"]
        made = {name: getattr(item.recipe, name) for name in fields}
        asked = {name: options[name] for name in made if options.get(name) not in (None, "auto")}
        for name, value in asked.items():
            if value != made[name]:
                raise RecipeMismatchError(
                    f"{name}={value!r} was asked for, and a signature given was made with "
                    f"{made[name]!r}. Leave {name} out, or give the data instead."
                )


def common_size(
    subsample: int | str, items: Sequence[Dataset | Signature], method: Distance
) -> int:
    """Return the number of rows at which all are compared."""
    if method.paired_rows:
        raise NotApplicableError(
            f"subsample={subsample!r} draws rows of each dataset by itself, and distance "
            f"{method.name!r} compares row i with row i. Take the same rows of all datasets first."
        )
    if any(isinstance(item, Signature) for item in items):
        raise InputError("subsample needs the data itself; a Signature cannot be subsampled.")
    smallest = min(items, key=lambda item: item.n_samples)
    if subsample == "common":
        return smallest.n_samples
    if isinstance(subsample, str):
        raise InputError(f"subsample={subsample!r} must be a number of rows or 'common'.")
    size = _check.positive_int("subsample", subsample, minimum=2)
    if size > smallest.n_samples:
        raise InputError(
            f"subsample={size} is more than dataset {smallest.name!r} has, "
            f"{smallest.n_samples} rows. Lower it, or use subsample='common'."
        )
    return size


def at_size(
    items: Mapping[str, Dataset | Signature], size: int, seed: int
) -> dict[str, Dataset | Signature]:
    """Return the datasets with rows drawn to this size; smaller ones stay as they are."""
    return {
        name: item.subsample(size, item.generator(seed))
        if isinstance(item, Dataset) and item.n_samples > size
        else item
        for name, item in items.items()
    }


def agreed(
    method: Distance,
    rows: Mapping[str, Dataset | Signature],
    columns: Mapping[str, Dataset | Signature] | None,
) -> Distance:
    """Return the distance fitted to all datasets; refuse it where it has nothing to say."""
    everything = [*rows.values(), *(columns or {}).values()]
    method = method.fit(everything)
    require_applicable(method, rows, columns)
    warn_about_sizes(method, everything)
    return method


def require_applicable(
    method: Distance,
    rows: Mapping[str, Dataset | Signature],
    columns: Mapping[str, Dataset | Facts | Signature] | None,
) -> None:
    """Refuse a distance that can say nothing about some pair of a row and a column.

    Columns that were described before are known by their facts alone.
    """
    known = [_facts(item) for item in rows.values()]
    others = known if columns is None else [_facts(item) for item in columns.values()]
    for first in known:
        for second in others:
            if isinstance(first, Facts) and isinstance(second, Facts):
                reason = method.objection(first, second)
            else:
                spectral = isinstance(method, SpectralDistance)
                reason = None if spectral else "it needs the data, and a Signature was given"
            if reason:
                hint = " 'les' needs neither shared features nor paired rows."
                raise NotApplicableError(
                    f"distance {method.name!r} does not apply: {reason}."
                    f"{hint if _les_applies(first, second) else ''}"
                )


def _facts(item: Dataset | Facts | Signature) -> Facts | Signature:
    return item.facts if isinstance(item, Dataset) else item


def _les_applies(first: Facts | Signature, second: Facts | Signature) -> bool:
    """Say whether LES would answer: two rows or more, and operators made in one way."""
    if isinstance(first, Signature) or isinstance(second, Signature):
        return True
    kinds = {first.kind, second.kind}
    alike = len(kinds) == 1 or kinds == {"points", "distances"}
    enough = min(first.n_samples, second.n_samples) >= 2
    return enough and alike and first.preprocess == second.preprocess


def warn_about_sizes(
    method: Distance, items: Sequence[Dataset | Signature], remedy: str | None = None
) -> None:
    """Warn where LES is biased: the same torus at N=500 and N=4000 is 0.6 apart.

    The `remedy` is what can be done about it, where that is not the usual.
    """
    if not isinstance(method, SpectralDistance):
        return
    small, large = (extreme(items, key=lambda item: item.n_samples) for extreme in (min, max))
    if large.n_samples > SIZE_RATIO * small.n_samples:
        if remedy is None and any(isinstance(item, Signature) for item in items):
            remedy = "Make the signatures of as many rows each."
        warn(
            f"Sample sizes differ more than fourfold: {small.name!r} has {small.n_samples} rows, "
            f"{large.name!r} has {large.n_samples}. Part of their distance comes from size alone. "
            f"{remedy or _DRAW}",
            SampleSizeWarning,
        )


def newcomers(
    datasets: Mapping[str, DataLike], method: Distance, old: Comparison
) -> dict[str, Dataset | Signature]:
    """Return datasets that join a comparison: prepared as its members were, and checked."""
    signatures = list(old.signatures.values())
    preparation = dict(old.preparation)
    size = preparation.pop("subsample", None)
    if preparation.get("preprocess") is None and signatures:
        preparation["preprocess"] = signatures[0].recipe.preprocess or None
    named = collection("datasets", datasets, preparation)
    if size is not None:
        common_size(size, list(named.values()), method)
        named = at_size(named, size, old.seed)
    method.fit(list(named.values()))  # only for what it refuses: the method is settled
    known = {**old._facts, **named} if old.is_square else old._reference_facts
    require_applicable(method, named, known)
    warn_about_sizes(method, [*signatures, *named.values()])
    return named
