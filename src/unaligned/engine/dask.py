"""A Dask cluster: this machine or many."""

from __future__ import annotations

import copy
import functools
import pickle
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any, ClassVar
from uuid import uuid4
from weakref import WeakSet

from ..errors import EngineError, InputError, InputTypeError, Note, UnalignedError, required
from .base import Engine, Job, Result, heard, in_order, noted, unsendable
from .blas import limited_blas
from .progress import Progress

_AHEAD = 4  # jobs sent ahead per thread of the cluster: it is never idle, nor flooded
_FAN_IN = 8  # partial results that are combined at a time


class Cluster(Engine):
    """Jobs on the workers of a Dask cluster, which repeats what a lost worker had done.

    What is sent stays with the scheduler until the job is done (nothing is scattered to a
    single worker), so the loss of a worker costs time and nothing else.

    Parameters
    ----------
    client
        A `dask.distributed.Client`.
    progress
        Where to tell how far the work has come.
    own
        Whether to close the client in the end.
    """

    remote: ClassVar[bool] = True

    def __init__(
        self, client: Any, progress: Progress | None = None, *, own: bool = False
    ) -> None:
        if getattr(client, "asynchronous", False):
            raise InputTypeError(
                "engine is an asynchronous Client. Give one made with asynchronous=False."
            )
        if getattr(client, "status", "running") in ("closing", "closed"):
            raise InputError(f"engine={client!r} is closed. Give a Client that is open.")
        self.client, self.own = client, own
        super().__init__(self._threads(), progress)

    @classmethod
    def at(cls, address: str, progress: Progress | None = None) -> Cluster:
        """Return the cluster of the scheduler at an address."""
        package = "dask.distributed"
        client = required(package, "dask", f"engine={address!r}", package=package).Client
        try:
            return cls(client(address, timeout="10s", set_as_default=False), progress, own=True)
        except (OSError, ValueError) as error:
            raise InputError(
                f"engine={address!r}: no Dask scheduler answers there ({error}). Start one with "
                "`dask scheduler`, and give the address that it prints."
            ) from error

    def map(
        self, function: Job[Result], items: Iterable[Any], *, shared: Any = None
    ) -> Iterator[Result]:
        """Yield `function(shared, item)` of each item, in order."""
        return heard(self._results(function, items, shared))

    def reduce(
        self,
        function: Job[Result],
        items: Iterable[Any],
        combine: Callable[[Result, Result], Result],
        *,
        shared: Any = None,
        advance: Callable[[], object] | None = None,
    ) -> Result:
        """Return the results combined to one on the workers: only the last comes here."""
        with self._sent(function, shared) as send:
            tree = _Tree(lambda parts: send.combined(combine, parts))
            for future in self._futures(send, items):
                _require_finished(future)
                tree.add(future)
                if advance is not None:
                    advance()
            found: Result = next(heard([_result(tree.top())]))
            return found

    def close(self) -> None:
        """Close the client if it was opened here."""
        super().close()
        if self.own:
            self.client.close()

    def _threads(self) -> int:
        return max(1, int(sum(self.client.ncores().values())))

    def _futures(self, send: _Sender, items: Iterable[Any]) -> Iterator[Any]:
        from dask import distributed

        return in_order(send, items, lambda: _AHEAD * self._threads(), wait=distributed.wait)

    def _results(self, function: Job[Result], items: Iterable[Any], shared: Any) -> Iterator[Any]:
        with self._sent(function, shared) as send:
            for future in self._futures(send, items):
                yield _result(future)

    @contextmanager
    def _sent(self, function: Job[Result], shared: Any) -> Iterator[_Sender]:
        """Give what sends items to the cluster; what is under way is cancelled after an error."""
        with _said(self.client):
            sender = _Sender(self.client, function, shared)
            try:
                yield sender
            except BaseException:
                with suppress(Exception):  # a cluster that is gone has nothing to cancel
                    self.client.cancel(list(sender.futures), force=True)
                raise


