"""The figure of the sensitivity experiment: what a setting changes, and what a fault costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .. import figures
from .._check import FloatArray
from .advice import Finding
from .conditions import Condition

if TYPE_CHECKING:
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
