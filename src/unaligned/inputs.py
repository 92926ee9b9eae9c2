"""Coerces, names and checks the data of a comparison."""

import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median_high
from typing import Any, TypeAlias

from . import _check
from ._check import is_anndata, is_frame, is_path, reject_anndata, with_our_names
from .data.dataset import Dataset
from .data.facts import Facts
from .data.preprocess import parse_steps, unfitted
from .data.values import TORCH_REMEDY, is_from, matrix_kind
from .defaults import N_EIGENVALUES
from .errors import (
    DataWarning,
    FileError,
    InputError,
    InputTypeError,
    NotApplicableError,
    RecipeMismatchError,
    SampleSizeWarning,
    counted,
    listed,
    warn,
)
from .io.anndata import object_contents
from .io.load import load, load_all
from .io.registry import name_of, names_of
from .metrics.base import Distance, SpectralDistance
from .metrics.registry import CallableDistance
from .operators.kernel import depends_on_units, uneven_columns
from .rows.source import RowSource
from .spectra.decay import GAMMA_RULES
from .spectra.signature import Signature

DataLike: TypeAlias = Any

# Options of reading AnnData, in memory or in a file.
READING = ("group_by", "use_rep", "layer", "var_names", "mask_obs")

# Sizes beyond this ratio bias LES where K is beyond a quarter of the smaller N.
SIZE_RATIO = 1.5


def own_name(data: DataLike) -> str | None:
    """Return the name of a Dataset, Signature or file, or None."""
    if is_path(data):
        return name_of(data)
    return data.name if isinstance(data, (Dataset, Signature)) else None


def collection(
    argument: str, data: Any, data_options: dict[str, Any]
) -> dict[str, Dataset | Signature]:
    """Return a dict of unique name -> Dataset or Signature."""
    named: dict[str, Dataset | Signature] = {}
    items = _named_items(argument, data, data_options)
    if data_options.get("group_by") is not None:  # they are read
        data_options = without_reading(data_options)
    for name, value in items:
        if name is None:
            raise InputTypeError(f"{argument}: the name None must be text, or a number or date.")
        text = str(name)
        if text in named:
            forms = dict.fromkeys(repr(other) for other, _ in items if str(other) == text)
            detail = f" ({' and '.join(forms)})" if len(forms) > 1 else ""
            raise InputError(
                f"{argument}: the name {text!r} occurs twice{detail}. Names must be unique."
            )
        named[text] = as_dataset(value, text, data_options)
    return named


def _named_items(
    argument: str, data: Any, data_options: Mapping[str, Any]
) -> list[tuple[Any, Any]]:
    """Return pairs of name and data; items of a list without a name are numbered.

    With `group_by`, files, AnnData and DataFrames are split into their groups.
    """
    group_by = data_options.get("group_by")
    if not is_anndata(data):
        reject_anndata(data, argument)  # MuData
    if argument == "references" and group_by is None and is_one(data):
        return [(own_name(data) or "reference", data)]
    if is_anndata(data) and group_by is None:
        columns = ", ".join(map(repr, list(data.obs.columns)[:20])) or "none"
        raise InputError(
            f"{argument} is one AnnData object, {data.n_obs} × {data.n_vars}. Give group_by, a "
            f"column of obs whose values are the datasets ({columns}), or a list of AnnData."
        )
    if group_by is not None and _has_groups(data):
        return list(_groups(data, data_options).items())
    if is_from(data, "pandas") and hasattr(data, "groups"):
        raise InputTypeError(
            f"{argument} is a {type(data).__name__} of pandas. Pass the DataFrame itself with "
            "group_by=column."
        )
    if is_from(data, "torch") and not hasattr(data, "shape"):
        # A DataLoader is iterable, but its batches are no datasets.
        raise InputTypeError(f"{argument} is a {type(data).__name__} of torch. {TORCH_REMEDY}")
    if isinstance(data, Mapping):
        items = list(data.items())
    elif is_one(data) or isinstance(data, bytes) or not isinstance(data, Iterable):
        raise InputTypeError(
            f"{argument} must be a dict of name -> data or a list of datasets, not "
            f"{_check.shape_of(data)}. For two datasets write [a, b], for those of a file "
            "load_all(path), for groups of rows of a file or DataFrame group_by=column."
        )
    else:
        given = list(data)
        paths = [value for value in given if is_path(value)]
        of_paths = iter(names_of(paths) if paths else ())
        items = [
            (next(of_paths) if is_path(value) else own_name(value) or str(i), value)
            for i, value in enumerate(given)
        ]
    if not items:
        raise InputError(f"{argument} is empty. Give at least one dataset.")
    if group_by is None:
        return items
    groups = [(name, _groups(value, data_options)) for name, value in items]
    return [(f"{name}:{own}", found) for name, each in groups for own, found in each.items()]


