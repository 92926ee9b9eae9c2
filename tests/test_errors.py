"""The tree of exceptions, as its docstring draws it."""

import inspect
import math
import sys
import warnings

import pytest

from unaligned import errors
from unaligned.engine import Threads
from unaligned.errors import MissingExtraError, required

PUBLIC = {name: getattr(errors, name) for name in errors.__all__}


def test_all_names_every_exception_of_the_module():
    classes = {
        name
        for name, item in vars(errors).items()
        if inspect.isclass(item) and issubclass(item, Exception)
        if item.__module__ == errors.__name__
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


def noted(*calls):
    """Return the messages that are issued for warnings inside `merged`."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with errors.merged():
            for call in calls:
                call()
            at_once = [str(note.message) for note in caught]
    return at_once, [str(note.message) for note in caught][len(at_once) :]


def lost(label, share):
    errors.warn(f"lost {share}.", errors.DataWarning, label=label, severity=share)


def odd(label):
    errors.warn("odd.", errors.DataWarning, label=label)


def test_warnings_of_one_kind_are_merged_into_the_worst():
    calls = [lambda i=i: lost(f"dataset 'x{i}'", 0.1 * (5 - abs(i - 5))) for i in range(9)]
    at_once, (message,) = noted(*calls, *calls)
    assert not at_once
    assert message == (
        "dataset 'x5': lost 0.5. This is the worst of 9 such cases; the others: 'x0', 'x1', 'x2', "
        "'x3', 'x4' and 3 more."
    )


def test_kinds_stay_apart_and_what_has_no_dataset_comes_at_once():
    at_once, messages = noted(
        lambda: odd("dataset 'a'"),
        lambda: odd(None),
        lambda: lost("dataset 'b'", 1.0),
        lambda: odd("dataset 'dataset a' and dataset 'c'"),
    )
    assert at_once == ["odd."]
    assert messages == [
        "dataset 'a': odd. This is one of 2 such cases; the other: 'dataset a' and 'c'.",
        "dataset 'b': lost 1.0.",
    ]


def test_costs_are_announced_at_once_and_again_only_if_much_higher():
    def announce(price):
        with errors.about(f"dataset 'x{price}'"):
            errors.warn(f"{price} min.", errors.CostWarning, severity=price)

    at_once, messages = noted(*(lambda p=p: announce(p) for p in (10, 5, 14, 15)))
    assert at_once == ["dataset 'x10': 10 min.", "dataset 'x15': 15 min."]
    assert not messages


def test_costs_on_worker_threads_are_announced_while_the_work_goes_on():
    def job(caught, price):
        with errors.about("dataset 'x'"):
            if price:
                errors.warn(f"{price} min.", errors.CostWarning, severity=price)
        return len(caught) if price else 0

    with pytest.warns(errors.CostWarning, match="dataset 'x': 3 min") as caught, errors.merged():
        assert list(Threads(2).map(job, [3, 0], shared=caught)) == [1, 0]
    assert [warning.filename for warning in caught] == [__file__]


def test_merged_warnings_are_issued_before_an_error_and_by_the_outermost_call():
    def inner():
        with errors.merged():
            odd("dataset 'a'")

    @errors.merged()
    def outer():
        inner()
        odd("dataset 'b'")
        raise ZeroDivisionError("mine")

    with (
        pytest.warns(errors.DataWarning, match="one of 2") as caught,
        pytest.raises(ZeroDivisionError, match="mine"),
    ):
        outer()
    assert len(caught) == 1
