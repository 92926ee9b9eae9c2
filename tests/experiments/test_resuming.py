"""A stopped run resumes where it stopped and gives the same numbers."""

import json
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import unaligned as ua
from synthetic_tasks import small_tasks
from unaligned import figures
from unaligned.errors import FileError, InputError
from unaligned.experiments import find, trials
from unaligned.experiments.aligned import Aligned
from unaligned.experiments.reproduction import choose, reproduce
from unaligned.experiments.scaling import Scaling
from unaligned.experiments.sensitivity import Sensitivity
from unaligned.experiments.topology import Topology
from unaligned.experiments.tori import PAIRS, Tori
from unaligned.experiments.trials import TrialFile
from unaligned.io.archive import append_text

for package in ("ot", "gudhi", "ripser"):
    pytest.importorskip(package, reason="an experiment compares with them")

TINY = {"n_samples": 60, "n_eigenvalues": 20, "scales": (0.4, 1.0), "rounds": 5}
SMALL = {
    "tori": Tori(**TINY),
    "scaling": Scaling(sizes=(60,), n_eigenvalues=20, rounds=5),
    "topology": Topology(n_samples=60, n_eigenvalues=20, scales=(0.4,)),
    "aligned": Aligned(n_samples=20, scales=(0.4,)),
    "sensitivity": Sensitivity(
        n_samples=100, n_eigenvalues=20, eigenvalues=(20,), sizes=(50, 150), scales=(0.4,)
    ),
    "tasks": small_tasks(),
}


class StopError(Exception):
    """Simulated crash."""


def lines_in(folder):
    """The lines of the trial file; the first has the settings."""
    return [json.loads(line) for line in (folder / "trials.jsonl").read_text().splitlines()]


def run_counting(monkeypatch, out, stop_after=None, only=None, draw=False, **settings):
    """Run tiny tori; return the tasks that were run, and the results if it finished."""
    done, original = [], Tori.run_task

    def counted(self, task):
        if len(done) == stop_after:
            raise StopError
        done.append((task.trial, task.value, task.methods))
        return original(self, task)

    with monkeypatch.context() as patch:
        patch.setattr(Tori, "run_task", counted)
        if not draw:  # drawing takes longer than the tasks
            patch.setattr(Tori, "draw", lambda self, table: None)
            patch.setattr(Tori, "pictures", lambda self, table: {})
            patch.setattr(figures, "save", lambda figure, path: path.touch())
        try:
            return done, reproduce(Tori(**TINY, **settings), out, only=only, progress=False)
        except StopError:
            return done, None


