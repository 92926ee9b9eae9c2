"""diagnose(): the decay of a spectrum, and the γ and K it suggests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _check
from ._check import FloatArray, RNGLike
from ._format import text_table
from .comparison import prepare
from .data.dataset import Dataset
from .defaults import BANDWIDTH_FACTOR, GAMMA
from .errors import required
from .inputs import DataLike
from .operators.kernel import KernelSettings
from .spectra.decay import (
    Knee,
    find_knee,
    float_floor,
    gamma_by_rule,
    suggest_count,
    suggest_gamma,
)
from .spectra.pipeline import SignatureSettings, compute_signature, default_eigenvalues
from .spectra.signature import Signature

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

GAMMAS = (1e-10, GAMMA, 1e-6, 1e-5, 1e-4)  # the range of the paper
FACTORS = (1.0, 1.5, BANDWIDTH_FACTOR, 3.0, 4.0)  # of σ² over the median


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """The decay of a spectrum, and the γ and K it suggests.

    Attributes
    ----------
    signature
        The signature.
    above_gamma, above_floor
        Number of eigenvalues above γ, and above the rounding floor.
    floor
        Eigenvalues below it are rounding error.
    knee
        Where the ratios λᵢ/λᵢ₊₁ drop, or None.
    gamma, gamma_reason
        A suggested γ, and why.
    n_eigenvalues, n_eigenvalues_reason
        A suggested K, and why.
    sensitivity
        LES to the second dataset as γ, K and σ² vary, one row per variation; or None.
    """

    signature: Signature
    above_gamma: int
    above_floor: int
    floor: float
    knee: Knee | None
    gamma: float
    gamma_reason: str
    n_eigenvalues: int
    n_eigenvalues_reason: str
    sensitivity: pd.DataFrame | None = None

    @property
    def ratios(self) -> FloatArray:
        """The ratios λᵢ/λᵢ₊₁, (K - 1,); inf where an eigenvalue is 0."""
        eigenvalues = self.signature.eigenvalues
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios: FloatArray = eigenvalues[:-1] / eigenvalues[1:]
        return ratios

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the spectrum with γ, the float floor and the knee.

        Parameters
        ----------
        ax
            Where to draw; None makes a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes drawn on.
        """
        from . import figures  # upward, at call time only

        return figures.diagnosis(self, ax=ax)

    def __str__(self) -> str:
        s = self.signature
        lines = [
            repr(s),
            f"  λ₁ = {s.eigenvalues[0]:.3g}, λ_K = {s.eigenvalues[-1]:.3g}",
            f"  above γ={s.recipe.gamma:.0e}: {self.above_gamma} of {s.n_eigenvalues}; "
            f"above the float floor {self.floor:.0e}: {self.above_floor}",
            f"  suggested gamma={self.gamma:.0e}: {self.gamma_reason}",
            f"  suggested n_eigenvalues={self.n_eigenvalues}: {self.n_eigenvalues_reason}",
        ]
        if self.sensitivity is not None:
            table = self.sensitivity.assign(value=self.sensitivity["value"].map("{:g}".format))
            rows = table.to_numpy().tolist()
            lines += [
                "  LES as settings vary:",
                text_table([*map(str, table)], rows, digits=".2f"),
            ]
        return "\n".join(lines)


def diagnose(
    data: DataLike, other: DataLike | None = None, *, rng: RNGLike = None, **options: Any
) -> Diagnosis:
    """Return how the spectrum of a dataset decays, and the γ and K this suggests.

    Parameters
    ----------
    data
        As in `signature`.
    other
        A second dataset: also tabulate LES between the two as γ, K and σ² vary.
    rng
        Seed or generator.
    **options
        As in `signature`.

    Returns
    -------
    Diagnosis
        The signature, where its decay slows down, and the suggested γ and K with reasons.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> points = np.random.default_rng(0).normal(size=(200, 3))
    >>> ua.diagnose(points).above_gamma > 50
    True
    """
    if other is not None:
        required("pandas", "pandas", "The table of diagnose(data, other)")
    dataset, settings = prepare(data, options)
    seed = _check.root_seed(rng)
    signature = compute_signature(dataset, settings, seed)
    eigenvalues, n = signature.eigenvalues, signature.n_samples
    floor = float_floor(n, float(eigenvalues[0]))
    gamma, gamma_reason = suggest_gamma(eigenvalues, n)
    count, count_reason = suggest_count(eigenvalues, gamma)
    table = None
    if other is not None:
        table = _sensitivity(dataset, prepare(other, options)[0], settings, seed)
    return Diagnosis(
        signature=signature,
        above_gamma=int((eigenvalues > signature.recipe.gamma).sum()),
        above_floor=int((eigenvalues > floor).sum()),
        floor=floor,
        knee=find_knee(eigenvalues, floor),
        gamma=gamma,
        gamma_reason=gamma_reason,
        n_eigenvalues=count,
        n_eigenvalues_reason=count_reason,
        sensitivity=table,
    )


def _sensitivity(
    first: Dataset, second: Dataset, settings: SignatureSettings, seed: int
) -> pd.DataFrame:
    """Return LES between two datasets with one setting varied at a time."""
    import pandas as pd

    k = settings.n_eigenvalues or default_eigenvalues([first, second], settings.kernel)
    rule = settings.gamma
    # 0.01 is enough for a table; at γ=1e-10 rounding alone would exceed a smaller tol.
    tol = max(settings.accuracy.tol, 1e-2)
    # The smallest γ needs the most accurate eigenvalues; larger ones reuse them.
    smallest = GAMMAS[0] if isinstance(rule, str) else min(rule, GAMMAS[0])
    base = replace(settings, n_eigenvalues=k, gamma=smallest, tol=tol)
    pair = [compute_signature(dataset, base, seed) for dataset in (first, second)]
    if isinstance(rule, str):
        gamma = max(gamma_by_rule(rule, s.eigenvalues, s.n_samples) for s in pair)
    else:
        gamma = rule
    rows: list[tuple[str, float, float]] = [("gamma", g, _les(pair, g, k)) for g in GAMMAS]
    counts = sorted({max(1, round(share * k)) for share in (0.25, 0.5, 1.0)})
    rows += [("n_eigenvalues", m, _les(pair, gamma, m)) for m in counts]
    for setting, value, kernel in _scales(base.kernel):
        changed = replace(base, kernel=kernel)
        scaled = [compute_signature(dataset, changed, seed) for dataset in (first, second)]
        rows.append((setting, value, _les(scaled, gamma, k)))
    return pd.DataFrame(rows, columns=["setting", "value", "les"])


def _les(pair: Iterable[Signature], gamma: float, k: int) -> float:
    a, b = (np.log(s.eigenvalues[:k] + gamma) for s in pair)
    return float(np.linalg.norm(a - b))


def _scales(kernel: KernelSettings) -> list[tuple[str, float, KernelSettings]]:
    """Return settings that vary σ²: the factor of a rule, or a number around the one given."""
    if isinstance(kernel.bandwidth, str):
        return [("bandwidth_factor", f, replace(kernel, bandwidth_factor=f)) for f in FACTORS]
    numbers = [kernel.bandwidth * factor / BANDWIDTH_FACTOR for factor in FACTORS]
    return [("bandwidth", number, replace(kernel, bandwidth=number)) for number in numbers]