def is_one(data: Any) -> bool:
    """Return whether this is one dataset rather than a collection."""
    own = (str, os.PathLike, Dataset, Signature, RowSource)
    return isinstance(data, own) or hasattr(data, "shape") or is_from(data, "networkx", "polars")


def _has_groups(data: DataLike) -> bool:
    """Return whether `group_by` can name a column."""
    return is_path(data) or is_anndata(data) or is_frame(data)


def _groups(data: DataLike, data_options: Mapping[str, Any]) -> dict[str, Dataset]:
    """Return the groups of the rows of a file, AnnData or DataFrame, by label."""
    if not _has_groups(data):
        raise InputError(
            f"group_by={data_options['group_by']!r} needs a file, a DataFrame of pandas or "
            f"AnnData, not {_check.shape_of(data)}. Pass a dict of name -> rows."
        )
    given = {name: value for name, value in data_options.items() if value is not None}
    found = load_all(data, **given)
    own = f"{name_of(data)}:" if is_path(data) else ""
    return {name.removeprefix(own): dataset for name, dataset in found.items()}


def as_dataset(
    data: DataLike, name: str | None, data_options: dict[str, Any]
) -> Dataset | Signature:
    """Return data as a Dataset of this name; a Signature without a name gets it."""
    given = {key: value for key, value in data_options.items() if value is not None}
    if is_path(data) or is_anndata(data):
        return load(data, name=name, **given)
    for option in filter(given.__contains__, READING):
        raise InputError(
            f"{option} needs AnnData or its file; {name or 'the data'} is a "
            f"{_check.shape_of(data)}. Leave {option} out."
        )
    kind = given.pop("kind", None)
    if isinstance(data, (Dataset, Signature)):
        own = data.kind if isinstance(data, Dataset) else data.recipe.kind
        if kind not in (None, own):
            raise InputError(
                f"kind={kind!r} was given, and {name or 'the data'} is of kind {own!r}. Leave out "
                "kind=, or pass the values themselves."
            )
    if isinstance(data, Signature):
        return replace(data, name=data.name or name)
    if isinstance(data, Dataset):
        steps = given.get("preprocess")
        if steps and data.preprocess and unfitted(steps) != unfitted(data.preprocess):
            raise InputError(
                f"{data.label} has its own preprocessing {list(data.preprocess)}; "
                "leave out preprocess=, or build the Dataset without it."
            )
        return data.with_options(name=name, **given)
    return Dataset(data, "points" if kind is None else kind, name, **given)


def data_options(options: dict[str, Any]) -> dict[str, Any]:
    """Remove from `options` those of the datasets, and return them."""
    renamed = with_our_names(options)
    options.clear()
    options.update(renamed)
    steps = options.pop("preprocess", None)
    return {
        "preprocess": None if steps is None else parse_steps(steps),
        "nan_policy": options.pop("nan_policy", None),
        "kind": options.pop("kind", None),
        **{name: options.pop(name) for name in READING if name in options},
    }


