"""The sentences of the summary: findings, cautions, and checks that passed.

Sentences are HTML. Names come from outside and are escaped by `name`; all other text is ours.
"""

import html
from collections.abc import Iterable, Sequence

import numpy as np

from .._check import FloatArray
from ..inputs import SIZE_RATIO, is_size_biased
from .content import Content

_MINUS = "\N{MINUS SIGN}"
_SAMPLING = (
    " Sampling noise is not part of these bounds; <code>inference=True</code> estimates it."
)
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def name(text: str) -> str:
    """Return a dataset's name as escaped HTML; long ones may be broken into lines."""
    long = " class='long'" if len(text) > 24 else ""
    return f"<bdi{long}>{html.escape(text)}</bdi>"


def number(value: float) -> str:
    """Return a number with four digits, and a very small or large one as a power of ten."""
    if not np.isfinite(value):
        return "unknown"
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        return f"{value:.4g}".replace("-", _MINUS)
    mantissa, _, exponent = f"{value:.1e}".partition("e")
    power = "10" + str(int(exponent)).translate(_SUPERSCRIPT)
    return power if mantissa == "1.0" else f"{mantissa}·{power}".replace("-", _MINUS)


def findings(content: Content) -> list[str]:
    """Return the main results."""
    comparison = content.comparison
    if not content.pair_distances.size:
        return ["There is only one dataset, and nothing to compare it with."]
    if not content.is_finite:
        return ["Some distances are not finite; see the table."]
    sentences = _extremes(content)
    if comparison.is_square:
        sentences += [*_groups(content), *_isolated(content)]
    elif min(comparison.distances.shape) > 1:
        means = comparison.aggregate("mean")
        sentences.append(
            f"On average over the references, {name(str(means.idxmin()))} is nearest to them "
            f"({number(means.min())}) and {name(str(means.idxmax()))} farthest "
            f"({number(means.max())})."
        )
    sentences += _told_apart(content)
    for found in content.correlations:
        values = f"{found.pearson:.2f} (Pearson; {found.spearman:.2f} by rank)"
        sentences.append(
            f"Distances and differences of {name(found.tag)} correlate at "
            f"{values.replace('-', _MINUS)} over {found.n_pairs} pairs (p = "
            f"{found.p_value:.2g} by permutations)."
        )
    return sentences


def _extremes(content: Content) -> list[str]:
    values, (rows, columns) = content.pair_distances, content.places

    def pair(k: int) -> str:
        first = content.comparison.names[rows[k]]
        return f"{name(first)} and {name(content.comparison.reference_names[columns[k]])}"

    low, high = int(values.argmin()), int(values.argmax())
    if len(values) == 1:
        return [f"The distance between {pair(0)} is {number(values[0])}."]
    if values[low] == values[high]:
        return [f"All {len(values)} distances are {number(values[0])}."]
    return [
        f"Closest are {pair(low)} ({number(values[low])}); farthest apart are {pair(high)} "
        f"({number(values[high])}).",
        f"The median of the {len(values)} distances is {number(float(np.median(values)))}.",
    ]


def _told_apart(content: Content) -> Iterable[str]:
    """Say which pairs differ by more than sampling noise, and what that noise is."""
    comparison, found = content.comparison, content.comparison.inference
    if found is None:
        return
    rows, columns = content.places
    differ, p_values = found.is_significant[rows, columns], found.p_values[rows, columns]
    pairs = [
        f"{name(comparison.names[rows[k]])} and {name(comparison.reference_names[columns[k]])} "
        f"(p = {number(float(f'{p_values[k]:.2g}'))})"
        for k in np.flatnonzero(~differ)
    ]
    rule = "more than sampling noise (p ≤ 0.05 after Holm's adjustment)"
    if not pairs:
        every = "The pair differs" if len(differ) == 1 else f"All {len(differ)} pairs differ"
        yield f"{every} by {rule}."
    else:
        most = 6 if len(pairs) <= 8 else 4
        rest = f" and {len(pairs) - most} more" if len(pairs) > most else ""
        yield (
            f"Of {len(differ)} {'pair' if len(differ) == 1 else 'pairs'} {int(differ.sum())} "
            f"{'differs' if differ.sum() == 1 else 'differ'} by {rule}. Not told apart: "
            f"{'; '.join(pairs[:most])}{rest}."
        )
    low, high = int(found.noise_floor.argmin()), int(found.noise_floor.argmax())
    yield (
        f"Corrected distances have a noise floor of {number(found.noise_floor[low])} "
        f"({name(comparison.names[low])}) to {number(found.noise_floor[high])} "
        f"({name(comparison.names[high])}): that far apart are two samples of one dataset, "
        f"measured on blocks of {found.block_size} rows."
    )


