"""What is varied in the experiment on sensitivity: the data, and the recipe of LES."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._check import FloatArray

FAR = 100.0  # outliers are drawn from a cube of this half width; the tori reach to 14


@dataclass(frozen=True)
class Condition:
    """One setting of everything that may move LES; the defaults are the project's.

    Attributes
    ----------
    noise
        Standard deviation of normal noise on every coordinate.
    outliers
        The share of rows that is replaced by points far away.
    n_samples
        Points of each torus.
    n_eigenvalues, gamma, bandwidth_factor, robust
        Options of `ua.signature`.
    """

    noise: float = 0.0
    outliers: float = 0.0
    n_samples: int = 3000
    n_eigenvalues: int = 200
    gamma: float = 1e-8
    bandwidth_factor: float = 2.0
    robust: bool = False

    def name(self, default: Condition) -> str:
        """Return what differs from the default, such as `gamma=1e-06, noise=0.1`.

        Examples
        --------
        >>> Condition(noise=0.1, gamma=1e-6).name(Condition())
        'noise=0.1, gamma=1e-06'
        """
        changed = {
            key: value for key, value in vars(self).items() if value != getattr(default, key)
        }
        return ", ".join(f"{key}={value:g}" for key, value in changed.items()) or "default"

    @property
    def data(self) -> tuple[float, float, int]:
        """What decides the points."""
        return self.noise, self.outliers, self.n_samples

    @property
    def source(self) -> tuple[Any, ...]:
        """What decides the spectrum; K and γ are applied to it afterwards."""
        return *self.data, self.bandwidth_factor, self.robust

    def applied_to(self, points: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return the points with noise and outliers; without either, as they are."""
        points = points[: self.n_samples]
        if self.noise:
            points = points + rng.normal(scale=self.noise, size=points.shape)
        count = round(self.outliers * len(points))
        if count:
            far = rng.uniform(-FAR, FAR, size=(count, points.shape[1]))
            points = np.vstack([points[count:], far])
        return points


def variations(default: Condition, factors: Mapping[str, Iterable[Any]]) -> list[Condition]:
    """Return the default with each factor at each of its levels, the default's own left out.

    Examples
    --------
    >>> found = variations(Condition(), {"noise": (0.0, 0.1), "robust": (True,)})
    >>> [condition.name(Condition()) for condition in found]
    ['noise=0.1', 'robust=1']
    """
    return [
        replace(default, **{factor: level})
        for factor, levels in factors.items()
        for level in levels
        if level != getattr(default, factor)
    ]
