"""Meshes, and the tori of Appendix B."""

import numpy as np
import pytest

import unaligned as ua
from unaligned.data.shapes import Mesh, torus2, torus3, torus_angles
from unaligned.errors import InputError, InputTypeError

POINTS = np.random.default_rng(0).normal(size=(60, 3))


def test_mesh_fingerprint_depends_on_vertices_and_faces():
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
        ([[0.0, 1, 2]], "integers of shape"),
        ([[0, 1, 2, 3]], "integers of shape"),
        ([[1, 2, 60]], "vertices, 0 to 59.*faces - 1"),
        (np.zeros((0, 3), int), "vertices, 0 to 59"),
    ],
)
def test_wrong_faces_raise(faces, message):
    with pytest.raises(InputError, match=message):
        Mesh(POINTS, faces=faces)


def test_mesh_needs_three_columns_and_cannot_be_subsampled():
    with pytest.raises(InputError, match="three columns"):
        Mesh(np.zeros((9, 2)), faces=[[0, 1, 2]])
    with pytest.raises(InputError, match="'m' is a mesh, which cannot be subsampled"):
        Mesh(POINTS, faces=[[0, 1, 2]], name="m").subsample(10, np.random.default_rng(0))


@pytest.mark.parametrize(
    "name", ["les", "imd", "netlsd", "geometry-score", "wasserstein", "euclidean"]
)
def test_distances_of_points_treat_a_mesh_as_its_vertices(name):
    mesh = Mesh(POINTS, faces=[[0, 1, 2]])
    probes = {"method": "slq"}
    options = {"geometry-score": {"n_rounds": 20}, "imd": probes, "netlsd": probes}.get(name, {})
    assert ua.distance(mesh, POINTS, name, **options) == 0.0
    assert mesh.fingerprint != ua.Dataset(POINTS).fingerprint  # shape-dna uses the faces
    assert mesh.generator(3).random() == ua.Dataset(POINTS).generator(3).random()


def test_vertices_have_name_steps_and_metadata_of_the_mesh():
    mesh = Mesh(POINTS, faces=[[0, 1, 2]], name="m", preprocess="standardize", metadata={"a": 1})
    vertices = mesh.vertices
    assert type(vertices) is ua.Dataset
    assert (vertices.name, vertices.preprocess) == ("m", ("standardize",))
    assert vertices.metadata == {"a": 1}
    np.testing.assert_array_equal(vertices.prepared(), mesh.prepared())


def test_no_seed_is_seed_zero():
    assert np.array_equal(torus_angles(5), torus_angles(5, rng=0))
    assert np.array_equal(torus_angles(5, rng=3), torus_angles(5, rng=np.random.default_rng(3)))
    with pytest.raises(InputTypeError, match="rng='x' must be None"):
        torus_angles(5, rng="x")


@pytest.mark.parametrize("seed", range(3))
def test_points_satisfy_the_torus_equations(seed):
    x, y, z = torus2(torus_angles(50, rng=seed)).T
    assert np.allclose((np.hypot(x, y) - 10) ** 2 + z**2, 9)
    x, y, z, w = torus3(torus_angles(50, rng=seed)).T
    assert np.allclose((np.hypot(np.hypot(x, y) - 10, z) - 3) ** 2 + w**2, 1)
