"""Names beside the points of a map, where there is room for them.

Imported where a map is drawn, since it needs matplotlib.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.transforms import Bbox, BboxBase

from .._check import FloatArray
from .style import shortened

_DOT = 4.0  # points from the middle of a marker that no name covers
_GAP = 6.0  # points from there to its own name
_SHORT = 18  # signs of a name for which there is no room as it is
# Where a name may stand around its point, the best first: right, left, above, below, corners.
_SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))
_ACROSS = {1: "left", 0: "center", -1: "right"}
_UP = {1: "bottom", 0: "center", -1: "top"}


class Names(Artist):
    """The names of points: none over another, over a point or beyond the axes.

    They are placed whenever the figure is drawn, since only then its sizes are known. One for
    which there is no room is shortened, or else not seen.
    """

    def __init__(self, axes: Axes, names: Sequence[str], places: FloatArray) -> None:
        super().__init__()
        self.places, self.groups = places, list(_together(places))
        self.names = [", ".join(names[i] for i in here) for here in self.groups]
        self.labels = [
            axes.annotate(name, places[here[0]], (_GAP, 0), textcoords="offset points", fontsize=8)
            for name, here in zip(self.names, self.groups, strict=True)
        ]
        for artist in (self, *self.labels):
            artist.set_in_layout(False)  # they go by the layout, not it by them
        self.set_zorder(self.labels[0].get_zorder() - 0.1)  # before them, so that they are placed
        axes.add_artist(self)

    def draw(self, renderer: RendererBase) -> None:
        """Place the names, which are drawn after this."""
        axes: Any = self.axes
        points: Any = renderer.points_to_pixels(1.0)
        spots = axes.transData.transform(self.places)
        dots = [_around(x, y, _DOT * points) for x, y in spots]
        written: list[Bbox] = []
        for name, label, here in zip(self.names, self.labels, self.groups, strict=True):
            taken = [*written, *(dot for i, dot in enumerate(dots) if i not in here)]
            x, y = spots[here[0]]
            own = _around(x, y, _GAP * points)
            label.set_visible(True)  # what is not has no size
            for words in (name, shortened(name, _SHORT)):
                label.set_text(words)
                size = label.get_window_extent(renderer)
                side = _free(size, own, axes.bbox, taken)
                if side is not None:
                    label.set(position=(_GAP * side[0], _GAP * side[1]))
                    label.set(ha=_ACROSS[side[0]], va=_UP[side[1]])
                    written.append(_beside(own, size, side))
                    break
            label.set_visible(side is not None)


def _together(places: FloatArray) -> Iterator[list[int]]:
    """Yield the points at each place; those that coincide share one label."""
    spread = float(np.ptp(places, axis=0).max()) or 1.0
    cells = [tuple(cell) for cell in np.round(places / (0.01 * spread)).astype(int)]
    for cell in dict.fromkeys(cells):
        yield [i for i, other in enumerate(cells) if other == cell]


def _around(x: float, y: float, reach: float) -> Bbox:
    return Bbox.from_bounds(x - reach, y - reach, 2 * reach, 2 * reach)


def _beside(own: Bbox, size: Bbox, side: tuple[int, int]) -> Bbox:
    """Return the box of a name of this size at a side of the box around its point."""
    across, up = side
    left = (own.x0 + own.x1 + across * own.width + (across - 1) * size.width) / 2
    bottom = (own.y0 + own.y1 + up * own.height + (up - 1) * size.height) / 2
    return Bbox.from_bounds(left, bottom, size.width, size.height)


def _free(
    size: Bbox, own: Bbox, within: BboxBase, taken: Sequence[Bbox]
) -> tuple[int, int] | None:
    """Return the best side of a point at which a name of this size has room."""
    for side in _SIDES:
        box = _beside(own, size, side)
        inside = Bbox.union([within, box]).bounds == within.bounds
        if inside and not box.count_overlaps(taken):
            return side
    return None
