"""Docstrings of public names: parameters and results are described, examples run when pasted."""

import doctest
import inspect
import re
from functools import cached_property
from importlib import import_module
from pathlib import Path

import pytest

import unaligned as ua
from unaligned import figures
from unaligned.errors import MissingExtraError
from unaligned.inference.association import Correlation
from unaligned.metrics.base import Distance
from unaligned.metrics.registry import DISTANCES
from unaligned.spectra.auto import SOLVERS
from unaligned.spectra.base import EigenSolver

API = Path(__file__).parents[1] / "docs" / "api.md"
FIGURES = [name for name in figures.__all__ if callable(getattr(figures, name))]
NAMESPACES = {
    "ua.figures": FIGURES,
    "ua.sc": ["tl.les", "pl.les", "pl.les_heatmap", "get.les"],
    "ua.sklearn": ua.sklearn.__all__,
}
# Its arguments are what its p-value is computed from.
MADE_BY_US = {Correlation}
# Types of other libraries, and aliases of them.
FOREIGN = {"Any", "Axes", "DataFrame", "Figure", "FloatArray", "Generator", "IndexArray"}
FOREIGN |= {
    "Iterator",
    "Line2D",
    "NDArray",
    "None",
    "Result",
    "Self",
    "Series",
    "Tensor",
    "Values",
}


def resolve(dotted):
    """Return the object of a dotted name in `unaligned`, such as `result.Comparison`."""
    module, _, name = f"unaligned.{dotted}".rpartition(".")
    return getattr(import_module(module), name)


def reference():
    """Return the names that docs/api.md lists."""
    entry = r"^(?:   ~?|\.\. autoclass:: unaligned\.)([a-z_.]*\w+)$"
    return re.findall(entry, API.read_text(encoding="utf-8"), flags=re.MULTILINE)


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
    if hasattr(ua, "torch"):  # an extra
        yield from ((f"ua.torch.{name}", getattr(ua.torch, name)) for name in ua.torch.__all__)


def methods(cls):
    """Yield the public methods of a class that this package defines, by name."""
    for name, item in inspect.getmembers_static(cls):
        function = item.__func__ if isinstance(item, (staticmethod, classmethod)) else item
        own = getattr(function, "__module__", None) or ""
        is_ours = inspect.isfunction(function) and own.startswith("unaligned")
        if is_ours and not name.startswith("_"):
            yield name, getattr(cls, name)


def callables():
    """Yield what has parameters by name: functions, classes, and public methods of these."""
    for name, item in public():
        yield name, item
        if inspect.isclass(item) and not is_chosen(item):
            yield from ((f"{name}.{method}", function) for method, function in methods(item))


def is_chosen(cls):
    """Return whether a class is a distance or a solver; its base describes the methods."""
    return issubclass(cls, (Distance, EigenSolver)) and cls not in (Distance, EigenSolver)


PUBLIC = dict(public())
CALLABLES = dict(callables())
FUNCTIONS = [name for name, item in CALLABLES.items() if not inspect.isclass(item)]


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


@pytest.mark.parametrize("name", CALLABLES)
def test_every_parameter_is_described(name):
    item = CALLABLES[name]
    there = sections(item)
    described = entries(there.get("Parameters", []))
    if inspect.isclass(item):  # the fields of results
        described |= entries(there.get("Attributes", []))
    else:
        assert set(described) <= set(parameters(item)), "parameters that do not exist"
        assert list(described) == sorted(described, key=parameters(item).index)
    missing = [each for each in parameters(item) if not described.get(each)]
    assert not missing or item in MADE_BY_US, f"no description of {missing}"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_returned_is_described(name):
    there = sections(CALLABLES[name])
    found = entries(there.get("Returns", there.get("Yields", [])))
    if inspect.signature(CALLABLES[name]).return_annotation not in (None, "None"):
        assert found
        assert all(found.values())


def examples():
    """Yield the examples of public names and their methods, in an empty namespace."""
    finder = doctest.DocTestFinder()
    for name, item in public():
        found = finder.find(item, name, module=False, globs={})
        yield from ((example.name, example) for example in found if example.examples)


EXAMPLES = dict(examples())


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_where_it_is_pasted(name):
    try:
        doctest.DebugRunner(optionflags=doctest.ELLIPSIS).run(EXAMPLES[name])
    except doctest.DocTestFailure as failure:
        pytest.fail(f"{failure.example.source}gives {failure.got}")
    except doctest.UnexpectedException as failure:
        error = failure.exc_info[1]
        if isinstance(error, MissingExtraError):
            pytest.skip(str(error))
        raise error from None


def test_the_reference_has_every_public_name():
    assert set(reference()) >= set(ua.__all__) - {"__version__", "errors"}


def test_the_reference_has_every_distance_and_solver_with_an_example():
    homes = {name: import_module(f"unaligned.spectra.{name}") for name in SOLVERS}
    solvers = {getattr(homes[name], cls) for name, cls in SOLVERS.items()}
    listed = {item: name for name, item in PUBLIC.items() if inspect.isclass(item)}
    for item in {*DISTANCES.values(), *solvers}:
        assert listed.get(item) in EXAMPLES, item


def test_no_docstring_has_a_label_of_the_source_of_the_paper():
    for name, item in CALLABLES.items():
        assert not re.search(r"\b(alg|appeq|eq|prop):\w", item.__doc__ or ""), name


def test_the_reference_has_every_class_that_is_returned():
    known = {item.__name__ for item in PUBLIC.values() if inspect.isclass(item)} | FOREIGN
    getters = {
        f"{name}.{own}": getattr(item, "fget", None) or getattr(item, "func", None)
        for name, cls in PUBLIC.items()
        if inspect.isclass(cls)
        for own, item in inspect.getmembers_static(cls)
        if not own.startswith("_") and isinstance(item, (property, cached_property))
    }
    functions = {name: CALLABLES[name] for name in FUNCTIONS} | getters
    for name, function in functions.items():
        words = re.findall(r"\w+", str(inspect.signature(function).return_annotation))
        unknown = {word for word in words if word[0].isupper()} - known
        assert not unknown, f"{name} returns {unknown}, not in docs/api.md"


def test_the_parser_sees_what_is_missing():
    def documented(first, second, *rest, **options):
        """Return a number.

        Parameters
        ----------
        first, second
            Numbers.
        *rest
        **options
            More.

        Returns
        -------
        float
        """

    there = sections(documented)
    assert parameters(documented) == ["first", "second", "*rest", "**options"]
    described = entries(there["Parameters"])
    assert described == {"first": True, "second": True, "*rest": False, "**options": True}
    assert entries(there["Returns"]) == {"float": False}