@pytest.mark.parametrize("stop_after", [1, 3, 6])
def test_stopped_run_resumes_without_repeating_tasks(monkeypatch, tmp_path, stop_after):
    options = {"n_trials": 2, "only": ["les", "imd"], "draw": stop_after == 3}
    _, whole = run_counting(monkeypatch, tmp_path / "whole", **options)
    first, _ = run_counting(monkeypatch, tmp_path / "cut", stop_after, **options)
    second, resumed = run_counting(monkeypatch, tmp_path / "cut", **options)
    assert len(first) == stop_after
    assert not set(first) & set(second)
    pd.testing.assert_frame_equal(resumed.table, whole.table, check_exact=True)
    for name in ("trials.jsonl", "tori.csv", "RESULTS.md", "tori.svg"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_more_trials_reuse_existing_ones(monkeypatch, tmp_path):
    run_counting(monkeypatch, tmp_path, n_trials=1, only=["les"])
    computed, report = run_counting(monkeypatch, tmp_path, n_trials=2, only=["les"])
    assert {trial for trial, *_ in computed} == {1}
    assert set(report.table["trial"]) == {0, 1}


def test_fewer_trials_select_existing_ones(monkeypatch, tmp_path):
    run_counting(monkeypatch, tmp_path, n_trials=2, only=["les"])
    computed, report = run_counting(monkeypatch, tmp_path, n_trials=1, only=["les"])
    assert computed == []
    assert set(report.table["trial"]) == {0}


def test_killed_process_resumes(monkeypatch, tmp_path):
    code = (
        "import time\n"
        "from unaligned.experiments.reproduction import reproduce\n"
        "from unaligned.experiments.tori import Tori\n"
        "original, tasks = Tori.run_task, iter(range(3))\n"
        "def run_task(self, task):\n"
        "    next(tasks, None) is None and time.sleep(600)  # it is killed before it ends\n"
        "    return original(self, task)\n"
        "Tori.run_task = run_task\n"
        f"reproduce(Tori(n_trials=2, **{TINY!r}), {str(tmp_path / 'killed')!r}, progress=False)"
    )
    path = tmp_path / "killed" / "trials.jsonl"
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        while not path.exists() or path.read_bytes().count(b"\n") < 2:
            assert process.poll() is None, "the process ended before it wrote anything"
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
    whole_lines = path.read_text().rpartition("\n")[0].splitlines()[1:]
    tasks = [json.loads(line) for line in whole_lines]
    kept = [(task["trial"], task["c"], name) for task in tasks for name in task["rows"]]
    assert 0 < len(kept) < 2 * 2 * 5
    second, resumed = run_counting(monkeypatch, tmp_path / "killed", n_trials=2)
    assert not {(*key, name) for *key, names in second for name in names} & set(kept)
    _, whole = run_counting(monkeypatch, tmp_path / "whole", n_trials=2)
    pd.testing.assert_frame_equal(resumed.table, whole.table, check_exact=True)


def test_methods_added_later_leave_the_others_unchanged(monkeypatch, tmp_path):
    _, whole = run_counting(monkeypatch, tmp_path / "whole", n_trials=2)
    run_counting(monkeypatch, tmp_path / "parts", n_trials=2, only=["imd-diffusion", "imd"])
    computed, parts = run_counting(monkeypatch, tmp_path / "parts", n_trials=2)
    assert {names for *_, names in computed} == {
        ("les",),
        ("geometry-score",),
        ("gromov-wasserstein",),
    }
    pd.testing.assert_frame_equal(parts.table, whole.table, check_exact=True)


def test_only_selected_methods_are_run_and_reported(monkeypatch, tmp_path):
    computed, report = run_counting(monkeypatch, tmp_path, n_trials=1, only=["les", "imd"])
    assert {names for *_, names in computed} == {("les",), ("imd",)}
    assert set(report.table["method"]) == {"les", "imd"}
    assert "--only les,imd`" in (tmp_path / "RESULTS.md").read_text()


def test_choose_selects_methods_by_name():
    assert choose(Tori(), ["imd", "les"], ()) == ("les", "imd")
    with pytest.raises(InputError, match=r"only='lse' is not known. Did you mean 'les'"):
        choose(Tori(), ["lse"], ())
    with pytest.raises(InputError, match=r"without='gromov' is not known.*gromov-wasserstein"):
        choose(Tori(), None, ["gromov"])
    with pytest.raises(InputError, match=r"leave no method of experiment 'tori'. Keep one of"):
        choose(Tori(), ["les"], ["les"])


def test_trials_and_seeds_give_different_samples(monkeypatch, tmp_path):
    only = ["les"]
    _, first = run_counting(monkeypatch, tmp_path / "0", n_trials=2, only=only)
    _, second = run_counting(monkeypatch, tmp_path / "1", n_trials=2, only=only, seed=1)
    values = np.concatenate([first.table["distance"], second.table["distance"]])
    assert np.unique(values).size == values.size


def test_trials_of_other_settings_are_rejected(monkeypatch, tmp_path):
    run_counting(monkeypatch, tmp_path, n_trials=1, only=["les"])
    with pytest.raises(InputError, match=r"other settings \(seed: 0 there, 5 now\).*--out"):
        run_counting(monkeypatch, tmp_path, n_trials=1, only=["les"], seed=5)


def test_a_file_without_trials_takes_other_settings(monkeypatch, tmp_path):
    run_counting(monkeypatch, tmp_path, n_trials=1, only=["les"], stop_after=0)
    assert len(lines_in(tmp_path)) == 1
    run_counting(monkeypatch, tmp_path, n_trials=1, only=["les"], seed=5)
    assert lines_in(tmp_path)[0]["settings"]["seed"] == 5


def test_what_is_no_setting_any_more_is_no_difference(monkeypatch, tmp_path):
    run_counting(monkeypatch, tmp_path, n_trials=1, only=["les"])
    path = tmp_path / "trials.jsonl"
    path.write_text(path.read_text().replace('"seed":0', '"seed":0,"n_pairs":3', 1))
    computed, _ = run_counting(monkeypatch, tmp_path, n_trials=1, only=["les"])
    assert computed == []


@pytest.mark.parametrize(
    "first", ["", "[1]", "null", '"a word"', '{"seed": 0', '{"format":1}', '{"settings":{}}']
)
def test_trials_without_readable_settings_are_rejected(monkeypatch, tmp_path, first):
    run_counting(monkeypatch, tmp_path, n_trials=1, only=["les"])
    path = tmp_path / "trials.jsonl"
    text = "\n".join([first, *path.read_text().splitlines()[1:]]) + "\n"
    path.write_text(text)
    message = r"no readable settings in the first line. Give another --out, or delete its trials"
    with pytest.raises(InputError, match=message):
        run_counting(monkeypatch, tmp_path, n_trials=1, only=["les"])
    assert path.read_text() == text


def test_a_later_format_is_rejected(monkeypatch, tmp_path):
    run_counting(monkeypatch, tmp_path, n_trials=1, only=["les"])
    path = tmp_path / "trials.jsonl"
    path.write_text(path.read_text().replace('"format":1', '"format":2', 1))
    with pytest.raises(InputError, match=r"other settings \(format: 2 there, 1 now\)"):
        run_counting(monkeypatch, tmp_path, n_trials=1, only=["les"])


def test_a_later_release_reuses_trials_of_the_same_revision(monkeypatch, tmp_path):
    run_counting(monkeypatch, tmp_path, n_trials=1, only=["les"])
    assert lines_in(tmp_path)[0]["release"] == ua.__version__
    monkeypatch.setattr(ua, "__version__", "99.0")
    computed, _ = run_counting(monkeypatch, tmp_path, n_trials=1, only=["les"])
    assert computed == []
    monkeypatch.setattr(Tori, "revision", Tori.revision + 1)
    with pytest.raises(InputError, match=r"other settings \(revision: 1 there, 2 now\)"):
        run_counting(monkeypatch, tmp_path, n_trials=1, only=["les"])


def lines_of(text, *, left_out=(), again=()):
    """Return the text without some of its lines, and with some of them repeated."""
    lines = text.splitlines(keepends=True)
    kept = [line for i, line in enumerate(lines) if i not in left_out]
    return "".join(kept + [lines[i] for i in again])


def without_a_number(text, *, line):
    """Return the text without the last pair of one of its lines."""
    lines = text.splitlines(keepends=True)
    lines[line] = re.sub(r",[^,]+\]", "]", lines[line])
    return "".join(lines)


# Line 0 has the settings; then there are four tasks of a line each.
@pytest.mark.parametrize(
    ("damage", "repeated"),
    [
        pytest.param(lambda text: lines_of(text, left_out=[3]), [2], id="missing line"),
        pytest.param(lambda text: lines_of(text, left_out=[1, 4]), [0, 3], id="two missing lines"),
        pytest.param(lambda text: lines_of(text, again=[2]), [], id="duplicate line"),
        pytest.param(lambda text: without_a_number(text, line=2), [1], id="missing pair"),
        pytest.param(lambda text: text.replace("\n", "\n\n"), [], id="blank lines"),
        pytest.param(lambda text: text[:-1], [3], id="missing final newline"),
        pytest.param(lambda text: text[:-6], [3], id="truncated number"),
        pytest.param(
            lambda text: lines_of(text, left_out=[4]) + '{"tri', [3], id="truncated line"
        ),
        pytest.param(lambda text: text[:5], [0, 1, 2, 3], id="truncated settings"),
        pytest.param(lambda text: "", [0, 1, 2, 3], id="empty"),
    ],
)
def test_only_damaged_tasks_are_repeated(monkeypatch, tmp_path, damage, repeated):
    work, whole = run_counting(monkeypatch, tmp_path, n_trials=2, only=["les"])
    path = tmp_path / "trials.jsonl"
    text = path.read_text()
    path.write_text(damage(text))
    for expected in ([work[i] for i in repeated], []):
        again, resumed = run_counting(monkeypatch, tmp_path, n_trials=2, only=["les"])
        assert again == expected
        pd.testing.assert_frame_equal(resumed.table, whole.table, check_exact=True)
    assert set(path.read_text().splitlines()) >= set(text.splitlines())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"trial":0,"c":0.4}', r"line 3 is damaged \(it has no rows\). Delete the damaged line"),
        ("{}", r"line 3 is damaged \(it has no trial, c, rows\)"),
        ('{"trial":0,"c":0.4,"rows":{"les":["1.o"]}}', r"line 3 is damaged \(.*float: '1.o'\)"),
        ('{"trial":0,"c":0.4,"rows":{"les":[null]}}', r"line 3 is damaged \(.*'NoneType'\)"),
        ('{"trial":0,"c":0.4,"rows":[1.0]}', r"line 3 is damaged \(.*'list'.*\)"),
        ('{"trial":0,"c":0.4,"rows":{"les":[1.', r"line 3 is damaged \(Expecting"),
        ("<<<<<<< HEAD", r"line 3 is damaged \(Expecting value\)"),
        ("7", r"line 3 is damaged \(.*'int'.*\)"),
    ],
)
def test_damaged_line_raises_with_its_number(monkeypatch, tmp_path, line, message):
    run_counting(monkeypatch, tmp_path, n_trials=1, only=["les"])
    path = tmp_path / "trials.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], line]) + "\n")
    with pytest.raises(FileError, match=message):
        run_counting(monkeypatch, tmp_path, n_trials=1, only=["les"])


