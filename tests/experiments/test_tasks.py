"""Task difficulty: what is measured, how it is summarised, and what the paper says."""

import math
import re
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

import unaligned as ua
from synthetic_tasks import SMALL, small_tasks, synthetic_benchmark
from unaligned.errors import FileError, InputError
from unaligned.experiments import difficulty_figures, few_shot
from unaligned.experiments.base import Task
from unaligned.experiments.difficulty import (
    PAPER,
    correlations,
    pearson,
    tasks_of,
    threshold_transfer,
    within,
)
from unaligned.experiments.few_shot import SHARES, Benchmark, load_benchmark
from unaligned.experiments.reproduction import reproduce
from unaligned.experiments.tasks import Tasks

PAPER_TEX = Path(__file__).parents[3] / "shared" / "paper.tex"


@pytest.mark.parametrize("share", SHARES)
def test_tasks_have_their_share_of_unseen_classes(share):
    benchmark = synthetic_benchmark(0)
    for seed in range(5):
        classes = benchmark.draw(share, np.random.default_rng(seed))
        assert len(set(classes)) == 5
        assert sum(name in benchmark.unseen for name in classes) == round(5 * share)


def test_characters_of_a_task_are_of_one_alphabet():
    rng = np.random.default_rng(0)
    drawings = {f"{a}/{i}": rng.normal(size=(20, 2)) for a in "abc" for i in range(4 + ord(a) % 3)}
    benchmark = Benchmark(drawings, {f"z/{i}": drawings["a/0"] for i in range(5)}, 5)
    for seed in range(10):
        classes = benchmark.draw(0.0, np.random.default_rng(seed))
        assert len({name.split("/")[0] for name in classes}) == 1
        mixed = benchmark.draw(0.4, np.random.default_rng(seed))
        assert sum(name.startswith("z/") for name in mixed) == 2


@pytest.mark.parametrize("seed", range(3))
def test_accuracy_is_high_for_separate_and_low_for_equal_clusters(seed):
    rng = np.random.default_rng(seed)
    benchmark = synthetic_benchmark(seed, overlap=0.0)
    easy, hard = benchmark.draw(0.0, rng), benchmark.draw(1.0, rng)
    assert benchmark.accuracies(easy, 5, n_draws=5, rng=rng).mean() > 0.95
    found = benchmark.accuracies(hard, 5, n_draws=20, rng=rng)
    assert found.shape == (20,)
    assert abs(found.mean() - 0.2) < 0.06  # chance
    few = benchmark.accuracies(hard, 5, n_draws=1, n_query=1, rng=rng)
    assert few[0] * 5 == pytest.approx(round(few[0] * 5))  # of five images


def test_a_machine_that_does_not_converge_warns(monkeypatch):
    def stopped(head, *data, fit=LinearSVC.fit):
        fit(head, *data).n_iter_ = few_shot.MAX_STEPS
        return head

    monkeypatch.setattr(LinearSVC, "fit", stopped)
    benchmark, rng = synthetic_benchmark(0), np.random.default_rng(0)
    with pytest.warns(ConvergenceWarning, match="did not converge in 100000 steps"):
        benchmark.accuracies(benchmark.draw(1.0, rng), 5, n_draws=1, rng=rng)


@pytest.mark.parametrize("seed", range(3))
def test_les_predicts_the_accuracy_of_synthetic_tasks(tmp_path, seed):
    experiment = small_tasks(seed=seed, benchmarks=("fc100",))
    stages = experiment.tasks(["les"])
    rows = [
        {"trial": t.trial, "unseen": t.value, **row}
        for stage in stages
        for t in stage
        for row in experiment.run_task(t)
    ]
    found = correlations(tasks_of(pd.DataFrame(rows)))
    assert len(found) == 2 * 3
    assert found["r"].max() < -0.7


def test_dissimilarities_are_those_of_compare():
    experiment = small_tasks()
    data, trial = experiment.benchmark("fc100"), experiment.trial("fc100", 1)
    rows = experiment.run_task(Task(1, 0.6, 3, 0, ("les",)))
    new = {f"fc100 {i + 1}": data.points(c) for i, c in enumerate(trial.new[0.6])}
    known = [data.points(classes) for classes in trial.references]
    found = ua.compare(new, known, n_eigenvalues=60, gamma=1e-6)
    for how in ("mean", "min", "max"):
        expected = found.aggregate(how)
        for row in rows[:3]:
            assert row[how] == pytest.approx(expected[row["pair"]], abs=1e-6)


@pytest.fixture
def _few_points(monkeypatch):
    """Few images in the plane: metric scaling of many takes seconds."""
    few = partial(difficulty_figures.planes, per_class=6)
    monkeypatch.setattr(difficulty_figures, "planes", few)


