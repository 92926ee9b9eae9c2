"""The common style of all figures: colours, markers, fonts, and how a figure is saved."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .. import _check
from ..io.archive import whole_file
from ..tags import Tag

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# Okabe and Ito's colours for any colour vision, without yellow, which is hard to see on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vP*X"
COLOUR_MAP = "viridis"
_MISSING = ("#999999", "o")  # where a tag has no value
_STYLE: dict[Any, Any] = {
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11.0,
    "lines.linewidth": 1.6,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text: it can be searched and edited
    "svg.hashsalt": "unaligned",  # the same figure gives the same file
}


@contextmanager
def style() -> Iterator[None]:
    """Apply the style inside the `with` block only."""
    import matplotlib as mpl

    with mpl.rc_context(_STYLE):
        yield


def new_axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the given axes, or those of a new figure of this size in inches."""
    from matplotlib.figure import Figure

    return ax or Figure(figsize=size, layout="constrained").add_subplot()


def _n_letters(axes: Axes, fontsize: float) -> int:
    """Return the number of letters of this size in points that fit into the width of axes."""
    figure: Any = axes.get_figure(root=True)
    return int(72 * axes.bbox.width / figure.dpi / (0.55 * fontsize))


def fit_to_slot(axes: Axes, *named: Axis) -> None:
    """Shrink axes until their labels fit into the subplot's slot, beside other subplots.

    Tick labels along `named` wider than half of the axes are shortened. A figure with a layout
    engine does all of this by itself.
    """
    figure: Any = axes.get_figure(root=False)
    if axes.get_figure(root=True).get_layout_engine() is not None:  # type: ignore[union-attr]
        return
    for axis in named:
        labels = axis.get_ticklabels()
        letters = _n_letters(axes, 2.0 * float(labels[0].get_fontsize()))
        names = [shortened(label.get_text(), max(letters, 4)) for label in labels]
        axis.set_ticks(axis.get_ticklocs(), names)
    slot, drawn = axes.get_position(original=True), axes.get_tightbbox()
    if drawn is None:
        return
    drawn = drawn.transformed(figure.transSubfigure.inverted())
    usual = 0.5 * figure.dpi  # half an inch to the left and below is free for tick labels
    left = slot.x0 - drawn.x0 - usual / figure.bbox.width
    below = slot.y0 - drawn.y0 - usual / figure.bbox.height
    left, right = (min(max(x, 0.0), 0.5 * slot.width) for x in (left, drawn.x1 - slot.x1))
    below = min(max(below, 0.0), 0.5 * slot.height)
    size = (max(slot.width - left - right, 0.2 * slot.width), slot.height - below)
    axes.set_position((slot.x0 + left, slot.y0 + below, *size))
    axes.set_in_layout(True)  # `set_position` excludes them from `tight_layout`


def shortened(text: str, most: int) -> str:
    """Return text of at most this many characters, with both ends kept: `sampl…er 27`."""
    end = (most - 1) // 2
    return text if len(text) <= most else f"{text[: most - 1 - end]}…{text[len(text) - end :]}"


def set_title(axes: Axes, title: str) -> None:
    """Write a title in lines no wider than the axes."""
    axes.set_title(textwrap.fill(title, max(_n_letters(axes, _STYLE["axes.titlesize"]), 10)))


def add_legend(axes: Axes, tag: Tag) -> None:
    """Add a legend of the groups of a tag, or a colour bar of its numbers."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    if not tag.is_numeric:
        axes.legend(title=tag.name)
        return
    scale = ScalarMappable(Normalize(*tag.limits), cmap=COLOUR_MAP)
    figure: Any = axes.get_figure(root=False)
    figure.colorbar(scale, ax=axes, shrink=0.8, label=tag.name)


def looks(tag: Tag | None, n: int) -> list[tuple[Any, str]]:
    """Return the colour and the marker of each of n datasets, by a tag if there is one."""
    import matplotlib as mpl

    if tag is None:
        return [(COLOURS[0], MARKERS[0])] * n
    if not tag.is_numeric:
        every = {
            group: (COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)])
            for i, group in enumerate(tag.groups)
        }
        return [_MISSING if v is None else every[str(v)] for v in tag.values]
    low, high = tag.limits
    shades = mpl.colormaps[COLOUR_MAP]
    return [
        _MISSING if v is None else (shades((float(v) - low) / (high - low or 1.0)), MARKERS[0])
        for v in tag.values
    ]


def panels(
    n: int,
    *,
    columns: int = 3,
    width: float = 4.0,
    height: float = 3.4,
    projection: str | None = None,
) -> tuple[Figure, list[Any]]:
    """Return a free-standing figure with `n` panels in at most `columns` columns."""
    from matplotlib.figure import Figure

    columns = min(n, columns)
    rows = -(-n // columns)
    with style():
        figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
        kind = {"projection": projection}
        grid = list(figure.subplots(rows, columns, squeeze=False, subplot_kw=kind).ravel())
    for unused in grid[n:]:
        unused.set_axis_off()
    return figure, grid[:n]


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure in the format of the path's suffix; the same figure gives the same file."""
    known = [f".{kind}" for kind in figure.canvas.get_supported_filetypes()]
    kind = _check.suffix_of("path", path, [*known, ""])[1:] or "png"
    metadata = {"Date": None} if kind == "svg" else None
    with style(), whole_file(path) as stream:
        figure.savefig(stream, format=kind, dpi=150, metadata=metadata)
