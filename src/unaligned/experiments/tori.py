"""Section 5.1 and Fig. 1: sampled tori, and which distances tell dimension from scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from .. import _check
from ..data.shapes import torus_angles
from .base import Claim, Experiment, Row, Task
from .radii import (
    SCALES,
    Method,
    crossing,
    draw_panels,
    four_tori,
    measure,
    say_crossing,
    trend_claim,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# One row per panel of Fig. 1, and the crossing that the paper's figure shows.
METHODS = (
    Method("LES", "les", spectral=True),
    Method("IMD (our approach)", "imd-diffusion", spectral=True),
)
_PAPER_CROSSING = {"imd-diffusion": 0.82}
_CROSSING_TOLERANCE = 0.05
_LES_CROSSING = 0.42
_LEAST_RATIO = 60.0
_MOST_SPREAD = 0.02


@dataclass(frozen=True)
class Tori(Experiment):
    """Four tori sampled independently, their distances against the scale c of a radius.

    `--quick` differs from `--full`, the paper's setting, in the number of trials only, so a
    full run in the same folder goes on from a quick one. About 36 signatures per trial.
    """

    name: ClassVar[str] = "tori"
    title: ClassVar[str] = "Tori: dimension against scale (Section 5.1, Fig. 1)"
    variable: ClassVar[str] = "c"
    quick: ClassVar[dict[str, Any]] = {"n_trials": 3}
    full: ClassVar[dict[str, Any]] = {"n_trials": 10}

    n_samples: int = 3000
    n_eigenvalues: int = 200
    gamma: float = 1e-8
    scales: tuple[float, ...] = SCALES

    def __post_init__(self) -> None:
        super().__post_init__()
        _check.positive_int("n_samples", self.n_samples, minimum=self.n_eigenvalues)

    @property
    def values(self) -> Sequence[float]:
        """The scales c."""
        return self.scales

    def run_task(self, task: Task) -> list[Row]:
        """Sample the four tori anew, and measure all pairs by all methods."""
        rng = task.rng()
        names = ("T2", "T2Sc", "T3", "T3Sc")
        angles = {name: torus_angles(self.n_samples, rng=rng) for name in names}
        recipe = {"n_eigenvalues": self.n_eigenvalues, "gamma": self.gamma}
        return measure(METHODS, four_tori(angles, task.value), recipe)

    def claims(self, table: pd.DataFrame) -> list[Claim]:
        """Return the paper's trends and crossings, and the stability of LES."""
        trends = [trend_claim(table, method, "Section 5.1") for method in METHODS]
        return [*trends, *_crossing_claims(table), *_stability_claims(table)]

    def draw(self, table: pd.DataFrame) -> Figure:
        """Return Fig. 1."""
        return draw_panels(table, METHODS)


def _crossing_claims(table: pd.DataFrame) -> list[Claim]:
    found = {method.distance: crossing(table, method.distance) for method in METHODS}
    les = found["les"]
    claims = [
        Claim(
            "Fig. 1",
            f"LES: d(T2,T2Sc) and d(T2,T3Sc) cross at about c = 0.41 (bar: at most "
            f"{_LES_CROSSING})",
            say_crossing(les),
            les <= _LES_CROSSING,
        )
    ]
    for method in METHODS:
        if method.distance in _PAPER_CROSSING:
            claims.append(_near_paper(method, found[method.distance]))
    others = {m.label: found[m.distance] for m in METHODS if m.distance != "les"}
    told = ", ".join(f"{label} {say_crossing(value)}" for label, value in others.items())
    claims.append(
        Claim(
            "Section 5.1",
            "LES tells dimension from scale over the widest range of c (lowest crossing)",
            f"LES {say_crossing(les)}; {told}",
            all(les < value for value in others.values()),
        )
    )
    return claims


def _near_paper(method: Method, value: float) -> Claim:
    expected = _PAPER_CROSSING[method.distance]
    return Claim(
        "Fig. 1",
        f"{method.label}: they cross at about c = {expected} (± {_CROSSING_TOLERANCE})",
        say_crossing(value),
        math.isfinite(value) and abs(value - expected) <= _CROSSING_TOLERANCE,
    )


def _stability_claims(table: pd.DataFrame) -> list[Claim]:
    """Return how LES separates dimensions from sampling noise.

    At c = 1 T2Sc is a second, independent sample of T2, so d(T2,T2Sc) is the noise.
    """
    les = table[table["method"] == "les"]
    across = les[les["pair"] == "T2,T3"]["distance"]
    unscaled = les[les["c"] == 1.0].groupby("pair")["distance"].mean()
    ratio = float(unscaled["T2,T3"] / unscaled["T2,T2Sc"]) if len(unscaled) else math.nan
    spread = float(across.std() / across.mean())
    return [
        Claim(
            "this project",
            f"LES at c = 1: mean d(T2,T3) is at least {_LEAST_RATIO:g} times the mean of two "
            "independent samples of T2",
            f"{ratio:.1f} times" if len(unscaled) else "c = 1 was not run",
            ratio >= _LEAST_RATIO,
        ),
        Claim(
            "this project",
            f"LES: the standard deviation of d(T2,T3) is below {_MOST_SPREAD:.0%} of its mean",
            f"{spread:.2%} over {len(across)} independent samples, mean {across.mean():.2f}",
            spread < _MOST_SPREAD,
        ),
    ]
