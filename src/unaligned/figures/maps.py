"""The map of the datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..result import Comparison
from ..tags import Tag, one_tag
from .style import entitle, explain_colours, looks, new_axes, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    from ._names import Names

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