def _groups(content: Content) -> Iterable[str]:
    names, groups = content.comparison.names, content.groups
    if groups is not None:
        members: list[list[str]] = [[] for _ in range(groups.n_groups)]
        for n, group in zip(names, groups.labels, strict=True):
            members[group].append(n)
        listed = "; ".join(_listed(m, most=6 if len(names) <= 12 else 2) for m in members)
        quality = f"mean silhouette {groups.silhouette:.2f}"
        yield f"The datasets form {groups.n_groups} groups ({quality}): {listed}."
    elif len(names) >= 4:
        yield "The datasets form no clear groups (mean silhouette below 0.5 for every cut)."


def _isolated(content: Content) -> Iterable[str]:
    """Name the dataset whose nearest neighbour is twice as far as is usual."""
    square = content.square + np.diag(np.full(len(content.square), np.inf))
    nearest = square.min(axis=1)
    far, usual = int(nearest.argmax()), float(np.median(nearest))
    if nearest.size >= 4 and nearest[far] > 2 * usual:
        names = content.comparison.names
        yield (
            f"{name(names[far])} is isolated: the distance to its nearest neighbour, "
            f"{name(names[int(square[far].argmin())])}, is {number(nearest[far])}; the median "
            f"over all datasets is {number(usual)}."
        )


def cautions(content: Content) -> list[str]:
    """Return the limitations of the results."""
    checks = (_left_out, _sizes, _approximate, _dropped_rows, _duplicates, _below_gamma, _bounds)
    return [sentence for check in checks for sentence in check(content)]


def _left_out(content: Content) -> Iterable[str]:
    small = content.comparison.left_out
    if small:
        least = content.comparison.preparation.get("min_samples")
        rows = ", ".join(f"{name(n)} ({size:,})" for n, size in small.items())
        yield f"Left out, with fewer than {least} rows: {rows}."


def _sizes(content: Content) -> Iterable[str]:
    if not _has_samples(content):
        return
    sizes = [(s.n_samples, n) for n, s in content.signatures]
    small = [n for size, n in sizes if size < 200]
    if small:
        yield (
            f"Fewer than 200 samples: {_who(small, content)}. Spectra of few points vary much "
            "from sample to sample, and so do their distances."
        )
    (few, least), (many, most) = min(sizes), max(sizes)
    if not is_size_biased(few, many, content.signatures[0][1].n_eigenvalues):
        return
    sentence = (
        f"Sample sizes differ by a factor of up to {many / few:.2g}: {name(least)} has {few:,}, "
        f"{name(most)} {many:,}. Part of each distance is due to size alone; "
        '<code>subsample="common"</code> removes it.'
    )
    rank = content.size_correlation
    if rank is not None and rank > 0.5:
        sentence += f" Distances correlate with differences of size (rank correlation {rank:.2f})."
    yield sentence


def _has_samples(content: Content) -> bool:
    """Return whether there are spectra of samples; rows of an `spd` matrix are none."""
    return any(signature.recipe.kind != "spd" for _, signature in content.signatures)


def _approximate(content: Content) -> Iterable[str]:
    found = content.comparison.inference
    if found is not None and found.is_approximate:
        yield (
            "Preprocessing was fitted to each dataset as a whole, so p-values and intervals are "
            "approximate."
        )


def _dropped_rows(content: Content) -> Iterable[str]:
    reasons = {
        "rows_dropped": "dropped for missing values",
        "rows_set_aside": "excluded as outliers",
    }
    for key, why in reasons.items():
        # Stored as a count, or as the rows themselves.
        stored = {n: s.stats.get(key, 0) for n, s in content.signatures}
        counts = {n: v if isinstance(v, int) else len(v) for n, v in stored.items()}
        if any(counts.values()):
            most = max(counts, key=counts.__getitem__)
            yield f"Rows were {why}, most of them of {name(most)}: {counts[most]:,}."


def _duplicates(content: Content) -> Iterable[str]:
    """Name the datasets with the same data."""
    if not content.comparison.is_square:
        return
    holders: dict[str, list[str]] = {}
    for n, signature in content.signatures:
        holders.setdefault(signature.fingerprint or n, []).append(n)
    for names in holders.values():
        if len(names) > 1:
            yield f"The same data under several names: {_listed(names)}."


