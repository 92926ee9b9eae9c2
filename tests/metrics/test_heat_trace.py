"""IMD and NetLSD against dense textbook versions."""

import networkx
import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

import textbook
import unaligned as ua
from unaligned.errors import DataWarning, InputError, NotApplicableError

SEEDS = range(4)
SIGNATURES = {"heat": textbook.netlsd_heat, "wave": textbook.netlsd_wave}


def clouds(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(90, 3)), rng.normal(size=(120, 6))


def graphs(seed):
    rng = np.random.default_rng(seed)
    upper = [np.triu(rng.random((n, n)) < p, 1).astype(float) for n, p in ((40, 0.1), (55, 0.05))]
    return [A + A.T for A in upper]  # the second has isolated nodes, mostly


def rotated(points, seed):
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(points.shape[1],) * 2))[0]
    return 7.0 * points @ Q - 3.0


@pytest.mark.parametrize("seed", SEEDS)
def test_exact_imd_equals_the_textbook(seed):
    a, b = clouds(seed)
    expected = textbook.imd(*map(textbook.neighbour_adjacency, (a, b)))
    assert ua.distance(a, b, "imd", method="exact") == pytest.approx(expected, rel=1e-8)
    D = [ua.Dataset(cdist(x, x), kind="distances") for x in (a, b)]
    assert ua.distance(*D, "imd", method="exact") == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_imd_of_graphs_equals_the_textbook(seed):
    a, b = graphs(seed)
    given = [ua.Dataset(A, kind="graph") for A in (a, sparse.csr_array(b))]
    found = ua.distance(*given, "imd", method="exact")
    assert found == pytest.approx(textbook.imd(a, b), rel=1e-8)


@pytest.mark.parametrize("far", [1e8, 1e10])
@pytest.mark.parametrize("seed", SEEDS)
def test_imd_equals_the_textbook_with_outliers(seed, far):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(150, 20)), 1.3 * rng.normal(size=(150, 20))
    a[:10] += far
    b[:10] += far
    expected = textbook.imd(*map(textbook.neighbour_adjacency, (a, b)))
    assert ua.distance(a, b, "imd", method="exact") == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("data", ["a constant column", "ties", "steps of 0.1"])
@pytest.mark.parametrize("distance", ["imd", "netlsd"])
@pytest.mark.parametrize("seed", SEEDS)
def test_sparse_and_dense_points_have_the_same_graph(seed, distance, data):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(150, 13))
    if data == "a constant column":
        points[:, 12] = 1e6
    else:
        points = np.round(points, 0 if data == "ties" else 1)
    third = rng.normal(size=(100, 5))
    dense = ua.distance(points, third, distance, method="exact")
    assert ua.distance(sparse.csr_array(points), third, distance, method="exact") == dense


@pytest.mark.parametrize("seed", range(12))
def test_imd_by_quadrature_stays_within_its_probe_noise(seed):
    pair = clouds(seed)
    exact = ua.compare(pair, distance="imd", method="exact")
    sketched = ua.compare(pair, distance="imd", rng=seed)
    gap = abs(exact.distances - sketched.distances)[0, 1]
    assert 0 < gap <= sketched.error_bounds[0, 1]
    assert exact.error_bounds.max() < 1e-6 < sketched.error_bounds.min()


@pytest.mark.parametrize("distance", ["imd", "netlsd"])
def test_equal_data_get_the_same_probes_at_any_position(distance):
    a, b = clouds(0)
    result = ua.compare([a, b, a.copy()], distance=distance, method="slq")
    assert result.distances[0, 2] == 0.0
    assert np.array_equal(result.distances[0], result.distances[2])
    other = ua.compare([a, b], distance=distance, method="slq", rng=1)
    assert other.distances[0, 1] != result.distances[0, 1]


@pytest.mark.parametrize("change", ["order", "rotation and scale"])
@pytest.mark.parametrize("distance", ["imd", "netlsd"])
@pytest.mark.parametrize("seed", SEEDS)
def test_order_and_motion_change_only_the_probes(distance, change, seed):
    points = clouds(seed)[0]
    order = np.random.default_rng(seed).permutation(len(points))
    changed = points[order] if change == "order" else rotated(points, seed)
    exact = ua.distance(points, changed, distance, method="exact")
    assert exact == pytest.approx(0.0, abs=1e-7)
    probed = ua.compare([points, changed], distance=distance, method="slq")
    assert 0 < probed.distances[0, 1] <= probed.error_bounds[0, 1]


@pytest.mark.parametrize("normalization", ["empty", "complete", "none"])
@pytest.mark.parametrize("kernel", SIGNATURES)
@pytest.mark.parametrize("seed", SEEDS)
def test_netlsd_equals_the_textbook(kernel, normalization, seed):
    a, b = graphs(seed)
    expected = np.linalg.norm(np.subtract(*(SIGNATURES[kernel](A, normalization) for A in (a, b))))
    given = [ua.Dataset(A, kind="graph") for A in (a, b)]
    options = {"kernel": kernel, "normalization": normalization}
    assert ua.distance(*given, "netlsd", **options) == pytest.approx(expected, rel=1e-8)
    points = clouds(seed)
    from_points = [
        SIGNATURES[kernel](textbook.neighbour_adjacency(x), normalization) for x in points
    ]
    expected = np.linalg.norm(np.subtract(*from_points))
    assert ua.distance(*points, "netlsd", **options) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("kernel", SIGNATURES)
@pytest.mark.parametrize("seed", SEEDS)
def test_netlsd_by_quadrature_stays_within_its_probe_noise(kernel, seed):
    pair = clouds(seed)
    exact = ua.compare(pair, distance="netlsd", kernel=kernel)
    sketched = ua.compare(pair, distance="netlsd", kernel=kernel, method="slq", rng=seed)
    gap = abs(exact.distances - sketched.distances)[0, 1]
    assert 0 < gap <= sketched.error_bounds[0, 1]
    assert exact.error_bounds.max() < 1e-9 < sketched.error_bounds.min()


