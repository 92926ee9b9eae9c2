"""`unaligned explain`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..errors import InputError
from .app import command
from .options import (
    AsJSON,
    BlockSignatureOptions,
    FileOptions,
    Files,
    RunOptions,
    completing,
    option,
    pairs,
    require_writable,
    words,
)
from .printing import issued_warnings, print_json, print_message, stdout

if TYPE_CHECKING:
    from ..explanation import Explanation, ScaleExplanation

BY = ("features", "rows", "scale")


@command(
    "unaligned explain before.npy after.npy",
    "unaligned explain halves.csv --group-by half --by features --out why.csv --plot why.png",
    "unaligned explain donors.csv --group-by condition --by rows --labels donor --repeats 2",
    "unaligned explain before.npy after.npy --by scale --report why.html",
)
def explain(
    files: Files,
    reading: FileOptions,
    signature: BlockSignatureOptions,
    run: RunOptions,
    by: Annotated[
        str,
        option(f"What is left out: {', '.join(BY)}.", True, autocompletion=completing(BY)),
    ] = "features",
    labels: Annotated[
        str | None,
        option("With --by rows: column with the group of each row.", "auto, a clustering"),
    ] = None,
    feature_group: Annotated[
        list[str] | None,
        option("Columns to leave out together. May be repeated.", False, metavar="NAME=X,Y"),
    ] = None,
    n_repeats: Annotated[
        int, option("Random partitions into blocks.", True, "--repeats", min=1)
    ] = 10,
    block_size: Annotated[
        int | None,
        option("Rows per block.", "a quarter of the smaller dataset or of its rest; up to 250"),
    ] = None,
    out: Annotated[Path | None, option("Write the table: .csv or .json.")] = None,
    plot: Annotated[Path | None, option("Draw it: .png, .svg or .pdf.")] = None,
    report: Annotated[Path | None, option("Write a report of both datasets: .html.")] = None,
    json: AsJSON = False,
) -> None:
    """Explain why two datasets differ: which features, which rows, or at which scale.

    Features and groups of rows are left out one by one, from the dataset or datasets that have
    them. A change is the distance without it minus the distance with it, beside its noise; it is
    marked where it exceeds what the largest of all reaches by noise. See `ua.explain`.
    """
    for flag, path, suffixes in (
        ("--out", out, (".csv", ".json")),
        ("--plot", plot, (".png", ".svg", ".pdf")),
        ("--report", report, (".html", ".htm")),
    ):
        if path is not None:
            require_writable(flag, path, suffixes)
    if labels is not None and by in ("features", "scale"):
        raise InputError(
            f"--labels {labels} belongs to --by rows, and --by is {by}. Leave it out."
        )
    import unaligned as ua

    column = None if labels == "auto" else labels
    datasets, found_labels = reading.load_labelled(files, "--labels", column)
    if len(datasets) != 2:
        raise InputError(
            f"explain needs two datasets, and gets {len(datasets)}: {', '.join(datasets)}. "
            "Give two files, or one that --group-by splits in two."
        )
    groups = {name: words(text) for name, text in pairs("--feature-group", feature_group).items()}
    if by == "rows" and found_labels is None:
        found_labels = "auto"
    given = signature.given()
    found = ua.explain(
        *datasets.values(),
        by=by,
        labels=found_labels,
        feature_groups=groups or None,
        n_repeats=n_repeats,
        block_size=block_size,
        rng=run.rng,
        n_jobs=run.n_jobs,
        **given,
    )
    if json:
        print_json({**found.to_dict(), "warnings": issued_warnings()})
    else:
        stdout().print(str(found))
    _write(found, out, plot)
    if report is not None:
        comparison = ua.compare(datasets, rng=run.rng, n_jobs=run.n_jobs, **given)
        typed = shlex.join(["unaligned", *sys.argv[1:]])
        comparison.report(report, explanations=[found], command=typed)
    for path in filter(None, (out, plot, report)):
        print_message(f"Written: {path}")


def _write(found: Explanation | ScaleExplanation, out: Path | None, plot: Path | None) -> None:
    """Write the table and the figure."""
    import json

    from .. import figures
    from .._format import jsonable
    from ..io.archive import write_text

    if out is not None and out.suffix.lower() == ".csv":
        write_text(out, found.to_frame().to_csv(lineterminator="\n"))
    elif out is not None:
        write_text(out, json.dumps(jsonable(found.to_dict()), indent=1) + "\n")
    if plot is not None:
        figure: Any = found.plot().get_figure(root=True)
        figures.save(figure, plot)
