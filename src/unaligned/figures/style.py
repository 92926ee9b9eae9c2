"""The common style of all figures: colours, markers, fonts, and how a figure is saved."""

from __future__ import annotations

import io
import os
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import _check
from ..errors import InputError, required
from ..io.archive import whole_file
from ..tags import Tag

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# Okabe and Ito's colours for any colour vision, without yellow, which is hard to see on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vP*X"
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


def _matplotlib() -> Any:
    return required("matplotlib", "plot", "A figure")


@contextmanager
def style() -> Iterator[None]:
    """Apply the style inside the `with` block only; settings that the user changed stay."""
    mpl = _matplotlib()

    with mpl.rc_context({name: value for name, value in _STYLE.items() if _is_default(name)}):
        yield


def _is_default(name: Any) -> bool:
    mpl = _matplotlib()

    return bool(mpl.rcParams[name] == mpl.rcParamsDefault[name])


def new_axes(
    ax: Axes | None, size: tuple[float, float], figsize: tuple[float, float] | None = None
) -> Axes:
    """Return the given axes, or those of a new figure, which notebooks display.

    Its size in inches is `figsize`, else `figure.figsize` if the user changed it, else `size`.
    """
    mpl = _matplotlib()
    from matplotlib.figure import Figure

    if ax is not None:
        if figsize is not None:
            raise InputError("figsize is the size of a new figure, and ax was given. Give one.")
        return ax
    if figsize is None and not _is_default("figure.figsize"):
        figsize = mpl.rcParams["figure.figsize"]
    size = size if figsize is None else _checked_size(figsize)
    axes: Any = Figure(figsize=size, layout="constrained").add_subplot()
    # A free-standing figure is no output of its own in a notebook, and axes are shown as text.
    axes._repr_png_ = partial(png_of, axes.figure)
    return axes  # type: ignore[no-any-return]


def _checked_size(figsize: Any) -> tuple[float, float]:
    try:
        width, height = (float(side) for side in figsize)
    except (TypeError, ValueError):
        width = height = 0.0
    if not (0 < width < 1000 and 0 < height < 1000):
        raise InputError(f"figsize={figsize!r} must be (width, height) in inches.")
    return width, height


def png_of(figure: Figure) -> bytes:
    """Return a figure as PNG."""
    stream = io.BytesIO()
    with style():
        figure.savefig(stream, format="png", dpi=100)
    return stream.getvalue()


def colour_map(cmap: Any) -> Any:
    """Return a colour map of matplotlib by name, or as it is; None is the user's default."""
    mpl = _matplotlib()

    if cmap is None:
        return mpl.colormaps[mpl.rcParams["image.cmap"]]
    if not isinstance(cmap, str):
        return cmap
    if cmap not in mpl.colormaps:
        near = _check.did_you_mean(cmap, mpl.colormaps)
        raise InputError(f"cmap={cmap!r} is no colour map of matplotlib.{near}")
    return mpl.colormaps[cmap]


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


def set_title(axes: Axes, title: str | None, default: str = "") -> None:
    """Write a title, by default `default`, in lines no wider than the axes."""
    title = default if title is None else str(title)
    axes.set_title(textwrap.fill(title, max(_n_letters(axes, _STYLE["axes.titlesize"]), 10)))


def add_legend(axes: Axes, tag: Tag, cmap: Any = None) -> None:
    """Add a legend of the groups of a tag, or a colour bar of its numbers."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    if not tag.is_numeric:
        axes.legend(title=tag.name)
        return
    scale = ScalarMappable(Normalize(*tag.limits), cmap=colour_map(cmap))
    figure: Any = axes.get_figure(root=False)
    figure.colorbar(scale, ax=axes, shrink=0.8, label=tag.name)


def looks(tag: Tag | None, n: int, cmap: Any = None) -> list[tuple[Any, str]]:
    """Return the colour and the marker of each of n datasets, by a tag if there is one.

    Groups have the colours of a given colour map at equal distances.
    """
    shades = colour_map(cmap)
    if tag is None:
        return [(COLOURS[0], MARKERS[0])] * n
    if not tag.is_numeric:
        last = max(len(tag.groups) - 1, 1)
        every: dict[str, tuple[Any, str]] = {
            group: (
                COLOURS[i % len(COLOURS)] if cmap is None else shades(i / last),
                MARKERS[i % len(MARKERS)],
            )
            for i, group in enumerate(tag.groups)
        }
        return [_MISSING if v is None else every[str(v)] for v in tag.values]
    low, high = tag.limits
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
    """Return a free-standing figure with panels.

    Parameters
    ----------
    n
        The number of panels.
    columns
        The largest number in a row.
    width, height
        Of a panel in inches.
    projection
        That of the axes, such as `"3d"`; None is a plane.

    Returns
    -------
    figure : matplotlib.figure.Figure
        In the style of this package.
    axes : list
        Of length n.

    Examples
    --------
    >>> from unaligned import figures
    >>> figure, axes = figures.panels(4, columns=2)
    >>> len(axes), [float(side) for side in figure.get_size_inches()]
    (4, [8.0, 6.8])
    """
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
    """Write a figure to a file; the same figure gives the same file.

    Parameters
    ----------
    figure
        Of matplotlib.
    path
        Its suffix is the format, such as `.png`, `.svg` or `.pdf`; without one it is PNG. An
        existing file is replaced.
    """
    known = [f".{kind}" for kind in figure.canvas.get_supported_filetypes()]
    kind = _check.suffix_of("path", path, [*known, ""])[1:] or "png"
    metadata = {"Date": None} if kind == "svg" else None
    with style(), whole_file(path) as stream:
        figure.savefig(stream, format=kind, dpi=150, metadata=metadata)
