"""Shape-DNA against a dense version and known surfaces."""

import sys

import numpy as np
import pytest

import unaligned as ua
from reference import diffusion_of_points, eigenvalues
from unaligned.data.shapes import Mesh
from unaligned.errors import DegenerateDataError, InputError, MissingExtraError, NotApplicableError

SEEDS = range(4)


def clouds(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(90, 8)), rng.normal(size=(120, 12))


def sphere(n):
    """Return points spread evenly over the unit sphere, (n, 3): a spiral."""
    z = np.linspace(1 - 1 / n, 1 / n - 1, n)
    turn = np.arange(n) * np.pi * (3 - np.sqrt(5))
    return np.column_stack([np.sqrt(1 - z**2) * np.cos(turn), np.sqrt(1 - z**2) * np.sin(turn), z])


def sphere_mesh(n, **options):
    from scipy.spatial import ConvexHull

    points = sphere(n)
    return Mesh(points, faces=ConvexHull(points).simplices, **options)


@pytest.mark.parametrize("seed", SEEDS)
def test_value_is_the_norm_of_fifty_ratios(seed):
    a, b = clouds(seed)
    gaps = [1 - eigenvalues(diffusion_of_points(x), 50) for x in (a, b)]
    expected = np.linalg.norm(np.subtract(*(g / g[1] for g in gaps)))
    assert ua.distance(a, b, "shape-dna") == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_invariant_to_order_rotation_translation_and_scale(seed):
    a = clouds(seed)[0]
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    moved = 0.01 * rng.permutation(a) @ Q + 5.0
    assert ua.distance(a, moved, "shape-dna") == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_error_bound_of_an_approximate_spectrum_holds(seed):
    rng = np.random.default_rng(seed)
    pair = [rng.normal(size=(400, d)) for d in (2, 3)]
    exact = ua.compare(pair, distance="shape-dna", solver="exact")
    for solver in ("krylov", "landmarks", "nystrom"):
        found = ua.compare(pair, distance="shape-dna", solver=solver, rng=seed)
        gap = np.abs(found.distances - exact.distances)
        assert np.all(gap <= found.error_bounds + exact.error_bounds)
    assert exact.error_bounds.max() < 1e-9


def test_signatures_of_les_are_accepted():
    a, b = (ua.signature(x, n_eigenvalues=50) for x in clouds(0))
    assert ua.distance(a, b, "shape-dna") == ua.distance(*clouds(0), "shape-dna")
    assert ua.compare(clouds(0), distance="shape-dna").signatures.keys() == {"0", "1"}


def test_zero_eigenvalues_of_components_are_not_divided_by():
    rng = np.random.default_rng(0)
    piece = rng.normal(size=(60, 2))
    pieces = np.vstack([piece, piece + 1e3, piece - 1e3])
    options = {"bandwidth": 1.0, "solver": "exact", "n_eigenvalues": 12}
    spread = ua.compare([pieces, piece], distance="shape-dna", **options)
    assert 0 < spread.distances[0, 1] < 20
    assert np.isfinite(spread.error_bounds).all()


def test_data_of_isolated_components_raise():
    far = 1e3 * np.arange(12.0)[:, None]
    with pytest.raises(DegenerateDataError, match="'a': all of the first 12 eigenvalues are 1"):
        ua.distance(far, far + 1, "shape-dna", bandwidth=1.0)


def test_few_samples_or_eigenvalues():
    rng = np.random.default_rng(0)
    small = [rng.normal(size=(n, 2)) for n in (9, 13)]
    assert ua.compare(small, distance="shape-dna").distance.settings.n_eigenvalues == 9
    with pytest.raises(InputError, match="n_eigenvalues=2 must be at least 3"):
        ua.distance(*small, "shape-dna", n_eigenvalues=2)
    with pytest.raises(InputError, match="needs at least 3 samples; dataset 'a' has 2"):
        ua.distance(small[0][:2], small[1], "shape-dna")


