"""Shapes: triangle meshes, and the tori of the paper's Appendix B."""

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from .. import _check
from .._check import FloatArray, IndexArray, RNGLike
from ..errors import InputError
from .dataset import Dataset


@dataclass(frozen=True, eq=False)
class Mesh(Dataset):
    """A triangle mesh in space; every distance except `shape-dna` uses its vertices only.

    Parameters
    ----------
    values
        The vertices, (n, 3).
    faces
        The triangles, (m, 3): indices of their vertices.
    kind
        `points`.
    name, metadata, preprocess, nan_policy, feature_names, sample_names, shared_unit
        As for `Dataset`; no vertex may be missing.

    Examples
    --------
    >>> from unaligned.data.shapes import Mesh
    >>> corners = [[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    >>> Mesh(corners, faces=[[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], name="corner")
    Mesh('corner', 4 vertices, 4 faces)
    """

    faces: Any = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind != "points" or self.n_features != 3 or self.n_dropped:
            raise InputError(
                f"{self.label}: a mesh needs kind 'points', three columns and no missing "
                f"vertices, not {self.kind!r}, {self.n_features} columns and {self.n_dropped} "
                "rows with NaN."
            )
        faces, n = np.array(self.faces), self.n_samples
        if faces.dtype.kind not in "iu" or faces.ndim != 2 or faces.shape[1:] != (3,):
            raise InputError(
                f"{self.label}: faces must be integers of shape (m, 3), not {faces.dtype} of "
                f"shape {faces.shape}. Divide polygons into triangles first."
            )
        if faces.size == 0 or faces.min() < 0 or faces.max() >= n:
            raise InputError(
                f"{self.label}: faces must be indices of vertices, 0 to {n - 1}, and not empty. "
                "For files that count from 1 pass faces - 1."
            )
        faces = faces.astype(np.int64)
        faces.flags.writeable = False
        object.__setattr__(self, "faces", faces)

    @cached_property
    def vertices(self) -> Dataset:
        """The points alone, with the name and the preprocessing of the mesh."""
        return self._copy(Dataset)

    def generator(self, seed: int) -> np.random.Generator:
        """Return the generator of the vertices, so that a mesh gives the results of its points.

        Parameters
        ----------
        seed
            As for `Dataset.generator`.

        Returns
        -------
        numpy.random.Generator
            A new one.
        """
        return self.vertices.generator(seed)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the vertices and the faces."""
        digest = hashlib.blake2b(self.vertices.fingerprint.encode(), digest_size=16)
        digest.update(self.faces.tobytes())
        return digest.hexdigest()

    def take(self, rows: IndexArray) -> Dataset:
        """Raise: some of the vertices have no faces.

        Parameters
        ----------
        rows
            Not used.

        Returns
        -------
        Dataset
            Never: raises InputError.
        """
        raise InputError(
            f"{self.label} is a mesh, which cannot be subsampled. Simplify the mesh first, or "
            "give its vertices as points."
        )

    def __repr__(self) -> str:
        name = "" if self.name is None else f"{self.name!r}, "
        return f"Mesh({name}{self.n_samples} vertices, {len(self.faces)} faces)"


def torus_angles(n_samples: int, n_angles: int = 3, *, rng: RNGLike = None) -> FloatArray:
    """Return angles drawn uniformly from [0, 2π].

    Tori of the same angles are coupled point by point (Appendix B.3).

    Parameters
    ----------
    n_samples
        The number of points, N.
    n_angles
        2 or 3, the dimension of the torus.
    rng
        Seed or generator; None is the seed 0.

    Returns
    -------
    ndarray
        Shape (N, n_angles).

    Examples
    --------
    >>> from unaligned.data.shapes import torus2, torus3, torus_angles
    >>> angles = torus_angles(500)
    >>> torus2(angles, radius_scale=0.5).shape, torus3(angles).shape
    ((500, 3), (500, 4))
    """
    n_samples = _check.positive_int("n_samples", n_samples)
    seed = rng if isinstance(rng, np.random.Generator) else _check.root_seed(rng)
    generator = np.random.default_rng(seed)
    return generator.uniform(0.0, 2.0 * np.pi, size=(n_samples, n_angles))


def torus2(angles: FloatArray, *, radius_scale: float = 1.0) -> FloatArray:
    """Return points of the 2-torus in space (Appendix B of the paper).

    Parameters
    ----------
    angles
        From `torus_angles`, (N, 2) or more columns.
    radius_scale
        The paper's c, a factor of the minor radius R₂ = 3: for c → 0 the torus becomes a
        circle.

    Returns
    -------
    ndarray
        Shape (N, 3).
    """
    r1, r2 = 10.0, radius_scale * 3.0
    theta1, theta2 = angles.T[:2]
    ring = r1 + r2 * np.cos(theta2)
    return np.column_stack([ring * np.cos(theta1), ring * np.sin(theta1), r2 * np.sin(theta2)])


def torus3(angles: FloatArray, *, radius_scale: float = 1.0) -> FloatArray:
    """Return points of the 3-torus in four dimensions (Appendix B of the paper).

    Parameters
    ----------
    angles
        From `torus_angles`, (N, 3) or more columns.
    radius_scale
        The paper's c, a factor of the smallest radius R₃ = 1: for c → 0 the torus becomes a
        2-torus.

    Returns
    -------
    ndarray
        Shape (N, 4).
    """
    r1, r2, r3 = 10.0, 3.0, radius_scale * 1.0
    theta1, theta2, theta3 = angles.T[:3]
    tube = r2 + r3 * np.cos(theta3)
    ring = r1 + tube * np.cos(theta2)
    last = [tube * np.sin(theta2), r3 * np.sin(theta3)]
    return np.column_stack([ring * np.cos(theta1), ring * np.sin(theta1), *last])