def test_unreadable_bytes_raise(monkeypatch, tmp_path):
    (tmp_path / "trials.jsonl").write_bytes(b"\xff\xfe\n")
    with pytest.raises(FileError, match=r"Cannot resume from .*trials.jsonl': 'utf-8' codec"):
        run_counting(monkeypatch, tmp_path, n_trials=1, only=["les"])


def test_measurements_of_unknown_methods_stay_in_the_file(monkeypatch, tmp_path):
    run_counting(monkeypatch, tmp_path, n_trials=1, only=["les"])
    path, line = tmp_path / "trials.jsonl", '{"trial":0,"c":0.4,"rows":{"retired":[1.5]}}'
    path.write_text(path.read_text() + line + "\n")
    computed, report = run_counting(monkeypatch, tmp_path, n_trials=1, only=["les", "imd"])
    assert {names for *_, names in computed} == {("imd",)}
    assert set(report.table["method"]) == {"les", "imd"}
    assert line in path.read_text().splitlines()


def test_full_disk_loses_the_task_under_way_only(monkeypatch, tmp_path):
    calls = []

    def write_half(path, text):
        calls.append(text)
        if len(calls) == 3:
            append_text(path, text[: len(text) // 2])
            raise FileError("Cannot write: No space left on device.")
        append_text(path, text)

    with monkeypatch.context() as patch:
        patch.setattr(trials, "append_text", write_half)
        with pytest.raises(FileError, match="No space left"):
            run_counting(monkeypatch, tmp_path / "full", n_trials=2, only=["les"])
    second, resumed = run_counting(monkeypatch, tmp_path / "full", n_trials=2, only=["les"])
    assert len(second) == 2
    _, whole = run_counting(monkeypatch, tmp_path / "whole", n_trials=2, only=["les"])
    pd.testing.assert_frame_equal(resumed.table, whole.table, check_exact=True)


@pytest.mark.parametrize(
    ("measured", "kept"),
    [
        (123.456789123, 123.4568),
        (-1.23456789e-12, -1.234568e-12),
        (np.float32(0.1), 0.1),
        (np.nan, np.nan),
        (np.inf, np.inf),
        (-np.inf, -np.inf),
    ],
)
def test_numbers_have_seven_digits_before_and_after_resuming(tmp_path, measured, kept):
    rows = [{"method": "les", "pair": pair, "distance": measured} for pair in PAIRS]
    (task, *_), *_ = Tori(**TINY).tasks(["les"])
    file = TrialFile(tmp_path, Tori(**TINY))
    file.add(task, rows)
    again = TrialFile(tmp_path, Tori(**TINY))
    for found in (file.select(task.keys), again.select(task.keys)):
        np.testing.assert_array_equal(found["distance"], [kept] * len(PAIRS))
    strict = (tmp_path / "trials.jsonl").read_text().splitlines()[1]
    json.loads(strict, parse_constant=pytest.fail)  # JSON has neither NaN nor Infinity


@pytest.mark.parametrize("name", SMALL)  # those of cells and layers have tests of their own
def test_tasks_measure_all_their_pairs(name):
    experiment = SMALL[name]
    for stage in experiment.tasks(experiment.methods):
        rows = experiment.run_task(stage[0])
        for method in stage[0].methods:
            found = tuple(row["pair"] for row in rows if row["method"] == method)
            assert found == experiment.pairs(method, stage[0].value)


def test_empty_folder_name_raises(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"out='' must be a path"):
        reproduce(Tori(**TINY), "")
    assert not list(tmp_path.iterdir())


def test_file_instead_of_folder_raises(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(FileError, match=r"out=.*taken.*cannot be used as a folder"):
        reproduce(Tori(**TINY), tmp_path / "taken")


def test_folder_contains_all_files(monkeypatch, tmp_path):
    _, report = run_counting(monkeypatch, tmp_path / "new" / "folder", draw=True)
    names = {path.name for path in (tmp_path / "new" / "folder").iterdir()}
    assert names == {
        "trials.jsonl",
        "tori.csv",
        "tori.png",
        "tori.svg",
        "tori-samples.png",
        "RESULTS.md",
    }
    assert all(path.exists() for path in report.files)
    settings = lines_in(tmp_path / "new" / "folder")[0]["settings"]
    assert settings["n_samples"] == TINY["n_samples"]


def test_results_list_expected_measured_and_verdict(monkeypatch, tmp_path):
    _, report = run_counting(monkeypatch, tmp_path)
    text = (tmp_path / "RESULTS.md").read_text()
    for claim in report.claims:
        assert f"| {claim.expected} | {claim.measured} | {claim.verdict} |" in text
    counted = [claim.passed for claim in report.claims if claim.passed is not None]
    assert f"{sum(counted)} of {len(counted)} claims hold" in text


@pytest.mark.parametrize("mode", ["full", "quick"])
def test_results_contain_their_command(mode, tmp_path, monkeypatch):
    monkeypatch.setattr(Tori, mode, {"n_trials": 3, **TINY})
    reproduce(Tori(n_trials=1, **TINY), tmp_path, only=["les"], progress=False)
    command = f"unaligned reproduce tori --{mode} --trials 1 --seed 0 --only les"
    assert f"Made by `{command}`" in (tmp_path / "RESULTS.md").read_text()


def test_unknown_experiment_raises_with_a_suggestion():
    with pytest.raises(InputError, match=r"experiment='torri'.*Did you mean 'tori'"):
        find("torri")


def test_invalid_settings_raise():
    with pytest.raises(InputError, match=r"n_trials=0 must be at least 1"):
        Tori(n_trials=0)
    with pytest.raises(InputError, match=r"n_samples=100 must be at least 200"):
        Tori(n_samples=100)
    with pytest.raises(InputError, match=r"rounds=0 must be at least 1"):
        Tori(rounds=0)
