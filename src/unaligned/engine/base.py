"""Engine: one function over many items, in order, wherever the work runs."""

from __future__ import annotations

import functools
import signal
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import closing, contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar, TypeVar

from ..errors import InputError, Note, collected, repeat
from .progress import Progress

Result = TypeVar("Result")
Job = Callable[[Any, Any], Result]  # of the shared value and one item


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

    Python drops an exception raised in a ctypes callback, such as those of Numba's compiler. The
    handler installed here also sets a flag, so that the next `check_stop` raises again. A handler
    of the user's own is left alone.
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


class Engine(ABC):
    """Where work runs.

    A job is a function of two arguments: a value that all jobs share, sent once per worker, and
    one item, sent with its job.

    Attributes
    ----------
    n_workers
        Number of jobs that run at a time.
    remote
        Whether jobs run outside of this process, so that their data must be sent.
    progress
        The progress bars.
    """

    remote: ClassVar[bool] = False

    def __init__(self, n_workers: int, progress: Progress | None = None) -> None:
        self.n_workers = n_workers
        self.progress = Progress(False) if progress is None else progress

    def map(
        self, function: Job[Result], items: Iterable[Any], *, shared: Any = None
    ) -> Iterator[Result]:
        """Yield `function(shared, item)` for each item, in order.

        Items are consumed only a little ahead of the results, so they may hold data. Closing the
        iterator cancels unfinished jobs. Each distinct warning of the jobs is issued once.
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
        shared: Any = None,
        advance: Callable[[], object] | None = None,
    ) -> Result:
        """Return the results of `map` combined into one, on the workers if they are remote.

        `combine` is associative and may modify its first argument; `advance` is called once per
        finished item.
        """
        with closing(self.map(function, items, shared=shared)) as results:  # type: ignore[type-var]
            return functools.reduce(combine, advancing(results, advance))

    def close(self) -> None:
        """Release what was opened."""
        self.progress.close()


def advancing(results: Iterable[Result], advance: Callable[[], object] | None) -> Iterator[Result]:
    """Yield the results, calling `advance` for each."""
    for result in results:
        if advance is not None:
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
    for item in items:
        pending.append(submit(item))
        while len(pending) >= limit():
            yield _next(pending, wait)
    while pending:
        yield _next(pending, wait)


def _next(pending: deque[Any], wait: Callable[..., Any]) -> Any:
    """Remove and return the first future once it is done, or return a later one that failed."""
    while not pending[0].done():
        for future in pending:
            if future.done() and future.exception() is not None:
                return future
        wait([f for f in pending if not f.done()], return_when=FIRST_COMPLETED)
    return pending.popleft()
