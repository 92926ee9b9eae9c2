"""Public names, one-way imports, and a light import."""

import ast
import inspect
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

import unaligned as ua

ROOT = Path(ua.__file__).parent
MODULES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))

# From the bottom to the top. A module imports from its own layer and from those below it.
LAYERS = [
    ["errors"],
    ["defaults", "_check", "_format"],
    ["engine"],
    ["data", "rows"],
    ["io"],
    ["operators"],
    ["spectra"],
    ["metrics"],
    [
        *("cache", "inputs", "preparation", "execution"),
        *("confidence", "result", "comparison", "serialization"),
    ],
    ["diagnosis", "cost", "embedding", "matching", "tags", "explanation", "inference"],
    ["store"],
    ["figures"],
    ["report"],
    ["integrations"],
    ["sklearn", "torch"],
    ["cli", "experiments"],
    ["__main__"],
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
# These use the package as anybody does: `import unaligned as ua`.
OUTSIDE = ("cli", "experiments", "__main__")
# Methods of results that draw, report, embed and correlate import upward when called, and so do
# `compare(inference=True)` and `Dataset.from_source` for an `.h5ad` file, whose layout only `io`
# knows.
CONVENIENCE = {
    ("result",),
    ("diagnosis",),
    ("data", "dataset"),
    ("inference", "permutation"),
    ("explanation", "result"),
    ("explanation", "quantities"),
    ("inference", "drift"),
    ("comparison",),
}


def imports_of(path, *, at_call_time):
    """Yield the package's own modules that a file imports: on import, or when called."""
    package = ("unaligned", *path.parent.parts)
    todo = [(node, False) for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body]
    while todo:
        node, in_function = todo.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.ImportFrom) and in_function == at_call_time:
            base = package[: len(package) - node.level + 1] if node.level else ()
            origin = (*base, *(node.module or "").split(".")) if node.module else base
            if origin[:1] == ("unaligned",):
                for alias in node.names:
                    if alias.name == "__version__":
                        continue
                    full = ROOT.joinpath(*origin[1:], alias.name)
                    is_module = full.with_suffix(".py").exists() or full.is_dir()
                    yield (*origin[1:], alias.name) if is_module else origin[1:]
        elif isinstance(node, ast.Import) and in_function == at_call_time:
            yield from (
                tuple(alias.name.split(".")[1:])
                for alias in node.names
                if alias.name.split(".")[0] == "unaligned"
            )
        in_function = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        children = ast.iter_child_nodes(node)
        todo += [(child, in_function) for child in children if isinstance(child, ast.stmt)]


def own_name(path):
    return path.with_suffix("").parts


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_imports_point_one_way(path):
    importer = own_name(path)
    on_import = list(imports_of(path, at_call_time=False))
    if importer == ("__init__",):
        assert not on_import, "the package imports on first use"
        return
    assert importer[0] in RANK, f"{path} has no place in LAYERS"
    at_call_time = () if importer in CONVENIENCE else imports_of(path, at_call_time=True)
    for imported in (*on_import, *at_call_time):
        if not imported:
            assert importer[0] in OUTSIDE, f"{path} imports the package itself"
            continue
        assert RANK[imported[0]] <= RANK[importer[0]], f"{path} imports upward: {imported}"


def test_no_imports_in_a_circle():
    graph = {own_name(path): set(imports_of(path, at_call_time=False)) for path in MODULES}
    done = set()

    def visit(module, trail):
        assert module not in trail, " <- ".join("/".join(m) for m in (*trail, module))
        if module not in done:
            for imported in graph.get(module, ()):
                visit(imported, (*trail, module))
            done.add(module)

    for module in graph:
        visit(module, ())


def test_the_walk_sees_imports():
    on_import = set(imports_of(Path("comparison.py"), at_call_time=False))
    assert {("result",), ("_check",)} <= on_import
    assert ("figures",) in set(imports_of(Path("result.py"), at_call_time=True))


