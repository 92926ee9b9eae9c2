"""How the settings of LES and the quality of the data move it, and what to choose (ours)."""

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
from .advice import Condition, Finding, data_table, find, recipe_table, recommend, variations
from .base import Claim, Experiment, Row, Stage, Task
from .radii import SCALES, TORI, four_tori, say_crossing

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_FAULTS = {
    "noise": "noise, standard deviation",
    "outliers": "share of rows far away",
    "n_samples": "N",
}


def draw_findings(
    found: Sequence[Finding],
    default: Condition,
    recipe: Mapping[str, str],
    scales: Sequence[float],
) -> Figure:
    """Return the crossing against the recipe above, and how far faults move T2 below."""
    figure, axes = figures.panels(len(recipe) + len(_FAULTS))
    for panel, (factor, title) in zip(axes[:3], recipe.items(), strict=True):
        for i, noise in enumerate(sorted({f.condition.noise for f in found})):
            rows = [f for f in found if f.varies(factor, noise=noise)]
            crossings = np.clip([f.crossing for f in rows], min(scales), max(scales))
            _line(panel, factor, rows, crossings, f"noise {noise:g}", i)
        _ticks(panel, found, factor, default)
        panel.set(title=title, ylim=(min(scales) - 0.02, max(scales) + 0.02))
        if panel.lines:
            panel.legend(fontsize=8, frameon=False)
    for panel, (factor, title) in zip(axes[3:], _FAULTS.items(), strict=True):
        _draw_fault(panel, factor, found, default)
        panel.set(title=title, ylim=(0.0, None))
    axes[0].set_ylabel("crossing c (lower is better)")
    axes[3].set_ylabel("LES between T₂ and changed T₂")
    figure.supxlabel("bold: the default", fontsize=8)
    return figure


def _draw_fault(panel: Axes, factor: str, found: Sequence[Finding], default: Condition) -> None:
    """Draw how far a fault of the data moves T2, beside what other changes are worth."""
    series = {"default recipe": [f for f in found if f.changed <= {factor}]}
    if factor == "outliers":
        # Without outliers nothing moves, whatever the recipe.
        both = {factor, "robust"}
        series["robust=True"] = [f for f in found if f.changed in (set(), both)]
    for i, (label, rows) in enumerate(series.items()):
        _line(panel, factor, rows, np.nan_to_num([f.moved for f in rows]), label, i)
    _ticks(panel, found, factor, default)
    for finding in found:
        if not finding.changed:
            level = finding.across
            panel.axhline(level, color="0.4", lw=0.9, ls="--", label="$d(T_2, T_3)$")
            panel.axhline(finding.resampled, color="0.4", lw=0.9, ls=":", label="fresh sample")
    if panel.lines:
        panel.legend(fontsize=8, frameon=False, loc="best")


def _line(
    panel: Axes,
    factor: str,
    rows: Sequence[Finding],
    values: Sequence[float] | FloatArray,
    label: str,
    number: int,
) -> None:
    """Draw one line over the levels of a factor, evenly spaced; none where nothing varies."""
    if len(rows) < 2:
        return
    order = np.argsort([float(getattr(f.condition, factor)) for f in rows])
    form = f"{'osD^'[number % 4]}{'-' if number == 0 else '--'}"
    heights = np.asarray(values)[order]
    panel.plot(order.argsort()[order], heights, form, color=figures.COLOURS[number], label=label)
    panel.lines[-1].set_markersize(4)


def _ticks(panel: Axes, found: Sequence[Finding], factor: str, default: Condition) -> None:
    """Name the levels, the default's in bold."""
    levels = sorted({float(getattr(f.condition, factor)) for f in found if f.varies(factor)})
    panel.set_xticks(range(len(levels)), [f"{level:g}" for level in levels])
    for level, label in zip(levels, panel.get_xticklabels(), strict=True):
        label.set_fontweight("bold" if level == getattr(default, factor) else "normal")


