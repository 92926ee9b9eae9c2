"""The distances of a comparison: heatmap, tree and map."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .. import _check
from .._check import FloatArray
from ..result import Comparison
from ..tags import one_tag
from .style import COLOURS, add_legend, colour_map, fit_to_slot, looks, new_axes, set_title, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def heatmap(
    comparison: Comparison,
    *,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    title: str | None = None,
    cmap: Any = None,
    annotate: bool | None = None,
    order: str = "given",
) -> Axes:
    """Return the matrix of distances as colours.

    With `compare(inference=True)` a cross marks pairs that are not told apart: their p-value is
    above 0.05 after Holm's adjustment.

    Parameters
    ----------
    comparison
        The result of `compare`.
    ax
        The axes to draw on; None makes a new figure.
    figsize
        Width and height of a new figure in inches.
    title
        The title; None gives the default, and an empty text none.
    cmap
        Any colour map of matplotlib.
    annotate
        Write the numbers into the cells; None does so for up to 12 datasets.
    order
        `"given"`, or `"tree"`: in the order of the leaves of `linkage`, with the tree above.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.
    """
    from scipy.cluster import hierarchy

    _check.one_of("order", order, ("given", "tree"))
    n, m = comparison.distances.shape
    rows, columns, merged = np.arange(n), np.arange(m), None
    if order == "tree":
        merged = comparison.linkage()
        rows = columns = hierarchy.leaves_list(merged)
    values = comparison.distances[np.ix_(rows, columns)]
    with style():
        size = (2.4 + 0.45 * m, 1.6 + 0.45 * n + (0.6 if order == "tree" else 0))
        axes = new_axes(ax, size, figsize)
        image = axes.imshow(values, cmap=colour_map(cmap))
        names = [comparison.reference_names[j] for j in columns]
        axes.set_xticks(range(m), names, rotation=45, ha="right")
        axes.set_yticks(range(n), [comparison.names[i] for i in rows])
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        set_title(axes, title, f"{comparison.distance_label} distances")
        figure: Any = axes.get_figure(root=False)
        figure.colorbar(image, ax=axes, shrink=0.8, label=f"{comparison.distance_label} distance")
        if annotate if annotate is not None else max(n, m) <= 12:
            _annotate(axes, values)
        if comparison.inference is not None:
            same = ~comparison.inference.is_significant[np.ix_(rows, columns)]
            same &= ~(comparison.is_square & np.equal.outer(rows, columns))
            _mark(axes, same)
        if merged is not None:
            _draw_tree_above(axes, merged)
        fit_to_slot(axes, axes.xaxis, axes.yaxis)
    return axes


def _annotate(axes: Axes, values: FloatArray) -> None:
    """Write each value into its cell, dark on light cells and light on dark ones."""
    middle = (values.min() + values.max()) / 2
    # Three digits of the largest value.
    decimals = max(0, 2 - math.floor(math.log10(max(values.max(), 1e-300))))
    for (i, j), value in np.ndenumerate(values):
        colour = "black" if value > middle else "white"
        text = f"{value:.{decimals}f}" if decimals < 5 else f"{value:.1e}"
        axes.text(j, i, text, ha="center", va="center", color=colour, fontsize=8)


def _mark(axes: Axes, same: npt.NDArray[np.bool_]) -> None:
    """Mark the cells of pairs that are not significantly different, in their upper corner."""
    i, j = np.nonzero(same)
    if i.size:
        axes.scatter(j + 0.36, i - 0.36, s=18, marker="x", color=COLOURS[1], linewidths=1.2)
        axes.set_xlabel("× not significant at 0.05 (Holm)", fontsize=8)


def _draw_tree_above(axes: Axes, merged: FloatArray) -> None:
    """Draw the tree above the matrix, inside the axes."""
    from scipy.cluster import hierarchy

    height = 0.2  # of that of the matrix
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom, top - height * (bottom - top))
    share = height / (1 + height)
    above = axes.inset_axes((0.0, 1.01 - share, 1.0, share - 0.01))
    colours = {"color_threshold": 0.0, "above_threshold_color": "#555555"}
    hierarchy.dendrogram(merged, ax=above, no_labels=True, **colours)
    above.set_axis_off()


def dendrogram(
    comparison: Comparison,
    *,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    title: str | None = None,
    method: str = "average",
) -> Axes:
    """Return the tree of hierarchical clustering.

    Parameters
    ----------
    comparison
        The result of `compare`.
    ax
        The axes to draw on; None makes a new figure.
    figsize
        Width and height of a new figure in inches.
    title
        The title; None gives the default, and an empty text none.
    method
        As of `Comparison.linkage`.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.
    """
    from scipy.cluster import hierarchy

    names = list(comparison.names)
    with style():
        axes = new_axes(ax, (5.5, 1.2 + 0.32 * len(names)), figsize)
        colours = {"color_threshold": 0.0, "above_threshold_color": COLOURS[0]}
        tree = comparison.linkage(method)
        hierarchy.dendrogram(tree, labels=names, orientation="left", ax=axes, **colours)
        axes.set_xlim(right=-0.01 * axes.get_xlim()[0])  # or lines at 0 are clipped
        figure: Any = axes.get_figure(root=True)
        height = 72 * axes.bbox.height / figure.dpi / len(names)  # of a leaf, in points
        axes.tick_params(axis="y", labelsize=min(9.0, max(4.0, 0.9 * height)))
        axes.spines[["left", "right", "top"]].set_visible(False)
        axes.set_xlabel(f"{comparison.distance_label} distance")
        set_title(axes, title, f"{method} linkage")
        fit_to_slot(axes, axes.yaxis)
    return axes


def embedding(
    comparison: Comparison,
    *,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    title: str | None = None,
    color: Any = None,
    cmap: Any = None,
    method: str = "mds",
) -> Axes:
    """Return a map of the datasets, on which similar ones are near each other.

    Names are shown where there is room, shortened if needed.

    Parameters
    ----------
    comparison
        The result of `compare`.
    ax
        The axes to draw on; None makes a new figure.
    figsize
        Width and height of a new figure in inches.
    title
        The title; None gives the default, and an empty text none.
    color
        What to colour by: one value per dataset, text for groups or numbers such as a time, as
        a list or a dict by dataset; or the name of an entry of the datasets' own metadata.
    cmap
        Any colour map of matplotlib.
    method
        `"mds"`, `"metric-mds"` or `"diffusion"`, as of `Comparison.embed`.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> from unaligned import figures
    >>> rng = np.random.default_rng(0)
    >>> clouds = {f"{d}d": rng.normal(size=(60, d)) for d in (1, 2, 3)}
    >>> found = ua.compare(clouds, n_eigenvalues=20)
    >>> figures.embedding(found, color=[0, 2, 4]).get_title()
    'map of les distances (mds)'
    """
    from .labels import PointLabels

    places = comparison.embed(method, 2)
    shown = one_tag(color, comparison.names, comparison.metadata)
    values = [None] * len(places) if shown is None else shown.values
    with style():
        axes = new_axes(ax, (5.5, 4.5), figsize)
        labelled: set[Any] = set()
        points = zip(places, values, looks(shown, len(places), cmap), strict=True)
        for place, value, (colour, marker) in points:
            # One entry of the legend per group.
            label = value if isinstance(value, str) and value not in labelled else None
            labelled.add(value)
            axes.plot(*place, linestyle="", color=colour, marker=marker, label=label)
        axes.set_aspect("equal", adjustable="datalim")
        axes.margins(0.15)
        axes.set(xlabel="first coordinate", ylabel="second coordinate")
        set_title(axes, title, f"map of {comparison.distance_label} distances ({method})")
        if shown is not None:
            add_legend(axes, shown, cmap)
        PointLabels(axes, comparison.names, places)
    return axes
