"""A Dask cluster: this machine or many."""

import copy
import functools
import pickle
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any, ClassVar
from uuid import uuid4
from weakref import WeakSet

from ..errors import (
    EngineError,
    InputError,
    InputTypeError,
    Note,
    UnalignedError,
    repeat,
    required,
)
from .base import (
    Engine,
    Job,
    Progress,
    Result,
    check_stop,
    in_order,
    pickling_error,
    with_warnings,
)
from .blas import limited_blas


class Cluster(Engine):
    """Jobs on the workers of a Dask cluster, which repeats the jobs of a lost worker.

    Data stays with the scheduler until its job is done (nothing is scattered to a single
    worker), so losing a worker costs only time. A client opened here, from the address of a
    scheduler, is closed again.
    """

    remote: ClassVar[bool] = True

    def __init__(self, client: Any, progress: Progress | None = None) -> None:
        self.own = isinstance(client, str)
        self.client = _connect(client) if self.own else client
        if getattr(self.client, "asynchronous", False):
            raise InputTypeError(
                "engine is an asynchronous Client. Pass one created with asynchronous=False."
            )
        if getattr(self.client, "status", "running") in ("closing", "closed"):
            raise InputError(f"engine={client!r} is closed. Pass an open Client.")
        super().__init__(self._n_threads(), progress)

    def _results(self, function: Job[Result], items: Iterable[Any], shared: Any) -> Generator[Any]:
        with self._submitter() as submit:
            for future in self._futures(submit, function, items, shared):
                yield _result(future)

    def reduce(
        self,
        function: Job[Result],
        items: Iterable[Any],
        combine: Callable[[Result, Result], Result],
        *,
        shared: Any,
        advance: Callable[[], object],
    ) -> Result:
        """Return the results combined into one on the workers; only that one is fetched."""
        parts: list[Any] = []
        with self._submitter() as submit:
            for future in self._futures(submit, function, items, shared):
                if future.status != "finished":
                    _result(future)  # raises its error
                parts.append(future)
                if len(parts) == 8:  # few enough to fit into the memory of a worker
                    parts = [submit(_combine, combine, parts)]
                advance()
            total, warnings = _result(submit(_combine, combine, parts))
        repeat(warnings, set())
        return total  # type: ignore[no-any-return]

    def close(self) -> None:
        """Close the client if it was opened here."""
        super().close()
        if self.own:
            self.client.close()

    def _n_threads(self) -> int:
        return max(1, int(sum(self.client.ncores().values())))

    def _futures(
        self, submit: Callable[..., Any], function: Job[Any], items: Iterable[Any], shared: Any
    ) -> Iterator[Any]:
        """Yield the finished future of each item, in order."""
        from dask import distributed

        sent = submit(_identity, shared)  # once; workers copy it from each other

        def start(item: Any) -> Any:
            # A Dask object is computed where its data is.
            found = self.client.compute(item) if hasattr(item, "__dask_graph__") else item
            return submit(_job, function, sent, found)

        # Four jobs per thread are pending: workers are never idle, the scheduler never flooded.
        for future in in_order(start, items, lambda: 4 * self._n_threads(), distributed.wait):
            check_stop()
            yield future

    @contextmanager
    def _submitter(self) -> Iterator[Callable[..., Any]]:
        """Yield a function that submits calls; the unfinished ones are cancelled at an error."""
        import dask

        futures: WeakSet[Any] = WeakSet()

        def submit(function: Callable[..., Any], *arguments: Any) -> Any:
            # Data is sent with the job on purpose: a worker cannot lose what the scheduler has.
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
                key = f"{function.__name__}-{uuid4().hex}"
                future = self.client.submit(function, *arguments, key=key)
            futures.add(future)
            return future

        with _clear_errors(self.client):
            try:
                yield submit
            except BaseException:
                with suppress(Exception):  # the cluster may be gone
                    self.client.cancel(list(futures), force=True)
                raise


def _connect(address: str) -> Any:
    package = "dask.distributed"
    client = required(package, "dask", f"engine={address!r}", package=package).Client
    try:
        return client(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(
            f"engine={address!r}: no Dask scheduler answers there ({error}). Start one with "
            "`dask scheduler`, and pass the address that it prints."
        ) from error


def _job(function: Job[Any], shared: Any, item: Any) -> tuple[Any, list[Note]]:
    """Run one job on a worker, which has a thread for each of its jobs."""
    with limited_blas(1):
        return with_warnings(function, shared, item)


def _identity(shared: Any) -> Any:
    return shared


def _combine(combine: Callable[[Any, Any], Any], parts: list[Any]) -> tuple[Any, list[Note]]:
    """Combine results and their warnings on a worker."""
    results, warnings = zip(*parts, strict=True)
    # The first is copied: `combine` may modify it, and the worker may need it again.
    total = functools.reduce(combine, results[1:], copy.deepcopy(results[0]))
    return total, [warning for some in warnings for warning in some]


@contextmanager
def _clear_errors(client: Any) -> Iterator[None]:
    """Turn errors of the cluster and of pickling into ours."""
    try:
        yield
    except UnalignedError:
        raise
    except Exception as error:
        # A client without a scheduler fails in several ways, some of them an AttributeError.
        if client.status != "running" or type(error).__name__ == "CommClosedError":
            raise EngineError(f"The Dask cluster was closed during the run ({error}).") from error
        if isinstance(error, pickle.PicklingError) or "Could not serialize" in str(error):
            raise pickling_error("A Dask cluster", error) from error
        raise


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
