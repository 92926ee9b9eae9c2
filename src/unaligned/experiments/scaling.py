"""Section 5.1 and Fig. 2: run time and stability against the size of the datasets."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

import unaligned as ua

from .. import _check, figures
from .._check import FloatArray
from ..data.shapes import torus2, torus3, torus_angles
from ..defaults import GAMMA, N_EIGENVALUES
from .base import Claim, Experiment, Row, Stage, Task, Value, markdown_table, summary
from .tori import Method, within

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

HOUR = 3600.0  # seconds
_FITTED_SIZES = 3  # largest N of a power law: fixed costs dominate at small ones
_PAIR = "T2,T3"


class PeakMemory:
    """The peak memory of this process inside a `with` block, above that at its start.

    Anonymous resident memory, polled every 10 ms; NaN where there is no `/proc`.
    """

    mebibytes: float = math.nan

    def __enter__(self) -> Self:
        self._start = self._most = _resident_mebibytes()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()
        return self

    def _poll(self) -> None:
        while not self._done.wait(0.01):
            self._most = max(self._most, _resident_mebibytes())

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self.mebibytes = max(self._most, _resident_mebibytes()) - self._start


def _resident_mebibytes() -> float:
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
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
        """Whether y grows by more than noise."""
        return self.exponent > 0.1  # 26 % over ten times the N

    def reaches(self, level: float) -> float:
        """Return the N at which y is `level`; infinity if it does not grow."""
        return float((level / self.factor) ** (1.0 / self.exponent)) if self.grows else math.inf


def fit(sizes: FloatArray, values: FloatArray, least: float = 0.0) -> PowerLaw | None:
    """Return the least-squares line of log y on log N over the y above `least`, two or more."""
    used = values > least
    if used.sum() < 2:
        return None
    slope, intercept = np.polyfit(np.log(sizes[used]), np.log(values[used]), 1)
    return PowerLaw(math.exp(intercept), float(slope))


@dataclass(frozen=True)
class Growth:
    """The time at the largest N of one method, and the power laws of time and memory."""

    largest: float
    last_seconds: float
    time: PowerLaw | None
    memory: PowerLaw | None

    @classmethod
    def of(cls, table: pd.DataFrame, method: str) -> Self:
        """Fit the power laws to the largest sizes of one method."""
        groups = table[table["method"] == method].groupby("N")
        # The largest memory: a later trial may reuse what an earlier one left allocated.
        last = groups.agg({"seconds": "mean", "mebibytes": "max"}).iloc[-_FITTED_SIZES:]
        sizes = last.index.to_numpy(dtype=float)
        seconds, mebibytes = (last[name].to_numpy() for name in ("seconds", "mebibytes"))
        # Below 32 MiB the allocator's own reserve dominates.
        memory = fit(sizes, mebibytes, least=32.0)
        return cls(float(sizes[-1]), float(seconds[-1]), fit(sizes, seconds), memory)

    @property
    def beyond(self) -> PowerLaw | None:
        """The law of time beyond the largest N, at least linear."""
        # Every row has to be read: a flatter fit only shows that fixed costs still dominate.
        if self.time is None or self.time.exponent >= 1:
            return self.time
        return PowerLaw(self.last_seconds / self.largest, 1.0)

    @property
    def hour(self) -> float:
        """The N that takes an hour, by the power law."""
        return self.beyond.reaches(HOUR) if self.beyond else math.nan

    def full(self, gibibytes: float) -> float:
        """Return the N that takes this much memory, by the power law."""
        return self.memory.reaches(1024.0 * gibibytes) if self.memory else math.nan

    def seconds(self, size: float) -> float:
        """Return the seconds at this N: measured at the largest, else by the power law."""
        if size == self.largest or self.beyond is None:
            return self.last_seconds
        return self.beyond.at(size)


def limits_table(growth: dict[str, Growth], labels: dict[str, str], gibibytes: float) -> list[str]:
    """Return a table of the N at which each method exceeds an hour or the memory."""

    def power(law: PowerLaw | None) -> str:
        if law is None:
            return "not measurable"
        return f"N^{law.exponent:.2f}" if law.grows else "does not grow"

    def size(value: float) -> str:
        return f"{float(f'{value:.2g}'):,.0f}" if math.isfinite(value) else "unknown"

    head = ["method", "largest N run", "time grows as", "an hour at N", "memory grows as"]
    head += [f"{gibibytes:g} GiB at N", "limited by"]
    rows = []
    for name, label in labels.items():
        found = growth[name]
        hour, full = found.hour, found.full(gibibytes)
        slow = found.time is not None and found.time.exponent < 0.9
        seconds = power(found.time) + (" so far, then N" if slow else "")
        cells = [f"{found.largest:,.0f}", seconds, size(hour), power(found.memory), size(full)]
        rows.append([label, *cells, "memory" if full < hour else "time"])
    text = (
        f"The N at which each method would take an hour or {gibibytes:g} GiB: extrapolated, not "
        f"run, from power laws fitted to the {_FITTED_SIZES} largest N of each. Where time grew "
        "more slowly than N, fixed costs still dominated: beyond the largest N it is assumed to "
        "grow as N. Memory is that of this process, above what it held before."
    )
    return [text, markdown_table(head, rows)]


@dataclass(frozen=True)
class Scaling(Experiment):
    """One pair, T2 and T3, by four methods at growing N: seconds, memory, and the distance.

    The two tori of a trial and N are the same for all methods. Times exclude imports and
    compilation. LES reads rows by blocks from N = 50,000 on. `--full` runs the peers to the
    paper's 10⁴ and the two that can to 10⁶; `--quick` stops earlier. Limits and the trials of
    Gromov-Wasserstein may be raised in a finished run.
    """

    name: ClassVar[str] = "scaling"
    title: ClassVar[str] = "Run time and stability against N (Section 5.1, Fig. 2)"
    variable: ClassVar[str] = "N"
    quantities: ClassVar[tuple[str, ...]] = ("distance", "seconds", "mebibytes")
    quick: ClassVar[dict[str, Any]] = {
        "n_trials": 2,
        "imd_limit": 300_000,
        "transport_limit": 3000,
        "score_limit": 3000,
    }
    full: ClassVar[dict[str, Any]] = {"n_trials": 10}

    sizes: tuple[int, ...] = (300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
    n_eigenvalues: int = N_EIGENVALUES
    gamma: float = GAMMA
    imd_limit: int = 1_000_000  # largest N
    transport_limit: int = 10_000  # largest N of Gromov-Wasserstein
    transport_trials: int = 10  # trials of Gromov-Wasserstein at that N, half an hour each at 10⁴
    score_limit: int = 10_000  # largest N of the Geometry Score
    rounds: int = 2000  # of the Geometry Score, the paper's n
    gibibytes: float = 24.0  # memory limit of the extrapolation

    def __post_init__(self) -> None:
        super().__post_init__()
        for size in self.sizes:
            _check.positive_int("sizes", size, minimum=self.n_eigenvalues)
        for name in ("imd_limit", "transport_limit", "score_limit"):
            _check.positive_int(name, getattr(self, name), minimum=min(self.sizes))
        _check.positive_int("transport_trials", self.transport_trials)
        _check.real_number("gibibytes", self.gibibytes, minimum=0.0, strict=True)

    @property
    def panels(self) -> tuple[Method, ...]:
        """The lines of Fig. 2."""
        recipe = {"n_eigenvalues": self.n_eigenvalues, "gamma": self.gamma}
        return (
            Method("LES", "les", options=recipe),
            Method("IMD", "imd"),
            Method("Geometry Score", "geometry-score", options={"n_rounds": self.rounds}),
            Method("Gromov-Wasserstein", "gromov-wasserstein", options={"method": "exact"}),
        )

    def stages(self) -> list[Stage]:
        """Return every method at every N, the small ones first."""
        limits = {"imd": self.imd_limit, "geometry-score": self.score_limit}
        limits["gromov-wasserstein"] = self.transport_limit
        return [
            ((method.distance,), (size,))
            for method in self.panels
            for size in sorted(self.sizes)
            if size <= limits.get(method.distance, size)
        ]

    def tasks(self, methods: Iterable[str]) -> list[list[Task]]:
        """Return the tasks of each stage; `transport_trials` of them in the slowest."""
        slowest = self.panels[-1].distance, max(n for n in self.sizes if n <= self.transport_limit)
        return [
            stage[: self.transport_trials]
            if (stage[0].methods[0], stage[0].value) == slowest
            else stage
            for stage in super().tasks(methods)
        ]

    def settings(self) -> dict[str, Any]:
        """Return what determines the numbers of a trial; limits only say which ones there are."""
        settings = super().settings()
        limits = ("imd_limit", "transport_limit", "transport_trials", "score_limit")
        return {name: value for name, value in settings.items() if name not in limits}

    def run_task(self, task: Task) -> list[Row]:
        """Sample T2 and T3, and measure their distance, its time and its memory."""
        size = int(task.value)
        rng = np.random.default_rng([self.seed, task.trial, size])
        first, second = torus2(torus_angles(size, rng=rng)), torus3(torus_angles(size, rng=rng))
        rows = []
        for method in within(self.panels, task.methods):
            name, options = method.distance, method.options
            warm_up = {**options, "n_rounds": 1} if "n_rounds" in options else options
            # LES of a few points would not run the solver that many points need.
            few = 3000 if name == "les" else self.n_eigenvalues
            ua.distance(first[:few], second[:few], name, **warm_up)
            with PeakMemory() as memory:
                start = time.perf_counter()
                found = ua.distance(first, second, name, **options)
                seconds = time.perf_counter() - start
            row = {"method": name, "pair": _PAIR, "distance": found, "seconds": seconds}
            rows.append({**row, "mebibytes": memory.mebibytes})
        return rows

    def pairs(self, method: str, value: Value) -> tuple[str, ...]:
        """Return the one pair."""
        return (_PAIR,)

    def claims(self, table: pd.DataFrame) -> list[Claim]:
        """Return the paper's claims about time and stability, and the reach of LES."""
        methods = within(self.panels, table["method"])
        names = {method.distance for method in methods}
        claims = _time_claims(table, methods) if names >= {"les", "imd"} else []
        if "les" in names:
            claims += [_stability_claim(table, methods)] if len(names) > 1 else []
            claims.append(_reach_claim(table, methods))
        return claims

    def notes(self, table: pd.DataFrame) -> list[str]:
        """Return which trials are missing, and the N that take an hour or exceed the memory."""
        labels = {m.distance: m.label for m in within(self.panels, table["method"])}
        growth = {name: Growth.of(table, name) for name in labels}
        counts = table.groupby(["method", "N"], as_index=False).size()
        fewer = [
            f"{labels[name]} has {count} of {self.n_trials} trials at N = {size:,.0f}."
            for name, size, count in counts.itertuples(index=False)
            if count < self.n_trials
        ]
        return [*fewer, *limits_table(growth, labels, self.gibibytes)]

    def draw(self, table: pd.DataFrame) -> Figure:
        """Return Fig. 2: run time with its extrapolation dotted, and normalised distance."""
        figure, (left, right) = figures.panels(2, width=5.2, height=4.2)
        # One N for all, as in the paper: else methods that stop early would look more stable.
        reference = common_size(table)
        for i, method in enumerate(within(self.panels, table["method"])):
            rows = table[table["method"] == method.distance]
            times = summary(rows, "N", "seconds").sort_values("N")
            growth = Growth.of(table, method.distance)
            _draw_line(left, times, method.label, i)
            end, last = min(growth.hour, growth.full(self.gibibytes)), growth.largest
            if np.isfinite(end) and end > last:
                seconds = [growth.last_seconds, growth.seconds(end)]
                left.plot([last, end], seconds, ":", color=figures.COLOURS[i])
                left.plot(end, seconds[1], "x", color=figures.COLOURS[i], markersize=8)
            values = summary(rows, "N").sort_values("N")
            at = values["N"] == reference
            values[["mean", "min", "max"]] /= float(values.loc[at, "mean"].iloc[0])
            # All are 1 at the reference, where markers would hide each other.
            _draw_line(right, values, method.label, i).set_markevery(list(~at))
        _label_axes(left, right, reference, self.gibibytes)
        return figure


