"""`unaligned benchmark`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError
from .app import command, resumable
from .options import AsJSON, option, words
from .printing import print_json, print_message, print_table, table

if TYPE_CHECKING:
    from ..experiments.benchmark.jobs import Job
    from ..experiments.benchmark.methods import Method


@command(
    "unaligned benchmark --quick",
    "unaligned benchmark --jobs digits,tori --only les,imd --seeds 1",
    "unaligned benchmark --quick --distance mymodule:MyDistance",
    "unaligned benchmark --full --out results/benchmark-full",
)
def benchmark(
    full: Annotated[
        bool, option("All data, or at most 15 minutes on two cores.", True, "--full/--quick")
    ] = False,
    out: Annotated[
        str | None,
        option("Output folder.", "results/benchmark or results/benchmark-full", metavar="PATH"),
    ] = None,
    jobs: Annotated[str | None, option("Only these jobs: `layers,tori`.")] = None,
    only: Annotated[str | None, option("Only these methods: `les,imd`.")] = None,
    distance: Annotated[
        list[str] | None,
        option(
            "A distance of your own. May be repeated. Finished cells are kept: give another --out "
            "after you changed it.",
            metavar="MODULE:NAME",
        ),
    ] = None,
    job_module: Annotated[
        list[str] | None,
        option("A module with jobs of your own. May be repeated.", metavar="MODULE"),
    ] = None,
    seeds: Annotated[int, option("Number of seeds.", True, min=1)] = 3,
    limit: Annotated[
        float | None, option("CPU seconds per cell.", "10, or 600 with --full", metavar="SECONDS")
    ] = None,
    workers: Annotated[
        int | None, option("Cells at a time.", "one per core", "--workers", "-j", min=1)
    ] = None,
    show: Annotated[bool, option("List jobs and methods only.", False, "--list")] = False,
    json: AsJSON = False,
) -> None:
    """Score every distance on every job, with CPU time and memory.

    Each cell of the table runs in a process of its own. One that takes too long, lacks data or
    does not apply is reported as such. Writes CSV, PNG, SVG and RESULTS.md. An interrupted run
    continues when the same command is given again.
    """
    from .. import _check
    from ..experiments.base import require_output
    from ..experiments.benchmark import summary
    from ..experiments.benchmark.jobs import load_jobs
    from ..experiments.benchmark.methods import methods
    from ..experiments.benchmark.runner import Settings, run

    known = load_jobs(*(job_module or ()))
    chosen = list(known) if jobs is None else words(jobs) or []
    selected = [known[_check.one_of("jobs", name, known)] for name in dict.fromkeys(chosen)]
    used = methods(words(only), distance or (), full=full)
    if not selected or not used:
        raise InputError("Nothing is left to run. Name a job and a method; --list shows them.")
    if show:
        _show(known.values(), used)
        return
    require_output("benchmark")
    seconds = (600.0 if full else 10.0) if limit is None else limit
    settings = Settings(full=full, limit=_check.real_number("limit", seconds, minimum=1.0))
    folder = Path("results") / ("benchmark-full" if full else "benchmark") if out is None else out
    with resumable("Finished cells are kept: run the same command to continue."):
        cells = run(
            selected,
            used,
            folder,
            settings=settings,
            n_seeds=seeds,
            n_jobs=workers,
            modules=job_module or (),
        )
    typed = _typed(full, jobs, only, distance, job_module, seeds)
    files, means = summary.write(cells, selected, Path(folder), typed)
    if json:
        print_json({"cells": means.to_dict("records"), "files": files})
        return
    for sizes in ("equal", "unequal"):
        wide = summary.table(means, sizes)
        rows = table(["method", *wide.columns], n_text=1)
        for name, row in zip(wide.index, wide.to_numpy(), strict=True):
            rows.add_row(str(name), *map(str, row))
        print_table(f"Scores (1 is best), {sizes} sizes", rows)
    for status, number in means["status"].value_counts().items():
        print_message(f"{number} cells: {status}.")
    for line in summary.failures(cells):
        print_message(f"failed: {line}.")
    typer.echo("Written:")
    for path in files:
        typer.echo(f"  {path}")


def _typed(
    full: bool,
    jobs: str | None,
    only: str | None,
    distances: list[str] | None,
    modules: list[str] | None,
    seeds: int,
) -> str:
    """Return the command that gives these results."""
    given = [("jobs", jobs), ("only", only), ("seeds", None if seeds == 3 else str(seeds))]
    given += [("distance", text) for text in distances or ()]
    given += [("job-module", text) for text in modules or ()]
    flags = [f"--{name} '{value}'" for name, value in given if value is not None]
    return " ".join(["unaligned benchmark", "--full" if full else "--quick", *flags])


def _show(jobs: Iterable[Job], methods: Iterable[Method]) -> None:
    """Print the jobs and the methods."""
    from ..experiments.benchmark.scores import TITLES

    rows = table(["job", "question", "data", "score"], n_text=4)
    for job in jobs:
        rows.add_row(job.name, job.question, job.data, TITLES[job.score])
    print_table("Jobs", rows)
    rows = table(["method", "distance", "options"], n_text=3)
    for method in methods:
        options = ", ".join(f"{name}={value}" for name, value in method.options.items())
        rows.add_row(method.name, method.distance, options)
    print_table("Methods", rows)
