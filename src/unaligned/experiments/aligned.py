"""Appendix B.3: LES beside the distances that need to know which point is which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from .. import _check
from .._check import FloatArray
from ..data.shapes import torus_angles
from .base import Claim, Task
from .radii import TORI, Method, RadiiExperiment, crossings, trend_claim, within

if TYPE_CHECKING:
    import pandas as pd

# Rounding of two logarithms, far below any distance here.
_ROUNDING = 1e-6
_WIDE, _NARROW = ("log-euclidean", "affine-invariant"), ("euclidean", "spectral-gw")


@dataclass(frozen=True)
class Aligned(RadiiExperiment):
    """Four tori of the same angles, so that row i is the same point of each.

    N = 100 as in the paper, to keep W positive definite; K = N, since Proposition 1 is about
    whole spectra. The angles are drawn once per trial and serve every torus and every c.
    `--quick` is the paper's setting too: it takes seconds.
    """

    name: ClassVar[str] = "aligned"
    title: ClassVar[str] = "Tori with known correspondence (Appendix B.3)"
    quick: ClassVar[dict[str, Any]] = {"n_trials": 10}
    full: ClassVar[dict[str, Any]] = {"n_trials": 10}

    n_samples: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        _check.positive_int("n_samples", self.n_samples, minimum=2)

    @property
    def panels(self) -> tuple[Method, ...]:
        """The panels: the paper's four, and the two that need no correspondence."""
        gamma = {"gamma": self.gamma}  # the same W + γI for all, or Proposition 1 says nothing
        return (
            Method("LE", "log-euclidean", options=gamma),
            Method("AI", "affine-invariant", options=gamma),
            Method("LES", "les", spectral=True),
            Method("Euclidean", "euclidean", options=gamma),
            Method("Spectral GW", "spectral-gw", options=gamma),
            Method("IMD (our approach)", "imd-diffusion", spectral=True),
        )

    @property
    def recipe(self) -> dict[str, Any]:
        """All eigenvalues, and exact ones: Proposition 1 is about them, and N is small."""
        return {"n_eigenvalues": self.n_samples, "gamma": self.gamma, "solver": "exact"}

    def angles(self, task: Task) -> dict[str, FloatArray]:
        """Return the same angles for every torus, so that row i is the same point of each."""
        return dict.fromkeys(TORI, torus_angles(self.n_samples, rng=task.trial_rng()))

    def claims(self, table: pd.DataFrame) -> list[Claim]:
        """Return Proposition 1 in every pair, the trends and the crossings."""
        there = set(table["method"])
        methods = within(self.panels, there)
        claims = [_bound_claim(table)] if there >= {"les", "log-euclidean"} else []
        claims.append(_width_claim(table, methods))
        claims += [trend_claim(table, method, "Appendix B.3") for method in methods]
        if there >= {"spectral-gw", "imd-diffusion"}:
            claims.append(_size_observation(table))
        return claims


def _side_by_side(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row per trial, c and pair, and a column per method."""
    return table.pivot(index=["trial", "c", "pair"], columns="method", values="distance")


def _bound_claim(table: pd.DataFrame) -> Claim:
    wide = _side_by_side(table)
    excess = wide["les"] - wide["log-euclidean"]
    broken = int((excess > _ROUNDING).sum())
    apart = wide[wide["log-euclidean"] > _ROUNDING]
    share = apart["les"] / apart["log-euclidean"]
    return Claim(
        "Proposition 1",
        "LES is at most LE in every single pair (a theorem)",
        f"broken in {broken} of {len(wide)} pairs; LES / LE from {share.min():.3f} to "
        f"{share.max():.3f}",
        broken == 0,
    )


def _width_claim(table: pd.DataFrame, methods: Sequence[Method]) -> Claim:
    found, told = crossings(table, methods)
    complete = set(_WIDE + _NARROW) <= set(found)
    return Claim(
        "Appendix B.3",
        "LE and AI tell dimension from scale over a wider range of c (lower crossing) than "
        "Euclidean and Spectral GW",
        told,
        max(found[name] for name in _WIDE) < min(found[name] for name in _NARROW)
        if complete
        else None,
    )


def _size_observation(table: pd.DataFrame) -> Claim:
    wide = _side_by_side(table)
    apart = wide[wide["imd-diffusion"] > 0]
    smaller = int((apart["spectral-gw"] < apart["imd-diffusion"]).sum())
    ratio = apart["spectral-gw"] / apart["imd-diffusion"]
    return Claim(
        "Appendix B.3",
        "the values of Spectral GW are smaller than those of IMD (our approach)",
        f"smaller in {smaller} of {len(apart)} pairs; median ratio {ratio.median():.2f} "
        "(in the Frobenius norm, as the paper names none; it compares with its Fig. 1, N = 3000)",
        None,
    )
