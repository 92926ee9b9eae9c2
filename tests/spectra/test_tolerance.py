"""What `tol=None` means, and the announcement of long work."""

import numpy as np
import pytest

import unaligned as ua
from unaligned import cost
from unaligned._format import duration
from unaligned.data.dataset import Dataset
from unaligned.errors import CostWarning, InputError
from unaligned.spectra import auto, prices
from unaligned.spectra.base import Accuracy
from unaligned.spectra.blocks import sampling_noise
from unaligned.spectra.exact import Exact
from unaligned.spectra.krylov import Krylov
from unaligned.spectra.pipeline import SignatureSettings

NOISE = np.random.default_rng(0).normal(size=(1500, 12))
RELAXED = Accuracy(relaxed=lambda: 0.3)


@pytest.mark.parametrize(("n", "tol"), [(1000, 1e-4), (20_000, 1e-4), (50_000, 0.3), (10**6, 0.3)])
def test_affordable_work_decides(n, tol):
    assert prices.affordable(RELAXED, n, 200).tol == tol
    assert prices.affordable(Accuracy(), n, 200).tol == 1e-4


def test_small_data_has_the_strict_tolerance():
    found = ua.signature(NOISE[:400], n_eigenvalues=30)
    assert found.recipe.tol == 1e-4
    assert found.total_error_bound < 1e-4
    assert "sampling_noise" not in found.stats


def test_expensive_data_has_a_tolerance_by_its_noise(monkeypatch):
    monkeypatch.setattr(prices, "AFFORDABLE", 0.0)
    monkeypatch.setattr(auto, "sampled_pays", lambda *_: True)
    found = ua.signature(NOISE, n_eigenvalues=40)
    noise = found.stats["sampling_noise"]
    assert found.recipe.tol == max(0.05, noise / 5)
    assert f"sampling noise about {noise:.2g}" in repr(found)
    assert found.stats["chosen"] in ("sampled", "krylov")
    exact = ua.signature(NOISE, n_eigenvalues=40, solver="exact")
    assert np.linalg.norm(found.values - exact.values) <= found.total_error_bound
    given = ua.signature(NOISE, n_eigenvalues=40, tol=1e-6)
    assert given.recipe.tol == 1e-6
    assert given.total_error_bound < 1e-6


def test_the_sampled_solver_has_that_tolerance_too(monkeypatch):
    monkeypatch.setattr(prices, "AFFORDABLE", 0.0)
    found = ua.signature(NOISE, n_eigenvalues=40, solver="sampled")
    assert found.recipe.tol == max(0.05, found.stats["sampling_noise"] / 5)
    assert found.bound_kind == "statistical"


@pytest.mark.parametrize("d", [2, 12])
def test_sampling_noise_is_the_distance_of_two_samples(d):
    rng, settings = np.random.default_rng(1), SignatureSettings()
    samples = rng.normal(size=(4, 900, d))
    values = [ua.signature(points, n_eigenvalues=30).values for points in samples]
    pairs = [np.sum((values[i] - values[j]) ** 2) for i in range(4) for j in range(i)]
    estimates = [sampling_noise(Dataset(points), settings, 30, 0) for points in samples]
    assert 0.4 < np.mean(estimates) / np.sqrt(np.mean(pairs)) < 2.5


def test_long_work_is_announced_with_the_cost_of_a_subsample():
    with pytest.warns(CostWarning, match=r"about \d+ min for 100,000 rows.*subsample=6000: about"):
        prices.announce("krylov", 100_000, 200, prices.krylov_price(100_000, 200, tiled=True))
    prices.announce("exact", 3000, 200, prices.exact_price(3000))  # no warning: an error in tests


@pytest.mark.parametrize("solver", ["exact", "krylov", "nystrom", "sampled"])
def test_a_solver_that_was_asked_for_is_announced(monkeypatch, solver):
    monkeypatch.setattr(prices, "RATE", 1.0)
    with pytest.warns(CostWarning, match=f"^dataset 'noise': solver='{solver}' will take about"):
        ua.signature(ua.Dataset(NOISE[:400], name="noise"), n_eigenvalues=30, solver=solver, tol=1)


@pytest.mark.parametrize("solver", ["auto", "exact", "krylov", "nystrom", "sampled"])
def test_other_processes_announce_before_they_begin(monkeypatch, solver):
    begun, named = [], "(krylov|exact)" if solver == "auto" else solver
    monkeypatch.setattr(prices, "RATE", 1.0)
    monkeypatch.setattr(prices, "AFFORDABLE", 0.0)

    def job(*_, **__):
        begun.append(True)
        raise KeyboardInterrupt

    monkeypatch.setattr("unaligned.execution.collect", job)
    announced = pytest.warns(CostWarning, match=f"'large': solver='{named}' will take")
    data = {"small": NOISE[:1000], "large": NOISE}
    with announced, pytest.raises(KeyboardInterrupt):
        ua.compare(data, solver=solver, engine="processes", tol=1e-5)
    assert begun


