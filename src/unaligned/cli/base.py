"""The program: its options, its errors, and how a command takes settings as one object."""

from __future__ import annotations

import errno
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import wraps
from io import TextIOWrapper
from typing import Annotated, Any, get_type_hints

import typer

from .. import __version__
from ..errors import InputError, RecipeMismatchError, UnalignedError
from .output import complain, plain_warnings, say
from .wording import speaking_of

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

_EXIT_CODES = "Exit codes: 0 done, 1 a run that failed, 2 bad input, 130 stopped by Ctrl-C."


class _Group(typer.core.TyperGroup):
    """The commands, with errors as one clear line instead of a traceback."""

    def invoke(self, ctx: Any) -> Any:
        def parameters() -> Iterable[Any]:
            running = self.commands.get(ctx.invoked_subcommand or "")
            return running.params if running else ()

        with speaking_of(parameters), plain_warnings():
            return self._invoke(ctx)

    def _invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except UnalignedError as error:
            complain("Error", error)
            raise typer.Exit(exit_code(error)) from None
        except OSError as error:
            if error.errno == errno.EPIPE:  # `| head` has seen enough
                raise
            say(f"Error: {error}.")
            raise typer.Exit(1) from None
        except MemoryError:
            say("Error: not enough memory. Lower --jobs, or compare fewer rows with --subsample.")
            raise typer.Exit(1) from None
        except KeyboardInterrupt as error:
            say(str(error) or "Stopped by Ctrl-C.")
            raise typer.Exit(130) from None


def exit_code(error: UnalignedError) -> int:
    """Return 2 where other input would help, else 1; a full disk is nobody's bad input."""
    disk_is_full = getattr(error.__cause__, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
    return 2 if isinstance(error, (InputError, RecipeMismatchError)) and not disk_is_full else 1


app = typer.Typer(
    cls=_Group,
    name="unaligned",
    help="Distances between datasets that share no points, no features and no size.",
    epilog="Try `unaligned demo` first: it needs no data and takes a few seconds.\n\n"
    + _EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal or pipe may not know γ or ≤
            stream.reconfigure(errors="replace")
    app(prog_name="unaligned")


def examples(*commands: str) -> str:
    """Return the end of a help page, one example a line; a test runs them all."""
    return "\n\n".join(["Examples:", *commands])


def flat(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take settings objects: their fields become its options.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Size:
    ...     width: int = 1
    >>> @flat
    ... def show(name: str, size: Size) -> None:
    ...     print(name, size)
    >>> show(name="door", width=2)
    door Size(width=2)
    """
    hints = get_type_hints(command, include_extras=True)
    settings: dict[str, Any] = {n: hint for n, hint in hints.items() if is_dataclass(hint)}
    parameters = []
    for name, own in inspect.signature(command).parameters.items():
        if name not in settings:
            parameters.append(own.replace(annotation=hints[name], kind=own.KEYWORD_ONLY))
            continue
        inner = get_type_hints(settings[name], include_extras=True)
        parameters += [
            own.replace(name=f.name, kind=own.KEYWORD_ONLY, default=f.default).replace(
                annotation=inner[f.name]
            )
            for f in fields(settings[name])
        ]

    @wraps(command)
    def run(**given: Any) -> None:
        for name, cls in settings.items():
            given[name] = cls(**{f.name: given.pop(f.name) for f in fields(cls)})
        command(**given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


@contextmanager
def going_on(hint: str) -> Iterator[None]:
    """Say at Ctrl-C how far the work came, and how to go on."""
    try:
        yield
    except KeyboardInterrupt as error:
        far = str(error).partition(", and nothing kept")[0].rstrip(".") or "Stopped by Ctrl-C"
        raise KeyboardInterrupt(f"{far}. {hint}") from None


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"unaligned {__version__}")
        raise typer.Exit


def _cite(wanted: bool) -> None:
    if wanted:
        typer.echo(_CITATION % __version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
    cite: Annotated[
        bool,
        typer.Option("--cite", callback=_cite, is_eager=True, help="Print BibTeX entries."),
    ] = False,
) -> None:
    pass
