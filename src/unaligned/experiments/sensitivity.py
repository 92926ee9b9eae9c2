"""The sensitivity of LES to its settings and to faults of the data, and the best settings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

import unaligned as ua

from .. import _check, figures
from .._check import FloatArray
from ..data.shapes import torus_angles
from ..defaults import BANDWIDTH_FACTOR, GAMMA, N_EIGENVALUES
from .base import Claim, Experiment, Row, Stage, Task, Value, markdown_table
from .tori import TORI, TorusExperiment, crossing, crossing_claim, crossing_text, four_tori

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RECIPE = {"gamma": "γ", "n_eigenvalues": "K", "bandwidth_factor": "factor of σ²"}
_FAULTS = {"noise": "noise, standard deviation", "outliers": "share of rows far away"}
_FAULTS["n_samples"] = "N"
_PAIRS = ("T2,T2Sc", "T2,T3Sc", "T2,T3")
_MOVED = "T2,clean"


@dataclass(frozen=True)
class Condition:
    """The data and the options of `ua.signature`; the defaults are the package's."""

    noise: float = 0.0  # standard deviation of normal noise on every coordinate
    outliers: float = 0.0  # share of rows that are replaced by points far away
    n_samples: int = 3000  # points of each torus
    n_eigenvalues: int = N_EIGENVALUES
    gamma: float = GAMMA
    bandwidth_factor: float = BANDWIDTH_FACTOR
    robust: bool = False

    def changes(self, default: Condition) -> dict[str, Any]:
        """Return the settings that differ from the default."""
        return {k: v for k, v in vars(self).items() if v != getattr(default, k)}

    def name(self, default: Condition) -> str:
        """Return the changed settings in words, such as `noise=0.1, gamma=1e-06`."""
        changes = self.changes(default).items()
        return ", ".join(f"{key}={value:g}" for key, value in changes) or "default"

    @property
    def data(self) -> tuple[float, float, int]:
        """The settings that determine the points."""
        return self.noise, self.outliers, self.n_samples

    @property
    def source(self) -> tuple[Any, ...]:
        """The settings that determine the spectrum; K and γ are applied to it afterwards."""
        return *self.data, self.bandwidth_factor, self.robust

    def apply(self, points: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return the first points, with noise and outliers."""
        points = points[: self.n_samples]
        if self.noise:
            points = points + rng.normal(scale=self.noise, size=points.shape)
        count = round(self.outliers * len(points))
        if count:
            # The tori reach to 14 in every coordinate.
            far = rng.uniform(-100.0, 100.0, size=(count, points.shape[1]))
            points = np.vstack([points[count:], far])
        return points


@dataclass(frozen=True)
class Effect:
    """The measurements of one condition."""

    name: str
    condition: Condition
    changed: frozenset[str]  # the settings that differ from the default
    across: float  # mean d(T2,T3)
    resampled: float  # mean distance of two samples of T2, d(T2,T2Sc) at c = 1
    moved: float  # distance of T2 from the clean T2; NaN where the data is the default's
    crossing: float  # of the mean curves
    spread: float  # standard deviation of the crossing over the trials

    def varies(self, factor: str, *, noise: float | None = 0.0) -> bool:
        """Return whether only `factor` differs from the default, at this noise (None: any)."""
        same_noise = factor == "noise" or noise is None or self.condition.noise == noise
        return same_noise and self.changed <= {factor, "noise"}

    def level(self, factor: str) -> float:
        """Return the value of a setting."""
        return float(getattr(self.condition, factor))

    def cells(self) -> list[str]:
        """Return distance across, resampled, moved and crossing for a table."""
        spread = f" ± {self.spread:.3f}" if self.spread > 0 else ""
        numbers = ["" if math.isnan(v) else f"{v:.3g}" for v in (self.resampled, self.moved)]
        return [f"{self.across:.2f}", *numbers, f"{_short(self.crossing)}{spread}"]


def _short(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else crossing_text(value)


def effects_of(table: pd.DataFrame, conditions: Mapping[str, Condition]) -> list[Effect]:
    """Return the effects of the conditions in the table; the first condition is the default."""
    default = next(iter(conditions.values()))
    effects = []
    for name, condition in conditions.items():
        rows = table[table["method"] == name]
        if rows.empty:
            continue
        means = rows.groupby("pair")["distance"].mean()
        each = [crossing(trial, name) for _, trial in rows.groupby("trial")]
        spread = float(np.std(each)) if np.isfinite(each).all() else math.nan
        resampled = rows[(rows["c"] == 1.0) & (rows["pair"] == "T2,T2Sc")]["distance"].mean()
        moved, changed = means.get(_MOVED, math.nan), frozenset(condition.changes(default))
        distances = (means["T2,T3"], resampled, float(moved))
        effects.append(Effect(name, condition, changed, *distances, crossing(rows, name), spread))
    return effects


@dataclass(frozen=True)
class Recommendation:
    """The best level of one setting of the recipe."""

    default: float
    worst: dict[float, float]  # level -> the highest crossing over all noises
    unstable: tuple[float, ...]  # where the least noise moves T2 by more than resampling does
    noises: tuple[float, ...]

    @property
    def best(self) -> float:
        """The stable level with the lowest worst crossing; the default where it is as good."""
        allowed = {k: v for k, v in self.worst.items() if k not in self.unstable} or self.worst
        lowest = min(allowed, key=allowed.__getitem__)
        # Crossings within 0.02 count as equal.
        as_good = allowed.get(self.default, math.inf) <= allowed[lowest] + 0.02
        return self.default if as_good else lowest

    def __str__(self) -> str:
        levels = ", ".join(f"{level:g}: {_short(c)}" for level, c in self.worst.items())
        noises, unstable = (", ".join(f"{x:g}" for x in xs) for xs in (self.noises, self.unstable))
        return (
            f"best: {self.best:g}. Highest crossing over noise {noises}, by level: {levels}. The "
            f"least noise moves T2 by more than resampling does at {unstable or 'no level'}"
        )


def recommend(effects: Sequence[Effect], factor: str, default: Condition) -> Recommendation | None:
    """Return the best level of one setting of the recipe; None where it was not varied."""
    levels: dict[float, list[Effect]] = {}
    for effect in sorted(effects, key=lambda e: e.level(factor)):
        if effect.varies(factor, noise=None):
            levels.setdefault(effect.level(factor), []).append(effect)
    # Only the default was run at the strongest noises, which must not count against it.
    noises = [{e.condition.noise for e in rows} for rows in levels.values()]
    common = set.intersection(*noises) if noises else set()
    if len(levels) < 2 or not common:
        return None
    least, unstable, worst = min(common - {0.0}, default=None), [], {}
    for level, rows in levels.items():
        worst[level] = max(e.crossing for e in rows if e.condition.noise in common)
        if any(e.condition.noise == least and e.moved > e.resampled for e in rows):
            unstable.append(level)
    at = float(getattr(default, factor))
    return Recommendation(at, worst, tuple(unstable), tuple(sorted(common)))


def recipe_table(effects: Sequence[Effect]) -> list[str]:
    """Return a table with a row per level of each setting of the recipe."""
    noises = sorted({e.condition.noise for e in effects if e.changed - {"noise"}})
    head = ["setting", "d(T2,T3)", "resampled"]
    head += [f"moved by noise {noise:g}" for noise in noises if noise]
    head += [f"crossing, noise {noise:g}" for noise in noises]
    rows = []
    for factor, title in RECIPE.items():
        varied = [e for e in effects if e.varies(factor, noise=None)]
        for level in sorted({e.level(factor) for e in varied if not e.condition.noise}):
            cells = {e.condition.noise: e.cells() for e in varied if e.level(factor) == level}
            moved = [cells[noise][2] for noise in noises if noise and noise in cells]
            crossings = [cells[noise][3] for noise in noises if noise in cells]
            rows.append([f"{title} = {level:g}", *cells[0.0][:2], *moved, *crossings])
    text = (
        "The recipe: `resampled` is the distance of two samples of T2, `moved by noise` that of "
        "T2 from itself with noise. At the crossing a change of scale becomes larger than a "
        "change of dimension (lower is better); ± is the standard deviation over trials."
    )
    return [text, markdown_table(head, rows)]


def data_table(effects: Sequence[Effect]) -> list[str]:
    """Return a table with a row per fault of the data, by the default recipe."""
    head = ["data", "d(T2,T3)", "resampled", "T2 moved by", "crossing"]
    faults = [{fault, "robust"} for fault in _FAULTS]
    shown = [e for e in effects if any(e.changed <= fault for fault in faults)]
    text = "The data, by the default recipe (all four tori changed alike):"
    return [text, markdown_table(head, [[e.name, *e.cells()] for e in shown])]


@dataclass(frozen=True)
class Sensitivity(Experiment):
    """One thing changed at a time: γ, K, the factor of σ², noise, outliers, and N.

    γ, K and the factor are varied on clean and on noisy data, since a setting that is best
    without noise may be worst with it. All conditions of a trial use the same tori. `--quick`
    has fewer trials and levels.
    """

    name: ClassVar[str] = "sensitivity"
    title: ClassVar[str] = "Sensitivity of LES, and the best settings (ours)"
    variable: ClassVar[str] = "c"
    tabulated: ClassVar[bool] = False
    quick: ClassVar[dict[str, Any]] = {
        "n_trials": 2,
        "factors": (1.0, 2.0, 4.0),
        "noises": (0.0, 0.01, 0.1),
        "outliers": (0.01,),
    }
    full: ClassVar[dict[str, Any]] = {"n_trials": 10}

    n_samples: int = 3000
    n_eigenvalues: int = N_EIGENVALUES
    gamma: float = GAMMA
    scales: tuple[float, ...] = TorusExperiment.scales
    gammas: tuple[float, ...] = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)
    eigenvalues: tuple[int, ...] = (50, 100, 200, 300, 500)
    factors: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0, 8.0)
    noises: tuple[float, ...] = (0.0, 0.01, 0.1, 0.3)  # 0.01 as in the authors' script
    most_noise: float = 0.1  # up to which the recipe is varied
    outliers: tuple[float, ...] = (0.0, 0.001, 0.01)  # each with and without `robust`
    sizes: tuple[int, ...] = (750, 1500, 3000, 6000, 12_000)

    def __post_init__(self) -> None:
        super().__post_init__()
        for size in (self.n_samples, *self.sizes):
            _check.positive_int("sizes", size, minimum=self.n_eigenvalues)
        _check.positive_int("n_samples", self.n_samples, minimum=max(self.eigenvalues))

    @property
    def default(self) -> Condition:
        """The package's settings on clean data."""
        return Condition(0.0, 0.0, self.n_samples, self.n_eigenvalues, self.gamma)

    @property
    def conditions(self) -> dict[str, Condition]:
        """Name -> condition, the default first."""
        default, found = self.default, [self.default]
        for noise in self.noises:
            noisy = replace(default, noise=noise)
            found.append(noisy)
            if noise <= self.most_noise:
                found += [replace(noisy, gamma=gamma) for gamma in self.gammas]
                found += [replace(noisy, n_eigenvalues=k) for k in self.eigenvalues]
                found += [replace(noisy, bandwidth_factor=factor) for factor in self.factors]
        for share in self.outliers:
            dirty = replace(default, outliers=share)
            found += [dirty, replace(dirty, robust=True)]
        found += [replace(default, n_samples=size) for size in self.sizes]
        return {condition.name(default): condition for condition in found}

    def stages(self) -> list[Stage]:
        """Return the conditions, grouped by the spectrum they share."""
        names: dict[tuple[Any, ...], list[str]] = {}
        for name, condition in self.conditions.items():
            names.setdefault(condition.source, []).append(name)
        return [(tuple(group), self.scales) for group in names.values()]

    def pairs(self, method: str, value: Value) -> tuple[str, ...]:
        """Return the pairs of tori, and T2 beside the clean T2 where the data was changed."""
        is_clean = self.conditions[method].data == self.default.data
        return _PAIRS if is_clean else (*_PAIRS, _MOVED)

    def run_task(self, task: Task) -> list[Row]:
        """Sample the four tori, change them, and measure."""
        conditions = self.conditions
        source = conditions[task.methods[0]]
        clouds = self.clouds(task)
        rng = np.random.default_rng([task.seed, task.trial, 1 + task.position, 1])
        changed = {name: source.apply(points, rng) for name, points in clouds.items()}
        if source.data != self.default.data:
            changed["clean"] = self.default.apply(clouds["T2"], rng)
        # One signature per torus, which is truncated for every condition of the same source.
        alike = [c for c in conditions.values() if c.source == source.source]
        options: dict[str, Any] = {
            "n_eigenvalues": max(c.n_eigenvalues for c in alike),
            "gamma": min(c.gamma for c in alike),
            "bandwidth_factor": source.bandwidth_factor,
            "robust": source.robust,
            "tol": 0.02,  # far below any difference here
        }
        signatures = {name: ua.signature(points, **options) for name, points in changed.items()}
        rows = []
        for method in task.methods:
            k, gamma = conditions[method].n_eigenvalues, conditions[method].gamma
            own = {name: s.truncate(k).with_gamma(gamma) for name, s in signatures.items()}
            for pair in self.pairs(method, task.value):
                first, second = pair.split(",")
                # LES itself: `ua.distance` warns of sizes, which differ here on purpose.
                distance = float(np.linalg.norm(own[first].values - own[second].values))
                rows.append({"method": method, "pair": pair, "distance": distance})
        return rows

    def clouds(self, task: Task) -> dict[str, FloatArray]:
        """Return the four tori at the largest N; smaller samples are their first points."""
        rng, largest = task.rng(), max(self.n_samples, *self.sizes)
        angles = {name: torus_angles(largest, rng=rng) for name in TORI}
        return four_tori(angles, task.value)

    def claims(self, table: pd.DataFrame) -> list[Claim]:
        """Return the crossings of the authors' code, the effect of `robust`, and the defaults."""
        effects = effects_of(table, self.conditions)
        clean = {e.condition.gamma: e.crossing for e in effects if e.varies("gamma")}
        authors = {1e-4: 0.76, 1e-8: 0.41, 1e-10: 0.29}  # γ -> crossing
        claims = [
            crossing_claim("the authors' code", f"γ = {gamma:g}", clean[gamma], expected, tol=0.03)
            for gamma, expected in authors.items()
            if gamma in clean
        ]
        claims += _robust_claims(effects)
        for factor, title in RECIPE.items():
            advice = recommend(effects, factor, self.default)
            if advice is not None:
                expected = f"the default {title} = {advice.default:g} is as good as the best"
                keep = advice.best == advice.default
                claims.append(Claim("this project", expected, str(advice), keep))
        return claims

    def notes(self, table: pd.DataFrame) -> list[str]:
        """Return a table of the recipe's settings and one of the faults of the data."""
        effects = effects_of(table, self.conditions)
        return [*recipe_table(effects), *data_table(effects)]

    def draw(self, table: pd.DataFrame) -> Figure:
        """Return the crossing against the recipe above, and the effect of faults below."""
        effects = effects_of(table, self.conditions)
        low, high = min(self.scales), max(self.scales)
        figure, axes = figures.panels(len(RECIPE) + len(_FAULTS))
        for panel, (factor, title) in zip(axes[:3], RECIPE.items(), strict=True):
            for i, noise in enumerate(sorted({e.condition.noise for e in effects})):
                rows = [e for e in effects if e.varies(factor, noise=noise)]
                crossings = {e.level(factor): min(max(e.crossing, low), high) for e in rows}
                _draw_line(panel, crossings, f"noise {noise:g}", i)
            panel.set(title=title, ylim=(low - 0.02, high + 0.02))
        for panel, (factor, title) in zip(axes[3:], _FAULTS.items(), strict=True):
            _draw_fault(panel, factor, effects)
            panel.set(title=title, ylim=(0.0, None))
        for panel, factor in zip(axes, (*RECIPE, *_FAULTS), strict=True):
            _label_levels(panel, effects, factor, self.default)
        axes[0].set_ylabel("crossing c (lower is better)")
        axes[3].set_ylabel("LES between T₂ and changed T₂")
        figure.supxlabel("bold: the default", fontsize=8)
        return figure


def _draw_fault(panel: Axes, factor: str, effects: Sequence[Effect]) -> None:
    """Draw how far a fault of the data moves T2, beside two reference distances."""
    series = {"default recipe": [e for e in effects if e.changed <= {factor}]}
    if factor == "outliers":
        # Without outliers T2 does not move, whatever the recipe.
        both = {factor, "robust"}
        series["robust=True"] = [e for e in effects if e.changed in (set(), both)]
    for i, (label, rows) in enumerate(series.items()):
        moved = {e.level(factor): 0.0 if math.isnan(e.moved) else e.moved for e in rows}
        _draw_line(panel, moved, label, i)
    for effect in effects:
        if not effect.changed:
            line: dict[str, Any] = {"color": "0.4", "lw": 0.9}
            panel.axhline(effect.across, ls="--", label="$d(T_2, T_3)$", **line)
            panel.axhline(effect.resampled, ls=":", label="new sample", **line)


def _draw_line(panel: Axes, values: Mapping[float, float], label: str, number: int) -> None:
    """Draw one line over evenly spaced levels, if there are two or more."""
    if len(values) > 1:
        heights = [values[level] for level in sorted(values)]
        form = f"{'osD^'[number % 4]}{'-' if number == 0 else '--'}"
        colour = figures.COLOURS[number]
        panel.plot(range(len(values)), heights, form, color=colour, label=label, markersize=4)


def _label_levels(panel: Axes, effects: Sequence[Effect], factor: str, default: Condition) -> None:
    """Label the levels, the default's in bold, and add the legend."""
    levels = sorted({e.level(factor) for e in effects if e.varies(factor)})
    panel.set_xticks(range(len(levels)), [f"{level:g}" for level in levels])
    for level, label in zip(levels, panel.get_xticklabels(), strict=True):
        label.set_fontweight("bold" if level == getattr(default, factor) else "normal")
    if panel.lines:
        panel.legend(fontsize=8, frameon=False)


def _robust_claims(effects: Sequence[Effect]) -> list[Claim]:
    limit, claims = 2.0, []
    plain = {e.condition.outliers: e for e in effects if not e.condition.robust}
    for robust in effects:
        share = robust.condition.outliers
        if share and robust.condition.robust and share in plain:
            without = plain[share]
            measured = (
                f"moved by {robust.moved:.2f}, crossing {crossing_text(robust.crossing)}; without "
                f"`robust` by {without.moved:.2f}, {crossing_text(without.crossing)}"
            )
            expected = f"{share:.1%} of rows far away: `robust` lets them move LES of T2 by less "
            passed = robust.moved < limit
            claims.append(Claim("this project", f"{expected}than {limit:g}", measured, passed))
    return claims
