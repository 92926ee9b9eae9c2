"""What a user who installs the package relies on."""

import re
import runpy
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CLIENT = ROOT / "tests" / "typed_client" / "client.py"

# Packages of the extras are not found, as if they were not installed.
HIDING = """
import runpy, sys
from importlib.machinery import PathFinder

class Hiding(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        hidden = name.partition(".")[0] in {extras!r}
        return None if hidden else super().find_spec(name, path, target)

sys.meta_path = [Hiding if finder is PathFinder else finder for finder in sys.meta_path]
runpy.run_path({script!r}, run_name="__main__")
"""


def minimums():
    """The declared minimum of each dependency of the core and of the extras for users."""
    extras = PROJECT["optional-dependencies"]
    users = [extras[name] for name in extras if name not in ("all", "docs", "test", "torch")]
    found = {}
    for line in [*PROJECT["dependencies"], *(item for extra in users for item in extra)]:
        name, version = re.fullmatch(r"([\w-]+)(?:\[.*\])?>=([\d.]+)", line).groups()
        found[name.lower()] = version
    return found


def test_the_oldest_versions_are_those_declared():
    lines = (ROOT / "constraints-oldest.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.lower().split("==") for line in lines if not line.startswith("#"))
    declared = minimums()
    assert set(pins) - {"distributed"} == set(declared)  # of dask[distributed]
    for name, minimum in declared.items():
        assert f"{pins[name]}.0.0".startswith(f"{minimum}."), name


def test_import_gives_no_warning():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "import unaligned; unaligned.compare"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_the_core_works_without_its_extras():
    script = ROOT / "tests" / "core_only.py"
    code = HIDING.format(extras=runpy.run_path(str(script))["EXTRAS"], script=str(script))
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow  # both check the whole package first
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_typed_client_passes(checker, tmp_path):
    if find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed")
    options = {
        "mypy": ["--strict", "--cache-dir", str(tmp_path)],
        "pyright": ["--pythonpath", sys.executable],
    }
    done = subprocess.run(
        [sys.executable, "-m", checker, *options[checker], str(CLIENT)],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    if checker == "pyright" and "npm" in done.stderr:
        pytest.skip("pyright could not install its program")
    assert done.returncode == 0, done.stdout + done.stderr