class _Sender:
    """Sends items, and with the first what all share; workers pass that on to each other."""

    def __init__(self, client: Any, function: Job[Any], shared: Any) -> None:
        self.client, self.function = client, function
        self.name = getattr(function, "__name__", "job")
        self.futures: WeakSet[Any] = WeakSet()
        self.shared = self._submit("shared", _itself, shared)

    def __call__(self, item: Any) -> Any:
        """Return the future of one job; a Dask object is worked out where its data is."""
        if hasattr(item, "__dask_graph__"):
            item = self.client.compute(item)
        return self._submit(self.name, _job, self.function, self.shared, item)

    def combined(self, combine: Callable[[Any, Any], Any], parts: list[Any]) -> Any:
        """Return the future of several partial results combined."""
        return self._submit(f"combine-{self.name}", _combine, combine, parts)

    def _submit(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        import dask

        # Data goes along with the job on purpose: what the scheduler has, no worker can lose.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            future = self.client.submit(function, *arguments, key=f"{name}-{uuid4().hex}")
        self.futures.add(future)
        return future


class _Tree:
    """Combines parts as they come, a few neighbours at a time, and those again.

    Examples
    --------
    >>> tree = _Tree(sum)
    >>> for part in range(100):
    ...     tree.add(part)
    >>> tree.top(), len(tree.levels)
    (4950, 3)
    """

    def __init__(self, combined: Callable[[list[Any]], Any]) -> None:
        self.combined = combined
        self.levels: list[list[Any]] = []

    def add(self, part: Any, level: int = 0) -> None:
        """Add the next part."""
        if level == len(self.levels):
            self.levels.append([])
        self.levels[level].append(part)
        if len(self.levels[level]) == _FAN_IN:
            self.add(self.combined(self.levels[level]), level + 1)
            self.levels[level] = []

    def top(self) -> Any:
        """Return all parts combined to one, the oldest first."""
        left = [part for level in reversed(self.levels) for part in level]
        return left[0] if len(left) == 1 else self.combined(left)


def _job(function: Job[Any], shared: Any, item: Any) -> tuple[Any, list[Note]]:
    """Return what `noted` does. Runs on a worker, which has a thread for each of its jobs."""
    with limited_blas(1):
        return noted(function, shared, item)


def _itself(shared: Any) -> Any:
    return shared


def _combine(
    combine: Callable[[Any, Any], Any], parts: list[tuple[Any, list[Note]]]
) -> tuple[Any, list[Note]]:
    """Return the combination of noted results. Runs on a worker.

    The first is copied: `combine` may change it, and the worker may need it once more.
    """
    results, notes = zip(*parts, strict=True)
    total = functools.reduce(combine, results[1:], copy.deepcopy(results[0]))
    return total, [note for some in notes for note in some]


@contextmanager
def _said(client: Any) -> Iterator[None]:
    """Say what happened to the cluster, and to what was sent to it, in words."""
    try:
        yield
    except UnalignedError:
        raise
    except Exception as error:
        # A client without a scheduler stumbles in several ways, some of them an AttributeError.
        if client.status != "running" or type(error).__name__ == "CommClosedError":
            raise EngineError(
                f"The Dask cluster was closed while it was at work ({error})."
            ) from error
        if isinstance(error, pickle.PicklingError) or "Could not serialize" in str(error):
            raise unsendable("A Dask cluster", error) from error
        raise


def _require_finished(future: Any) -> None:
    """Raise the error of a future that is done, but do not bring its result here."""
    if future.status != "finished":
        _result(future)


def _result(future: Any) -> Any:
    from dask.distributed import KilledWorker

    try:
        return future.result()
    except KilledWorker as error:
        raise EngineError(
            f"The Dask cluster lost several workers to the same job ({error}), most often because "
            "memory ran out. Give the workers more memory or fewer threads."
        ) from error
    except CancelledError as error:
        raise EngineError(
            f"The Dask cluster dropped a job ({error}): its scheduler was closed or restarted."
        ) from error
