"""signature(), distance(), compare(): the public verbs, and the registry of distances."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from . import _check, _settings
from ._check import RNGLike
from .data.dataset import Dataset
from .data.preprocess import parse_steps
from .errors import (
    InputError,
    InputTypeError,
    NotApplicableError,
    RecipeMismatchError,
    SampleSizeWarning,
)
from .metrics.aligned import AffineInvariant, Euclidean, LogEuclidean, SpectralGW
from .metrics.base import Distance, SignatureSettings, SpectralDistance, compute_signature
from .metrics.callable import CallableDistance
from .metrics.imd import IMDDiffusion
from .metrics.les import LES
from .result import Comparison, fill
from .spectra.signature import Signature

if TYPE_CHECKING:
    import pandas as pd

DataLike: TypeAlias = Any
DistanceLike: TypeAlias = str | Distance | Callable[..., float]

DISTANCES: dict[str, type[Distance]] = {
    cls.name: cls
    for cls in (LES, IMDDiffusion, LogEuclidean, AffineInvariant, Euclidean, SpectralGW)
}

_SIZE_RATIO = 4.0


def signature(
    data: DataLike,
    *,
    n_eigenvalues: int | None = None,
    gamma: float | str = 1e-8,
    solver: Any = "auto",
    tol: float = 1e-4,
    rng: RNGLike = None,
    **options: Any,
) -> Signature:
    """Return the log-Euclidean signature of one dataset.

    Compute it once, compare it with any other signature of the same recipe.

    Parameters
    ----------
    data
        Anything array-like, rows are samples; or a `Dataset` of any kind.
    n_eigenvalues
        K; None means min(200, N).
    gamma
        γ of log(λ + γ): what lies below counts as noise. `"auto"` reads it off the spectrum.
    solver
        `"auto"`, `"exact"`, `"krylov"`, `"landmarks"`, `"nystrom"`, or a solver with its own
        settings.
    tol
        The wanted 2-norm of the error of the K values.
    rng
        Seed or generator; None always gives the same values for the same data.
    **options
        `sketch_size`, `bandwidth`, `bandwidth_factor`, `metric`, `n_neighbors`, `robust`,
        `memory_limit`, `preprocess`, `nan_policy`.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(300, 5))
    >>> signature(points, n_eigenvalues=50).values.shape
    (50,)
    """
    explicit = {"n_eigenvalues": n_eigenvalues, "gamma": gamma, "solver": solver, "tol": tol}
    dataset, settings = prepare(data, {**explicit, **options})
    return compute_signature(dataset, settings, _check.root_seed(rng))


def prepare(data: DataLike, options: Mapping[str, Any]) -> tuple[Dataset, SignatureSettings]:
    """Return the dataset and the settings that flat options of `signature` describe."""
    rest = dict(options)
    dataset = _as_dataset(data, None, _data_options(rest))
    if isinstance(dataset, Signature):
        raise InputTypeError("data is a Signature already; there is nothing to compute.")
    _check.known_options("signature()", rest, _settings.option_names(SignatureSettings))
    return dataset, _settings.from_options(SignatureSettings, rest)


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
        Anything array-like, a `Dataset`, or a `Signature` computed before.
    distance
        A name (see `unaligned distances`), or a callable of two arrays.
    rng
        Seed or generator; None always gives the same value for the same data.
    **options
        Options of the distance, such as `n_eigenvalues`, `gamma`, `solver`, `squared`; and
        `preprocess`, `nan_policy`, `subsample` as in `compare`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> small, large = rng.normal(size=(200, 3)), rng.normal(size=(300, 8))
    >>> distance(small, small)
    0.0
    >>> distance(small, large) > 1
    True
    """
    first, second = _own_name(a) or "a", _own_name(b) or "b"
    if first == second:
        first, second = "a", "b"
    pair = {first: a, second: b}
    result = compare(pair, None, distance=distance, rng=rng, progress=False, **options)
    return float(result.distances[0, 1])


