"""Laplacians of graphs and surfaces: heat and wave traces, eigenvalues."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh
from scipy.special import ive, jv

from .. import _check
from .._check import FloatArray
from ..data.dataset import Dataset
from ..engine import one_blas
from ..errors import DegenerateDataError, about, required
from ..operators.graph import normalised_adjacency
from ..operators.knn import neighbour_graph

METHODS = ("auto", "slq", "exact")
# Nodes: up to here `auto` computes all eigenvalues, in a second or two on one core.
EXACT_SAMPLES = 2000
# Vertices: up to here LAPACK on the dense matrix is faster than sparse factors.
DENSE_VERTICES = 500


class Quadrature(NamedTuple):
    r"""Nodes θ and weights ω that average a function over the eigenvalues of a matrix.

    .. math:: \frac{1}{N} \operatorname{tr} f(A) \approx
              \frac{1}{p} \sum_{l=1}^p \sum_{k=1}^m \omega_{lk} f(\theta_{lk})
    """

    nodes: FloatArray  # (p, m): one row per probe
    weights: FloatArray  # (p, m): rows sum to 1


def lanczos_quadrature(
    matrix: Any, n_steps: int, n_probes: int, rng: np.random.Generator
) -> Quadrature:
    r"""Return the stochastic Lanczos quadrature of a symmetric matrix.

    Each probe is a direction v drawn uniformly from the sphere. m Lanczos steps from it give a
    tridiagonal T = U Θ Uᵀ, and :math:`v^T f(A) v \approx \sum_k U_{1k}^2 f(\Theta_{kk})`, exact
    for polynomials of degree 2m - 1 (Ubaru, Chen and Saad, 2017). No reorthogonalisation:
    spurious copies of a converged eigenvalue share its weight. The matrix, (N, N), dense or
    sparse, has a norm of about 1; m is at most N. O(m p nnz) time.
    """
    n = int(matrix.shape[0])
    # Blocks of probes of 1 MiB stay in a core's cache; of fewer than 8 columns a sparse product
    # spends its time on indices.
    width = min(n_probes, max(8, (1 << 20) // (8 * n)))
    counts = [min(width, n_probes - start) for start in range(0, n_probes, width)]
    parts = [_tridiagonal(matrix, min(n_steps, n), count, rng) for count in counts]
    nodes, vectors = np.linalg.eigh(np.concatenate(parts))
    return Quadrature(nodes, vectors[:, 0, :] ** 2)


def _tridiagonal(matrix: Any, n_steps: int, n_probes: int, rng: np.random.Generator) -> FloatArray:
    """Return the matrices T of Lanczos runs from random directions, (n_probes, m, m)."""
    current = rng.standard_normal((int(matrix.shape[0]), n_probes))
    current /= np.linalg.norm(current, axis=0)
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
        np.multiply(current, alpha, out=previous)
        residual -= previous
        beta = np.linalg.norm(residual, axis=0)
        # A residual this small, of a matrix of norm 1, is rounding: the space is exhausted, and
        # the zeros that follow have no weight.
        beta[beta < 1e-10] = 0.0
        residual *= np.divide(1.0, beta, out=np.zeros_like(beta), where=beta > 0)
        T[:, step, step + 1] = T[:, step + 1, step] = beta
        previous, current = current, residual
    return T


@dataclass(frozen=True, eq=False)
class Trace:
    """A trace per node at T times, with its error."""

    values: FloatArray  # (T,), real or complex: tr f(L) / N
    standard_error: FloatArray  # (T,), from the spread of the probes; 0 with all eigenvalues
    truncation: FloatArray  # (T,), a bound on the error of finitely many steps, and of rounding
    n_samples: int  # N

    @property
    def error_bound(self) -> FloatArray:
        """Three standard errors plus the truncation, (T,); a probabilistic bound."""
        return np.asarray(3.0 * self.standard_error + self.truncation)


@dataclass(frozen=True, eq=False)
class SpectralDensity:
    """The eigenvalues of a normalised Laplacian, or a quadrature over them."""

    rule: Quadrature  # with all eigenvalues, one row of N nodes of weight 1/N
    mean: float  # tr L / N, exactly: 1 unless there are isolated nodes or self-loops
    n_samples: int  # N
    is_exact: bool  # whether these are all eigenvalues

    def heat(self, times: FloatArray) -> Trace:
        r"""Return tr(e^{-tL}) / N at these times.

        With probes, the linear part of :math:`e^{-tx}` at x = 1 is a control variate, as its trace
        is known (Tsitsulin et al., 2020):

        .. math:: e^{-tx} = (e^{-tx} + t e^{-t} x) - t e^{-t} x,
                  \qquad \operatorname{tr}(t e^{-t} L) = t e^{-t} \operatorname{tr} L .

        Departure from their code: tr L in place of N, which is wrong for isolated nodes.
        """
        values = np.exp(-times[:, None, None] * self.rule.nodes)
        samples = np.einsum("tpm,pm->tp", values, self.rule.weights)
        if self.is_exact:
            return self._trace(samples, times, 0.0)
        slope = times * np.exp(-times)
        moments = (self.rule.nodes * self.rule.weights).sum(axis=1) - self.mean
        samples += slope[:, None] * moments
        # e^{-tx} on [0, 2] has the Chebyshev coefficients 2 e^{-t} I_k(t), and they sum to 1.
        orders = np.arange(1, 2 * self.rule.nodes.shape[1])
        tail = 1.0 - ive(0, times) - 2.0 * ive(orders, times[:, None]).sum(axis=1)
        return self._trace(samples, times, 2.0 * np.maximum(tail, 0.0))

    def wave(self, times: FloatArray) -> Trace:
        """Return the complex tr(e^{-itL}) / N at these times.

        No control variate: a wave is far from linear at large times.
        """
        values = np.exp(-1j * times[:, None, None] * self.rule.nodes)
        samples = np.einsum("tpm,pm->tp", values, self.rule.weights)
        # 80 orders beyond the degree the Bessel functions of wave times are 0.
        orders = 2 * self.rule.nodes.shape[1] + np.arange(80)
        tail = 2.0 * np.abs(jv(orders, times[:, None])).sum(axis=1)
        return self._trace(samples, times, 0.0 if self.is_exact else 2.0 * tail)

    def _trace(self, samples: FloatArray, times: FloatArray, tail: FloatArray | float) -> Trace:
        """Return the mean over probes; `tail` is a Gauss rule's error, twice a polynomial's."""
        error = np.zeros(times.size)
        if not self.is_exact:
            error = samples.std(axis=1, ddof=1) / np.sqrt(samples.shape[1])
        # Rounding of eigenvalues (see `spectra.base.rounding_error`) times the slopes.
        eps = float(np.finfo(np.float64).eps)
        rounding = (1.0 + 2.0 * times) * (np.sqrt(self.n_samples) + 12.0) * eps
        return Trace(samples.mean(axis=1), error, tail + rounding, self.n_samples)


def check_settings(method: str, n_neighbors: int, n_steps: int, n_probes: int) -> None:
    """Raise InputError for invalid settings of a spectral density."""
    _check.one_of("method", method, METHODS)
    _check.positive_int("n_neighbors", n_neighbors)
    _check.positive_int("n_steps", n_steps)
    _check.positive_int("n_probes", n_probes, minimum=2)  # one has no spread


def laplacian_density(
    dataset: Dataset, seed: int, *, method: str, n_neighbors: int, n_steps: int, n_probes: int
) -> SpectralDensity:
    r"""Return the spectral density of L = I - D^{-1/2} A D^{-1/2} of a dataset.

    A is the dataset's own adjacency (kind `graph`), or that of its k nearest neighbours. An
    isolated node has a zero row in L. The method is `"exact"` (all eigenvalues, O(N³) time and
    8 N² bytes), `"slq"` (see `lanczos_quadrature`), or `"auto"`: exact up to 2000 nodes. The
    probes depend on the root seed and the data only.
    """
    with about(dataset.label):
        adjacency = neighbour_graph(dataset.prepared(), dataset.kind, n_neighbors)
    step = normalised_adjacency(adjacency)  # I - L
    n = dataset.n_samples
    mean = 1.0 - float(step.diagonal().sum()) / n
    is_exact = method == "exact" or (method == "auto" and n <= EXACT_SAMPLES)
    with one_blas():
        if is_exact:
            dense = step.toarray() if sparse.issparse(step) else step
            nodes, weights = np.linalg.eigvalsh(dense)[None, ::-1], np.full((1, n), 1.0 / n)
        else:
            rng = dataset.generator(seed)
            nodes, weights = lanczos_quadrature(step, n_steps, n_probes, rng)
    return SpectralDensity(Quadrature(1.0 - nodes, weights), mean, n, is_exact)


def surface_eigenvalues(
    vertices: FloatArray, faces: Any | None, n_eigenvalues: int, rng: np.random.Generator
) -> FloatArray:
    r"""Return the first eigenvalues of a surface's Laplacian times its area, ascending.

    .. math:: L x = \lambda M x, \qquad |S| = \sum_i M_{ii}, \qquad \text{values } |S| \lambda

    with the tufted intrinsic Delaunay Laplacian of Sharp and Crane (2020), which handles bad
    triangles, holes and point clouds. Multiplying by the area removes the scale. A sparse
    factorisation, about O(N^1.5), and K products with it.

    Vertices are (N, 3), faces (m, 3), or None for a point cloud; K is at most N.
    """
    if faces is None:
        vertices = _distinct_points(vertices, n_eigenvalues)
    L, mass = _laplacian(vertices, faces)
    area = float(mass.sum())
    scale = sparse.diags_array(1.0 / np.sqrt(mass))
    symmetric = scale @ L @ scale
    n = mass.size
    if n <= DENSE_VERTICES or n_eigenvalues >= n // 2:
        found = np.linalg.eigvalsh(symmetric.toarray())[:n_eigenvalues]
    else:
        # Shifted slightly below 0, where the matrix is positive definite.
        shift = {"sigma": -1.0 / area, "v0": rng.standard_normal(n)}
        found = eigsh(symmetric.tocsc(), n_eigenvalues, return_eigenvectors=False, **shift)
    return np.asarray(area * np.maximum(np.sort(found), 0.0))


def _distinct_points(points: FloatArray, n_eigenvalues: int) -> FloatArray:
    """Return the distinct points of a cloud, sorted: duplicates have no area."""
    distinct: FloatArray = np.unique(points, axis=0)
    if len(distinct) < 4:  # the package sometimes makes a triangle of three, sometimes none
        raise DegenerateDataError(
            f"a point cloud needs 4 distinct points to have a surface, and has {len(distinct)}. "
            "Use laplacian='diffusion'."
        )
    if len(distinct) < n_eigenvalues:
        raise DegenerateDataError(
            f"{len(distinct)} of {len(points)} points are distinct, fewer than "
            f"n_eigenvalues={n_eigenvalues}. Lower n_eigenvalues."
        )
    return distinct


def _laplacian(vertices: FloatArray, faces: Any | None) -> tuple[Any, FloatArray]:
    """Return the sparse Laplacian and the diagonal of the mass matrix."""
    robust_laplacian = required("robust_laplacian", "topology", "laplacian='robust'")
    # Centred and scaled: the triangles of a cloud depend on the origin, and squares may overflow.
    vertices = vertices / (float(np.abs(vertices).max()) or 1.0)
    vertices -= vertices.mean(axis=0)
    extents = np.linalg.svd(vertices, compute_uv=False)
    if extents[1] <= 1e-9 * extents[0]:
        raise DegenerateDataError(
            "all vertices lie on a line or in one point, so there is no surface. Use "
            "laplacian='diffusion'."
        )
    vertices /= np.abs(vertices).max()
    try:
        if faces is None:
            neighbours = min(30, len(vertices) - 1)  # the package's default
            L, M = robust_laplacian.point_cloud_laplacian(vertices, n_neighbors=neighbours)
        else:
            L, M = robust_laplacian.mesh_laplacian(vertices, faces)
    except RuntimeError as error:
        raise DegenerateDataError(
            f"{len(vertices)} vertices give no valid surface. Use laplacian='diffusion', or more "
            "vertices."
        ) from error
    mass = np.asarray(M.diagonal(), dtype=np.float64)
    # The package gives a vertex without faces an arbitrary area.
    loose = 0 if faces is None else len(vertices) - np.unique(faces).size
    bad = loose or int((~(mass > 0)).sum())
    if bad or not np.all(np.isfinite(L.data)):
        raise DegenerateDataError(
            f"{bad} of {mass.size} vertices have no area, so the surface has no Laplacian. Remove "
            "vertices without faces, and duplicates."
        )
    return L, mass
