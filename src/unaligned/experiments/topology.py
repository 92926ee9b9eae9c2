"""Appendix B.2: LES beside bottleneck distances of persistence diagrams."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from .. import _check
from ..defaults import N_EIGENVALUES
from .base import Claim
from .tori import Method, TorusExperiment, crossings, trend_claim, within

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Topology(TorusExperiment):
    """Four tori sampled independently, by LES and by H0, H1 and H2 bottleneck distances.

    `--full` is the paper's N = 1000 and 10 trials. `--quick` halves N: H1 and H2 of 1000 points
    take 5 and 10 s per torus.
    """

    name: ClassVar[str] = "topology"
    title: ClassVar[str] = "Tori by persistence diagrams (Appendix B.2)"
    quick: ClassVar[dict[str, Any]] = {"n_trials": 3, "n_samples": 500}
    full: ClassVar[dict[str, Any]] = {"n_trials": 10}

    n_samples: int = 1000
    n_eigenvalues: int = N_EIGENVALUES

    def __post_init__(self) -> None:
        super().__post_init__()
        _check.positive_int("n_samples", self.n_samples, minimum=self.n_eigenvalues)

    @property
    def panels(self) -> tuple[Method, ...]:
        """The panels of the paper's figure."""
        return (
            Method("LES", "les", spectral=True),
            Method("H₀ bottleneck", "bottleneck-h0"),
            Method("H₁ bottleneck", "bottleneck-h1"),
            Method("H₂ bottleneck", "bottleneck-h2"),
        )

    @property
    def recipe(self) -> dict[str, Any]:
        """K and γ, as for Fig. 1."""
        return {"n_eigenvalues": self.n_eigenvalues, "gamma": self.gamma}

    def claims(self, table: pd.DataFrame) -> list[Claim]:
        """Return what the diagrams capture, and over which range of c."""
        methods = within(self.panels, table["method"])
        found, measured = crossings(table, methods)
        les = found.get("les")
        others = [value for name, value in found.items() if name != "les"]
        expected = "LES distinguishes between dimension and scale for a wider range of c (lower "
        expected += "crossing) than the bottleneck distances"
        passed = None if les is None or not others else les < min(others)
        captured = ("bottleneck-h0", "bottleneck-h1")
        claims = [_capture_claim(table, m) for m in methods if m.distance in captured]
        claims.append(Claim("Appendix B.2", expected, measured, passed))
        for method in methods:
            trend = trend_claim(table, method, "Section 5.1")
            # The paper claims all four trends for LES only.
            ours = replace(trend, source="this project", passed=None)
            claims.append(trend if method.distance == "les" else ours)
        return claims


def _capture_claim(table: pd.DataFrame, method: Method) -> Claim:
    """Return the effect of a change of dimension; the paper gives no number."""
    rows = table[(table["method"] == method.distance) & (table["c"] == 1.0)]
    means = rows.groupby("pair")["distance"].mean()
    measured = "c = 1 was not run"
    if len(means):
        measured = f"d(T2,T3) is {means['T2,T3'] / means['T2,T2Sc']:.1f} times two samples of T2"
    expected = f"{method.label}: captures meaningful differences between the tori"
    return Claim("Appendix B.2", expected, measured, None)
