"""Docstrings of the public names: every parameter is described, and what is returned."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import unaligned as ua

API = Path(__file__).parents[1] / "docs" / "api.md"
NAMESPACES = {
    "ua.sc": ["tl.les", "pl.les", "pl.les_heatmap", "get.les"],
    "ua.sklearn": ua.sklearn.__all__,
}


def resolve(dotted):
    """Return the object of a dotted name in `unaligned`, such as `result.Comparison`."""
    module, _, name = f"unaligned.{dotted}".rpartition(".")
    return getattr(import_module(module), name)


def reference():
    """Return the names that docs/api.md lists."""
    return re.findall(r"^   ([a-z_.]*\w+)$", API.read_text(encoding="utf-8"), flags=re.MULTILINE)


def public():
    """Yield all functions and classes of the reference by name."""
    for name in reference():
        yield name, resolve(name)
    for namespace, names in NAMESPACES.items():
        for name in names:
            found = getattr(ua, namespace.removeprefix("ua."))
            for part in name.split("."):
                found = getattr(found, part)
            yield f"{namespace}.{name}", found
    try:
        yield from ((f"ua.torch.{name}", getattr(ua.torch, name)) for name in ua.torch.__all__)
    except ImportError:  # torch is an extra
        return


def methods(cls):
    """Yield the public methods of a class that this package defines, by name."""
    for name, item in inspect.getmembers_static(cls):
        function = item.__func__ if isinstance(item, (staticmethod, classmethod)) else item
        own = getattr(function, "__module__", None) or ""
        is_ours = inspect.isfunction(function) and own.startswith("unaligned")
        if is_ours and not name.startswith("_"):
            yield name, getattr(cls, name)


def callables():
    """Yield what has parameters: functions, classes, and public methods of these."""
    for name, item in public():
        yield pytest.param(item, id=name)
        if inspect.isclass(item):
            for method, function in methods(item):
                yield pytest.param(function, id=f"{name}.{method}")


def sections(item):
    """Return the sections of a docstring by title, each as its lines."""
    lines, found, title = inspect.cleandoc(item.__doc__ or "").splitlines(), {}, ""
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if re.fullmatch(r"-{3,}", below) and line and not line.startswith(" "):
            title = line
            found[title] = []
        elif title and not re.fullmatch(r"-{3,}", line):
            found[title].append(line)
    return found


def entries(lines):
    """Return the names of the entries of a section, each with whether it has a description."""
    found, names = {}, []
    for line in lines:
        if line and not line.startswith(" "):
            names = [name.strip() for name in line.split(" : ")[0].split(",")]
            found |= dict.fromkeys(names, False)
        elif line.strip():
            found |= dict.fromkeys(names, True)
    return found


def parameters(item):
    """Return the public parameters of a function or a class, as docstrings write them."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    found = inspect.signature(item).parameters.values()
    names = [f"{stars.get(each.kind, '')}{each.name}" for each in found]
    return [name for name in names if not name.startswith("_") and name != "self"]


@pytest.mark.parametrize("item", callables())
def test_every_parameter_is_described(item):
    there = sections(item)
    described = entries(there.get("Parameters", []))
    if inspect.isclass(item):  # fields of results and settings
        described = entries(there.get("Attributes", [])) | described
    else:
        assert set(described) <= set(parameters(item)), "parameters that do not exist"
    missing = [name for name in parameters(item) if not described.get(name)]
    if inspect.isclass(item) and item.__name__ in {"Correlation", "Note"}:
        return
    assert not missing, f"no description of {missing}"


@pytest.mark.parametrize("item", callables())
def test_what_is_returned_is_described(item):
    returned = inspect.signature(item).return_annotation
    if inspect.isclass(item) or returned in (None, "None", "Self", "typing.Self"):
        return
    there = sections(item)
    assert any(line.strip() for line in there.get("Returns", there.get("Yields", [])))


def test_the_reference_has_every_public_name():
    assert set(reference()) >= set(ua.__all__) - {"__version__", "errors"}