def common_size(table: pd.DataFrame) -> float:
    """Return the largest N that every method reached; the paper's is 10⁴."""
    return float(table.groupby("method")["N"].max().min())


def _draw_line(axes: Axes, means: pd.DataFrame, label: str, number: int) -> Line2D:
    """Draw the mean of one method, and the range of its trials, positive for the log axis."""
    columns = (means[name].to_numpy() for name in ("N", "mean", "min", "max"))
    look: Any = {"color": figures.COLOURS[number], "marker": "osD^"[number], "markersize": 5}
    return figures.banded_line(axes, *columns, label=label, **look)


def _label_axes(left: Axes, right: Axes, reference: float, gibibytes: float) -> None:
    left.axhline(HOUR, color="0.5", lw=0.8, ls="--")
    where = left.get_yaxis_transform()
    left.text(0.02, HOUR * 1.15, "one hour", color="0.35", fontsize=8, transform=where)
    left.set(xscale="log", yscale="log", xlabel="N", ylabel="seconds per pair", title="Run time")
    left.set_ylim(top=HOUR * 4)
    legend = "band: range of the trials\ndotted: extrapolated to an hour\n"
    legend += f"or {gibibytes:g} GiB (×)"
    left.legend(loc="lower right", fontsize=8, title=legend, title_fontsize=7)
    right.axhline(1.0, color="0.5", lw=0.8, ls="--")
    right.axvline(reference, color="0.5", lw=0.8, ls="--")
    note = f" N = {reference:,.0f}: all 1 by definition"
    right.text(reference, 0.02, note, fontsize=8, transform=right.get_xaxis_transform())
    right.set(xscale="log", xlabel="N", title="Normalised distance")
    right.set_ylabel(f"$d(T_2, T_3)$ / its mean at N = {reference:,.0f}")
    right.set_ylim(bottom=0.0)