def without_reading(data_options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of datasets that are in memory already."""
    return {name: value for name, value in data_options.items() if name not in READING}


def labels_of_both(argument: str, labels: Any, a: DataLike, b: DataLike) -> Any:
    """Return a pair of labels of rows; a name is that of a column of `obs` of two AnnData."""
    if not isinstance(labels, str) or not (is_anndata(a) and is_anndata(b)):
        return labels
    try:
        return tuple(object_contents(adata).labels(labels) for adata in (a, b))
    except FileError as error:
        raise InputError(f"{argument}: {error}") from None


def shared_options(
    given: Mapping[str, Any],
    rows: Mapping[str, Dataset | Signature],
    columns: Mapping[str, Dataset | Signature] | None,
) -> dict[str, Any]:
    """Return the options of the datasets; where none was given, what all datasets came with."""
    datasets = [d for d in (*rows.values(), *(columns or {}).values()) if isinstance(d, Dataset)]
    found = {name: v for name, v in given.items() if name not in ("group_by", "mask_obs")}
    for name, default in (("preprocess", ()), ("nan_policy", "raise")):
        own = {getattr(dataset, name) for dataset in datasets}
        if len(own) == 1 and own != {default}:
            found[name] = own.pop()
    return found


def require_same_options(options: Mapping[str, Any], items: Sequence[Dataset | Signature]) -> None:
    """Raise if a signature was computed with other options."""
    for item in items:
        if not isinstance(item, Signature):
            continue
        fields = ["gamma", "preprocess", "robust"]
        if item.sigma_squared is not None:
            fields += ["bandwidth", "bandwidth_factor", "n_neighbors", "kernel"]
        for name in fields:
            wanted, used = options.get(name), getattr(item.recipe, name)
            if wanted not in (None, used, *GAMMA_RULES):
                raise RecipeMismatchError(
                    f"{name}={wanted!r} was given, but a signature was computed with {used!r}. "
                    f"Leave {name} out, or pass the data instead of the signature."
                )


def fit_distance(
    method: Distance,
    rows: Mapping[str, Dataset | Signature],
    columns: Mapping[str, Dataset | Signature] | None,
) -> Distance:
    """Return the distance fitted to all datasets; raise if it does not apply to some pair."""
    everything = [*rows.values(), *(columns or {}).values()]
    method = method.fit(everything)
    require_applicable(method, rows, columns)
    warn_about_sizes(method, everything)
    warn_about_values(method, everything)
    return method


def require_applicable(
    method: Distance,
    rows: Mapping[str, Dataset | Signature],
    columns: Mapping[str, Dataset | Facts | Signature] | None,
) -> None:
    """Raise if the distance does not apply to some pair of a row and a column."""
    known = [_facts(item) for item in rows.values()]
    others = known if columns is None else [_facts(item) for item in columns.values()]
    for first, second in itertools.product(known, others):
        reason = None
        if isinstance(first, Facts) and isinstance(second, Facts):
            reason = method.objection(first, second)
        elif not isinstance(method, SpectralDistance):
            reason = "it needs the data, and a Signature was given"
        if reason:
            hint = " 'les' needs neither shared features nor paired rows."
            raise NotApplicableError(
                f"distance {method.name!r} does not apply: {reason}."
                f"{hint if _les_applies(first, second) else ''}"
            )


def _facts(item: Dataset | Facts | Signature) -> Facts | Signature:
    return item.facts if isinstance(item, Dataset) else item


def _les_applies(first: Facts | Signature, second: Facts | Signature) -> bool:
    """Whether LES applies: at least two rows, and comparable kinds and preprocessing."""
    if isinstance(first, Signature) or isinstance(second, Signature):
        return True
    kinds = {first.kind, second.kind}
    alike = len(kinds) == 1 or kinds == {"points", "distances"}
    enough = min(first.n_samples, second.n_samples) >= 2
    return enough and alike and first.preprocess == second.preprocess


def warn_about_sizes(
    method: Distance, items: Sequence[Dataset | Signature], remedy: str | None = None
) -> None:
    """Warn if sample sizes differ so much that LES is biased."""
    small, large = (extreme(items, key=lambda item: item.n_samples) for extreme in (min, max))
    kinds = {i.recipe.kind if isinstance(i, Signature) else i.kind for i in items}
    if not isinstance(method, SpectralDistance) or "spd" in kinds:  # its rows are no samples
        return
    k = method.settings.n_eigenvalues or 0
    if small.n_samples < 2 or not is_size_biased(small.n_samples, large.n_samples, k):
        return  # one row is an error, raised when the dataset is described
    if remedy is None:
        remedy = "Pass subsample='common' to compare at one size."
        if any(isinstance(item, Signature) for item in items):
            remedy = "Compute the signatures from equally many rows."
    ratio = large.n_samples / small.n_samples
    fold = f"{ratio:.2g}" if ratio < 100 else f"{ratio:.0f}"
    warn(
        f"Sample sizes differ {fold}-fold at K={k}: {small.name!r} has "
        f"{counted(small.n_samples, 'row')}, {large.name!r} has {large.n_samples}. "
        f"Part of their distance is due to size alone. {remedy}",
        SampleSizeWarning,
    )


def is_size_biased(small: int, large: int, n_eigenvalues: int) -> bool:
    """Return whether the distance of samples of these sizes is material by size alone.

    That is so if they differ more than 1.5-fold and K is beyond a quarter of the smaller one, or
    if they differ more than fourfold: by 3 to 5 times the noise at K = N/4 and 4 N rows
    (benchmarks/bench_sizes.py).
    """
    far = 4 * n_eigenvalues > small
    return large > (SIZE_RATIO if far else 4.0) * small


def warn_about_values(method: Distance, items: Sequence[Dataset | Signature]) -> None:
    """Warn of points that look like a matrix of another kind, and of uneven columns."""
    for item in (item for item in items if isinstance(item, Dataset)):
        kind = matrix_kind(item)
        if kind in method.kinds:
            what = {"graph": "an adjacency matrix", "distances": "a distance matrix"}[kind]
            warn(
                f"the values look like {what}, square and symmetric with a zero diagonal, but "
                f"each row is taken as a point. Pass kind={kind!r} if they are one.",
                DataWarning,
                label=item.label,
            )
    warn_about_spreads(method, items)


def warn_about_spreads(method: Distance, items: Sequence[Dataset | Signature]) -> None:
    """Warn once of columns whose units make the others hardly count, for all datasets."""
    is_own = isinstance(method, CallableDistance)  # which may do anything with its columns
    if is_own or not depends_on_units(method.options().get("metric", "euclidean")):
        return
    datasets = [item for item in items if isinstance(item, Dataset)]
    found = [(uneven, d.label) for d in datasets if (uneven := uneven_columns(d))]
    if not found:
        return
    worst, label = max(found, key=lambda pair: pair[0].ratio)
    others = [other.removeprefix("dataset ") for _, other in found if other != label]
    more = f" The same in {counted(len(others), 'other dataset')}: {listed(others)}."
    fitted = " with fit_on='references'" if method.same_features else ""
    warn(
        f"{label}: the spread of {worst.large} is {worst.ratio:.2g} times that of {worst.small}, "
        "which hardly counts in distances between rows. Unless all columns have one unit "
        "(Dataset(..., shared_unit=True)), use the preprocess step "
        f"'standardize'{fitted}.{more if others else ''}",
        DataWarning,
    )


def warn_about_lowered(
    asked: Distance, fitted: Distance, items: Sequence[Dataset | Signature]
) -> None:
    """Warn if a few small datasets lower the default K for the whole collection.

    That is so if the median dataset allows a K more than 1.5 times as large.
    """
    if not (isinstance(asked, SpectralDistance) and isinstance(fitted, SpectralDistance)):
        return
    usual = min(N_EIGENVALUES, median_high(item.n_samples for item in items))
    small = {str(i.name): i.n_samples for i in items if i.n_samples * SIZE_RATIO < usual}
    given = asked.settings.n_eigenvalues or any(isinstance(item, Signature) for item in items)
    if given or not small or len(items) < 3:
        return
    rest = [item for item in items if item.n_samples * SIZE_RATIO >= usual]
    k, most = (m.settings.n_eigenvalues or 0 for m in (fitted, asked.fit(rest)))
    if most > SIZE_RATIO * k:
        warn(
            f"K is {k} for all {len(items)} datasets; without the small ones it is {most}: "
            f"{_listed_sizes(small)}. Pass min_samples={most} to leave them out, or "
            f"n_eigenvalues={k} to keep them.",
            SampleSizeWarning,
        )


def _listed_sizes(sizes: Mapping[str, int]) -> str:
    """Return names with their numbers of rows, the first five."""
    return listed([f"{name!r} ({counted(n, 'row')})" for name, n in sizes.items()])


def leave_out(
    argument: str, items: dict[str, Dataset | Signature], min_samples: int | None
) -> tuple[dict[str, Dataset | Signature], dict[str, int]]:
    """Return the datasets of at least `min_samples` rows, and the sizes of the others."""
    least = _check.optional_int("min_samples", min_samples) or 0
    small = {name: item.n_samples for name, item in items.items() if item.n_samples < least}
    if len(small) == len(items):
        raise InputError(
            f"min_samples={least} leaves none of the {argument}; the largest has "
            f"{max(small.values())} rows. Lower it."
        )
    if small:
        rows = "has" if len(small) == 1 else "have"
        warn(
            f"Left out of the {argument}, because {'it' if len(small) == 1 else 'they'} {rows} "
            f"fewer than min_samples={least} rows: {_listed_sizes(small)}.",
            DataWarning,
        )
    return {name: item for name, item in items.items() if name not in small}, small
