"""Run a function in a process of its own, with a limit of its time."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ...engine.base import check_stop


@dataclass(frozen=True)
class Outcome:
    """What became of a call: `value` if it is `ok`, else why not."""

    status: str  # ok, over limit, or the name of an exception
    value: Any = None
    detail: str = ""
    seconds: float = float("nan")  # CPU time
    peak_mb: float = float("nan")  # of memory, beyond what the process had at its start


def run_limited(function: Callable[..., Any], arguments: tuple[Any, ...], limit: float) -> Outcome:
    """Return the outcome of a call that may take `limit` seconds of CPU time."""
    context = _context()
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(
        target=_call, args=(sender, function, arguments, limit, sys.path), daemon=True
    )
    process.start()
    sender.close()
    outcome = None
    # A process that waits (for a disk, for a busy machine) uses no CPU time.
    deadline = time.monotonic() + 30.0 * limit
    try:
        while outcome is None and time.monotonic() < deadline:
            check_stop()
            if receiver.poll(0.2):
                outcome = _received(receiver, process)
                break
    finally:
        process.kill() if outcome is None else process.join(5)
        process.join()
        receiver.close()
    return outcome or Outcome("over limit", detail=f"more than {limit:g} s")


def _received(receiver: Any, process: Any) -> Outcome | None:
    """Return what the process sent; None if its limit ended it."""
    try:
        outcome: Outcome = receiver.recv()
        return outcome
    except EOFError:
        process.join()
    code = process.exitcode
    if code in (-getattr(signal, "SIGXCPU", 24), -getattr(signal, "SIGKILL", 9)):
        return None
    return Outcome("ended", detail=f"the process ended with exit code {code}")


def _context() -> Any:
    """Return the kind of process: forked from one that has imported everything, or a new one."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "unaligned.experiments.benchmark.preloaded"])
    return context


def _call(
    sender: Any, function: Callable[..., Any], arguments: Any, limit: float, path: list[str]
) -> None:
    from threadpoolctl import threadpool_limits

    sys.path[:] = path
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a distance prints is not the result
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    warnings.simplefilter("ignore")
    _limit_time(limit)
    started, before = time.process_time(), _peak_mb()
    try:
        with threadpool_limits(1):
            value = function(*arguments)
        seconds = time.process_time() - started
        outcome = Outcome("ok", value, "", seconds, max(0.0, _peak_mb() - before))
    except Exception as error:
        text = str(error) or traceback.format_exc(limit=1)
        outcome = Outcome(type(error).__name__, None, text)
    with suppress(OSError):  # the parent has ended
        sender.send(outcome)
    sender.close()


def _limit_time(limit: float) -> None:
    """Let the kernel end this process after so much more CPU time, where it can."""
    try:
        import resource
    except ImportError:  # Windows: only the wall time is limited
        return
    end = int(time.process_time() + limit) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (end, end + 1))


def _peak_mb() -> float:
    """Return the largest memory that this process had, in MB."""
    try:
        import resource
    except ImportError:
        return float("nan")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)
