"""Options that several commands share, and what they mean in Python."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from ..defaults import STREAM_ROWS
from ..errors import FileError, InputError
from .output import complain

if TYPE_CHECKING:
    from ..cache import Cache
    from ..data.dataset import Dataset

SOLVERS = ("auto", "exact", "krylov", "landmarks", "nystrom")
_signature = partial(typer.Option, rich_help_panel="Signature")
_run = partial(typer.Option, rich_help_panel="Run")
_JOB_BYTES = 24  # per pair of rows: the affinity and what solvers need beside it


def _solvers(incomplete: str) -> list[str]:
    return [name for name in SOLVERS if name.startswith(incomplete)]


Files: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        show_default=False,
        help="Data files; `file.npz:key` takes one array of several, a folder all files in it, "
        "`months/*.csv` those that match.",
    ),
]
AsJSON: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
StorePath: TypeAlias = Annotated[
    Path, typer.Option("--store", help="The store: one SQLite file.", show_default=False)
]
Tags: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="KEY=VALUE", help="A tag; may be given several times."),
]
CacheFolder: TypeAlias = Annotated[
    Path | None,
    _run(
        "--cache",
        envvar="UNALIGNED_CACHE",
        help="Folder where finished signatures are kept.",
        show_default="your platform's, such as ~/.cache/unaligned",
    ),
]


@dataclass(frozen=True)
class Making:
    """How datasets become signatures; None leaves it to the default."""

    n_eigenvalues: Annotated[
        int | None,
        _signature(
            "--n-eigenvalues",
            "-K",
            min=1,
            help="Values of a signature.",
            show_default="min(200, the smallest number of rows)",
        ),
    ] = None
    gamma: Annotated[
        str | None,
        _signature(help="What counts as noise: a number, or `auto`.", show_default="1e-8"),
    ] = None
    solver: Annotated[
        str | None,
        _signature(
            help=f"One of {', '.join(SOLVERS)}.", show_default="auto", autocompletion=_solvers
        ),
    ] = None
    tol: Annotated[
        float | None,
        _signature(help="The wanted error of a signature.", show_default="1e-4"),
    ] = None
    bandwidth: Annotated[
        str | None,
        _signature(
            help="The kernel's scale: `median`, `mean` or a number.", show_default="median"
        ),
    ] = None
    metric: Annotated[
        str | None,
        _signature(help="A metric of scikit-learn.", show_default="euclidean"),
    ] = None
    n_neighbors: Annotated[
        int | None,
        _signature(min=2, help="Keep only the nearest neighbours."),
    ] = None
    robust: Annotated[
        bool,
        _signature("--robust", help="Set gross outliers aside."),
    ] = False

    def given(self) -> dict[str, Any]:
        """Return the options that were given, as Python takes them."""
        names = ("n_eigenvalues", "solver", "tol", "metric", "n_neighbors")
        found: dict[str, Any] = {name: getattr(self, name) for name in names}
        found["gamma"] = _number_or_word("gamma", self.gamma, "auto")
        found["bandwidth"] = _number_or_word("bandwidth", self.bandwidth, "median", "mean")
        found["robust"] = self.robust or None
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True)
class Running:
    """How the work is done."""

    seed: Annotated[
        int | None,
        _run(min=0, help="Seed of what is random.", show_default="0"),
    ] = None
    jobs: Annotated[
        int | None,
        _run(
            "--jobs",
            "-j",
            help="Datasets at a time; -1: one for each core.",
            show_default="what cores and memory allow",
        ),
    ] = None

    def n_jobs(self, datasets: Iterable[Dataset]) -> int:
        """Return how many datasets are worked on at a time.

        One on each core is quicker than all cores on one, as long as the matrices of all fit
        into half of the memory.
        """
        from ..engine import available_cores, resolve_jobs
        from ..engine.memory import available_memory

        if self.jobs is not None:
            return resolve_jobs(self.jobs)
        largest = max((dataset.n_samples for dataset in datasets), default=1)
        fitting = available_memory() // 2 // (_JOB_BYTES * min(largest, STREAM_ROWS) ** 2)
        return max(1, min(available_cores(), fitting))


@dataclass(frozen=True)
class Caching:
    """Where finished signatures are kept."""

    cache: CacheFolder = None
    no_cache: Annotated[bool, _run("--no-cache", help="Keep nothing.")] = False

    def opened(self) -> Cache | None:
        """Return the cache, or None; the default one is left out where it cannot be made."""
        if self.no_cache:
            return None
        found = cache_in(self.cache)
        try:
            found.make()
        except FileError as error:
            if self.cache is not None:
                raise
            complain("Warning", f"nothing is kept. {error}")
            return None
        return found


def cache_in(folder: Path | None) -> Cache:
    """Return the cache in a folder, or in the usual one."""
    from ..cache import Cache

    return Cache() if folder is None else Cache(folder)


def pairs(option: str, texts: Iterable[str] | None) -> dict[str, str]:
    """Return what KEY=VALUE options say.

    >>> pairs("--tag", ["organ=liver"])
    {'organ': 'liver'}
    """
    found = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise InputError(f"{option} {text!r} must be KEY=VALUE, such as organ=liver.")
        found[key] = value
    return found


def literals(option: str, texts: Iterable[str] | None) -> dict[str, Any]:
    """Return what KEY=VALUE options say, with numbers and true, false, null as such."""
    return {key: literal(value) for key, value in pairs(option, texts).items()}


def literal(text: str) -> Any:
    """Return a number, true, false or null as such, and other text as it is.

    >>> literal("2.5"), literal("true"), literal("liver")
    (2.5, True, 'liver')
    """
    try:
        return json.loads(text)
    except ValueError:
        return text


def subsample_size(text: str | None) -> int | str | None:
    """Return a number of rows, `common`, or None."""
    return int(text) if text is not None and text.isdigit() else text


def _number_or_word(option: str, text: str | None, *words: str) -> str | float | None:
    if text is None or text in words:
        return text
    try:
        return float(text)
    except ValueError:
        raise InputError(
            f"{option}={text!r} must be a number or {' or '.join(map(repr, words))}."
        ) from None
