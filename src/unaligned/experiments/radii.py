"""What the experiments on tori share: four tori, pairs of them, and curves against c.

T2 and T3 are fixed, the smallest radius of T2Sc and T3Sc is scaled by c (Appendix B
[appeq:tori_eqs]).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

import unaligned as ua

from .. import figures
from .._check import FloatArray
from ..data.shapes import torus2, torus3, torus_angles
from .base import Claim, Experiment, Row, Stage, Task, summary

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

SCALES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

# Pair -> whether the dimensions differ (dashed lines of Fig. 1).
PAIRS = {
    ("T2", "T2Sc"): False,
    ("T3", "T3Sc"): False,
    ("T2", "T3"): True,
    ("T2Sc", "T3Sc"): True,
    ("T2", "T3Sc"): True,
    ("T3", "T2Sc"): True,
}
TORI = ("T2", "T2Sc", "T3", "T3Sc")
RISING = ("T2,T2Sc", "T3,T3Sc", "T3,T2Sc")
FALLING = ("T2,T3Sc",)


@dataclass(frozen=True)
class Method:
    """A distance as one row of an experiment's table.

    Attributes
    ----------
    label
        What the paper calls it.
    distance
        Its name in `ua.available()`.
    spectral
        Whether it reads signatures, which are then computed once for all such methods.
    options
        Options of the distance.
    n_samples
        Take so many points only; None takes all.
    """

    label: str
    distance: str
    spectral: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    n_samples: int | None = None


def four_tori(angles: Mapping[str, FloatArray], radius_scale: float) -> dict[str, FloatArray]:
    """Return the points of T2, T2Sc, T3 and T3Sc from the angles of each."""
    return {
        "T2": torus2(angles["T2"]),
        "T2Sc": torus2(angles["T2Sc"], radius_scale=radius_scale),
        "T3": torus3(angles["T3"]),
        "T3Sc": torus3(angles["T3Sc"], radius_scale=radius_scale),
    }


def measure(
    methods: Iterable[Method], clouds: Mapping[str, FloatArray], recipe: Mapping[str, Any]
) -> list[Row]:
    """Return the distance of every pair by every method."""
    methods = list(methods)
    signatures = {}
    if any(method.spectral for method in methods):
        signatures = {name: ua.signature(points, **recipe) for name, points in clouds.items()}
    rows: list[Row] = []
    for method in methods:
        # Points are drawn independently, so the first ones are a smaller sample.
        data: Mapping[str, Any] = (
            signatures
            if method.spectral
            else {name: points[: method.n_samples] for name, points in clouds.items()}
        )
        found = ua.compare(data, distance=method.distance, progress=False, **method.options)
        rows += [
            {"method": method.distance, "pair": ",".join(pair), "distance": found[pair]}
            for pair in PAIRS
        ]
    return rows


def within(methods: Sequence[Method], names: Iterable[str]) -> list[Method]:
    """Return the methods of these names, in their own order."""
    wanted = set(names)
    return [method for method in methods if method.distance in wanted]


@dataclass(frozen=True)
class RadiiExperiment(Experiment):
    """Four tori at every scale c, their distances by the methods of the panels."""

    variable: ClassVar[str] = "c"

    n_samples: int = 3000
    gamma: float = 1e-8
    scales: tuple[float, ...] = SCALES

    @property
    @abstractmethod
    def panels(self) -> tuple[Method, ...]:
        """The methods in the order of the figure."""

    @property
    @abstractmethod
    def recipe(self) -> dict[str, Any]:
        """The options of the signatures."""

    def angles(self, task: Task) -> dict[str, FloatArray]:
        """Return the angles of every torus, sampled independently."""
        rng = task.rng()
        return {name: torus_angles(self.n_samples, rng=rng) for name in TORI}

    def stages(self) -> list[Stage]:
        """Return a stage for those that read signatures, and one for each other method."""
        spectral = tuple(method.distance for method in self.panels if method.spectral)
        others = [(method.distance,) for method in self.panels if not method.spectral]
        return [Stage(names, self.scales) for names in (spectral, *others) if names]

    def run_task(self, task: Task) -> list[Row]:
        """Measure all pairs of the four tori."""
        clouds = four_tori(self.angles(task), task.value)
        return measure(within(self.panels, task.methods), clouds, self.recipe)

    def pairs(self, method: str) -> tuple[str, ...]:
        """Return all pairs, whatever the method."""
        return tuple(",".join(pair) for pair in PAIRS)

    def draw(self, table: pd.DataFrame) -> Figure:
        """Return a panel per method that was run."""
        methods = within(self.panels, table["method"])
        fewer = any(m.n_samples not in (None, self.n_samples) for m in methods)
        caption = f"N = {self.n_samples} points of each torus"
        caption += ", where a panel names no other N" if fewer else ""
        if self.n_trials > 1:
            caption += f"; bands: one standard deviation over {self.n_trials} trials"
        return draw_panels(table, methods, caption=caption)


def mean_curves(table: pd.DataFrame, method: str) -> dict[str, FloatArray]:
    """Return the mean distance of each pair against c ascending, over the trials."""
    means = summary(table[table["method"] == method], "c").sort_values("c")
    return {str(pair): rows["mean"].to_numpy() for pair, rows in means.groupby("pair")}


def crossing(table: pd.DataFrame, method: str) -> float:
    """Return the c at which the mean d(T2,T2Sc) overtakes the mean d(T2,T3Sc), as c falls.

    Above it a change of scale is smaller than a change of dimension, so the lower it is the
    more widely a method tells them apart. By linear interpolation; -inf where they do not
    cross within the measured range, inf where scale is the larger one from the start, NaN where
    the method was not run.
    """
    curves = mean_curves(table, method)
    if not curves:
        return math.nan
    gaps = curves["T2,T2Sc"] - curves["T2,T3Sc"]
    scales = np.sort(table["c"].unique())
    if gaps[-1] >= 0:
        return math.inf
    above = np.flatnonzero(gaps >= 0)
    if not above.size:
        return -math.inf
    i = above[-1]
    share = gaps[i] / (gaps[i] - gaps[i + 1])
    return float(scales[i] + share * (scales[i + 1] - scales[i]))


def say_crossing(value: float, scales: Sequence[float] = SCALES) -> str:
    """Return a crossing in words."""
    if value == math.inf:
        return f"never told apart, not even at c = {max(scales):g}"
    return f"below c = {min(scales):g}" if value == -math.inf else f"c = {value:.3f}"


def crossings(table: pd.DataFrame, methods: Sequence[Method]) -> tuple[dict[str, float], str]:
    """Return the crossing of every method by its name, and all of them in words."""
    found = {method.distance: crossing(table, method.distance) for method in methods}
    told = ", ".join(f"{m.label} {say_crossing(found[m.distance])}" for m in methods)
    return found, told


def trend_claim(table: pd.DataFrame, method: Method, source: str) -> Claim:
    """Return whether the mean curves rise and fall as the paper says."""
    curves = mean_curves(table, method.distance)
    slopes = {pair: -np.diff(curves[pair]) for pair in RISING}
    slopes |= {pair: np.diff(curves[pair]) for pair in FALLING}
    told = [
        f"d({pair}) in {int((steps <= 0).sum())} of {steps.size} steps, by up to "
        f"{-steps.min():.2g} where its mean is {curves[pair][steps.argmin()]:.3g}"
        for pair, steps in slopes.items()
        if (steps <= 0).any()
    ]
    measured = "not monotone: " + ", ".join(told) if told else "all four mean curves are monotone"
    steps = curves[FALLING[0]].size - 1
    return Claim(
        source,
        f"{method.label}: as c falls, d(T2,T2Sc), d(T3,T3Sc) and d(T3,T2Sc) rise and "
        "d(T2,T3Sc) falls",
        measured if steps else "one c shows no trend",
        not told if steps else None,
    )


def draw_panels(table: pd.DataFrame, methods: Sequence[Method], *, caption: str) -> Figure:
    """Return one panel per method, as Fig. 1: solid within a dimension, dashed across."""
    columns = 2 if len(methods) == 4 else 3
    figure, axes = figures.panels(len(methods), columns=columns)
    for panel, method in zip(axes, methods, strict=True):
        means = summary(table[table["method"] == method.distance], "c").sort_values("c")
        lines = []
        for pair, dashed in PAIRS.items():
            rows = means[means["pair"] == ",".join(pair)]
            mean, std = rows["mean"].to_numpy(), rows["std"].to_numpy()
            lines.append(figures.Curve(_tex(pair), mean, std, dashed))
        scales = np.sort(means["c"].unique())
        figures.curves(scales, lines, ax=panel, title=method.label, xlabel="c", legend=False)
    for panel in axes[::columns]:  # the first of each row
        panel.set_ylabel("distance")
    handles, labels = axes[0].get_legend_handles_labels()
    beside = len(PAIRS) if len(methods) > columns else 3
    figure.legend(handles, labels, loc="outside upper center", ncols=beside, frameon=False)
    figure.supxlabel(caption, fontsize=9)
    return figure


def _tex(pair: tuple[str, str]) -> str:
    names = [f"T_{name[1]}^{{Sc}}" if name.endswith("Sc") else f"T_{name[1]}" for name in pair]
    return f"$d({names[0]}, {names[1]})$"
