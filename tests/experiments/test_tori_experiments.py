"""The experiments on tori say what their measurements say, and nothing else."""

import math

import numpy as np
import pandas as pd
import pytest

from unaligned.experiments.aligned import Aligned
from unaligned.experiments.base import reproduce
from unaligned.experiments.radii import PAIRS, RISING, Method, crossing, say_crossing, trend_claim
from unaligned.experiments.tori import METHODS, Tori

SCALES = (0.2, 0.4, 0.6, 0.8, 1.0)


def made_up(slope_same, slope_other, *, methods=("les",), trials=2):
    """Return a table with straight lines: d(T2,T2Sc) falls and d(T2,T3Sc) rises with c."""
    rows = []
    for trial in range(trials):
        for c in SCALES:
            for method in methods:
                for pair in (",".join(p) for p in PAIRS):
                    value = slope_same * (1 - c) if pair in RISING else slope_other * c
                    value = 26.0 + 0.01 * trial if pair == "T2,T3" else value + 0.1
                    row = {"trial": trial, "c": c, "method": method, "pair": pair}
                    rows.append({**row, "distance": value})
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("same", "other"), [(1.0, 1.0), (3.0, 1.0), (1.0, 2.5), (7.0, 3.0), (1.0, 3.9)]
)
def test_the_crossing_of_straight_lines_is_where_they_cross(same, other):
    # same (1 - c) = other c
    assert crossing(made_up(same, other), "les") == pytest.approx(same / (same + other))


def test_curves_that_do_not_cross_are_said_not_to():
    assert crossing(made_up(0.1, 9.0), "les") == -math.inf
    assert say_crossing(-math.inf, SCALES) == "below c = 0.2"


def test_scale_above_dimension_from_the_start_is_never_told_apart():
    table = made_up(1.0, 1.0)
    table.loc[table["pair"] == "T2,T2Sc", "distance"] = 50.0
    assert crossing(table, "les") == math.inf
    assert "never" in say_crossing(math.inf)


def test_a_trend_that_breaks_in_one_step_fails_and_is_named():
    table, method = made_up(1.0, 1.0), Method("LES", "les")
    assert trend_claim(table, method, "").passed
    table.loc[(table["pair"] == "T3,T3Sc") & (table["c"] == 0.4), "distance"] = 0.0
    broken = trend_claim(table, method, "")
    assert broken.passed is False
    assert "not monotone: d(T3,T3Sc) in 1 of 4 steps, by up to 0.5" in broken.measured


def test_verdicts_follow_the_data():
    names = [method.distance for method in METHODS]
    good = {c.expected[:25]: c.passed for c in Tori().claims(made_up(1.0, 2.0, methods=names))}
    bad = {c.expected[:25]: c.passed for c in Tori().claims(made_up(2.0, 1.0, methods=names))}
    assert good["LES: d(T2,T2Sc) and d(T2,"]  # crosses at 1/3
    assert not bad["LES: d(T2,T2Sc) and d(T2,"]  # crosses at 2/3
    assert good["LES at c = 1: mean d(T2,T"]  # 26 / 0.1
    noisy = made_up(1.0, 2.0, methods=names)
    noisy.loc[(noisy["pair"] == "T2,T2Sc") & (noisy["c"] == 1.0), "distance"] = 1.0
    noisy.loc[(noisy["pair"] == "T2,T3") & (noisy["trial"] == 1), "distance"] = 40.0
    found = {c.expected[:25]: c.passed for c in Tori().claims(noisy)}
    assert not found["LES at c = 1: mean d(T2,T"]
    assert not found["LES: the standard deviati"]


@pytest.fixture(scope="module")
def tori(tmp_path_factory):
    small = Tori(n_trials=2, n_samples=300, n_eigenvalues=100, scales=(0.2, 0.6, 1.0))
    return reproduce(small, tmp_path_factory.mktemp("tori"), progress=False)


def test_small_tori_already_show_the_trends_of_the_paper(tori):
    trends = [claim for claim in tori.claims if "as c falls" in claim.expected]
    assert len(trends) == len(METHODS)
    assert all(claim.passed for claim in trends)


def test_les_crosses_lower_than_imd(tori):
    assert crossing(tori.table, "les") < crossing(tori.table, "imd-diffusion")


def test_the_figure_has_a_panel_per_method_and_a_line_per_pair(tori):
    figure = tori.experiment.draw(tori.table)
    assert [axes.get_title() for axes in figure.axes] == [m.label for m in METHODS]
    styles = [line.get_linestyle() for line in figure.axes[0].lines]
    assert styles == ["--" if dashed else "-" for dashed in PAIRS.values()]


@pytest.fixture(scope="module")
def aligned(tmp_path_factory):
    small = Aligned(n_trials=2, n_samples=30, scales=(0.3, 1.0))
    return reproduce(small, tmp_path_factory.mktemp("aligned"), progress=False)


def test_les_is_below_the_log_euclidean_distance_in_every_pair(aligned):
    # Proposition 1.
    assert aligned.claims[0].passed is True
    assert "broken in 0 of 24 pairs" in aligned.claims[0].measured


def test_coupled_tori_of_the_same_radius_are_the_same(aligned):
    table = aligned.table
    same = table[(table["c"] == 1.0) & table["pair"].isin(["T2,T2Sc", "T3,T3Sc"])]
    np.testing.assert_allclose(same["distance"], 0.0, atol=1e-6)


def test_a_broken_bound_would_be_reported(aligned):
    table = aligned.table.copy()
    table.loc[table["method"] == "les", "distance"] *= 10.0
    claim = aligned.experiment.claims(table)[0]
    assert claim.passed is False


def test_an_observation_is_neither_pass_nor_fail(aligned):
    assert aligned.claims[-1].verdict == "observed"