def test_landmarks_are_announced_once_their_number_is_known(monkeypatch):
    monkeypatch.setattr(prices, "RATE", 1.0)
    angles = np.random.default_rng(0).uniform(0, 6, size=(52_000, 1))
    rows = ua.Dataset(np.hstack([np.cos(angles), np.sin(angles)]), name="circle")
    with pytest.warns(
        CostWarning, match=r"'circle': solver='landmarks' will take about .* 52,000"
    ):
        ua.signature(rows, n_eigenvalues=20)


def test_the_datasets_of_one_call_are_announced_as_a_sum(monkeypatch):
    price = prices.exact_price(1500)
    monkeypatch.setattr(prices, "RATE", price / 10.0)  # ten seconds for 1500 rows
    rng = np.random.default_rng(0)
    data = {f"x{i}": rng.normal(size=(1500, 3)) for i in range(8)} | {"half": NOISE[:750, :3]}
    announced = r"about 10 s for 1,500 rows .* 9 datasets about 82 s"
    with pytest.warns(CostWarning, match=announced) as caught:
        ua.compare(data, n_eigenvalues=20, solver="exact")
    assert len(caught) == 1
    assert "subsample" not in str(caught[0].message)  # 6000 rows are more than there are
    ua.compare(dict(list(data.items())[:5]), n_eigenvalues=20, solver="exact")  # 50 s: no warning


@pytest.mark.parametrize(("solver", "total"), [("sampled", "75 s"), ("krylov", "62 s")])
def test_a_sum_grows_as_the_work_of_the_solver(monkeypatch, solver, total):
    monkeypatch.setattr(prices, "RATE", 1.0)
    with (
        prices.announced_together([8000, 4000]),
        pytest.warns(CostWarning, match=f"50 s for 8,000 rows .* 2 datasets about {total}"),
    ):
        prices.announce(solver, 8000, 20, 50.0)


@pytest.mark.parametrize("seed", range(3))
def test_blocks_of_mostly_copies_have_a_noise(monkeypatch, seed):
    monkeypatch.setattr(prices, "AFFORDABLE", 0.0)
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(6000, 12))
    points[rng.random(6000) < 0.69] = 0.0  # 48 % of pairs, more than half in some blocks
    assert 0.05 < ua.estimate(points, n_eigenvalues=20).sampling_noise < 20.0
    settings = SignatureSettings(n_eigenvalues=20)
    assert 0.0 < sampling_noise(Dataset(points), settings, 20, seed) < 20.0


def test_a_subsample_has_the_cost_of_the_same_solver():
    exact, krylov = Exact(), Krylov()
    with pytest.warns(CostWarning, match="subsample=6000: about 11 s"):
        prices.announce_solver(exact, 20_000, 200, Accuracy(), "dense")
    with pytest.warns(CostWarning, match="subsample=6000: about 1 s"):
        prices.announce_solver(krylov, 60_000, 200, Accuracy(), "tiled")


def test_estimate_of_too_many_components_names_the_whole_data():
    with pytest.raises(InputError, match=r"'pca:13' needs at least 13.*shape \(1500, 12\)"):
        ua.estimate(NOISE, n_eigenvalues=20, preprocess="pca:13")


def test_estimate_counts_a_subsample():
    points = np.random.default_rng(0).normal(size=(2000, 30))
    assert ua.estimate(points, n_eigenvalues=20, subsample=500).n_samples == 500
    assert ua.estimate(points, n_eigenvalues=20).error == 1e-4


@pytest.mark.parametrize(("seconds", "named"), [(9.0, False), (100.0, True)])
def test_estimate_names_a_cheaper_subsample_of_long_work(monkeypatch, seconds, named):
    def counted(datasets, settings):
        n = datasets[0].n_samples
        return cost.Estimate("exact", seconds * n / 9000 / 2, 1, n, 2, 20, "Counted")

    monkeypatch.setattr(cost, "_of_all", counted)
    found = cost.estimate(np.random.default_rng(0).normal(size=(18_000, 2)))
    assert found.cheaper == ((f"subsample=6000: about {duration(seconds / 3)}",) if named else ())


def test_estimate_shows_sampling_noise(monkeypatch):
    monkeypatch.setattr(prices, "AFFORDABLE", 0.0)
    points = np.random.default_rng(0).normal(size=(4000, 30))
    relaxed = ua.estimate(points, n_eigenvalues=20)
    assert relaxed.error >= 0.05
    assert f"sampling noise about {relaxed.sampling_noise:.2g}" in str(relaxed)
    both = ua.estimate([points, points[:2000]], n_eigenvalues=20)
    assert both.error >= relaxed.error
    assert both.sampling_noise >= relaxed.sampling_noise


@pytest.mark.parametrize("tol", [0.1, 1e-3])
def test_estimate_counts_exact_products_after_sampling(tol):
    points = np.random.default_rng(0).normal(size=(4000, 30))
    found = ua.estimate(points, n_eigenvalues=20, solver="sampled", tol=tol)
    assert found.solver == "sampled"
    assert ("exact products" in found.reason) == (tol < 0.02)
