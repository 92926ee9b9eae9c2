"""Figures of results in matplotlib; every function returns the Axes that it drew on.

Global state is not changed: without `ax` a free-standing Figure is made, which needs no display
and leaves pyplot and its settings alone.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING, Any

from .. import _check
from ..result import Comparison
from .changes import explanation, scales
from .drift import drift_history
from .lines import banded_line, diagnosis, margins, null_distribution, pair, spectra
from .matrices import dendrogram, embedding, heatmap
from .style import COLOURS, MARKERS, panels, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS: dict[str, Callable[..., Axes]] = {
    "heatmap": heatmap,
    "embedding": embedding,
    "spectra": spectra,
    "pair": pair,
    "dendrogram": dendrogram,
    "margins": margins,
}
# Other names of options, accepted.
_SYNONYMS = {"tag": "color", "colour": "color", "c": "color"}
_SYNONYMS |= {"colour_map": "cmap", "color_map": "cmap", "colormap": "cmap"}

__all__ = ["COLOURS", "KINDS", "MARKERS", "banded_line", "dendrogram", "diagnosis", "draw"]
__all__ += ["drift_history", "embedding", "explanation", "heatmap", "margins"]
__all__ += ["null_distribution", "pair", "panels", "save", "scales", "spectra"]


def draw(comparison: Comparison, kind: str = "heatmap", **options: Any) -> Axes:
    """Return a figure of a comparison.

    `Comparison.plot` is this function.

    Parameters
    ----------
    comparison
        The result of `compare`.
    kind
        `"heatmap"`, `"embedding"`, `"spectra"`, `"pair"`, `"dendrogram"` or `"margins"`.
    **options
        `ax`, `figsize`, `title`, and the options of the function of that name, such as `color`
        and `cmap`.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on; without `ax` notebooks display them.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> from unaligned import figures
    >>> rng = np.random.default_rng(0)
    >>> clouds = {"line": rng.normal(size=(60, 1)), "ball": rng.normal(size=(60, 3))}
    >>> figures.draw(ua.compare(clouds, n_eigenvalues=20), "heatmap").get_title()
    'les distances'
    """
    function = KINDS[_check.one_of("kind", kind, KINDS)]
    options = {_SYNONYMS.get(name, name): value for name, value in options.items()}
    known = [name for name in signature(function).parameters if name != "comparison"]
    _check.known_options(f"plot {kind!r}", options, known)
    return function(comparison, **options)
