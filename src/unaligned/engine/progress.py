"""How far the work has come: a bar with work done and time left, or silence."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import InputTypeError

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

Item = TypeVar("Item")

# Whose bars are shown around the work of this thread: loops deep inside of it tell them how far
# they are, and nothing in between has to hand that on.
_AROUND: ContextVar[Progress | None] = ContextVar("progress", default=None)


class Task:
    """One piece of work under way; call it with how much more of it is done.

    Examples
    --------
    >>> task = Task("reading", total=30)
    >>> task(10), task(10)
    (None, None)
    >>> task.done
    20
    """

    def __init__(self, description: str, total: int, bars: RichProgress | None = None) -> None:
        self.description, self.total, self.done = description, total, 0
        self._lock = threading.Lock()
        self._bars = bars
        self._row = None if bars is None else bars.add_task(description, total=total)

    def __call__(self, amount: int = 1) -> None:
        """Note that so much more is done; any thread may."""
        with self._lock:
            self.done += amount
        if self._bars is not None and self._row is not None:
            self._bars.update(self._row, completed=self.done)

    def hide(self) -> None:
        """Take the bar away."""
        if self._bars is not None and self._row is not None:
            self._bars.remove_task(self._row)


class Progress:
    """Bars on stderr, one per task under way.

    Parameters
    ----------
    wanted
        True shows them, False never does; None only on a terminal, and only for tasks of more
        than one step.

    Examples
    --------
    >>> with Progress(False).task("describing", total=2) as advance:
    ...     advance(1)
    """

    def __init__(self, wanted: bool | None = None) -> None:
        if wanted is not None and not isinstance(wanted, bool):
            raise InputTypeError(f"progress={wanted!r} must be True, False or None.")
        self.wanted, self._under_way = wanted, 0
        self._lock = threading.Lock()
        self._bars: RichProgress | None = None

    @contextmanager
    def task(self, description: str, total: int, *, unit: str = "") -> Iterator[Task]:
        """Show how far a task has come while this lasts; Ctrl-C says how far it came.

        Parameters
        ----------
        description
            What is done, such as `describing`.
        total
            How many steps there are.
        unit
            What is counted, such as `datasets`.
        """
        visible = self.wanted if self.wanted is not None else total > 1 and sys.stderr.isatty()
        task = Task(description, total, self._shown() if visible else None)
        with self._lock:
            self._under_way += 1
        outermost = None if _AROUND.get() is self else _AROUND.set(self)
        try:
            yield task
        except KeyboardInterrupt as error:
            if total == 1 and error.args:  # its only part has said how far it came
                raise
            far = " ".join(word for word in (f"{task.done} of {task.total}", unit) if word)
            raise KeyboardInterrupt(
                f"Stopped by Ctrl-C while {description}: {far} done."
            ) from None
        finally:
            if outermost is not None:
                _AROUND.reset(outermost)
            with self._lock:
                self._under_way -= 1
            if self._under_way:  # a part of something larger, which goes on
                task.hide()

    def close(self) -> None:
        """Take all bars away."""
        with self._lock:
            if self._bars is not None:
                self._bars.stop()
            self._bars = None

    def _shown(self) -> RichProgress:
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


def steps(items: Iterable[Item], total: int, description: str) -> Iterator[Item]:
    """Yield the items, and show how many are done where bars are shown around this work.

    Examples
    --------
    >>> list(steps("abc", 3, "rounds"))
    ['a', 'b', 'c']
    """
    around = _AROUND.get()
    if around is None:
        yield from items
        return
    with around.task(description, total, unit=description) as advance:
        for item in items:
            yield item
            advance()
