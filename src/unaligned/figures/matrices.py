"""The map of the datasets."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .._check import FloatArray
from ..result import Comparison
from ..tags import Tag, one_tag
from .style import (
    COLOUR_MAP,
    COLOURS,
    entitle,
    explain_colours,
    looks,
    make_room,
    new_axes,
    room,
    style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_TREE = 0.2  # the height of the tree above a matrix, of that of the matrix


def heatmap(
    comparison: Comparison,
    *,
    ax: Axes | None = None,
    annotate: bool | None = None,
    colour_map: str = COLOUR_MAP,
    order: str = "given",
) -> Axes:
    """Return the matrix of distances as colours.

    Parameters
    ----------
    annotate
        Write the numbers into the cells; None does so for up to 12 datasets.
    colour_map
        Any colour map of matplotlib.
    order
        `"given"`, or `"tree"`: similar datasets stand together, with the tree of `linkage` above.

    Examples
    --------
    >>> import unaligned as ua
    >>> rng = np.random.default_rng(0)
    >>> clouds = {f"{d}d": rng.normal(size=(60, d)) for d in (9, 1, 5)}
    >>> axes = heatmap(ua.compare(clouds, n_eigenvalues=20), order="tree")
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['1d', '9d', '5d']
    """
    _check.one_of("order", order, ("given", "tree"))
    merged = comparison.linkage() if order == "tree" else None
    rows, columns = _places(comparison, merged)
    values = comparison.distances[np.ix_(rows, columns)]
    n, m = values.shape
    with style():
        axes = new_axes(ax, (2.4 + 0.45 * m, 1.6 + 0.45 * n + (0.6 if order == "tree" else 0)))
        image = axes.imshow(values, cmap=colour_map)
        names = [comparison.reference_names[j] for j in columns]
        axes.set_xticks(range(m), names, rotation=45, ha="right")
        axes.set_yticks(range(n), [comparison.names[i] for i in rows])
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        entitle(axes, f"{comparison.distance_name} distances")
        figure: Any = axes.get_figure(root=False)
        figure.colorbar(image, ax=axes, shrink=0.8, label=f"{comparison.distance_name} distance")
        if annotate if annotate is not None else max(n, m) <= 12:
            _annotate(axes, values)
        if merged is not None:
            _tree_above(axes, merged)
        make_room(axes, axes.xaxis, axes.yaxis)
    return axes


def dendrogram(comparison: Comparison, *, ax: Axes | None = None, method: str = "average") -> Axes:
    """Return the tree in which the nearest datasets join first; `method` as in `linkage`.

    Examples
    --------
    >>> import unaligned as ua
    >>> rng = np.random.default_rng(0)
    >>> clouds = {f"{d}d": rng.normal(size=(60, d)) for d in (9, 1, 5)}
    >>> dendrogram(ua.compare(clouds, n_eigenvalues=20)).get_title()
    'average linkage'
    """
    from scipy.cluster import hierarchy

    merged = comparison.linkage(method)
    with style():
        axes = new_axes(ax, (5.5, 1.2 + 0.32 * len(comparison.names)))
        hierarchy.dendrogram(
            merged,
            labels=list(comparison.names),
            orientation="left",
            ax=axes,
            color_threshold=0.0,
            above_threshold_color=COLOURS[0],
        )
        axes.set_xlim(right=-0.01 * axes.get_xlim()[0])  # or joins at 0 are cut in half
        height = room(axes)[1] / len(comparison.names)
        axes.tick_params(axis="y", labelsize=min(9.0, max(4.0, 0.9 * height)))
        axes.spines[["left", "right", "top"]].set_visible(False)
        axes.set_xlabel(f"{comparison.distance_name} distance")
        entitle(axes, f"{method} linkage")
        make_room(axes, axes.yaxis)
    return axes


def _places(comparison: Comparison, merged: FloatArray | None) -> tuple[list[int], list[int]]:
    """Return rows and columns in the order in which they are drawn."""
    from scipy.cluster import hierarchy

    if merged is None:
        return list(range(len(comparison.names))), list(range(len(comparison.reference_names)))
    leaves = [int(leaf) for leaf in hierarchy.leaves_list(merged)]
    return leaves, leaves


def _tree_above(axes: Axes, merged: FloatArray) -> None:
    """Draw the tree on top of the matrix, within the axes."""
    from scipy.cluster import hierarchy

    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom, top - _TREE * (bottom - top))  # inside the axes: above may be others
    share = _TREE / (1 + _TREE)
    above = axes.inset_axes((0.0, 1.01 - share, 1.0, share - 0.01))
    colours = {"color_threshold": 0.0, "above_threshold_color": "#555555"}
    hierarchy.dendrogram(merged, ax=above, no_labels=True, **colours)
    above.set_axis_off()


def _annotate(axes: Axes, values: FloatArray) -> None:
    """Write each value into its cell, dark on light cells and light on dark ones."""
    middle = (values.min() + values.max()) / 2
    # Three digits of the largest; what is far below it is 0 here.
    decimals = max(0, 2 - math.floor(math.log10(max(values.max(), 1e-300))))
    for (i, j), value in np.ndenumerate(values):
        colour = "black" if value > middle else "white"
        told = f"{value:.{decimals}f}" if decimals < 5 else f"{value:.1e}"
        axes.text(j, i, told, ha="center", va="center", color=colour, fontsize=8)


def embedding(
    comparison: Comparison,
    *,
    ax: Axes | None = None,
    method: str = "mds",
    tag: Any = None,
) -> Axes:
    """Return a map of the datasets in which near means similar.

    Names stand where there is room for them; long ones are shortened where that makes it.

    Parameters
    ----------
    method
        `mds`, `metric-mds` or `diffusion`; see `unaligned.embedding.embed`.
    tag
        What to colour by: a dict of dataset -> value, words for groups or numbers such as a
        time; or the name of an entry of the datasets' own metadata.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> rng = np.random.default_rng(0)
    >>> clouds = {f"{d}d": rng.normal(size=(60, d)) for d in (1, 2, 3)}
    >>> days = {"1d": 0, "2d": 2, "3d": 4}
    >>> embedding(ua.compare(clouds, n_eigenvalues=20), tag=days).get_title()
    'map of les distances (mds)'
    """
    from .labels import Names

    places = comparison.embed(method, 2)
    shown = one_tag(tag, comparison.names, comparison.metadata)
    with style():
        axes = new_axes(ax, (5.5, 4.5))
        labelled: set[str] = set()
        for i, (colour, marker) in enumerate(looks(shown, len(places))):
            group = _group(shown, i)
            label = None if group in labelled else group
            labelled.add(group)
            axes.plot(*places[i], linestyle="", color=colour, marker=marker, label=label)
        axes.set_aspect("equal", adjustable="datalim")
        axes.margins(0.15)
        axes.set(xlabel="first coordinate", ylabel="second coordinate")
        entitle(axes, f"map of {comparison.distance_name} distances ({method})")
        if shown is not None:
            explain_colours(axes, shown)
        Names(axes, comparison.names, places)
    return axes


def _group(tag: Tag | None, i: int) -> str:
    """Return what the legend calls dataset i; a name with an underscore is not in it."""
    value = None if tag is None else tag.values[i]
    return value if isinstance(value, str) else "_"
