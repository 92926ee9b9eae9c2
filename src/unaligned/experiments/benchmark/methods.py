"""Methods of the benchmark: every distance with its defaults, LES with other settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import unaligned as ua

from ... import _check
from ..._check import FloatArray
from ...errors import InputError, NotApplicableError
from ...metrics.registry import ALIASES, DISTANCES
from .jobs import import_own

_SLOW = ("bottleneck-h1", "bottleneck-h2", "geometry-score", "gromov-wasserstein", "mtd")


@dataclass(frozen=True)
class Method:
    """A distance with options, by the name it has in the table."""

    name: str
    distance: str  # a name, or `module:attribute`
    options: Mapping[str, Any] = field(default_factory=dict)
    corrected: bool = False  # for noise and size, by blocks of rows (`inference=True`)

    @property
    def is_slow(self) -> bool:
        """Whether it takes many times longer than others, as its cost is more than quadratic."""
        return self.distance in _SLOW

    def resolved(self) -> Any:
        """Return the distance: its class, an object or a function."""
        return DISTANCES[self.distance] if ":" not in self.distance else own(self.distance)

    def distances(self, datasets: Mapping[str, FloatArray]) -> FloatArray:
        """Return the matrix of distances, on one thread."""
        distance: Any = self.distance if ":" not in self.distance else own(self.distance)
        settings = {"distance": distance, "n_jobs": 1, "progress": False, **self.options}
        if not self.corrected:
            plain: ua.Comparison = ua.compare(datasets, **settings)
            return plain.distances
        smallest = min(map(len, datasets.values()))
        if smallest < 120:  # four blocks of 30
            raise NotApplicableError(f"it needs 120 rows, and a dataset has {smallest}")
        tested: ua.Comparison = ua.compare(datasets, inference=True, **settings)
        assert tested.inference is not None
        return tested.inference.corrected


# What may close a gap between LES and another distance: γ, K, σ, outliers, noise and size.
SETTINGS = (
    Method("les γ=1e-6", "les", {"gamma": 1e-6}),
    Method("les γ=1e-4", "les", {"gamma": 1e-4}),
    Method("les γ=1e-2", "les", {"gamma": 1e-2}),
    Method("les γ=auto", "les", {"gamma": "auto"}),
    Method("les K=10", "les", {"n_eigenvalues": 10}),
    Method("les σ²=median/2", "les", {"bandwidth_factor": 0.5}),
    Method("les σ²=8 median", "les", {"bandwidth_factor": 8.0}),
    Method("les laplacian", "les", {"kernel": "laplacian"}),
    Method("les robust", "les", {"robust": True}),
    Method("les subsample", "les", {"subsample": "common"}),
    Method("les block-corrected", "les", corrected=True),
)


def own(text: str) -> Any:
    """Return the distance that `module:attribute` names: a class, an object or a function."""
    module, _, attribute = text.partition(":")
    found = import_own(module)
    try:
        for part in attribute.split("."):
            found = getattr(found, part)
    except AttributeError as error:
        raise InputError(f"distance={text!r}: {error}. Write module:Name.") from error
    if not callable(found) and not hasattr(found, "compare"):
        raise InputError(
            f"distance={text!r} is {_check.shape_of(found)}; it must be a Distance or a function "
            "of two arrays."
        )
    return found


def methods(
    only: Iterable[str] | None, added: Iterable[str] = (), *, full: bool = True
) -> list[Method]:
    """Return all methods, or those of `only`, and the distances added by `module:attribute`."""
    # 1000 rounds take as long as half of all other distances.
    quick = {} if full else {"geometry-score": {"n_rounds": 300}}
    everything = {name: Method(name, name, quick.get(name, {})) for name in DISTANCES}
    everything |= {method.name: method for method in SETTINGS}
    if only is not None:
        chosen = [_check.one_of("only", name, everything, ALIASES) for name in only]
        everything = {name: everything[name] for name in everything if name in chosen}
    for text in added:
        if text in DISTANCES:
            everything[text] = Method(text, text)
            continue
        if ":" not in text:
            _check.one_of("distance", text, DISTANCES, ALIASES)
        own(text)
        everything[text] = Method(text, text)
    return list(everything.values())
