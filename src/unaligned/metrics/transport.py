"""Optimal transport: between points of one space, and between spaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from .. import _check
from .._check import FloatArray
from ..data.dataset import Dataset
from ..errors import AccuracyWarning, collected, repeat, required, warn
from ..spectra.signature import Signature
from .coupling import followers, optimal_coupling, sorted_cost, square_loss, warn_not_converged
from .points import DataDistance, Described, dense_points, squared_distances

_EXACT_ROWS = 8000  # 14 s and 1 GB at 5000, on a busy machine; grows as N² in memory
_GROMOV_ROWS = 2000
_SINKHORN_STEPS = 10_000
_MARGINALS = 1e-6  # how far the marginals of the entropic plan may be off
_UNDERFLOW = 600.0  # exp(-600) is still a normal number
_PROJECTED = 1 << 20  # projected values at a time: POT takes some 200 bytes for each


class TransportDistance(DataDistance):
    """A distance that POT solves; fails early and by name where POT is missing."""

    extra: ClassVar[str | None] = "transport"

    def fit(self, datasets: Sequence[Dataset | Signature]) -> Self:
        """Settle the method for the whole collection, so that all pairs are alike."""
        required("ot", "transport", f"distance {self.name!r}", package="POT")
        return self

    def describe(self, dataset: Dataset, seed: int) -> Described:
        """Return what `between` needs of one dataset."""
        # POT, and torch with it, belongs to the first job of a worker process: joblib takes
        # memory that is added later for a leak, and replaces the worker.
        import ot  # noqa: F401

        return super().describe(dataset, seed)

    def compare(self, first: Described, second: Described) -> float:
        """Return the distance between two described datasets; warnings name both."""
        with collected() as notes:
            value = super().compare(first, second)
        pair = f"{first.label} and {second.label}"
        repeat(((f"{pair}: {message}", category) for message, category in notes), set())
        return value


@dataclass(frozen=True)
class Wasserstein(TransportDistance):
    r"""The 2-Wasserstein distance, how far mass must travel from one dataset to the other.

    .. math:: W_2 = \Big(\min_{T \in \Pi} \sum_{ij} \|x_i - y_j\|^2 T_{ij}\Big)^{1/2}

    over couplings with uniform marginals (Villani, 2009): the root; POT's `emd2` on squared
    distances gives the square. `method="auto"` is settled by the largest dataset, with a
    warning where it approximates:

    - `"exact"`: POT's network simplex, up to 8000 rows, run again where points far out hide
      others in its tolerance; with one feature, sorting, at any size.
    - `"sliced"`: the mean over random directions (Bonneel et al., 2015), beyond. Another,
      smaller number, never above W₂: over all directions it is at most W₂/√d, over a few
      random ones that holds for the mean of its square only.
    - `"sinkhorn"`, on request: the root of the Sinkhorn divergence (Feydy et al., 2019), near
      W₂. In one run on a busy CPU it was slower than the exact one in as much memory (2-tori,
      N=5000, epsilon 0.02: 46 s and 1.288 against 14 s and 1.329), so it is never chosen.

    About O(N³) time at worst and 50 N² bytes, 65 N² beside points far out; sliced O(N log N) per
    direction and 200 MB.

    Attributes
    ----------
    method
        `"auto"`, `"exact"`, `"sinkhorn"` or `"sliced"`.
    epsilon
        The entropic regularisation, relative to the mean squared distance.
    n_projections
        The number of directions of `"sliced"`; all pairs share them.

    Examples
    --------
    >>> import unaligned as ua
    >>> points = np.random.default_rng(0).normal(size=(100, 3))
    >>> round(ua.distance(points, points + [3.0, 0.0, 4.0], "wasserstein"), 6)
    5.0
    """

    name: ClassVar[str] = "wasserstein"
    summary: ClassVar[str] = "2-Wasserstein distance of the points, W2"
    cost: ClassVar[str] = "up to O(N³) per pair, 50 N² bytes; sliced O(N log N)"
    same_features: ClassVar[bool] = True

    method: str = "auto"
    epsilon: float = 0.02
    n_projections: int = 500

    def __post_init__(self) -> None:
        _check.one_of("method", self.method, ("auto", "exact", "sinkhorn", "sliced"))
        _check.real_number("epsilon", self.epsilon, minimum=0.0, strict=True)
        _check.positive_int("n_projections", self.n_projections)

    def fit(self, datasets: Sequence[Dataset | Signature]) -> Self:
        """Settle the method by the largest dataset."""
        super().fit(datasets)
        if self.method != "auto":
            return self
        largest = max(dataset.n_samples for dataset in datasets)
        if largest <= _EXACT_ROWS or all(dataset.n_features == 1 for dataset in datasets):
            return replace(self, method="exact")
        what = "another number, about W2/√d or less"
        _warn_approximate(self.name, largest, _EXACT_ROWS, "sliced", what)
        return replace(self, method="sliced")

    def between(self, first: Described, second: Described) -> float:
        """Return W₂ by the method that was settled."""
        if self.method == "sliced":
            return self._sliced(first.content, second.content, first.seed)
        solve = self._sinkhorn if self.method == "sinkhorn" else _exact
        return float(np.sqrt(max(solve(first.content, second.content), 0.0)))

    def _sinkhorn(self, x: FloatArray, y: FloatArray) -> float:
        """Return the Sinkhorn divergence, which takes away most of what entropy adds."""
        cost = squared_distances(x, y)
        strength = self.epsilon * float(cost.mean())
        if strength == 0:
            return 0.0  # all points are one
        own = (_entropic_cost(squared_distances(z, z), strength) for z in (x, y))
        return _entropic_cost(cost, strength) - 0.5 * sum(own)

    def _sliced(self, x: FloatArray, y: FloatArray, seed: int) -> float:
        from ot.sliced import sliced_wasserstein_distance

        rng = np.random.default_rng(seed)
        directions = rng.normal(size=(x.shape[1], self.n_projections))
        directions /= np.linalg.norm(directions, axis=0)
        step = max(1, _PROJECTED // max(len(x), len(y)))
        total = 0.0
        for start in range(0, self.n_projections, step):
            part = directions[:, start : start + step]
            value = sliced_wasserstein_distance(x, y, projections=part, p=2)
            total += part.shape[1] * float(value) ** 2
        return float(np.sqrt(total / self.n_projections))


@dataclass(frozen=True)
class GromovWasserstein(TransportDistance):
    r"""The Gromov-Wasserstein distance, how far distances must bend to match two spaces.

    .. math:: d = \Big(\min_{T \in \Pi} \sum_{ijkl}
              (C^1_{ik} - C^2_{jl})^2 T_{ij} T_{kl}\Big)^{1/2}

    with the Euclidean distances C (not squared) within each dataset, or the matrices given, and
    uniform weights (Mémoli, 2011; Peyré et al., 2016). The root, without Mémoli's factor ½;
    `squared=True` gives POT's square loss. No shared features are needed. The problem is not
    convex: the value is the local minimum that conditional gradient reaches from the product
    coupling, an upper bound. Equal data is at exactly 0 without a search. Points far out cost
    the others no digits, but time: beyond some 10⁴ times the rest the search is run again with
    differences for products, and where distances themselves are too coarse a warning says so.
    `method="auto"` is settled by the largest dataset, with a warning where it approximates:

    - `"exact"`: conditional gradient as POT's, up to 2000 rows.
    - `"low-rank"`: couplings through `rank` random landmarks that stand for the points nearest
      to them, beyond. By the triangle inequality that moves the global minimum by at most twice
      the root mean square distance of points to their landmarks, both datasets' added. The
      local minimum that is reached has no such bound, so `error_bounds` has none.

    POT's low-rank solver works on squared distances, which is another number. Its entropic one
    is not offered: no step is cheaper, and the one setting tried (regularisation 0.1 of the mean
    squared distances, 2-torus against 3-torus, N=1000) took minutes to an unconverged loss of
    42.8, where conditional gradient reached 0.98 in seconds.

    O(N³) time per step and pair (some 20 steps), 130 N² bytes (145 beside points far out).

    Attributes
    ----------
    method
        `"auto"`, `"exact"` or `"low-rank"`.
    squared
        Return POT's loss instead of its root.
    rank
        The number of landmarks of `"low-rank"`.
    max_iter
        The largest number of steps.

    Examples
    --------
    >>> import unaligned as ua
    >>> short, long = np.array([[0.0], [1.0]]), np.array([[0.0, 0.0], [0.0, 3.0]])
    >>> round(ua.distance(short, long, "gromov-wasserstein", squared=True), 6)
    2.0
    """

    name: ClassVar[str] = "gromov-wasserstein"
    summary: ClassVar[str] = "Gromov-Wasserstein distance of the distance matrices"
    cost: ClassVar[str] = "O(N³) per pair and step (some 20), 130 N² bytes"
    kinds: ClassVar[tuple[str, ...]] = ("points", "distances")

    method: str = "auto"
    squared: bool = False
    rank: int = 1000
    max_iter: int = 1000

    def __post_init__(self) -> None:
        _check.one_of("method", self.method, ("auto", "exact", "low-rank"))
        _check.flag("squared", self.squared)
        _check.positive_int("rank", self.rank, minimum=2)
        _check.positive_int("max_iter", self.max_iter)

    def fit(self, datasets: Sequence[Dataset | Signature]) -> Self:
        """Settle the method by the largest dataset."""
        super().fit(datasets)
        if self.method != "auto":
            return self
        largest = max(dataset.n_samples for dataset in datasets)
        if largest <= _GROMOV_ROWS:
            return replace(self, method="exact")
        what = f"through {self.rank} landmarks each"
        _warn_approximate(self.name, largest, _GROMOV_ROWS, "low-rank", what)
        return replace(self, method="low-rank")

    def content(self, dataset: Dataset, seed: int) -> tuple[FloatArray, FloatArray, bool]:
        """Return points or distances, how often each counts, and whether they are distances."""
        values = dense_points(dataset)
        precomputed = dataset.kind == "distances"
        if self.method != "low-rank" or len(values) <= self.rank:
            return values, np.ones(len(values)), precomputed
        rng = dataset.generator(seed)
        rows = np.sort(rng.choice(len(values), size=self.rank, replace=False))
        counts = followers(values, rows, precomputed=precomputed)
        kept = values[np.ix_(rows, rows)] if precomputed else values[rows]
        return kept, counts, precomputed

    def arrays(self, content: tuple[FloatArray, FloatArray, bool]) -> tuple[FloatArray, ...]:
        """Return what they are, the points or distances, and how often each counts."""
        values, counts, precomputed = content
        return np.array([float(precomputed)]), values, counts

    def between(self, first: Described, second: Described) -> float:
        """Return the distance by the method that was settled."""
        (C1, counts), (C2, others) = _space(first), _space(second)
        loss = square_loss(C1, C2, counts, others, self.max_iter)
        return loss if self.squared else float(np.sqrt(loss))


def _entropic_cost(cost: FloatArray, strength: float) -> float:
    """Return min ⟨T, cost⟩ + strength · KL(T | product of the marginals), for one pair."""
    from ot import sinkhorn
    from scipy.special import rel_entr

    p, q = (np.full(size, 1.0 / size) for size in cost.shape)
    way = "sinkhorn" if cost.max() < _UNDERFLOW * strength else "sinkhorn_log"
    options = {"numItermax": _SINKHORN_STEPS, "stopThr": _MARGINALS, "log": True, "warn": False}
    with np.errstate(all="ignore"):  # an overflow shows in the marginals, which are checked
        plan, log = sinkhorn(p, q, cost, strength, way, **options)
    if not log["err"][-1] <= _MARGINALS:
        reason = f"marginals are off by {log['err'][-1]:.1e}"
        warn_not_converged("Sinkhorn", reason, "Raise epsilon, or take method='exact'.")
    return float(np.vdot(plan, cost)) + strength * float(rel_entr(plan, p[0] * q[0]).sum())


def _exact(x: FloatArray, y: FloatArray) -> float:
    """Return W₂² by the network simplex, or by sorting where there is one feature."""
    if x.shape[1] == 1:
        return sorted_cost(x[:, 0], y[:, 0])
    cost = squared_distances(x, y)
    found = optimal_coupling(cost, np.ones(len(x)), np.ones(len(y)))
    if found.complaint:
        remedy = "Compare fewer rows with subsample=, or take method='sliced'."
        warn_not_converged("the network simplex", found.complaint, remedy)
    return float(np.vdot(found.plan, cost))


def _space(described: Described) -> tuple[FloatArray, FloatArray]:
    """Return the distance matrix and the counts; landmarks that stand for nothing left out."""
    values, counts, precomputed = described.content
    held = counts > 0
    if precomputed:
        return values[np.ix_(held, held)], counts[held]
    values = values[held]
    return np.sqrt(squared_distances(values, values)), counts[held]


def _warn_approximate(name: str, size: int, limit: int, method: str, what: str) -> None:
    warn(
        f"distance {name!r} is approximated: the largest dataset has {size} rows, and the exact "
        f"method stops at {limit}. method={method!r} was taken: {what}. Pass method='exact', or "
        f"subsample={limit}, for the exact one.",
        AccuracyWarning,
    )
