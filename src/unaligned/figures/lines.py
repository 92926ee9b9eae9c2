"""Lines with bands: spectra, a pair of spectra, and the means of an experiment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._check import FloatArray
from ..errors import InputError
from ..explanation import Decade, decades
from ..result import Comparison
from ..spectra.signature import Signature
from ..tags import one_tag
from .style import COLOURS, add_legend, looks, new_axes, set_title, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

    from ..diagnosis import Diagnosis
    from ..inference.permutation import PermutationTest

_LINES = 0.7  # share of the width of a pair that the spectra take; the rest are the decades


def spectra(
    comparison: Comparison,
    *,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    title: str | None = None,
    color: Any = None,
    cmap: Any = None,
) -> Axes:
    """Return the eigenvalues plus γ of every dataset, with error bands, on a logarithmic scale.

    LES is the distance between these lines.

    Parameters
    ----------
    comparison
        A comparison by signatures, such as with `les`.
    ax
        The axes to draw on; None makes a new figure.
    figsize
        Width and height of a new figure in inches.
    title
        The title; None gives the default, and an empty text none.
    color, cmap
        What to colour by, as for `embedding`; None gives each dataset its own colour.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.
    """
    signatures = _signatures(comparison, "spectra")
    shown = one_tag(color, comparison.names, comparison.metadata)
    n = len(COLOURS)
    lines: Any = [(COLOURS[i % n], "-" if i < n else "--") for i in range(len(signatures))]
    if shown is not None:
        lines = [(colour, "-") for colour, _ in looks(shown, len(signatures), cmap)]
    with style():
        axes = new_axes(ax, (6.0, 4.2), figsize)
        for (name, signature), (colour, dashes) in zip(signatures.items(), lines, strict=True):
            _draw_spectrum(axes, signature, color=colour, linestyle=dashes, label=name)
        _label_spectra(axes, next(iter(signatures.values())).recipe.gamma)
        set_title(axes, title, "diffusion spectra")
        if shown is not None and shown.is_numeric:
            add_legend(axes, shown, cmap)
        else:
            axes.legend(fontsize=8, ncols=1 + len(signatures) // 13)
    return axes


def pair(
    comparison: Comparison,
    *,
    first: str | None = None,
    second: str | None = None,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    title: str | None = None,
) -> Axes:
    """Return two spectra, and beside them the share of each decade in the squared LES.

    Parameters
    ----------
    comparison
        A comparison by signatures, such as with `les`.
    first, second
        A row and a column of the comparison; None takes those of the farthest pair.
    ax
        The axes to draw on; None makes a new figure.
    figsize
        Width and height of a new figure in inches.
    title
        The title; None gives the default, and an empty text none.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.
    """
    signatures = _signatures(comparison, "pair")
    i, j = np.unravel_index(int(comparison.distances.argmax()), comparison.distances.shape)
    first = comparison.names[i] if first is None else first
    second = comparison.reference_names[j] if second is None else second
    distance = f"{comparison.distance_label}\N{NO-BREAK SPACE}{comparison[first, second]:.4g}"
    a, b = signatures[first], comparison.reference_signatures[second]
    with style():
        axes = new_axes(ax, (6.4, 4.2), figsize)
        _draw_spectrum(axes, a, color=COLOURS[0], label=first)
        _draw_spectrum(axes, b, color=COLOURS[1], linestyle="--", label=second)
        _label_spectra(axes, a.recipe.gamma)
        set_title(axes, title, f"{first} and {second}: {distance}")
        _draw_decades(axes, decades(a, b))
        axes.legend(bbox_to_anchor=(0, 0, _LINES, 1), loc="best", fontsize=9)
    return axes


def margins(
    comparison: Comparison,
    *,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    title: str | None = None,
) -> Axes:
    """Return the logarithm of the margin factor over the shift of layers (Appendix E).

    Above 0, all layers that are this far apart are farther than any corresponding ones.

    Parameters
    ----------
    comparison
        Of the layers of one network with those of another, in the same order.
    ax
        The axes to draw on; None makes a new figure.
    figsize
        Width and height of a new figure in inches.
    title
        The title; None gives the default, and an empty text none.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.
    """
    factors = comparison.match().margins
    shifts = np.arange(1 - len(factors), len(factors))
    with style():
        axes = new_axes(ax, (4.6, 3.4), figsize)
        axes.axhline(0.0, color="#555555", linestyle=":", linewidth=1.0)
        with np.errstate(divide="ignore"):
            axes.plot(shifts, np.log(factors[np.abs(shifts)]), "o-", color=COLOURS[0])
        axes.set(xlabel="shift of layers δ", ylabel="log margin factor log α", xticks=shifts)
        set_title(axes, title, f"margins of {comparison.distance_label}")
    return axes


def diagnosis(found: Diagnosis, *, ax: Axes | None = None) -> Axes:
    """Return a spectrum on a log scale with its error band, γ, the rounding floor and the knee.

    Parameters
    ----------
    found
        The result of `diagnose`.
    ax
        The axes to draw on; None makes a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.
    """
    signature = found.signature
    eigenvalues, spectrum = signature.eigenvalues, signature.spectrum
    index = np.arange(1, eigenvalues.size + 1)
    lowest = min(found.floor, float(eigenvalues[eigenvalues > 0].min())) / 3
    band = (spectrum.lower, eigenvalues, spectrum.upper + spectrum.slack)
    low, middle, high = (np.maximum(values, lowest) for values in band)
    with style():
        axes = new_axes(ax, (6.0, 4.0))
        axes.fill_between(index, low, high, color=COLOURS[0], alpha=0.25, lw=0)
        axes.plot(index, middle, color=COLOURS[0], label="eigenvalues")
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


def null_distribution(test: PermutationTest, *, ax: Axes | None = None) -> Axes:
    """Return the statistic under permutations as a histogram, with the observed value.

    Parameters
    ----------
    test
        The result of `permutation_test`.
    ax
        The axes to draw on; None makes a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.
    """
    with style():
        axes = new_axes(ax, (5.4, 3.6))
        n_bins = min(50, max(10, test.null.size // 20))
        axes.hist(test.null, bins=n_bins, color=COLOURS[0], alpha=0.6, label="permutations")
        label = f"observed, p = {test.p_value:.2g}"
        axes.axvline(test.squared, color=COLOURS[1], linewidth=2.0, label=label)
        axes.axvline(0.0, color="#555555", linestyle=":", linewidth=1.0)
        axes.set(xlabel=f"corrected squared {test.distance_name}", ylabel="permutations")
        set_title(axes, " and ".join(test.names))
        axes.legend()
    return axes


def banded_line(
    axes: Axes, x: FloatArray, mean: FloatArray, low: FloatArray, high: FloatArray, **options: Any
) -> Line2D:
    """Draw a line and a band around it.

    Parameters
    ----------
    axes
        The axes to draw on.
    x, mean, low, high
        The points of the line and the limits of the band, (n,) each.
    **options
        Those of `Axes.plot`.

    Returns
    -------
    matplotlib.lines.Line2D
        The line.
    """
    with style():
        (line,) = axes.plot(x, mean, **options)
        axes.fill_between(x, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
    return line


def _signatures(comparison: Comparison, kind: str) -> dict[str, Signature]:
    if not comparison.signatures:
        raise InputError(
            f"kind={kind!r} needs signatures, and distance {comparison.distance_name!r} has "
            "none. Draw a comparison made with 'les' or 'imd-diffusion'."
        )
    return comparison.signatures


def _draw_spectrum(axes: Axes, signature: Signature, *, color: Any, **options: Any) -> None:
    index = np.arange(1, signature.n_eigenvalues + 1)
    values, error = signature.values, signature.error_bound
    axes.plot(index, np.exp(values), color=color, **options)
    if np.all(np.isfinite(error)):
        low, high = np.exp(values - error), np.exp(np.minimum(values + error, values.max()))
        low = np.maximum(low, np.exp(values.min() - np.log(10.0)))  # at most a decade below
        axes.fill_between(index, low, high, color=color, alpha=0.2, linewidth=0)


def _label_spectra(axes: Axes, gamma: float) -> None:
    if gamma > 0:
        axes.axhline(gamma, color="#555555", linestyle=":", linewidth=1.0, label=f"γ = {gamma:g}")
    axes.set(yscale="log", xlabel="index i", ylabel="eigenvalue λᵢ + γ")


def _draw_decades(axes: Axes, found: Sequence[Decade]) -> None:
    """Draw the share of each decade to the right of the lines, inside the axes."""
    low, high = axes.get_xlim()
    ticks = [tick for tick in axes.get_xticks() if low <= tick <= high]
    axes.set_xlim(low, low + (high - low) / _LINES)
    axes.set_xticks(ticks)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines["bottom"].set_bounds(low, high)
    axes.xaxis.label.set_x(_LINES / 2)
    beside = axes.inset_axes((_LINES + 0.03, 0.0, 0.97 - _LINES, 1.0), sharey=axes)
    bottoms = [10.0 ** (decade.exponent - 1) for decade in found]
    heights = [9.0 * bottom for bottom in bottoms]
    shares = [100.0 * decade.share for decade in found]
    beside.barh(bottoms, shares, heights, align="edge", color=COLOURS[0], alpha=0.75, ec="white")
    beside.tick_params(axis="y", which="both", left=False, labelleft=False)
    beside.spines["left"].set_visible(False)
    beside.set_xlabel("% of LES²")
