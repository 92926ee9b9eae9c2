"""The Typer program: how commands are registered, their error messages and exit codes."""

import errno
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import wraps
from io import TextIOWrapper
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from .. import __version__
from ..errors import InputError, RecipeMismatchError, UnalignedError
from .printing import messages, print_message, print_problem

_CITATION = """\
@inproceedings{shnitzer2022logeuclidean,
  title     = {Log-Euclidean Signatures for Intrinsic Distances Between Unaligned Datasets},
  author    = {Shnitzer, Tal and Yurochkin, Mikhail and Greenewald, Kristjan and Solomon, Justin},
  booktitle = {Proceedings of the 39th International Conference on Machine Learning},
  year      = {2022},
}
@software{unaligned,
  title   = {unaligned: distances between datasets that share no points, no features and no size},
  author  = {{The unaligned authors}},
  version = {%s},
}"""

DIFFERENT = 3  # exit code of `test` and `drift` where they show a difference

Function = TypeVar("Function", bound=Callable[..., None])

app = typer.Typer(
    name="unaligned",
    help="Distances between datasets that share no points, no features and no size.",
    epilog="Try `unaligned demo` first: it needs no data and takes a few seconds.\n\n"
    "Exit codes: 0 success, 1 the run failed, 2 bad input, 3 `test` shows a difference or `drift` "
    "a drift, "
    "130 interrupted by Ctrl-C.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def main() -> None:
    """Run the command line."""
    if sys.stdout is None:  # closed by the caller
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # its encoding may lack γ or ≤
            stream.reconfigure(errors="replace")
    app(prog_name="unaligned")


class Command(typer.core.TyperCommand):
    """A command that turns errors into one line on stderr and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with messages(self.params):
            try:
                return super().invoke(ctx)
            except UnalignedError as error:
                print_problem("Error", error)
                code = exit_code(error)
            except OSError as error:
                if error.errno == errno.EPIPE:  # the reader, such as `head`, has closed the pipe
                    raise
                print_problem("Error", f"{error}.")
                code = 1
            except MemoryError:
                print_problem("Error", "Out of memory. Lower --jobs or use --subsample.")
                code = 1
            except KeyboardInterrupt as error:
                print_message(str(error) or "Stopped by Ctrl-C.")
                code = 130
            raise typer.Exit(code)


def exit_code(error: UnalignedError) -> int:
    """Return 2 for bad input, else 1; a full disk is not bad input."""
    disk_is_full = getattr(error.__cause__, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
    return 2 if isinstance(error, (InputError, RecipeMismatchError)) and not disk_is_full else 1


def command(
    *examples: str, name: str | None = None, group: typer.Typer = app, cls: type = Command
) -> Callable[[Function], Function]:
    """Register a function as a command, with examples that end its help page (a test runs them).

    A parameter whose type is a dataclass stands for the options that are the dataclass's fields.
    """

    def register(function: Function) -> Function:
        paragraphs = (inspect.getdoc(function) or "").split("\n\n")
        help = "\n\n".join(" ".join(text.split()) for text in paragraphs)
        epilog = "\n\n".join(["Examples:", *examples])
        group.command(name, cls=cls, help=help, epilog=epilog)(flat(function))
        return function

    return register


def flat(function: Callable[..., None]) -> Callable[..., None]:
    """Return the function with the fields of its dataclass parameters as parameters."""
    hints = get_type_hints(function, include_extras=True)
    settings: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters = []
    for name, own in inspect.signature(function).parameters.items():
        own = own.replace(kind=own.KEYWORD_ONLY)
        if name in settings:
            inner = get_type_hints(settings[name], include_extras=True)
            for f in fields(settings[name]):
                option = own.replace(name=f.name, default=f.default, annotation=inner[f.name])
                parameters.append(option)
        else:
            parameters.append(own.replace(annotation=hints[name]))

    @wraps(function)
    def run(**given: Any) -> None:
        for name, cls in settings.items():
            given[name] = cls(**{f.name: given.pop(f.name) for f in fields(cls)})
        function(**given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


@contextmanager
def resumable(hint: str) -> Iterator[None]:
    """Add to the message of a Ctrl-C how to continue."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(f"{str(error) or 'Stopped by Ctrl-C.'} {hint}") from None


@app.callback(invoke_without_command=True)
def _program(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    cite: Annotated[bool, typer.Option("--cite", help="Print BibTeX entries.")] = False,
) -> None:
    if version:
        typer.echo(f"unaligned {__version__}")
    if cite:
        typer.echo(_CITATION % __version__)
    if version or cite:
        raise typer.Exit
