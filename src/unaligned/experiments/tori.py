"""Section 5.1 and Fig. 1: which distances separate a change of dimension from one of scale.

T2 and T3 are fixed; the smallest radius of T2Sc and T3Sc is scaled by c (Appendix B
[appeq:tori_eqs]). The experiments of Appendix B.2 and B.3 build on the same four tori.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

import unaligned as ua

from .. import _check, figures
from .._check import FloatArray
from ..data.shapes import torus2, torus3, torus_angles
from ..defaults import GAMMA, N_EIGENVALUES
from .base import Claim, Experiment, Row, Stage, Task, Value, summary

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

TORI = ("T2", "T2Sc", "T3", "T3Sc")
# Pair -> whether the dimensions differ (dashed lines of Fig. 1).
PAIRS = {
    "T2,T2Sc": False,
    "T3,T3Sc": False,
    "T2,T3": True,
    "T2Sc,T3Sc": True,
    "T2,T3Sc": True,
    "T3,T2Sc": True,
}
RISING = ("T2,T2Sc", "T3,T3Sc", "T3,T2Sc")
FALLING = "T2,T3Sc"
# The methods that show the expected trends according to the paper; the others do not.
_TRENDS = ("les", "gromov-wasserstein", "imd-diffusion")


@dataclass(frozen=True)
class Method:
    """A distance as one line of a figure."""

    label: str  # its name in the paper
    distance: str  # its name in `ua.available()`
    spectral: bool = False  # takes signatures, which are computed once for all such methods
    options: Mapping[str, Any] = field(default_factory=dict)
    n_samples: int | None = None  # use only the first points


def four_tori(angles: Mapping[str, FloatArray], radius_scale: float) -> dict[str, FloatArray]:
    """Return the points of T2, T2Sc, T3 and T3Sc from the angles of each."""
    return {
        "T2": torus2(angles["T2"]),
        "T2Sc": torus2(angles["T2Sc"], radius_scale=radius_scale),
        "T3": torus3(angles["T3"]),
        "T3Sc": torus3(angles["T3Sc"], radius_scale=radius_scale),
    }


def within(methods: Sequence[Method], names: Iterable[str]) -> list[Method]:
    """Return the methods with these names, in their own order."""
    wanted = set(names)
    return [method for method in methods if method.distance in wanted]


@dataclass(frozen=True)
class TorusExperiment(Experiment):
    """Four tori at every scale c, their distances by the methods of the panels."""

    variable: ClassVar[str] = "c"

    n_samples: int = 3000
    gamma: float = GAMMA
    scales: tuple[float, ...] = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

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
        """Return one stage for the methods on signatures, and one for each other method."""
        spectral = tuple(method.distance for method in self.panels if method.spectral)
        others = [(method.distance,) for method in self.panels if not method.spectral]
        return [(names, self.scales) for names in (spectral, *others) if names]

    def run_task(self, task: Task) -> list[Row]:
        """Return the distance of every pair of the four tori by every method."""
        clouds = four_tori(self.angles(task), task.value)
        methods = within(self.panels, task.methods)
        signatures: dict[str, Any] = {}
        if any(method.spectral for method in methods):
            signatures = {name: ua.signature(c, **self.recipe) for name, c in clouds.items()}
        rows: list[Row] = []
        for method in methods:
            # Points are drawn independently, so the first ones are a smaller sample.
            fewer = {name: points[: method.n_samples] for name, points in clouds.items()}
            data = signatures if method.spectral else fewer
            found = ua.compare(data, distance=method.distance, progress=False, **method.options)
            for pair in PAIRS:
                first, second = pair.split(",")
                distance = found[first, second]
                rows.append({"method": method.distance, "pair": pair, "distance": distance})
        return rows

    def pairs(self, method: str, value: Value) -> tuple[str, ...]:
        """Return all pairs."""
        return tuple(PAIRS)

    def draw(self, table: pd.DataFrame) -> Figure:
        """Return a panel per method, as Fig. 1: solid within a dimension, dashed across."""
        methods = within(self.panels, table["method"])
        columns = 2 if len(methods) == 4 else 3
        figure, axes = figures.panels(len(methods), columns=columns)
        for panel, method in zip(axes, methods, strict=True):
            means = summary(table[table["method"] == method.distance], "c").sort_values("c")
            for i, (pair, dashes) in enumerate(PAIRS.items()):
                rows = means[means["pair"] == pair]
                x, mean, std = (rows[name].to_numpy() for name in ("c", "mean", "std"))
                look: dict[str, Any] = {
                    "color": figures.COLOURS[i],
                    "marker": figures.MARKERS[i],
                    "markersize": 4,
                }
                look["label"] = f"$d({', '.join(_tex_name(name) for name in pair.split(','))})$"
                look["linestyle"] = "--" if dashes else "-"
                figures.banded_line(panel, x, mean, mean - std, mean + std, **look)
            panel.set_title(method.label, fontsize=11)
            panel.set_xlabel("c")
            panel.set_ylim(bottom=min(0.0, panel.get_ylim()[0]))
        for panel in axes[::columns]:  # the first of each row
            panel.set_ylabel("distance")
        handles, labels = axes[0].get_legend_handles_labels()
        ncols = len(PAIRS) if len(methods) > columns else 3
        figure.legend(handles, labels, loc="outside upper center", ncols=ncols, frameon=False)
        caption = f"N = {self.n_samples} points of each torus"
        if any(m.n_samples not in (None, self.n_samples) for m in methods):
            caption += ", where a panel names no other N"
        if self.n_trials > 1:
            caption += f"; bands: one standard deviation over {self.n_trials} trials"
        figure.supxlabel(caption, fontsize=9)
        return figure


def _tex_name(name: str) -> str:
    return name.replace("Sc", "^{Sc}").replace("T", "T_")


def mean_curves(table: pd.DataFrame, method: str) -> dict[str, FloatArray]:
    """Return the mean distance of each pair over the trials, against c ascending."""
    means = summary(table[table["method"] == method], "c").sort_values("c")
    return {str(pair): rows["mean"].to_numpy() for pair, rows in means.groupby("pair")}


def crossing(table: pd.DataFrame, method: str) -> float:
    """Return the c at which the mean d(T2,T2Sc) exceeds the mean d(T2,T3Sc), as c falls.

    Above it a change of scale is smaller than a change of dimension: the lower it is, the wider
    the range of c in which the method separates them. By linear interpolation; -inf where the
    curves do not cross within the measured range, inf where scale dominates from the start.
    """
    curves = mean_curves(table, method)
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


def crossing_text(value: float) -> str:
    """Return a crossing in words."""
    if value == math.inf:
        return "not separated at any c"
    return "below the smallest c" if value == -math.inf else f"c = {value:.3f}"


def crossing_claim(source: str, label: str, value: float, expected: float, tol: float) -> Claim:
    """Return whether the curves cross where expected, up to `tol`."""
    text = f"{label}: d(T2,T2Sc) and d(T2,T3Sc) cross at about c = {expected} (± {tol})"
    return Claim(source, text, crossing_text(value), abs(value - expected) <= tol)


def crossings(table: pd.DataFrame, methods: Sequence[Method]) -> tuple[dict[str, float], str]:
    """Return the crossing of every method by its name, and all of them in words."""
    found = {method.distance: crossing(table, method.distance) for method in methods}
    return found, ", ".join(f"{m.label} {crossing_text(found[m.distance])}" for m in methods)


def trend_claim(table: pd.DataFrame, method: Method, source: str) -> Claim:
    """Return whether the mean curves rise and fall as the paper says."""
    curves = mean_curves(table, method.distance)
    slopes = {pair: -np.diff(curves[pair]) for pair in RISING}
    slopes[FALLING] = np.diff(curves[FALLING])
    broken = [
        f"d({pair}) in {int((steps <= 0).sum())} of {steps.size} steps, by up to "
        f"{-steps.min():.2g} where its mean is {curves[pair][steps.argmin()]:.3g}"
        for pair, steps in slopes.items()
        if (steps <= 0).any()
    ]
    expected = f"{method.label}: as c falls, d(T2,T2Sc), d(T3,T3Sc) and d(T3,T2Sc) rise and "
    expected += "d(T2,T3Sc) falls"
    if curves[FALLING].size < 2:
        return Claim(source, expected, "one c shows no trend", None)
    measured = "not monotone: " + ", ".join(broken) if broken else "all four curves are monotone"
    return Claim(source, expected, measured, not broken)


@dataclass(frozen=True)
class Tori(TorusExperiment):
    """Four tori sampled independently, their distances against the scale c of a radius.

    `--full` is the paper's setting but for the solver, `auto` in place of Algorithm 1. `--quick`
    has fewer trials, and runs the two slow peers on less: Gromov-Wasserstein, O(N³) per pair and
    step, on the first points of each torus, and the Geometry Score, whose γ depends on N, with
    fewer rounds.
    """

    name: ClassVar[str] = "tori"
    title: ClassVar[str] = "Tori: dimension against scale (Section 5.1, Fig. 1)"
    quick: ClassVar[dict[str, Any]] = {"n_trials": 3, "transport_samples": 500, "rounds": 200}
    full: ClassVar[dict[str, Any]] = {"n_trials": 10}

    n_eigenvalues: int = N_EIGENVALUES
    transport_samples: int = 3000  # points of each torus for Gromov-Wasserstein
    rounds: int = 2000  # of the Geometry Score, the paper's n

    def __post_init__(self) -> None:
        super().__post_init__()
        _check.positive_int("n_samples", self.n_samples, minimum=self.n_eigenvalues)
        _check.positive_int("transport_samples", self.transport_samples, minimum=2)
        _check.positive_int("rounds", self.rounds)

    @property
    def panels(self) -> tuple[Method, ...]:
        """The panels of Fig. 1."""
        n = min(self.transport_samples, self.n_samples)
        fewer = f", N = {n}" if n < self.n_samples else ""
        rounds = {"n_rounds": self.rounds, "processes": -1}
        exact = {"method": "exact"}
        return (
            Method("LES", "les", spectral=True),
            Method("IMD", "imd"),
            Method("IMD (our approach)", "imd-diffusion", spectral=True),
            Method(f"Geometry Score, n = {self.rounds}", "geometry-score", options=rounds),
            Method(f"Gromov-Wasserstein{fewer}", "gromov-wasserstein", False, exact, n),
        )

    @property
    def recipe(self) -> dict[str, Any]:
        """K and γ."""
        return {"n_eigenvalues": self.n_eigenvalues, "gamma": self.gamma}

    def pictures(self, table: pd.DataFrame) -> dict[str, Figure]:
        """Return the tori of the first trial at the scale nearest to 0.5, as in Appendix B.1.

        The paper shows T2 and T2Sc. The fourth coordinate of T3 and T3Sc is their colour.
        """
        position = int(np.argmin(np.abs(np.array(self.scales) - 0.5)))
        scale = self.scales[position]
        clouds = four_tori(self.angles(Task(0, scale, position, self.seed, ())), scale)
        figure, axes = figures.panels(len(TORI), columns=2, height=2.9, projection="3d")
        box = np.array([14.0, 14.0, 4.5])  # holds all tori, so that panels have one scale
        for panel, (name, points) in zip(axes, clouds.items(), strict=True):
            shown, shade = points[:, :3].T, points[:, -1]
            label, limit = ("z", 3.0) if points.shape[1] == 3 else ("w", 1.0)  # R2 and R3
            shades = panel.scatter(*shown, c=shade, vmin=-limit, vmax=limit, s=2)
            panel.set(xlim=(-14, 14), ylim=(-14, 14), zlim=(-4.5, 4.5), zticks=[-4, 0, 4])
            panel.set_box_aspect(box, zoom=1.2)
            scaled = "Sc" in name
            panel.set_title(f"${_tex_name(name)}$" + (f", c = {scale:g}" if scaled else ""))
            if scaled:
                figure.colorbar(shades, ax=panel, label=label, shrink=0.6, pad=0.15)
        figure.suptitle("The sampled tori (Appendix B.1)")
        return {"tori-samples": figure}

    def claims(self, table: pd.DataFrame) -> list[Claim]:
        """Return the paper's trends and crossings, and the stability of LES."""
        methods = within(self.panels, table["method"])
        names = {method.distance for method in methods}
        claims = [trend_claim(table, m, "Section 5.1") for m in methods if m.distance in _TRENDS]
        claims += [_no_trend_claim(table, m) for m in methods if m.distance not in _TRENDS]
        claims += _crossing_claims(table, methods)
        claims += [_insensitivity_claim(table)] if "imd" in names else []
        claims += [_spread_claim(table)] if names >= {"imd", "imd-diffusion"} else []
        return claims + (_stability_claims(table) if "les" in names else [])


