"""From a result to a picture; every function returns the Axes that it drew on.

Nothing here touches global state: without `ax` a free-standing Figure is made, which works
without a display and leaves pyplot and its settings alone.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _check
from ._check import FloatArray
from .errors import FileError, InputError
from .result import Comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .diagnosis import Diagnosis

# Okabe and Ito's colours, told apart with any colour vision; yellow left out because
# it does not stand out from white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = "osD^vP*X"
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


@dataclass(frozen=True)
class Curve:
    """One line of `curves`: a mean with its standard deviation, (n,) each."""

    label: str
    mean: FloatArray
    std: FloatArray
    dashed: bool = False


def draw(comparison: Comparison, kind: str = "heatmap", **options: Any) -> Axes:
    """Return a picture of a comparison.

    Parameters
    ----------
    kind
        `heatmap`, `embedding`, `spectra` or `dendrogram`.
    **options
        `ax`, and the options of the function of that name.

    Examples
    --------
    >>> import unaligned as ua
    >>> rng = np.random.default_rng(0)
    >>> clouds = {"line": rng.normal(size=(60, 1)), "ball": rng.normal(size=(60, 3))}
    >>> draw(ua.compare(clouds, n_eigenvalues=20), "heatmap").get_title()
    'les distances'
    """
    return KINDS[_check.one_of("kind", kind, KINDS)](comparison, **options)


def heatmap(
    comparison: Comparison,
    *,
    ax: Axes | None = None,
    annotate: bool | None = None,
    colour_map: str = "viridis",
) -> Axes:
    """Return the matrix of distances as colours.

    Parameters
    ----------
    annotate
        Write the numbers into the cells; None does so for up to 12 datasets.
    colour_map
        Any colour map of matplotlib.
    """
    n, m = comparison.distances.shape
    with _style():
        axes = _axes(ax, (2.4 + 0.45 * m, 1.6 + 0.45 * n))
        image = axes.imshow(comparison.distances, cmap=colour_map)
        axes.set_xticks(range(m), comparison.reference_names, rotation=45, ha="right")
        axes.set_yticks(range(n), comparison.names)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        axes.set_title(f"{comparison.distance_name} distances")
        axes.get_figure(root=False).colorbar(image, ax=axes, shrink=0.8)  # type: ignore[union-attr]
        if annotate if annotate is not None else max(n, m) <= 12:
            _annotate(axes, comparison.distances)
    return axes


def embedding(
    comparison: Comparison,
    *,
    ax: Axes | None = None,
    method: str = "mds",
    groups: Mapping[str, str] | None = None,
) -> Axes:
    """Return a map of the datasets in which near means similar.

    Parameters
    ----------
    method
        `mds`, `metric-mds` or `diffusion`; see `unaligned.embedding.embed`.
    groups
        Name of a dataset -> name of its group, shown by colour and marker.
    """
    places = comparison.embed(method, 2)
    group_of = dict.fromkeys(comparison.names, "") | dict(groups or {})
    _require_known(group_of, comparison.names)
    with _style():
        axes = _axes(ax, (5.5, 4.5))
        for i, group in enumerate(dict.fromkeys(group_of[name] for name in comparison.names)):
            rows = [r for r, name in enumerate(comparison.names) if group_of[name] == group]
            colour, marker = COLOURS[i % len(COLOURS)], _MARKERS[i % len(_MARKERS)]
            x, y = places[rows].T
            axes.plot(x, y, linestyle="", color=colour, marker=marker, label=group or None)
        for names, place in _labels(comparison.names, places):
            axes.annotate(names, place, xytext=(5, 4), textcoords="offset points", fontsize=8)
        axes.set_aspect("equal", adjustable="datalim")
        axes.margins(0.15)
        axes.set(xlabel="first coordinate", ylabel="second coordinate")
        axes.set_title(f"map of {comparison.distance_name} distances ({method})")
        if groups:
            axes.legend()
    return axes


def spectra(comparison: Comparison, *, ax: Axes | None = None) -> Axes:
    """Return the eigenvalues plus γ of every dataset, on a logarithmic scale.

    LES is the distance between these lines, so the picture shows where it comes from.
    """
    signatures = comparison.signatures
    if not signatures:
        raise InputError(
            f"kind='spectra' needs signatures, and distance {comparison.distance_name!r} has "
            "none. Draw a comparison made with 'les' or 'imd-diffusion'."
        )
    with _style():
        axes = _axes(ax, (6.0, 4.2))
        for i, (name, signature) in enumerate(signatures.items()):
            number = np.arange(1, signature.n_eigenvalues + 1)
            look, colour = "-" if i < len(COLOURS) else "--", COLOURS[i % len(COLOURS)]
            axes.plot(number, np.exp(signature.values), look, color=colour, label=name)
        axes.set_yscale("log")
        axes.set(xlabel="number i", ylabel="eigenvalue λᵢ + γ", title="diffusion spectra")
        axes.legend(fontsize=8, ncols=1 + len(signatures) // 13)
    return axes


def dendrogram(comparison: Comparison, *, ax: Axes | None = None, method: str = "average") -> Axes:
    """Return the tree in which the nearest datasets join first; `method` as in `linkage`."""
    from scipy.cluster import hierarchy

    merged = comparison.linkage(method)
    with _style():
        axes = _axes(ax, (5.5, 1.2 + 0.32 * len(comparison.names)))
        hierarchy.dendrogram(
            merged,
            labels=list(comparison.names),
            orientation="left",
            ax=axes,
            color_threshold=0.0,
            above_threshold_color=COLOURS[0],
        )
        axes.set_xlim(right=-0.01 * axes.get_xlim()[0])  # or joins at 0 are cut in half
        axes.tick_params(axis="y", labelsize=9)
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(f"{comparison.distance_name} distance")
        axes.set_title(f"{method} linkage")
    return axes


def diagnosis(found: Diagnosis, *, ax: Axes | None = None) -> Axes:
    """Draw a spectrum on a log scale with its error band, γ, the float floor and the knee."""
    signature = found.signature
    eigenvalues, spectrum = signature.eigenvalues, signature.spectrum
    position = np.arange(1, eigenvalues.size + 1)
    lowest = min(found.floor, float(eigenvalues[eigenvalues > 0].min())) / 3
    with _style():
        axes = _axes(ax, (6.0, 4.0))
        top = np.maximum(spectrum.upper + spectrum.slack, lowest)
        axes.fill_between(
            position, np.maximum(spectrum.lower, lowest), top, color=COLOURS[0], alpha=0.25, lw=0
        )
        axes.plot(position, np.maximum(eigenvalues, lowest), color=COLOURS[0], label="eigenvalues")
        gamma = signature.recipe.gamma
        lines = {f"γ = {gamma:.0e}": (gamma, COLOURS[1], "--")}
        if found.gamma != gamma:
            lines[f"suggested γ = {found.gamma:.0e}"] = (found.gamma, COLOURS[2], "-.")
        lines["rounding"] = (found.floor, COLOURS[6], ":")
        for label, (level, colour, dashes) in lines.items():
            if level > 0:
                axes.axhline(level, color=colour, linestyle=dashes, lw=1.0, label=label)
        if found.knee is not None:
            knee = found.knee.position
            axes.plot(knee, eigenvalues[knee - 1], "o", color=COLOURS[1], label=f"knee at {knee}")
        axes.set(yscale="log", xlabel="i", ylabel="eigenvalue", title=signature.name or "")
        axes.legend()
    return axes


def curves(
    x: Sequence[float] | FloatArray,
    lines: Sequence[Curve],
    *,
    ax: Axes | None = None,
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
    legend: bool = True,
) -> Axes:
    """Return means with bands of one standard deviation, as in the paper's Fig. 1.

    Examples
    --------
    >>> line = Curve("d", np.array([1.0, 2.0]), np.array([0.1, 0.1]))
    >>> len(curves([0.2, 1.0], [line]).lines)
    1
    """
    places = np.asarray(x, dtype=float)
    with _style():
        axes = _axes(ax, (5.0, 3.8))
        for i, line in enumerate(lines):
            colour, marker = COLOURS[i % len(COLOURS)], _MARKERS[i % len(_MARKERS)]
            form = f"{marker}{'--' if line.dashed else '-'}"
            axes.plot(places, line.mean, form, color=colour, label=line.label, markersize=4)
            low, high = line.mean - line.std, line.mean + line.std
            axes.fill_between(places, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        if legend:
            axes.legend(fontsize=8)
    return axes


def panels(
    n: int, *, columns: int = 3, width: float = 4.0, height: float = 3.4
) -> tuple[Figure, list[Axes]]:
    """Return a free-standing figure with `n` panels, at most `columns` beside each other."""
    from matplotlib.figure import Figure

    columns = min(n, columns)
    rows = -(-n // columns)
    with _style():
        figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False)
    everything: list[Axes] = list(grid.ravel())
    for unused in everything[n:]:
        unused.set_axis_off()
    return figure, everything[:n]


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure in the format of the path's suffix; the same picture gives the same file."""
    metadata = {"Date": None} if os.fspath(path).endswith(".svg") else None
    with _style():
        try:
            figure.savefig(path, dpi=150, metadata=metadata)
        except OSError as error:
            raise FileError(f"path={os.fspath(path)!r} cannot be written: {error}.") from error


