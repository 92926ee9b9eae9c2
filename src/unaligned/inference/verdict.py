"""DriftCheck: what a drift monitor says of one batch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from .. import _check
from ..errors import listed
from .instruments import SHAPE, Reading


@dataclass(frozen=True)
class DriftCheck:
    """The result of `DriftMonitor.check`.

    Attributes
    ----------
    name, reference
        Of the batch and of the reference.
    p_value
        Of the hypothesis that the batch is a sample of the reference: the smallest p-value of the
        instruments times their number (Bonferroni).
    alpha
        The level of this check; with a `horizon` its share of the monitor's alpha.
    readings
        What each instrument finds: name, p-value, threshold, score, numbers of blocks.
    moved
        The features that moved and their p-values, adjusted by Holm (1979), smallest first.
    n_samples, n_reference
        Rows of the batch and of the reference.
    n_eigenvalues, gamma
        K and γ of the block signatures; None without any.
    number, time
        The position in the history, from 1, and when it was checked (ISO 8601, UTC).
    notes
        What the instruments cannot see, and what else should be known.
    unused
        Instruments that cannot read the batch, as `notes` explain.
    """

    name: str
    reference: str
    p_value: float
    alpha: float
    readings: tuple[Reading, ...]
    moved: Mapping[str, float]
    n_samples: int
    n_reference: int
    n_eigenvalues: int | None
    gamma: float | None
    number: int
    time: str
    notes: tuple[str, ...] = field(default=())
    unused: tuple[str, ...] = field(default=())

    @property
    def is_drift(self) -> bool:
        """Whether the batch has drifted: some instrument's p-value is at most its threshold."""
        return any(reading.is_drift for reading in self.readings)

    @property
    def score(self) -> float:
        """-log10 of the p-value."""
        return -math.log10(self.p_value)

    @property
    def threshold(self) -> float:
        """The score from which on a batch has drifted, -log10 of alpha."""
        return -math.log10(self.alpha)

    @property
    def why(self) -> str:
        """The p-value of every instrument, those not used, and the features that moved."""
        parts = [f"{r.name} p = {r.p_value:.2g}{' *' * r.is_drift}" for r in self.readings]
        parts += [f"{name} not used" for name in self.unused]
        if self.moved:
            parts.append(f"moved: {listed(list(self.moved))}")
        return "; ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return everything, with the verdict, as values for JSON.

        Returns
        -------
        dict
            Strings, numbers, lists and dicts.
        """
        found = asdict(self)
        for reading, own in zip(found["readings"], self.readings, strict=True):
            reading.pop("by_feature")
            reading["is_drift"] = own.is_drift
        verdict = {"is_drift": self.is_drift, "score": self.score, "threshold": self.threshold}
        return {**verdict, **found}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> DriftCheck:
        """Return the check, the inverse of `to_dict`; unknown keys are ignored.

        Parameters
        ----------
        values
            A result of `to_dict`.

        Returns
        -------
        DriftCheck
            Without the p-values by feature of its readings.
        """
        known = {f.name for f in fields(DriftCheck)}
        own = {f.name for f in fields(Reading)}
        given = {key: value for key, value in values.items() if key in known}
        readings = [
            {key: value for key, value in reading.items() if key in own}
            for reading in values["readings"]
        ]
        if not readings:
            raise ValueError("a check has no readings")
        for reading in readings:
            _check.require_types(Reading, reading)
            _check.real_number("p_value", reading["p_value"], minimum=0.0, maximum=1.0)
        given["readings"] = tuple(Reading(**reading) for reading in readings)
        given |= {key: tuple(values.get(key, ())) for key in ("notes", "unused")}
        _check.require_types(DriftCheck, given)
        for name in ("p_value", "alpha"):
            _check.real_number(name, given[name], minimum=0.0, maximum=1.0, strict=True)
        return DriftCheck(**given)

    def __repr__(self) -> str:
        verdict = "has drifted from" if self.is_drift else "shows no drift from"
        if not self.is_drift and all(reading.name == SHAPE for reading in self.readings):
            verdict = "shows no drift in shape from"
        how = f"p = {self.p_value:.2g}, alpha = {self.alpha:.2g}"
        return f"{self.name!r} {verdict} {self.reference!r} ({how}): {self.why}."
