"""What the distances between groups of cells show: correlation with time, and stages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import unaligned as ua

from .. import figures
from .._check import FloatArray
from ..defaults import SIGNIFICANCE
from .base import Claim

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .cells import Cells
    from .time_courses import TimeCourse


class Method(NamedTuple):
    """A distance: its name in the paper, and its correlations there (Fig. 3, Section 5.2)."""

    label: str
    expected: float
    in_subsets: float | None = None


METHODS = {
    "les": Method("LES", 0.74, 0.69),
    "imd": Method("IMD", 0.28, 0.27),
    "wasserstein": Method("OT", 0.60),
    "geometry-score": Method("GS", 0.03),
    "mtd": Method("MTD", 0.10),
}
_TOLERANCE = 0.1  # of the paper's correlations on the paper's data


@dataclass(frozen=True)
class TimeCorrelation:
    """The correlation of distances with time in one or several trials; NaN if undefined."""

    pearson: tuple[float, ...]
    spearman: tuple[float, ...]
    p_values: tuple[float, ...]
    expected: float | None  # in the paper

    @property
    def mean(self) -> float:
        """The mean of Pearson's correlation over the trials."""
        return float(np.mean(self.pearson))

    @property
    def p_value(self) -> float:
        """The median p-value of Mantel's test over the trials."""
        return float(np.median(self.p_values))

    def cells(self) -> list[str]:
        """Return the cells of a table."""
        paper = "" if self.expected is None else f"{self.expected:.2f}"
        p = "" if math.isnan(self.p_value) else f"{self.p_value:.2g}"
        return [_spread(self.pearson), paper, _spread(self.spearman), p]


def _spread(values: Sequence[float]) -> str:
    if np.isnan(values).any():
        return "undefined"
    mean = f"{np.mean(values):.2f}"
    return mean if len(values) == 1 else f"{mean} ± {np.std(values, ddof=1):.2f}"


def correlations(
    experiment: Cells, table: pd.DataFrame, course: str, *, subsets: bool
) -> dict[str, TimeCorrelation]:
    """Return the correlation with time of a course, by method."""
    cells, found = experiment.course(course), {}
    for name, method in METHODS.items():
        trials = experiment.comparison(table, name, course, subsets=subsets)
        if not trials:
            continue
        expected = method.in_subsets if subsets else method.expected
        measured = [_correlated(trial, cells) for trial in trials]
        pearson, spearman, p_values = zip(*measured, strict=True)
        found[name] = TimeCorrelation(pearson, spearman, p_values, expected)
    return found


def _correlated(found: ua.Comparison, cells: TimeCourse) -> tuple[float, float, float]:
    """Return Pearson's and Spearman's correlation and a p-value; NaN where all are equal."""
    apart = found.distances[np.triu_indices(len(found.names), k=1)]
    if np.ptp(apart) == 0:  # such as a Geometry Score of few cells, without any hole
        return math.nan, math.nan, math.nan
    pearson = found.correlate(cells.times, period=cells.period)
    spearman = found.correlate(cells.times, "spearman", period=cells.period)
    return float(pearson), float(spearman), pearson.p_value


