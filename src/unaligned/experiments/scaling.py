"""Section 5.1 and Fig. 2: run time and stability against the size of the datasets."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

import unaligned as ua

from .. import _check, figures
from .._check import FloatArray
from ..data.shapes import torus2, torus3, torus_angles
from .base import Claim, Experiment, Row, Stage, Task, summary
from .growth import HOUR, Growth, PeakMemory, grow, limits_table
from .radii import Method, within

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_SIZES = (300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
_PAIR = "T2,T3"
# Points of the untimed call. A few would not reach the solver that many points have.
_WARM = {"les": 3000}


@dataclass(frozen=True)
class Scaling(Experiment):
    """One pair, T2 and T3, by four methods at growing N: seconds, memory, and the distance.

    The two tori of a trial and N are the same for all methods. Everything is timed in this
    process after an untimed call on a few points, which pays for imports and compilation. LES
    reads rows by blocks from N = 50,000 on. `--full` takes the peers to the paper's 10⁴ and the
    two that can to 10⁶; `--quick` takes Gromov-Wasserstein and the Geometry Score to 3000, and
    IMD to 300,000.

    Attributes
    ----------
    imd_limit, transport_limit, score_limit
        The largest N of IMD, of Gromov-Wasserstein and of the Geometry Score.
    rounds
        Rounds of the Geometry Score, the paper's n.
    gibibytes
        The memory that counts as too much.
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

    sizes: tuple[int, ...] = _SIZES
    n_eigenvalues: int = 200
    gamma: float = 1e-8
    imd_limit: int = 1_000_000
    transport_limit: int = 10_000
    score_limit: int = 10_000
    rounds: int = 2000
    gibibytes: float = 24.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for size in self.sizes:
            _check.positive_int("sizes", size, minimum=self.n_eigenvalues)
        for name in ("imd_limit", "transport_limit", "score_limit"):
            _check.positive_int(name, getattr(self, name), minimum=min(self.sizes))
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
        limits = {
            "imd": self.imd_limit,
            "geometry-score": self.score_limit,
            "gromov-wasserstein": self.transport_limit,
        }
        return [
            Stage((method.distance,), (size,))
            for method in self.panels
            for size in sorted(self.sizes)
            if size <= limits.get(method.distance, size)
        ]

    def run_task(self, task: Task) -> list[Row]:
        """Sample T2 and T3, and measure their distance, its time and its memory."""
        size = int(task.value)
        rng = np.random.default_rng([self.seed, task.trial, size])
        pair = torus2(torus_angles(size, rng=rng)), torus3(torus_angles(size, rng=rng))
        return [self._measure(method, *pair) for method in within(self.panels, task.methods)]

    def pairs(self, method: str) -> tuple[str, ...]:
        """Return the one pair."""
        return (_PAIR,)

    def _measure(self, method: Method, first: FloatArray, second: FloatArray) -> Row:
        options = dict(method.options)
        few = _WARM.get(method.distance, self.n_eigenvalues)
        warm = {**options, "n_rounds": 1} if "n_rounds" in options else options
        ua.distance(first[:few], second[:few], method.distance, **warm)
        with PeakMemory() as memory:
            started = time.perf_counter()
            found = ua.distance(first, second, method.distance, **options)
            seconds = time.perf_counter() - started
        row = {"method": method.distance, "pair": _PAIR, "distance": found}
        return {**row, "seconds": seconds, "mebibytes": memory.mebibytes}

    def claims(self, table: pd.DataFrame) -> list[Claim]:
        """Return what the paper says of time and stability, and how far LES goes."""
        there, claims = set(table["method"]), []
        if there >= {"les", "imd"}:
            claims.append(_order_claim(table))
            claims += [_time_claim(table, self.panels)] if len(there) > 2 else []
        if "les" in there:
            claims += [_stability_claim(table, self.panels)] if len(there) > 1 else []
            claims.append(_reach_claim(self._growth(table), table, within(self.panels, there)))
        return claims

    def notes(self, table: pd.DataFrame) -> list[str]:
        """Return where each method would take an hour or exceed the memory."""
        methods = {m.distance: m.label for m in within(self.panels, table["method"])}
        return limits_table(self._growth(table), methods, self.gibibytes)

    def _growth(self, table: pd.DataFrame) -> dict[str, Growth]:
        return {name: grow(table, name) for name in table["method"].unique()}

    def draw(self, table: pd.DataFrame) -> Figure:
        """Return Fig. 2: run time with what is extrapolated dotted, and normalised distance.

        All distances are divided by their means at one N, as in the paper: at the largest that
        every method reached. Divided each at its own, a method that stops early would look
        steadier than one that goes on.
        """
        figure, (left, right) = figures.panels(2, width=5.2, height=4.2)
        methods = within(self.panels, table["method"])
        reference = common_size(table)
        for i, method in enumerate(methods):
            rows = table[table["method"] == method.distance]
            times = summary(rows, "N", "seconds").sort_values("N")
            growth = grow(table, method.distance)
            _line(left, times, method.label, i)
            end = min(growth.hour, growth.full(self.gibibytes))
            last = float(times["N"].iloc[-1])
            if np.isfinite(end) and end > last:
                seconds = [growth.seconds(last), growth.seconds(end)]
                left.plot([last, end], seconds, ":", color=figures.COLOURS[i])
                left.plot(end, seconds[1], "x", color=figures.COLOURS[i], markersize=8)
            values = summary(rows, "N").sort_values("N")
            there = values["N"] == reference
            values[["mean", "min", "max"]] /= float(values.loc[there, "mean"].iloc[0])
            # All are 1 at the reference, where markers would only hide each other.
            _line(right, values, method.label, i).set_markevery(list(~there))
        _dress(left, right, reference, self.gibibytes)
        return figure


