"""What a comparison says, in words: findings, and what to be careful about.

Sentences are HTML. Names come from outside and go through `name`, which escapes them; all other
text is ours.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

import numpy as np

from .._check import FloatArray
from ..result import Comparison
from .content import Content

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_MANY = 6  # names in a sentence before it says how many more there are


def name(text: str) -> str:
    """Return a dataset's name as HTML that can only be text."""
    return f"<bdi>{html.escape(text)}</bdi>"


def number(value: float) -> str:
    """Return a number with four digits, and a very small or large one as a power of ten."""
    if not np.isfinite(value):
        return "unknown"
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        return f"{value:.4g}".replace("-", "\N{MINUS SIGN}")
    mantissa, _, exponent = f"{value:.1e}".partition("e")
    power = "10" + str(int(exponent)).translate(_RAISED)
    return power if mantissa == "1.0" else f"{mantissa}·{power}"


def findings(content: Content) -> list[str]:
    """Return the sentences that say what was found."""
    comparison = content.comparison
    pairs = content.pairs
    if not pairs.size:
        return ["There is one dataset, so there is nothing to compare it with."]
    if not content.is_finite:
        return ["Some distances are not finite numbers; see the table."]
    sentences = [*_extremes(comparison, pairs)]
    if comparison.is_square:
        sentences += [*_groups(content), *_loner(content)]
    else:
        sentences += _aggregates(comparison)
    return [*sentences, *_correlations(content)]


def _extremes(comparison: Comparison, pairs: FloatArray) -> Iterable[str]:
    places = [(int(i), int(j)) for i, j, _ in pairs]
    values = pairs[:, 2]
    low, high = int(values.argmin()), int(values.argmax())
    if len(places) == 1:
        yield f"{_pair(comparison, places[0])} are {number(values[0])} apart."
        return
    yield (
        f"Closest are {_pair(comparison, places[low])} ({number(values[low])}); farthest apart "
        f"are {_pair(comparison, places[high])} ({number(values[high])})."
    )
    yield f"Half of the {len(places)} distances are below {number(float(np.median(values)))}."


def _pair(comparison: Comparison, place: tuple[int, int]) -> str:
    i, j = place
    return f"{name(comparison.names[i])} and {name(comparison.reference_names[j])}"


def _groups(content: Content) -> Iterable[str]:
    names, groups = content.comparison.names, content.groups
    if groups is None:
        if len(names) >= 4:
            yield (
                "The datasets do not fall into clear groups: no cut of the tree separates them "
                "well (mean silhouette below 0.5)."
            )
        return
    most = _MANY if len(names) <= 12 else 2
    members = [
        _listed([n for n, g in zip(names, groups.labels, strict=True) if g == k], most)
        for k in range(groups.n_groups)
    ]
    yield (
        f"The tree falls into {groups.n_groups} groups (mean silhouette {groups.silhouette:.2f}): "
        f"{'; '.join(members)}."
    )


def _loner(content: Content) -> Iterable[str]:
    """Say which dataset stands apart: twice as far from its nearest as the others are."""
    square = content.square + np.diag(np.full(len(content.square), np.inf))
    nearest = square.min(axis=1)
    if nearest.size < 4:
        return
    far = int(nearest.argmax())
    if nearest[far] > 2 * np.median(nearest):
        names = content.comparison.names
        yield (
            f"{name(names[far])} stands apart: even its nearest, "
            f"{name(names[int(square[far].argmin())])}, is {number(nearest[far])} away, where "
            f"{number(float(np.median(nearest)))} is usual."
        )


def _aggregates(comparison: Comparison) -> list[str]:
    if len(comparison.names) < 2 or len(comparison.reference_names) < 2:
        return []
    means = comparison.aggregate("mean")
    return [
        f"On average over the references, {name(str(means.idxmin()))} is nearest to them "
        f"({number(means.min())}) and {name(str(means.idxmax()))} farthest "
        f"({number(means.max())})."
    ]


def _correlations(content: Content) -> Iterable[str]:
    for found in content.correlations:
        yield (
            f"Distances and differences of {name(found.tag)} correlate at "
            f"{_signed(found.pearson)} (Pearson; {_signed(found.spearman)} by rank) over "
            f"{found.n_pairs} pairs."
        )


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "\N{MINUS SIGN}")


