"""Tags: annotations of datasets, such as day or tissue."""

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from . import _check
from .errors import InputError, InputTypeError

TagValue: TypeAlias = float | str | None


@dataclass(frozen=True)
class Tag:
    """One annotation of all datasets: numbers, or strings naming groups; None where missing."""

    name: str
    values: tuple[TagValue, ...]  # one per dataset, in order

    @property
    def is_numeric(self) -> bool:
        """Whether all known values are numbers, and there is at least one."""
        known = [value for value in self.values if value is not None]
        return bool(known) and not any(isinstance(value, str) for value in known)

    @property
    def is_constant(self) -> bool:
        """Whether all datasets have the same value."""
        return len(set(self.values)) == 1

    @property
    def limits(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        known = [float(value) for value in self.values if value is not None]
        return min(known), max(known)

    @property
    def groups(self) -> tuple[str, ...]:
        """The distinct values, in order of appearance."""
        return tuple(dict.fromkeys(str(v) for v in self.values if v is not None))


def read_tags(tags: Any, names: Sequence[str]) -> list[Tag]:
    """Return tags as one `Tag` each, with a value for each of `names` or None.

    `tags` is a dict of dataset -> {tag: value}; a dict of tag -> values, these being a sequence
    in the order of `names` or a dict by dataset; a dict of dataset -> value, for one tag; a
    DataFrame (a row for each dataset) or a Series, by name of dataset; None for no tags. Values
    for other datasets are ignored, unless a dataset has none: then a name is misspelt.
    """
    columns = {} if tags is None else _columns(tags, names)
    return [Tag(key, _aligned(key, column, names)) for key, column in columns.items()]


def metadata_tags(metadata: Mapping[str, Mapping[str, Any]], names: Sequence[str]) -> list[Tag]:
    """Return the scalar entries of the datasets' metadata as tags."""
    rows = {name: metadata.get(name, {}).items() for name in names}
    plain = {name: {k: v for k, v in row if _is_scalar(v)} for name, row in rows.items()}
    return read_tags(plain, names)


def one_tag(
    tag: Any, names: Sequence[str], metadata: Mapping[str, Mapping[str, Any]]
) -> Tag | None:
    """Return one tag: a list in order, by its name in the metadata, or as for `read_tags`."""
    if tag is None:
        return None
    if isinstance(tag, str):
        return _own_tag("color", tag, names, metadata)
    if isinstance(tag, (list, tuple, range, np.ndarray)):
        return Tag("", _aligned("color", tag, names))
    tags = read_tags(tag, names)
    if len(tags) != 1:
        raise InputError(f"color must be one tag; got {len(tags)}. Pass a dict with one entry.")
    return tags[0]


def values_of(
    values: Any,
    names: Sequence[str],
    metadata: Mapping[str, Mapping[str, Any]],
    argument: str = "values",
) -> Any:
    """Return one value per dataset, from a metadata entry, a mapping by name, or as given."""
    what = "label" if argument == "groups" else "value"
    if isinstance(values, str):
        known = dict(zip(names, _own_tag(argument, values, names, metadata).values, strict=True))
    elif hasattr(values, "items"):
        known = {str(name): value for name, value in values.items()}
    else:
        return values
    for name in names:
        if known.get(name) is None:
            raise InputError(f"{argument} has no {what} for dataset {name!r}.")
    return [known[name] for name in names]


def _own_tag(
    argument: str, tag: str, names: Sequence[str], metadata: Mapping[str, Mapping[str, Any]]
) -> Tag:
    """Return the metadata entry of this name as a tag."""
    known = {own.name: own for own in metadata_tags(metadata, names)}
    if tag not in known:
        raise InputError(
            f"{argument}={tag!r} is not in the metadata of the datasets, which has "
            f"{', '.join(known) or 'no entries'}.{_check.did_you_mean(tag, known)} Pass a dict "
            "of dataset -> value."
        )
    return known[tag]


def _columns(tags: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return tag -> values, a sequence or a mapping by dataset."""
    if hasattr(tags, "columns") and hasattr(tags, "index"):
        return {str(key): column for key, column in tags.items()}
    if _is_series(tags):
        return {"tag" if tags.name is None else str(tags.name): tags}
    if not isinstance(tags, Mapping):
        raise InputTypeError(
            f"tags must be a dict or a DataFrame, not {_check.shape_of(tags)}. Pass "
            "{'dataset': {'tag': value}} or {'tag': [one value per dataset]}."
        )
    by_name = {str(key): value for key, value in tags.items()}
    inner = list(by_name.values())
    if inner and all(map(_is_scalar, inner)):
        return {"tag": by_name}
    if any(key in names for key in by_name) and all(isinstance(v, Mapping) for v in inner):
        keys = dict.fromkeys(str(key) for row in inner for key in row)
        _require_names("tags", by_name, names)
        return {key: {name: row.get(key) for name, row in by_name.items()} for key in keys}
    return by_name


def _aligned(key: str, column: Any, names: Sequence[str]) -> tuple[TagValue, ...]:
    """Return one value per name: numbers, or strings where any value is one."""
    if _is_series(column):
        if column.index.has_duplicates:
            twice = column.index[column.index.duplicated()][0]
            raise InputError(f"tags has more than one row for {str(twice)!r}. Keep one.")
        column = dict(zip(column.index, column, strict=True))
    if isinstance(column, Mapping):
        column = {str(name): value for name, value in column.items()}
        _require_names(f"tag {key!r}", column, names)
        column = [column.get(name) for name in names]
    if isinstance(column, str) or not isinstance(column, Iterable):
        raise InputTypeError(
            f"tag {key!r} must have one value per dataset, in order or by name; got {column!r}."
        )
    values = [_value(key, value) for value in column]
    if len(values) != len(names):
        raise InputError(
            f"tag {key!r} has {len(values)} values for {len(names)} datasets. Pass one per "
            "dataset, None where it is missing, or a dict by name."
        )
    if any(isinstance(value, str) for value in values):
        values = [f"{v:g}" if isinstance(v, float) else v for v in values]
    return tuple(values)


def _value(key: str, value: Any) -> TagValue:
    if _check.is_missing(value):
        return None
    if isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)):
        number = float(value)
        if math.isinf(number):
            raise InputError(f"tag {key!r} has an infinite value. Replace it by None.")
        return number
    if not _is_scalar(value):
        raise InputTypeError(
            f"tag {key!r} has the value {value!r}; it must be a number, a string or None."
        )
    return str(value)


def _is_scalar(value: Any) -> bool:
    """Whether this is a single value: a number, a string, a date, None."""
    return isinstance(value, (str, bytes)) or not isinstance(value, Iterable)


def _is_series(value: Any) -> bool:
    return hasattr(value, "index") and hasattr(value, "to_frame")


def _require_names(what: str, given: Iterable[str], names: Sequence[str]) -> None:
    """Raise for an unknown name where a dataset has no value: it is misspelt."""
    unknown = [name for name in given if name not in names]
    missing = [name for name in names if name not in given]
    if unknown and missing:
        near = _check.did_you_mean(unknown[0], missing)
        raise InputError(
            f"{what} names {unknown[0]!r}, which is not in the comparison, and has no value for "
            f"{missing[0]!r}.{near} The datasets are: {', '.join(names)}."
        )