KINDS: dict[str, Callable[..., Axes]] = {
    "heatmap": heatmap,
    "embedding": embedding,
    "spectra": spectra,
    "dendrogram": dendrogram,
}


@contextmanager
def _style() -> Iterator[None]:
    """Apply the house style to what is drawn inside, and to nothing else."""
    import matplotlib as mpl

    with mpl.rc_context(_STYLE):
        yield


def _axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    from matplotlib.figure import Figure

    return ax or Figure(figsize=size, layout="constrained").add_subplot()


def _annotate(axes: Axes, values: FloatArray) -> None:
    """Write each value into its cell, dark on light cells and light on dark ones."""
    middle = (values.min() + values.max()) / 2
    # Three digits of the largest; what is far below it is 0 here.
    decimals = max(0, 2 - math.floor(math.log10(max(values.max(), 1e-300))))
    for (i, j), value in np.ndenumerate(values):
        colour = "black" if value > middle else "white"
        told = f"{value:.{decimals}f}" if decimals < 5 else f"{value:.1e}"
        axes.text(j, i, told, ha="center", va="center", color=colour, fontsize=8)


def _labels(names: Sequence[str], places: FloatArray) -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield the names at each place; datasets that coincide share one label."""
    spread = float(np.ptp(places, axis=0).max()) or 1.0
    cells = [tuple(cell) for cell in np.round(places / (0.01 * spread)).astype(int)]
    for cell in dict.fromkeys(cells):
        here = [i for i, other in enumerate(cells) if other == cell]
        x, y = places[here[0]]
        yield ", ".join(names[i] for i in here), (float(x), float(y))


def _require_known(groups: Mapping[str, str], names: Sequence[str]) -> None:
    for name in groups:
        if name not in names:
            near = _check.did_you_mean(name, names)
            raise InputError(
                f"groups names {name!r}, which is not in the comparison.{near} "
                f"Its names are: {', '.join(names)}."
            )
