"""Engine: one function over many items, in order, wherever the work runs."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import closing
from typing import Any, ClassVar, TypeVar

from ..errors import InputError, Note, collected, repeat
from .progress import Progress

Result = TypeVar("Result")
Job = Callable[[Any, Any], Result]  # of what all share, and of one item


class Engine(ABC):
    """Where work runs.

    A job is a function of two arguments: what all jobs share, and one item. To where the work is
    the first is sent once per worker, the second with its job.

    Attributes
    ----------
    n_workers
        How many jobs run at a time.
    remote
        Whether jobs run outside of this process, so that what they need must be sent.
    progress
        Where to tell how far the work has come.
    """

    remote: ClassVar[bool] = False

    def __init__(self, n_workers: int, progress: Progress | None = None) -> None:
        self.n_workers = n_workers
        self.progress = Progress(False) if progress is None else progress

    @abstractmethod
    def map(
        self, function: Job[Result], items: Iterable[Any], *, shared: Any = None
    ) -> Iterator[Result]:
        """Yield `function(shared, item)` of each item, in order.

        Items are taken only a little ahead of what is yielded, so they may hold data. What
        is under way is given up when the iterator is closed.
        """

    def reduce(
        self,
        function: Job[Result],
        items: Iterable[Any],
        combine: Callable[[Result, Result], Result],
        *,
        shared: Any = None,
        advance: Callable[[], object] | None = None,
    ) -> Result:
        """Return the results of `map` combined to one, where the work is if that is elsewhere.

        Parameters
        ----------
        combine
            Takes two results, may change the first, and returns their sum; must not mind which
            neighbours are combined first.
        advance
            Called once per item that is done.
        """
        with closing(self.map(function, items, shared=shared)) as results:  # type: ignore[type-var]
            return functools.reduce(combine, told(results, advance))

    def close(self) -> None:
        """Give back what was opened."""
        self.progress.close()


def told(results: Iterable[Result], advance: Callable[[], object] | None) -> Iterator[Result]:
    """Yield the results, saying so after each."""
    for result in results:
        if advance is not None:
            advance()
        yield result


def noted(function: Job[Result], shared: Any, item: Any) -> tuple[Result, list[Note]]:
    """Return a result with what was warned of on the way, to be repeated where users see it."""
    with collected() as notes:
        return function(shared, item), notes


def heard(results: Iterable[tuple[Result, list[Note]]]) -> Iterator[Result]:
    """Yield the results, repeating each warning that came with them once."""
    before: set[Note] = set()
    for result, notes in results:
        repeat(notes, before)
        yield result


def unsendable(engine: str, error: BaseException) -> InputError:
    """Return the error of data or settings that cannot be sent to where an engine works."""
    lines = [line for line in str(error.__cause__ or error).splitlines() if line.strip(' "')]
    return InputError(
        f"{engine} sends data and settings to other processes, and something cannot be sent: "
        f"{lines[-1]}. Open files and generators cannot: give a path or an array, or leave engine "
        "out for threads."
    )


def in_order(
    submit: Callable[[Any], Any],
    items: Iterable[Any],
    room: Callable[[], int],
    wait: Callable[..., Any] = wait,
) -> Iterator[Any]:
    """Yield the future that `submit` returns for each item, done, in order.

    Up to `room()` are begun ahead. One of them that fails is yielded at once, out of order: what
    comes before it is of no use any more, and may take long. `wait` is that of the futures' kind.
    """
    ahead: deque[Any] = deque()
    for item in items:
        ahead.append(submit(item))
        while len(ahead) >= room():
            yield _next(ahead, wait)
    while ahead:
        yield _next(ahead, wait)


def _next(ahead: deque[Any], wait: Callable[..., Any]) -> Any:
    """Take the first future as soon as it is done, or before that one that has failed."""
    first = ahead[0]
    while not first.done():
        later = [future for future in ahead if future is not first]
        for future in later:
            if future.done() and future.exception() is not None:
                return future
        running = [future for future in later if not future.done()]
        wait([first, *running], return_when=FIRST_COMPLETED)
    return ahead.popleft()
