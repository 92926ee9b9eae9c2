"""Sensitivity of LES: conditions, measurements and recommendations."""

import math

import numpy as np
import pandas as pd
import pytest

import unaligned as ua
from unaligned.errors import InputError
from unaligned.experiments.reproduction import reproduce
from unaligned.experiments.sensitivity import (
    Condition,
    Recommendation,
    Sensitivity,
    effects_of,
    recommend,
)

TINY = {
    "n_samples": 200,
    "n_eigenvalues": 100,
    "scales": (0.2, 0.6, 1.0),
    "gammas": (1e-4, 1e-8, 1e-10),
    "eigenvalues": (20, 100),
    "factors": (1.0, 2.0),
    "noises": (0.0, 0.01, 0.2),
    "outliers": (0.0, 0.02),
    "sizes": (100, 400),
}


@pytest.fixture(scope="module")
def sensitivity(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sensitivity")
    with pytest.MonkeyPatch.context() as patch:  # drawing takes longer than the tasks
        patch.setattr("unaligned.figures.save", lambda figure, path: path.touch())
        return reproduce(Sensitivity(n_trials=1, **TINY), folder, progress=False), folder


def test_conditions_are_named_by_their_changes(sensitivity):
    names = set(sensitivity[0].table["method"])
    assert {"default", "gamma=1e-10", "noise=0.01, gamma=1e-10", "n_samples=400"} <= names
    assert {"outliers=0.02", "outliers=0.02, robust=1", "noise=0.2"} <= names
    assert "noise=0.2, gamma=1e-10" not in names  # beyond most_noise
    assert names == set(sensitivity[0].experiment.methods)


def test_shared_spectrum_gives_the_distance_of_a_separate_one(sensitivity):
    experiment = sensitivity[0].experiment
    stage = next(tasks for tasks in experiment.tasks(["gamma=0.0001"]))
    clouds = experiment.clouds(stage[0])
    recipe = {"n_eigenvalues": 100, "gamma": 1e-4, "solver": "exact"}
    alone = ua.distance(clouds["T2"][:200], clouds["T3"][:200], **recipe)
    table = sensitivity[0].table
    row = table[(table["method"] == "gamma=0.0001") & (table["pair"] == "T2,T3")].iloc[0]
    assert row["distance"] == pytest.approx(alone, abs=0.01)


def test_part_of_a_stage_gives_the_same_numbers(sensitivity, tmp_path):
    report = sensitivity[0]
    only = ["n_eigenvalues=20", "noise=0.01"]
    part = reproduce(report.experiment, tmp_path, only=only, progress=False).table
    whole = report.table[report.table["method"].isin(only)]
    np.testing.assert_array_equal(part["distance"], whole["distance"])


def test_smaller_gamma_crosses_lower(sensitivity):
    found = {e.name: e.crossing for e in effects(sensitivity)}
    assert found["gamma=1e-10"] < found["default"] < found["gamma=0.0001"]


def effects(sensitivity):
    return effects_of(sensitivity[0].table, sensitivity[0].experiment.conditions)


def test_robust_removes_most_of_the_effect_of_outliers(sensitivity):
    found = {e.name: e.moved for e in effects(sensitivity)}
    assert found["outliers=0.02, robust=1"] < 0.2 * found["outliers=0.02"]
    assert math.isnan(found["default"])


def test_results_contain_both_tables_and_no_means(sensitivity):
    text = (sensitivity[1] / "RESULTS.md").read_text()
    assert "| γ = 1e-10 |" in text
    assert "| outliers=0.02, robust=1 |" in text
    assert "\nMean " not in text


def test_noise_and_outliers_have_the_requested_size():
    points = np.zeros((1000, 3))
    rng = np.random.default_rng(0)
    noisy = Condition(noise=0.5, n_samples=800).apply(points, rng)
    assert noisy.shape == (800, 3)
    assert noisy.std() == pytest.approx(0.5, rel=0.05)
    dirty = Condition(outliers=0.01, n_samples=1000).apply(points, rng)
    assert dirty.shape == (1000, 3)
    assert np.count_nonzero(dirty.any(axis=1)) == 10
    np.testing.assert_array_equal(Condition().apply(points, rng), points)


def made_up(crossings, moved, resampled=1.0):
    """Return curves of the γ in `crossings` that cross there, without and with noise."""
    rows = []
    for gamma, middle in crossings.items():
        for noise in (0.0, 0.01):
            condition = Condition(gamma=gamma, noise=noise)
            name = condition.name(Condition())
            for c in (0.2, 0.5, 1.0):
                pairs = {"T2,T2Sc": resampled + 10 * (1 - c), "T2,T3": 25.0}
                pairs["T2,T3Sc"] = resampled + 10 * (1 - c) + 5 * (c - middle)
                pairs |= {"T2,clean": moved[gamma]} if noise else {}
                row = {"trial": 0, "c": c, "method": name}
                rows += [{**row, "pair": p, "distance": d} for p, d in pairs.items()]
    return pd.DataFrame(rows)


def recommended(crossings, moved):
    conditions = {
        c.name(Condition()): c
        for noise in (0.0, 0.01)
        for c in [Condition(noise=noise), *(Condition(noise=noise, gamma=g) for g in crossings)]
    }
    return recommend(effects_of(made_up(crossings, moved), conditions), "gamma", Condition())


def test_lowest_crossing_is_recommended():
    best = recommended({1e-4: 0.8, 1e-8: 0.5, 1e-10: 0.3}, {1e-4: 0.1, 1e-8: 0.1, 1e-10: 0.1})
    assert best.best == 1e-10
    assert best.best != best.default
    assert str(best).startswith("best: 1e-10. Highest crossing over noise 0, 0.01, by level:")


def test_unstable_level_is_not_recommended():
    best = recommended({1e-4: 0.8, 1e-8: 0.5, 1e-10: 0.3}, {1e-4: 0.1, 1e-8: 0.1, 1e-10: 1.5})
    assert best.unstable == (1e-10,)
    assert best.best == best.default


def test_default_is_kept_where_it_is_as_good():
    best = recommended({1e-8: 0.5, 1e-10: 0.495}, {1e-8: 0.1, 1e-10: 0.1})
    assert best.best == best.default


def test_lowest_crossing_is_recommended_if_all_levels_are_unstable():
    best = Recommendation(2.0, {1.0: 0.4, 2.0: 0.5}, (1.0, 2.0), (0.0, 0.01))
    assert best.best == 1.0


def test_no_recommendation_without_variation():
    assert recommended({1e-8: 0.5}, {1e-8: 0.1}) is None


def test_invalid_settings_raise():
    with pytest.raises(InputError, match=r"n_samples=300 must be at least 500"):
        Sensitivity(n_samples=300)
    with pytest.raises(InputError, match=r"sizes=100 must be at least 200"):
        Sensitivity(sizes=(100,))
