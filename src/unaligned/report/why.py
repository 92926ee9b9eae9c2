"""Explanations of pairs of datasets, as the script of a report takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _check
from ..errors import InputError, InputTypeError
from ..explanation import Explanation, ScaleExplanation
from ..result import Comparison


def why_of(
    comparison: Comparison, explanations: Sequence[Explanation | ScaleExplanation]
) -> list[dict[str, Any]]:
    """Return the pair of each explanation, by position, its words and its table or bars."""
    if isinstance(explanations, (Explanation, ScaleExplanation)):
        explanations = [explanations]
    if not isinstance(explanations, (list, tuple)):
        raise InputTypeError(
            "explanations must be a list of results of explain(), not "
            f"{_check.shape_of(explanations)}."
        )
    return [_entry(comparison, found) for found in explanations]


def _entry(comparison: Comparison, found: Any) -> dict[str, Any]:
    if not isinstance(found, (Explanation, ScaleExplanation)):
        raise InputTypeError(
            f"explanations must be results of explain(), not {_check.shape_of(found)}."
        )
    sides = comparison.names, comparison.reference_names
    first, second = found.names
    if first not in sides[0] or second not in sides[1]:
        first, second = second, first  # a comparison against references has one order
    if first not in sides[0] or second not in sides[1]:
        raise InputError(
            f"explanations: {found.names[0]!r} and {found.names[1]!r} are not a pair of this "
            "comparison. Give datasets their names, or use Comparison.explain."
        )
    pair = [own.index(name) for own, name in zip(sides, (first, second), strict=True)]
    entry = {"pair": pair, "names": found.names, "by": found.by, "words": found.summary}
    if isinstance(found, ScaleExplanation):
        keys = ("name", "values", "low", "high", "differs")
        rows = [dict(zip(keys, quantity, strict=True)) for quantity in found.quantities]
        return {**entry, "quantities": rows}
    most = 40  # candidates that are shown
    return {
        **entry,
        "distance": found.distance,
        "labels": found.labels[:most],
        "change": found.change[:most],
        "noise": found.noise[:most],
        "marked": found.exceeds_noise[:most],
        "more": max(len(found.labels) - most, 0),
    }