def _below_gamma(content: Content) -> Iterable[str]:
    below = {n: int((s.eigenvalues < s.recipe.gamma).sum()) for n, s in content.signatures}
    hit = [n for n, count in below.items() if count]
    if hit:
        first = content.signatures[0][1]
        most = max(below, key=below.__getitem__)
        yield (
            f"γ = {number(first.recipe.gamma)} is above the smallest of the "
            f"K = {first.n_eigenvalues} eigenvalues of {_who(hit, content)}; {name(most)} has the "
            f"most below it, {below[most]}. They count as γ: there the distance depends only on "
            "the number of eigenvalues above γ."
        )


def _bounds(content: Content) -> Iterable[str]:
    distances, bounds = _nonzero(content)
    if not distances.size:
        return
    largest, smallest = float(np.max(bounds)), float(distances.min())
    if np.isnan(bounds).all():
        yield "This distance has no error bound: the accuracy is not known."
    elif not np.isfinite(largest):
        yield (
            "Some spectra have no error bound, because their affinity is not positive "
            "semi-definite: the accuracy of those distances is not known."
        )
    elif largest > 0.1 * smallest:
        count = int((bounds > 0.1 * distances).sum())
        by_nystrom = any(s.spectrum.solver == "nystrom" for _, s in content.signatures)
        remedy = '<code>solver="auto"</code>' if by_nystrom else "a smaller <code>tol</code>"
        yield (
            f"{count} {'pair has' if count == 1 else 'pairs have'} an error bound above a tenth "
            f"of the distance; the largest bound is {number(largest)}, the smallest distance "
            f"{number(smallest)}. Use {remedy} for smaller bounds."
        )
    if any(s.bound_kind == "statistical" for _, s in content.signatures):
        yield "Some error bounds are statistical: each holds with a confidence of 95 %."
    noises = [
        s.stats["sampling_noise"] for _, s in content.signatures if "sampling_noise" in s.stats
    ]
    if noises:
        amounts = sorted({number(noise) for noise in (min(noises), max(noises))})
        yield (
            f"Large datasets were computed to a part of their sampling noise, which is about "
            f"{' to '.join(amounts)}: so far apart are two samples of "
            "such a size. A number for <code>tol</code> asks for more."
        )
    if any(s.bound_kind == "expectation" for _, s in content.signatures):
        yield "The error bounds hold in expectation only (Proposition 2), not for each dataset."


def _nonzero(content: Content) -> tuple[FloatArray, FloatArray]:
    """Return the distances that are not 0, and their bounds."""
    distances, bounds = np.abs(content.pair_distances), content.comparison.error_bounds
    return distances[distances != 0], bounds[content.places][distances != 0]


def passed_checks(content: Content) -> list[str]:
    """Return the checks that passed, so that they are not taken for omitted."""
    sentences = []
    distances, bounds = _nonzero(content)
    if distances.size and bounds.max() <= 0.1 * distances.min():  # false for NaN
        kinds = html.escape(content.bound_kinds)
        sentences.append(
            f"Every distance is accurate to within {number(float(bounds.max()))} (error bounds: "
            f"{kinds}); the smallest is {number(float(distances.min()))}."
            + ("" if content.comparison.inference else _SAMPLING)
        )
    if _has_samples(content) and not [*_sizes(content)]:
        sizes = [s.n_samples for _, s in content.signatures]
        ends = " to ".join(f"{size:,}" for size in sorted({min(sizes), max(sizes)}))
        judged = "are similar"
        if max(sizes) > SIZE_RATIO * min(sizes):
            judged = f"differ too little to matter at K = {content.signatures[0][1].n_eigenvalues}"
        sentences.append(f"Sample sizes {judged}: {ends}.")
    if content.signatures and not [*_below_gamma(content)]:
        sentences.append("All eigenvalues used are above γ.")
    return sentences


def _who(names: Sequence[str], content: Content) -> str:
    """Return names as a list, or `all n datasets`."""
    n = len(content.signatures)
    return f"all {n} datasets" if len(names) == n > 2 else _listed(names)


def _listed(names: Sequence[str], most: int = 6) -> str:
    """Return names as a list in a sentence, at most `most` of them."""
    shown = [name(n) for n in names[:most]]
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
