"""The distances by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .. import _check
from ..data.dataset import Dataset
from ..errors import InputError, NumericalError, required
from ..operators.kernel import METRICS
from .base import Distance

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class CallableDistance(Distance):
    """A function of two arrays; neither symmetry nor d(A, A) = 0 is assumed."""

    name = "callable"
    summary = "a function of two arrays"
    cost = "the function, once per ordered pair"
    symmetric = False
    thread_safe = False

    function: Callable[[Any, Any], float]

    def describe(self, dataset: Dataset, seed: int) -> Any:
        """Return the preprocessed values."""
        return dataset.prepared()

    def compare(self, first: Any, second: Any) -> float:
        """Return the value of the function as a float."""
        value = self.function(first, second)
        if np.size(value) != 1 or np.asarray(value).dtype.kind not in "biuf" or np.isnan(value):
            rule = "it must return one number"
            raise NumericalError(f"The distance function returned {value!r}; {rule}.")
        return float(np.asarray(value).item())


DistanceLike: TypeAlias = str | Distance | Callable[..., float]

# A new distance is one line: its name, its module and its class.
_CLASSES = {
    "les": ("les", "LES"),
    "imd-diffusion": ("heat_trace", "IMDDiffusion"),
    "log-euclidean": ("spd", "LogEuclidean"),
    "affine-invariant": ("spd", "AffineInvariant"),
    "euclidean": ("spd", "Euclidean"),
    "spectral-gw": ("spd", "SpectralGW"),
    "imd": ("heat_trace", "IMD"),
    "netlsd": ("heat_trace", "NetLSD"),
    "shape-dna": ("shape_dna", "ShapeDNA"),
    "bottleneck-h0": ("bottleneck", "BottleneckH0"),
    "bottleneck-h1": ("bottleneck", "BottleneckH1"),
    "bottleneck-h2": ("bottleneck", "BottleneckH2"),
    "mtd": ("mtd", "MTD"),
    "geometry-score": ("geometry_score", "GeometryScore"),
    "gromov-wasserstein": ("gromov_wasserstein", "GromovWasserstein"),
    "wasserstein": ("wasserstein", "Wasserstein"),
    "mmd": ("mmd", "MMD"),
    "edistance": ("edistance", "EDistance"),
    "frechet": ("wasserstein", "Frechet"),
    "cka": ("cka", "CKA"),
    "crosslid": ("crosslid", "CrossLID"),
}


class _Registry(Mapping[str, type[Distance]]):
    """The class of each distance by name; its module is imported when the class is read."""

    def __getitem__(self, name: str) -> type[Distance]:
        module, class_name = _CLASSES[name]
        cls: type[Distance] = getattr(import_module(f".{module}", __package__), class_name)
        return cls

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASSES)

    def __len__(self) -> int:
        return len(_CLASSES)


DISTANCES = _Registry()

# Other names of the same distances, to suggest ours.
ALIASES = {
    "fid": "frechet",
    "emd": "wasserstein",
    "energy": "edistance",
    "e-distance": "edistance",
    "w2": "wasserstein",
    "gw": "gromov-wasserstein",
    "specgw": "spectral-gw",
    "lid": "crosslid",
    "heat": "netlsd",
    "rtd": "mtd",
}


def available() -> pd.DataFrame:
    """Return a table of the distances: what each needs and what it costs.

    Returns
    -------
    pandas.DataFrame
        One row per distance, by name, with columns `what`, `same features`, `paired rows`,
        `symmetric`, `descriptor`, `kinds`, `extra` (the packages to install) and `cost`.

    Examples
    --------
    >>> import unaligned as ua
    >>> bool(ua.available().loc["les", "same features"])
    False
    """
    required("pandas", "pandas", "available(), unlike `unaligned distances`,")
    import pandas as pd

    return pd.DataFrame.from_dict(descriptions(), orient="index")


def descriptions() -> dict[str, dict[str, Any]]:
    """Return what each distance needs and what it costs, by name."""
    return {
        name: {
            "what": cls.summary,
            "same features": cls.same_features,
            "paired rows": cls.paired_rows,
            "symmetric": cls.symmetric,
            "descriptor": cls.is_descriptor,
            "kinds": ", ".join(cls.kinds),
            "extra": cls.extra or "",
            "cost": cls.cost,
        }
        for name, cls in DISTANCES.items()
    }


def resolve_distances(
    distances: Sequence[DistanceLike], options: Mapping[str, Any]
) -> dict[str, Distance]:
    """Return the distances by name, each with those of the options that it has.

    At least one distance must have each option. A function has its own name.
    """
    if not distances:
        raise InputError("distance=[] names no distance. Give at least one, such as ['les'].")
    own: dict[str, tuple[DistanceLike, tuple[str, ...]]] = {}
    for distance in distances:
        if isinstance(distance, str):
            name = _check.one_of("distance", distance, DISTANCES, ALIASES)
            known = _check.option_names(DISTANCES[name])
        elif isinstance(distance, type) and issubclass(distance, Distance):
            name, known = distance.name, _check.option_names(distance)
        else:  # which has its settings, or none
            own_name = getattr(distance, "name", None)
            name = str(own_name or getattr(distance, "__name__", distance))
            known = ()
        if name in own:
            raise InputError(f"distance: {name!r} is given twice. Give every distance once.")
        own[name] = distance, known
    everything = {option for _, known in own.values() for option in known}
    _check.known_options(" or ".join(own), options, everything)
    return {
        name: resolve_distance(distance, {key: options[key] for key in options if key in known})
        for name, (distance, known) in own.items()
    }


def resolve_distance(distance: DistanceLike, options: Mapping[str, Any]) -> Distance:
    """Return the distance of this name with these options."""
    if isinstance(distance, Distance):
        if options:
            own = "a distance object, which has its own settings. Give the distance by name"
            raise InputError(f"options {sorted(options)} cannot be combined with {own}.")
        return distance
    if isinstance(distance, type) and issubclass(distance, Distance):
        return distance.from_options(dict(options))
    if callable(distance):
        return CallableDistance.from_options({"function": distance, **options})
    name = _check.one_of("distance", distance, DISTANCES, ALIASES)
    metric = options.get("metric")
    if isinstance(metric, str) and metric in {*DISTANCES} - {*METRICS}:
        raise InputError(
            f"metric={metric!r} is a distance between datasets: pass distance={metric!r}. The "
            "metric is between rows."
        )
    return DISTANCES[name].from_options(dict(options))
