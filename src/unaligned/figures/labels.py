"""Labels beside the points of a map, where there is room.

Imported where a map is drawn, since it needs matplotlib.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.transforms import Bbox

from .._check import FloatArray
from .style import shortened

_GAP = 6.0  # points from the centre of a marker to its label
# Positions of a label around its point, the best first: right, left, above, below, corners.
_SIDES = [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)]


class PointLabels(Artist):
    """Labels of points that overlap neither each other, nor a point, nor the axes' edges.

    They are placed whenever the figure is drawn, since sizes are known only then. A label
    without room is shortened, or else hidden.
    """

    def __init__(self, axes: Axes, names: Sequence[str], places: FloatArray) -> None:
        super().__init__()
        self.places = places
        # Points that coincide share one label.
        spread = float(np.ptp(places, axis=0).max()) or 1.0
        groups: dict[tuple[int, ...], list[int]] = {}
        for i, cell in enumerate(np.round(places / (0.01 * spread)).astype(int)):
            groups.setdefault(tuple(cell), []).append(i)
        self.groups = list(groups.values())
        self.names = [", ".join(names[i] for i in group) for group in self.groups]
        look: Any = {"xytext": (_GAP, 0), "textcoords": "offset points", "fontsize": 8}
        firsts = [places[group[0]] for group in self.groups]
        named = zip(self.names, firsts, strict=True)
        self.labels = [axes.annotate(name, place, **look) for name, place in named]
        for artist in (self, *self.labels):
            artist.set_in_layout(False)  # their places depend on the layout
        self.set_zorder(self.labels[0].get_zorder() - 0.1)  # drawn, and so placed, before them
        axes.add_artist(self)

    def draw(self, renderer: RendererBase) -> None:
        """Place the labels, which are drawn after this."""
        axes: Any = self.axes
        whole = axes.bbox.bounds
        points: Any = renderer.points_to_pixels(1.0)
        spots = axes.transData.transform(self.places)
        reach = 4.0 * points  # the size of a marker
        dots = [Bbox([spot - reach, spot + reach]) for spot in spots]
        written: list[Bbox] = []
        for name, label, group in zip(self.names, self.labels, self.groups, strict=True):
            taken = [*written, *(dot for i, dot in enumerate(dots) if i not in group)]
            own = Bbox([spots[group[0]] - _GAP * points, spots[group[0]] + _GAP * points])
            label.set_visible(True)  # a hidden label has no size
            for text in (name, shortened(name, 18)):
                label.set_text(text)
                size = label.get_window_extent(renderer)
                boxes = {side: _beside(own, size, side) for side in _SIDES}
                inside = [s for s in _SIDES if Bbox.union([axes.bbox, boxes[s]]).bounds == whole]
                side = next((s for s in inside if not boxes[s].count_overlaps(taken)), None)
                if side is not None:
                    across, up = side
                    ha = {1: "left", 0: "center", -1: "right"}[across]
                    va = {1: "bottom", 0: "center", -1: "top"}[up]
                    label.set(position=(_GAP * across, _GAP * up), ha=ha, va=va)
                    written.append(boxes[side])
                    break
            label.set_visible(side is not None)


def _beside(own: Bbox, size: Bbox, side: tuple[int, int]) -> Bbox:
    """Return the box of a label of this size at a side of the box around its point."""
    across, up = side
    left = (own.x0 + own.x1 + across * own.width + (across - 1) * size.width) / 2
    bottom = (own.y0 + own.y1 + up * own.height + (up - 1) * size.height) / 2
    return Bbox.from_bounds(left, bottom, size.width, size.height)
