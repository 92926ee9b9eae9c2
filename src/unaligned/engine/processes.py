"""Processes of this machine: for work that holds the interpreter's lock."""

import os
import pickle
import tempfile
import threading
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from ..errors import EngineError, Note
from .base import Engine, Job, Result, in_order, pickling_error, with_warnings
from .blas import available_cores


class Processes(Engine):
    """Jobs in processes, each with its share of the BLAS threads.

    The processes are loky's: any function can be sent, scripts need no
    `if __name__ == "__main__"`, and the next call of the same size reuses the processes. An
    error or Ctrl-C kills them. The shared value goes through a file that each process reads once.
    """

    remote: ClassVar[bool] = True

    def _results(self, function: Job[Result], items: Iterable[Any], shared: Any) -> Generator[Any]:
        share = max(1, available_cores() // self.n_workers)
        key = os.getpid(), self.n_workers, *_thread_limits(share).items()
        pool = _pool(key)
        recent: deque[Any] = deque(maxlen=2 * self.n_workers)
        with _clear_errors(), _shared_file((function, shared)) as path:

            def submit(item: Any) -> Any:
                recent.append(pool.submit(_job, path, item))
                return recent[-1]

            try:
                for future in in_order(submit, items, lambda: 2 * self.n_workers):
                    yield future.result()
            except BaseException:
                # loky 3.6 fails to kill its workers while a future is still in its queue.
                deadline = time.monotonic() + 1.0
                for future in recent:
                    while not (future.running() or future.done()) and time.monotonic() < deadline:
                        time.sleep(0.001)
                _POOLS.pop(key, None)
                pool.shutdown(wait=False, kill_workers=True)
                raise


# By process (a fork has none of them), number of workers and environment. Not the one that
# joblib shares: `joblib.Parallel`, and so scikit-learn, takes that for its own, and fails.
_POOLS: dict[Any, Any] = {}
_LOCK = threading.Lock()


def _pool(key: tuple[Any, ...]) -> Any:
    """Return the pool of this key, a new one at the first call."""
    from joblib.externals.loky import ProcessPoolExecutor

    _, n_workers, *limits = key
    with _LOCK:
        if key not in _POOLS:
            # Idle for longer than usual (10 s): a worker that stops just when jobs arrive makes
            # loky warn in its own thread; where warnings are errors, that ends and jobs hang.
            _POOLS[key] = ProcessPoolExecutor(n_workers, timeout=300, env=dict(limits))
        return _POOLS[key]


def _thread_limits(n_threads: int) -> dict[str, str]:
    """Return the environment that limits each library to `n_threads`, or fewer if set so."""
    limits = {}
    for library in ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "BLIS_NUM", "VECLIB_MAXIMUM"):
        name = f"{library}_THREADS"
        given = os.environ.get(name, os.environ.get("OMP_NUM_THREADS", ""))
        allowed = min(int(given), n_threads) if given.isdigit() else n_threads
        limits[name] = str(max(1, allowed))
    return limits


def _job(path: str, item: Any) -> tuple[Any, list[Note]]:
    """Run one job in a process of the pool."""
    function, shared = _read(path)
    return with_warnings(function, shared, item)


@lru_cache(maxsize=1)
def _read(path: str) -> Any:
    return pickle.loads(Path(path).read_bytes())


@contextmanager
def _shared_file(shared: Any) -> Iterator[str]:
    """Yield the path of a temporary file that holds a pickled object."""
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
def _clear_errors() -> Iterator[None]:
    """Turn errors of loky and pickle into ours."""
    try:
        yield
    except BrokenProcessPool as error:
        raise EngineError(
            "A worker process ended unexpectedly, most often because memory ran out. Lower n_jobs."
        ) from error
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        if "pickle" not in f"{error}".lower():
            raise
        raise pickling_error("engine='processes'", error) from error
