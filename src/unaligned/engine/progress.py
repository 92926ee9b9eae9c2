"""Progress bars: work done and time left."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from ..errors import InputTypeError

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

# The progress of the task that this thread works on, for the loops inside of it.
CURRENT: ContextVar[Progress | None] = ContextVar("progress", default=None)


class Task:
    """A counter of finished steps, with a bar if it is shown; call it to advance."""

    def __init__(self, description: str, total: int, bars: RichProgress | None = None) -> None:
        self.description, self.total, self.done = description, total, 0
        self._lock = threading.Lock()
        self._bars = bars
        self._row = None if bars is None else bars.add_task(description, total=total)

    def __call__(self, amount: int = 1) -> None:
        """Add to the number of finished steps; thread-safe."""
        with self._lock:
            self.done += amount
        if self._bars is not None and self._row is not None:
            self._bars.update(self._row, completed=self.done)

    def hide(self) -> None:
        """Remove the bar."""
        if self._bars is not None and self._row is not None:
            self._bars.remove_task(self._row)


class Progress:
    """Bars on stderr, one per task.

    True shows them, False does not; None shows them on a terminal, for tasks of several steps.

    Examples
    --------
    >>> with Progress(False).task("describing", total=2) as advance:
    ...     advance(1)
    """

    def __init__(self, wanted: bool | None = None) -> None:
        if wanted is not None and not isinstance(wanted, bool):
            raise InputTypeError(f"progress={wanted!r} must be True, False or None.")
        self.wanted, self._n_tasks = wanted, 0
        self._lock = threading.Lock()
        self._bars: RichProgress | None = None

    @contextmanager
    def task(self, description: str, total: int, *, unit: str = "") -> Iterator[Task]:
        """Show the progress of a task; the message of Ctrl-C says how much is done.

        For example `task("describing", 12, unit="datasets")`.
        """
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
            done = " ".join(word for word in (f"{task.done} of {task.total}", unit) if word)
            raise KeyboardInterrupt(
                f"Stopped by Ctrl-C while {description}: {done} done."
            ) from None
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
                console = Console(stderr=True)
                self._bars = RichProgress(*columns, TimeRemainingColumn(), console=console)
                self._bars.start()
            return self._bars