def _no_trend_claim(table: pd.DataFrame, method: Method) -> Claim:
    """Return whether a method lacks the trends, as the paper says of all but three."""
    found = trend_claim(table, method, "Section 5.1")
    expected = f"{method.label}: does not show the four trends as c falls (only LES, GW and IMD "
    passed = None if found.passed is None else not found.passed
    return replace(found, expected=expected + "(our approach) do)", passed=passed)


def _crossing_claims(table: pd.DataFrame, methods: Sequence[Method]) -> list[Claim]:
    found, measured = crossings(table, methods)
    claims = [
        crossing_claim("Fig. 1", m.label, found[m.distance], expected=0.82, tol=0.05)
        for m in methods
        if m.distance == "imd-diffusion"
    ]
    if "les" not in found:
        return claims
    les, limit = found["les"], 0.42  # 0.41 in Fig. 1
    level = f"LES: d(T2,T2Sc) and d(T2,T3Sc) cross at about c = 0.41 (bar: at most {limit})"
    claims.insert(0, Claim("Fig. 1", level, crossing_text(les), les <= limit))
    others = [found[name] for name in _TRENDS if name in found and name != "les"]
    wider = "LES separates dimension from scale over a wider range of c (lower crossing) than GW "
    passed = all(les < value for value in others) if others else None
    claims.append(Claim("Section 5.1", wider + "and IMD (our approach)", measured, passed))
    # The paper does not say so of IMD.
    lower = ", ".join(m.label for m in methods if found[m.distance] < les)
    text = f"lower: {lower}" if lower else f"none of {len(found) - 1} others is lower"
    passed = not lower if len(methods) > 1 else None
    lowest = "LES has the lowest crossing of all methods run"
    return [*claims, Claim("this project", lowest, text, passed)]


