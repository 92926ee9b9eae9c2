"""The documentation site lists every page and every public name, and its gallery runs."""

import re
import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

import unaligned as ua
from conftest import DATA

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
EXAMPLES = sorted((ROOT / "examples" / "gallery").glob("plot_*.py"))


def needs_of(example):
    found = re.search(r"^# needs: (.+)$", example.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return found[1].split(", ") if found else []


def toctrees():
    """The pages that some page lists."""
    listed = set()
    for page in DOCS.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"```\{toctree\}\n(.*?)```", text, flags=re.DOTALL):
            listed |= {line for line in block.splitlines() if line and not line.startswith(":")}
    return listed


def test_every_page_is_in_the_site():
    pages = {page.stem for page in DOCS.glob("*.md")} - {"index"}
    assert toctrees() - {"gallery/index"} == pages


def test_the_reference_has_every_public_name():
    lines = (DOCS / "api.md").read_text(encoding="utf-8").splitlines()
    words = {line.strip() for line in lines}
    for name in set(dir(ua)) - {"__version__"}:
        assert name in words or any(f"`ua.{name}`" in line for line in lines), name


def test_the_page_of_the_paper_is_in_step_with_the_results():
    page = runpy.run_path(str(DOCS / "paper.py"))["page"]()
    written = (DOCS / "paper.md").read_text(encoding="utf-8")
    assert written == page, "run `python docs/paper.py` after docs/refresh.py"


def test_the_page_of_the_paper_is_short_and_names_tests_that_exist():
    text = (DOCS / "paper.md").read_text(encoding="utf-8")
    table = text.partition("| paper |")[2].partition("## Tables")[0]
    rows = [line.split(" | ") for line in table.splitlines()[2:] if line]
    for where, _, here, _, _ in rows:
        assert len(here) <= 300, where
    for path, _, name in re.findall(r"pytest ([\w/]+\.py)(::(\w+))?", text):
        assert f"def {name}" in (ROOT / path).read_text(encoding="utf-8")
    assert set(re.findall(r'href="#(\w+)"', text)) == set(re.findall(r'id="(\w+)"', text))


def test_the_gallery_is_large_enough():
    assert len(EXAMPLES) >= 12
    on_a_fresh_clone = [
        example for example in EXAMPLES if all(need.isidentifier() for need in needs_of(example))
    ]
    assert len(on_a_fresh_clone) >= 8


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_that_needs_more_has_the_picture_of_its_last_run(example):
    text = example.read_text(encoding="utf-8")
    assert re.match(r'"""\n(.+)\n=+\n', text), "no title as sphinx-gallery reads it"
    if needs_of(example):
        picture = f"figures/gallery/{example.stem}.png"
        assert f"# sphinx_gallery_thumbnail_path = '{picture}'" in text
        assert (DOCS / picture).stat().st_size < 300_000


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_gallery_examples_draw_a_picture(example, monkeypatch, request):
    for need in needs_of(example):
        if not (find_spec(need) if need.isidentifier() else (DATA / need).exists()):
            pytest.skip(f"{need} is not here")
    if "torch" in needs_of(example):
        request.getfixturevalue("one_torch_thread")
    monkeypatch.chdir(example.parent)
    monkeypatch.setenv("UNALIGNED_DATA", str(DATA))
    monkeypatch.setattr(sys, "argv", [str(example)])
    with mpl.rc_context({"backend": "agg"}):
        runpy.run_path(str(example))
        assert plt.get_fignums()
        plt.close("all")
