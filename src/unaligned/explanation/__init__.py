"""Why two datasets differ, explain(): which features, which rows, and at which scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np

from .. import _check
from .._check import RNGLike
from ..data.dataset import Dataset
from ..data.facts import is_counted
from ..data.values import feature_names_of, is_from
from ..errors import InputError, InputTypeError
from ..inference.partition import SMALLEST_BLOCK, fitted_once, require_rows
from ..inputs import DataLike, as_dataset, data_options, labels_of_both, own_name
from ..metrics.les import LES
from ..operators.kernel import is_euclidean
from ..preparation import prepare_additions
from ..result import Comparison
from ..spectra.pipeline import SignatureSettings
from .blocks import LEAST_ROWS, Plan, Request
from .decades import Decade as Decade
from .decades import contributions as contributions
from .decades import decades as decades
from .features import explain_features
from .quantities import ScaleExplanation as ScaleExplanation
from .result import Explanation as Explanation
from .rows import explain_rows
from .scale import explain_scale

_CALLER = "explain()"
BY = ("features", "rows", "scale")


@overload
def explain(
    a: DataLike,
    b: DataLike,
    *,
    by: Literal["features", "rows"] = "features",
    labels: Any = None,
    feature_groups: Mapping[Any, Any] | None = None,
    n_repeats: int = 10,
    block_size: int | None = None,
    rng: RNGLike = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Explanation: ...


@overload
def explain(
    a: DataLike,
    b: DataLike,
    *,
    by: Literal["scale"],
    n_repeats: int = 10,
    block_size: int | None = None,
    rng: RNGLike = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
    **options: Any,
) -> ScaleExplanation: ...


@overload
def explain(
    a: DataLike,
    b: DataLike,
    *,
    by: str,
    labels: Any = None,
    feature_groups: Mapping[Any, Any] | None = None,
    n_repeats: int = 10,
    block_size: int | None = None,
    rng: RNGLike = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Explanation | ScaleExplanation: ...


def explain(
    a: DataLike,
    b: DataLike,
    *,
    by: str = "features",
    labels: Any = None,
    feature_groups: Mapping[Any, Any] | None = None,
    n_repeats: int = 10,
    block_size: int | None = None,
    rng: RNGLike = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Explanation | ScaleExplanation:
    r"""Explain the LES distance of two datasets: what changes it when it is left out.

    Both datasets are cut into random blocks of rows, and everything is computed on blocks, with
    the statistic U of `permutation_test`: the squared distance of mean signatures, corrected for
    noise and size. The change, the distance without a candidate minus the distance with it, is
    that of the root of the squared distance by :math:`U_{-c} - U`, and stands beside its noise.

    `by="features"` leaves out columns: from the dataset or datasets that have them. The squared
    distances are updated, not computed again. More than 60 columns are first left out by groups of
    correlated ones, then those of the group with the largest change one by one. Components of
    `preprocess="pca:3"` are features `"component 0"`, ….

    `by="rows"` leaves out groups of rows, from the dataset or datasets that have them. Without a
    group fewer rows are left, so both distances are those of equally many rows: in blocks, other
    rows stand in for those of the group. A group must leave a quarter of the rows.

    `by="scale"` names quantities of both spectra, with intervals over blocks: the number of
    well-separated groups of rows, the effective rank, the intrinsic dimension, and the length
    at which the spectra part; see `ScaleExplanation`.

    O(C n b³) time for C candidates and n blocks of b rows. Ctrl-C returns what the finished
    blocks give, or the groups if it comes among the columns of one, with a warning.

    Parameters
    ----------
    a, b
        As in `permutation_test`: points, or but for features also distances; arrays, datasets or
        files. `Comparison.explain` takes names.
    by
        `"features"`, `"rows"` or `"scale"`.
    labels
        For rows: a pair, the label of every row of a and that of every row of b (cell types,
        classes, clusters), or a column of `obs` of two AnnData; or `"auto"`, a k-means clustering.
    feature_groups
        For features: a dict of a name -> columns, by name or position; they are left out
        together, and columns in no group stay.
    n_repeats
        Each is 1000 rows of random blocks: of one partition of 1000 rows into four blocks of
        250, or of ten partitions of 100 rows. The noise of the result is that of the data.
    block_size
        b; None takes a quarter of the smaller dataset, between 30 and 250. For rows, of what the
        largest group leaves of it, between 10 and 250.
    rng
        Seed or generator; None always gives the same result for the same data.
    n_jobs
        Blocks at a time; None is one per core.
    progress
        As in `compare`.
    **options
        Options of `les`: `n_eigenvalues` (a third of the rows of a block by default), `gamma`,
        `kernel`, `bandwidth`; `preprocess` and `nan_policy`.

    Returns
    -------
    Explanation or ScaleExplanation
        The latter for `by="scale"`.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> draw = np.random.default_rng(0)
    >>> before, after = (draw.normal(size=(400, 3)) for _ in range(2))
    >>> after[:, 2] **= 3
    >>> found = ua.explain(before, after, by="features", n_repeats=3)
    >>> found.to_frame().change.idxmin()  # without it they are most alike
    '2'
    """
    _check.one_of("by", by, BY)
    n_repeats = _check.positive_int("n_repeats", n_repeats)
    seed = _check.root_seed(rng)
    datasets, settings = _prepared(a, b, options)
    if isinstance(labels, str) and labels != "auto":
        labels = labels_of_both("labels", labels, a, b)
    if by == "features" or isinstance(labels, str):
        _require_same_order((a, b))
    _require_arguments(by, labels, feature_groups, datasets)
    least = LEAST_ROWS if by == "rows" else SMALLEST_BLOCK
    plan = Plan.of(datasets, block_size, n_repeats, seed, least=least)
    request = Request(datasets, plan, settings, seed, n_jobs, progress)
    if by == "features":
        return explain_features(request, feature_groups)
    if by == "rows":
        return explain_rows(request, labels, block_size, n_repeats)
    return explain_scale(request)


def explain_pair(
    comparison: Comparison, names: tuple[Any, Any], data: Any, options: Mapping[str, Any]
) -> Explanation | ScaleExplanation:
    """Return why two datasets of a comparison differ; see `Comparison.explain`."""
    method = comparison.distance
    if not isinstance(method, LES):
        raise InputError(
            f"explain() explains 'les' distances, and these are {comparison.distance_name!r}. "
            "Compare the datasets with distance='les', or call unaligned.explain(a, b)."
        )
    places = zip(names, (comparison.names, comparison.reference_names), strict=True)
    first, second = (own[_check.position("dataset", name, own)] for name, own in places)
    if first == second:
        raise InputError(f"explain() needs two datasets, and both are {first!r}.")
    given = _data_of(data, (first, second))
    signatures = {**comparison.reference_signatures, **comparison.signatures}
    pair = prepare_additions(given, method, comparison)
    for name, dataset in pair.items():
        if isinstance(dataset, Dataset) and dataset.fingerprint != signatures[name].fingerprint:
            raise InputError(
                f"data: {name!r} is not what was compared under that name. Give the same data, or "
                "call unaligned.explain(a, b) on the new."
            )
    labels = options.get("labels")
    if options.get("by", "features") == "features" or isinstance(labels, str):
        _require_same_order(list(given.values()))
    n_drawn = comparison.preparation.get("subsample")
    if n_drawn is not None and isinstance(labels, (list, tuple, np.ndarray)):
        for name, own in zip((first, second), labels, strict=False):
            if np.shape(own) != (pair[name].n_samples,):
                raise InputError(
                    f"labels: subsample={n_drawn} of the comparison drew {pair[name].n_samples} "
                    f"rows of {name!r}, and its labels have shape {np.shape(own)}. Call "
                    "unaligned.explain(a, b, by='rows', labels=…) on all rows, or give "
                    "labels='auto'."
                )
    kept = ("gamma", "kernel", "bandwidth", "bandwidth_factor", "metric", "n_neighbors", "robust")
    own = {name: comparison.options[name] for name in kept if name in comparison.options}
    everything = {**own, "rng": comparison.seed, **options}
    found: Explanation | ScaleExplanation = explain(pair[first], pair[second], **everything)
    return found


def _data_of(data: Any, names: tuple[str, str]) -> dict[str, Any]:
    """Return the data of two datasets by name, from a mapping or a pair."""
    if isinstance(data, Mapping):
        known = {str(name): value for name, value in data.items()}
        missing = [name for name in names if name not in known]
        if missing:
            raise InputError(
                f"data has no {missing[0]!r}; it has {', '.join(map(repr, list(known)[:8]))}. "
                "Give a dict with both names, such as the one that was compared."
            )
        return {name: known[name] for name in names}
    if not isinstance(data, (list, tuple)) or len(data) != 2:
        raise InputTypeError(
            "data must be a dict of name -> data, such as the one that was compared, or the pair "
            f"of datasets, not {_check.shape_of(data)}."
        )
    return dict(zip(names, data, strict=True))


def _prepared(
    a: DataLike, b: DataLike, options: dict[str, Any]
) -> tuple[tuple[Dataset, Dataset], SignatureSettings]:
    """Return both datasets, their fitted preprocessing applied, and the settings of LES."""
    given = data_options(options)
    method = LES.from_options(options)
    settings = method.settings
    if isinstance(settings.gamma, str):
        raise InputError(f"{_CALLER} needs gamma as a number, not {settings.gamma!r}.")
    kernel = settings.kernel
    if not is_euclidean(kernel.metric) or kernel.n_neighbors is not None or kernel.robust:
        raise InputError(
            f"{_CALLER} updates Euclidean distances of all rows; metric, n_neighbors and robust "
            "are not supported. Leave them out."
        )
    first, second = own_name(a) or "a", own_name(b) or "b"
    first, second = (first, second) if first != second else ("a", "b")
    items = {first: as_dataset(a, first, given), second: as_dataset(b, second, given)}
    found = [_named_once(dataset) for dataset in require_rows(items, method, _CALLER)]
    for dataset in found:
        if dataset.kind == "affinity":
            raise InputError(
                f"{_CALLER} needs points or distances; {dataset.label} is of kind 'affinity'."
            )
    return (found[0], found[1]), settings


def _named_once(dataset: Dataset) -> Dataset:
    """Return the dataset `fitted_once`, with the names of its prepared columns.

    Steps keep the columns but for `pca`, whose components are numbered. Also where `pca` was
    fitted to references it is applied here, since it changes the number of columns.
    """
    found, names = fitted_once(dataset)[0], dataset.feature_names
    is_reduced = any(step.startswith("pca:") for step in dataset.preprocess)
    if found is dataset and not is_reduced:
        return dataset
    if found is dataset:
        values = dataset.prepared_source() if dataset.is_lazy else dataset.prepared()
        found = Dataset(values, name=dataset.name)
    if is_reduced:
        names = tuple(f"component {i}" for i in range(found.n_features))
    return Dataset(found.values, name=found.name, feature_names=names)


def _require_same_order(pair: Sequence[Any]) -> None:
    """Raise for two tables whose columns have numbers as names, and not the same in one order.

    Such columns count as unnamed, and would be matched by position. Numbers counted from 0 are
    no names, unless the other table has the same.
    """
    if not all(is_from(data, "pandas") and data.ndim == 2 for data in pair):
        return
    if any(feature_names_of(data) for data in pair):
        return
    first, second = ([str(name) for name in data.columns] for data in pair)
    unnamed = set(first) != set(second) and (is_counted(first) or is_counted(second))
    if len(first) == len(second) and first != second and not unnamed:
        raise InputError(
            f"The columns of a, {', '.join(first[:3])}, …, and of b, {', '.join(second[:3])}, …, "
            "have numbers as names, which are not the same in one order. Give both the same "
            "columns, as b[a.columns] does, or arrays, whose columns are matched by position."
        )


def _require_arguments(
    by: str, labels: Any, groups: Any, datasets: tuple[Dataset, Dataset]
) -> None:
    """Raise for arguments that belong to another `by`, and for kinds without features."""
    if by != "rows" and labels is not None:
        raise InputError(f"labels belong to by='rows', and by={by!r}. Leave them out.")
    if by != "features" and groups is not None:
        raise InputError(f"feature_groups belong to by='features', and by={by!r}. Leave them out.")
    for dataset in datasets:
        if by == "features" and dataset.kind != "points":
            raise InputError(
                f"by='features' leaves out columns of points; {dataset.label} is of kind "
                f"{dataset.kind!r}. Use by='rows', or pass the points."
            )
