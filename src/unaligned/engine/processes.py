"""Processes of this machine: for work that holds Python's lock."""

from __future__ import annotations

import os
import pickle
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, ClassVar

from ..errors import EngineError, Note
from .base import Engine, Job, Result, heard, in_order, noted, unsendable
from .blas import available_cores


class Processes(Engine):
    """Jobs in processes of their own, each with its share of the BLAS threads.

    The processes are joblib's (loky): functions of any kind can be sent, scripts need no
    `if __name__ == "__main__"`, and the processes are kept for the next call. An error or Ctrl-C
    ends them. What jobs share goes through a file that each process reads once.

    Examples
    --------
    >>> list(Processes(2).map(pow, [1, 2, 3], shared=2))
    [2, 4, 8]
    """

    remote: ClassVar[bool] = True

    def map(
        self, function: Job[Result], items: Iterable[Any], *, shared: Any = None
    ) -> Iterator[Result]:
        """Yield `function(shared, item)` of each item, in order."""
        return heard(self._results(function, items, shared))

    def _results(self, function: Job[Result], items: Iterable[Any], shared: Any) -> Iterator[Any]:
        from joblib.externals.loky import get_reusable_executor

        pool = get_reusable_executor(self.n_workers)
        n_threads = max(1, available_cores() // self.n_workers)
        sent: deque[Any] = deque(maxlen=2 * self.n_workers)
        with _said(), _file((function, shared)) as path:

            def submit(item: Any) -> Any:
                sent.append(pool.submit(_job, path, n_threads, item))
                return sent[-1]

            try:
                for future in in_order(submit, items, lambda: 2 * self.n_workers):
                    yield future.result()
            except BaseException:
                _wait_until_taken(sent)
                pool.shutdown(wait=False, kill_workers=True)
                raise


def _wait_until_taken(futures: Iterable[Any], patience: float = 1.0) -> None:
    """Wait until the pool has taken what it was given.

    loky 3.6 stumbles over work that it has not looked at when it is told to end its processes.
    """
    until = time.monotonic() + patience
    for future in futures:
        while not (future.running() or future.done()) and time.monotonic() < until:
            time.sleep(0.001)


def _job(path: str, n_threads: int, item: Any) -> tuple[Any, list[Note]]:
    """Return what `noted` does. Runs in a process of the pool."""
    function, shared = _read(path)
    _limit_blas(n_threads)
    return noted(function, shared, item)


@lru_cache(maxsize=1)
def _read(path: str) -> Any:
    return pickle.loads(Path(path).read_bytes())


@cache
def _limit_blas(n_threads: int) -> None:
    from threadpoolctl import threadpool_limits

    threadpool_limits(limits=n_threads)


@contextmanager
def _file(shared: Any) -> Iterator[str]:
    """Give a file that holds what all jobs share, for as long as they may need it."""
    from joblib.externals.loky.backend.reduction import dumps

    content = dumps(shared)
    handle, path = tempfile.mkstemp(prefix="unaligned-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        yield path
    finally:
        Path(path).unlink()


@contextmanager
def _said() -> Iterator[None]:
    """Say what happened to processes, and to what was sent to them, in words."""
    try:
        yield
    except BrokenProcessPool as error:
        raise EngineError(
            "A worker process ended unexpectedly, most often because memory ran out. Use fewer "
            "with n_jobs=."
        ) from error
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        if "pickle" not in f"{error}".lower():
            raise
        raise unsendable("engine='processes'", error) from error
