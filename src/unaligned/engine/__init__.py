"""Where work runs: threads, processes, or a Dask cluster."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from typing import Any, TypeAlias, TypeVar

from ..errors import InputError, InputTypeError
from .base import CURRENT, Progress, advancing
from .base import Engine as Engine
from .base import Task as Task
from .base import check_stop as check_stop
from .base import interruptible as interruptible
from .blas import available_cores as available_cores
from .blas import blas_libraries as blas_libraries
from .blas import limited_blas as limited_blas
from .blas import one_blas as one_blas
from .blas import resolve_jobs as resolve_jobs
from .threads import Threads as Threads

EngineLike: TypeAlias = Any  # None, "processes", a dask.distributed.Client, an address

Item = TypeVar("Item")
Result = TypeVar("Result")


@contextmanager
def resolve_engine(
    engine: EngineLike = None, n_jobs: int | None = None, progress: bool | None = None
) -> Iterator[Engine]:
    """Yield the engine that the arguments of `compare` describe, and close it afterwards.

    A client given by the user stays open. One Ctrl-C ends the block (see `interruptible`).
    """
    opened = _open(engine, n_jobs, Progress(progress))
    try:
        with interruptible():
            yield opened
    finally:
        opened.close()


def _open(engine: EngineLike, n_jobs: int | None, progress: Progress) -> Engine:
    jobs = resolve_jobs(n_jobs)
    if engine is None:
        return Threads(jobs, progress)
    if isinstance(engine, str) and engine == "processes":
        from .processes import Processes

        return Processes(available_cores() if n_jobs is None else jobs, progress)
    is_address = isinstance(engine, str) and ":" in engine
    # Tells a Dask client without importing Dask.
    classes = [(c.__module__.partition(".")[0], c.__name__) for c in type(engine).__mro__]
    if not is_address and ("distributed", "Client") not in classes:
        kind = InputError if isinstance(engine, str) else InputTypeError
        raise kind(
            f"engine={engine!r} must be None (threads), 'processes', a dask.distributed.Client, "
            "or the address of a Dask scheduler such as 'tcp://10.0.0.1:8786'."
        )
    if n_jobs is not None:
        raise InputError(
            f"n_jobs={n_jobs} has no effect on a Dask cluster, whose number of workers is fixed. "
            "Leave n_jobs out."
        )
    from .dask import Cluster

    return Cluster(engine, progress)


def run(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    n_jobs: int | None = None,
    progress: bool | None = None,
    description: str = "",
) -> list[Result]:
    """Return `[function(item) for item in items]`, computed on `n_jobs` threads."""
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
    """Return the results of `engine.map` as a list, with a bar unless there are no items."""
    if not items:
        return []
    with (
        engine.progress.task(description, len(items), unit=unit) as advance,
        closing(engine.map(function, items, shared=shared)) as results,  # type: ignore[type-var]
    ):
        return list(advancing(results, advance))


def steps(items: Iterable[Item], total: int, description: str) -> Iterator[Item]:
    """Yield the items, checking for Ctrl-C, with a bar if the task around has one."""
    progress = CURRENT.get()
    hidden = nullcontext(Task(description, total))
    bar = hidden if progress is None else progress.task(description, total, unit=description)
    with bar as advance:
        for item in items:
            check_stop()
            yield item
            advance()
