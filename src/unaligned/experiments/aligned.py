"""Appendix B.3: LES beside the distances that need paired rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .. import _check
from .._check import FloatArray
from ..data.shapes import torus_angles
from .base import Claim, Task
from .tori import TORI, Method, TorusExperiment, crossings, trend_claim, within

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Aligned(TorusExperiment):
    """Four tori of the same angles, so that row i is the same point of each.

    N = 100 as in the paper, to keep W positive definite; K = N, since Proposition 1 is about
    whole spectra. The angles are drawn once per trial and used for every torus and every c.
    `--quick` is the paper's setting too; it takes seconds.
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
        """The paper's four distances, and the two that need no correspondence."""
        gamma = {"gamma": self.gamma}  # Proposition 1 needs the same W + γI for all
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
        """All eigenvalues, exactly: Proposition 1 is about them, and N is small."""
        return {"n_eigenvalues": self.n_samples, "gamma": self.gamma, "solver": "exact"}

    def angles(self, task: Task) -> dict[str, FloatArray]:
        """Return the same angles for every torus."""
        rng = np.random.default_rng([task.seed, task.trial, 0])  # the same for all c
        return dict.fromkeys(TORI, torus_angles(self.n_samples, rng=rng))

    def claims(self, table: pd.DataFrame) -> list[Claim]:
        """Return Proposition 1 in every pair, the trends and the crossings."""
        names = set(table["method"])
        methods = within(self.panels, names)
        # A row per trial, c and pair, and a column per method.
        wide = table.pivot(index=["trial", "c", "pair"], columns="method", values="distance")
        claims = [_bound_claim(wide)] if names >= {"les", "log-euclidean"} else []
        claims.append(_width_claim(table, methods))
        claims += [trend_claim(table, method, "Appendix B.3") for method in methods]
        sized = names >= {"spectral-gw", "imd-diffusion"}
        return [*claims, _size_observation(wide)] if sized else claims


def _bound_claim(wide: pd.DataFrame) -> Claim:
    rounding = 1e-6  # of two logarithms, far below any distance here
    broken = int((wide["les"] - wide["log-euclidean"] > rounding).sum())
    apart = wide[wide["log-euclidean"] > rounding]
    share = apart["les"] / apart["log-euclidean"]
    expected = "LES is at most LE in every single pair (a theorem)"
    measured = f"broken in {broken} of {len(wide)} pairs"
    measured += f"; LES / LE from {share.min():.3f} to {share.max():.3f}"
    return Claim("Proposition 1", expected, measured, broken == 0)


def _width_claim(table: pd.DataFrame, methods: Sequence[Method]) -> Claim:
    lower, higher = ("log-euclidean", "affine-invariant"), ("euclidean", "spectral-gw")
    found, measured = crossings(table, methods)
    passed = None
    if set(lower + higher) <= set(found):
        passed = max(found[name] for name in lower) < min(found[name] for name in higher)
    expected = "LE and AI separate dimension from scale over a wider range of c (lower crossing) "
    return Claim("Appendix B.3", expected + "than Euclidean and Spectral GW", measured, passed)


def _size_observation(wide: pd.DataFrame) -> Claim:
    apart = wide[wide["imd-diffusion"] > 0]
    ratio = apart["spectral-gw"] / apart["imd-diffusion"]
    expected = "the values of Spectral GW are smaller than those of IMD (our approach)"
    measured = (
        f"smaller in {int((ratio < 1).sum())} of {len(apart)} pairs; median ratio "
        f"{ratio.median():.2f} (in the Frobenius norm, as the paper names none; it compares with "
        "its Fig. 1, N = 3000)"
    )
    return Claim("Appendix B.3", expected, measured, None)
