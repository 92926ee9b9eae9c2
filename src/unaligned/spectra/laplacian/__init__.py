"""How the eigenvalues of a graph's Laplacian lie, and its heat and wave traces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import ive, jv

from ... import _check
from ..._check import FloatArray
from ...data.dataset import Dataset
from ...engine import one_blas
from ...errors import DataWarning, about, warn
from ...operators.graph import normalised_adjacency
from ...operators.knn import neighbour_graph

# Probes worked on together: this many bytes of them stay in a core's cache.
_BLOCK_BYTES = 1 << 20
_FEWEST = 8  # columns; with fewer a sparse product spends its time on indices
_BREAKDOWN = 1e-10  # a residual this small, of a matrix of norm 1, is rounding


@dataclass(frozen=True, eq=False)
class Quadrature:
    r"""Nodes θ and weights ω that average a function over the eigenvalues of a matrix.

    .. math:: \frac{1}{N} \operatorname{tr} f(A) \approx
              \frac{1}{p} \sum_{l=1}^p \sum_{k=1}^m \omega_{lk} f(\theta_{lk})

    Attributes
    ----------
    nodes, weights
        Shape (p, m): one row per probe. Weights of a row sum to 1.
    """

    nodes: FloatArray
    weights: FloatArray

    @property
    def n_steps(self) -> int:
        """The number of nodes per probe, m."""
        return int(self.nodes.shape[1])


def lanczos_quadrature(
    matrix: Any, n_steps: int, n_probes: int, rng: np.random.Generator
) -> Quadrature:
    r"""Return the Gauss quadrature of a symmetric matrix seen from random directions.

    Each probe is a direction v drawn uniformly from the sphere. m Lanczos steps from it give a
    tridiagonal T = U Θ Uᵀ, and :math:`v^T f(A) v \approx \sum_k U_{1k}^2 f(\Theta_{kk})`, exact
    for polynomials of degree 2m - 1 (Ubaru, Chen and Saad, 2017). There is no
    reorthogonalisation: what rounding repeats of a converged eigenvalue shares its weight.

    Blocked: all probes of a block go through one product with the matrix per step. O(m p nnz)
    time, 4 N blocks of at most p columns of memory.

    Parameters
    ----------
    matrix
        Shape (N, N), symmetric, of norm about 1, dense or sparse.
    n_steps
        m; no more than N are taken.
    n_probes
        p.

    Examples
    --------
    >>> rule = lanczos_quadrature(np.diag([0.0, 1.0]), 2, 5, np.random.default_rng(0))
    >>> bool(np.allclose(rule.nodes, [0.0, 1.0])), bool(np.allclose(rule.weights.sum(axis=1), 1))
    (True, True)
    """
    n = int(matrix.shape[0])
    width = min(n_probes, max(_FEWEST, _BLOCK_BYTES // (8 * n)))
    counts = [min(width, n_probes - start) for start in range(0, n_probes, width)]
    parts = [_tridiagonal(matrix, min(n_steps, n), count, rng) for count in counts]
    nodes, vectors = np.linalg.eigh(np.concatenate(parts))
    return Quadrature(nodes, vectors[:, 0, :] ** 2)


def _tridiagonal(matrix: Any, n_steps: int, n_probes: int, rng: np.random.Generator) -> FloatArray:
    """Return the matrices T of Lanczos runs from random directions, (n_probes, m, m)."""
    current = rng.standard_normal((int(matrix.shape[0]), n_probes))
    current /= _norms(current)
    previous = np.zeros_like(current)
    beta = np.zeros(n_probes)
    T = np.zeros((n_probes, n_steps, n_steps))
    for step in range(n_steps):
        residual = matrix @ current
        alpha = np.einsum("ij,ij->j", current, residual)
        T[:, step, step] = alpha
        if step + 1 == n_steps:
            break
        previous *= beta
        residual -= previous
        np.multiply(current, alpha, out=previous)  # its place is free now
        residual -= previous
        beta = _norms(residual)
        # A probe whose space is exhausted goes on with zeros: they have no weight.
        beta[beta < _BREAKDOWN] = 0.0
        residual *= np.divide(1.0, beta, out=np.zeros_like(beta), where=beta > 0)
        T[:, step, step + 1] = T[:, step + 1, step] = beta
        previous, current = current, residual
    return T


def _norms(block: FloatArray) -> FloatArray:
    norms: FloatArray = np.sqrt(np.einsum("ij,ij->j", block, block))
    return norms


METHODS = ("auto", "slq", "exact")
# `auto` takes all eigenvalues up to here: a second or two on one core, and no noise.
EXACT_SAMPLES = 2000
STANDARD_ERRORS = 3.0
_BESSEL_TERMS = 80  # beyond these orders the Bessel functions of wave times are 0


@dataclass(frozen=True, eq=False)
class Trace:
    """A trace per node at several times, and how wrong it may be.

    Attributes
    ----------
    values
        Shape (T,), real or complex: tr f(L) / N.
    standard_error
        Shape (T,): of the probes; 0 where all eigenvalues are known. An estimate from the
        probes' own spread, not a bound.
    truncation
        Shape (T,): a bound on what the finite number of Lanczos steps, or rounding, leaves out.
    n_samples
        N.
    """

    values: FloatArray
    standard_error: FloatArray
    truncation: FloatArray
    n_samples: int

    @property
    def error_bound(self) -> FloatArray:
        """Three standard errors plus the truncation, (T,); holds but for unlucky probes."""
        bound: FloatArray = STANDARD_ERRORS * self.standard_error + self.truncation
        return bound

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the parts as arrays, for a file."""
        return {name: np.asarray(part) for name, part in vars(self).items()}

    @staticmethod
    def from_arrays(arrays: Mapping[str, npt.NDArray[Any]]) -> Trace:
        """Return the trace that `to_arrays` took apart."""
        return Trace(**{**arrays, "n_samples": int(arrays["n_samples"])})  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class SpectralDensity:
    """The eigenvalues of a normalised Laplacian, all of them or as a quadrature of them.

    Attributes
    ----------
    rule
        Nodes and weights; with all eigenvalues, one row of N nodes of weight 1/N.
    mean
        tr L / N, known exactly: 1 unless there are isolated nodes or self-loops.
    n_samples
        N.
    is_exact
        Whether these are all eigenvalues.
    """

    rule: Quadrature
    mean: float
    n_samples: int
    is_exact: bool

    def heat(self, times: FloatArray) -> Trace:
        r"""Return tr(e^{-tL}) / N at these times.

        With probes, the linear part of :math:`e^{-tx}` at x = 1 is not estimated but known, a
        control variate (Tsitsulin et al., 2020):

        .. math:: e^{-tx} = (e^{-tx} + t e^{-t} x) - t e^{-t} x,
                  \qquad \operatorname{tr}(t e^{-t} L) = t e^{-t} \operatorname{tr} L .

        The authors' code writes N for tr L, which isolated nodes make wrong.
        """
        samples = self._averages(np.exp(-times[:, None, None] * self.rule.nodes))
        if self.is_exact:
            return self._exact(samples, times)
        slope = times * np.exp(-times)
        moments = (self.rule.nodes * self.rule.weights).sum(axis=1) - self.mean
        samples += slope[:, None] * moments
        # e^{-tx} on [0, 2] has the Chebyshev coefficients 2 e^{-t} I_k(t), and they sum to 1.
        orders = np.arange(1, 2 * self.rule.n_steps)
        tail = 1.0 - ive(0, times) - 2.0 * ive(orders, times[:, None]).sum(axis=1)
        return self._estimate(samples, times, 2.0 * np.maximum(tail, 0.0))

    def wave(self, times: FloatArray) -> Trace:
        """Return the complex tr(e^{-itL}) / N at these times.

        No control variate: the linear part of a wave is no likeness of it at large times.
        """
        samples = self._averages(np.exp(-1j * times[:, None, None] * self.rule.nodes))
        if self.is_exact:
            return self._exact(samples, times)
        first = 2 * self.rule.n_steps
        orders = np.arange(first, first + _BESSEL_TERMS)
        tail = 2.0 * np.abs(jv(orders, times[:, None])).sum(axis=1)
        return self._estimate(samples, times, 2.0 * tail)

    def _averages(self, values: FloatArray) -> FloatArray:
        averages: FloatArray = np.einsum("tpm,pm->tp", values, self.rule.weights)
        return averages

    def _exact(self, samples: FloatArray, times: FloatArray) -> Trace:
        return Trace(samples[:, 0], np.zeros(times.size), self._rounding(times), self.n_samples)

    def _estimate(self, samples: FloatArray, times: FloatArray, tail: FloatArray) -> Trace:
        """Return the mean over probes; `tail` is a Gauss rule's error, twice a polynomial's."""
        error = samples.std(axis=1, ddof=1) / np.sqrt(samples.shape[1])
        truncation = tail + self._rounding(times)
        return Trace(samples.mean(axis=1), error, truncation, self.n_samples)

    def _rounding(self, times: FloatArray) -> FloatArray:
        """Return what rounding does: that of eigenvalues (see `spectra.base`), times slopes."""
        eps = float(np.finfo(np.float64).eps)
        rounding: FloatArray = (1.0 + 2.0 * times) * (np.sqrt(self.n_samples) + 12.0) * eps
        return rounding


