"""Run time and stability: measurements, power laws, extrapolation and claims."""

import math
import sys
import time

import numpy as np
import pandas as pd
import pytest

from unaligned.defaults import STREAM_ROWS
from unaligned.errors import InputError
from unaligned.experiments.reproduction import reproduce
from unaligned.experiments.scaling import (
    HOUR,
    Growth,
    PeakMemory,
    PowerLaw,
    Scaling,
    common_size,
    fit,
    limits_table,
)

for package in ("ot", "gudhi"):
    pytest.importorskip(package, reason="the experiment compares with them")

TINY = {
    "sizes": (60, 100, 160, 250),
    "n_eigenvalues": 40,
    "transport_limit": 160,
    "score_limit": 100,
    "rounds": 5,
}


def made_up(*, exponents=(1, 1, 1, 3), values=(25.0, 50.0, 0.1, 1.0), drift=(0, 0, 0, 0)):
    """Return times that grow as powers of N, and distances that drift with N."""
    rows = []
    for name, power, value, move in zip(Scaling().methods, exponents, values, drift, strict=True):
        for size in (1000.0, 10_000.0, 100_000.0):
            unit = 1e-4 if name in ("les", "imd") else 1e-2
            seconds = unit * (2.0 if name == "les" else 1.0) * (size / 1000) ** power
            row = {"trial": 0, "N": size, "method": name, "pair": "T2,T3"}
            found = value * (1 + move * math.log10(1e5 / size))
            rows.append({**row, "distance": found, "seconds": seconds, "mebibytes": size / 100})
    return pd.DataFrame(rows)


def verdicts(table):
    return {claim.source: claim.passed for claim in Scaling().claims(table)}


