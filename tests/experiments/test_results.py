"""docs/refresh.py copies the results of a run into the documents; docs/runs keeps long runs."""

import json
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pandas as pd
import pytest

from unaligned.experiments import EXPERIMENTS, find
from unaligned.experiments.aligned import Aligned
from unaligned.experiments.reproduction import reproduce
from unaligned.experiments.trials import TrialFile
from unaligned.io.archive import made_folder

DOCS = Path(__file__).parents[2] / "docs"
RUNS = sorted((DOCS / "runs").glob("*/trials.jsonl"))


@pytest.fixture
def docs(tmp_path):
    """A copy of what docs/refresh.py reads and writes."""
    (tmp_path / "docs" / "figures").mkdir(parents=True)
    for name in ("refresh.py", "results.md"):
        shutil.copy(DOCS / name, tmp_path / "docs")
    return tmp_path / "docs"


def refresh(docs, *folders):
    return subprocess.run(
        [sys.executable, docs / "refresh.py", *folders], capture_output=True, text=True
    )


def test_refresh_replaces_only_the_section_and_figure_of_the_run(docs, tmp_path):
    out = tmp_path / "out"
    small = Aligned(n_samples=12, scales=(0.5, 1.0))
    report = reproduce(small, out, only=["les", "log-euclidean"], progress=False)
    before = (docs / "results.md").read_text()
    assert refresh(docs, out).returncode == 0
    page = (docs / "results.md").read_text()
    for claim in report.claims:
        assert f"| {claim.expected} | {claim.measured} | {claim.verdict} |" in page
    assert "(figures/aligned.png)" in page
    assert "\nMean " in (out / "RESULTS.md").read_text()
    assert "\nMean " not in page
    assert (docs / "figures" / "aligned.png").read_bytes() == (out / "aligned.png").read_bytes()
    outside = "<!-- end aligned -->"
    assert page.split(outside)[1] == before.split(outside)[1]
    refresh(docs, out)
    assert (docs / "results.md").read_text() == page  # again changes nothing


def test_a_second_run_has_a_section_of_its_own(docs, tmp_path):
    out = tmp_path / "aligned-small"
    reproduce(Aligned(n_samples=12, scales=(1.0,)), out, only=["les"], progress=False)
    before = (docs / "results.md").read_text()
    own = "<!-- begin aligned-small -->\n## Few points\n<!-- end aligned-small -->\n"
    (docs / "results.md").write_text(before + own)
    assert refresh(docs, out).returncode == 0
    page = (docs / "results.md").read_text()
    assert page.startswith(before)
    assert page.removeprefix(before).count("## Few points\n\nMade by `unaligned") == 1
    assert "(figures/aligned-small.png)" in page
    assert (docs / "figures" / "aligned-small.png").exists()
    assert not (docs / "figures" / "aligned.png").exists()
    refresh(docs, out)
    assert (docs / "results.md").read_text() == page


@pytest.mark.parametrize("n_trials", [1, 3])
def test_standard_deviations_need_several_trials(tmp_path, n_trials):
    small = Aligned(n_samples=12, scales=(0.5, 1.0), n_trials=n_trials)
    reproduce(small, tmp_path, only=["les"], progress=False)
    _, means = (tmp_path / "RESULTS.md").read_text().split("\nMean ")
    spread = pd.read_csv(tmp_path / "aligned.csv")["std"]
    if n_trials == 1:
        assert means.startswith("over 1 trial, distance:")
        assert "±" not in means
        assert spread.isna().all()
    else:
        assert means.startswith("± standard deviation over 3 trials, distance:")
        assert means.count("±") == 1 + 2 * 6
        assert spread.notna().all()


def test_documents_have_a_section_per_experiment(docs):
    page = (docs / "results.md").read_text()
    for name in EXPERIMENTS:
        assert page.count(f"<!-- begin {name} -->") == page.count(f"<!-- end {name} -->") == 1
        assert f"unaligned reproduce {name} --full" in page


def test_refresh_rejects_a_page_without_the_section(docs, tmp_path):
    out = tmp_path / "out"
    reproduce(Aligned(n_samples=12, scales=(1.0,)), out, only=["les"], progress=False)
    (docs / "results.md").write_text("# nothing\n")
    done = refresh(docs, out)
    assert done.returncode != 0
    assert "needs the lines <!-- begin aligned --> and <!-- end aligned -->" in done.stderr


def test_refresh_of_trials_alone_names_the_command_that_is_missing(docs, tmp_path):
    out = tmp_path / "out"
    TrialFile(made_folder("out", out, ""), Aligned())
    done = refresh(docs, out)
    assert done.returncode != 0
    assert f"`unaligned reproduce NAME … --out {out}`" in done.stderr


def test_committed_runs_take_less_than_a_megabyte():
    assert RUNS
    assert sum(path.stat().st_size for path in RUNS) < 1_000_000


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.parent.name)
def test_every_line_of_a_committed_run_is_reused(path, tmp_path):
    header, *lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    settings = header["settings"]
    cls = find(settings["experiment"])
    assert path.parent.name.startswith(cls.name)
    known = {field.name for field in fields(cls)}
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items() if k in known}
    values |= {"train": True} if "train" in known else {}  # the methods of `layers --train` too
    shutil.copy(path, tmp_path)
    reused = TrialFile(tmp_path, cls(**values)).done  # raises where settings or lines are wrong
    variable = cls.variable
    units = {(line["trial"], line[variable], name) for line in lines for name in line["rows"]}
    assert reused == units


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_quick_and_full_are_valid_settings(name):
    cls = find(name)
    for mode in (cls.quick, cls.full):
        assert cls(**mode).tasks(cls().methods)
    n_trials = cls.full["n_trials"]
    assert cls(**cls.full) == cls(n_trials=n_trials)  # the defaults are the paper's
