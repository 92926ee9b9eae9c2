"""The distances by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from .. import _check
from ..data.dataset import Dataset
from ..errors import InputError, NumericalError
from .base import Distance
from .bottleneck import BottleneckH0, BottleneckH1, BottleneckH2
from .cka import CKA
from .crosslid import CrossLID
from .geometry_score import GeometryScore
from .imd import IMD, IMDDiffusion
from .les import LES
from .moments import MMD, Frechet
from .mtd import MTD
from .netlsd import NetLSD
from .shape_dna import ShapeDNA
from .spd import AffineInvariant, Euclidean, LogEuclidean, SpectralGW
from .transport import GromovWasserstein, Wasserstein

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class CallableDistance(Distance):
    """Any function of two arrays, taken as it is.

    Nothing is assumed about it: not symmetry, and not d(A, A) = 0.
    """

    name: ClassVar[str] = "callable"
    summary: ClassVar[str] = "a function of two arrays"
    cost: ClassVar[str] = "the function, once per ordered pair"
    symmetric: ClassVar[bool] = False

    function: Callable[[Any, Any], float]

    def describe(self, dataset: Dataset, seed: int) -> Any:
        """Return the preprocessed values."""
        return dataset.prepared()

    def compare(self, first: Any, second: Any) -> float:
        """Return what the function returns, as a float."""
        value = self.function(first, second)
        if np.size(value) != 1 or np.asarray(value).dtype.kind not in "biuf" or np.isnan(value):
            raise NumericalError(
                f"The distance function returned {value!r}; it must return one number."
            )
        return float(np.asarray(value).item())


DistanceLike: TypeAlias = str | Distance | Callable[..., float]

DISTANCES: dict[str, type[Distance]] = {
    cls.name: cls
    for cls in (
        LES,
        IMDDiffusion,
        LogEuclidean,
        AffineInvariant,
        Euclidean,
        SpectralGW,
        IMD,
        NetLSD,
        ShapeDNA,
        BottleneckH0,
        BottleneckH1,
        BottleneckH2,
        MTD,
        GeometryScore,
        GromovWasserstein,
        Wasserstein,
        MMD,
        Frechet,
        CKA,
        CrossLID,
    )
}

# What others call them; only to suggest ours.
ALIASES = {
    "fid": "frechet",
    "emd": "wasserstein",
    "w2": "wasserstein",
    "gw": "gromov-wasserstein",
    "specgw": "spectral-gw",
    "lid": "crosslid",
    "heat": "netlsd",
    "rtd": "mtd",
}


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
            "descriptor": cls.is_descriptor,
            "kinds": ", ".join(cls.kinds),
            "extra": cls.extra or "",
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
    name = _check.one_of("distance", distance, DISTANCES, ALIASES)
    return DISTANCES[name].from_options(dict(options))
