"""The command line: parse, call, print.

Results go to stdout, messages and progress to stderr. Exit codes: 0 done (also where a claim of
the paper did not hold: that is a result), 1 the computation failed, 2 the input was wrong, 130
stopped by Ctrl-C.

Everything heavy is imported inside the commands, so that `unaligned --help` is quick.
"""

from __future__ import annotations

import errno
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from . import __version__
from .errors import InputError, UnalignedError, UnalignedWarning

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from .experiments.base import Claim

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

# Written out, so that `--help` need not import them; a test holds it against the registry.
_EXPERIMENTS = "tori, scaling, topology, aligned or sensitivity"

_STOPPED = (
    "Stopped by Ctrl-C. `reproduce` keeps every finished trial: the same command goes on from "
    "there."
)


class _Group(typer.core.TyperGroup):
    """The commands, with errors as one clear line instead of a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with _plain_warnings():
                return super().invoke(ctx)
        except UnalignedError as error:
            _say(f"Error: {error}")
            raise typer.Exit(2 if isinstance(error, InputError) else 1) from None
        except OSError as error:
            if error.errno == errno.EPIPE:  # `| head` has seen enough
                raise
            _say(f"Error: {error}.")
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            _say(_STOPPED)
            raise typer.Exit(130) from None


app = typer.Typer(
    cls=_Group,
    name="unaligned",
    help="Distances between datasets that share no points, no features and no size.",
    epilog="Try `unaligned demo` first: it needs no data and takes a few seconds.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def main() -> None:
    """Run the command line."""
    app(prog_name="unaligned")


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


@app.command(epilog="Example:  unaligned demo")
def demo(
    seed: Annotated[int, typer.Option(min=0, help="Seed of the disguises.")] = 0,
) -> None:
    """Compare handwritten digits in feature spaces that have nothing in common."""
    from .experiments.demo import run_demo

    result = run_demo(rng=seed)
    console = _out()
    console.print("Datasets (rows × columns):", highlight=False)
    for code, what in result.descriptions.items():
        console.print(f"  {code}  {what}", highlight=False, markup=False)
    frame = result.comparison.to_frame()
    table = _table("LES distances", ["", *frame.columns], first=1)
    for name, row in frame.iterrows():
        table.add_row(str(name), *(f"{value:.2f}" for value in row))
    console.print("", table)
    for sentence in result.reading:
        console.print(f"- {sentence}", highlight=False, markup=False)


@app.command(epilog="Example:  unaligned distances")
def distances() -> None:
    """List the distances: what each needs, and what it costs."""
    from . import available

    table = _table("Distances", ["name", "what it is", "needs", "cost"], first=4)
    for name, row in available().iterrows():
        needs = [need for need in ("same features", "paired rows") if row[need]]
        table.add_row(str(name), row["what"], ", ".join(needs) or "nothing shared", row["cost"])
    _out().print(table)


@app.command(
    epilog="Examples:  unaligned reproduce tori   ·   "
    "unaligned reproduce tori --full --without gromov-wasserstein,geometry-score   ·   "
    "unaligned reproduce aligned --trials 5 --seed 1"
)
def reproduce(
    name: Annotated[str, typer.Argument(help=f"The experiment: {_EXPERIMENTS}.")],
    full: Annotated[
        bool, typer.Option("--full/--quick", help="The paper's setting, or a shorter run.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the results.", show_default="results/NAME, or NAME-full"),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(min=1, help="Number of trials.", show_default="as --quick or --full say"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Root seed of all trials.")] = 0,
    only: Annotated[
        str | None, typer.Option(help="Run these methods only, such as les,imd.")
    ] = None,
    without: Annotated[
        str | None, typer.Option(help="Leave methods out, such as gromov-wasserstein.")
    ] = None,
) -> None:
    """Run an experiment of the paper, and say which of its claims hold.

    Writes CSV, PNG, SVG and RESULTS.md. A run that was stopped goes on where it stopped when the
    same command is given again.
    """
    from . import experiments
    from .experiments.run import reproduce as run

    cls = experiments.find(name)
    settings = dict(cls.full if full else cls.quick, seed=seed)
    if trials is not None:
        settings["n_trials"] = trials
    folder = Path("results") / (f"{name}-full" if full else name) if out is None else out
    report = run(cls(**settings), folder, only=_words(only), without=_words(without) or ())
    _print_claims(cls.title, report.claims)
    typer.echo("Written:")
    for path in report.files:
        typer.echo(f"  {path}")


def _words(told: str | None) -> list[str] | None:
    """Return the words of a list such as `les,imd`; None stays None."""
    return None if told is None else [word.strip() for word in told.split(",") if word.strip()]


def _print_claims(title: str, claims: Iterable[Claim]) -> None:
    from rich.text import Text

    colours = {"pass": "green", "FAIL": "red", "observed": "cyan"}
    table = _table(title, ["source", "expected", "measured", "verdict"], first=4)
    for claim in claims:
        verdict = Text(claim.verdict, style=colours[claim.verdict])
        table.add_row(claim.source, claim.expected, claim.measured, verdict)
    _out().print(table)


def _table(title: str, columns: list[str], *, first: int) -> Table:
    """Return an empty table whose `first` columns hold text and the others numbers."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for i, column in enumerate(columns):
        number = i >= first
        table.add_column(column, justify="right" if number else "left", no_wrap=number)
    return table


def _out() -> Console:
    from rich.console import Console

    # Into a pipe or a file there is no width to fit into, and cells should not be cut.
    return Console() if sys.stdout.isatty() else Console(width=140)


def _say(message: str) -> None:
    from rich.console import Console

    Console(stderr=True, markup=False, highlight=False, soft_wrap=True).print(message)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Show our own warnings as one line on stderr, without file and line of code."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, UnalignedWarning):
                _say(f"Warning: {message}")
            else:
                usual(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield
