"""Heat-trace distances: IMD, IMD on diffusion spectra, and NetLSD."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .. import _check
from .._check import FloatArray
from ..data.dataset import Dataset
from ..data.facts import Facts
from ..errors import DegenerateDataError
from ..spectra.laplacian import Trace, check_settings, laplacian_density
from ..spectra.signature import Signature
from .base import Distance, SpectralDistance

# The times of the IMD authors' code: 256 from 0.1 to 10.
TIMES: FloatArray = np.logspace(-1.0, 1.0, 256)
TIME_WEIGHT: FloatArray = np.exp(-2.0 * (TIMES + 1.0 / TIMES))  # c(t) of Section 4.3
SCALE = 1e6  # factor of the IMD authors' code


def require_powers(largest: float) -> None:
    """Raise if the tenth power of an eigenvalue overflows, as is possible for kind `spd`."""
    if largest > 1e30:
        raise DegenerateDataError(
            f"the largest eigenvalue is {largest:g}, and its powers up to the tenth, which are "
            "compared, overflow beyond 1e+30. Rescale all matrices by one factor."
        )


@dataclass(frozen=True)
class IMDDiffusion(SpectralDistance):
    r"""The multi-scale distance on the spectrum of W, "IMD (our approach)" (Section 4.3).

    .. math:: d = \sup_{t>0} e^{-2(t + 1/t)}
              \left| \sum_i (\lambda^{(1)}_i)^t - \sum_i (\lambda^{(2)}_i)^t \right|

    The formula of Tsitsulin et al. (2020) with the K eigenvalues of the diffusion operator in
    place of heat-kernel eigenvalues, without 1/n and the factor 10⁶. The supremum is taken over
    256 times from 0.1 to 10. It uses the signatures of `les` and ignores γ. O(K) per pair and
    time.

    Parameters
    ----------
    settings
        Its fields are options of the distance: see `SignatureSettings`.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> rng = np.random.default_rng(0)
    >>> line, ball = rng.normal(size=(200, 1)), rng.normal(size=(300, 3))
    >>> more = rng.normal(size=(200, 1))
    >>> ua.distance(line, ball, "imd-diffusion") > ua.distance(line, more, "imd-diffusion")
    True
    """

    name = "imd-diffusion"
    summary = "multi-scale heat trace of diffusion spectra, 'IMD (our approach)'"
    cost = "one spectrum per dataset, then 256 K operations per pair"

    def compare(self, first: Signature, second: Signature) -> float:
        """Return the distance; γ may differ."""
        return super().compare(first.with_gamma(1.0), second.with_gamma(1.0))

    def between(self, first: Signature, second: Signature) -> float:
        """Return the distance between two comparable signatures."""
        gap = np.abs(_heat_trace(first.eigenvalues) - _heat_trace(second.eigenvalues))
        return float(np.max(TIME_WEIGHT * gap))

    def error_bound(self, first: Signature, second: Signature) -> float:
        """Return a bound from the intervals of both spectra."""
        return float(np.max(TIME_WEIGHT * (_trace_error(first) + _trace_error(second))))


def _heat_trace(eigenvalues: FloatArray) -> FloatArray:
    """Return Σᵢ λᵢᵗ for all times, (256,)."""
    require_powers(float(eigenvalues[0]))
    return np.asarray((eigenvalues ** TIMES[:, None]).sum(axis=1))


def _trace_error(signature: Signature) -> FloatArray:
    """Return a bound on the error of the trace at each time, (256,)."""
    if signature.bound_kind == "none":
        return np.full(TIMES.size, np.inf)
    spectrum = signature.spectrum
    centre = _heat_trace(spectrum.eigenvalues)
    above = _heat_trace(spectrum.upper + spectrum.slack) - centre
    below = centre - _heat_trace(np.maximum(spectrum.lower, 0.0))
    return np.maximum(above, below)


class TraceDistance(Distance):
    """A distance between traces of a given graph, or of the nearest-neighbour graph of points."""

    kinds: ClassVar[tuple[str, ...]] = ("points", "distances", "graph")
    is_descriptor: ClassVar[bool] = True

    def to_arrays(self, descriptor: Trace) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays of a trace."""
        return {name: np.asarray(value) for name, value in vars(descriptor).items()}

    def from_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Trace:
        """Return the trace with these arrays."""
        return Trace(**{**arrays, "n_samples": int(arrays["n_samples"])})  # type: ignore[arg-type]