@pytest.mark.usefixtures("_few_points")
def test_run_writes_tables_figures_and_verdicts(tmp_path):
    report = reproduce(small_tasks(n_trials=2), tmp_path, only=["les", "imd"], progress=False)
    names = {path.name for path in tmp_path.iterdir()}
    assert names >= {"tasks.png", "tasks-correlations.csv", "RESULTS.md"}
    cells = pd.read_csv(tmp_path / "tasks-correlations.csv")
    chosen = cells.query("benchmark == 'fc100' and shot == 5 and method == 'les'")
    assert chosen.set_index("aggregate")["paper_mean"]["mean"] == -0.945
    text = (tmp_path / "RESULTS.md").read_text()
    assert "(-0.945 ± 0.032)" in text
    assert "--set embedder=resnet20" in text or "--quick" in text
    assert {claim.source for claim in report.claims} >= {"Section 5.3", "Table 1", "this project"}
    # A claim about more distances than were run names those, and has no verdict.
    partial_claims = [c for c in report.claims if re.search("outperforms|weaker", c.expected)]
    assert {claim.passed for claim in partial_claims} == {None}
    assert "LES outperforms IMD in all settings (mean" in partial_claims[0].expected
    assert "weaker than on FC100 for LES, IMD" in partial_claims[-1].expected
    # Accuracies are measured whatever was selected.
    assert set(report.table["method"]) == {"accuracy", "les", "imd"}


@pytest.mark.usefixtures("_few_points")
def test_slow_distances_are_timed_pair_by_pair(tmp_path):
    experiment, timed = small_tasks(timed_pairs=3), "wasserstein-time"
    (stage,) = (s for s in experiment.tasks(["les", timed]) if s[0].methods == (timed,))
    assert [task.trial for task in stage] == [0, 1, 2]  # more than trials; each is kept
    found = [experiment.run_task(task) for task in stage]
    data, trial = experiment.benchmark("cifar-fs"), experiment.trial("cifar-fs", 1)
    new, known = (data.points(c) for c in (trial.new[1.0][0], trial.references[0]))
    assert found[1][0]["mean"] == pytest.approx(ua.distance(new, known, "wasserstein"))
    report = reproduce(experiment, tmp_path, only=["les", timed], progress=False)
    rows = report.table[report.table["method"] == timed]
    mean, std = (3 * found for found in rows["seconds"].agg(["mean", "std"]))  # 3 references
    text = (tmp_path / "RESULTS.md").read_text()
    shown = re.search(r"\| OT \| (\S+) ± (\S+) \| 28.2 to 40.3 \|", text).groups()
    # Both to the place of the third digit of the mean, so the deviation may have but one.
    unit = 10.0 ** (math.floor(math.log10(mean)) - 2)
    assert [len(number.partition(".")[2]) for number in shown] == [round(-math.log10(unit))] * 2
    assert [float(n) for n in shown] == pytest.approx([mean, std], abs=0.501 * unit, rel=0)
    assert "N = 200; OT timed on 3 pairs, times 3 references" in text
    # More pairs are added to those of the same folder.
    more = reproduce(small_tasks(timed_pairs=4), tmp_path, only=["les", timed], progress=False)
    again = more.table[more.table["method"] == timed]
    assert len(again) == 4
    np.testing.assert_array_equal(again["seconds"][:3], rows["seconds"])
    with pytest.raises(InputError, match=r"leave no distance\. Keep one of: les, imd"):
        reproduce(experiment, tmp_path, only=[timed], progress=False)


@pytest.mark.usefixtures("_few_points")
def test_omniglot_is_reported_beside_the_claims_of_the_paper(tmp_path):
    only = ["les", "wasserstein", "gromov-wasserstein", "figure", "test-accuracy"]
    experiment = small_tasks(benchmarks=("omniglot",), n_new=1)
    report = reproduce(experiment, tmp_path, only=only, progress=False)
    assert {claim.source for claim in report.claims} == {"this project"}
    assert {claim.passed for claim in report.claims} == {None}
    assert "Omniglot, a second source of tasks" in report.claims[0].expected
    text = (tmp_path / "RESULTS.md").read_text()
    assert "Tasks of Omniglot are 20 characters" in text
    assert "3 random tasks of unseen ones: 1-shot" in text
    assert not re.search("in brackets|of 0 claims", text)  # the paper has none of it
    assert "ResNet-20" not in text  # the embedder of the others
    assert "nan" not in text  # correlations of one task per share


