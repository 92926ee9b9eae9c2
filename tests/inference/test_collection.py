"""compare(inference=True): tests of all pairs, adjusted, saved and drawn."""

import tracemalloc

import numpy as np
import pytest
from scipy import stats

import unaligned as ua
from unaligned.errors import InputError, InputTypeError, SampleSizeWarning
from unaligned.inference.energy import adjusted


@pytest.fixture(scope="module")
def clouds():
    rng = np.random.default_rng(0)
    dimensions = {"three": 3, "again": 3, "five": 5, "nine": 9}
    return {name: rng.normal(size=(240 + 60 * d, d)) for name, d in dimensions.items()}


@pytest.fixture(scope="module")
def comparison(clouds):
    return ua.compare(clouds, n_eigenvalues=50, inference=True)


def test_what_differs_is_told_apart(comparison):
    found = comparison.inference
    assert found.p_values.shape == (4, 4)
    assert found.intervals.shape == (4, 4, 2)
    expected = np.ones((4, 4), dtype=bool) & ~np.eye(4, dtype=bool)
    expected[0, 1] = expected[1, 0] = False
    np.testing.assert_array_equal(found.is_significant, expected)
    np.testing.assert_array_equal(found.p_values, found.p_values.T)
    assert (found.p_values <= found.p_bh).all()
    assert (found.p_bh <= found.p_holm + 1e-12).all()
    assert (np.diagonal(found.p_holm) == 1).all()
    assert found.block_size == 42
    assert found.n_eigenvalues == 14
    assert found.noise_floor.shape == (4,)
    assert (found.noise_floor > 0).all()
    inside = (found.intervals[..., 0] <= found.corrected) & (
        found.corrected <= found.intervals[..., 1]
    )
    assert inside.all()


def test_distances_stay_those_without_inference(clouds, comparison):
    plain = ua.compare(clouds, n_eigenvalues=50)
    np.testing.assert_array_equal(plain.distances, comparison.distances)
    assert plain.inference is None


def test_a_pair_is_that_of_permutation_test(clouds, comparison):
    found = comparison.inference
    for first, second in (("three", "again"), ("five", "nine")):
        i, j = (comparison.names.index(name) for name in (first, second))
        test = ua.permutation_test(
            clouds[first], clouds[second], block_size=found.block_size, n_permutations=99
        )
        assert found.squared[i, j] == pytest.approx(test.squared, abs=1e-9)
        np.testing.assert_allclose(found.intervals[i, j], test.interval, atol=1e-7)
        assert abs(found.p_values[i, j] - test.p_value) < 0.15
        floors = found.noise_floor[[i, j]]
        assert np.sqrt((floors**2).mean()) == pytest.approx(test.noise_floor)


def test_references_make_it_rectangular(clouds):
    new = {"three": np.random.default_rng(5).normal(size=(300, 3))}
    found = ua.compare(new, clouds, n_eigenvalues=20, inference=True)
    inference = found.inference
    assert inference.p_values.shape == inference.corrected.shape == (1, 4)
    assert inference.noise_floor.shape == (1,)
    assert inference.reference_noise_floor.shape == (4,)
    assert not inference.is_significant[0, 0]
    assert inference.is_significant[0, 2:].all()


@pytest.mark.parametrize("seed", range(5))
def test_adjusted_p_values_are_those_of_scipy_and_of_the_definition(seed):
    p_values = np.random.default_rng(seed).uniform(size=15) ** 3
    holm, hochberg = adjusted(p_values)
    np.testing.assert_allclose(hochberg, stats.false_discovery_control(p_values))
    ordered = np.sort(p_values)
    for p, found in zip(p_values, holm, strict=True):
        steps = [(15 - i) * q for i, q in enumerate(ordered) if q <= p]
        assert found == pytest.approx(min(max(steps), 1.0))


def test_there_are_enough_permutations_for_the_number_of_pairs():
    rng = np.random.default_rng(0)
    points = {f"{i}": rng.normal(size=(300, 2)) for i in range(25)}
    found = ua.compare(points, n_eigenvalues=10, inference=True).inference
    assert found.n_permutations >= 40 * 300
    assert 300 / found.n_permutations < 0.05


def test_it_survives_a_file(comparison, tmp_path):
    comparison.save(tmp_path / "c.npz")
    loaded = ua.Comparison.load(tmp_path / "c.npz").inference
    for name, value in vars(comparison.inference).items():
        np.testing.assert_array_equal(getattr(loaded, name), value)


def test_the_heatmap_marks_what_is_not_significant(comparison):
    axes = comparison.plot("heatmap")
    (crosses,) = axes.collections
    np.testing.assert_allclose(
        sorted(crosses.get_offsets().tolist()), [[0.36, 0.64], [1.36, -0.36]]
    )
    assert "not significant" in axes.get_xlabel()


def test_too_few_rows_name_the_dataset(clouds):
    small = {**clouds, "tiny": clouds["five"][:50]}
    with pytest.raises(InputError, match=r"at least 4 blocks of 30 rows.*'tiny' has 50"):
        ua.compare(small, n_eigenvalues=20, subsample="common", inference=True)
    with pytest.raises(InputTypeError, match="needs the data itself"):
        ua.compare([ua.signature(clouds["five"]), clouds["nine"]], inference=True)
    with pytest.raises(InputTypeError, match="inference='yes' must be True or False"):
        ua.compare(clouds, n_eigenvalues=20, inference="yes")


def test_pairs_that_cannot_be_significant_are_a_warning():
    rng = np.random.default_rng(0)
    small = {f"{i}": rng.normal(size=(120, 2)) for i in range(4)}
    with pytest.warns(SampleSizeWarning, match="after Holm's adjustment"):
        ua.compare(small, n_eigenvalues=10, inference=True)


def test_other_distances_are_tested_too(clouds):
    some = {name: clouds[name][:200] for name in ("three", "nine")}
    found = ua.compare(some, distance="imd-diffusion", inference=True).inference
    assert found.p_values[0, 1] <= 1
    assert found.n_eigenvalues == 10


def test_the_order_of_the_datasets_does_not_matter(clouds, comparison):
    found = comparison.inference
    other = ua.compare({n: clouds[n] for n in reversed(clouds)}, n_eigenvalues=20, inference=True)
    np.testing.assert_array_equal(other.inference.p_values[::-1, ::-1], found.p_values)
    np.testing.assert_allclose(other.inference.squared[::-1, ::-1], found.squared, atol=1e-9)


def test_permutations_of_one_pair_of_sizes_are_held_at_a_time():
    """8 sizes, 28 pairs of 19 to 33 blocks: 9999 permutations are 2 MB of each, 60 in all."""
    clouds = [np.random.default_rng(n).normal(size=(n, 2)) for n in range(300, 540, 30)]
    tracemalloc.start()
    try:
        ua.compare(clouds, n_eigenvalues=10, inference=True, n_jobs=1)
        assert tracemalloc.get_traced_memory()[1] < 30e6
    finally:
        tracemalloc.stop()
