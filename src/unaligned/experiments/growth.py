"""How time and memory grow with N: measured, fitted by a power law, and extrapolated."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from .._check import FloatArray
from .run import markdown_table

if TYPE_CHECKING:
    import pandas as pd

HOUR = 3600.0
_STATUS = Path("/proc/self/status")
_LARGEST = 3  # sizes that a power law is fitted to: small ones have overheads of their own
_NOISE = 32.0  # MiB: what an allocator keeps or gives back as it likes
_NEAR = 0.1  # exponents no further apart are the same: a quarter over ten times the N
_PAUSE = 0.01  # seconds between two looks at the memory


class PeakMemory:
    """The largest memory of this process while this lasts, above what it was at the start.

    Anonymous resident memory, looked at every 10 ms; NaN where there is no `/proc`.
    """

    mebibytes: float = math.nan

    def __enter__(self) -> Self:
        self._start = self._most = _resident()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._done.wait(_PAUSE):
            self._most = max(self._most, _resident())

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self.mebibytes = max(self._most, _resident()) - self._start


def _resident() -> float:
    """Return the anonymous resident memory of this process in MiB; files are left out."""
    try:
        lines = _STATUS.read_text(encoding="ascii").splitlines()
    except OSError:
        return math.nan
    return next((int(li.split()[1]) / 1024 for li in lines if li.startswith("RssAnon")), math.nan)


@dataclass(frozen=True)
class PowerLaw:
    """y = factor · N^exponent."""

    factor: float
    exponent: float

    def at(self, size: float) -> float:
        """Return y at this N."""
        return float(self.factor * size**self.exponent)

    @property
    def grows(self) -> bool:
        """Whether y grows by more than noise would make it seem to."""
        return self.exponent > _NEAR

    def reaches(self, level: float) -> float:
        """Return the N at which y is `level`; infinity if it does not grow."""
        if not self.grows:
            return math.inf
        return float((level / self.factor) ** (1.0 / self.exponent))


def fit(
    sizes: Sequence[float] | FloatArray,
    values: Sequence[float] | FloatArray,
    *,
    least: float = 0.0,
) -> PowerLaw | None:
    """Return the least-squares line of log y on log N, over the y above `least`.

    None where fewer than two are.

    Examples
    --------
    >>> round(fit([10.0, 100.0], [2.0, 200.0]).at(1000.0))
    20000
    """
    x, y = np.asarray(sizes, dtype=float), np.asarray(values, dtype=float)
    x, y = x[y > least], y[y > least]
    if x.size < 2:
        return None
    slope, intercept = np.polyfit(np.log(x), np.log(y), 1)
    return PowerLaw(math.exp(intercept), float(slope))


@dataclass(frozen=True)
class Growth:
    """What was measured of one method, and the power laws of its largest sizes."""

    largest: float
    last_seconds: float
    time: PowerLaw | None
    memory: PowerLaw | None

    @property
    def beyond(self) -> PowerLaw | None:
        """The law beyond the largest N: linear from there on where the fit is slower than that.

        Every row has to be read, so a flatter line only says that overheads still dominate.
        """
        if self.time is None or self.time.exponent >= 1:
            return self.time
        return PowerLaw(self.last_seconds / self.largest, 1.0)

    @property
    def told_time(self) -> str:
        """The law of time in words, and that it is taken to be another one beyond."""
        slow = self.time is not None and self.time.exponent < 1 - _NEAR
        return _power(self.time) + (" so far, then N" if slow else "")

    @property
    def hour(self) -> float:
        """The N that takes an hour, by the power law."""
        return self.beyond.reaches(HOUR) if self.beyond else math.nan

    def full(self, gibibytes: float) -> float:
        """Return the N that takes so much memory, by the power law."""
        return self.memory.reaches(1024.0 * gibibytes) if self.memory else math.nan

    def seconds(self, size: float) -> float:
        """Return the seconds at this N: measured at the largest, else by the power law."""
        if size == self.largest or self.beyond is None:
            return self.last_seconds
        return self.beyond.at(size)


def grow(table: pd.DataFrame, method: str) -> Growth:
    """Return how one method's time and memory grow over its largest sizes."""
    sizes_of = table[table["method"] == method].groupby("N")
    # Of memory the largest: a later trial may find again what an earlier one had left behind.
    last = sizes_of.agg({"seconds": "mean", "mebibytes": "max"}).iloc[-_LARGEST:]
    sizes = last.index.to_numpy(dtype=float)
    seconds, mebibytes = (last[name].to_numpy() for name in ("seconds", "mebibytes"))
    return Growth(
        float(sizes[-1]),
        float(seconds[-1]),
        fit(sizes, seconds),
        fit(sizes, mebibytes, least=_NOISE),
    )


def limits_table(growth: dict[str, Growth], labels: dict[str, str], gibibytes: float) -> list[str]:
    """Return the table of where each method stops, with what it rests on."""
    head = ["method", "largest N run", "time grows as", "an hour at N", "memory grows as"]
    head += [f"{gibibytes:g} GiB at N", "stops first by"]
    rows = []
    for name, label in labels.items():
        found = growth[name]
        hour, full = found.hour, found.full(gibibytes)
        first = "time" if not full < hour else "memory"
        cells = [found.told_time, _size(hour), _power(found.memory), _size(full), first]
        rows.append([label, f"{found.largest:,.0f}", *cells])
    said = (
        f"Where each would take an hour or {gibibytes:g} GiB: extrapolated, not run, from power "
        f"laws fitted to the {_LARGEST} largest N of each. Where time grew slower than N, what "
        "does not depend on N still took most of it: from there on it is taken to grow as N. "
        "Memory is this process's, above what it held before."
    )
    return [said, "\n".join(markdown_table(head, rows))]


def _power(law: PowerLaw | None) -> str:
    if law is None:
        return "too little to tell"
    return f"N^{law.exponent:.2f}" if law.grows else "does not grow"


def _size(size: float) -> str:
    return f"{float(f'{size:.2g}'):,.0f}" if math.isfinite(size) else "not foreseen"