# Measured with the authors' code: γ -> where d(T2,T2Sc) and d(T2,T3Sc) cross.
_AUTHORS = {1e-4: 0.76, 1e-8: 0.41, 1e-10: 0.29}
_CROSSING_TOLERANCE = 0.03
RECIPE = {"gamma": "γ", "n_eigenvalues": "K", "bandwidth_factor": "factor of σ²"}
_PAIRS = ("T2,T2Sc", "T2,T3Sc", "T2,T3")
_MOVED = "T2,clean"
# Spectra that serve several γ have an error of rounding; far below any difference here.
_TOL = 0.02
_LEAST_MOVE = 2.0  # what `robust` may let outliers move LES by


@dataclass(frozen=True)
class Sensitivity(Experiment):
    """One thing changed at a time: γ, K, the factor of σ², noise, outliers, and N.

    Every condition has its own curves against c. The recipe's γ, K and factor are varied on
    clean data and on noisy data, as a setting that is best without noise may be worst with it.
    All conditions of a trial see the same tori. `--quick` has fewer trials and levels.

    Attributes
    ----------
    gammas, eigenvalues, factors
        Levels of the recipe.
    noises, most_noise
        Standard deviations of noise on every coordinate (0.01 is that of the authors' script),
        and up to which of them the recipe is varied.
    outliers
        Shares of rows far away, each with and without `robust`.
    sizes
        Levels of N.
    """

    name: ClassVar[str] = "sensitivity"
    title: ClassVar[str] = "What moves LES, and which settings to choose (ours)"
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
    n_eigenvalues: int = 200
    gamma: float = 1e-8
    scales: tuple[float, ...] = SCALES
    gammas: tuple[float, ...] = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)
    eigenvalues: tuple[int, ...] = (50, 100, 200, 300, 500)
    factors: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0, 8.0)
    noises: tuple[float, ...] = (0.0, 0.01, 0.1, 0.3)
    most_noise: float = 0.1
    outliers: tuple[float, ...] = (0.0, 0.001, 0.01)
    sizes: tuple[int, ...] = (750, 1500, 3000, 6000, 12_000)

    def __post_init__(self) -> None:
        super().__post_init__()
        for size in (self.n_samples, *self.sizes):
            _check.positive_int("sizes", size, minimum=self.n_eigenvalues)
        _check.positive_int("n_samples", self.n_samples, minimum=max(self.eigenvalues))

    @property
    def default(self) -> Condition:
        """The project's settings on clean data."""
        return Condition(
            n_samples=self.n_samples, n_eigenvalues=self.n_eigenvalues, gamma=self.gamma
        )

    @property
    def conditions(self) -> dict[str, Condition]:
        """Name -> condition, the default first."""
        recipe = dict(zip(RECIPE, (self.gammas, self.eigenvalues, self.factors), strict=True))
        found = [self.default]
        for noise in self.noises:
            noisy = replace(self.default, noise=noise)
            found += [noisy, *(variations(noisy, recipe) if noise <= self.most_noise else [])]
        for share in self.outliers:
            dirty = replace(self.default, outliers=share)
            found += [dirty, replace(dirty, robust=True)]
        found += variations(self.default, {"n_samples": self.sizes})
        return {condition.name(self.default): condition for condition in found}

    def stages(self) -> list[Stage]:
        """Return the conditions, those together that share a spectrum."""
        names: dict[tuple[Any, ...], list[str]] = {}
        for name, condition in self.conditions.items():
            names.setdefault(condition.source, []).append(name)
        return [Stage(tuple(group), self.scales) for group in names.values()]

    def run_task(self, task: Task) -> list[Row]:
        """Sample the four tori anew, change them, and measure."""
        source = self.conditions[task.methods[0]]
        clouds = self._clouds(task)
        rng = np.random.default_rng([task.seed, task.trial, 1 + task.position, 1])
        changed = {name: source.applied_to(points, rng) for name, points in clouds.items()}
        if self._is_changed(source):
            changed["clean"] = self.default.applied_to(clouds["T2"], rng)
        signatures = self._signatures(source, changed)
        return [
            {"method": name, "pair": pair, "distance": distance}
            for name in task.methods
            for pair, distance in self._measure(name, signatures).items()
        ]

    def pairs(self, method: str) -> tuple[str, ...]:
        """Return the pairs of tori, and T2 beside itself where the data was changed."""
        return (*_PAIRS, *([_MOVED] if self._is_changed(self.conditions[method]) else []))

    def _is_changed(self, condition: Condition) -> bool:
        return condition.data != self.default.data

    def _measure(self, name: str, signatures: dict[str, ua.Signature]) -> dict[str, float]:
        """Return the distance of every pair under one condition."""
        condition = self.conditions[name]
        cut = {
            torus: signature.truncate(condition.n_eigenvalues).with_gamma(condition.gamma)
            for torus, signature in signatures.items()
        }
        found = {}
        for pair in self.pairs(name):
            first, second = pair.split(",")
            found[pair] = ua.distance(cut[first], cut[second])
        return found

    def _clouds(self, task: Task) -> dict[str, FloatArray]:
        """Return the four tori at the largest N; smaller samples are their first points."""
        rng, largest = task.rng(), max(self.n_samples, *self.sizes)
        angles = {name: torus_angles(largest, rng=rng) for name in TORI}
        return four_tori(angles, task.value)

    def _signatures(
        self, source: Condition, clouds: dict[str, FloatArray]
    ) -> dict[str, ua.Signature]:
        """Return one signature per torus that all conditions of this source can be cut from."""
        alike = [c for c in self.conditions.values() if c.source == source.source]
        options: dict[str, Any] = {
            "n_eigenvalues": max(c.n_eigenvalues for c in alike),
            "gamma": min(c.gamma for c in alike),
            "bandwidth_factor": source.bandwidth_factor,
            "robust": source.robust,
            "tol": _TOL,
        }
        return {name: ua.signature(points, **options) for name, points in clouds.items()}

    def claims(self, table: pd.DataFrame) -> list[Claim]:
        """Return the crossings measured with the authors' code, and what `robust` promises."""
        found = find(table, self.conditions)
        return [*_gamma_claims(found), *_robust_claims(found), *self._default_claims(found)]

    def _default_claims(self, found: list[Finding]) -> list[Claim]:
        claims = []
        for factor, title in RECIPE.items():
            advice = recommend(found, factor, self.default)
            if advice is not None:
                expected = f"the default {title} = {advice.default:g} is as good as the best"
                claims.append(Claim("this project", expected, str(advice), advice.keep))
        return claims

    def notes(self, table: pd.DataFrame) -> list[str]:
        """Return the recipe's settings and the data's faults, a line each."""
        found = find(table, self.conditions)
        return [*recipe_table(found, RECIPE), *data_table(found)]

    def draw(self, table: pd.DataFrame) -> Figure:
        """Return what the settings and the faults of the data do."""
        found = find(table, self.conditions)
        return draw_findings(found, self.default, RECIPE, self.scales)


