"""Frozen settings that nest, seen from outside as one flat list of options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

Settings = TypeVar("Settings")


def option_names(settings: type) -> Iterator[str]:
    """Yield the names of all options, those of nested settings among them."""
    for field in fields(settings):
        if is_dataclass(field.default_factory):
            yield from option_names(field.default_factory)
        else:
            yield field.name


def from_options(settings: type[Settings], options: Mapping[str, Any]) -> Settings:
    """Return the settings that these flat options describe; names they lack are passed over."""
    arguments: dict[str, Any] = {}
    for field in fields(settings):  # type: ignore[arg-type]
        if is_dataclass(field.default_factory):
            arguments[field.name] = from_options(field.default_factory, options)
        elif field.name in options:
            arguments[field.name] = options[field.name]
    return settings(**arguments)


def to_options(settings: Any) -> dict[str, Any]:
    """Return the settings as flat options, the inverse of `from_options`."""
    options: dict[str, Any] = {}
    for field in fields(settings):
        value = getattr(settings, field.name)
        options |= (
            to_options(value) if is_dataclass(field.default_factory) else {field.name: value}
        )
    return options
