"""The benchmark of distances: scores, jobs, cells with limits, resuming, results."""

import os
import time
from dataclasses import replace

import numpy as np
import pytest

import unaligned as ua
from unaligned.errors import FileError, InputError
from unaligned.experiments.benchmark import process, runner, scores, summary
from unaligned.experiments.benchmark.jobs import JOBS, Collection, job, load_jobs
from unaligned.experiments.benchmark.methods import SETTINGS, Method, methods, own
from unaligned.experiments.benchmark.runner import Cell, CellFile, Settings, run
from unaligned.metrics.registry import DISTANCES


def line(values):
    """Return the distances of points on a line."""
    x = np.asarray(values, dtype=float)
    return np.abs(x[:, None] - x)


def blank(n):
    return {str(i): np.zeros((2, 1)) for i in range(n)}


def test_nearest_ignores_datasets_of_the_same_group():
    items = Collection(blank(4), labels="abab", groups="1122")
    assert scores.nearest(line([0, 10, 1, 11]), items) == 1
    assert scores.nearest(line([0, 10, 11, 1]), items) == 0
    assert scores.nearest(line([0, 1, 0.4, 0.3]), items) == 0.25


def test_retrieval_is_one_for_the_first_rank_and_zero_for_the_last():
    items = Collection(blank(6), labels="abcabc", groups="111222")
    assert scores.retrieval(line([0, 10, 20, 1, 11, 21]), items) == 1
    far = np.ones((6, 6))
    for i in range(3):
        far[i, i + 3] = far[i + 3, i] = 2
    assert scores.retrieval(far, items) == 0


def test_equal_distances_score_as_chance():
    items = Collection(blank(6), labels="abcabc", groups="111222")
    assert scores.retrieval(np.ones((6, 6)), items) == pytest.approx(0.5)
    assert scores.nearest(np.ones((6, 6)), items) == pytest.approx(1 / 3)


def test_orders_and_rankings():
    rng = np.random.default_rng(0)
    times = np.arange(6.0)
    items = Collection(blank(6), values=times)
    assert scores.order(line(times), items) == pytest.approx(1)
    assert scores.order(-line(times), items) == pytest.approx(-1)
    assert scores.mantel(line(times), items, rng) < 0.05
    assert np.isnan(scores.order(np.ones((6, 6)), items))
    labels = ["reference", *["item"] * 5]
    ranked = Collection(blank(6), labels, values=times**2)
    assert scores.ranking(line(times), ranked) == pytest.approx(1)
    assert 0.9 < scores.prediction(line(times), ranked) < 1
    ends = Collection(blank(5), ["low", "high", *["between"] * 3], values=[0, 1, 0.2, 0.5, 0.8])
    assert scores.crossing(line([0, 1, 0.2, 0.5, 0.8]), ends) == pytest.approx(1)
    assert scores.crossing(line([1, 0, 0.2, 0.5, 0.8]), ends) == pytest.approx(-1)


def test_rows_are_drawn_equal_unequal_or_paired():
    points = {name: np.arange(60.0)[:, None] for name in "abcd"}
    items = Collection(points)
    sizes = lambda found: [len(rows) for rows in found.datasets.values()]  # noqa: E731
    rng = np.random.default_rng(0)
    assert sizes(items.drawn(30, rng, unequal=False, paired=False)) == [30] * 4
    drawn = {tuple(sizes(items.drawn(30, rng, unequal=True, paired=False))) for _ in range(20)}
    assert {tuple(sorted(some)) for some in drawn} == {(10, 20, 30, 30)}
    assert len(drawn) > 1  # in another order each time: a size must not tell the label
    paired = list(items.drawn(30, rng, unequal=False, paired=True).datasets.values())
    assert all(np.array_equal(paired[0], rows) for rows in paired)
    assert len(np.unique(paired[0])) == 30


