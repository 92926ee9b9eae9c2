"""The predicted solver, time and memory of a signature."""

import time
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import unaligned as ua
from unaligned import cost, defaults
from unaligned.data.shapes import Mesh, torus2, torus3, torus_angles
from unaligned.errors import DegenerateDataError, InputError, InputTypeError, OptionError
from unaligned.spectra import cost_model
from unaligned.spectra import pipeline as compute
from unaligned.spectra.cost_model import PROBE_ROWS
from unaligned.spectra.krylov import Krylov

RNG = np.random.default_rng(0)
SETS = {
    "2-torus": torus2(torus_angles(6000, 2, rng=0)),
    "3-torus": torus3(torus_angles(5000, 3, rng=0)),
    "noise in 10": RNG.normal(size=(1500, 10)),
    "few": RNG.normal(size=(400, 3)),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("k", [50, 200])
def test_solver_is_the_one_auto_chooses(name, k):
    found = ua.estimate(SETS[name], n_eigenvalues=k)
    assert found.solver == ua.signature(SETS[name], n_eigenvalues=k).stats["chosen"]
    assert (found.n_samples, found.n_features, found.n_eigenvalues) == (*SETS[name].shape, k)


def test_landmarks_of_a_stream_are_predicted(monkeypatch):
    monkeypatch.setattr(defaults, "STREAM_ROWS", 1000)
    points = torus2(torus_angles(20_000, 2, rng=1))
    options = {"bandwidth": "mean", "n_eigenvalues": 60}
    found = ua.estimate(points, **options)
    stats = ua.signature(points, **options).stats
    assert stats["storage"] == "streamed"
    assert found.solver == "landmarks"
    predicted = int(found.reason.split("; ")[1].split()[0])
    assert stats["landmarks"] / 1.5 < predicted < 1.5 * stats["landmarks"]


def test_krylov_is_predicted_for_a_heavy_tail(monkeypatch):
    monkeypatch.setattr(defaults, "STREAM_ROWS", 1000)
    points = RNG.normal(size=(2500, 12))
    options = {"n_eigenvalues": 60, "bandwidth": "mean"}
    found = ua.estimate(points, **options)
    assert found.solver == ua.signature(points, **options).stats["chosen"] == "krylov"
    assert ua.estimate(points, solver="landmarks", **options).solver == "landmarks"


def test_at_most_a_few_rows_are_probed(monkeypatch):
    sizes = []
    original = compute.operator_of

    def recorded(dataset, kernel, rng):
        sizes.append(dataset.n_samples)
        return original(dataset, kernel, rng)

    monkeypatch.setattr(compute, "operator_of", recorded)
    ua.estimate(torus3(torus_angles(40_000, 3, rng=0)), n_eigenvalues=50)
    assert max(sizes) == PROBE_ROWS


def test_some_of_many_similar_datasets_are_probed(monkeypatch):
    probed = []
    original = cost.CostModel

    def recorded(dataset, settings, k):
        probed.append(dataset.n_samples)
        return original(dataset, settings, k)

    monkeypatch.setattr(cost, "CostModel", recorded)
    alike = [RNG.normal(size=(200 + i // 4, 3)) for i in range(20)]
    found = ua.estimate([*alike, RNG.normal(size=(200, 5))], n_eigenvalues=20)
    assert len(probed) == 4
    assert found.n_samples == 4 * sum(range(200, 205)) + 200
    assert found.reason == "21 datasets one after the other, 4 of them probed"


@pytest.mark.parametrize("solver", ["nystrom", "exact", "krylov", "landmarks"])
def test_time_grows_with_the_rows(solver, monkeypatch):
    monkeypatch.setattr(cost_model, "_seconds", lambda function: 1.0)
    points = torus3(torus_angles(8000, 3, rng=0))
    few, many = (
        ua.estimate(points[:n], n_eigenvalues=40, solver=solver).seconds for n in (1000, 8000)
    )
    assert {"exact": 100, "landmarks": 4}.get(solver, 20) < many / few < 8**3


def test_a_median_of_many_points_is_counted():
    points = torus2(torus_angles(60_000, 2, rng=1))
    with_median = ua.estimate(points, n_eigenvalues=30, tol=1e-2)
    without = ua.estimate(points, n_eigenvalues=30, tol=1e-2, bandwidth="mean")
    assert with_median.seconds > without.seconds


def test_reading_of_a_slow_source_is_counted():
    points = torus2(torus_angles(3000, 2, rng=0))

    def blocks():
        for block in np.array_split(points, 3):
            time.sleep(0.3)
            yield block

    # Two passes over three blocks.
    assert ua.estimate(ua.Dataset.from_source(blocks), n_eigenvalues=20).seconds > 6 * 0.3


@pytest.mark.parametrize("n", [300, 6000])
def test_probes_have_enough_rows_for_pca(n):
    points = RNG.normal(size=(n, 60))
    found = ua.estimate(points, preprocess="pca:50", n_eigenvalues=20)
    assert (found.n_samples, found.n_features) == (n, 60)


def ring(n, reach):
    """A graph in which every node knows `reach` nodes to either side."""
    offsets = [k for k in range(-reach, reach + 1) if k]
    wrapped = [np.arange(n) + k for k in offsets]
    rows = np.tile(np.arange(n), len(offsets))
    weights = np.ones(rows.size)
    return sparse.csr_array((weights, (rows, np.concatenate(wrapped) % n)), shape=(n, n))


@pytest.mark.parametrize("kind", ["graph", "affinity"])
def test_memory_of_a_sparse_matrix_counts_its_entries(kind):
    options = {"solver": "krylov", "n_eigenvalues": 10, "tol": 0.1}
    matrix = ring(4000, 4) + 8 * sparse.eye_array(4000)
    found = ua.estimate(ua.Dataset(matrix, kind=kind), **options)
    assert found.solver == "krylov"
    # The whole matrix would be 128 MB.
    assert found.memory_bytes < 8 * 4000**2 // 1.5


def test_neighbours_of_points_take_little_memory():
    options = {"n_neighbors": 10, "n_eigenvalues": 20, "solver": "krylov", "tol": 0.1}
    points = torus2(torus_angles(6000, 2, rng=0))
    assert ua.estimate(points, **options).memory_bytes < 4 * 6000**2


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("noise in 10", {"solver": "exact"}),
        # Of more columns, tracemalloc counts pages that are never written.
        ("noise in 10", {"solver": Krylov(max_columns=400), "n_eigenvalues": 60}),
        ("noise in 10", {"solver": "nystrom"}),
        ("3-torus", {"solver": "landmarks"}),
        ("noise in 10", {"n_neighbors": 12, "n_eigenvalues": 30, "solver": "krylov", "tol": 0.1}),
    ],
    ids=["exact", "krylov", "nystrom", "landmarks", "neighbours"],
)
@pytest.mark.filterwarnings("ignore::unaligned.errors.UnalignedWarning")
def test_memory_is_within_twice_of_what_is_allocated(name, options):
    points = SETS[name]
    predicted = ua.estimate(points, **options).memory_bytes
    ua.signature(points, **options)  # what is compiled and imported is no part of it
    tracemalloc.start()
    ua.signature(points, **options, rng=1)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most / 2 < predicted < 2 * most


def lazily(kind, points, tmp_path):
    if kind == "npy":
        np.save(tmp_path / "a.npy", points)
        return tmp_path / "a.npy"
    if kind == "dask":
        return pytest.importorskip("dask.array").from_array(points, chunks=(500, -1))
    return ua.Dataset.from_source(lambda: iter(np.array_split(points, 5)))


@pytest.mark.parametrize("kind", ["npy", "dask", "generator"])
@pytest.mark.parametrize("stream", [True, False])
def test_lazy_rows(kind, stream, tmp_path, monkeypatch):
    if stream:
        monkeypatch.setattr(defaults, "STREAM_ROWS", 1000)
    points = SETS["2-torus"][:3000]
    found = ua.estimate(lazily(kind, points, tmp_path), n_eigenvalues=20)
    assert (found.solver, found.n_samples, found.n_features) == ("landmarks", 3000, 3)
    assert found.seconds > 0


@pytest.mark.parametrize("n", [2, 3, 20, 50])
@pytest.mark.parametrize("solver", ["auto", "exact", "krylov", "landmarks", "nystrom"])
def test_few_rows_and_as_many_eigenvalues(n, solver):
    found = ua.estimate(RNG.normal(size=(n, 3)), n_eigenvalues=n, solver=solver)
    assert 0 < found.seconds < np.inf
    assert found.n_eigenvalues == n
    assert found.memory_bytes <= 1 << 22


def test_equal_points_raise_as_in_signature():
    with pytest.raises(DegenerateDataError, match=r"dataset 'flat'.*σ²=0"):
        ua.estimate(ua.Dataset(np.ones((400, 3)), name="flat"))


@pytest.mark.parametrize("n", [2000, 6000])
def test_mostly_copies_raise_as_in_signature(n):
    points = RNG.normal(size=(n, 3))
    points[: int(0.8 * n)] = 0.0
    for function in (ua.estimate, ua.signature):
        with pytest.raises(DegenerateDataError, match="bandwidth='median' gives σ²=0"):
            function(points, n_eigenvalues=10)


@pytest.mark.parametrize("make", [list, lambda points: dict(enumerate(points))])
def test_collection_is_summed(make):
    parts = [SETS["few"], SETS["noise in 10"][:700]]
    names = {str(i): part for i, part in enumerate(parts)}
    found = ua.estimate(make(parts) if make is list else names)
    alone = [ua.estimate(part) for part in parts]
    assert found.n_samples == 1100
    assert found.n_features == 10
    assert found.memory_bytes == max(part.memory_bytes for part in alone)
    assert "2 datasets" in found.reason


def test_collection_of_paths(tmp_path):
    paths = [tmp_path / "a.npy", str(tmp_path / "b.npy")]
    for path in paths:
        np.save(path, SETS["few"])
    assert ua.estimate(paths, n_eigenvalues=20).n_samples == 2 * len(SETS["few"])


def test_a_signature_in_a_collection_costs_nothing():
    known = ua.signature(SETS["few"], n_eigenvalues=20)
    found = ua.estimate([known, SETS["few"]], n_eigenvalues=20)
    assert found.n_samples == len(SETS["few"])
    assert "operations counted" in str(found)
    with pytest.raises(InputTypeError, match=r"Signatures only; there is nothing to compute"):
        ua.estimate({"known": known})


def test_error_names_the_member_of_a_collection():
    with pytest.raises(InputError, match=r"dataset 'broken' has NaN"):
        ua.estimate({"whole": SETS["few"], "broken": np.full((9, 2), np.nan)})
    with pytest.raises(InputError, match=r"data is empty"):
        ua.estimate({})


def test_a_list_of_rows_is_one_dataset():
    assert ua.estimate([[0.0, 1.0], [2.0, 3.0], [4.0, 6.0], [1.0, 1.0]]).n_samples == 4


def every_kind(n, tmp_path):
    """Yield a dataset of n rows of every kind, in memory, sparse and elsewhere."""
    points = np.random.default_rng(1).normal(size=(n, 3))
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.save(tmp_path / "points.npy", points)
    yield "points", ua.Dataset(points)
    yield "sparse points", ua.Dataset(sparse.csr_array(np.where(points > 0, points, 0.0)))
    yield "points elsewhere", ua.Dataset.from_source(tmp_path / "points.npy", preprocess="pca:2")
    faces = np.column_stack([np.arange(n - 2) + i for i in range(3)])
    yield "a mesh", Mesh(points, faces=faces, preprocess="standardize")
    yield "distances", ua.Dataset(distances, kind="distances")
    for kind in ("affinity", "spd", "graph"):
        yield kind, ua.Dataset(np.exp(-(distances**2)), kind=kind)
    for kind in ("affinity", "graph"):
        yield f"sparse {kind}", ua.Dataset(ring(n, 3) + sparse.eye_array(n), kind=kind)


@pytest.mark.parametrize("n", [300, pytest.param(PROBE_ROWS // 2 + 100, marks=pytest.mark.slow)])
def test_every_kind_has_an_estimate(n, tmp_path):
    for what, dataset in every_kind(n, tmp_path):
        found = ua.estimate(dataset, n_eigenvalues=10, tol=1e-2)
        assert found.n_samples == n, what
        assert 0 < found.seconds < np.inf, what
        assert found.memory_bytes > 0, what


def test_a_mesh_costs_what_its_vertices_do():
    mesh = Mesh(SETS["2-torus"][:3000], faces=[[0, 1, 2]], name="m", preprocess="standardize")
    found, wanted = (ua.estimate(data, n_eigenvalues=20) for data in (mesh, mesh.vertices))
    assert found.reason == wanted.reason
    assert found.solver == wanted.solver == ua.signature(mesh, n_eigenvalues=20).stats["chosen"]
    with pytest.raises(InputError, match=r"n_eigenvalues=5000 needs .*'m' has 3000"):
        ua.estimate(mesh, n_eigenvalues=5000)


def test_text_of_an_estimate():
    text = str(ua.estimate(SETS["2-torus"]))
    assert text.startswith("6,000 × 3, K=200: about ")
    assert "beyond the data with landmarks. 2400 rows needed" in text
    long = cost.Estimate("krylov", 7200.0, 3 << 30, 10**6, 5, 200, "Counted")
    assert "about 2.0 h and 3.0 GiB" in str(long)
    assert "about 5 min and 1 MiB" in str(
        cost.Estimate("exact", 300.0, 1 << 20, 10, 5, 2, "Counted")
    )


def test_invalid_arguments_raise_as_in_signature():
    with pytest.raises(InputError, match=r"n_eigenvalues=500 needs at least 500 samples"):
        ua.estimate(SETS["few"], n_eigenvalues=500)
    with pytest.raises(OptionError, match=r"estimate\(\) has no option 'engine'.*nan_policy"):
        ua.estimate(SETS["few"], engine="processes")
    with pytest.raises(OptionError, match=r"bandwith"):
        ua.estimate(SETS["few"], bandwith=2.0)
