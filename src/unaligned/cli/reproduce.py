"""`unaligned reproduce`."""

from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError
from .app import command, resumable
from .options import AsJSON, completing, literal, option, pairs, words
from .printing import print_json, print_table, stdout, table

# Written out, so that `--help` need not import the experiments; a test compares the two.
EXPERIMENTS = ("tori", "scaling", "topology", "aligned", "sensitivity", "tasks", "layers", "cells")
_complete = completing(EXPERIMENTS)


@command(
    "unaligned reproduce tori",
    "unaligned reproduce tori --full --without gromov-wasserstein,geometry-score",
    "unaligned reproduce aligned --trials 5 --seed 1",
    "unaligned reproduce tasks --full --set embedder=conv4",
    "unaligned reproduce cells --data reprogramming.h5ad",
)
def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help=f"The experiment: {', '.join(EXPERIMENTS)}.", autocompletion=_complete
        ),
    ],
    full: Annotated[
        bool, option("The paper's setting, or a shorter run.", True, "--full/--quick")
    ] = False,
    # Not a Path, since Path("") is the current folder.
    out: Annotated[
        str | None, option("Output folder.", "results/NAME or results/NAME-full", metavar="PATH")
    ] = None,
    trials: Annotated[int | None, option("Number of trials.", "by --full", min=1)] = None,
    seed: Annotated[int, option("Random seed.", True, min=0)] = 0,
    only: Annotated[str | None, option("Run these methods only: `les,imd`.")] = None,
    without: Annotated[str | None, option("Methods to leave out: `imd`.")] = None,
    changes: Annotated[
        list[str] | None,
        option("Change a setting. May be repeated.", False, "--set", metavar="NAME=VALUE"),
    ] = None,
    train: Annotated[
        bool, option("Train the paper's networks too (layers): hours without a GPU.")
    ] = False,
    data: Annotated[
        str | None, option("For `cells`: an AnnData file with `day` in obs.", metavar="FILE")
    ] = None,
    json: AsJSON = False,
) -> None:
    """Run an experiment of the paper and check which of its claims hold.

    Writes CSV, PNG, SVG and RESULTS.md. An interrupted run continues when the same command is
    given again.
    """
    from rich.text import Text

    from .. import _check, experiments
    from ..experiments.reproduction import reproduce as run

    cls = experiments.find(name)
    settings: dict[str, Any] = dict(cls.full if full else cls.quick, seed=seed)
    settings |= _settings(cls, pairs("--set", changes))
    if trials is not None:
        settings["n_trials"] = trials
    own: dict[str, Any] = {"train": True} if train else {}
    own |= {} if data is None else {"data": data}
    _check.known_options(f"experiment {name!r}", own, [field.name for field in fields(cls)])
    settings |= own
    folder = Path("results") / (f"{name}-full" if full else name) if out is None else out
    with resumable("Finished trials are kept: run the same command to continue."):
        report = run(cls(**settings), folder, only=words(only), without=words(without) or ())
    if json:
        claims = [{**asdict(claim), "verdict": claim.verdict} for claim in report.claims]
        print_json({"title": cls.title, "claims": claims, "files": report.files})
        return
    colours = {"pass": "green", "FAIL": "red", "observed": "cyan"}
    rows = table(["source", "expected", "measured", "verdict"], n_text=4)
    for claim in report.claims:
        verdict = Text(claim.verdict, style=colours[claim.verdict])
        rows.add_row(claim.source, claim.expected, claim.measured, verdict)
    rows.width = min(stdout().width, 120)  # wrap sentences in pipes and files too
    print_table(cls.title, rows)
    typer.echo("Written:")
    for path in report.files:
        typer.echo(f"  {path}")


def _settings(cls: Any, texts: dict[str, str]) -> dict[str, Any]:
    """Return the values of `--set NAME=VALUE`; lists are written with commas."""
    from .. import _check

    defaults = {field.name: field.default for field in fields(cls)}
    _check.known_options(f"experiment {cls.name!r}", texts, defaults)
    found: dict[str, Any] = {}
    for name, text in texts.items():
        default = defaults[name]
        items = [literal(word) for word in words(text) or ()]
        model = default[0] if isinstance(default, tuple) else default
        if isinstance(model, (int, float)) and not all(isinstance(i, (int, float)) for i in items):
            raise InputError(f"--set {name}={text!r} must be a number, as {name}={model} is.")
        if not items or (len(items) > 1 and not isinstance(default, tuple)):
            raise InputError(f"--set {name}={text!r} must be one value.")
        found[name] = tuple(items) if isinstance(default, tuple) else items[0]
    return found
