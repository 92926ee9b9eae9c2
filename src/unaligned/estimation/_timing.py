"""How long a call takes on a machine that may be busy."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TypeVar

Result = TypeVar("Result")

_ENOUGH = 0.06  # seconds, after which nothing is called more than twice


def timed(function: Callable[[], Result], *, repeats: int = 3) -> tuple[float, Result]:
    """Return the seconds that a call takes, the middle one of a few, and what the last returned.

    Of two the quicker one: the first may compile, or something else may come between. The
    quickest of many would belong to a machine that does nothing else, and the truth may not.

    Examples
    --------
    >>> seconds, found = timed(lambda: 1 + 1)
    >>> 0 <= seconds < 1, found
    (True, 2)
    """
    taken: list[float] = []
    while True:
        started = perf_counter()
        found = function()
        taken.append(perf_counter() - started)
        enough = len(taken) >= 2 and sum(taken) > _ENOUGH
        if len(taken) >= repeats or enough:
            return sorted(taken)[(len(taken) - 1) // 2], found
