"""Processes of this machine, by joblib: for work that holds Python's lock."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from typing import Any, ClassVar

from ..errors import EngineError, InputError
from .base import Engine, Job, Result, heard, noted


class Processes(Engine):
    """Jobs in processes of their own, each with its share of the BLAS threads.

    joblib sends functions of any kind, maps large arrays into memory instead of copying them,
    and keeps the processes for the next call. They are ended by an error or Ctrl-C.

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
        from joblib import Parallel, delayed

        pool = Parallel(self.n_workers, backend="loky", return_as="generator", batch_size=1)
        results = pool(delayed(noted)(function, shared, item) for item in items)
        try:
            yield from results
        except BrokenProcessPool as error:
            raise EngineError(
                "A worker process ended unexpectedly, most often because memory ran out. Use "
                "fewer with n_jobs=."
            ) from error
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            if not isinstance(error, pickle.PicklingError) and "pickle" not in str(error):
                raise
            raise InputError(
                f"engine='processes' sends data and settings to other processes, and something "
                f"cannot be sent: {error}. Open files and generators cannot: give a path or an "
                "array, or leave engine out for threads."
            ) from error
