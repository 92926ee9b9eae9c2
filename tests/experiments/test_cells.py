"""`unaligned reproduce cells`: time courses, correlations with time, and stages across species."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from conftest import DATA
from unaligned.errors import FileError, InputError
from unaligned.experiments import time_courses
from unaligned.experiments.cell_results import METHODS, correlations, retrieve
from unaligned.experiments.cells import ACROSS, Cells
from unaligned.experiments.reproduction import reproduce
from unaligned.experiments.time_courses import CYTOTREE, SPECIES, read_course

for package in ("anndata", "h5py", "ot", "gudhi", "ripser"):
    pytest.importorskip(package, reason="the experiment needs it")

DAYS = ("0.0", "0.5", "1.0", "8.25", "18.0")
TINY = {"rounds": 5, "topology_rounds": 1, "n_genes": 20, "transport_cells": 20}


def write_reprogramming(path, days=DAYS, n_cells=30, n_genes=25):
    """Write a file of the layout of Schiebinger's: log-normalised CSR, categorical days."""
    import anndata

    rng = np.random.default_rng(0)
    labels = np.repeat(days, n_cells)
    widths = 1 + np.repeat(np.arange(len(days)), n_cells)[:, None] * rng.uniform(size=n_genes)
    values = np.log1p(np.maximum(rng.normal(size=(labels.size, n_genes)) * widths, 0))
    obs = pd.DataFrame(
        {"day": pd.Categorical(labels)}, index=[f"c{i}" for i in range(labels.size)]
    )
    cells = anndata.AnnData(sparse.csr_matrix(values.astype(np.float32)), obs=obs)
    order = rng.permutation(labels.size)  # cells of a file are in no order
    cells[order].copy().write_h5ad(path)
    return str(path)


@pytest.fixture(autouse=True)
def _nothing_is_remembered():
    yield
    for function in (read_course, time_courses.principal_groups, time_courses._labelled):
        function.cache_clear()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A whole run on a small file of the paper's layout."""
    folder = tmp_path_factory.mktemp("cells")
    path = write_reprogramming(folder / "reprogramming.h5ad")
    experiment = Cells(data=path, n_trials=2, **TINY)
    return reproduce(experiment, folder / "out", progress=False), folder


class TestFile:
    def test_time_points_are_groups_of_the_most_variable_genes(self, tmp_path):
        path = write_reprogramming(tmp_path / "a.h5ad")
        course = read_course("a", path, 20, 0)
        assert course.times == {"0": 0.0, "0.5": 0.5, "1": 1.0, "8.25": 8.25, "18": 18.0}
        assert {values.shape for values in course.groups.values()} == {(30, 20)}
        everything = read_course("a", path, 25, 0)
        together = np.vstack([values.toarray() for values in everything.groups.values()])
        kept = np.sort(np.argsort(-together.var(axis=0))[:20])
        np.testing.assert_array_equal(
            np.sort(course.groups["18"].toarray(), axis=0),
            np.sort(everything.groups["18"].toarray()[:, kept], axis=0),
        )

    def test_run_gives_the_papers_numbers_beside_ours(self, run):
        results, folder = run
        assert set(results.table["method"]) == set(METHODS)  # species need their own data
        text = (folder / "out" / "RESULTS.md").read_text()
        assert f"--set data={folder / 'reprogramming.h5ad'}" in text
        assert "5 of 30 cells × 20, K = 30" in text  # lowered from 500, and said
        assert "| reprogramming | all | LES |" in text
        for number in ("0.74", "0.28", "0.60", "0.03", "0.10", "0.69", "0.27"):
            assert f"| {number} |" in text
        paper = next(c for c in results.claims if c.source == "Fig. 3")
        assert paper.passed is not None  # decided, as these are the paper's cells
        names = {path.name for path in results.files}
        assert {"cells.png", "cells-gene-subsets.png"} <= names

    def test_only_gene_subsets_are_repeated(self, run):
        table = run[0].table
        later = table[table["trial"] == 1]
        assert set(later["part"]) == {"reprogramming, gene subsets"}
        assert set(later["method"]) == {"les", "imd", "geometry-score"}
        les = table[(table["method"] == "les") & (table["part"] == "reprogramming, gene subsets")]
        draws = les.pivot(index="pair", columns="trial", values="distance")
        assert (draws[0] != draws[1]).all()

    def test_correlations_are_those_of_the_distances(self, run):
        results, _ = run
        found = correlations(results.experiment, results.table, "reprogramming", subsets=False)
        rows = results.table[results.table["part"] == "reprogramming"]
        rows = rows[rows["method"] == "les"]
        times = [sorted(map(float, pair.split(","))) for pair in rows["pair"]]
        expected = np.corrcoef([b - a for a, b in times], rows["distance"])[0, 1]
        assert found["les"].mean == pytest.approx(expected)

    def test_every_pair_is_measured_once(self, run):
        experiment = run[0].experiment
        for method in METHODS:
            rows = run[0].table.query("method == @method and trial == 0")
            rows = rows[~rows["part"].str.contains("subsets")]
            assert rows["pair"].nunique() == len(rows) == 10, method
        for stage in experiment.tasks(["wasserstein"]):
            assert [len(experiment.pairs("wasserstein", t.value)) for t in stage] == [4, 3, 2, 1]

    @pytest.mark.parametrize(
        ("days", "message"),
        [
            (("a", "b", "c", "d"), r"obs\['day'\] must be numbers, and it has 'a'"),
            (("0", "1", "2"), r"has 3 values, 0, 1, 2; the experiment needs at least 4"),
        ],
    )
    def test_wrong_days_raise(self, tmp_path, days, message):
        path = write_reprogramming(tmp_path / "a.h5ad", days)
        with pytest.raises(InputError, match=message):
            reproduce(Cells(data=path, **TINY), tmp_path / "out", progress=False)

    def test_raw_counts_are_normalised(self, tmp_path):
        import anndata

        path = write_reprogramming(tmp_path / "a.h5ad")
        cells = anndata.read_h5ad(path)
        cells.X = sparse.csr_matrix(np.round(100 * cells.X.toarray()))
        cells.write_h5ad(path)
        for values in read_course("a", path, 25, 0).groups.values():
            totals = np.expm1(values.toarray()).sum(axis=1)
            np.testing.assert_allclose(totals, totals[0])

    def test_missing_column_and_file_raise(self, tmp_path):
        import anndata

        with pytest.raises(InputError, match=r"data='a.csv' must be an AnnData file"):
            reproduce(Cells(data="a.csv"), tmp_path / "out", progress=False)
        anndata.AnnData(np.eye(4)).write_h5ad(tmp_path / "a.h5ad")
        with pytest.raises(FileError, match=r"a.h5ad.*'day' is not a column of obs"):
            reproduce(Cells(data=str(tmp_path / "a.h5ad")), tmp_path / "out", progress=False)
        with pytest.raises(FileError, match=r"none.h5ad': no such file"):
            reproduce(Cells(data=str(tmp_path / "none.h5ad")), tmp_path / "out", progress=False)