@pytest.fixture(scope="module")
def scaling(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scaling")
    with pytest.MonkeyPatch.context() as patch:  # drawing takes longer than the tasks
        patch.setattr("unaligned.figures.save", lambda figure, path: path.touch())
        return reproduce(Scaling(n_trials=2, **TINY), folder, progress=False), folder


def test_methods_run_up_to_their_own_limit(scaling):
    reach = scaling[0].table.groupby("method")["N"].max()
    assert reach.to_dict() == {
        "les": 250,
        "imd": 250,
        "geometry-score": 100,
        "gromov-wasserstein": 160,
    }
    assert (scaling[0].table["seconds"] > 0).all()
    assert common_size(scaling[0].table) == 100


def test_the_slowest_stage_may_have_fewer_trials(scaling, tmp_path):
    full, few = scaling[0].experiment, Scaling(n_trials=2, transport_trials=1, **TINY)
    names = ["gromov-wasserstein", "les"]
    found = reproduce(few, tmp_path, only=names, progress=False).table
    count = found.groupby(["method", "N"]).size()
    assert count["gromov-wasserstein", 160] == 1
    assert set(count.drop(("gromov-wasserstein", 160))) == {2}
    more = reproduce(full, tmp_path, only=names, progress=False).table
    assert set(more.groupby(["method", "N"]).size()) == {2}
    kept = more.merge(found, on=["trial", "method", "N", "seconds"])
    assert len(kept) == len(found)  # only the missing trial was run
    assert few.notes(found)[0] == "Gromov-Wasserstein has 1 of 2 trials at N = 160."


def test_distances_are_reproducible(scaling, tmp_path):
    again = reproduce(Scaling(n_trials=2, **TINY), tmp_path, only=["les"], progress=False)
    first = scaling[0].table
    first = first[first["method"] == "les"]["distance"].to_numpy()
    np.testing.assert_array_equal(again.table["distance"], first)


def test_times_are_restored_from_disk(scaling):
    report, folder = scaling
    again = reproduce(report.experiment, folder, progress=False)
    pd.testing.assert_frame_equal(again.table, report.table, check_exact=True)


def test_results_state_what_is_extrapolated(scaling):
    text = (scaling[1] / "RESULTS.md").read_text()
    assert "extrapolated, not run, from power laws fitted" in text
    assert "| method | largest N run | time grows as | an hour at N |" in text
    assert "over 2 trials, seconds:" in text
    means = pd.read_csv(scaling[1] / "scaling.csv")
    assert set(means["quantity"]) == {"distance", "seconds", "mebibytes"}


def test_figure_normalises_at_the_largest_common_size(scaling):
    _, right = scaling[0].experiment.draw(scaling[0].table).axes
    assert "N = 100" in right.get_ylabel()
    for line in right.lines[:4]:
        at = np.flatnonzero(line.get_xdata() == 100)
        np.testing.assert_allclose(line.get_ydata()[at], 1.0)


def test_bands_span_the_range_of_the_trials(scaling):
    table = scaling[0].table.copy()
    one = (table["method"] == "les") & (table["trial"] == 0)
    table.loc[one, "seconds"] *= 100.0  # the std is more than the mean
    left, _ = scaling[0].experiment.draw(table).axes
    heights = left.collections[0].get_paths()[0].vertices[:, 1]
    les = table[table["method"] == "les"]["seconds"]
    assert heights.min() == les.min() > 0
    assert heights.max() == les.max()
    assert "band: range of the trials" in left.get_legend().get_title().get_text()


def test_markers_are_omitted_where_all_lines_meet(scaling):
    _, right = scaling[0].experiment.draw(scaling[0].table).axes
    for line in right.lines[:4]:
        np.testing.assert_array_equal(line.get_markevery(), line.get_xdata() != 100)


def test_verdicts_follow_the_data():
    good = verdicts(made_up(drift=(0.01, 0.2, 0.2, 0.2)))
    assert good == {"Section 5.1": True, "Fig. 2a": True, "Fig. 2b": True, "this project": True}
    assert verdicts(made_up(drift=(0.3, 0.2, 0.2, 0.2)))["Fig. 2b"] is False
    slow = made_up()
    slow.loc[slow["method"] == "les", "seconds"] *= 1e6
    assert verdicts(slow)["Fig. 2a"] is False
    assert verdicts(slow)["this project"] is False
    fast = made_up()
    fast.loc[fast["method"] == "les", "seconds"] /= 10
    assert verdicts(fast)["Section 5.1"] is False


@pytest.mark.parametrize(("factor", "exponent"), [(2e-9, 3.0), (1e-5, 1.0), (0.3, 0.5)])
def test_fit_recovers_a_power_law(factor, exponent):
    sizes = np.array([1e3, 3e3, 1e4])
    law = fit(sizes, factor * sizes**exponent)
    assert law.exponent == pytest.approx(exponent)
    assert law.at(law.reaches(HOUR)) == pytest.approx(HOUR)


def test_too_few_points_and_flat_laws_are_not_extrapolated():
    assert fit(np.array([10.0]), np.array([1.0])) is None
    assert fit(np.array([10.0, 20.0]), np.array([1.0, 2.0]), least=5.0) is None
    for exponent in (-0.3, 0.0, 0.005):
        assert PowerLaw(1.0, exponent).reaches(HOUR) == math.inf
    assert math.isnan(Growth(10.0, 1.0, None, None).hour)


def test_extrapolated_time_is_at_least_linear():
    flat = Growth(1e6, 30.0, PowerLaw(1.0, 0.3), None)
    assert flat.hour == pytest.approx(1e6 * HOUR / 30.0)
    steep = Growth(1e3, 30.0, PowerLaw(3e-8, 3.0), None)
    assert steep.seconds(1e4) == pytest.approx(3e4)


def test_fit_uses_the_largest_sizes():
    table = made_up()
    table.loc[table["N"] == 1000.0, ["seconds"]] = 50.0  # an overhead of small ones
    more = table[table["N"] == 100_000.0].assign(N=1e6)
    more["seconds"] = 10 * table[table["N"] == 100_000.0]["seconds"]
    law = Growth.of(pd.concat([table, more]), "les").time
    assert law.exponent == pytest.approx(1.0)


def test_les_is_fitted_where_it_streams():
    # The exponent is meaningful only where one algorithm runs at all sizes of the fit.
    for mode in (Scaling.quick, Scaling.full):
        tasks = [task for stage in Scaling(**mode).tasks(["les"]) for task in stage]
        assert sorted({task.value for task in tasks})[-3] >= STREAM_ROWS


def test_table_marks_flat_laws_and_assumed_growth():
    laws = {
        "les": Growth(1e6, 30.0, PowerLaw(1.0, 0.37), PowerLaw(9e3, -0.31)),
        "imd": Growth(1e5, 30.0, PowerLaw(1e-5, 1.22), PowerLaw(1e-2, 1.08)),
    }
    laws["near"] = Growth(1e6, 30.0, PowerLaw(3e-5, 0.996), None)
    _, table = limits_table(laws, {name: name for name in laws}, 24.0)
    les, imd, near = table.splitlines()[2:]
    assert "| N^0.37 so far, then N | 120,000,000 | does not grow | unknown | time |" in les
    assert "| N^1.22 |" in imd
    assert "| N^1.08 |" in imd
    assert "| N^1.00 | 120,000,000 | not measurable |" in near


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_peak_memory_includes_freed_arrays():
    with PeakMemory() as memory:
        large = np.ones((64, 1 << 20))  # 512 MiB
        time.sleep(0.3)  # the memory is polled every 10 ms
        del large
        np.ones((16, 1 << 20)).sum()
    assert 500 < memory.mebibytes < 700


def test_invalid_settings_raise():
    with pytest.raises(InputError, match=r"sizes=100 must be at least 200"):
        Scaling(sizes=(100, 1000))
    with pytest.raises(InputError, match=r"transport_limit=10 must be at least 300"):
        Scaling(transport_limit=10)
