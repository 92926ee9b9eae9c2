"""Wasserstein distances: between points, and between fitted Gaussians (Fréchet)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from .. import _check
from .._check import FloatArray
from ..data.dataset import Dataset
from ..errors import AccuracyWarning, collected, repeat, required, warn
from ..spectra.signature import Signature
from .base import CANCELLED, DataDescriptor, DataDistance, centred, dense_points, squared_distances

_SIMPLEX_STEPS = 10_000_000  # POT's default of 100,000 is too few from N=2000 on
_PROJECTED_VALUES = 1 << 20  # projected values per call of POT, which needs 200 bytes for each


class Coupling(NamedTuple):
    """A coupling, (N, M), the potential of its rows, (N,), and why it may not be optimal."""

    plan: FloatArray
    potential: FloatArray
    complaint: str | None


def simplex(cost: FloatArray, first: FloatArray, second: FloatArray) -> Coupling:
    """Return an optimal coupling, of sum 1, by POT's network simplex.

    Optimal up to POT's tolerance, about 1e-15 (N + M) of the largest cost. O(N³) time at worst,
    50 N² bytes.
    """
    from ot import emd

    # Costs up to 1e9 are far above the absolute tolerance of POT's simplex.
    unit = 1e9 / (float(np.abs(cost).max()) or 1.0)
    # Counts of points with one integer sum: no rounding residue is transported to an outlier.
    common = float(np.lcm(int(first.sum()), int(second.sum())))
    masses = (counts * (common / counts.sum()) for counts in (first, second))
    plan, log = emd(*masses, cost * unit, numItermax=_SIMPLEX_STEPS, log=True)
    plan /= common
    return Coupling(plan, log["u"] / unit, log["warning"])


def optimal_coupling(
    cost: FloatArray, first: FloatArray, second: FloatArray, *, cap_factor: float = 100.0
) -> Coupling:
    r"""Return an optimal coupling for nonnegative costs of any range, checked by its dual.

    For any potential u of the rows, no coupling of p and q costs less than

    .. math:: \sum_i p_i u_i + \sum_j q_j \min_i (C_{ij} - u_i),

    which bounds the duality gap. If costs beyond the tolerance of the simplex make the gap large,
    it runs again on min(C, c), with c `cap_factor` times the largest cost that the coupling pays.
    A coupling that pays nothing above c is optimal for C too, as min(C, c) ≤ C.
    """
    best = found = simplex(cost, first, second)
    smallest = gap = _relative_gap(cost, found, first, second)
    cap = float(cost.max())
    while gap > 1e-9 and found.complaint is None:
        lower = cap_factor * float(cost.max(where=found.plan > 0, initial=0.0))
        if lower >= cap:
            break
        cap = lower
        found = simplex(np.minimum(cost, cap), first, second)
        gap = _relative_gap(cost, found, first, second)
        if gap < smallest:
            best, smallest = found, gap
    if best.complaint is None and smallest > 1e-8:
        off = f"it may be off by {smallest:.1g} of the cost"
        return best._replace(complaint=f"with costs of up to {cost.max():.1g} {off}")
    return best


def _relative_gap(
    cost: FloatArray, found: Coupling, first: FloatArray, second: FloatArray
) -> float:
    """Return the duality gap of a coupling as a share of its cost."""
    value = float(np.vdot(found.plan, cost))
    if value == 0:
        return 0.0
    p, q, u = first / first.sum(), second / second.sum(), found.potential
    return (value - float(p @ u + (cost - u[:, None]).min(axis=0) @ q)) / value


def sorted_cost(x: FloatArray, y: FloatArray) -> float:
    """Return the least mean squared difference over couplings of two sets of numbers."""
    n, m = len(x), len(y)
    # Masses are integers, M per point of x and N per point of y, which leave no residue.
    edges = np.union1d(np.arange(n + 1) * m, np.arange(m + 1) * n)
    starts = edges[:-1]
    gaps = np.sort(x)[starts // m] - np.sort(y)[starts // n]
    return float(np.diff(edges) @ gaps**2) / (n * m)


def warn_not_converged(solver: str, reason: object, remedy: str) -> None:
    """Warn that a transport solver stopped early."""
    message = f"{solver} did not converge: {reason}. The value is not the minimum. {remedy}"
    warn(message, AccuracyWarning)


@dataclass(frozen=True)
class TransportDistance(DataDistance):
    """A distance solved by POT; `exact_rows` is the largest size for which "auto" is exact."""

    extra: ClassVar[str | None] = "transport"
    exact_rows: ClassVar[int]

    method: str = "auto"

    def choose_method(self, n_rows: int, approximation: str, note: str) -> Self:
        """Return the distance with `"auto"` replaced; warn if by an approximation."""
        required("ot", "transport", f"distance {self.name!r}", package="POT")
        if self.method != "auto":
            return self
        if n_rows <= self.exact_rows:
            return replace(self, method="exact")
        warn(
            f"distance {self.name!r} is approximated by method={approximation!r} ({note}): the "
            f"largest dataset has {n_rows} rows, and 'auto' is exact up to {self.exact_rows}. "
            f"Pass method='exact' or subsample={self.exact_rows} for the exact value.",
            AccuracyWarning,
        )
        return replace(self, method=approximation)

    def describe(self, dataset: Dataset, seed: int) -> DataDescriptor:
        """Return what `between` needs of one dataset."""
        # Import POT, and torch with it, in the first job of a worker process: joblib takes
        # memory allocated later for a leak and replaces the worker.
        import ot  # noqa: F401

        return super().describe(dataset, seed)

    def compare(self, first: DataDescriptor, second: DataDescriptor) -> float:
        """Return the distance between two descriptors; warnings name both."""
        with collected() as notes:
            value = super().compare(first, second)
        pair = f"{first.label} and {second.label}"
        repeat((note._replace(label=pair) for note in notes), set())
        return value


@dataclass(frozen=True)
class Wasserstein(TransportDistance):
    r"""The 2-Wasserstein distance, the cost of transporting one dataset to the other.

    .. math:: W_2 = \Big(\min_{T \in \Pi} \sum_{ij} \|x_i - y_j\|^2 T_{ij}\Big)^{1/2}

    over couplings with uniform marginals (Villani, 2009): the root; POT's `emd2` on squared
    distances gives the square. `method="auto"` depends on the largest dataset and warns if it
    approximates:

    - `"exact"`: POT's network simplex, up to 8000 rows (14 s and 1 GB at 5000); with one
      feature, sorting, at any size.
    - `"sliced"`: the root mean square over random directions (Bonneel et al., 2015). A
      different, smaller number: over all directions at most W₂/√d.
    - `"sinkhorn"`: the root of the Sinkhorn divergence (Feydy et al., 2019), close to W₂. Never
      chosen by "auto": at N=5000 it took 46 s where the exact method took 14 s.

    About O(N³) time at worst and 50 N² bytes, 65 N² with outliers; sliced O(N log N) per
    direction and 200 MB.

    Parameters
    ----------
    method
        `"auto"`, `"exact"`, `"sinkhorn"` or `"sliced"`.
    epsilon
        The entropic regularisation, relative to the mean squared distance.
    n_projections
        The number of directions of `"sliced"`, shared by all pairs.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> points = np.random.default_rng(0).normal(size=(100, 3))
    >>> round(ua.distance(points, points + [3.0, 0.0, 4.0], "wasserstein"), 6)
    5.0
    """

    name = "wasserstein"
    summary = "2-Wasserstein distance of the points, W2"
    cost = "up to O(N³) per pair, 50 N² bytes; sliced O(N log N)"
    same_features = True
    exact_rows = 8000

    epsilon: float = 0.02
    n_projections: int = 500

    def __post_init__(self) -> None:
        _check.one_of("method", self.method, ("auto", "exact", "sinkhorn", "sliced"))
        _check.real_number("epsilon", self.epsilon, minimum=0.0, strict=True)
        _check.positive_int("n_projections", self.n_projections)

    def fit(self, datasets: Sequence[Dataset | Signature]) -> Self:
        """Choose one method for the whole collection."""
        sorts = all(dataset.n_features == 1 for dataset in datasets)
        largest = max(dataset.n_samples for dataset in datasets)
        note = "another number, about W2/√d or less"
        return self.choose_method(0 if sorts else largest, "sliced", note)

    def between(self, first: DataDescriptor, second: DataDescriptor) -> float:
        """Return W₂ by the chosen method."""
        if self.method == "sliced":
            return self._sliced(first.content, second.content, first.seed)
        solve = self._sinkhorn if self.method == "sinkhorn" else _exact_cost
        return float(np.sqrt(max(solve(first.content, second.content), 0.0)))

    def _sinkhorn(self, x: FloatArray, y: FloatArray) -> float:
        """Return the Sinkhorn divergence, which removes most of the entropic bias."""
        cost = squared_distances(x, y)
        strength = self.epsilon * float(cost.mean())
        if strength == 0:
            return 0.0  # all points are equal
        own = sum(_entropic_cost(squared_distances(z, z), strength) for z in (x, y))
        return _entropic_cost(cost, strength) - 0.5 * own

    def _sliced(self, x: FloatArray, y: FloatArray, seed: int) -> float:
        from ot.sliced import sliced_wasserstein_distance

        rng = np.random.default_rng(seed)
        directions = rng.normal(size=(x.shape[1], self.n_projections))
        directions /= np.linalg.norm(directions, axis=0)
        step = max(1, _PROJECTED_VALUES // max(len(x), len(y)))
        total = 0.0
        for start in range(0, self.n_projections, step):
            block = directions[:, start : start + step]
            value = sliced_wasserstein_distance(x, y, projections=block, p=2)
            total += block.shape[1] * float(value) ** 2
        return float(np.sqrt(total / self.n_projections))


def _exact_cost(x: FloatArray, y: FloatArray) -> float:
    """Return W₂² by the network simplex, or by sorting if there is one feature."""
    if x.shape[1] == 1:
        return sorted_cost(x[:, 0], y[:, 0])
    cost = squared_distances(x, y)
    found = optimal_coupling(cost, np.ones(len(x)), np.ones(len(y)))
    if found.complaint:
        remedy = "Compare fewer rows with subsample=, or use method='sliced'."
        warn_not_converged("the network simplex", found.complaint, remedy)
    return float(np.vdot(found.plan, cost))


def _entropic_cost(cost: FloatArray, strength: float, *, max_iter: int = 10_000) -> float:
    """Return min ⟨T, cost⟩ + strength · KL(T | product of the marginals)."""
    from ot import sinkhorn
    from scipy.special import rel_entr

    p, q = (np.full(size, 1.0 / size) for size in cost.shape)
    # exp(-600) is still a normal number; smaller ones need logarithms.
    solver = "sinkhorn" if cost.max() < 600.0 * strength else "sinkhorn_log"
    options = {"numItermax": max_iter, "stopThr": 1e-6, "log": True, "warn": False}
    with np.errstate(all="ignore"):  # an overflow shows in the marginals, which are checked
        plan, log = sinkhorn(p, q, cost, strength, solver, **options)
    if not log["err"][-1] <= options["stopThr"]:
        reason = f"marginals are off by {log['err'][-1]:.1e}"
        warn_not_converged("Sinkhorn", reason, "Raise epsilon, or use method='exact'.")
    return float(np.vdot(plan, cost)) + strength * float(rel_entr(plan, p[0] * q[0]).sum())


@dataclass(frozen=True)
class Frechet(DataDistance):
    r"""The Fréchet distance of Gaussians fitted to the data, known as FID: their W₂².

    .. math:: d = \|\mu_1 - \mu_2\|^2
              + \mathrm{tr}\big(S_1 + S_2 - 2 (S_1 S_2)^{1/2}\big)

    with covariances over n - 1 (Dowson & Landau, 1982; Heusel et al., 2017). A squared distance,
    as it is usually reported. With :math:`S_i = F_i^T F_i` the trace of the root is the sum of
    the singular values of :math:`F_1 F_2^T`, which needs no root of a singular matrix, so n < d
    is allowed. O(n d min(n, d)) time per dataset, O(min(n, d)³) per pair, 8 min(n, d) d bytes.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> points = np.random.default_rng(0).normal(size=(100, 3))
    >>> round(ua.distance(points, points + [3.0, 0.0, 4.0], "frechet"), 6)
    25.0
    """

    name = "frechet"
    summary = "Fréchet distance of fitted Gaussians (FID), a squared distance"
    cost = "O(N d min(N, d)) per dataset, O(min(N, d)³) per pair"
    same_features = True
    is_descriptor = True
    min_samples = 2

    def content(self, dataset: Dataset, seed: int) -> tuple[FloatArray, FloatArray]:
        """Return the mean, (d,), and a factor F of the covariance, (min(n, d), d)."""
        mean, factor = centred(dense_points(dataset))
        n, d = factor.shape
        if n > d:  # R of the QR decomposition, by blocks of 32 MB at 1000 features
            step = max(4096, 4 * d)
            R: FloatArray = np.empty((0, d))
            for start in range(0, n, step):
                stacked = np.concatenate([R, factor[start : start + step]])
                R = np.asarray(np.linalg.qr(stacked, mode="r"))
            factor = R
        return mean, factor / np.sqrt(n - 1.0)

    def arrays(self, content: tuple[FloatArray, FloatArray]) -> tuple[FloatArray, ...]:
        """Return the mean and the factor."""
        return content

    def to_arrays(self, descriptor: DataDescriptor) -> dict[str, npt.NDArray[Any]]:
        """Return the mean and the factor."""
        mean, factor = descriptor.content
        return {"mean": mean, "factor": factor}

    def from_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> DataDescriptor:
        """Return the descriptor with this mean and factor."""
        content = arrays["mean"], arrays["factor"]
        return DataDescriptor(content, content, "the dataset", 0)

    def between(self, first: DataDescriptor, second: DataDescriptor) -> float:
        """Return the squared distance of the two Gaussians."""
        (mean1, F1), (mean2, F2) = first.content, second.content
        total = float(np.vdot(F1, F1) + np.vdot(F2, F2))
        product = F1 @ F2.T
        trace = total - 2.0 * float(np.linalg.svd(product, compute_uv=False).sum())
        if trace <= CANCELLED * total:
            # Without cancellation the trace is the least ‖F₁ - Q F₂‖² over isometries Q, attained
            # at the polar factor of F₁F₂ᵀ (Procrustes): a second decomposition, with vectors.
            if len(F1) < len(F2):
                F1, F2, product = F2, F1, product.T
            U, _, Vt = np.linalg.svd(product, full_matrices=False)
            gap = F1 - U @ (Vt @ F2)
            trace = float(np.vdot(gap, gap))
        return float((mean1 - mean2) @ (mean1 - mean2)) + trace