def cautions(content: Content) -> list[str]:
    """Return the sentences that say what to be careful about."""
    return [*_small(content), *_unequal(content), *_below_gamma(content), *_bounds(content)]


def _small(content: Content, least: int = 200) -> Iterable[str]:
    small = [s.name for s in content.sizes if s.n_samples < least]
    if small:
        verb = "has" if len(small) == 1 else "have"
        yield (
            f"{_listed(small)} {verb} fewer than {least} samples. Spectra of so few points vary "
            "much from one sample to the next, and so do their distances."
        )


def _unequal(content: Content, ratio: float = 1.5) -> Iterable[str]:
    sizes = np.array([s.n_samples for s in content.sizes], dtype=float)
    if sizes.size < 2 or sizes.max() <= ratio * sizes.min():
        return
    small, large = content.sizes[int(sizes.argmin())], content.sizes[int(sizes.argmax())]
    told = (
        f"Sample sizes differ up to {sizes.max() / sizes.min():.2g}-fold: {name(small.name)} has "
        f"{small.n_samples:,}, {name(large.name)} {large.n_samples:,}. Part of each distance "
        'comes from size alone; <code>subsample="common"</code> takes it out.'
    )
    agreement = content.size_agreement
    if agreement is not None and agreement > 0.5:
        told += (
            f" Here distances go along with differences of size (rank correlation "
            f"{agreement:.2f})."
        )
    yield told


def _below_gamma(content: Content) -> Iterable[str]:
    signatures = content.signatures
    below = {n: int((s.eigenvalues < s.recipe.gamma).sum()) for n, s in signatures}
    hit = [n for n, count in below.items() if count]
    if not hit:
        return
    first = signatures[0][1]
    most = max(below, key=lambda n: below[n])
    yield (
        f"γ = {number(first.recipe.gamma)} is above the smallest of the K = {first.n_eigenvalues} "
        f"eigenvalues of {_listed(hit)}; most of all of {name(most)}, where {below[most]} lie "
        "below it. They count as γ: there the distance no longer sees the spectrum, only how "
        "many eigenvalues are left."
    )


def _bounds(content: Content) -> Iterable[str]:
    pairs, bounds = content.pairs, content.pair_bounds
    kinds = {s.bound_kind for _, s in content.signatures}
    if not pairs.size:
        return
    if np.isnan(bounds).all():
        yield "This distance has no error bound: how exact the numbers are is not known."
        return
    largest, smallest = float(np.nanmax(bounds)), float(np.abs(pairs[:, 2]).min())
    if not np.isfinite(largest):
        yield (
            "Some spectra have no error bound, since their affinity is not positive "
            "semi-definite: how exact those distances are is not known."
        )
    elif largest > 0.1 * smallest:
        doubtful = int((bounds > 0.1 * np.abs(pairs[:, 2])).sum())
        verb = "pair has" if doubtful == 1 else "pairs have"
        yield (
            f"{doubtful} {verb} an error bound above a tenth of the distance; the largest bound "
            f"is {number(largest)}, the smallest distance {number(smallest)}. A smaller "
            "<code>tol</code> makes them surer."
        )
    if "expectation" in kinds:
        yield "The error bounds hold on average only (Proposition 2), not for each dataset."


def assurances(content: Content) -> list[str]:
    """Return what need not worry: said too, so that silence does not stand for it."""
    told = []
    pairs, bounds = content.pairs, content.pair_bounds
    if pairs.size and np.isfinite(bounds).all():
        largest, smallest = float(bounds.max()), float(np.abs(pairs[:, 2]).min())
        if largest <= 0.1 * smallest:
            told.append(
                f"Every distance is known to within {number(largest)} (error bounds: "
                f"{content.bound_kinds}); the smallest is {number(smallest)}."
            )
    if content.sizes and not [*_small(content), *_unequal(content)]:
        sizes = {s.n_samples for s in content.sizes}
        ends = " to ".join(f"{size:,}" for size in sorted({min(sizes), max(sizes)}))
        told.append(f"Sizes are alike: {ends} samples each.")
    if content.signatures and not [*_below_gamma(content)]:
        told.append("All eigenvalues that were used lie above γ.")
    return told


def _listed(names: Sequence[str], most: int = _MANY) -> str:
    """Return names as a list in a sentence, cut where it gets long."""
    shown = [name(n) for n in names[:most]]
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
