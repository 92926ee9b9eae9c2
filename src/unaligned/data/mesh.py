"""Mesh: the points of a surface with the triangles between them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import InputError
from .dataset import Dataset


@dataclass(frozen=True, eq=False)
class Mesh(Dataset):
    """A triangle mesh in space; to every distance but `shape-dna` it is its vertices.

    Parameters
    ----------
    values
        The vertices, (n, 3).
    faces
        The triangles, (m, 3): positions of their corners among the vertices.

    Examples
    --------
    >>> corners = [[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    >>> Mesh(corners, faces=[[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], name="corner")
    Mesh('corner', 4 vertices, 4 faces)
    """

    faces: Any = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind != "points" or self.n_features != 3 or self.n_dropped:
            raise InputError(
                f"{self.label}: a mesh has kind 'points', three columns and no missing vertices; "
                f"{self.kind!r}, {self.n_features} columns and {self.n_dropped} rows with NaN "
                "arrived."
            )
        faces = np.array(self.faces)
        n = self.n_samples
        if faces.dtype.kind not in "iu" or faces.ndim != 2 or faces.shape[1:] != (3,):
            raise InputError(
                f"{self.label}: faces must be whole numbers of shape (m, 3); {faces.dtype} of "
                f"shape {faces.shape} arrived. Cut polygons into triangles first."
            )
        if faces.size == 0 or faces.min() < 0 or faces.max() >= n:
            raise InputError(
                f"{self.label}: faces must name vertices 0 to {n - 1}, at least once. "
                "Files that count from 1 need faces - 1."
            )
        faces = faces.astype(np.int64)
        faces.flags.writeable = False
        object.__setattr__(self, "faces", faces)

    @cached_property
    def vertices(self) -> Dataset:
        """The points alone, named and preprocessed as the mesh is."""
        return self._copy(Dataset)

    def generator(self, seed: int) -> np.random.Generator:
        """Return the generator of the vertices: where only they count, both are the same data."""
        return self.vertices.generator(seed)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the vertices and the faces."""
        digest = hashlib.blake2b(digest_size=16)
        digest.update(self.vertices.fingerprint.encode())
        digest.update(self.faces.tobytes())
        return digest.hexdigest()

    def subsample(self, n_samples: int, rng: np.random.Generator) -> Dataset:
        """Refuse: rows drawn at random leave no triangles."""
        raise InputError(
            f"{self.label} is a mesh, and vertices drawn at random have no faces. Simplify the "
            "mesh first, or give its vertices as points."
        )

    def __repr__(self) -> str:
        name = "" if self.name is None else f"{self.name!r}, "
        return f"Mesh({name}{self.n_samples} vertices, {len(self.faces)} faces)"