CONTRACT = {
    "Cache",
    "Comparison",
    "Dataset",
    "DriftMonitor",
    "Signature",
    "Store",
    "available",
    "compare",
    "diagnose",
    "distance",
    "errors",
    "estimate",
    "explain",
    "load",
    "load_all",
    "log_euclidean_bounds",
    "log_hilbert_schmidt",
    "permutation_test",
    "signature",
}
# Other libraries' names: `from unaligned import *` must not replace them.
NAMESPACES = {"sc", "sklearn", "torch"}


def test_all_is_exactly_the_public_names():
    assert len(ua.__all__) == len(set(ua.__all__))
    assert set(ua.__all__) - {"__version__"} == CONTRACT
    missing = {"torch"} if find_spec("torch") is None else set()
    assert dir(ua) == sorted({*ua.__all__, *NAMESPACES} - missing)


@pytest.mark.parametrize("name", sorted(CONTRACT | NAMESPACES))
def test_every_public_name_is_there_with_a_docstring(name):
    if name == "torch":
        pytest.importorskip("torch")
    item = getattr(ua, name)
    assert inspect.getdoc(item)
    if not inspect.ismodule(item):
        assert item.__name__ == name
        assert "Examples" in inspect.getdoc(item)


def test_names_for_type_checkers_are_the_names_at_run_time():
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    assert {alias.asname for node in block.body for alias in node.names} == CONTRACT | NAMESPACES


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'unaligned' has no attribute 'signatur'"):
        ua.signatur  # noqa: B018


def test_a_missing_torch_is_an_attribute_error_and_a_broken_one_an_import_error(
    monkeypatch, tmp_path
):
    for module in ("unaligned.torch", "unaligned.integrations.torch"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.delattr(ua, "torch", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(AttributeError, match=r"pip install 'unaligned\[torch\]'"):
        ua.torch  # noqa: B018
    monkeypatch.delitem(sys.modules, "torch")
    (tmp_path / "torch.py").write_text("raise ImportError('libtorch.so is missing')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match=r"libtorch\.so is missing"):
        ua.torch  # noqa: B018


def test_a_stub_of_torch_without_a_spec_is_listed(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    assert "torch" in dir(ua)


def test_no_module_has_the_name_of_a_public_function():
    modules = {path.stem for path in MODULES if len(path.parts) == 1} | {
        path.parts[0] for path in MODULES if len(path.parts) > 1
    }
    assert modules & set(ua.__all__) == {"errors"}


def test_options_are_keyword_only():
    assert next(iter(inspect.signature(ua.signature).parameters)) == "data"
    for function, positional in (
        (ua.signature, 1),
        (ua.distance, 3),
        (ua.compare, 2),
        (ua.permutation_test, 2),
        (ua.explain, 2),
        (ua.DriftMonitor, 1),
    ):
        kinds = [p.kind for p in inspect.signature(function).parameters.values()]
        assert kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD) == positional


def loaded_by(statement):
    script = f"import json, sys; {statement}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT.parent,
    )
    return {name.split(".")[0] for name in json.loads(done.stdout)}


HEAVY = {"numba", "sklearn", "pandas", "matplotlib", "scipy", "torch", "typer", "rich"}


@pytest.mark.parametrize(
    ("statement", "without"),
    [
        ("import unaligned", HEAVY),
        ("import unaligned; unaligned.compare", HEAVY - {"scipy", "numba"}),
        ("import unaligned; unaligned.Dataset", HEAVY - {"scipy"}),
        ("import unaligned; unaligned.load", HEAVY - {"scipy"}),
    ],
)
def test_a_script_pays_only_for_what_it_uses(statement, without):
    assert not loaded_by(statement) & without


def test_star_import_gives_the_public_names():
    names = {}
    exec("from unaligned import *", names)
    assert set(ua.__all__) <= set(names)
    assert not NAMESPACES & set(names)


def test_the_name_torch_is_ours_from_outside_and_theirs_inside():
    torch = pytest.importorskip("torch")
    from unaligned.torch import activations

    assert ua.torch.activations is activations
    assert sys.modules["torch"] is torch
    assert inspect.getmodule(activations).torch is torch
