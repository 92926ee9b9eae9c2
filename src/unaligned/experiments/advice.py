"""What the measurements of the sensitivity experiment say, and what follows for the defaults."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._check import FloatArray
from .radii import crossing, say_crossing
from .run import markdown_table

if TYPE_CHECKING:
    import pandas as pd


FAR = 100.0  # outliers are drawn from a cube of this half width; the tori reach to 14


@dataclass(frozen=True)
class Condition:
    """One setting of everything that may move LES; the defaults are the project's.

    Attributes
    ----------
    noise
        Standard deviation of normal noise on every coordinate.
    outliers
        The share of rows that is replaced by points far away.
    n_samples
        Points of each torus.
    n_eigenvalues, gamma, bandwidth_factor, robust
        Options of `ua.signature`.
    """

    noise: float = 0.0
    outliers: float = 0.0
    n_samples: int = 3000
    n_eigenvalues: int = 200
    gamma: float = 1e-8
    bandwidth_factor: float = 2.0
    robust: bool = False

    def name(self, default: Condition) -> str:
        """Return what differs from the default, such as `gamma=1e-06, noise=0.1`.

        Examples
        --------
        >>> Condition(noise=0.1, gamma=1e-6).name(Condition())
        'noise=0.1, gamma=1e-06'
        """
        changed = {
            key: value for key, value in vars(self).items() if value != getattr(default, key)
        }
        return ", ".join(f"{key}={value:g}" for key, value in changed.items()) or "default"

    @property
    def data(self) -> tuple[float, float, int]:
        """What decides the points."""
        return self.noise, self.outliers, self.n_samples

    @property
    def source(self) -> tuple[Any, ...]:
        """What decides the spectrum; K and γ are applied to it afterwards."""
        return *self.data, self.bandwidth_factor, self.robust

    def applied_to(self, points: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return the points with noise and outliers; without either, as they are."""
        points = points[: self.n_samples]
        if self.noise:
            points = points + rng.normal(scale=self.noise, size=points.shape)
        count = round(self.outliers * len(points))
        if count:
            far = rng.uniform(-FAR, FAR, size=(count, points.shape[1]))
            points = np.vstack([points[count:], far])
        return points


def variations(default: Condition, factors: Mapping[str, Iterable[Any]]) -> list[Condition]:
    """Return the default with each factor at each of its levels, the default's own left out.

    Examples
    --------
    >>> found = variations(Condition(), {"noise": (0.0, 0.1), "robust": (True,)})
    >>> [condition.name(Condition()) for condition in found]
    ['noise=0.1', 'robust=1']
    """
    return [
        replace(default, **{factor: level})
        for factor, levels in factors.items()
        for level in levels
        if level != getattr(default, factor)
    ]


_DATA = frozenset({"noise", "outliers", "n_samples", "robust"})
_RESOLUTION = 0.02  # crossings nearer than this are taken for equal


@dataclass(frozen=True)
class Finding:
    """What one condition measured.

    Attributes
    ----------
    changed
        What differs from the default.
    across
        Mean d(T2,T3).
    resampled
        Mean distance of two samples of T2, which is d(T2,T2Sc) at c = 1; NaN if that was not run.
    moved
        Distance of T2 from the clean T2 by the same recipe; NaN where the data is the default's.
    crossing, spread
        The crossing c of the mean curves, and its standard deviation over the trials.
    """

    name: str
    condition: Condition
    changed: frozenset[str]
    across: float
    resampled: float
    moved: float
    crossing: float
    spread: float

    def varies(self, factor: str, *, noise: float = 0.0) -> bool:
        """Return whether this is the default but for `factor`, at this noise."""
        return self.changed <= {factor, "noise"} and (
            factor == "noise" or self.condition.noise == noise
        )


def find(table: pd.DataFrame, conditions: Mapping[str, Condition]) -> list[Finding]:
    """Return the findings of the conditions that are in the table."""
    default = vars(next(iter(conditions.values())))
    found = []
    for name, condition in conditions.items():
        rows = table[table["method"] == name]
        if rows.empty:
            continue
        changed = frozenset(k for k, v in vars(condition).items() if v != default[k])
        means = rows.groupby("pair")["distance"].mean()
        resampled = rows[(rows["c"] == 1.0) & (rows["pair"] == "T2,T2Sc")]["distance"].mean()
        moved = float(means.get("T2,clean", math.nan))
        each = [crossing(trial, name) for _, trial in rows.groupby("trial")]
        spread = float(np.std(each)) if np.isfinite(each).all() else math.nan
        middle = crossing(rows, name)
        found.append(
            Finding(name, condition, changed, means["T2,T3"], resampled, moved, middle, spread)
        )
    return found


