"""The tree of exceptions, as its docstring draws it."""

import inspect
import math
import sys

import pytest

from unaligned import errors
from unaligned.errors import MissingExtraError, required

PUBLIC = {name: getattr(errors, name) for name in errors.__all__}


def test_all_names_every_class_of_the_module():
    classes = {
        name
        for name, item in vars(errors).items()
        if inspect.isclass(item) and item.__module__ == errors.__name__
    }
    assert classes == set(errors.__all__)


@pytest.mark.parametrize("name", errors.__all__)
def test_docstring_draws_every_class_under_its_parent(name):
    tree = errors.__doc__.splitlines()
    line = next(i for i, text in enumerate(tree) if name in text.replace("(", " ").split())
    parent = PUBLIC[name].__mro__[1].__name__
    assert PUBLIC[name].__doc__
    if parent in PUBLIC:
        depth = tree[line].index(name)
        above = [t for t in tree[:line] if t.strip("│├└─ ") and t.index(t.strip("│├└─ ")) < depth]
        assert above[-1].strip("│├└─ ").split()[0] == parent


@pytest.mark.parametrize(
    ("ours", "builtin"),
    [
        ("InputError", ValueError),
        ("InputTypeError", TypeError),
        ("MissingExtraError", ImportError),
        ("UnalignedWarning", UserWarning),
    ],
)
def test_errors_subclass_builtins(ours, builtin):
    assert issubclass(PUBLIC[ours], builtin)


def test_errors_and_warnings_have_one_base_class():
    for item in PUBLIC.values():
        assert issubclass(item, (errors.UnalignedError, errors.UnalignedWarning))


def test_missing_extra_names_what_to_install():
    error = errors.MissingExtraError("dask", "dask", "engine='dask'")
    message = "engine='dask' needs the package 'dask', which is not installed. "
    assert str(error) == message + "Install it with: pip install 'unaligned[dask]'"


def test_missing_package_has_its_distribution_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "ot", None)
    with pytest.raises(MissingExtraError, match=r"needs the package 'POT'.*\[transport"):
        required("ot", "transport", "distance 'x'", package="POT")
    with pytest.raises(MissingExtraError, match=r"needs the package 'nowhere', "):
        required("nowhere.inside", "formats", "Reading .nowhere")
    assert required("math", "formats", "Counting") is math
