"""Messages of the library, which speak of Python's options, in the words of the shell.

A message says `drop_non_numeric=True` or `solver='exact'`. Whoever typed a command reads the
options that this command has: `--drop-non-numeric`, `--solver 'exact'`. What it has no option
for stays as it is.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

# Python's names of what the shell calls otherwise.
_TWINS = {"n_jobs": "jobs", "references": "against", "rng": "seed", "tags": "tag"}

_PARTS = re.compile(
    r"""
    (?<![\w=]) (?: '[^']*' | "[^"]*" )  # names of files and the like: they stay as they are
    | (?<![\w.]) (?P<name> [a-z]\w* ) = (?: (?P<value>
        '[^']*' | "[^"]*" | \[[^]]*] | \([^)]*\) | (?: True | False | None ) \b
        | [-+]? \d+ (?: \.\d+ )? (?: e[-+]?\d+ )? \b ) | (?! [\w<] ) )
    | (?<![\w.]) (?P<word> [a-z]+ (?: _[a-z]+ )+ ) \b (?! [=(] | \.\w )
    """,
    re.VERBOSE,
)


@dataclass(frozen=True)
class Flag:
    """An option of a command as it is typed; `off` is the opposite of a switch, or empty."""

    on: str
    off: str = ""
    is_switch: bool = False


def flags_of(parameters: Iterable[Any]) -> dict[str, Flag]:
    """Return the options among a command's parameters by their names in Python."""
    found = {}
    for own in parameters:
        if own.param_type_name == "option":
            off = own.secondary_opts[0] if own.secondary_opts else ""
            found[own.name] = Flag(own.opts[0], off, bool(own.is_flag))
    return found | {name: found[twin] for name, twin in _TWINS.items() if twin in found}


def in_shell_words(message: str, flags: Mapping[str, Flag]) -> str:
    """Return a message with the options of Python as these flags.

    >>> flags = {"robust": Flag("--robust", is_switch=True), "n_jobs": Flag("--jobs")}
    >>> in_shell_words("robust=True took 'n_jobs=2'; lower n_jobs.", flags)
    "--robust took 'n_jobs=2'; lower --jobs."
    """
    return _PARTS.sub(lambda part: _typed(part, flags) or part[0], message)


def _typed(part: re.Match[str], flags: Mapping[str, Flag]) -> str | None:
    """Return a part of a message as it is typed, or None where there is nothing to type."""
    name, value = part["name"] or part["word"], part["value"]
    if name is None:
        return None
    try:
        if name in flags:
            return _with_value(name, value, flags)
        if value is not None and "option" in flags and name in _distance_options():
            return f"{flags['option'].on} {name}={_literal(value)}"
    except (ValueError, SyntaxError):  # words that only look like an option and its value
        return None
    return None


def _with_value(name: str, text: str | None, flags: Mapping[str, Flag]) -> str:
    flag = flags[name]
    if text is None:
        return flag.on
    value = ast.literal_eval(text)
    if value is None or value is False:
        opposite = flags[f"no_{name}"].on if f"no_{name}" in flags else flag.off
        return opposite or f"no {flag.on}"
    if flag.is_switch:
        return flag.on
    if isinstance(value, (list, tuple)):
        return f"{flag.on} {','.join(map(str, value))!r}"
    return f"{flag.on} {text}"


def _literal(text: str) -> str:
    value = ast.literal_eval(text)
    return value if isinstance(value, str) else json.dumps(value)


def _distance_options() -> set[str]:
    from .. import _settings
    from ..metrics.registry import DISTANCES

    return {name for cls in DISTANCES.values() for name in _settings.option_names(cls)}


# The options of the command that runs; asked for when there is something to say.
_RUNNING: ContextVar[Callable[[], Iterable[Any]]] = ContextVar("_RUNNING", default=lambda: ())


@contextmanager
def speaking_of(parameters: Callable[[], Iterable[Any]]) -> Iterator[None]:
    """Let `in_shell` speak of these parameters of a command."""
    token = _RUNNING.set(parameters)
    try:
        yield
    finally:
        _RUNNING.reset(token)


def in_shell(message: object) -> str:
    """Return a message of the library in the words of the command that runs."""
    return in_shell_words(str(message), flags_of(_RUNNING.get()()))