class TestSurfaces:
    robust = pytest.importorskip("robust_laplacian")

    def values(self, data, k=9):
        result = ua.compare([data], distance="shape-dna", laplacian="robust", n_eigenvalues=k)
        return next(iter(result._descriptors.values()))

    @pytest.mark.parametrize("radius", [1.0, 30.0])
    @pytest.mark.parametrize("n", [400, 1500], ids=["dense", "sparse"])
    def test_the_sphere_has_its_known_eigenvalues(self, n, radius):
        # l(l+1), each 2l+1 times, over the squared radius; the area is 4π times that square.
        known = 4 * np.pi * np.array([0, *[2] * 3, *[6] * 5])
        mesh = sphere_mesh(n)
        mesh = Mesh(radius * np.asarray(mesh.values), faces=mesh.faces)
        assert np.allclose(self.values(mesh), known, rtol=0.05, atol=1e-6)
        assert np.allclose(self.values(radius * sphere(n)), known, rtol=0.1, atol=1e-6)

    def test_dense_and_sparse_agree(self, monkeypatch):
        mesh = sphere_mesh(400)
        dense = self.values(mesh, 50)
        monkeypatch.setattr("unaligned.spectra.laplacian.DENSE_VERTICES", 10)
        assert np.allclose(self.values(mesh, 50), dense, rtol=1e-8, atol=1e-8)

    def test_different_surfaces_are_far_apart_and_equal_ones_close(self):
        mesh, cloud = sphere_mesh(600), sphere(600)
        flat = cloud * [1.0, 1.0, 0.3]
        options = {"distance": "shape-dna", "laplacian": "robust"}
        names = {"mesh": mesh, "cloud": cloud, "flat": flat, "again": cloud.copy()}
        result = ua.compare(names, **options)
        assert result["cloud", "again"] == 0.0
        assert result["cloud", "flat"] > 3 * result["cloud", "mesh"] > 0
        assert np.isnan(result.error_bounds).all()

    def test_mesh_is_invariant_to_order_and_motion_and_cloud_nearly(self):
        rng = np.random.default_rng(0)
        order, Q = rng.permutation(600), np.linalg.qr(rng.normal(size=(3, 3)))[0]
        options = {"distance": "shape-dna", "laplacian": "robust"}
        mesh, cloud = sphere_mesh(600), rng.normal(size=(600, 3)) * [3, 2, 1]
        moved = Mesh(3 * mesh.values[order] @ Q + 1, faces=np.argsort(order)[mesh.faces])
        assert ua.distance(mesh, moved, **options) < 1e-8
        assert ua.distance(cloud, 3 * cloud + 1, **options) < 1e-6
        turned = ua.distance(cloud, cloud[order] @ Q, **options)
        assert turned < 0.05 * ua.distance(cloud, mesh, **options)

    def test_faces_change_the_value(self):
        mesh = sphere_mesh(200)
        open_mesh = Mesh(mesh.values, faces=mesh.faces[20:])
        assert mesh.fingerprint != open_mesh.fingerprint
        assert ua.distance(mesh, open_mesh, "shape-dna", laplacian="robust") > 0.1
        assert ua.distance(mesh, open_mesh, "shape-dna") == 0.0

    def test_vertices_without_faces_raise(self):
        mesh = sphere_mesh(100)
        loose = Mesh(np.vstack([mesh.values, [[9.0, 9, 9]]]), faces=mesh.faces)
        with pytest.raises(DegenerateDataError, match="'a': 1 of 101 vertices have no area"):
            ua.distance(loose, mesh, "shape-dna", laplacian="robust")

    @pytest.mark.parametrize("unit", [1e-160, 1e-100, 1e100, 1e300])
    def test_units_do_not_matter(self, unit):
        mesh, cloud = sphere_mesh(200), sphere(200)
        large = Mesh(unit * np.asarray(mesh.values), faces=mesh.faces)
        assert np.allclose(self.values(large), self.values(mesh), rtol=1e-9, atol=1e-9)
        assert np.allclose(self.values(unit * cloud), self.values(cloud), rtol=1e-9, atol=1e-9)

    def test_duplicated_points_of_a_cloud_count_once(self):
        cloud = sphere(200)
        twice = np.random.default_rng(0).permutation(np.repeat(cloud, 2, axis=0))
        assert ua.distance(cloud, twice, "shape-dna", laplacian="robust") == 0.0

    @pytest.mark.parametrize("n", [4, 12, 30])
    def test_small_clouds_have_fewer_neighbours(self, n):
        assert (
            ua.distance(sphere(n), 2 * sphere(n) * [1, 1, 2], "shape-dna", laplacian="robust") > 0
        )

    @pytest.mark.parametrize(
        ("points", "message"),
        [
            (np.zeros((40, 3)), r"'[ab]': a point cloud needs 4 distinct points .*, and has 1"),
            (np.tile(np.vstack([np.eye(3), -np.eye(3)]), (4, 1)), r"6 of 24 points are distinct"),
            (np.outer(np.arange(40.0), [1, 2, 3]), r"'a': all vertices lie on a line"),
            (np.eye(3), r"'[ab]': a point cloud needs 4 distinct points .*, and has 3"),
        ],
    )
    def test_data_without_a_surface_raise(self, points, message):
        with pytest.raises(DegenerateDataError, match=message):
            ua.distance(points, sphere(len(points)), "shape-dna", laplacian="robust")

    def test_data_that_do_not_apply_raise(self):
        with pytest.raises(NotApplicableError, match=r"points with three columns.*points with 8"):
            ua.distance(*clouds(0), "shape-dna", laplacian="robust")
        reduced = ua.distance(*clouds(0), "shape-dna", laplacian="robust", preprocess="pca:3")
        assert reduced > 0
        with pytest.raises(NotApplicableError, match="has 2 after preprocessing"):
            ua.distance(*clouds(0), "shape-dna", laplacian="robust", preprocess="pca:2")
        with pytest.raises(InputError, match="laplacian='robust' needs the data"):
            ua.distance(ua.signature(clouds(0)[0]), sphere(90), "shape-dna", laplacian="robust")


def test_missing_robust_laplacian_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "robust_laplacian", None)
    with pytest.raises(MissingExtraError, match=r"robust_laplacian.*unaligned\[topology\]"):
        ua.distance(sphere(60), sphere(70), "shape-dna", laplacian="robust")