@dataclass(frozen=True)
class IMD(TraceDistance):
    r"""The intrinsic multi-scale distance of nearest-neighbour graphs (Tsitsulin et al., 2020).

    .. math:: d = 10^6 \max_t e^{-2(t + 1/t)}
              \left| \tfrac{1}{N_1} \operatorname{tr} e^{-t L_1}
              - \tfrac{1}{N_2} \operatorname{tr} e^{-t L_2} \right|

    with L the normalised Laplacian of the graph of the k nearest neighbours (exact, in either
    direction, unweighted; ties go to the smaller index), and 256 times from 0.1 to 10. The
    division by N and the factor 10⁶ are those of the authors' code. Not squared.

    The default estimates the traces as the authors do, by stochastic Lanczos quadrature with
    normal probes and their control variate. `error_bound` is three standard errors of both
    traces, which unlucky probes can exceed, plus a bound for the finite number of steps. Probes
    are seeded by the data: d(A, A) is exactly 0, where the published code gives 3.4 ± 2.4, but
    points that are moved, scaled or reordered differ by probe noise, unless `method="exact"`.

    Neighbours (N² d at worst), then m p nnz operations per dataset; 256 per pair.

    Parameters
    ----------
    method
        `"slq"`, `"exact"` (all eigenvalues, O(N³)), or `"auto"` (exact up to 2000 nodes).
    n_neighbors
        k, not counting the point itself; ignored for graphs.
    n_steps, n_probes
        m and p of the quadrature.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> rng = np.random.default_rng(0)
    >>> line, ball = rng.normal(size=(300, 1)), rng.normal(size=(300, 3))
    >>> ua.distance(line, ball, "imd") > ua.distance(line, rng.normal(size=(300, 1)), "imd")
    True
    """

    name = "imd"
    summary = "multi-scale heat trace of nearest-neighbour graphs"
    cost = "neighbours and 1000 sparse products per dataset, 256 per pair"

    method: str = "slq"
    n_neighbors: int = 5
    n_steps: int = 10
    n_probes: int = 100

    def __post_init__(self) -> None:
        check_settings(self.method, self.n_neighbors, self.n_steps, self.n_probes)

    def describe(self, dataset: Dataset, seed: int) -> Trace:
        """Return the heat trace per node at the 256 times."""
        return laplacian_density(dataset, seed, **self.options()).heat(TIMES)

    def compare(self, first: Trace, second: Trace) -> float:
        """Return the distance between two heat traces."""
        return float(SCALE * np.max(TIME_WEIGHT * np.abs(first.values - second.values)))

    def error_bound(self, first: Trace, second: Trace) -> float:
        """Return three standard errors of the probes plus the truncation of the quadrature."""
        return float(SCALE * np.max(TIME_WEIGHT * (first.error_bound + second.error_bound)))


