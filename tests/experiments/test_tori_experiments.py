"""The experiments on tori: crossings, trends and verdicts follow from the measurements."""

import math

import numpy as np
import pandas as pd
import pytest

from unaligned.experiments.aligned import Aligned
from unaligned.experiments.reproduction import reproduce
from unaligned.experiments.topology import Topology
from unaligned.experiments.tori import (
    PAIRS,
    RISING,
    Method,
    Tori,
    crossing,
    crossing_text,
    trend_claim,
)

for package in ("ot", "gudhi", "ripser"):
    pytest.importorskip(package, reason="the experiments compare with them")

SCALES = (0.2, 0.4, 0.6, 0.8, 1.0)


def made_up(slope_same, slope_other, *, methods=("les",), trials=2):
    """Return a table with straight lines: d(T2,T2Sc) falls and d(T2,T3Sc) rises with c."""
    rows = []
    for trial in range(trials):
        for c in SCALES:
            for method in methods:
                for pair in PAIRS:
                    value = slope_same * (1 - c) if pair in RISING else slope_other * c
                    value = 26.0 + 0.01 * trial if pair == "T2,T3" else value + 0.1
                    row = {"trial": trial, "c": c, "method": method, "pair": pair}
                    rows.append({**row, "distance": value})
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("same", "other"), [(1.0, 1.0), (3.0, 1.0), (1.0, 2.5), (7.0, 3.0), (1.0, 3.9)]
)
def test_crossing_of_straight_lines(same, other):
    # same (1 - c) = other c
    assert crossing(made_up(same, other), "les") == pytest.approx(same / (same + other))


def test_crossing_is_minus_infinity_without_a_crossing():
    assert crossing(made_up(0.1, 9.0), "les") == -math.inf
    assert crossing_text(-math.inf) == "below the smallest c"


def test_crossing_is_infinite_where_scale_dominates():
    table = made_up(1.0, 1.0)
    table.loc[table["pair"] == "T2,T2Sc", "distance"] = 50.0
    assert crossing(table, "les") == math.inf
    assert "not separated" in crossing_text(math.inf)


def test_broken_trend_fails_and_names_the_pair():
    table, method = made_up(1.0, 1.0), Method("LES", "les")
    assert trend_claim(table, method, "").passed
    table.loc[(table["pair"] == "T3,T3Sc") & (table["c"] == 0.4), "distance"] = 0.0
    broken = trend_claim(table, method, "")
    assert broken.passed is False
    assert "not monotone: d(T3,T3Sc) in 1 of 4 steps, by up to 0.5" in broken.measured


def test_one_value_of_c_has_no_trend():
    table = made_up(1.0, 1.0, methods=["les", "imd"])
    claims = Tori().claims(table[table["c"] == 1.0])
    assert [c.passed for c in claims if "as c falls" in c.expected] == [None, None]


def test_verdicts_follow_the_data():
    names = Tori().methods
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


def test_unexpected_trends_of_a_peer_fail_the_claim():
    with_trends = made_up(1.0, 2.0, methods=["imd"])
    claim = Tori().claims(with_trends)[0]
    assert claim.expected.startswith("IMD: does not show")
    assert claim.passed is False
    with_trends.loc[with_trends["c"] == 0.4, "distance"] = 9.0
    assert Tori().claims(with_trends)[0].passed is True


def test_peers_that_cross_lower_than_les_fail_the_claim():
    methods = ["les", "gromov-wasserstein"]
    table = made_up(1.0, 2.0, methods=methods)
    wide = {c.expected[:30]: c for c in Tori().claims(table)}["LES separates dimension from s"]
    assert wide.passed is False  # both cross at the same c
    rows = (table["method"] == "gromov-wasserstein") & (table["pair"] == "T2,T2Sc")
    table.loc[rows, "distance"] *= 3.0
    wide = {c.expected[:30]: c for c in Tori().claims(table)}["LES separates dimension from s"]
    assert wide.passed is True


@pytest.fixture(scope="module")
def tori(tmp_path_factory):
    small = Tori(
        n_trials=2,
        n_samples=300,
        n_eigenvalues=100,
        scales=(0.2, 0.6, 1.0),
        transport_samples=100,
        rounds=10,
    )
    return reproduce(small, tmp_path_factory.mktemp("tori"), progress=False)


def test_small_tori_show_the_trends_of_the_paper(tori):
    trends = {c.expected.split(":")[0]: c for c in tori.claims if ": as c falls" in c.expected}
    assert trends["LES"].passed
    assert trends["IMD (our approach)"].passed
    assert "Gromov-Wasserstein, N = 100" in trends


def test_les_crosses_lower_than_imd(tori):
    assert crossing(tori.table, "les") < crossing(tori.table, "imd-diffusion")


