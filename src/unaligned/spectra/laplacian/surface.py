"""Eigenvalues of the Laplacian of a surface in space."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh

from ..._check import FloatArray
from ...errors import DegenerateDataError, required

_DENSE = 500  # below, LAPACK on the whole matrix is quicker than sparse factors
_NEIGHBOURS = 30  # of each point of a cloud, among which its triangles are made; the package's
_FEWEST = 4  # points of a cloud: of three the package sometimes makes a triangle, sometimes none
_FLAT = 1e-9  # of the largest extent: less is none


def surface_eigenvalues(
    vertices: FloatArray, faces: Any | None, n_eigenvalues: int, rng: np.random.Generator
) -> FloatArray:
    r"""Return the first eigenvalues of a surface's Laplacian times its area, ascending.

    .. math:: L x = \lambda M x, \qquad |S| = \sum_i M_{ii}, \qquad \text{values } |S| \lambda

    with the tufted intrinsic Delaunay Laplacian of Sharp and Crane (2020), which takes bad
    triangles, holes and clouds without triangles. Times the area they do not notice scale. A
    sparse factorisation, about O(N^1.5), and K products with it.

    Parameters
    ----------
    vertices
        Shape (N, 3).
    faces
        Shape (m, 3), or None for a cloud, whose triangles are made from its neighbours.
    n_eigenvalues
        K, at most N.
    rng
        The start vector.

    Examples
    --------
    >>> corners = np.vstack([np.eye(3), -np.eye(3)])
    >>> sides = [[0, 1, 2], [1, 3, 2], [3, 4, 2], [4, 0, 2]]
    >>> faces = np.array([*sides, *[[b, a, 5] for a, b, _ in sides]])
    >>> values = surface_eigenvalues(corners, faces, 4, np.random.default_rng(0))
    >>> bool(abs(values[0]) < 1e-9), bool(np.ptp(values[1:]) < 1e-9)
    (True, True)
    """
    if faces is None:
        vertices = _without_duplicates(vertices, n_eigenvalues)
    L, mass = _laplacian(vertices, faces)
    area = float(mass.sum())
    scale = sparse.diags_array(1.0 / np.sqrt(mass))
    symmetric = scale @ L @ scale
    n = mass.size
    if n <= _DENSE or n_eigenvalues >= n // 2:
        found = np.linalg.eigvalsh(symmetric.toarray())[:n_eigenvalues]
    else:
        # Shifted a little below 0, where the matrix is positive definite.
        start = rng.standard_normal(n)
        shift = {"sigma": -1.0 / area, "v0": start, "return_eigenvectors": False}
        found = eigsh(symmetric.tocsc(), n_eigenvalues, **shift)
    values: FloatArray = area * np.maximum(np.sort(found), 0.0)
    return values


def _without_duplicates(points: FloatArray, n_eigenvalues: int) -> FloatArray:
    """Return the distinct points of a cloud, sorted: a point twice has no area of its own."""
    distinct: FloatArray = np.unique(points, axis=0)
    if len(distinct) < _FEWEST:
        raise DegenerateDataError(
            f"a cloud needs {_FEWEST} distinct points to have a surface, and has {len(distinct)}. "
            "Use laplacian='diffusion'."
        )
    if len(distinct) < n_eigenvalues:
        raise DegenerateDataError(
            f"{len(distinct)} of {len(points)} points are distinct, fewer than "
            f"n_eigenvalues={n_eigenvalues}. Give a smaller n_eigenvalues."
        )
    return distinct


def _in_unit_size(vertices: FloatArray) -> FloatArray:
    """Return vertices around their mean, in a unit in which nothing overflows."""
    # The triangles of a cloud depend on the origin, and squares of them on the unit.
    peak = float(np.abs(vertices).max())
    centred = vertices / (peak or 1.0)
    centred -= centred.mean(axis=0)
    extents = np.linalg.svd(centred, compute_uv=False)
    if extents[1] <= _FLAT * extents[0]:
        raise DegenerateDataError(
            "all vertices lie on a line or in one point, so there is no surface. Use "
            "laplacian='diffusion'."
        )
    scaled: FloatArray = centred / np.abs(centred).max()
    return scaled


def _laplacian(vertices: FloatArray, faces: Any | None) -> tuple[Any, FloatArray]:
    """Return the sparse Laplacian and the diagonal of the mass matrix."""
    robust_laplacian = required("robust_laplacian", "topology", "laplacian='robust'")
    vertices = _in_unit_size(vertices)
    try:
        if faces is None:
            neighbours = min(_NEIGHBOURS, len(vertices) - 1)
            L, M = robust_laplacian.point_cloud_laplacian(vertices, n_neighbors=neighbours)
        else:
            L, M = robust_laplacian.mesh_laplacian(vertices, faces)
    except RuntimeError as error:
        raise DegenerateDataError(
            f"{len(vertices)} vertices make no surface, or a broken one. Use "
            "laplacian='diffusion', or give more of them."
        ) from error
    mass = np.asarray(M.diagonal(), dtype=np.float64)
    # The package gives a vertex without faces a made-up area.
    loose = 0 if faces is None else len(vertices) - np.unique(faces).size
    bad = loose or int((~(mass > 0)).sum())
    if bad or not np.all(np.isfinite(L.data)):
        raise DegenerateDataError(
            f"{bad} of {mass.size} vertices have no area around them, so the surface's Laplacian "
            "does not exist. Remove vertices without faces, and duplicates."
        )
    return L, mass