def compare(
    datasets: Mapping[str, DataLike] | Sequence[DataLike],
    references: Mapping[str, DataLike] | Sequence[DataLike] | None = None,
    *,
    distance: DistanceLike = "les",
    n_jobs: int | None = None,
    rng: RNGLike = None,
    progress: bool | None = None,
    subsample: int | str | None = None,
    **options: Any,
) -> Comparison:
    """Return all distances within one collection, or between two.

    Parameters
    ----------
    datasets
        A dict of name -> data, or a list; each anything that `distance` takes.
    references
        A second collection: then the result is rectangular, datasets × references.
    distance
        A name, a `Distance` with its settings, or a callable of two arrays.
    n_jobs
        How many datasets at a time; None is 1, -1 all cores. BLAS threads are shared out.
    rng
        Seed or generator; None always gives the same values for the same data.
    progress
        Show a bar; None shows one only on a terminal.
    subsample
        Compare at a common size, which removes the bias of unequal sample sizes: a number of
        rows, or `"common"` for the size of the smallest dataset.
    **options
        Options of the distance; `preprocess` and `nan_policy` for all datasets.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clouds = {"line": rng.normal(size=(150, 1)), "ball": rng.normal(size=(150, 3))}
    >>> compare(clouds, n_eigenvalues=20).names
    ('line', 'ball')
    """
    data_options = _data_options(options)
    rows = _collection("datasets", datasets, data_options)
    columns = None if references is None else _collection("references", references, data_options)
    seed = _check.root_seed(rng)
    everything = [*rows.values(), *(columns or {}).values()]
    method = resolve_distance(distance, options)
    _require_as_asked({**options, **data_options}, everything)
    size = None if subsample is None else _common_size(subsample, everything, method)
    if size is not None:
        rows = _at_size(rows, size, seed)
        columns = columns and _at_size(columns, size, seed)
        everything = [*rows.values(), *(columns or {}).values()]
    method = method.fit(everything)
    _require_applicable(method, rows, columns)
    _warn_about_sizes(method, everything)
    preparation = {**data_options, "subsample": size}
    return fill(
        method, rows, columns, seed=seed, preparation=preparation, n_jobs=n_jobs, progress=progress
    )


