"""The public functions signature(), distance() and compare()."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, overload

from . import _check
from ._check import RNGLike
from .cache import Cache
from .data.dataset import Dataset
from .defaults import GAMMA
from .engine import EngineLike, resolve_engine
from .errors import InputTypeError, OptionError, merged
from .execution import compare_pair, default_jobs, describe_all, fill
from .inputs import (
    DataLike,
    as_dataset,
    collection,
    data_options,
    fit_distance,
    leave_out,
    own_name,
    require_applicable,
    require_same_options,
    shared_options,
    warn_about_lowered,
    warn_about_values,
)
from .metrics.base import Distance
from .metrics.les import LES
from .metrics.registry import DistanceLike, resolve_distance, resolve_distances
from .preparation import common_size, fit_preprocessing, subsample_all
from .result import Comparison
from .spectra.pipeline import SignatureSettings
from .spectra.signature import Signature


@merged()
def signature(
    data: DataLike,
    *,
    n_eigenvalues: int | None = None,
    gamma: float | str = GAMMA,
    solver: Any = "auto",
    tol: float | None = None,
    rng: RNGLike = None,
    engine: EngineLike = None,
    progress: bool | None = None,
    **options: Any,
) -> Signature:
    """Return the log-Euclidean signature of one dataset.

    Compute it once and compare it with any other signature of the same recipe.

    Parameters
    ----------
    data
        Array-like with samples in rows, AnnData, a path, or a `Dataset`.
    n_eigenvalues
        K; None means min(200, N).
    gamma
        γ of log(λ + γ): eigenvalues below it count as noise. `"auto"` chooses it at the
        knee of the spectrum, `"cutoff"` just above λ_K (Appendix C), at least 1e-8; a
        collection gets the largest γ of its datasets.
    solver
        `"auto"`, `"exact"`, `"krylov"`, `"landmarks"`, `"nystrom"`, `"sampled"`, or a
        solver with its own settings, such as `Nystrom`; see `Auto`.
    tol
        Wanted 2-norm of the error of the K values. None is 1e-4 where that takes up to
        2.5·10¹² operations (about a minute), else max(0.05, a fifth of the sampling noise of the
        data); `recipe.tol` says which.
    rng
        Seed or generator; None always gives the same values for the same data.
    engine
        Where to compute, as in `compare`. Data read by blocks is distributed over it.
    progress
        Show a progress bar; None shows one on a terminal only.
    **options
        `kernel` (`"gaussian"` or `"laplacian"`), `bandwidth`, `bandwidth_factor`, `metric`,
        `n_neighbors`, `robust` and `memory_limit`, described in `KernelSettings`; `sketch_size`
        (see `SignatureSettings`); `preprocess`, `nan_policy` and `kind` as for `Dataset`; for
        AnnData `use_rep`, `layer`, `var_names`, `mask_obs` as in `load`.

    Returns
    -------
    Signature
        Its `values` are log(λ + γ), (K,), the largest first, with bounds on their errors.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> points = np.random.default_rng(0).normal(size=(300, 5))
    >>> ua.signature(points, n_eigenvalues=50).values.shape
    (50,)
    """
    explicit = {"n_eigenvalues": n_eigenvalues, "gamma": gamma, "solver": solver, "tol": tol}
    dataset, settings = prepare(data, {**explicit, **options})
    seed, method = _check.root_seed(rng), LES(settings)
    warn_about_values(method, [dataset])
    with resolve_engine(engine, progress=progress) as where:
        found: Signature = describe_all(method, [dataset], seed, where)[0]
    return found


def prepare(data: DataLike, options: Mapping[str, Any]) -> tuple[Dataset, SignatureSettings]:
    """Return the dataset and the settings for flat options of `signature`."""
    rest = dict(options)
    dataset = as_dataset(data, None, data_options(rest))
    if isinstance(dataset, Signature):
        raise InputTypeError("data is a Signature already; pass the points it was computed from.")
    names = _check.option_names(SignatureSettings)
    _check.known_options("signature()", rest, names, ["rng"])
    return dataset, _check.from_options(SignatureSettings, rest)


@merged()
def distance(
    a: DataLike,
    b: DataLike,
    distance: DistanceLike = "les",
    *,
    rng: RNGLike = None,
    **options: Any,
) -> float:
    """Return the distance between two datasets.

    Parameters
    ----------
    a, b
        Array-like, AnnData, a path, a `Dataset`, or a `Signature`.
    distance
        A name (see `available`), a `Distance` with its settings, or a callable of two arrays.
    rng
        Seed or generator; None always gives the same value for the same data.
    **options
        Options of the distance: the parameters of its class, such as `squared` of `LES`; for
        distances of spectra also those of `SignatureSettings` and `KernelSettings`, such as
        `n_eigenvalues`, `gamma` and `metric`. And `kind`, `preprocess`, `fit_on` (`b` is the
        reference), `nan_policy`, `subsample`, `engine` as in `compare`.

    Returns
    -------
    float
        0 for equal data under most distances; an unbiased estimate may be negative.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> rng = np.random.default_rng(0)
    >>> small, large = rng.normal(size=(200, 3)), rng.normal(size=(300, 8))
    >>> ua.distance(small, small)
    0.0
    >>> ua.distance(small, large) > 1
    True
    """
    if isinstance(distance, (list, tuple)):
        raise InputTypeError(
            f"distance={distance!r} must be one distance. compare([a, b], distance=[…]) takes "
            "several."
        )
    for name in options.keys() & {"datasets", "references", "n_jobs", "progress", "min_samples"}:
        raise OptionError(
            f"distance() compares two datasets and has no option {name!r}. compare() has it."
        )
    first, second = own_name(a) or "a", own_name(b) or "b"
    if first == second:
        first, second = "a", "b"
    if not options.keys().isdisjoint(("engine", "subsample", "cache", "fit_on")):
        # As rectangular comparison: a square one would also compute d(a, a) and d(b, b).
        pair = {first: a}, {second: b}
        found = compare(*pair, distance=distance, rng=rng, progress=False, **options)
        return float(found.distances[0, 0])
    given = data_options(options)
    rows, columns = {first: as_dataset(a, first, given)}, {second: as_dataset(b, second, given)}
    seed = _check.root_seed(rng)
    method = resolve_distance(distance, options)
    require_same_options({**options, **given}, [*rows.values(), *columns.values()])
    return compare_pair(fit_distance(method, rows, columns), rows[first], columns[second], seed)


@overload
def compare(
    datasets: Any,
    references: Any = None,
    *,
    distance: DistanceLike = "les",
    n_jobs: int | None = None,
    engine: EngineLike = None,
    rng: RNGLike = None,
    progress: bool | None = None,
    subsample: int | str | None = None,
    min_samples: int | None = None,
    fit_on: str | None = None,
    cache: str | os.PathLike[str] | Cache | None = None,
    inference: bool = False,
    **options: Any,
) -> Comparison: ...


@overload
def compare(
    datasets: Any,
    references: Any = None,
    *,
    distance: list[Any] | tuple[DistanceLike, ...],
    n_jobs: int | None = None,
    engine: EngineLike = None,
    rng: RNGLike = None,
    progress: bool | None = None,
    subsample: int | str | None = None,
    min_samples: int | None = None,
    fit_on: str | None = None,
    cache: str | os.PathLike[str] | Cache | None = None,
    inference: bool = False,
    **options: Any,
) -> dict[str, Comparison]: ...


@merged()
def compare(
    datasets: Mapping[Any, DataLike] | Sequence[DataLike],
    references: Mapping[Any, DataLike] | Sequence[DataLike] | None = None,
    *,
    distance: DistanceLike | list[DistanceLike] | tuple[DistanceLike, ...] = "les",
    n_jobs: int | None = None,
    engine: EngineLike = None,
    rng: RNGLike = None,
    progress: bool | None = None,
    subsample: int | str | None = None,
    min_samples: int | None = None,
    fit_on: str | None = None,
    cache: str | os.PathLike[str] | Cache | None = None,
    inference: bool = False,
    **options: Any,
) -> Comparison | dict[str, Comparison]:
    """Return all distances within one collection, or between two.

    Parameters
    ----------
    datasets
        A dict of name -> data, or a list; each anything that `distance` takes. With `group_by`,
        a file, a pandas DataFrame or an AnnData object.
    references
        A second collection, or one dataset; the result is then rectangular, datasets ×
        references.
    distance
        A name, a `Distance` with its settings, or a callable of two arrays. A list of them gives
        a dict of comparisons by name, each distance with those of the options that it has.
    n_jobs
        Number of datasets, or pairs, at a time, with the BLAS threads divided among them; -1
        is one per core. None is the same, within memory; but 1 for a callable `distance`, and
        where one large dataset is most of the work.
    engine
        Where the work runs: None for threads of this process, `"processes"`, a
        `dask.distributed.Client`, or the address of a Dask scheduler. The result is the same.
    rng
        Seed or generator; None always gives the same values for the same data.
    progress
        Show a progress bar; None shows one on a terminal only.
    subsample
        Compare at a common size, which removes the bias of unequal sample sizes: a number of
        rows, or `"common"` for the size of the smallest dataset.
    min_samples
        Leave out datasets and references with fewer rows, with a warning that names them; a
        small one lowers the default K for all.
    fit_on
        The rows to which `standardize` and `pca` of `preprocess` are fitted: None for each
        dataset by itself, `"references"` for all references together, applied to all.
    cache
        A folder (or a `Cache`) that keeps finished signatures, looked up by the content of the
        data and the settings; None keeps nothing.
    inference
        Also test every pair (see `permutation_test`): the result's `inference` then has p-values,
        intervals and distances corrected for noise and size, and the noise floor of each dataset.
    **options
        Options of the distance: the parameters of its class, such as `squared` of `LES`; for
        distances of spectra also those of `SignatureSettings` and `KernelSettings`, such as
        `n_eigenvalues`, `gamma` and `metric`. `kind`, `preprocess` and `nan_policy` as for
        `Dataset`, for all datasets; `group_by` (also `groupby`), a column of a table, or of the
        `obs` of AnnData, whose values are the datasets; of AnnData also `use_rep` (also
        `obsm_key`), `layer`, `var_names` and `mask_obs` as in `load`.

    Returns
    -------
    Comparison or dict
        Distances of shape (n, n), or (n, m) to m references; for a list of distances, a
        `Comparison` by the name of each.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> rng = np.random.default_rng(0)
    >>> clouds = {"line": rng.normal(size=(150, 1)), "ball": rng.normal(size=(150, 3))}
    >>> ua.compare(clouds, n_eigenvalues=20).names
    ('line', 'ball')
    >>> list(ua.compare(clouds, distance=["les", "imd-diffusion"], n_eigenvalues=20))
    ['les', 'imd-diffusion']
    """
    given = data_options(options)
    rows = collection("datasets", datasets, given)
    rows, left_out = leave_out("datasets", rows, min_samples)
    columns = None
    if references is not None:
        columns = collection("references", references, given)
        columns, others = leave_out("references", columns, min_samples)
        left_out |= others
    steps: tuple[str, ...] = ()
    done = {**shared_options(given, rows, columns), "min_samples": min_samples, "fit_on": fit_on}
    if fit_on is not None:
        rows, columns, steps = fit_preprocessing(fit_on, rows, columns)
        given["preprocess"] = steps
    seed = _check.root_seed(rng)
    everything = [*rows.values(), *(columns or {}).values()]
    methods = (
        resolve_distances(distance, options)
        if isinstance(distance, (list, tuple))
        else {"": resolve_distance(distance, options)}
    )
    require_same_options({**options, **given}, everything)
    for method in methods.values():
        require_applicable(method, rows, columns)
    kept = None if cache is None else Cache.at(cache)
    tested = _check.flag("inference", inference)

    def run(wanted: Distance) -> Comparison:
        size = None if subsample is None else common_size(subsample, everything, wanted)
        some, others = rows, columns
        if size is not None:
            some = subsample_all(rows, size, seed)
            others = columns and subsample_all(columns, size, seed)
        method = fit_distance(wanted, some, others)
        if size is None or subsample == "common":
            warn_about_lowered(wanted, method, everything)
        jobs = n_jobs
        if jobs is None and engine is None:
            items = [*some.values(), *(others or {}).values()]
            jobs = default_jobs(items, thread_safe=method.thread_safe)
        with resolve_engine(engine, jobs, progress) as at:
            sureness = None
            if tested:
                from .inference.collection import infer  # upward, at call time only

                sureness = infer(wanted, rows, columns, seed, at)
            known = {**done, "subsample": size}
            found = fill(method, some, others, seed=seed, preparation=known, engine=at, cache=kept)
            return replace(found, inference=sureness, left_out=left_out, _steps=steps)

    found = {name: run(method) for name, method in methods.items()}
    return found if isinstance(distance, (list, tuple)) else found[""]
