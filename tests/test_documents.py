"""Every Python example in README, docs and examples runs."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import matplotlib as mpl
import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OUTPUTS = runpy.run_path(str(ROOT / "docs" / "outputs.py"))

# A word that each example prints when it did what it shows.
SHOWN = {"every_distance.py": "not applicable", "report.py": "stem_cells.html|no data"}


NUMBER = re.compile(r"-?\b\d+(?:\.\d*)?(?:e[+-]\d+)?")


def words_of(text):
    return NUMBER.sub("0", text).split()


def numbers_of(text):
    return [float(number) for number in NUMBER.findall(text)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_examples_run_and_print_what_the_page_shows(page, tmp_path, monkeypatch):
    if "torch" in page.read_text(encoding="utf-8").partition("```python")[2]:
        pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    with mpl.rc_context({"backend": "agg"}):
        for code, shown, printed in OUTPUTS["run"](page):
            if shown is not None:
                assert words_of(printed) == words_of(shown), code
                assert numbers_of(printed) == pytest.approx(numbers_of(shown), rel=0.02, abs=0.011)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_resolve(page):
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_scripts_named_in_the_docs_exist():
    for page in PAGES:
        for script in re.findall(r"python (benchmarks/\w+\.py)", page.read_text(encoding="utf-8")):
            assert (ROOT / script).exists(), script


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_example_scripts_run(script, tmp_path, monkeypatch, capsys):
    for package in ("ot", "gudhi", "ripser"):
        pytest.importorskip(package, reason="the example shows all distances")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(script)])
    runpy.run_path(str(script), run_name="__main__")
    assert re.search(SHOWN.get(script.name, "."), capsys.readouterr().out)


@pytest.mark.slow  # networks are trained: minutes each
@pytest.mark.parametrize("name", ["flow", "autoencoder"])
def test_network_demonstrations_run(name, tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    monkeypatch.setattr(sys, "argv", [name, str(tmp_path)])
    runpy.run_path(str(ROOT / "examples" / "networks" / f"{name}.py"), run_name="__main__")
    assert (tmp_path / f"torch_{name}.png").exists()