def check_settings(method: str, n_neighbors: int, n_steps: int, n_probes: int) -> None:
    """Refuse settings of a spectral density that make no sense."""
    _check.one_of("method", method, METHODS)
    _check.positive_int("n_neighbors", n_neighbors)
    _check.positive_int("n_steps", n_steps)
    _check.positive_int("n_probes", n_probes, minimum=2)  # one alone has no spread


def laplacian_density(
    dataset: Dataset, seed: int, *, method: str, n_neighbors: int, n_steps: int, n_probes: int
) -> SpectralDensity:
    r"""Return how the eigenvalues of L = I - D^{-1/2} A D^{-1/2} of a dataset lie.

    A is the dataset's own adjacency (kind `graph`), or that of its k nearest neighbours. An
    isolated node has a zero row in L.

    Parameters
    ----------
    dataset
        Points, distances or a graph.
    seed
        The root seed; probes come from it and the data, so the same data gets the same probes.
    method
        `"exact"`: all eigenvalues, O(N³) time and 8 N² bytes; `"slq"`: quadrature;
        `"auto"`: exact up to 2000 nodes.
    n_neighbors, n_steps, n_probes
        k, and for the quadrature m and p (see `lanczos_quadrature`).

    Examples
    --------
    >>> edge = Dataset([[0.0, 1.0], [1.0, 0.0]], kind="graph")
    >>> settings = {"n_neighbors": 1, "n_steps": 10, "n_probes": 2}
    >>> found = laplacian_density(edge, 0, method="exact", **settings)
    >>> found.heat(np.array([0.0, 1.0])).values.round(4)
    array([1.    , 0.5677])
    """
    _warn_if_adjacency(dataset)
    with about(dataset.label):
        adjacency = neighbour_graph(dataset.prepared(), dataset.kind, n_neighbors)
    step = normalised_adjacency(adjacency)  # I - L
    n = dataset.n_samples
    mean = 1.0 - float(step.diagonal().sum()) / n
    with one_blas():
        if method == "exact" or (method == "auto" and n <= EXACT_SAMPLES):
            dense = step.toarray() if sparse.issparse(step) else step
            nodes = 1.0 - np.linalg.eigvalsh(dense)[None, ::-1]
            return SpectralDensity(Quadrature(nodes, np.full((1, n), 1.0 / n)), mean, n, True)
        rule = lanczos_quadrature(step, n_steps, n_probes, dataset.generator(seed))
    return SpectralDensity(Quadrature(1.0 - rule.nodes, rule.weights), mean, n, False)


def _warn_if_adjacency(dataset: Dataset) -> None:
    """Warn of points that are what an adjacency matrix is: no cloud comes out like that."""
    values = dataset.values
    if dataset.kind != "points" or dataset.is_lazy or dataset.preprocess:
        return
    if dataset.n_samples != dataset.n_features or values.diagonal().any() or values.min() < 0:
        return
    if (values != values.T).sum() == 0 and values.max() > 0:
        warn(
            f"{dataset.label} is taken for points, and is square, symmetric and 0 on its "
            "diagonal, as the matrix of a graph is. If it is one, give "
            "Dataset(values, kind='graph'), or kind='distances' for distances.",
            DataWarning,
        )