@dataclass(frozen=True)
class NetLSD(TraceDistance):
    r"""The distance of heat or wave traces of graphs, NetLSD (Tsitsulin et al., 2018).

    .. math:: d = \|h_1 - h_2\|_2, \qquad
              h(t) = \frac{1}{c(t)} \sum_j e^{-t \lambda_j} \text{ (heat)} \quad\text{or}\quad
              \frac{1}{c(t)} \sum_j e^{-i t \lambda_j} \text{ (wave)}

    with λ the eigenvalues of the normalised Laplacian; 250 times, from 0.01 to 100 in equal
    ratios (heat) or from 0 to 2π in equal steps (wave, complex). c is N (`"empty"`: the graph
    without edges), :math:`1 + (N - 1) e^{-t}` or :math:`1 + (N - 1) e^{-it}` (`"complete"`), or
    1 (`"none"`). The norm is neither squared nor divided by the number of times, as published.

    Departures: the published code keeps only the real part of the wave and divides it by
    :math:`1 + (N - 1) \cos t`, which passes through zero; the complex trace of the complete
    graph has modulus N - 2 or more. Above 1024 nodes it interpolates linearly between 150
    eigenvalues of either end; here an unbiased quadrature is used, with the probe noise in
    `error_bound` (see `imd`).

    Points are compared by the nearest-neighbour graph of `imd`. All eigenvalues, O(N³), up to
    2000 nodes; above, m p nnz operations; 250 per pair.

    Parameters
    ----------
    kernel
        `"heat"` or `"wave"`.
    normalization
        `"empty"`, `"complete"` or `"none"`.
    method
        `"auto"`, `"exact"` or `"slq"`.
    n_neighbors
        k of the graph of points, not counting the point itself.
    n_steps, n_probes
        m and p of the quadrature. Times up to 100 need 30 steps where `imd` needs 10.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> path = np.diag(np.ones(5), 1) + np.diag(np.ones(5), -1)
    >>> star = np.zeros((6, 6))
    >>> star[0, 1:] = star[1:, 0] = 1
    >>> graphs = [ua.Dataset(a, kind="graph") for a in (path, star)]
    >>> round(ua.distance(*graphs, "netlsd"), 4)
    0.5609
    """

    name = "netlsd"
    summary = "heat or wave trace of graphs"
    cost = "O(N³) per graph up to N=2000, then 3000 sparse products; 250 per pair"

    kernel: str = "heat"
    normalization: str = "empty"
    method: str = "auto"
    n_neighbors: int = 5
    n_steps: int = 30
    n_probes: int = 100

    def __post_init__(self) -> None:
        _check.one_of("kernel", self.kernel, ("heat", "wave"))
        _check.one_of("normalization", self.normalization, ("empty", "complete", "none"))
        check_settings(self.method, self.n_neighbors, self.n_steps, self.n_probes)

    def objection(self, first: Facts, second: Facts) -> str | None:
        """Return why the distance does not apply to this pair, or None."""
        divides_by_zero = (self.kernel, self.normalization) == ("wave", "complete")
        for dataset in (first, second):
            if divides_by_zero and dataset.n_samples == 2:
                return (
                    "the wave trace of the complete graph of two nodes passes through zero, and "
                    f"{dataset.label} has two; normalization='empty' applies"
                )
        return super().objection(first, second)

    def describe(self, dataset: Dataset, seed: int) -> Trace:
        """Return h(t), (250,), with its error."""
        options = self.options()
        del options["kernel"], options["normalization"]
        density = laplacian_density(dataset, seed, **options)
        if self.kernel == "heat":
            times: FloatArray = np.logspace(-2.0, 2.0, 250)
            trace, decay = density.heat(times), np.exp(-times)
        else:
            times = np.linspace(0.0, 2.0 * np.pi, 250)
            trace, decay = density.wave(times), np.exp(-1j * times)
        n = trace.n_samples
        complete = n / (1.0 + (n - 1.0) * decay)
        factor: Any = {"empty": 1.0, "complete": complete, "none": n}[self.normalization]  # n/c(t)
        size = np.abs(factor)
        errors = trace.standard_error * size, trace.truncation * size
        return Trace(trace.values * factor, *errors, n)

    def compare(self, first: Trace, second: Trace) -> float:
        """Return the Euclidean distance of two traces."""
        return float(np.linalg.norm(first.values - second.values))

    def vector(self, descriptor: Trace) -> FloatArray:
        """Return the trace, (250,), or its real and imaginary parts, (500,)."""
        values = descriptor.values
        return np.concatenate([values.real, values.imag]) if np.iscomplexobj(values) else values

    def error_bound(self, first: Trace, second: Trace) -> float:
        """Return three standard errors of the probes plus the truncation of the quadrature."""
        return float(np.linalg.norm(first.error_bound) + np.linalg.norm(second.error_bound))