def common_size(table: pd.DataFrame) -> float:
    """Return the largest N that every method reached; the paper's is 10⁴."""
    return float(table.groupby("method")["N"].max().min())


def _line(axes: Axes, means: pd.DataFrame, label: str, number: int) -> Line2D:
    """Draw one method's mean, and a band from the least to the most of its trials."""
    # A standard deviation below the mean may be no time at all, which no log axis shows.
    x, mean, least, most = (means[name].to_numpy() for name in ("N", "mean", "min", "max"))
    colour, form = figures.COLOURS[number], f"{'osD^'[number]}-"
    axes.fill_between(x, least, most, color=colour, alpha=0.2, linewidth=0)
    return axes.plot(x, mean, form, color=colour, label=label, markersize=5)[0]


def _dress(left: Axes, right: Axes, reference: float, gibibytes: float) -> None:
    """Give both panels their scales and words."""
    left.axhline(HOUR, color="0.5", lw=0.8, ls="--")
    where = left.get_yaxis_transform()
    left.text(0.02, HOUR * 1.15, "one hour", color="0.35", fontsize=8, transform=where)
    left.set(xscale="log", yscale="log", xlabel="N", ylabel="seconds per pair", title="Run time")
    left.set_ylim(top=HOUR * 4)
    left.legend(
        loc="lower right",
        fontsize=8,
        title="band: least to most of the trials\n"
        f"dotted: extrapolated to an hour\nor {gibibytes:g} GiB (×)",
        title_fontsize=7,
    )
    right.axhline(1.0, color="0.5", lw=0.8, ls="--")
    right.axvline(reference, color="0.5", lw=0.8, ls="--")
    told = f" N = {reference:,.0f}: all 1 by definition"
    right.text(reference, 0.02, told, fontsize=8, transform=right.get_xaxis_transform())
    right.set(xscale="log", xlabel="N", title="Normalised distance")
    right.set_ylabel(f"$d(T_2, T_3)$ / its mean at N = {reference:,.0f}")
    right.set_ylim(bottom=0.0)


def _mean_at(table: pd.DataFrame, method: str, size: float, quantity: str) -> float:
    rows = table[(table["method"] == method) & (table["N"] == size)]
    return float(rows[quantity].mean())


def _time_claim(table: pd.DataFrame, methods: tuple[Method, ...]) -> Claim:
    size = common_size(table)
    seconds = {
        m.distance: _mean_at(table, m.distance, size, "seconds")
        for m in within(methods, table["method"])
    }
    slow = [value for name, value in seconds.items() if name not in ("les", "imd")]
    told = ", ".join(
        f"{m.label} {seconds[m.distance]:.3g} s" for m in methods if m.distance in seconds
    )
    return Claim(
        "Fig. 2a",
        "LES and IMD take significantly less time than GW and GS (bar: a tenth)",
        f"at N = {size:,.0f}: {told}",
        10.0 * max(seconds["les"], seconds["imd"]) <= min(slow),
    )


def _order_claim(table: pd.DataFrame) -> Claim:
    size = common_size(table)
    les, imd = (_mean_at(table, name, size, "seconds") for name in ("les", "imd"))
    return Claim(
        "Section 5.1",
        "LES takes more time than IMD",
        f"{les / imd:.1f} times as much at N = {size:,.0f}",
        les > imd,
    )


def _stability_claim(table: pd.DataFrame, methods: tuple[Method, ...]) -> Claim:
    reference = common_size(table)
    worst = {}
    for method in within(methods, table["method"]):
        rows = table[(table["method"] == method.distance) & (table["N"] <= reference)]
        means = rows.groupby("N")["distance"].mean()
        worst[method.distance] = float((means / means[reference] - 1.0).abs().max())
    told = ", ".join(f"{m.label} {worst[m.distance]:.1%}" for m in methods if m.distance in worst)
    return Claim(
        "Fig. 2b",
        "LES is the most robust to different sample sizes",
        f"largest change of the mean d(T2,T3) against N = {reference:,.0f}: {told}",
        worst["les"] == min(worst.values()),
    )


def _reach_claim(growth: dict[str, Growth], table: pd.DataFrame, methods: list[Method]) -> Claim:
    reach = table.groupby("method")["N"].max()
    largest = float(reach["les"])
    seconds = {m.label: growth[m.distance].seconds(largest) for m in methods}
    told = ", ".join(
        f"{m.label} {seconds[m.label]:,.3g} s"
        + ("" if reach[m.distance] == largest else " (extrapolated)")
        for m in methods
    )
    return Claim(
        "this project",
        "LES goes on where others stop (bar: its largest N within an hour)",
        f"at N = {largest:,.0f}: {told}",
        seconds["LES"] < HOUR,
    )
