"""Conversion between nested frozen settings and flat keyword options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np

Settings = TypeVar("Settings")


@cache
def option_names(settings: type) -> tuple[str, ...]:
    """Return the names of all options, including those of nested settings."""
    return tuple(
        option
        for name, nested in _layout(settings)
        for option in ((name,) if nested is None else option_names(nested))
    )


def from_options(settings: type[Settings], options: Mapping[str, Any]) -> Settings:
    """Return settings built from flat options; missing names keep their defaults."""
    arguments: dict[str, Any] = {}
    for name, nested in _layout(settings):  # type: ignore[arg-type]
        if nested is not None:
            arguments[name] = from_options(nested, options)
        elif name in options:
            value = options[name]  # NumPy scalars cannot be written to JSON
            arguments[name] = value.item() if isinstance(value, np.generic) else value
    return settings(**arguments)


def to_options(settings: Any) -> dict[str, Any]:
    """Return settings as flat options, the inverse of `from_options`."""
    options: dict[str, Any] = {}
    for name, nested in _layout(type(settings)):  # type: ignore[arg-type]
        value = getattr(settings, name)
        options |= {name: value} if nested is None else to_options(value)
    return options


@cache
def _layout(settings: Any) -> tuple[tuple[str, type | None], ...]:
    """Return (name, class) of every field; the class is None unless the field is settings."""
    return tuple(
        (field.name, field.default_factory if is_dataclass(field.default_factory) else None)
        for field in fields(settings)
    )
