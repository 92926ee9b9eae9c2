"""Streamed landmarks: values and certificate agree with those of the whole data."""

import warnings

import numpy as np
import pytest

import unaligned as ua
from unaligned import defaults
from unaligned.data.shapes import torus2, torus3, torus_angles
from unaligned.errors import AccuracyWarning
from unaligned.operators.affinity import CrossKernel, KernelAffinity, StreamedAffinity
from unaligned.operators.diffusion import DiffusionOperator
from unaligned.operators.kernel import Gaussian
from unaligned.rows.reduce import RowPasses
from unaligned.rows.source import GeneratedRows
from unaligned.spectra import auto, landmarks, sampled
from unaligned.spectra.landmarks import Landmarks, streamed

TORI = {
    "2-torus": torus2(torus_angles(1500, rng=0)),
    "3-torus": torus3(torus_angles(1500, rng=0)),
    "9 features": np.random.default_rng(0).normal(size=(1500, 2))
    @ np.random.default_rng(1).normal(size=(2, 9)),
}


@pytest.fixture
def always(monkeypatch):
    monkeypatch.setattr(defaults, "STREAM_ROWS", 0)


def exact(points, sigma_squared, k=100):
    return ua.signature(points, n_eigenvalues=k, solver="exact", bandwidth=sigma_squared)


@pytest.mark.parametrize("name", TORI)
@pytest.mark.parametrize("seed", range(2))
def test_values_agree_with_exact_within_bound(name, seed, always):
    points, scale = TORI[name], 2.0 * np.median(np.var(TORI[name], axis=0).sum())
    found = ua.signature(points, n_eigenvalues=100, bandwidth=scale, rng=seed)
    wanted = exact(points, scale)
    assert found.bound_kind == "certified"
    assert found.stats["storage"] == "streamed"
    error = np.linalg.norm(found.values - wanted.values)
    assert error <= found.total_error_bound + wanted.total_error_bound
    assert found.total_error_bound <= 1e-4
    assert error <= 1e-4


@pytest.mark.parametrize("sample", [200, 600])
def test_landmarks_are_added_for_rows_outside_the_sample(sample, always, monkeypatch):
    monkeypatch.setattr(streamed, "CHOICE_ROWS", sample)
    points = np.vstack([TORI["2-torus"], TORI["2-torus"][:100] + 40.0])  # a small second component
    found = ua.signature(points, n_eigenvalues=60, bandwidth=200.0)
    wanted = exact(points, 200.0, 60)
    error = np.linalg.norm(found.values - wanted.values)
    assert error <= found.total_error_bound + wanted.total_error_bound
    assert found.total_error_bound <= 1e-4


@pytest.mark.parametrize("far", [1e3, 1e6, 1e8])
def test_far_points_cost_no_digits(far, always):
    points = np.tile(TORI["9 features"][:300], (4, 1))
    points[:3] += far
    found = ua.signature(points, n_eigenvalues=60, bandwidth=60.0)
    wanted = exact(points, 60.0, 60)
    errors = np.abs(found.values - wanted.values)
    assert (errors <= found.error_bound + wanted.error_bound).all()
    assert np.linalg.norm(errors) <= found.total_error_bound + wanted.total_error_bound
    assert found.total_error_bound <= 1e-4


def test_rows_that_add_only_rounding_are_no_landmarks():
    points = np.random.default_rng(0).normal(size=(4, 9))
    basis = streamed.Basis(CrossKernel(points[:1], Gaussian(20.0)), np.ones((1, 1)))
    assert basis.extended(points[:1], 5) is basis
    assert basis.extended(points, 5).rank == 4


def test_small_budget_warns_and_bound_holds(always):
    points = np.random.default_rng(0).normal(size=(1500, 20))
    solver = Landmarks(max_landmarks=150)
    with pytest.warns(AccuracyWarning, match="with 150 landmarks"):
        found = ua.signature(points, n_eigenvalues=50, solver=solver, bandwidth=40.0)
    wanted = exact(points, 40.0, 50)
    errors = np.abs(found.values - wanted.values)
    assert (errors <= found.error_bound + wanted.error_bound).all()
    assert np.linalg.norm(errors) <= found.total_error_bound