def _time_claims(table: pd.DataFrame, methods: Sequence[Method]) -> list[Claim]:
    size = common_size(table)
    mean = table[table["N"] == size].groupby("method")["seconds"].mean()
    les, imd, others = float(mean["les"]), float(mean["imd"]), mean.drop(["les", "imd"])
    measured = f"{les / imd:.1f} times as much at N = {size:,.0f}"
    claims = [Claim("Section 5.1", "LES takes more time than IMD", measured, les > imd)]
    if len(others):
        expected = "LES and IMD take significantly less time than GW and GS (bar: a tenth)"
        times = ", ".join(f"{m.label} {mean[m.distance]:.3g} s" for m in methods)
        passed = 10.0 * max(les, imd) <= float(others.min())
        claims.append(Claim("Fig. 2a", expected, f"at N = {size:,.0f}: {times}", passed))
    return claims


def _stability_claim(table: pd.DataFrame, methods: Sequence[Method]) -> Claim:
    reference = common_size(table)
    worst = {}
    for method in methods:
        rows = table[(table["method"] == method.distance) & (table["N"] <= reference)]
        means = rows.groupby("N")["distance"].mean()
        worst[method.distance] = float((means / means[reference] - 1.0).abs().max())
    changes = ", ".join(f"{m.label} {worst[m.distance]:.1%}" for m in methods)
    expected = "LES is the most robust to different sample sizes"
    measured = f"largest change of the mean d(T2,T3) against N = {reference:,.0f}: {changes}"
    return Claim("Fig. 2b", expected, measured, worst["les"] == min(worst.values()))


def _reach_claim(table: pd.DataFrame, methods: Sequence[Method]) -> Claim:
    growth = {m.distance: Growth.of(table, m.distance) for m in methods}
    largest = growth["les"].largest
    times = []
    for method in methods:
        found = growth[method.distance]
        note = "" if found.largest == largest else " (extrapolated)"
        times.append(f"{method.label} {found.seconds(largest):,.3g} s{note}")
    expected = "LES continues where others stop (bar: its largest N within an hour)"
    measured = f"at N = {largest:,.0f}: {', '.join(times)}"
    return Claim("this project", expected, measured, growth["les"].last_seconds < HOUR)
