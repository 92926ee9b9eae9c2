"""The results of the benchmark: a table, a figure of score against time, CSV and Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import figures
from ..._check import FloatArray
from ...errors import counted, listed
from ...io.archive import write_text
from ..base import markdown_table
from .jobs import Job
from .runner import SIZES, Cell
from .scores import TITLES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# How an empty cell is shown.
_SHORT = {
    "not applicable": "–",
    "missing data": "no data",
    "missing package": "no package",
    "failed": "failed",
}


def means(cells: Sequence[Cell]) -> pd.DataFrame:
    """Return a row for each job, sizes and method: status, and means over the seeds."""
    import pandas as pd

    keys = ["job", "sizes", "method"]
    rows: list[dict[str, Any]] = []
    for key, group in pd.DataFrame(map(asdict, cells)).groupby(keys, sort=False):
        done = group[group["status"] == "ok"]
        worst = group[group["status"] != "ok"]
        status = "ok" if worst.empty else str(worst["status"].iloc[0])
        row = dict(zip(keys, key, strict=True)) | {"status": status, "n_seeds": len(done)}
        row |= {"score": done["score"].mean(), "score_std": done["score"].std()}
        row |= {name: done[name].mean() for name in ("seconds", "peak_mb", "p_value")}
        detail = "" if worst.empty else worst["detail"].iloc[0]
        rows.append(row | {"limit": group["limit"].max(), "detail": detail})
    return pd.DataFrame(rows)


def text_of(row: Any) -> str:
    """Return the score of a row of `means`, or why there is none."""
    if row.status == "ok":
        return f"{row.score:.2f}"
    if row.status == "over limit":
        return f">{row.limit:g} s"
    return _SHORT[row.status]


def table(summary: pd.DataFrame, sizes: str) -> pd.DataFrame:
    """Return the scores as text, methods × jobs."""
    chosen = summary[summary["sizes"] == sizes]
    chosen = chosen.assign(text=[text_of(row) for row in chosen.itertuples()])
    wide = chosen.pivot(index="method", columns="job", values="text")
    return wide.loc[chosen["method"].unique(), chosen["job"].unique()]


def draw(summary: pd.DataFrame, jobs: Sequence[Job]) -> Figure:
    """Return the figure: score against CPU time, one panel for each job."""
    from matplotlib.lines import Line2D
    from matplotlib.ticker import NullFormatter

    done = summary[(summary["status"] == "ok")]
    names = list(dict.fromkeys(done["method"]))
    others = [name for name in names if not name.startswith("les")]
    looks = {name: _look(i) for i, name in enumerate(others)}
    figure, axes = figures.panels(len(jobs), columns=4, width=3.6, height=2.9)
    for job, ax in zip(jobs, axes, strict=True):
        rows: Any = done[done["job"] == job.name].itertuples()
        for row in rows:
            colour, marker, size = looks.get(row.method, ("#d95f02", "o", 22))
            if row.method == "les":
                colour, marker, size = "black", "*", 130
            face = colour if row.sizes == "equal" else "none"
            ax.scatter(
                row.seconds,
                row.score,
                size,
                facecolors=face,
                edgecolors=colour,
                marker=marker,
                zorder=4 if row.method == "les" else 3,
            )
        ax.set_xscale("log")
        if not done.empty:
            ax.set_xlim(0.5 * done["seconds"].min(), 2.0 * done["seconds"].max())  # of all jobs
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set_title(f"{job.name}: {TITLES[job.score]}", fontsize=9)
        ax.set_ylim(min(-0.05, ax.get_ylim()[0]), 1.05)
    for ax in axes[-4:]:
        ax.set_xlabel("CPU time (s)")
    handles = [_handle("black", "*", "les"), _handle("#d95f02", "o", "les, other settings")]
    handles += [_handle(colour, marker, name) for name, (colour, marker, _) in looks.items()]
    empty = Line2D([], [], ls="", marker="o", mfc="none", mec="black", label="unequal sizes")
    figure.legend(handles=[*handles, empty], loc="outside lower center", ncols=7, fontsize=8)
    figure.suptitle("Every distance on every job: score (1 is best) against CPU time")
    return figure


def _look(i: int) -> tuple[Any, str, int]:
    from matplotlib import colormaps

    return colormaps["tab10"](i % 10), ("s", "^", "D", "v")[i // 10], 26


def _handle(colour: Any, marker: str, label: str) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], ls="", marker=marker, color=colour, label=label)


def leaders(summary: pd.DataFrame, sizes: str = "equal") -> list[tuple[str, str, str]]:
    """Return for each job its best distance, the score of LES, and the best setting of LES."""
    found = []
    chosen = summary[(summary["sizes"] == sizes) & (summary["status"] == "ok")]
    for job in summary["job"].unique():
        rows = chosen[chosen["job"] == job].set_index("method")["score"]
        ours = rows[[name for name in rows.index if name.startswith("les ")]]
        peers = rows[[name for name in rows.index if not name.startswith("les")]]
        found.append((job, *(_best(some) for some in (peers, ours))))
    return found


def _best(scores: pd.Series[float]) -> str:
    """Return the names of the best within 0.005, at most three, and their score."""
    if scores.empty:
        return "–"
    top = list(scores[scores >= scores.max() - 0.005].index)
    return f"{scores.max():.2f} {listed(top, 3)}"


def write(
    cells: Sequence[Cell], jobs: Sequence[Job], folder: Path, command: str
) -> tuple[list[Path], pd.DataFrame]:
    """Write `benchmark.csv`, `.png`, `.svg` and `RESULTS.md`; return them and the means."""
    summary = means(cells)
    paths = [folder / f"benchmark{suffix}" for suffix in (".csv", ".png", ".svg")]
    write_text(paths[0], summary.to_csv(index=False))
    figure = draw(summary, jobs)
    for path in paths[1:]:
        figures.save(figure, path)
    report = folder / "RESULTS.md"
    write_text(report, "\n\n".join(_paragraphs(summary, cells, jobs, command)) + "\n")
    return [*paths, report, folder / "cells.csv"], summary


def _paragraphs(
    summary: pd.DataFrame, cells: Sequence[Cell], jobs: Sequence[Job], command: str
) -> list[str]:
    n_seeds = 1 + max(cell.seed for cell in cells)
    head = ["job", "question", "data", "score"]
    rows = [[job.name, job.question, job.data, TITLES[job.score]] for job in jobs]
    default = summary[(summary["method"] == "les")].set_index(["job", "sizes"])
    led = []
    for job, peer, setting in leaders(summary):
        key = (job, "equal")
        les = text_of(default.loc[key]) if key in default.index else "–"
        led.append([job, peer, les, setting])
    paragraphs = [
        "# Every distance on every job",
        f"Made by `{command}`; means over {counted(n_seeds, 'seed')}, 1 is best. "
        f"{_legend(summary)}",
        markdown_table(head, rows),
        "Equal sizes: the best other distance, `les` with its defaults, and its best setting.",
        markdown_table(["job", "best other distance", "les", "best setting of les"], led),
    ]
    for sizes in SIZES:
        wide = table(summary, sizes)
        columns = ["method", *wide.columns]
        wide = wide.fillna("")
        body = [
            [f"`{name}`", *map(str, row)]
            for name, row in zip(wide.index, wide.to_numpy(), strict=True)
        ]
        paragraphs += [f"Scores, {sizes} sizes:", markdown_table(columns, body)]
    failed = failures(cells)
    if failed:
        paragraphs += ["Failed cells:", "\n".join(f"- {line}" for line in failed)]
    paragraphs += ["CPU time and peak memory, equal sizes:", _costs(summary)]
    return [*paragraphs, "![Score against CPU time](benchmark.png)"]


def failures(cells: Sequence[Cell]) -> list[str]:
    """Return a line per method and reason: what failed, why, and on how many cells."""
    reasons = Counter((cell.method, cell.detail) for cell in cells if cell.status == "failed")
    return [f"`{method}`: {why} ({counted(n, 'cell')})" for (method, why), n in reasons.items()]


def _legend(summary: pd.DataFrame) -> str:
    limit = summary["limit"].max()
    return (
        f"`–`: the distance does not apply; `>{limit:g} s`: ended after {limit:g} s of CPU time; "
        "`no data`, `no package`: what the job or the distance needs is not installed; `failed`: "
        "it raised an error, or a score does not exist, as all distances are equal."
    )


def _costs(summary: pd.DataFrame) -> str:
    """Return the median over jobs of CPU time and memory, by method."""
    done = summary[(summary["sizes"] == "equal") & (summary["status"] == "ok")]
    rows = []
    for name, group in done.groupby("method", sort=False):
        seconds: FloatArray = group["seconds"].to_numpy()
        memory = float(np.median(group["peak_mb"]))
        cells = [f"{np.median(seconds):.2g}", f"{seconds.max():.2g}", f"{memory:.3g}"]
        rows.append([f"`{name}`", str(len(group)), *cells])
    head = ["method", "jobs", "median seconds per collection", "most", "median peak, MB"]
    return markdown_table(head, rows)