def test_bound_holds_when_only_rounding_is_left(always):
    points = np.random.default_rng(0).normal(size=(400, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        found = ua.signature(points, n_eigenvalues=40, bandwidth=1.0, gamma=1e-14)
    wanted = exact(points, 1.0, 40).with_gamma(1e-14)
    errors = np.abs(found.values - wanted.values)
    assert (errors <= found.error_bound + wanted.error_bound).all()


def test_generated_rows_give_the_signature_of_the_array(always):
    points = TORI["3-torus"]
    source = GeneratedRows(lambda: np.array_split(points, 7))
    dataset = ua.Dataset.from_source(source, name="generated")
    options = {"n_eigenvalues": 50, "bandwidth": 300.0}
    found, wanted = ua.signature(dataset, **options), ua.signature(points, **options)
    assert found.fingerprint == wanted.fingerprint
    np.testing.assert_allclose(found.values, wanted.values, atol=1e-8)
    assert ua.distance(dataset, points, **options) <= 1e-7


def test_mean_and_sampled_median_bandwidth_of_blocks(always):
    points = TORI["3-torus"]
    mean = ua.signature(points, n_eigenvalues=20, bandwidth="mean")
    expected = 4.0 * ((points - points.mean(axis=0)) ** 2).sum(axis=1).mean()
    assert mean.sigma_squared == pytest.approx(expected, rel=1e-12)
    median = ua.signature(points, n_eigenvalues=20)
    assert median.bound_kind == "probabilistic"
    assert median.stats["sigma_squared_standard_error"] > 0


def test_other_solvers_and_kernels_read_points_into_memory(always):
    source = GeneratedRows(lambda: np.array_split(TORI["2-torus"][:800], 3))
    dataset = ua.Dataset.from_source(source)
    for options in ({"solver": "exact"}, {"robust": True}, {"metric": "manhattan"}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = ua.signature(dataset, n_eigenvalues=10, **options)
        assert found.stats["storage"] != "streamed"


def test_streamed_affinity_equals_gaussian_affinity():
    points = TORI["9 features"][:500]
    source = GeneratedRows(lambda: np.array_split(points, 3))
    affinity = StreamedAffinity(RowPasses(source), Gaussian(9.0))
    dense = KernelAffinity(points, Gaussian(9.0))
    np.testing.assert_allclose(affinity.to_dense(), dense.to_dense(), atol=1e-13)
    vectors = np.random.default_rng(0).normal(size=(500, 3))
    np.testing.assert_allclose(affinity @ vectors, dense @ vectors, atol=1e-11)
    scaling = DiffusionOperator(affinity).scaling
    np.testing.assert_allclose(scaling, DiffusionOperator(dense).scaling, rtol=1e-12)


NOISE = np.random.default_rng(0).normal(size=(2000, 30))


def test_heavy_tail_falls_back_to_krylov_before_any_pass(always, monkeypatch):
    monkeypatch.setattr(streamed, "CHOICE_ROWS", 1000)
    monkeypatch.setattr(landmarks, "BUDGET", 300)
    read = []
    monkeypatch.setattr(RowPasses, "reduce", lambda *_: read.append(1))
    found = ua.signature(NOISE, n_eigenvalues=20, bandwidth=60.0, tol=1e-6)
    assert found.stats["chosen"] == "krylov"
    assert not read
    wanted = exact(NOISE, 60.0, 20)
    assert np.linalg.norm(found.values - wanted.values) <= 1e-6


def test_heavy_tail_of_many_rows_is_sampled_and_warns(always, monkeypatch):
    monkeypatch.setattr(streamed, "CHOICE_ROWS", 1000)
    monkeypatch.setattr(landmarks, "BUDGET", 300)
    monkeypatch.setattr(defaults, "PRODUCT_ROWS", 1000)
    monkeypatch.setattr(sampled, "MOST_LANDMARKS", 600)
    with pytest.warns(AccuracyWarning, match=r"solver='sampled' .* above tol=0.0001"):
        found = ua.signature(NOISE, n_eigenvalues=20, bandwidth=60.0)
    assert (found.stats["chosen"], found.bound_kind) == ("sampled", "statistical")
    errors = np.linalg.norm(found.values - exact(NOISE, 60.0, 20).values)
    assert errors <= found.total_error_bound <= auto.SAMPLED_TOL


def test_heavy_tail_in_landmarks_warns_with_remedy(always, monkeypatch):
    monkeypatch.setattr(streamed, "CHOICE_ROWS", 1000)
    monkeypatch.setattr(landmarks, "BUDGET", 300)
    with pytest.warns(AccuracyWarning, match=r"300 landmarks.*heavy tail.*'pca:10'"):
        found = ua.signature(NOISE, n_eigenvalues=20, bandwidth=60.0, solver="landmarks")
    errors = np.abs(found.values - exact(NOISE, 60.0, 20).values)
    assert (errors <= found.error_bound).all()