def _gamma_claims(found: list[Finding]) -> list[Claim]:
    clean = {f.condition.gamma: f.crossing for f in found if f.varies("gamma")}
    return [
        Claim(
            "the authors' code",
            f"γ = {gamma:g}: d(T2,T2Sc) and d(T2,T3Sc) cross at about c = {expected} "
            f"(± {_CROSSING_TOLERANCE})",
            say_crossing(clean[gamma]),
            math.isfinite(clean[gamma]) and abs(clean[gamma] - expected) <= _CROSSING_TOLERANCE,
        )
        for gamma, expected in _AUTHORS.items()
        if gamma in clean
    ]


def _robust_claims(found: list[Finding]) -> list[Claim]:
    dirty = {(f.condition.outliers, f.condition.robust): f for f in found if f.condition.outliers}
    return [
        Claim(
            "this project",
            f"{share:.1%} of rows far away: `robust` lets them move LES of T2 by less than "
            f"{_LEAST_MOVE:g}",
            f"moved by {robust.moved:.2f}, crossing {say_crossing(robust.crossing)}; without "
            f"`robust` by {dirty[share, False].moved:.2f}, "
            f"{say_crossing(dirty[share, False].crossing)}",
            robust.moved < _LEAST_MOVE,
        )
        for (share, is_robust), robust in dirty.items()
        if is_robust and (share, False) in dirty
    ]