def _insensitivity_claim(table: pd.DataFrame) -> Claim:
    """Return the effect of a small change of radius on IMD, relative to a change of dimension."""
    least = 0.8  # scales from here to 1 are small changes of radius
    shares = []
    for name in ("imd", "les"):
        rows = table[(table["method"] == name) & (table["c"] >= least) & (table["c"] < 1)]
        means = rows.groupby("pair")["distance"].mean()
        if len(means):
            share = max(means["T2,T2Sc"], means["T3,T3Sc"]) / means["T2,T3"]
            shares.append(f"{share:.2f} for {name}")
    expected = "IMD captures mainly the major dimensionality differences and is not sensitive to "
    measured = f"larger of d(T2,T2Sc) and d(T3,T3Sc), over d(T2,T3), at {least:g} ≤ c < 1: "
    measured += "; ".join(shares) or "no such c was run"
    return Claim("Section 5.1", expected + "small differences of scale", measured, None)


def _spread_claim(table: pd.DataFrame) -> Claim:
    """Return whether IMD varies less over samples with the eigenvalues of W."""
    groups = table[table["pair"] == "T2,T3"].groupby("method")["distance"]
    spread = groups.std() / groups.mean()
    names = {"imd": "IMD", "imd-diffusion": "IMD (our approach)", "les": "LES"}
    found = ", ".join(f"{names[n]} {spread[n]:.1%}" for n in names if n in spread)
    return Claim(
        "Section 5.1",
        "the estimate of heat kernel eigenvalues yields a more stable distance than IMD's",
        f"standard deviation of d(T2,T3) over its mean: {found}",
        bool(spread["imd-diffusion"] < spread["imd"]),
    )


def _stability_claims(table: pd.DataFrame) -> list[Claim]:
    """Return how LES separates dimensions from sampling noise.

    At c = 1 T2Sc is a second, independent sample of T2, so d(T2,T2Sc) is the noise.
    """
    least_ratio, most_spread = 60.0, 0.02
    les = table[table["method"] == "les"]
    across = les[les["pair"] == "T2,T3"]["distance"]
    unscaled = les[les["c"] == 1.0].groupby("pair")["distance"].mean()
    ratio = float(unscaled["T2,T3"] / unscaled["T2,T2Sc"]) if len(unscaled) else math.nan
    spread = float(across.std() / across.mean())
    larger = f"LES at c = 1: mean d(T2,T3) is at least {least_ratio:g} times the mean of two "
    larger += "independent samples of T2"
    times = f"{ratio:.1f} times" if len(unscaled) else "c = 1 was not run"
    stable = f"LES: the standard deviation of d(T2,T3) is below {most_spread:.0%} of its mean"
    share = f"{spread:.2%} over {len(across)} independent samples, mean {across.mean():.2f}"
    return [
        Claim("this project", larger, times, ratio >= least_ratio),
        Claim("this project", stable, share, spread < most_spread),
    ]
