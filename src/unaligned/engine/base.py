"""Engine: one function over many items, in order, with progress bars, ended by one Ctrl-C."""

from __future__ import annotations

import functools
import signal
import sys
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from contextvars import ContextVar
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

from .._format import duration
from ..errors import InputError, InputTypeError, Note, collected, repeat
from .blas import available_cores, resolve_jobs

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

EngineLike: TypeAlias = Any  # None, "processes", a dask.distributed.Client, an address

Item = TypeVar("Item")
Result = TypeVar("Result")
Job = Callable[[Any, Any], Result]  # of the shared value and one item

# The progress of the task that this thread works on, for the loops inside of it.
CURRENT: ContextVar[Progress | None] = ContextVar("progress", default=None)


class StopFlag:
    """Ends a run once it is set; a `threading.Event` set by a signal handler can deadlock."""

    is_set = False


# The flag of the run that this thread works for.
_STOP: ContextVar[StopFlag | None] = ContextVar("stop", default=None)


def check_stop() -> None:
    """Raise KeyboardInterrupt if the run was stopped; called between tiles and datasets."""
    flag = _STOP.get()
    if flag is not None and flag.is_set:
        raise KeyboardInterrupt


@contextmanager
def stopped_by(flag: StopFlag) -> Iterator[None]:
    """Let `check_stop` read this flag in the block."""
    token = _STOP.set(flag)
    try:
        yield
    finally:
        _STOP.reset(token)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let one Ctrl-C end the block, even if its KeyboardInterrupt is swallowed.

    Python drops exceptions raised in ctypes callbacks (Numba's compiler has some), so the handler
    installed here also sets a flag for the next `check_stop`. A user's own handler stays.
    """
    in_main = threading.current_thread() is threading.main_thread()
    usual = signal.default_int_handler
    if _STOP.get() is not None or not in_main or signal.getsignal(signal.SIGINT) is not usual:
        yield
        return
    flag = StopFlag()

    def stop(number: int, frame: Any) -> None:
        flag.is_set = True
        usual(number, frame)

    try:
        signal.signal(signal.SIGINT, stop)
        with stopped_by(flag):
            yield
            check_stop()
    finally:
        signal.signal(signal.SIGINT, usual)


class Task:
    """A counter of finished steps, with a bar if it is shown; call it to advance.

    Where the bars go to a file, a line per tenth of a task is written.
    """

    def __init__(self, description: str, total: int, bars: RichProgress | None = None) -> None:
        self.done, self._lock, self._bars = 0, threading.Lock(), bars
        self._description, self._total = description, total
        self._row: Any = None if bars is None else bars.add_task(description, total=total)

    def __call__(self, amount: int = 1) -> None:
        """Add to the number of finished steps; thread-safe."""
        with self._lock:
            before, self.done = self.done, self.done + amount
        if self._bars is not None:
            self._bars.update(self._row, completed=self.done)
            tenths = (10 * min(done, self._total) // self._total for done in (before, self.done))
            if not self._bars.console.is_terminal and len(set(tenths)) > 1:
                left = self._bars.tasks[self._bars.task_ids.index(self._row)].time_remaining
                rest = f", about {duration(left)} left" if left else ""
                self._bars.print(f"{self._description}: {self.done} of {self._total}{rest}")

    def hide(self) -> None:
        """Remove the bar."""
        if self._bars is not None:
            self._bars.remove_task(self._row)


class Progress:
    """Bars on stderr, one per task; None shows them on a terminal, for tasks of several steps."""

    def __init__(self, wanted: bool | None = None) -> None:
        if wanted is not None and not isinstance(wanted, bool):
            raise InputTypeError(f"progress={wanted!r} must be True, False or None.")
        self.wanted, self._n_tasks = wanted, 0
        self._lock = threading.Lock()
        self._bars: RichProgress | None = None

    @contextmanager
    def task(self, description: str, total: int, *, unit: str = "") -> Iterator[Task]:
        """Show the progress of a task; the message of Ctrl-C says how much is done."""
        visible = self.wanted if self.wanted is not None else total > 1 and sys.stderr.isatty()
        task = Task(description, total, self._display() if visible else None)
        with self._lock:
            self._n_tasks += 1
        token = None if CURRENT.get() is self else CURRENT.set(self)
        try:
            yield task
        except KeyboardInterrupt as error:
            if total == 1 and error.args:  # the message of a task inside of this one
                raise
            done = f"{task.done} of {total} {unit}".rstrip()
            message = f"Stopped by Ctrl-C during {description}: {done} done."
            raise KeyboardInterrupt(message) from None
        finally:
            if token is not None:
                CURRENT.reset(token)
            with self._lock:
                self._n_tasks -= 1
            if self._n_tasks:  # part of another task
                task.hide()

    def close(self) -> None:
        """Remove all bars."""
        with self._lock:
            if self._bars is not None:
                self._bars.stop()
            self._bars = None

    def _display(self) -> RichProgress:
        """Return the display, started with the first bar: there can be only one at a time."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        with self._lock:
            if self._bars is None:
                columns: list[Any] = ["{task.description}", BarColumn(), MofNCompleteColumn()]
                # In a notebook rich needs ipywidgets; without it, text.
                widgets = None if find_spec("ipywidgets") else False
                console = Console(stderr=True, force_jupyter=widgets)
                self._bars = RichProgress(*columns, TimeRemainingColumn(), console=console)
                self._bars.start()
            return self._bars


class Engine(ABC):
    """Where work runs, `n_workers` jobs at a time.

    A job is a function of two arguments: a value that all jobs share, sent once per worker, and
    one item, sent with its job.

    Parameters
    ----------
    n_workers
        The number of jobs at a time.
    progress
        What shows bars; None shows none.
    """

    remote: ClassVar[bool] = False  # whether jobs run outside of this process

    def __init__(self, n_workers: int, progress: Progress | None = None) -> None:
        self.n_workers = n_workers
        self.progress = Progress(False) if progress is None else progress

    def map(
        self, function: Job[Result], items: Iterable[Any], *, shared: Any = None
    ) -> Iterator[Result]:
        """Yield `function(shared, item)` for each item, in order.

        Items are consumed only a little ahead of the results, so they may hold data. Closing the
        iterator cancels unfinished jobs. Each distinct warning of the jobs is issued once.

        Parameters
        ----------
        function
            Takes `shared` and one item.
        items
            What differs between jobs.
        shared
            What all jobs have in common.

        Yields
        ------
        Result
            What the function returns.
        """
        issued: set[Note] = set()
        with closing(self._results(function, items, shared)) as results:
            for result, warnings in results:
                repeat(warnings, issued)
                yield result
                check_stop()

    @abstractmethod
    def _results(
        self, function: Job[Result], items: Iterable[Any], shared: Any
    ) -> Generator[tuple[Result, list[Note]]]:
        """Yield each result with the warnings issued on the way, in order."""

    def reduce(
        self,
        function: Job[Result],
        items: Iterable[Any],
        combine: Callable[[Result, Result], Result],
        *,
        shared: Any,
        advance: Callable[[], object],
    ) -> Result:
        """Return the results of `map` combined into one, on the workers if they are remote.

        `combine` is associative and may modify its first argument; `advance` is called once per
        finished item.

        Parameters
        ----------
        function, items
            As for `map`.
        combine
            Takes two results.
        shared
            As for `map`.
        advance
            Takes nothing.

        Returns
        -------
        Result
            Of all items; there must be one at least.
        """
        with closing(self.map(function, items, shared=shared)) as results:  # type: ignore[type-var]
            return functools.reduce(combine, advancing(results, advance))

    def close(self) -> None:
        """Release what was opened."""
        self.progress.close()


def advancing(results: Iterable[Result], advance: Callable[[], object]) -> Iterator[Result]:
    """Yield the results, calling `advance` for each."""
    for result in results:
        advance()
        yield result


def with_warnings(function: Job[Result], shared: Any, item: Any) -> tuple[Result, list[Note]]:
    """Return a result and the warnings issued on the way; runs on a worker."""
    with collected() as warnings:
        return function(shared, item), warnings


def pickling_error(engine: str, error: BaseException) -> InputError:
    """Return the error for data or settings that cannot be pickled."""
    lines = [line for line in str(error.__cause__ or error).splitlines() if line.strip(' "')]
    return InputError(
        f"{engine} sends data and settings to other processes, but an object cannot be pickled: "
        f"{lines[-1]}. Pass a path or an array instead of an open file or a generator, or leave "
        "engine out to use threads."
    )


def in_order(
    submit: Callable[[Any], Any],
    items: Iterable[Any],
    limit: Callable[[], int],
    wait: Callable[..., Any] = wait,
) -> Iterator[Any]:
    """Yield the finished future that `submit` returns for each item, in order.

    At most `limit()` are pending at a time. A failed future is yielded at once, out of order,
    because the results before it are of no use any more. `wait` is that of the futures' kind.
    """
    pending: deque[Any] = deque()

    def next_one() -> Any:
        while not pending[0].done():
            for future in pending:
                if future.done() and future.exception() is not None:
                    return future
            wait([f for f in pending if not f.done()], return_when=FIRST_COMPLETED)
        return pending.popleft()

    for item in items:
        pending.append(submit(item))
        while len(pending) >= limit():
            yield next_one()
    while pending:
        yield next_one()


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
        from .threads import Threads

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


def subtask(description: str, total: int) -> AbstractContextManager[Task]:
    """Return a task with a bar if the task around has one."""
    progress = CURRENT.get()
    if progress is None:
        return nullcontext(Task(description, total))
    return progress.task(description, total, unit=description)


def steps(items: Iterable[Item], total: int, description: str) -> Iterator[Item]:
    """Yield the items, checking for Ctrl-C, with a bar if the task around has one."""
    with subtask(description, total) as advance:
        for item in items:
            check_stop()
            yield item
            advance()
