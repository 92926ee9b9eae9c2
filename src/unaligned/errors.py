"""Exceptions and warnings of `unaligned`.

The tree::

    UnalignedError
    ├── InputError (ValueError)          an invalid argument or dataset
    │   ├── InputTypeError (TypeError)   an unsupported type
    │   ├── DegenerateDataError          data without geometry, such as equal points
    │   ├── OptionError                  an unknown option
    │   └── FileError                    a file that cannot be read or written
    ├── RecipeMismatchError              signatures with different recipes
    ├── NotApplicableError               a distance that does not apply to the data
    ├── NumericalError                   a numerical failure
    ├── StoreError                       a locked store, or a full disk
    ├── EngineError (RuntimeError)       lost workers
    └── MissingExtraError (ImportError)  a missing optional package

    UnalignedWarning (UserWarning)
    ├── DataWarning                      suspicious values
    │   └── MissingDataWarning           dropped rows
    ├── SampleSizeWarning                sample sizes that bias LES
    ├── AccuracyWarning                  `tol` was not reached
    ├── CostWarning                      work that takes more than a minute
    └── IndefiniteWarning                a matrix that is not positive semi-definite

Every message names the argument, what arrived, the rule and the remedy. Warnings point at the
nearest line outside this package (`warn`).
"""

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any, TypeAlias

__all__ = [
    "AccuracyWarning",
    "CostWarning",
    "DataWarning",
    "DegenerateDataError",
    "EngineError",
    "FileError",
    "IndefiniteWarning",
    "InputError",
    "InputTypeError",
    "MissingDataWarning",
    "MissingExtraError",
    "NotApplicableError",
    "NumericalError",
    "OptionError",
    "RecipeMismatchError",
    "SampleSizeWarning",
    "StoreError",
    "UnalignedError",
    "UnalignedWarning",
]


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun, such as '1 row' or '2 rows'."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


class UnalignedError(Exception):
    """Base class of all errors of this package."""


class InputError(UnalignedError, ValueError):
    """An argument or a dataset is invalid."""


class InputTypeError(InputError, TypeError):
    """An argument has an unsupported type."""


class DegenerateDataError(InputError):
    """The data has no geometry to compare, such as when all points are equal."""


class OptionError(InputError):
    """The distance or the solver has no such option."""


class FileError(InputError):
    """A file cannot be read or written."""


class RecipeMismatchError(UnalignedError):
    """Two signatures have recipes that cannot be compared."""


class NotApplicableError(UnalignedError):
    """A distance does not apply to these datasets."""


class NumericalError(UnalignedError):
    """A computation failed numerically."""


class StoreError(UnalignedError):
    """A store is locked by another process, or the disk is full."""


class EngineError(UnalignedError, RuntimeError):
    """Workers were lost before they finished."""


class MissingExtraError(UnalignedError, ImportError):
    """An optional package is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed. "
            f"Install it with: pip install 'unaligned[{extra}]'"
        )
        self._arguments = (package, extra, purpose)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._arguments  # the default would pass the message as `package`


def required(module: str, extra: str, purpose: str, *, package: str | None = None) -> Any:
    """Import an optional module, or raise an error that names the extra to install.

    `package` is the distribution's name where it differs from the module's.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(package or module.partition(".")[0], extra, purpose) from error


class UnalignedWarning(UserWarning):
    """Base class of all warnings of this package."""


class DataWarning(UnalignedWarning):
    """Values look like another kind of data, or rows were dropped."""


class MissingDataWarning(DataWarning):
    """Rows with NaN or infinity were dropped."""


class SampleSizeWarning(UnalignedWarning):
    """Sample sizes differ so much that LES is biased."""


class AccuracyWarning(UnalignedWarning):
    """`tol` was not reached; the error bound says what was."""


class CostWarning(UnalignedWarning):
    """The work that begins takes more than a minute."""


class IndefiniteWarning(UnalignedWarning):
    """The matrix is not positive semi-definite."""


Note: TypeAlias = tuple[str, type[UnalignedWarning]]

# Where warnings of this context are collected, to be issued in the caller's process.
_NOTES: ContextVar[list[Note] | None] = ContextVar("_NOTES", default=None)


def warn(message: str, category: type[UnalignedWarning]) -> None:
    """Issue a warning that points at the nearest line outside this package."""
    notes = _NOTES.get()
    if notes is not None:
        notes.append((message, category))
        return
    inside = (__name__.partition(".")[0], "contextlib")  # whose decorators wrap our functions
    depth, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in inside:
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, category, stacklevel=depth)


@contextmanager
def collected() -> Iterator[list[Note]]:
    """Collect the warnings of this context instead of issuing them."""
    notes: list[Note] = []
    token = _NOTES.set(notes)
    try:
        yield notes
    finally:
        _NOTES.reset(token)


@contextmanager
def about(label: str) -> Iterator[None]:
    """Prefix the message of an `InputError` with the dataset it is about."""
    try:
        yield
    except InputError as error:
        raise type(error)(f"{label}: {error}") from error


def repeat(notes: Iterable[Note], before: set[Note]) -> None:
    """Issue collected warnings, each once; `before` holds those already issued."""
    for note in notes:
        if note not in before:
            before.add(note)
            warn(*note)