@pytest.mark.skipif(not PAPER_TEX.exists(), reason=f"{PAPER_TEX} is not there")
def test_numbers_of_the_paper_are_those_of_its_tables():
    text = PAPER_TEX.read_text()
    methods = {"LES": "les", "IMD": "imd", "OT": "wasserstein", "GW": "gromov-wasserstein"}
    methods["GS"] = "geometry-score"
    labels = {"mean": "meta-mean", "min": "supp:corr-min-metalearn"}
    labels |= {"max": "supp:corr-max-metalearn", "seconds": "supp:time-metalearn"}
    for kind, label in labels.items():
        body = text.split(rf"\label{{table:{label}}}")[1].split(r"\end{table}")[0]
        for name, method in methods.items():
            (line,) = re.findall(rf"^{name} +&(.*)\\\\", body, flags=re.MULTILINE)
            numbers = [tuple(map(float, re.findall(r"-?\d+\.\d+", c))) for c in line.split("&")]
            ours = [PAPER[kind, method, b, s] for b in ("fc100", "cifar-fs") for s in (1, 5, 10)]
            tolerance = 0.5 if kind == "seconds" else 1e-9
            np.testing.assert_allclose(ours, numbers, atol=tolerance)


def frame(benchmark, accuracy, distance, unseen=0.0):
    """Tasks of one trial with a distance and a 5-shot accuracy each."""
    columns = {"trial": 0, "benchmark": benchmark, "unseen": unseen, "method": "les"}
    return pd.DataFrame({**columns, "mean": distance, "5-shot": accuracy})


def test_threshold_has_the_precision_and_recall_of_counting():
    first = frame("fc100", [0.9, 0.8, 0.5, 0.4], [1.0, 2.0, 3.0, 4.0])
    # Hard there: below 0.65, so three; flagged at 3 and above: three, of which two are hard.
    second = frame("cifar-fs", [0.6, 0.7, 0.3, 0.5, 0.9], [3.0, 3.5, 9.0, 1.0, 2.0])
    found = threshold_transfer(pd.concat([first, second]), "les", 5, "fc100", "cifar-fs")
    assert found["threshold"] == 3.0
    assert found["level"] == pytest.approx(0.65)
    assert found["precision"] == pytest.approx(2 / 3)
    assert found["recall"] == pytest.approx(2 / 3)
    assert found["hard"] == pytest.approx(3 / 5)


def test_correlation_within_shares_ignores_the_mixture():
    rng = np.random.default_rng(0)
    shares = np.repeat(SHARES, 40)
    noise, other = rng.normal(size=(2, shares.size))
    mixture = frame("fc100", -shares + 0.01 * noise, shares + 0.01 * other, shares)
    assert pearson(mixture["mean"], mixture["5-shot"]) < -0.99
    assert abs(within(mixture, 5)["r"][0]) < 0.2
    real = frame("fc100", -shares + noise, shares - noise, shares)
    found = within(real, 5)
    assert found["r"][0] == pytest.approx(-1.0)
    assert found["shares"][0] == pytest.approx(dict.fromkeys(SHARES, -1.0))


def test_constant_values_have_no_correlation():
    assert np.isnan(pearson([1.0, 1.0], [0.0, 1.0]))
    assert np.isnan(pearson([1.0], [0.0]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"embedder": "resnet18"}, r"embedder='resnet18' is not known. Did you mean 'resnet1?2"),
        ({"benchmarks": ("fc10",)}, r"benchmarks='fc10' is not known. Did you mean 'fc100'"),
        ({"benchmarks": ()}, r"benchmarks=\(\) must name each of them once"),
        ({"timed_pairs": 0}, r"timed_pairs=0 must be at least 1"),
        ({"shots": (1, 20)}, r"shots=20 must be below 20"),
        ({"shots": (5, 5)}, r"shots=\(5, 5\) must name each number once"),
        ({"shots": ()}, r"shots=0 must be at least 1"),
        ({"per_class": 601}, r"per_class=601 must be at most 600"),
        ({"gamma": 0.0}, r"gamma=0.0 must be"),
    ],
)
def test_invalid_settings_of_tasks_raise(settings, message):
    with pytest.raises(InputError, match=message):
        Tasks(**{**SMALL, **settings})


def test_missing_data_is_one_line_that_says_what_to_put_where(monkeypatch, tmp_path):
    pytest.importorskip("torch")
    monkeypatch.setenv("UNALIGNED_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(FileError, match=r"CIFAR-100 is not in .*Put a sheet NAME.webp") as caught:
        load_benchmark("fc100", "conv4")
    assert "\n" not in str(caught.value)
    with pytest.raises(FileError, match=r"no file .*omniglot28.npz.*Put it there"):
        load_benchmark("omniglot", "conv4")
