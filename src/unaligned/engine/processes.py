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
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from ..errors import EngineError, Note
from .base import Engine, Job, Result, heard, in_order, noted, unsendable
from .blas import available_cores

# What OpenMP and the BLAS libraries ask for the number of their threads.
_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


class Processes(Engine):
    """Jobs in processes of their own, each with its share of the BLAS threads.

    The processes are joblib's (loky): functions of any kind can be sent, scripts need no
    `if __name__ == "__main__"`, and the processes are kept for the next call that wants as many.
    An error or Ctrl-C ends them. What jobs share goes through a file that each process reads once.

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

        share = max(1, available_cores() // self.n_workers)
        pool = get_reusable_executor(self.n_workers, env=_with_threads(share))
        sent: deque[Any] = deque(maxlen=2 * self.n_workers)
        with _said(), _file((function, shared)) as path:

            def submit(item: Any) -> Any:
                sent.append(pool.submit(_job, path, item))
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


def _with_threads(share: int) -> dict[str, str]:
    """Return the environment of a process whose libraries use so many threads each.

    Read by each library when it is loaded, whenever that is. Where the user allows fewer, fewer.
    """

    def allowed(name: str) -> int:
        given = os.environ.get(name, os.environ.get("OMP_NUM_THREADS", ""))
        return min(int(given), share) if given.isdigit() else share

    return {name: str(max(1, allowed(name))) for name in _THREADS}


def _job(path: str, item: Any) -> tuple[Any, list[Note]]:
    """Return what `noted` does. Runs in a process of the pool."""
    function, shared = _read(path)
    return noted(function, shared, item)


@lru_cache(maxsize=1)
def _read(path: str) -> Any:
    return pickle.loads(Path(path).read_bytes())


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
