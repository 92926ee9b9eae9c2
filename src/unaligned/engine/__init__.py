"""Where work runs: this process, others, or a Dask cluster.

`resolve_engine` turns what users give into an `Engine`. An engine has two verbs, `map` and
`reduce`, and tells how far it has come by its `progress`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, TypeAlias, TypeVar

from ..errors import InputError, InputTypeError
from .base import Engine as Engine
from .base import told
from .blas import available_cores as available_cores
from .blas import blas_libraries as blas_libraries
from .blas import limited_blas as limited_blas
from .blas import one_blas as one_blas
from .blas import resolve_jobs as resolve_jobs
from .dask import Cluster
from .processes import Processes as Processes
from .progress import Progress
from .progress import Task as Task
from .progress import steps as steps
from .threads import Threads as Threads

EngineLike: TypeAlias = Any  # None, "processes", a dask.distributed.Client, an address

Item = TypeVar("Item")
Result = TypeVar("Result")

_CHOICES = (
    "None (threads), 'processes', a dask.distributed.Client, or the address of a Dask "
    "scheduler such as 'tcp://10.0.0.1:8786'"
)


@contextmanager
def resolve_engine(
    engine: EngineLike = None, n_jobs: int | None = None, progress: bool | None = None
) -> Iterator[Engine]:
    """Give the engine that these describe; what is opened for it is closed again.

    Parameters
    ----------
    engine
        None for threads, `"processes"`, a `dask.distributed.Client` (it stays open), or the
        address of a Dask scheduler.
    n_jobs
        How many jobs at a time; None means 1 for threads and all cores for processes, -1 all
        cores. A cluster knows by itself.
    progress
        Show bars; None shows them only on a terminal.

    Examples
    --------
    >>> with resolve_engine(n_jobs=2) as engine:
    ...     list(engine.map(pow, [1, 2, 3], shared=2))
    [2, 4, 8]
    """
    opened = _open(engine, n_jobs, Progress(progress))
    try:
        yield opened
    finally:
        opened.close()


def _open(engine: EngineLike, n_jobs: int | None, progress: Progress) -> Engine:
    jobs = resolve_jobs(n_jobs)
    if engine is None:
        return Threads(jobs, progress)
    if isinstance(engine, str) and engine == "processes":
        return Processes(available_cores() if n_jobs is None else jobs, progress)
    address = isinstance(engine, str) and ":" in engine
    if not address and not _is_client(engine):
        kind = InputError if isinstance(engine, str) else InputTypeError
        raise kind(f"engine={engine!r} must be {_CHOICES}.")
    if n_jobs is not None:
        raise InputError(
            f"n_jobs={n_jobs} has no effect on a Dask cluster, which has as many workers as it "
            "was started with. Leave n_jobs out."
        )
    return Cluster.at(engine, progress) if address else Cluster(engine, progress)


def _is_client(engine: Any) -> bool:
    """Whether this is a Dask client; Dask is loaded only where a user has done so."""
    return any(
        cls.__module__.partition(".")[0] == "distributed" and cls.__name__ == "Client"
        for cls in type(engine).__mro__
    )


def run(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    n_jobs: int | None = None,
    progress: bool | None = None,
    description: str = "",
) -> list[Result]:
    """Return `[function(item) for item in items]`, on `n_jobs` threads.

    Examples
    --------
    >>> run(abs, [-1, -2], n_jobs=2)
    [1, 2]
    """
    with resolve_engine(None, n_jobs, progress) as engine:
        return collect(engine, lambda _, item: function(item), items, description=description)


def collect(
    engine: Engine,
    function: Callable[[Any, Item], Result],
    items: Sequence[Item],
    *,
    shared: Any = None,
    description: str = "",
    unit: str = "",
) -> list[Result]:
    """Return what `engine.map` yields as a list, with a bar; without one for no items."""
    if not items:
        return []
    with (
        engine.progress.task(description, len(items), unit=unit) as advance,
        closing(engine.map(function, items, shared=shared)) as results,  # type: ignore[type-var]
    ):
        return list(told(results, advance))