def course_claims(experiment: Cells, table: pd.DataFrame, course: str) -> list[Claim]:
    """Return whether the statements of Section 5.2 hold for a course."""
    found = correlations(experiment, table, course, subsets=False)
    les = found.get("les")
    if les is None:
        return []
    text = f"{course}: LES correlates with time"
    exact = f"Pearson {les.mean:.2f}, Spearman {np.mean(les.spearman):.2f}, p = {les.p_value:.2g}"
    passed = None
    if experiment.data is not None:  # the paper's cells
        passed = abs(les.mean - METHODS["les"].expected) <= _TOLERANCE
    claims = [Claim("Fig. 3", f"{text}: {METHODS['les'].expected} in the paper", exact, passed)]
    significant = f"{text} (Mantel's test, p ≤ {SIGNIFICANCE})"
    claims.append(
        Claim("this project", significant, f"p = {les.p_value:.2g}", les.p_value <= SIGNIFICANCE)
    )
    intrinsic = {name: c for name, c in found.items() if name != "wasserstein"}
    if len(intrinsic) > 1:
        better = not any(c.mean >= les.mean for name, c in intrinsic.items() if name != "les")
        expected = f"{course}: LES follows time better than IMD, GS and MTD"
        claims.append(Claim("Section 5.2", expected, _listed(intrinsic), better))
        lead = les.mean - max(c.mean for name, c in intrinsic.items() if name != "les")
        expected = f"{course}: LES follows time significantly better than IMD, GS and MTD "
        expected += f"(bar: by {_TOLERANCE})"
        claims.append(Claim("Section 5.2", expected, f"by {lead:.2f}", lead >= _TOLERANCE))
    if "wasserstein" in found:
        pair = {name: found[name] for name in ("les", "wasserstein")}
        expected = f"{course}: LES follows time slightly better than OT, which knows positions"
        better = les.mean > found["wasserstein"].mean
        claims.append(Claim("Section 5.2", expected, _listed(pair), better))
    return claims


def subset_claims(experiment: Cells, table: pd.DataFrame, course: str) -> list[Claim]:
    """Return whether the statements hold where every time point has its own genes."""
    found = correlations(experiment, table, course, subsets=True)
    whole = correlations(experiment, table, course, subsets=False)
    if "les" not in found:
        return []
    les = found["les"]
    expected = f"{course}, gene subsets: the correlation of LES is only slightly lower (0.74 to "
    expected += f"0.69 in the paper; bar: by at most {_TOLERANCE})"
    measured = f"{whole['les'].mean:.2f} to {_spread(les.pearson)}"
    kept = whole["les"].mean - les.mean <= _TOLERANCE
    claims = [Claim("Section 5.2", expected, measured, kept)]
    if "imd" in found:
        expected = f"{course}, gene subsets: LES follows time better than IMD (0.69 and 0.27)"
        better = les.mean > found["imd"].mean
        claims.append(Claim("Section 5.2", expected, _listed(found), better))
    return claims


def _listed(found: Mapping[str, TimeCorrelation]) -> str:
    return ", ".join(f"{METHODS[name].label} {_spread(c.pearson)}" for name, c in found.items())


@dataclass(frozen=True)
class Retrieval:
    """How often the nearest group of another species has the same stage."""

    confusion: FloatArray  # of stages in the order of the cycle: own × nearest
    stages: tuple[int, ...]
    chance: float
    p_value: float

    @property
    def accuracy(self) -> float:
        """The share of groups whose nearest has their stage."""
        return float(np.trace(self.confusion) / self.confusion.sum())

    def __str__(self) -> str:
        right, n = int(np.trace(self.confusion)), int(self.confusion.sum())
        share = f"{self.accuracy:.0%}; chance {self.chance:.0%}; p = {self.p_value:.2g}"
        return f"{right} of {n}, {share}"


def retrieve(
    distances: FloatArray, stages: Mapping[str, tuple[int, float]], seed: int
) -> Retrieval:
    """Return the retrieval of stages, tested by permuting them within each species.

    Parameters
    ----------
    distances
        (n, n); those within a species are not used.
    stages
        The stage and the phase of each group, named by its species and a number.
    """
    species = np.array([name.split()[0] for name in stages])
    own = np.array([stage for stage, _ in stages.values()])
    other = species[:, None] != species
    nearest = np.where(other, distances, np.inf).argmin(axis=1)
    same = own[:, None] == own
    chance = float((same & other).sum(axis=1).mean() / other.sum(axis=1).mean())
    rng, mixed = np.random.default_rng(seed), np.tile(own, (9999, 1))
    for code in np.unique(species):
        mixed[:, species == code] = rng.permuted(mixed[:, species == code], axis=1)
    right = np.sum(mixed == mixed[:, nearest], axis=1)
    at_least = 1 + np.sum(right >= np.sum(own == own[nearest]))
    order = _by_phase(stages)
    place = {stage: i for i, stage in enumerate(order)}
    confusion = np.zeros((len(order), len(order)))
    for i, j in enumerate(nearest):
        confusion[place[own[i]], place[own[j]]] += 1
    return Retrieval(confusion, order, chance, float(at_least / (1 + len(mixed))))