def test_collections_survive_a_file(tmp_path):
    rng = np.random.default_rng(0)
    items = Collection({"b": rng.normal(size=(4, 2)), "a": rng.normal(size=(3, 5))}, "xy", "12")
    items.save(tmp_path / "items.npz")
    found = Collection.load(tmp_path / "items.npz")
    assert list(found.datasets) == ["b", "a"]
    assert all(np.array_equal(found.datasets[n], items.datasets[n]) for n in "ab")
    assert (found.labels.tolist(), found.groups.tolist()) == (["x", "y"], ["1", "2"])


def test_every_distance_is_a_method_and_every_job_has_a_score():
    names = [method.name for method in methods(None)]
    assert len(names) == len(set(names)) == len(DISTANCES) + len(SETTINGS)
    assert set(DISTANCES) < set(names)
    jobs = load_jobs()
    assert len(jobs) >= 14
    assert {job.score for job in jobs.values()} == set(scores.SCORES) == set(scores.TITLES)


@pytest.mark.parametrize("name", ["tori", "dimension", "digits"])
@pytest.mark.parametrize("seed", range(2))
def test_jobs_without_files_give_collections(name, seed):
    job = load_jobs()[name]
    items = job.collection(seed, full=False)
    again = job.collection(seed, full=False)
    assert all(np.array_equal(items.datasets[n], again.datasets[n]) for n in items.datasets)
    assert min(map(len, items.datasets.values())) >= job.n_quick
    assert len(items.labels) == len(items.groups) == len(items.values) == len(items.datasets)


MALARIA = pytest.param("malaria", marks=pytest.mark.slow)


@pytest.mark.parametrize("name", [MALARIA, "days", "sensors", "modalities", "views", "alphabets"])
def test_jobs_of_real_data_give_collections(name):
    job = load_jobs()[name]
    try:
        items = job.collection(0, full=False)
    except FileError as error:
        pytest.skip(str(error))
    assert min(map(len, items.datasets.values())) >= job.n_quick
    assert all(np.isfinite(points).all() for points in items.datasets.values())
    widths = {points.shape[1] for points in items.datasets.values()}
    assert len(widths) == 1 or not job.same_features


def test_what_a_job_assumes_decides_which_distances_apply():
    jobs = load_jobs()
    assert jobs["digits"].objection(DISTANCES["mmd"]) is None
    assert jobs["digits"].objection(DISTANCES["cka"]) == "its rows are not paired"
    assert "different features" in jobs["malaria"].objection(DISTANCES["mmd"])
    assert jobs["layers-paired"].objection(DISTANCES["cka"]) is None
    assert jobs["malaria"].objection(lambda a, b: 0.0) is None


def wait(seconds):
    time.sleep(seconds)
    return os.getpid()