@pytest.mark.parametrize(
    "settings", [{"max_cells": 1}, {"rounds": 0}, {"least_share": 0.0}, {"n_genes": 2.5}], ids=str
)
def test_wrong_settings_raise(settings):
    with pytest.raises((InputError, TypeError), match=next(iter(settings))):
        Cells(**settings)


def test_missing_data_says_what_to_set(tmp_path, monkeypatch):
    monkeypatch.setenv("UNALIGNED_DATA", str(tmp_path))
    with pytest.raises(FileError, match=r"Set UNALIGNED_DATA .* or give .* --data cells.h5ad"):
        reproduce(Cells(**TINY), tmp_path / "out", only=["les"], progress=False)


@pytest.fixture
def own_data(monkeypatch):
    if not DATA.exists():
        pytest.skip(f"real data is not in {DATA}; set UNALIGNED_DATA")
    monkeypatch.setenv("UNALIGNED_DATA", str(DATA))


def test_cytotree_has_six_days_of_ten_markers(own_data):
    course = read_course(CYTOTREE, None, 1500, 0)
    assert course.n_features == 10
    assert sum(len(values) for values in course.groups.values()) == 50_674
    assert list(course.times.values()) == [0, 2, 4, 6, 8, 10]


def test_species_have_equal_bins_in_the_order_of_the_cycle(own_data):
    found = read_course("P. knowlesi", None, 100, 0)
    sizes = [values.shape[0] for values in found.groups.values()]
    assert max(sizes) - min(sizes) <= 1
    assert len(sizes) == 9
    assert list(found.times.values()) == sorted(found.times.values())
    assert set(found.stages.values()) <= set(range(8))


def test_species_are_compared_with_other_species_only():
    experiment = Cells()
    pairs = [pair.split(",") for pair in experiment.pairs("les", ACROSS)]
    assert len(pairs) == 3 * 81
    assert all(a[:2] != b[:2] for a, b in pairs)
    by_row = [
        pair
        for stage in experiment.tasks(["gromov-wasserstein"])
        for task in stage
        for pair in experiment.pairs("gromov-wasserstein", task.value)
    ]
    assert by_row == list(experiment.pairs("les", ACROSS))


def stages_of(n_stages=9):
    return {
        f"{code} {i + 1}": (i % n_stages, float(i)) for code in SPECIES.values() for i in range(9)
    }


def test_retrieval_of_matching_stages_is_perfect():
    numbers = np.tile(np.arange(9.0), 3)
    found = retrieve(np.abs(np.subtract.outer(numbers, numbers)), stages_of(), 0)
    assert found.accuracy == 1.0
    assert found.chance == pytest.approx(1 / 9)
    assert found.p_value == pytest.approx(1e-4)
    np.testing.assert_array_equal(found.confusion, 3 * np.eye(9))


def test_gromov_wasserstein_alone_is_drawn(monkeypatch):
    monkeypatch.setattr(Cells, "_stages", lambda self: stages_of())
    experiment, rng = Cells(), np.random.default_rng(0)
    (stage,) = experiment.tasks(["gromov-wasserstein"])
    table = pd.DataFrame(
        {"trial": 0, "part": task.value, "method": method, "pair": pair, "distance": rng.uniform()}
        for task in stage
        for method in task.methods
        for pair in experiment.pairs(method, task.value)
    )
    (panel,) = experiment.draw(table).axes
    assert panel.get_title().startswith("GW")


def test_retrieval_ignores_distances_within_a_species():
    numbers = np.tile(np.arange(9.0), 3)
    distances = np.abs(np.subtract.outer(numbers, numbers))
    within = np.kron(np.eye(3), np.ones((9, 9)))
    found = retrieve(np.where(within > 0, np.nan, distances), stages_of(), 0)
    assert found.accuracy == 1.0


def test_retrieval_by_unrelated_distances_is_chance():
    p_values = []
    for seed in range(20):
        points = np.random.default_rng(seed).normal(size=(27, 5))
        distances = np.linalg.norm(points[:, None] - points, axis=-1)
        found = retrieve(distances, stages_of(3), seed)
        assert found.chance == pytest.approx(1 / 3)
        p_values.append(found.p_value)
    assert np.mean(np.array(p_values) <= 0.05) <= 0.25  # 5 of 20 has probability 3e-3
    assert np.median(p_values) > 0.1