def _by_phase(stages: Mapping[str, tuple[int, float]]) -> tuple[int, ...]:
    """Return the stages in the order of their mean phase."""
    phases: dict[int, list[float]] = {}
    for stage, phase in stages.values():
        phases.setdefault(stage, []).append(phase)
    return tuple(sorted(phases, key=lambda stage: float(np.mean(phases[stage]))))


def draw_courses(experiment: Cells, table: pd.DataFrame, *, subsets: bool) -> Figure:
    """Return diffusion maps (Fig. 3): a row per course, a column per distance."""
    names = [name for name in METHODS if name in set(table["method"])]
    names = [n for n in names if not (subsets and n in ("wasserstein", "mtd"))]
    courses = experiment.courses
    figure, axes = figures.panels(
        len(courses) * len(names), columns=len(names), width=2.5, height=2.5
    )
    for i, course in enumerate(courses):
        row = axes[i * len(names) : (i + 1) * len(names)]
        found = correlations(experiment, table, course, subsets=subsets)
        cells = experiment.course(course)
        times = np.array(list(cells.times.values()))
        look: dict[str, Any] = {"cmap": "viridis"}
        if cells.period:
            look = {"cmap": "twilight", "vmin": 0.0, "vmax": cells.period}
        for panel, name in zip(row, names, strict=True):
            comparison = experiment.comparison(table, name, course, subsets=subsets)[0]
            shades = _draw_map(panel, comparison.embed("diffusion", 2), times, look)
            panel.set_title(f"{METHODS[name].label}: {_spread(found[name].pearson)}", fontsize=10)
        row[0].set_ylabel(f"{course}\n$f_2$")
        figure.colorbar(shades, ax=row, label="phase" if cells.period else "day", pad=0.01)
    what = "random gene subsets" if subsets else "groups of cells"
    figure.suptitle(f"Diffusion maps of {what}: correlation with time")
    return figure


def _draw_map(panel: Axes, places: FloatArray, times: FloatArray, look: dict[str, Any]) -> Any:
    order = np.argsort(times)
    panel.plot(*places[order].T, color="#bbbbbb", linewidth=0.8, zorder=1)
    x, y = places.T
    shades = panel.scatter(x, y, c=times, s=34, edgecolors="#555555", linewidths=0.4, **look)
    panel.set(xticks=[], yticks=[], xlabel="$f_1$")
    panel.margins(0.12)
    return shades


def draw_stages(retrievals: Mapping[str, Retrieval]) -> Figure:
    """Return the stage of each group against that of the nearest group of another species."""
    from matplotlib.patches import Rectangle

    figure, axes = figures.panels(len(retrievals), width=3.6, height=3.8)
    for panel, (label, found) in zip(axes, retrievals.items(), strict=True):
        n = len(found.stages)
        panel.imshow(found.confusion, cmap="Blues", vmin=0)
        for (i, j), count in np.ndenumerate(found.confusion):
            if count:
                dark = count > found.confusion.max() / 2
                panel.text(
                    j, i, f"{count:.0f}", ha="center", va="center", color="w" if dark else "k"
                )
        for i in range(n):  # frame the right answers
            look: Any = {"fill": False, "edgecolor": figures.COLOURS[1], "linewidth": 1.2}
            panel.add_patch(Rectangle((i - 0.5, i - 0.5), 1, 1, **look))
        panel.set_xticks(range(n), found.stages)
        panel.set_yticks(range(n), found.stages)
        panel.set(xlabel="stage of the nearest group", ylabel="stage of the group")
        right, total = int(np.trace(found.confusion)), int(found.confusion.sum())
        chance = f"chance {found.chance * total:.1f}"
        panel.set_title(f"{label}: {right} of {total} ({chance})", fontsize=10)
    figure.suptitle("The nearest group of another species: stages in the order of the cycle")
    return figure