def spin(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    return seconds


def fill(n_mb):
    return len(bytearray(b"x") * (n_mb << 20)) >> 20


def fail():
    raise InputError("no such thing")


def test_a_call_in_a_process_of_its_own():
    found = process.run_limited(wait, (0.0,), 20.0)
    assert found.status == "ok"
    assert found.value != os.getpid()
    assert process.run_limited(fill, (80,), 20.0).peak_mb > 60
    failed = process.run_limited(fail, (), 20.0)
    assert (failed.status, failed.detail) == ("InputError", "no such thing")
    assert process.run_limited(os._exit, (3,), 20.0).status == "ended"


def test_what_a_call_prints_is_not_the_result(capfd):
    assert process.run_limited(print, ("noise",), 20.0).status == "ok"
    assert "noise" not in capfd.readouterr().out


def test_a_call_is_ended_by_its_limit():
    found = process.run_limited(spin, (60.0,), 0.1)
    assert (found.status, found.detail) == ("over limit", "more than 0.1 s")


@pytest.fixture
def here(monkeypatch):
    """Run cells in this process, and count them."""
    calls = []

    def run_here(function, arguments, limit):
        calls.append(arguments)
        try:
            with ua.errors.collected():  # and not issued
                value = function(*arguments)
            return process.Outcome("ok", value, seconds=0.1, peak_mb=1.0)
        except ua.errors.UnalignedError as error:
            return process.Outcome(type(error).__name__, detail=str(error))

    monkeypatch.setattr(runner, "run_limited", run_here)
    return calls


def some(*names):
    return [replace(load_jobs()[name], n_quick=24) for name in names]


def test_results_without_a_score_say_why(tmp_path):
    status = {"status": "failed", "detail": "RuntimeError: boom", "limit": 10.0}
    cells = [runner.Cell("tori", sizes, "own:f", 0, **status) for sizes in runner.SIZES]
    written, _ = summary.write(cells, some("tori"), tmp_path, "unaligned benchmark")
    assert all(path.exists() for path in written[:-1])
    assert "- `own:f`: RuntimeError: boom (2 cells)" in (tmp_path / "RESULTS.md").read_text()


def test_cells_have_scores_or_reasons(tmp_path, here):
    cells = run(
        some("tori", "digits"),
        methods(["les", "mmd", "cka", "les block-corrected"]),
        tmp_path,
        settings=Settings(),
        n_seeds=2,
        n_jobs=1,
        progress=False,
    )
    assert len(cells) == 2 * 2 * 4 * 2
    by_key = {cell.key: cell for cell in cells}
    les = by_key["digits", "equal", "les", 0]
    assert les.status == "ok"
    assert 0 <= les.score <= 1
    assert by_key["digits", "equal", "cka", 0].detail == "its rows are not paired"
    assert by_key["tori", "unequal", "mmd", 1].status == "not applicable"
    corrected = by_key["tori", "equal", "les block-corrected", 0]
    assert (corrected.status, corrected.detail) == (
        "not applicable",
        "it needs 120 rows, and a dataset has 24",
    )


def test_a_run_resumes_and_repeats_what_may_succeed_now(tmp_path, here):
    options = {"settings": Settings(), "n_seeds": 1, "n_jobs": 1, "progress": False}
    first = run(some("tori"), methods(["les"]), tmp_path, **options)
    n_calls = len(here)
    assert str(run(some("tori"), methods(["les"]), tmp_path, **options)) == str(first)
    assert len(here) == n_calls
    file = CellFile(tmp_path, Settings())
    file.add(replace(first[0], status="missing data", score=float("nan")))
    file.add(replace(first[1], status="over limit", score=float("nan")))
    again = run(some("tori"), methods(["les"]), tmp_path, **options)
    assert again[0].score == first[0].score
    assert (again[1].status, len(here)) == ("over limit", n_calls + 1)
    longer = {**options, "settings": Settings(limit=50.0)}
    assert run(some("tori"), methods(["les"]), tmp_path, **longer)[1].score == first[1].score


def test_a_slow_cell_is_tried_once_and_missing_data_is_a_cell(tmp_path, monkeypatch):
    calls = []

    def slow(function, arguments, limit):
        calls.append(arguments)
        if function is runner._make and arguments[0] == "days":
            return process.Outcome("FileError", detail="There is no file 'x'.")
        if function is runner._make:
            return process.Outcome("ok")
        return process.Outcome("over limit", detail="more than 10 s")

    monkeypatch.setattr(runner, "run_limited", slow)
    options = {"settings": Settings(), "n_seeds": 3, "n_jobs": 1, "progress": False}
    cells = run(some("tori", "days"), methods(["les"]), tmp_path, **options)
    found = {cell.key: cell.status for cell in cells}
    assert found["days", "equal", "les", 2] == "missing data"
    assert found["tori", "unequal", "les", 2] == "over limit"
    assert sum(len(arguments) > 4 and isinstance(arguments[1], Cell) for arguments in calls) == 2
    text = summary.table(summary.means(cells), "equal")
    assert text.loc["les"].tolist() == [">10 s", "no data"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("settings.json", "{}", "has cells of other settings"),
        ("settings.json", "not JSON", "has cells of other settings"),
        ("cells.csv", "job,sizes\ntori,equal\n", "Cannot resume from .*cells.csv.*KeyError"),
        ("cells.csv", "\x00", "Cannot resume from"),
        ("cells.csv", "", "Cannot resume from .*no header"),
    ],
)
def test_a_damaged_folder_is_named(tmp_path, here, name, content, message):
    options = {"settings": Settings(), "n_seeds": 1, "n_jobs": 1, "progress": False}
    run(some("tori"), methods(["les"]), tmp_path, **options)
    if content == "\x00":
        (tmp_path / name).write_text((tmp_path / name).read_text()[:-30] + "\n")
    else:
        (tmp_path / name).write_text(content)
    with pytest.raises((FileError, InputError), match=message):
        run(some("tori"), methods(["les"]), tmp_path, **options)