@dataclass(frozen=True)
class Advice:
    """What follows for one setting of the recipe.

    Attributes
    ----------
    worst
        Level -> the highest crossing over all noises.
    unsteady
        Levels at which the least noise moves T2 by more than a fresh sample of T2 does.
    """

    default: float
    worst: dict[float, float]
    unsteady: tuple[float, ...]
    noises: tuple[float, ...]

    @property
    def best(self) -> float:
        """The steady level with the lowest worst crossing; the default where it is as good."""
        allowed = {k: v for k, v in self.worst.items() if k not in self.unsteady} or self.worst
        lowest = min(allowed, key=allowed.__getitem__)
        as_good = allowed.get(self.default, math.inf) <= allowed[lowest] + _RESOLUTION
        return self.default if as_good else lowest

    @property
    def keep(self) -> bool:
        """Whether the default is as good as the best."""
        return self.best == self.default

    def __str__(self) -> str:
        told = ", ".join(f"{level:g}: {_short(c)}" for level, c in self.worst.items())
        noises = ", ".join(f"{noise:g}" for noise in self.noises)
        unsteady = ", ".join(f"{level:g}" for level in self.unsteady) or "no level"
        return (
            f"take {self.best:g}. Highest crossing over noise {noises}, by level: {told}. The "
            f"least noise moves T2 by more than a fresh sample does at {unsteady}"
        )


def recommend(found: Sequence[Finding], factor: str, default: Condition) -> Advice | None:
    """Return what the measurements say of one setting of the recipe.

    The lower the crossing, the more widely dimension is told from scale; what counts is the
    worst one over all noises. A level at which the least noise matters more than the choice of
    the sample is no candidate. None where nothing was varied.
    """
    levels: dict[float, list[Finding]] = {}
    for finding in found:
        if finding.varies(factor, noise=finding.condition.noise):
            levels.setdefault(float(getattr(finding.condition, factor)), []).append(finding)
    # Only the default has been through the strongest noises: not to be held against it.
    seen = [{f.condition.noise for f in rows} for rows in levels.values()]
    common = set.intersection(*seen) if seen else set()
    levels = {
        level: [f for f in rows if f.condition.noise in common]
        for level, rows in sorted(levels.items())
    }
    if len(levels) < 2 or not common:
        return None
    worst = {level: max(f.crossing for f in rows) for level, rows in levels.items()}
    least = min((noise for noise in common if noise), default=None)
    unsteady = tuple(
        level
        for level, rows in levels.items()
        if any(f.condition.noise == least and f.moved > f.resampled for f in rows)
    )
    return Advice(float(getattr(default, factor)), worst, unsteady, tuple(sorted(common)))


def recipe_table(found: Sequence[Finding], factors: Mapping[str, str]) -> list[str]:
    """Return a table with a line per level of each setting of the recipe."""
    noises = sorted({f.condition.noise for f in found if f.changed - {"noise"}})
    head = ["setting", "d(T2,T3)", "resampled"]
    head += [f"moved by noise {noise:g}" for noise in noises if noise]
    head += [f"crossing, noise {noise:g}" for noise in noises]
    rows = []
    for factor, title in factors.items():
        clean = [f for f in found if f.varies(factor)]
        for finding in sorted(clean, key=lambda f: float(getattr(f.condition, factor))):
            level = getattr(finding.condition, factor)
            alike = {
                f.condition.noise: f
                for f in found
                if f.varies(factor, noise=f.condition.noise)
                and getattr(f.condition, factor) == level
            }
            same = [alike[noise] for noise in noises if noise in alike]
            cells = [f"{finding.across:.2f}", _number(finding.resampled)]
            cells += [_number(f.moved) for f in same if f.condition.noise]
            cells += [_crossing(f) for f in same]
            rows.append([f"{title} = {level:g}", *cells])
    said = (
        "The recipe: `resampled` is the distance of two samples of T2, `moved by noise` that of "
        "T2 from itself with noise. The crossing is where a change of scale becomes larger than a "
        "change of dimension (lower is better), ± the standard deviation over trials."
    )
    return [said, "\n".join(markdown_table(head, rows))]


def data_table(found: Sequence[Finding]) -> list[str]:
    """Return a table with a line per fault of the data, by the default recipe."""
    head = ["data", "d(T2,T3)", "resampled", "T2 moved by", "crossing"]
    rows = [
        [
            finding.name,
            f"{finding.across:.2f}",
            _number(finding.resampled),
            _number(finding.moved),
            _crossing(finding),
        ]
        for finding in found
        if len(finding.changed - {"robust"}) < 2 and finding.changed <= _DATA
    ]
    said = "The data, by the default recipe (all four tori changed alike):"
    return [said, "\n".join(markdown_table(head, rows))]


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3g}"


def _crossing(finding: Finding) -> str:
    spread = f" ± {finding.spread:.3f}" if finding.spread > 0 else ""
    return f"{_short(finding.crossing)}{spread}"


def _short(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else say_crossing(value)
