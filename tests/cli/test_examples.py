"""Every example of the help pages and of the documents runs."""

import re
from pathlib import Path

import pytest
from program import run

from unaligned.cli import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
GROUPS = {
    "": app,
    **{
        f"{found.typer_instance.info.name} ": found.typer_instance
        for found in app.registered_groups
    },
}
COMMANDS = {
    beginning + (found.name or found.callback.__name__): found
    for beginning, group in GROUPS.items()
    for found in group.registered_commands
}
STORE = "unaligned describe cells.npy model.npy --store refs.db --tag source=scans"
REAL_DATA = tuple(f"unaligned reproduce {name}" for name in ("cells", "layers", "tasks"))
NEEDS_STORE = ("nearest", "list", "remove", "export")


def examples_of(command):
    lines = (command.epilog or "").splitlines()
    return [line for line in lines if line.startswith("unaligned ")]


def must_run(line):
    if "embedder=" in line:
        pytest.importorskip("torch")
    found = run(line.removeprefix("unaligned "))
    codes = (0, 3) if line.startswith(("unaligned test ", "unaligned drift ")) else (0,)
    if line.startswith(REAL_DATA):  # absent here: one line says what to put where
        codes, _ = (2,), found.stderr.index("Error: ")
    assert found.exit_code in codes, (line, found.stderr, found.exception)


@pytest.mark.parametrize("name", sorted(COMMANDS))
@pytest.mark.usefixtures("files", "tiny", "without_drawing")
def test_examples_of_help_pages_run(name):
    lines = examples_of(COMMANDS[name])
    assert lines, f"{name} --help has no example"
    for line in [STORE, *lines] if name in NEEDS_STORE else lines:
        must_run(line)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_pages_show_their_examples(name):
    printed = " ".join(run(f"{name} --help").stdout.split())
    for line in examples_of(COMMANDS[name]):
        assert line in printed


def shell_examples(page):
    blocks = re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    lines = [line.partition(" # ")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith("unaligned ") and "|" not in line]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
@pytest.mark.usefixtures("files", "tiny", "without_drawing")
def test_shell_examples_of_the_documents_run(page):
    for line in shell_examples(page):
        must_run(line)