def test_a_truncated_last_cell_is_computed_again(tmp_path, here):
    options = {"settings": Settings(), "n_seeds": 1, "n_jobs": 1, "progress": False}
    known = run(some("tori"), methods(["les", "imd"]), tmp_path, **options)
    file = tmp_path / "cells.csv"
    whole = file.read_text()
    file.write_text(whole[:-20])
    again = run(some("tori"), methods(["les", "imd"]), tmp_path, **options)
    assert [cell.score for cell in again] == [cell.score for cell in known]
    assert file.read_text().splitlines()[:-1] == whole.splitlines()[:-1]


def test_results_have_a_table_a_figure_and_costs(tmp_path, here):
    jobs = some("tori", "digits")
    options = {"settings": Settings(), "n_seeds": 2, "n_jobs": 1, "progress": False}
    cells = run(jobs, methods(["les", "les γ=1e-2", "mmd", "shape-dna"]), tmp_path, **options)
    files, means = summary.write(cells, jobs, tmp_path, "unaligned benchmark --quick")
    assert all(path.stat().st_size > 0 for path in files)
    report = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert "Made by `unaligned benchmark --quick`; means over 2 seeds" in report
    assert "| `mmd` | – |" in report
    row = means.set_index(["job", "sizes", "method"]).loc["digits", "equal", "les"]
    both = [cell.score for cell in cells if cell.key[:3] == ("digits", "equal", "les")]
    assert row["score"] == pytest.approx(np.mean(both))
    assert row["n_seeds"] == 2


def test_anyone_can_add_a_distance_and_a_job(tmp_path, monkeypatch, here):
    (tmp_path / "my_benchmark.py").write_text(
        "import numpy as np\n"
        "from unaligned.experiments.benchmark import Collection, job\n"
        "def gap(a, b):\n"
        "    return abs(len(a) - len(b))\n"
        "@job('mine', 'Which size?', 'ones', 'nearest')\n"
        "def mine(rng, full):\n"
        "    sets = {str(i): np.ones((10 + 10 * (i % 2), 1)) for i in range(4)}\n"
        "    return Collection(sets, labels='abab', groups='1122')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    try:
        jobs = [load_jobs("my_benchmark")["mine"]]
        options = {"settings": Settings(), "n_seeds": 1, "n_jobs": 1, "progress": False}
        used = methods([], ["my_benchmark:gap"])
        cells = run(jobs, used, tmp_path / "out", modules=["my_benchmark"], **options)
        assert [cell.score for cell in cells if cell.sizes == "equal"] == [1.0]
    finally:
        JOBS.pop("mine", None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nowhere:Distance", "module 'nowhere' cannot be imported"),
        ("math:nothing", "distance='math:nothing'.*no attribute 'nothing'"),
        ("math:pi", "it must be a Distance or a function"),
        ("lse", "distance='lse' is not known.*Did you mean 'les'"),
        (":x", "module '' cannot be imported"),
    ],
)
def test_a_bad_distance_is_named(text, message):
    with pytest.raises(InputError, match=message):
        methods(None, [text])
    with pytest.raises(InputError, match="only='lse' is not known"):
        methods(["lse"])


def test_a_bad_score_of_a_job_is_named():
    with pytest.raises(ValueError, match="score='best' is not one of nearest"):
        job("x", "?", "none", "best")
    assert own("math:dist")([0], [1]) == 1
    assert Method("x", "math:dist").resolved()([0], [2]) == 2
