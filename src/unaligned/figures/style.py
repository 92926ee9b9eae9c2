"""One look for all figures: colours, markers, fonts, and how a figure is saved."""

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

# Okabe and Ito's colours, told apart with any colour vision; yellow left out because
# it does not stand out from white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vP*X"
UNKNOWN = ("#999999", "o")  # where a tag has no value
COLOUR_MAP = "viridis"
_MOST = 0.5  # of the room of axes that names may take on a side
_STYLE: dict[Any, Any] = {
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11.0,
    "lines.linewidth": 1.6,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text: it can be searched and edited
    "svg.hashsalt": "unaligned",  # the same picture is the same file
}


@contextmanager
def style() -> Iterator[None]:
    """Apply the house style to what is drawn inside, and to nothing else."""
    import matplotlib as mpl

    with mpl.rc_context(_STYLE):
        yield


def new_axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the axes that were given, or those of a new figure of this size in inches."""
    from matplotlib.figure import Figure

    return ax or Figure(figsize=size, layout="constrained").add_subplot()


def room(axes: Axes) -> tuple[float, float]:
    """Return the width and the height of axes in points, as they are now."""
    figure: Any = axes.get_figure(root=True)
    box = axes.get_window_extent()
    return 72 * box.width / figure.dpi, 72 * box.height / figure.dpi


def make_room(axes: Axes, *named: Axis) -> None:
    """Shrink axes until their names stand in the place they had: beside them may be others.

    Names along these axes that would take more than half of it are shortened. In a figure with
    a layout nothing is done, since this is what the layout does.
    """
    figure: Any = axes.get_figure(root=False)
    if axes.get_figure(root=True).get_layout_engine() is not None:  # type: ignore[union-attr]
        return
    for axis in named:
        labels = axis.get_ticklabels()
        letters = int(_MOST * room(axes)[0] / (0.55 * float(labels[0].get_fontsize())))
        names = [shortened(label.get_text(), max(letters, 4)) for label in labels]
        axis.set_ticks(axis.get_ticklocs(), names)
    slot, drawn = axes.get_position(original=True), axes.get_tightbbox()
    if drawn is None:
        return
    drawn = drawn.transformed(figure.transSubfigure.inverted())
    usual = 0.5 * figure.dpi  # what every subplot has for its numbers, to the left and below
    left = slot.x0 - drawn.x0 - usual / figure.bbox.width
    below = slot.y0 - drawn.y0 - usual / figure.bbox.height
    left, right = (min(max(x, 0.0), _MOST * slot.width) for x in (left, drawn.x1 - slot.x1))
    below = min(max(below, 0.0), _MOST * slot.height)
    size = (max(slot.width - left - right, 0.2 * slot.width), slot.height - below)
    axes.set_position((slot.x0 + left, slot.y0 + below, *size))
    axes.set_in_layout(True)  # or `tight_layout` would not see them any more


def shortened(text: str, most: int) -> str:
    """Return text of no more than this many signs, both ends kept: names often differ at one.

    Examples
    --------
    >>> shortened("liver", 5), shortened("sample of liver 27", 11)
    ('liver', 'sampl…er 27')
    """
    end = (most - 1) // 2
    return text if len(text) <= most else f"{text[: most - 1 - end]}…{text[len(text) - end :]}"


def entitle(axes: Axes, words: str) -> None:
    """Write a title above axes, in lines no wider than these: beside them may be others."""
    letters = int(room(axes)[0] / (0.55 * _STYLE["axes.titlesize"]))
    axes.set_title(textwrap.fill(words, max(letters, 10)))


def explain_colours(axes: Axes, tag: Tag) -> None:
    """Add a legend of the groups of a tag, or a bar where it is a number."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    if not tag.is_numeric:
        axes.legend(title=tag.name)
        return
    scale = ScalarMappable(Normalize(*tag.limits), cmap=COLOUR_MAP)
    figure = axes.get_figure(root=False)
    figure.colorbar(scale, ax=axes, shrink=0.8, label=tag.name)  # type: ignore[union-attr]


def looks(tag: Tag | None, n: int) -> list[tuple[Any, str]]:
    """Return the colour and the marker of each of n datasets, by a tag if there is one."""
    import matplotlib as mpl

    if tag is None:
        return [(COLOURS[0], MARKERS[0])] * n
    if not tag.is_numeric:
        at = {group: i for i, group in enumerate(tag.groups)}
        every = [(COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]) for i in at.values()]
        return [UNKNOWN if v is None else every[at[str(v)]] for v in tag.values]
    low, high = tag.limits
    shades = mpl.colormaps[COLOUR_MAP]
    share = [None if v is None else (float(v) - low) / (high - low or 1.0) for v in tag.values]
    return [UNKNOWN if s is None else (shades(s), MARKERS[0]) for s in share]


def panels(
    n: int, *, columns: int = 3, width: float = 4.0, height: float = 3.4
) -> tuple[Figure, list[Axes]]:
    """Return a free-standing figure with `n` panels, at most `columns` beside each other."""
    from matplotlib.figure import Figure

    columns = min(n, columns)
    rows = -(-n // columns)
    with style():
        figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False)
    everything: list[Axes] = list(grid.ravel())
    for unused in everything[n:]:
        unused.set_axis_off()
    return figure, everything[:n]


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure in the format of the path's suffix; the same picture gives the same file."""
    known = [f".{kind}" for kind in figure.canvas.get_supported_filetypes()]
    kind = _check.suffix_of("path", path, [*known, ""])[1:] or "png"
    metadata = {"Date": None} if kind == "svg" else None
    with style(), whole_file(path) as stream:
        figure.savefig(stream, format=kind, dpi=150, metadata=metadata)