def test_figure_has_a_panel_per_method_and_a_line_per_pair(tori):
    figure = tori.experiment.draw(tori.table)
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert titles == [
        "LES",
        "IMD",
        "IMD (our approach)",
        "Geometry Score, n = 10",
        "Gromov-Wasserstein, N = 100",
    ]
    assert figure.get_supxlabel() == (
        "N = 300 points of each torus, where a panel names no other N; bands: one standard "
        "deviation over 2 trials"
    )
    styles = [line.get_linestyle() for line in figure.axes[0].lines]
    assert styles == ["--" if dashed else "-" for dashed in PAIRS.values()]


def test_picture_shows_the_tori_that_were_compared(tori):
    figure = tori.experiment.pictures(tori.table)["tori-samples"]
    panels = [axes for axes in figure.axes if axes.get_title()]
    assert [p.get_title() for p in panels] == [
        "$T_2$",
        "$T_2^{Sc}$, c = 0.6",  # the nearest to the paper's 0.5 that was run
        "$T_3$",
        "$T_3^{Sc}$, c = 0.6",
    ]
    # The tube of T2 has radius R2 = 3 around the circle of radius R1 = 10, that of T2Sc c R2.
    for panel, radius in zip(panels[:2], (3.0, 1.8), strict=True):
        x, y, z = panel.collections[0]._offsets3d
        assert x.size == tori.experiment.n_samples
        np.testing.assert_allclose(np.hypot(np.hypot(x, y) - 10.0, z), radius, rtol=1e-9)
    (picture,) = (path for path in tori.files if path.name == "tori-samples.png")
    assert picture.read_bytes().startswith(b"\x89PNG")
    results = (picture.parent / "RESULTS.md").read_text(encoding="utf-8")
    assert "![The sampled tori (Appendix B.1)](tori-samples.png)" in results


def test_quick_and_full_differ_as_documented():
    quick, full = Tori(**Tori.quick), Tori(**Tori.full)
    assert (full.n_trials, full.n_samples, full.transport_samples, full.rounds) == (
        10,
        3000,
        3000,
        2000,
    )
    assert quick.n_samples == full.n_samples  # LES and both IMDs are as in the paper


@pytest.fixture(scope="module")
def topology(tmp_path_factory):
    small = Topology(n_trials=1, n_samples=120, n_eigenvalues=60, scales=(0.2, 0.6, 1.0))
    return reproduce(small, tmp_path_factory.mktemp("topology"), progress=False)


def test_topology_compares_les_with_three_bottleneck_distances(topology):
    methods = ["les", "bottleneck-h0", "bottleneck-h1", "bottleneck-h2"]
    assert list(topology.table["method"].unique()) == methods
    width = next(c for c in topology.claims if "wider range" in c.expected)
    assert width.passed is not None
    assert all(panel.label in width.measured for panel in topology.experiment.panels)


def test_one_trial_has_no_bands(topology):
    figure = topology.experiment.draw(topology.table)
    assert figure.get_supxlabel() == "N = 120 points of each torus"


def test_trends_of_bottleneck_distances_are_observations(topology):
    trends = [claim for claim in topology.claims if ": as c falls" in claim.expected]
    assert [claim.passed is None for claim in trends] == [False, True, True, True]


@pytest.fixture(scope="module")
def aligned(tmp_path_factory):
    small = Aligned(n_trials=2, n_samples=30, scales=(0.3, 1.0))
    return reproduce(small, tmp_path_factory.mktemp("aligned"), progress=False)


def test_les_is_below_the_log_euclidean_distance_in_every_pair(aligned):
    # Proposition 1.
    assert aligned.claims[0].passed is True
    assert "broken in 0 of 24 pairs" in aligned.claims[0].measured


def test_aligned_tori_of_the_same_radius_have_distance_zero(aligned):
    table = aligned.table
    same = table[(table["c"] == 1.0) & table["pair"].isin(["T2,T2Sc", "T3,T3Sc"])]
    np.testing.assert_allclose(same["distance"], 0.0, atol=1e-6)


def test_broken_bound_fails_the_claim(aligned):
    table = aligned.table.copy()
    table.loc[table["method"] == "les", "distance"] *= 10.0
    claim = aligned.experiment.claims(table)[0]
    assert claim.passed is False


def test_observation_has_no_verdict(aligned):
    assert aligned.claims[-1].verdict == "observed"


def test_claims_need_their_methods(aligned):
    table = aligned.table[aligned.table["method"].isin(["log-euclidean", "euclidean"])]
    claims = aligned.experiment.claims(table)
    assert not any("Proposition 1" in claim.source for claim in claims)
    assert next(c for c in claims if "wider range" in c.expected).passed is None
