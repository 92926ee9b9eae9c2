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
nearest line outside this package (`warn`), and come once per call of a public function (`merged`).
"""

import re
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from types import FrameType
from typing import Any, NamedTuple

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


@contextmanager
def restoring(what: str, remedy: str = "") -> Iterator[None]:
    """Turn errors about values that a file of ours contains into one that names the file."""
    try:
        yield
    except FileError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError) as error:
        raise FileError(f"{what} is damaged ({error!r}).{remedy}") from error
    except (NumericalError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200].rstrip(".")
        raise FileError(f"{what} is damaged ({reason}).{remedy}") from error


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


class Note(NamedTuple):
    """A warning that is collected, to be issued later or in the caller's process."""

    message: str
    category: type[UnalignedWarning]
    label: str | None = None  # of the dataset or the pair that it is about
    severity: float = 0.0  # in the unit of its kind; the more, the worse
    kind: str = ""  # the function that issued it


class _Call:
    """The warnings about datasets in one call, and the severest announcement of costs."""

    def __init__(self, caller: FrameType) -> None:
        self.notes: list[Note] = []
        self.caller = _place(caller)
        self._lock, self._costliest = threading.Lock(), -1.0

    def is_costliest(self, note: Note) -> bool:
        """Return whether it is 1.5 times as severe as all before; datasets may run on threads."""
        with self._lock:
            if note.severity < 1.5 * self._costliest:
                return False
            self._costliest = note.severity
            return True


# Where warnings of this context are collected, to be issued in the caller's process.
_NOTES: ContextVar[list[Note] | None] = ContextVar("_NOTES", default=None)
# Where those about datasets are collected, to be issued as one of each kind.
_CALL: ContextVar[_Call | None] = ContextVar("_CALL", default=None)
# The dataset that is being processed.
_LABEL: ContextVar[str | None] = ContextVar("_LABEL", default=None)


def warn(
    message: str,
    category: type[UnalignedWarning],
    *,
    label: str | None = None,
    severity: float = 0.0,
) -> None:
    """Issue a warning that points at the nearest line outside this package.

    `label` is that of the dataset (see `about`), named first. Of the warnings about datasets that
    one function issues inside `merged`, only the one of the greatest `severity` is shown.
    """
    kind = sys._getframe(1).f_code.co_qualname
    _issue(Note(message, category, label or _LABEL.get(), severity, kind))


def _issue(note: Note) -> None:
    """Issue a warning, or collect it where that was asked for."""
    notes, call, place = _NOTES.get(), _CALL.get(), None
    if call is not None and note.label is not None and issubclass(note.category, CostWarning):
        if not call.is_costliest(note):
            return
        place = call.caller  # costs are announced at once, also from a worker thread
    elif notes is not None:
        notes.append(note)
        return
    elif call is not None and note.label is not None:
        call.notes.append(note)
        return
    text = note.message if note.label is None else f"{note.label}: {note.message}"
    filename, line, module, registry = place or _place(_caller())
    warnings.warn_explicit(text, note.category, filename, line, module, registry)


def _caller() -> FrameType:
    """Return the nearest frame outside this package."""
    inside = (__name__.partition(".")[0], "contextlib")  # whose decorators wrap our functions
    frame = sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in inside:
        frame = frame.f_back
    return frame


def _place(frame: FrameType) -> tuple[str, int, str, dict[Any, Any]]:
    """Return what `warnings.warn_explicit` needs of a frame."""
    names = frame.f_globals
    registry = names.setdefault("__warningregistry__", {})
    return frame.f_code.co_filename, frame.f_lineno, names.get("__name__", "sys"), registry


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
def merged() -> Iterator[None]:
    """Issue warnings about datasets when this context ends, one of each kind.

    It is the worst one, and names the other datasets. Costs are announced at once.
    """
    if _NOTES.get() is not None or _CALL.get() is not None:
        yield
        return
    call = _Call(_caller())
    token = _CALL.set(call)
    try:
        yield
    finally:
        _CALL.reset(token)
        kinds: dict[tuple[Any, str], list[Note]] = {}
        for note in call.notes:
            kinds.setdefault((note.category, note.kind), []).append(note)
        for alike in kinds.values():
            _issue(_worst(alike))


def _worst(notes: Sequence[Note]) -> Note:
    """Return the severest of warnings of one kind, which names all they are about."""
    worst = max(notes, key=lambda note: note.severity)
    others = [*dict.fromkeys(note.label or "" for note in notes if note.label != worst.label)]
    if not others:
        return worst
    rank = "the worst" if worst.severity > 0 else "one"
    names = listed([re.sub(r"\bdataset (?=['\"])", "", name) for name in others])
    those = "other" if len(others) == 1 else "others"
    rest = f"This is {rank} of {len(others) + 1} such cases; the {those}: {names}."
    return worst._replace(message=f"{worst.message} {rest}")


def listed(texts: Sequence[str], most: int = 5) -> str:
    """Return texts as a list, the first `most` of them, and how many more there are."""
    more = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {more} more" if more > 0 else "")


@contextmanager
def about(label: str) -> Iterator[None]:
    """Name the dataset in errors of its data and in warnings that are issued inside."""
    token = _LABEL.set(label)
    try:
        yield
    except InputError as error:
        raise type(error)(f"{label}: {error}") from error
    finally:
        _LABEL.reset(token)


def repeat(notes: Iterable[Note], before: set[Note]) -> None:
    """Issue collected warnings, each once; `before` holds those already issued."""
    for note in notes:
        if note not in before:
            before.add(note)
            _issue(note)
