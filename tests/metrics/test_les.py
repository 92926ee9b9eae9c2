"""LES and IMD on diffusion spectra: error bounds, and signatures as data."""

import numpy as np
import pytest

import unaligned as ua
from reference import diffusion_of_points, eigenvalues
from unaligned.errors import IndefiniteWarning, RecipeMismatchError
from unaligned.metrics.heat_trace import TIMES

SEEDS = range(4)


def clouds(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(90, 8)), rng.normal(size=(120, 12))


@pytest.mark.parametrize("seed", SEEDS)
def test_imd_diffusion_equals_the_formula(seed):
    a, b = clouds(seed)
    spectra = [eigenvalues(diffusion_of_points(x), 30) for x in (a, b)]
    traces = [np.array([np.sum(s**t) for t in TIMES]) for s in spectra]
    expected = np.max(np.exp(-2 * (TIMES + 1 / TIMES)) * np.abs(traces[0] - traces[1]))
    found = ua.distance(a, b, "imd-diffusion", n_eigenvalues=30)
    assert found == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(
    "options",
    [{}, {"squared": True}, {"distance": "imd-diffusion"}],
    ids=["les", "les squared", "imd-diffusion"],
)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_error_bound_of_a_sketched_distance_holds(options, seed):
    options = {"n_eigenvalues": 20, **options}
    exact = ua.compare(clouds(seed), solver="exact", **options)
    sketched = ua.compare(clouds(seed), solver="nystrom", rng=seed, **options)
    gap = np.abs(exact.distances - sketched.distances)
    assert np.all(gap <= sketched.error_bounds + exact.error_bounds)
    assert np.all(np.isfinite(sketched.error_bounds))


def test_error_bounds_are_the_sums_of_both_signatures():
    result = ua.compare(clouds(0), n_eigenvalues=20, solver="nystrom")
    bounds = [s.total_error_bound for s in result.signatures.values()]
    assert np.allclose(result.error_bounds, np.add.outer(bounds, bounds))


def test_les_and_imd_diffusion_share_signatures():
    a, b = (ua.signature(x, n_eigenvalues=20) for x in clouds(0))
    for distance in ("les", "imd-diffusion"):
        direct = ua.distance(*clouds(0), distance, n_eigenvalues=20)
        assert ua.distance(a, b, distance) == pytest.approx(direct, rel=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": 1e-3}, r"gamma=0.001 was given.*computed with 1e-08. Leave gamma out"),
        ({"n_eigenvalues": 5}, r"n_eigenvalues=5 was requested.*has 20 values.*truncate\(5\)"),
        ({"bandwidth": "mean"}, r"bandwidth='mean' was given.*computed with 'median'"),
        ({"n_neighbors": 9}, r"n_neighbors=9 was given.*computed with None"),
        ({"robust": True}, r"robust=True was given.*computed with False"),
        ({"preprocess": "log1p"}, r"preprocess=\('log1p',\) was given.*computed with \(\)"),
    ],
)
def test_options_that_differ_from_given_signatures_raise(options, message):
    a, b = (ua.signature(x, n_eigenvalues=20) for x in clouds(0))
    with pytest.raises(RecipeMismatchError, match=message):
        ua.distance(a, b, **options)


def test_options_equal_to_those_of_given_signatures_are_accepted():
    made = {"gamma": 1e-3, "n_eigenvalues": 20, "bandwidth": "mean", "preprocess": ["standardize"]}
    a, b = (ua.signature(x, **made) for x in clouds(0))
    assert ua.distance(a, b, **made) == ua.distance(a, b)


@pytest.mark.parametrize("rule", ["auto", "cutoff"])
def test_gamma_is_chosen_for_signatures_and_data_together(rule):
    a, b = clouds(0)
    made = ua.signature(a, n_eigenvalues=20)
    assert ua.distance(made, b, gamma=rule) == pytest.approx(
        ua.distance(a, b, gamma=rule, n_eigenvalues=20), rel=1e-9
    )


def test_data_take_the_number_of_eigenvalues_of_a_given_signature():
    a, b = clouds(0)
    mixed = ua.distance(ua.signature(a, n_eigenvalues=20), b)
    assert mixed == pytest.approx(ua.distance(a, b, n_eigenvalues=20), rel=1e-9)


def test_signature_longer_than_the_data_suggests_truncate():
    a, b = clouds(0)
    with pytest.raises(RecipeMismatchError, match=r"has 100 values.*90 samples.*\.truncate\(90\)"):
        ua.distance(a, ua.signature(b, n_eigenvalues=100))
    assert ua.distance(a, ua.signature(b, n_eigenvalues=100).truncate(90)) > 0


@pytest.mark.parametrize("options", [{"metric": "cityblock"}, {"n_neighbors": 10}], ids=str)
def test_indefinite_affinity_warns_and_has_no_bound(options):
    points = clouds(0)[0]
    with pytest.warns(
        IndefiniteWarning, match=r"the dataset: .* of the spectrum's mass is negative"
    ):
        signature = ua.signature(points, n_eigenvalues=20, solver="exact", **options)
    assert signature.bound_kind == "none"
    assert signature.total_error_bound == np.inf
    assert np.all(signature.error_bound == np.inf)


def test_available_lists_what_each_distance_needs():
    table = ua.available()
    assert not table.loc["les", ["same features", "paired rows"]].any()
    assert table.loc["log-euclidean", "paired rows"]
    assert table["what"].str.len().min() > 10
    # Columns describe the defaults; the summary names options that change them.
    assert "not symmetric with directed=True" in table.at["crosslid", "what"]
    assert "laplacian='robust' needs the extra 'topology'" in table.at["shape-dna", "what"]


def test_gamma_does_not_change_imd_diffusion():
    first, second = clouds(0)
    a = ua.signature(first, n_eigenvalues=20)
    same, other = (ua.signature(second, n_eigenvalues=20, gamma=g) for g in (1e-8, 1e-3))
    distances = [ua.distance(a, b, "imd-diffusion") for b in (same, other)]
    assert distances[0] == pytest.approx(distances[1], rel=1e-12)
    with pytest.raises(RecipeMismatchError, match="gamma"):
        ua.distance(a, other)
