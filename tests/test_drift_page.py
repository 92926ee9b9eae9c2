"""The history of a drift monitor as a figure and as a page."""

import math
import re

import pytest

from unaligned.errors import InputError, InputTypeError
from unaligned.figures import drift_history
from unaligned.inference.instruments import Reading
from unaligned.inference.verdict import DriftCheck
from unaligned.report.drift import write_drift_report


def check(number, *, name=None, moved=(), **p_values):
    level = 0.01 / len(p_values)
    return DriftCheck(
        name=name or f"day {number}",
        reference="last year",
        p_value=min(1.0, len(p_values) * min(p_values.values())),
        alpha=0.01,
        readings=tuple(Reading(n, p, level, 1.0, 1e-9, 2, 30) for n, p in p_values.items()),
        moved=dict.fromkeys(moved, 1e-9),
        n_samples=60,
        n_reference=600,
        n_eigenvalues=10,
        gamma=1e-8,
        number=number,
        time="2026-01-02T03:04:05+00:00",
    )


def test_each_instrument_is_a_line_and_drifted_batches_are_shaded():
    axes = drift_history(
        [check(1, les=0.5, ks=0.2), check(2, les=0.5, ks=1e-30), check(3, les=0.004)]
    )
    lines = {line.get_label(): line.get_ydata() for line in axes.lines}
    assert list(lines) == ["les", "ks"]
    assert list(lines["les"]) == [0.5, 0.5, 0.004]
    assert list(lines["ks"][:2]) == [0.2, 1e-6]  # smaller ones are drawn at the edge
    assert math.isnan(lines["ks"][2])
    assert axes.get_title() == "2 of 3 batches have drifted from last year"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["day 1", "day 2", "day 3"]
    assert [p.get_x() + 0.5 for p in axes.patches if hasattr(p, "get_x")] == [2, 3]
    (thresholds,) = (p for p in axes.patches if hasattr(p, "get_data"))
    assert list(thresholds.get_data().values) == pytest.approx([0.005, 0.005, 0.01])


def test_many_batches_are_numbered():
    assert drift_history([check(i, les=0.5) for i in range(1, 40)]).get_xlabel() == "batch"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("drift") / "drift.html"
    history = [
        check(1, name="<script>alert(1)</script>", les=0.5, ks=0.2),
        check(2, name="März", moved=["flow"], les=0.5, ks=1e-30),
    ]
    write_drift_report(history, path, title="Sensors & more")
    return path.read_text(encoding="utf-8")


def test_a_page_has_verdicts_figure_and_table(page):
    assert "<title>Sensors &amp; more</title>" in page
    assert re.search("1 of 2 batches has drifted; the first is .*März.*2026-01-02 03:04:05", page)
    assert "600 rows in last year · les, ks at alpha = 0.01 · K = 10, γ = 1e-08" in page
    assert "drift: flow" in page
    assert "data:image/svg+xml;base64," in page
    assert page.count("<tr>") == 3


def test_names_are_text_and_nothing_is_fetched(page):
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "default-src 'none'" in page
    assert not re.search(r"(src|href)=.http", page)


def test_bad_arguments(tmp_path):
    history = [check(1, les=0.5)]
    with pytest.raises(InputError, match=r"must end in \.html"):
        write_drift_report(history, tmp_path / "drift.txt")
    with pytest.raises(InputTypeError, match="title=3 must be text"):
        write_drift_report(history, tmp_path / "drift.html", title=3)
    with pytest.raises(InputError, match="history is empty"):
        write_drift_report([], tmp_path / "drift.html")
    with pytest.raises(InputError, match="history is empty"):
        drift_history([])
