"""Meshes: points with triangles."""

import numpy as np
import pytest

import unaligned as ua
from unaligned.data.mesh import Mesh
from unaligned.errors import InputError

POINTS = np.random.default_rng(0).normal(size=(60, 3))


def test_a_mesh_is_its_vertices_and_its_faces():
    mesh = Mesh(POINTS, faces=np.array([[0, 1, 2]], dtype=np.int32))
    same = Mesh(POINTS.copy(), faces=[[0, 1, 2]])
    assert mesh.fingerprint == same.fingerprint
    assert mesh.fingerprint != Mesh(POINTS, faces=[[0, 1, 3]]).fingerprint
    assert mesh.with_options(name="m").faces.tolist() == [[0, 1, 2]]
    with pytest.raises(ValueError, match="read-only"):
        mesh.faces[0] = 1


@pytest.mark.parametrize(
    ("faces", "message"),
    [
        ([[0.0, 1, 2]], "whole numbers of shape"),
        ([[0, 1, 2, 3]], "whole numbers of shape"),
        ([[1, 2, 60]], "vertices 0 to 59.*faces - 1"),
        (np.zeros((0, 3), int), "vertices 0 to 59"),
    ],
)
def test_wrong_faces_are_refused(faces, message):
    with pytest.raises(InputError, match=message):
        Mesh(POINTS, faces=faces)


def test_a_mesh_has_three_columns_and_is_not_subsampled():
    with pytest.raises(InputError, match="three columns"):
        Mesh(np.zeros((9, 2)), faces=[[0, 1, 2]])
    with pytest.raises(InputError, match="'m' is a mesh, and vertices drawn at random"):
        Mesh(POINTS, faces=[[0, 1, 2]], name="m").subsample(10, np.random.default_rng(0))


@pytest.mark.parametrize(
    "name", ["les", "imd", "netlsd", "geometry-score", "wasserstein", "euclidean"]
)
def test_where_only_vertices_count_a_mesh_is_its_vertices(name):
    mesh = Mesh(POINTS, faces=[[0, 1, 2]])
    probes = {"method": "slq"}
    options = {"geometry-score": {"n_rounds": 20}, "imd": probes, "netlsd": probes}.get(name, {})
    assert ua.distance(mesh, POINTS, name, **options) == 0.0
    assert mesh.identity != ua.Dataset(POINTS).identity  # shape-dna sees the faces
    assert mesh.generator(3).random() == ua.Dataset(POINTS).generator(3).random()


def test_vertices_keep_what_the_mesh_was_given():
    mesh = Mesh(POINTS, faces=[[0, 1, 2]], name="m", preprocess="standardize", metadata={"a": 1})
    vertices = mesh.vertices
    assert type(vertices) is ua.Dataset
    assert (vertices.name, vertices.preprocess) == ("m", ("standardize",))
    assert vertices.metadata == {"a": 1}
    np.testing.assert_array_equal(vertices.prepared(), mesh.prepared())
