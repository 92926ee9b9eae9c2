"""Commands about the paper: demo, distances, reproduce."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .base import app, examples, going_on
from .options import AsJSON
from .output import out, print_json, show, table

if TYPE_CHECKING:
    from ..experiments.base import Claim

# Written out, so that `--help` need not import them; a test holds it against the registry.
EXPERIMENT_NAMES = "tori, scaling, topology, aligned or sensitivity"
_WIDEST = 120  # columns of sentences, into a pipe or a file too


@app.command(epilog=examples("unaligned demo", "unaligned demo --seed 3"))
def demo(
    seed: Annotated[int, typer.Option(min=0, help="Seed of the disguises.")] = 0,
    json: AsJSON = False,
) -> None:
    """Compare handwritten digits in feature spaces that have nothing in common."""
    from ..experiments.digits import run_demo

    result = run_demo(rng=seed)
    frame = result.comparison.to_frame()
    if json:
        found = {"names": list(frame.index), "distances": frame.to_numpy()}
        print_json({"datasets": result.descriptions, **found, "reading": result.reading})
        return
    console = out()
    console.print("Datasets (rows × columns):")
    for code, what in result.descriptions.items():
        console.print(f"  {code}  {what}")
    shown = table(["", *frame.columns], first=1)
    for name, row in frame.iterrows():
        shown.add_row(str(name), *(f"{value:.2f}" for value in row))
    show("\nLES distances", shown)
    for sentence in result.reading:
        console.print(f"- {sentence}")


@app.command(epilog=examples("unaligned distances", "unaligned distances --json"))
def distances(json: AsJSON = False) -> None:
    """List the distances: what each needs, and what it costs."""
    from .. import available

    frame = available()
    if json:
        print_json([{"name": name, **row} for name, row in frame.to_dict("index").items()])
        return
    shown = table(["name", "what it is", "needs", "works on", "cost"], first=5)
    for name, row in frame.iterrows():
        needs = [need for need in ("same features", "paired rows") if row[need]]
        needs += [f"the extra '{row['extra']}'"] if row["extra"] else []
        works = "descriptors" if row["descriptor"] else "pairs"
        shown.add_row(
            str(name), row["what"], ", ".join(needs) or "nothing shared", works, row["cost"]
        )
    show("Distances", shown)


def _experiments(incomplete: str) -> list[str]:
    from ..experiments import EXPERIMENTS

    return [name for name in EXPERIMENTS if name.startswith(incomplete)]


@app.command(
    epilog=examples(
        "unaligned reproduce tori",
        "unaligned reproduce tori --full --without gromov-wasserstein,geometry-score",
        "unaligned reproduce aligned --trials 5 --seed 1",
    )
)
def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help=f"The experiment: {EXPERIMENT_NAMES}.",
            autocompletion=_experiments,
        ),
    ],
    full: Annotated[
        bool, typer.Option("--full/--quick", help="The paper's setting, or a shorter run.")
    ] = False,
    out: Annotated[
        str | None,  # a Path of "" would be the current folder
        typer.Option(
            metavar="PATH",
            help="Folder of the results.",
            show_default="results/NAME, or NAME-full",
        ),
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
    json: AsJSON = False,
) -> None:
    """Run an experiment of the paper, and say which of its claims hold.

    Writes CSV, PNG, SVG and RESULTS.md. A run that was stopped goes on where it stopped when the
    same command is given again.
    """
    from .. import experiments
    from ..experiments.run import reproduce as run

    cls = experiments.find(name)
    settings: dict[str, Any] = dict(cls.full if full else cls.quick, seed=seed)
    if trials is not None:
        settings["n_trials"] = trials
    folder = Path("results") / (f"{name}-full" if full else name) if out is None else out
    with going_on("Every finished trial is kept: the same command goes on from there."):
        report = run(cls(**settings), folder, only=_words(only), without=_words(without) or ())
    if json:
        claims = [{**asdict(claim), "verdict": claim.verdict} for claim in report.claims]
        print_json({"title": cls.title, "claims": claims, "files": report.files})
        return
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
    shown = table(["source", "expected", "measured", "verdict"], first=4)
    for claim in claims:
        verdict = Text(claim.verdict, style=colours[claim.verdict])
        shown.add_row(claim.source, claim.expected, claim.measured, verdict)
    shown.width = min(out().width, _WIDEST)
    show(title, shown)
