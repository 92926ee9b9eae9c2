"""Explanations: the changes with their noise, or the spectra and where they part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import _check
from ..errors import counted
from ..explanation import Explanation, ScaleExplanation
from .lines import banded_line
from .style import COLOURS, new_axes, set_title, shortened, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def explanation(found: Explanation, *, ax: Axes | None = None, n_shown: int = 20) -> Axes:
    """Return the largest changes as bars, the largest on top; grey ones do not exceed the noise.

    The line at the end of a bar is twice the noise to both sides.

    Parameters
    ----------
    found
        The result of `explain` with `by="features"` or `by="rows"`.
    ax
        The axes to draw on; None makes a new figure.
    n_shown
        The largest number of bars.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.
    """
    n = min(_check.positive_int("n_shown", n_shown), len(found.labels))
    change, noise = found.change[:n], found.noise[:n]
    colours = [
        COLOURS[0 if value < 0 else 1] if marked else "#b0b0b0"
        for value, marked in zip(change, found.exceeds_noise, strict=False)
    ]
    places = np.arange(n)
    with style():
        axes = new_axes(ax, (6.0, 1.2 + 0.26 * n))
        look = {"ecolor": "#333333", "error_kw": {"elinewidth": 1.0}}
        axes.barh(places, change, xerr=2 * noise, color=colours, height=0.7, **look)  # type: ignore[arg-type]
        axes.set_yticks(places, [shortened(label, 28) for label in found.labels[:n]])
        axes.invert_yaxis()
        axes.axvline(0.0, color="#555555", linewidth=0.8)
        axes.set_xlabel(f"change of les {found.distance:.3g} when left out (± 2 noise)")
        what = "" if n == len(found.labels) else f", {n} of {len(found.labels)}"
        set_title(axes, f"{found.names[0]} and {found.names[1]}: {found.by}{what}")
    return axes


def scales(found: ScaleExplanation, *, ax: Axes | None = None) -> Axes:
    """Return the mean spectra of both datasets with 95 % bands, and where they part.

    The legend has the number of separated groups and the dimension of each.

    Parameters
    ----------
    found
        The result of `explain` with `by="scale"`.
    ax
        The axes to draw on; None makes a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.
    """
    index = np.arange(1, found.spectra.shape[1] + 1)
    components, dimension = found["components"], found["dimension"]
    with style():
        axes = new_axes(ax, (6.4, 4.0))
        for side, name in enumerate(found.names):
            mean, error = found.spectra[side], found.errors[side]
            n, half = round(components.values[side]), dimension.high[side] - dimension.values[side]
            words = f"{counted(n, 'group')}, dimension {dimension.values[side]:.2g} ± {half:.1g}"
            ends = np.exp(mean - error), np.exp(np.minimum(mean + error, mean.max()))
            label = f"{shortened(name, 28)}: {words}"
            banded_line(axes, index, np.exp(mean), *ends, color=COLOURS[side], label=label)
        if found.parting is not None:
            label = f"they part at {found.parting}"
            axes.axvline(found.parting, color="#555555", linestyle="--", lw=1.0, label=label)
        axes.set(yscale="log", xlabel="index i", ylabel="eigenvalue λᵢ + γ")
        axes.legend()
        set_title(axes, f"{found.names[0]} and {found.names[1]}: scale")
    return axes