def test_netlsd_uses_probes_for_many_nodes(monkeypatch):
    monkeypatch.setattr("unaligned.spectra.laplacian.EXACT_SAMPLES", 100)
    bounds = ua.compare(clouds(0), distance="netlsd").error_bounds
    assert bounds[0, 0] < 1e-9 < bounds[1, 1]


@pytest.mark.parametrize("kernel", SIGNATURES)
def test_complete_normalisation_removes_the_size_of_complete_graphs(kernel):
    # 1 but for n/(n-1), their eigenvalue, which the published normalisation takes for 1.
    complete = [ua.Dataset(1 - np.eye(n), kind="graph") for n in (300, 1500)]
    options = {"kernel": kernel, "normalization": "complete"}
    assert ua.distance(*complete, "netlsd", **options) < 0.3


def test_wave_of_two_nodes_has_no_complete_normalisation():
    pair = [ua.Dataset(1 - np.eye(n), kind="graph") for n in (2, 3)]
    options = {"kernel": "wave", "normalization": "complete"}
    with pytest.raises(NotApplicableError, match=r"passes through zero.*'empty' applies"):
        ua.distance(*pair, "netlsd", **options)
    assert ua.distance(*pair, "netlsd", kernel="wave") > 0


def test_networkx_graphs_equal_their_adjacency():
    graph = networkx.karate_club_graph()
    other = networkx.les_miserables_graph()
    given = [ua.Dataset(g, kind="graph") for g in (graph, other)]
    matrices = [ua.Dataset(networkx.to_numpy_array(g), kind="graph") for g in (graph, other)]
    assert ua.distance(*given, "netlsd") == pytest.approx(ua.distance(*matrices, "netlsd"))
    assert ua.distance(graph, other, "netlsd") == ua.distance(*given, "netlsd")
    with pytest.raises(InputError, match=r"networkx graph, which has kind 'graph', not 'spd'"):
        ua.Dataset(graph, kind="spd")
    with pytest.raises(InputError, match="must be symmetric"):
        ua.Dataset(networkx.DiGraph([(0, 1)]), kind="graph")
    with pytest.raises(InputError, match="the graph has no nodes"):
        ua.Dataset(networkx.Graph(), kind="graph")


@pytest.mark.parametrize("distance", ["imd", "netlsd"])
def test_graphs_without_edges_have_distance_zero(distance):
    empty = [ua.Dataset(sparse.csr_array((n, n)), kind="graph") for n in (5, 9)]
    for method in ("exact", "slq"):
        assert ua.distance(*empty, distance, method=method) == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize("distance", ["imd", "netlsd"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_neighbors": 90}, r"'a': n_neighbors=90 needs more than 90 samples; there are 90"),
        ({"n_neighbors": 0}, "n_neighbors=0 must be at least 1"),
        ({"n_probes": 1}, "n_probes=1 must be at least 2"),
        ({"method": "lanczos"}, "method='lanczos' is not known.*auto, slq, exact"),
    ],
)
def test_invalid_options_raise(distance, options, message):
    with pytest.raises(InputError, match=message):
        ua.distance(*clouds(0), distance, **options)


@pytest.mark.parametrize("distance", ["imd", "netlsd"])
@pytest.mark.parametrize("make", [sparse.csr_array, sparse.coo_matrix, np.asarray])
@pytest.mark.parametrize("seed", SEEDS)
def test_points_that_look_like_a_graph_warn(distance, make, seed):
    pair = graphs(seed)
    message = r"'[ab]': the values look like an adjacency matrix.*Pass kind='graph'"
    with pytest.warns(DataWarning, match=message):
        ua.distance(*(make(A) for A in pair), distance)
    with pytest.warns(DataWarning, match=message):
        ua.distance(*(make(A.astype(bool)) for A in pair), distance)
    given = [ua.Dataset(make(A), kind="graph") for A in pair]
    assert ua.distance(*given, distance) > 0  # warnings are errors here


@pytest.mark.parametrize("distance", ["imd", "netlsd"])
@pytest.mark.parametrize(
    "change", ["not symmetric", "not square", "a diagonal", "negative", "preprocessed"]
)
def test_points_that_cannot_be_a_graph_do_not_warn(distance, change):
    graph, _ = graphs(0)
    places = np.arange(40)
    points = {
        "not symmetric": graph * np.linspace(1, 2, 40),
        "not square": graph[:, :35],
        "a diagonal": graph + np.diag(places),
        "negative": graph * (-1.0) ** np.add.outer(places, places),
    }.get(change, graph)
    options = {"preprocess": "log1p"} if change == "preprocessed" else {}
    for values in (points, sparse.csr_array(points)):
        assert ua.distance(values, points[:30], distance, **options) >= 0


def test_kinds_without_a_graph_raise():
    spd = [ua.Dataset(np.eye(9), kind="spd", name=n) for n in "ab"]
    with pytest.raises(NotApplicableError, match=r"points or distances or graph.*'a' is spd"):
        ua.distance(*spd, "imd")


def test_complex_traces_survive_a_file(tmp_path):
    first, second, third = np.random.default_rng(0).normal(size=(3, 30, 2))
    options = {"distance": "netlsd", "kernel": "wave", "method": "slq"}
    ua.compare({"a": first, "b": second}, **options).save(tmp_path / "kept")
    grown = ua.Comparison.load(tmp_path / "kept").add({"c": third})
    expected = ua.compare({"a": first, "b": second, "c": third}, **options)
    np.testing.assert_array_equal(grown.distances, expected.distances)
