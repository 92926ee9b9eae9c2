"""The history of a drift monitor: p-values over time with their thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from .style import COLOURS, MARKERS, new_axes, set_title, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..inference.verdict import DriftCheck


def drift_history(history: Sequence[DriftCheck], *, ax: Axes | None = None) -> Axes:
    """Return the p-value of every instrument over the batches, with the threshold; low is up.

    Batches that have drifted are shaded. P-values below 1e-6 are drawn there, so that one does
    not flatten all others.

    Parameters
    ----------
    history
        The checks in order, such as `DriftMonitor.history`.
    ax
        The axes to draw on; None makes a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.
    """
    if not history:
        raise InputError("The history is empty. Check a batch first.")
    positions, lowest = np.arange(1, len(history) + 1), 1e-6
    names = list(dict.fromkeys(r.name for check in history for r in check.readings))
    with style():
        axes = new_axes(ax, (7.0, 3.8))
        for position, check in zip(positions, history, strict=True):
            if check.is_drift:
                axes.axvspan(position - 0.5, position + 0.5, color=COLOURS[1], alpha=0.12, lw=0)
        for i, name in enumerate(names):
            found = [{r.name: r.p_value for r in check.readings} for check in history]
            values = [max(p[name], lowest) if name in p else np.nan for p in found]
            axes.plot(positions, values, MARKERS[i] + "-", color=COLOURS[i], label=name, ms=5)
        _draw_thresholds(axes, positions, history)
        axes.set(yscale="log", ylim=(2.0, lowest / 2), ylabel="p-value (drift is up)")
        labels = ["1", *(f"$10^{{-{i}}}$" for i in range(1, 6)), r"$\leq 10^{-6}$"]
        axes.set_yticks([1.0, *(10.0**-i for i in range(1, 6)), lowest], labels)
        axes.set(xlim=(0.5, len(history) + 0.5))
        _name_batches(axes, positions, history)
        n_drifted = sum(check.is_drift for check in history)
        title = f"{n_drifted} of {len(history)} batches have drifted from {history[-1].reference}"
        set_title(axes, title)
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return axes


def _draw_thresholds(axes: Axes, positions: Any, history: Sequence[DriftCheck]) -> None:
    levels = [check.readings[0].threshold for check in history]
    edges = np.append(positions - 0.5, positions[-1] + 0.5)
    axes.stairs(levels, edges, baseline=None, color="#555555", linestyle="--", label="threshold")


def _name_batches(axes: Axes, positions: Any, history: Sequence[DriftCheck]) -> None:
    if len(history) > 20:  # names that fit under the axis
        axes.set_xlabel("batch")
        return
    names = [check.name for check in history]
    angle = 0 if max(map(len, names)) * len(names) <= 60 else 45
    axes.set_xticks(positions, names, rotation=angle, ha="right" if angle else "center")
