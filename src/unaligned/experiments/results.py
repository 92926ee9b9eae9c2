"""From the measurements of an experiment to its files: CSV, figure and RESULTS.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .. import figures
from ..data.atomic import write_text
from .base import Claim, Experiment, summary

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Report:
    """What a run found, and the files that say so."""

    experiment: Experiment
    table: pd.DataFrame
    claims: tuple[Claim, ...]
    files: tuple[Path, ...]


def publish(experiment: Experiment, table: pd.DataFrame, folder: Path) -> Report:
    """Write the summary, the figure and RESULTS.md."""
    import pandas as pd

    claims = tuple(experiment.claims(table))
    path = folder / experiment.name
    csv, png, svg = (path.with_suffix(suffix) for suffix in (".csv", ".png", ".svg"))
    means = {name: summary(table, experiment.variable, name) for name in experiment.quantities}
    together = pd.concat([frame.assign(quantity=name) for name, frame in means.items()])
    write_text(csv, together.to_csv(index=False))
    figure = experiment.draw(table)
    figures.save(figure, png)
    figures.save(figure, svg)
    results = folder / "RESULTS.md"
    write_text(results, _results(experiment, claims, experiment.notes(table), means))
    return Report(experiment, table, claims, (csv, png, svg, results, folder / "trials.csv"))


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table.

    Examples
    --------
    >>> markdown_table(["a", "b"], [["1", "2"]])
    ['| a | b |', '|---|---|', '| 1 | 2 |']
    """
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    return [lines[0], "|" + "---|" * len(head), *lines[1:]]


def _results(
    experiment: Experiment,
    claims: Sequence[Claim],
    notes: Sequence[str],
    means: dict[str, pd.DataFrame],
) -> str:
    counted = [claim.passed for claim in claims if claim.passed is not None]
    told = ", ".join(f"{key} = {value}" for key, value in experiment.settings().items())
    methods = list(means[experiment.quantities[0]]["method"].unique())
    lines = [
        f"# {experiment.title}",
        "",
        f"Made by `{_command(experiment, methods)}`. Settings: {told}, "
        f"n_trials = {experiment.n_trials}.",
        "",
        f"{sum(counted)} of {len(counted)} claims hold in this run.",
        "",
        *markdown_table(
            ["source", "expected", "measured in this run", "verdict"],
            [[c.source, c.expected, c.measured, c.verdict] for c in claims],
        ),
        "",
        f"![{experiment.title}]({experiment.name}.png)",
        "",
        *(line for note in notes for line in (note, "")),
    ]
    for quantity, frame in means.items() if experiment.tabulated else ():
        lines += [f"{_told_mean(experiment.n_trials)}, {quantity}:", ""]
        lines += [*_mean_table(frame, experiment.variable), ""]
    return "\n".join(lines)


def _command(experiment: Experiment, methods: Sequence[str]) -> str:
    """Return the command that makes these results."""
    same = {"n_trials": experiment.n_trials, "seed": experiment.seed}
    modes = {"full": experiment.full, "quick": experiment.quick}
    chosen = [
        name for name, mode in modes.items() if type(experiment)(**{**mode, **same}) == experiment
    ]
    parts = ["unaligned reproduce", experiment.name]
    parts += [f"--{chosen[0]}"] if chosen else []
    parts += [f"--trials {experiment.n_trials}", f"--seed {experiment.seed}"]
    if len(methods) < len(experiment.methods):
        parts.append(f"--only {','.join(methods)}")
    return " ".join(parts)


def _told_mean(n_trials: int) -> str:
    """Return what the numbers of the tables are; docs/refresh.py looks for the first word."""
    if n_trials == 1:
        return "Mean over 1 trial"
    return f"Mean ± standard deviation over {n_trials} trials"


def _mean_table(means: pd.DataFrame, variable: str) -> list[str]:
    values = sorted(means[variable].unique())
    head = ["method", "pair", *(f"{variable} = {value:g}" for value in values)]
    rows = []
    for (method, pair), frame in means.groupby(["method", "pair"], sort=False):
        cells = {
            value: _told(mean, std)
            for value, mean, std in zip(frame[variable], frame["mean"], frame["std"], strict=True)
        }
        rows.append([str(method), f"d({pair})", *(cells.get(value, "") for value in values)])
    return markdown_table(head, rows)


def _told(mean: float, std: float) -> str:
    """Return a mean and its spread; one trial has none, and what was not measured neither."""
    if math.isnan(mean):
        return ""
    return f"{mean:.3g}" if math.isnan(std) else f"{mean:.3g} ± {std:.2g}"