def available() -> pd.DataFrame:
    """Return a table of the distances: what each needs and what it costs.

    Examples
    --------
    >>> bool(available().loc["les", "same features"])
    False
    """
    import pandas as pd

    rows = {
        name: {
            "what": cls.summary,
            "same features": cls.same_features,
            "paired rows": cls.paired_rows,
            "symmetric": cls.symmetric,
            "cost": cls.cost,
        }
        for name, cls in DISTANCES.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def resolve_distance(distance: DistanceLike, options: Mapping[str, Any]) -> Distance:
    """Return the distance of this name with these options."""
    if isinstance(distance, Distance):
        if options:
            raise InputError(
                f"options {sorted(options)} cannot be combined with a distance object that has "
                "its own settings. Give the distance by name."
            )
        return distance
    if isinstance(distance, type) and issubclass(distance, Distance):
        return distance.from_options(dict(options))
    if callable(distance):
        return CallableDistance.from_options({"function": distance, **options})
    name = _check.one_of("distance", distance, DISTANCES)
    return DISTANCES[name].from_options(dict(options))


def collect(
    datasets: Mapping[str, DataLike], method: Distance, members: Sequence[Any], old: Comparison
) -> dict[str, Dataset | Signature]:
    """Return datasets that join a comparison: prepared as its members were, and checked."""
    signatures = [item for item in members if isinstance(item, Signature)]
    preparation = dict(old.preparation)
    size = preparation.pop("subsample", None)
    if preparation.get("preprocess") is None and signatures:
        preparation["preprocess"] = signatures[0].recipe.preprocess or None
    named = _collection("datasets", datasets, preparation)
    if size is not None:
        _common_size(size, list(named.values()), method)
        named = _at_size(named, size, old.seed)
    method.fit(list(named.values()))
    _require_applicable(method, named, None)
    _warn_about_sizes(method, [*signatures, *named.values()], stacklevel=4)
    return named


def _own_name(data: DataLike) -> str | None:
    return data.name if isinstance(data, (Dataset, Signature)) else None


def _collection(
    argument: str, data: Any, data_options: dict[str, Any]
) -> dict[str, Dataset | Signature]:
    """Return name -> Dataset or Signature, names being unique."""
    if isinstance(data, Mapping):
        items = [(name, value) for name, value in data.items()]
    elif (
        isinstance(data, (str, bytes)) or not isinstance(data, Iterable) or hasattr(data, "shape")
    ):
        raise InputTypeError(
            f"{argument} must be a dict of name -> data or a list of datasets, not "
            f"{_check.shape_of(data)}. For two datasets write [a, b]."
        )
    else:
        items = [(_own_name(value) or str(i), value) for i, value in enumerate(data)]
    if not items:
        raise InputError(f"{argument} is empty. Give at least one dataset.")
    named: dict[str, Dataset | Signature] = {}
    for name, value in items:
        if not isinstance(name, str):
            raise InputTypeError(f"{argument}: the name {name!r} must be text.")
        if name in named:
            raise InputError(f"{argument}: the name {name!r} occurs twice. Names must be unique.")
        named[name] = _as_dataset(value, name, data_options)
    return named


def _as_dataset(
    data: DataLike, name: str | None, data_options: dict[str, Any]
) -> Dataset | Signature:
    if isinstance(data, Signature):
        return data
    if isinstance(data, Dataset):
        steps = data_options["preprocess"]
        if steps and data.preprocess and steps != data.preprocess:
            raise InputError(
                f"{data.label} has its own preprocessing {list(data.preprocess)}; "
                "leave out preprocess=, or build the Dataset without it."
            )
        return data.with_options(name=name, **data_options)
    given = {key: value for key, value in data_options.items() if value is not None}
    return Dataset(data, name=name, **given)


def _data_options(options: dict[str, Any]) -> dict[str, Any]:
    """Take out of `options` those that belong to the datasets."""
    steps = options.pop("preprocess", None)
    return {
        "preprocess": None if steps is None else parse_steps(steps),
        "nan_policy": options.pop("nan_policy", None),
    }


def _require_as_asked(options: Mapping[str, Any], items: Sequence[Dataset | Signature]) -> None:
    """Refuse options that a signature given as data was not made with; it cannot be remade."""
    for item in items:
        if not isinstance(item, Signature):
            continue
        fields = ["gamma", "preprocess", "robust"]
        if item.sigma_squared is not None:
            fields += ["bandwidth", "bandwidth_factor", "n_neighbors"]
        made = {name: getattr(item.recipe, name) for name in fields}
        asked = {name: options[name] for name in made if options.get(name) not in (None, "auto")}
        for name, value in asked.items():
            if value != made[name]:
                raise RecipeMismatchError(
                    f"{name}={value!r} was asked for, and a signature given was made with "
                    f"{made[name]!r}. Leave {name} out, or give the data instead."
                )


def _common_size(
    subsample: int | str, items: Sequence[Dataset | Signature], method: Distance
) -> int:
    if method.paired_rows:
        raise NotApplicableError(
            f"subsample={subsample!r} draws rows of each dataset by itself, and distance "
            f"{method.name!r} compares row i with row i. Take the same rows of all datasets first."
        )
    if any(isinstance(item, Signature) for item in items):
        raise InputError("subsample needs the data itself; a Signature cannot be subsampled.")
    smallest = min(items, key=lambda item: item.n_samples)
    if subsample == "common":
        return smallest.n_samples
    if isinstance(subsample, str):
        raise InputError(f"subsample={subsample!r} must be a number of rows or 'common'.")
    size = _check.positive_int("subsample", subsample, minimum=2)
    if size > smallest.n_samples:
        raise InputError(
            f"subsample={size} is more than dataset {smallest.name!r} has, "
            f"{smallest.n_samples} rows. Lower it, or use subsample='common'."
        )
    return size


def _at_size(
    items: Mapping[str, Dataset | Signature], size: int, seed: int
) -> dict[str, Dataset | Signature]:
    return {
        name: item.subsample(size, item.generator(seed))
        if isinstance(item, Dataset) and item.n_samples > size
        else item
        for name, item in items.items()
    }


def _require_applicable(
    method: Distance,
    rows: Mapping[str, Dataset | Signature],
    columns: Mapping[str, Dataset | Signature] | None,
) -> None:
    for first in rows.values():
        for second in (rows if columns is None else columns).values():
            if isinstance(first, Dataset) and isinstance(second, Dataset):
                reason = method.objection(first, second)
            else:
                spectral = isinstance(method, SpectralDistance)
                reason = None if spectral else "it needs the data, and a Signature was given"
            if reason:
                raise NotApplicableError(
                    f"distance {method.name!r} does not apply: {reason}. "
                    "'les' needs neither shared features nor paired rows."
                )


def _warn_about_sizes(
    method: Distance, items: Sequence[Dataset | Signature], *, stacklevel: int = 3
) -> None:
    """Warn where LES is biased: the same torus at N=500 and N=4000 is 0.6 apart."""
    if not isinstance(method, SpectralDistance):
        return
    sizes = np.array([item.n_samples for item in items])
    if sizes.max() > _SIZE_RATIO * sizes.min():
        small, large = items[int(sizes.argmin())], items[int(sizes.argmax())]
        warnings.warn(
            f"Sample sizes differ more than fourfold: {small.name!r} has {sizes.min()} rows, "
            f"{large.name!r} has {sizes.max()}. Part of their distance comes from size alone. "
            "Pass subsample='common' to compare at one size.",
            SampleSizeWarning,
            stacklevel=stacklevel,
        )
