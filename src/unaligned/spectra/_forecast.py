"""How many landmarks will it take? An answer from the residuals seen so far."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass
class Forecast:
    r"""Residuals by rank, and where they lead.

    Kernels of smooth sets have residuals that fall like :math:`\exp(-B r^p)`, p being about one
    over the dimension. The last two halvings of the rank give B and p.

    Examples
    --------
    >>> forecast = Forecast()
    >>> for rank in range(10, 130, 10):
    ...     forecast.note(rank, float(np.exp(-0.1 * rank)))
    >>> abs(forecast.rank_for(np.exp(-0.1 * 300)) - 300) < 10
    True
    """

    ranks: list[int] = field(default_factory=list)
    logs: list[float] = field(default_factory=list)

    def note(self, rank: int, residual: float) -> None:
        """Remember one residual."""
        self.ranks.append(rank)
        self.logs.append(float(np.log(max(residual, np.finfo(np.float64).tiny))))

    def rank_for(self, goal: float) -> float:
        """Return the rank at which the residual is expected to reach `goal`; inf if never."""
        rank = self.ranks[-1]
        quarter, half, now = np.interp([rank / 4, rank / 2, rank], self.ranks, self.logs)
        ahead = now - np.log(max(goal, np.finfo(np.float64).tiny))
        if ahead <= 0:
            return float(rank)
        first, second = quarter - half, half - now
        if second <= 0:
            return float("inf")
        power = float(np.clip(np.log2(second / first), 0.05, 1.0)) if first > 0 else 1.0
        growth = 1.0 + ahead * (1.0 - 2.0**-power) / second
        return float(rank * min(growth ** (1.0 / power), 1e9))
