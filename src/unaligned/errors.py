"""Everything that `unaligned` raises or warns.

The tree::

    UnalignedError
    ├── InputError (ValueError)          an argument or a dataset breaks a rule
    │   ├── InputTypeError (TypeError)   it is of a type that cannot be read
    │   ├── DegenerateDataError          the data has no geometry to compare
    │   ├── OptionError                  an option that does not exist
    │   └── FileError                    a file that cannot be read or written
    ├── RecipeMismatchError              two signatures that were made differently
    ├── NotApplicableError               a distance that cannot say anything here
    ├── NumericalError                   a computation that broke down
    ├── StoreError                       a store that another process holds, or a full disk
    ├── EngineError (RuntimeError)       workers that were lost, and the work with them
    └── MissingExtraError (ImportError)  an optional package is not installed

    UnalignedWarning (UserWarning)
    ├── DataWarning                      rows dropped or set aside, or values of another kind
    ├── SampleSizeWarning                sizes so different that LES is biased
    ├── AccuracyWarning                  `tol` was not reached; the bound says by how much
    └── IndefiniteWarning                the affinity is not positive semi-definite

Every message names the argument, what arrived, the rule and the remedy. Warnings point at the
line outside of this package that led to them (`warn`).
"""

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

__all__ = [
    "AccuracyWarning",
    "DataWarning",
    "DegenerateDataError",
    "EngineError",
    "FileError",
    "IndefiniteWarning",
    "InputError",
    "InputTypeError",
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
    """Return a number of things.

    >>> counted(1, "row"), counted(2, "row"), counted(0, "entry", "entries")
    ('1 row', '2 rows', '0 entries')
    """
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


class UnalignedError(Exception):
    """Root of every error of this package."""


class InputError(UnalignedError, ValueError):
    """An argument or a dataset breaks a rule."""


class InputTypeError(InputError, TypeError):
    """An argument is of a type that cannot be read."""


class DegenerateDataError(InputError):
    """The data has no geometry to compare, such as when all points are equal."""


class OptionError(InputError):
    """An option that the distance or the solver does not have."""


class FileError(InputError):
    """A file that cannot be read or written."""


class RecipeMismatchError(UnalignedError):
    """Two signatures were made with settings that do not allow a comparison."""


class NotApplicableError(UnalignedError):
    """A distance cannot say anything about these datasets."""


class NumericalError(UnalignedError):
    """A computation broke down for numerical reasons."""


class StoreError(UnalignedError):
    """A store could not be used just now: another process holds it, or the disk is full."""


class EngineError(UnalignedError, RuntimeError):
    """Workers were lost, and the work with them."""


class MissingExtraError(UnalignedError, ImportError):
    """An optional package is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed. "
            f"Install it with: pip install 'unaligned[{extra}]'"
        )
        self._made_of = (package, extra, purpose)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._made_of  # else pickle would give the message as the package


class UnalignedWarning(UserWarning):
    """Root of every warning of this package."""


class DataWarning(UnalignedWarning):
    """Rows were dropped or set aside, or values look like those of another kind."""


class SampleSizeWarning(UnalignedWarning):
    """Sample sizes differ so much that LES is biased."""


class AccuracyWarning(UnalignedWarning):
    """The wanted accuracy was not reached; the error bound says what was."""


class IndefiniteWarning(UnalignedWarning):
    """The affinity is not positive semi-definite."""


Note: TypeAlias = tuple[str, type[UnalignedWarning]]

# Where warnings of this thread go instead of to the user, who is elsewhere.
_NOTES: ContextVar[list[Note] | None] = ContextVar("_NOTES", default=None)


def warn(message: str, category: type[UnalignedWarning]) -> None:
    """Warn at the nearest line outside of this package, however deep inside it happens."""
    notes = _NOTES.get()
    if notes is not None:
        notes.append((message, category))
        return
    package = __name__.partition(".")[0]
    depth, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, category, stacklevel=depth)


@contextmanager
def collected() -> Iterator[list[Note]]:
    """Collect what this thread warns of, to be repeated where the user is.

    Examples
    --------
    >>> with collected() as notes:
    ...     warn("3 rows dropped", DataWarning)
    >>> notes[0][0]
    '3 rows dropped'
    """
    notes: list[Note] = []
    token = _NOTES.set(notes)
    try:
        yield notes
    finally:
        _NOTES.reset(token)


@contextmanager
def about(label: str) -> Iterator[None]:
    """Say of which dataset an `InputError` speaks.

    Examples
    --------
    >>> with about("dataset 'liver'"):
    ...     raise InputError("gamma=-1 must be at least 0.")
    Traceback (most recent call last):
    ...
    unaligned.errors.InputError: dataset 'liver': gamma=-1 must be at least 0.
    """
    try:
        yield
    except InputError as error:
        raise type(error)(f"{label}: {error}") from error


def repeat(notes: Iterable[Note], before: set[Note]) -> None:
    """Warn of what was collected elsewhere, but not of what was said before."""
    for note in notes:
        if note not in before:
            before.add(note)
            warn(*note)
