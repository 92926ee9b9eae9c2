"""permutation_test(): exact under the null, powerful otherwise, and honest about its limits."""

import numpy as np
import pandas as pd
import pytest

import unaligned as ua
from unaligned.data.shapes import torus2, torus_angles
from unaligned.errors import (
    InputError,
    InputTypeError,
    NotApplicableError,
    NumericalError,
    SampleSizeWarning,
)


def normal(n, d, seed):
    return np.random.default_rng(seed).normal(size=(n, d))


def torus(n, seed, scale=1.0):
    return torus2(torus_angles(n, 2, rng=seed), radius_scale=scale)


@pytest.mark.parametrize("seed", range(3))
def test_a_difference_of_dimension_is_found(seed):
    found = ua.permutation_test(normal(600, 5, seed), normal(900, 6, seed + 10))
    assert found.p_value < 0.01
    assert found.is_significant
    assert found.interval[0] > 0
    assert found.interval[0] <= found.distance <= found.interval[1]
    assert (found.block_size, found.n_blocks, found.n_eigenvalues) == (60, (10, 15), 20)


def test_the_test_keeps_its_level_across_spaces_and_sizes():
    """Rejections at 0.1 in 40 null pairs: a torus against a larger, rotated and scaled one."""
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.normal(size=(9, 9)))[0][:3]
    p_values, squares = [], []
    for seed in range(40):
        first, second = torus(150, seed), 7.0 * torus(300, 1000 + seed) @ rotation
        found = ua.permutation_test(first, second, n_permutations=99)
        p_values.append(found.p_value)
        squares.append(found.squared)
    assert 0 < np.mean(np.array(p_values) <= 0.1) <= 0.25  # 3 standard errors
    assert abs(np.mean(squares)) < 3.5 * np.std(squares) / np.sqrt(40)


def test_the_statistic_is_that_of_block_signatures():
    """U and the noise floor, from `ua.signature` of blocks drawn as documented."""
    first, second = normal(130, 3, 0), normal(200, 4, 1)
    found = ua.permutation_test(first, second, block_size=30, rng=5)
    values = []
    for points in (first, second):
        dataset = ua.Dataset(points)
        rows = dataset.generator(5).permutation(len(points))
        rows = rows[: len(points) // 30 * 30].reshape(-1, 30)
        signed = [ua.signature(points[r], n_eigenvalues=10, solver="exact") for r in rows]
        values.append(np.stack([s.values for s in signed]))
    gap = values[0].mean(axis=0) - values[1].mean(axis=0)
    noise = [v.var(axis=0, ddof=1).sum() / len(v) for v in values]
    assert found.squared == pytest.approx(gap @ gap - sum(noise), abs=1e-8)
    assert found.noise_floor == pytest.approx(np.sqrt(sum(noise)), abs=1e-8)
    assert found.distance == pytest.approx(np.sqrt(max(found.squared, 0)))


def test_the_same_data_gives_the_same_result():
    first, second = normal(300, 3, 0), normal(300, 3, 1)
    results = [ua.permutation_test(first, second, n_jobs=n) for n in (None, 1, 2)]
    assert len({r.p_value for r in results}) == 1
    np.testing.assert_allclose([r.squared for r in results], results[0].squared, atol=1e-9)
    other = ua.permutation_test(first, second, rng=7)
    assert other.squared != results[0].squared


@pytest.mark.parametrize("sizes", [(300, 300), (300, 400)])
def test_the_order_of_the_datasets_does_not_matter(sizes):
    first, second = (normal(n, 3, seed) for seed, n in enumerate(sizes))
    found, other = ua.permutation_test(first, second), ua.permutation_test(second, first)
    assert not found.is_exact
    assert found.p_value == other.p_value
    assert found.squared == pytest.approx(other.squared)
    assert found.n_blocks == other.n_blocks[::-1]
    labels = np.arange(300) % 10, np.arange(sizes[1]) % 10 + 3
    paired = ua.permutation_test(first, second, groups=labels, n_permutations=99)
    swapped = ua.permutation_test(second, first, groups=labels[::-1], n_permutations=99)
    assert paired.n_pairs == swapped.n_pairs == 7
    assert paired.p_value == swapped.p_value
    assert paired.squared == pytest.approx(swapped.squared)


def test_a_dataset_does_not_differ_from_itself():
    points = normal(300, 3, 0)
    assert ua.permutation_test(points, points).p_value == 1.0


def test_few_blocks_are_enumerated_and_bound_the_p_value():
    found = ua.permutation_test(normal(120, 2, 0), normal(120, 9, 1))
    assert found.is_exact
    assert found.null.size == 35
    assert found.p_value == found.smallest_p_value == pytest.approx(1 / 35)
    random = ua.permutation_test(normal(120, 2, 0), normal(120, 9, 1), n_permutations=19)
    assert not random.is_exact
    assert random.smallest_p_value == 0.05


def test_the_result_is_one_sentence():
    text = repr(ua.permutation_test(normal(200, 2, 0), ua.Dataset(normal(150, 5, 1), name="new")))
    assert text.startswith("'a' and 'new' differ: les ")
    assert "95 % interval" in text
    assert "from 6 and 5 blocks of 30 rows." in text
    alike = repr(ua.permutation_test(normal(200, 2, 0), normal(150, 2, 1)))
    assert "show no difference" in alike


@pytest.mark.parametrize(
    "distance", ["imd-diffusion", "shape-dna", "netlsd", "imd", "mmd", "frechet"]
)
def test_every_distance_tells_a_ball_from_a_plane(distance):
    flat = np.c_[normal(160, 1, 0), np.zeros((160, 2))]
    found = ua.permutation_test(flat, normal(160, 3, 1), distance=distance)
    assert found.p_value < 0.05
    assert found.distance_name == distance


def test_a_function_of_two_arrays_is_a_distance_too():
    def spread(x, y):
        return abs(float(x.std() - y.std()))

    found = ua.permutation_test(normal(200, 2, 0), 2 * normal(200, 2, 1), distance=spread)
    assert found.p_value < 0.05
    assert ua.permutation_test(normal(200, 2, 0), 2 * normal(200, 2, 1)).p_value > 0.05


def test_an_infinite_distance_is_not_a_difference():
    def infinite(x, y):
        return 0.0 if x is y else np.inf

    clouds = normal(200, 2, 0), normal(200, 2, 1)
    with pytest.raises(NumericalError, match="infinite distances between blocks"):
        ua.permutation_test(*clouds, distance=infinite)
    with pytest.raises(NumericalError, match="infinite distances between blocks"):
        ua.compare(clouds, distance=infinite, inference=True)


def test_distances_as_data():
    def matrix(points):
        gaps = np.linalg.norm(points[:, None] - points, axis=2)
        return ua.Dataset(gaps, kind="distances")

    first, second = normal(160, 3, 0), normal(160, 5, 1)
    of_points = ua.permutation_test(first, second)
    found = ua.permutation_test(matrix(first), matrix(second))
    assert found.n_blocks == of_points.n_blocks
    assert found.p_value < 0.1


def donors(n_groups, rows, d, seed):
    """Rows of groups, each with a shape of its own."""
    rng = np.random.default_rng(seed)
    parts = [
        rng.normal(size=(rows, d)) * np.exp(0.3 * rng.normal(size=d)) for _ in range(n_groups)
    ]
    return np.concatenate(parts), np.repeat(np.arange(n_groups), rows)


def test_rows_of_groups_are_not_independent():
    """Groups of one law, each with its own shape: the test of rows rejects, that of groups not."""
    rejected, naive = [], []
    for seed in range(8):
        (first, g), (second, h) = donors(5, 60, 3, seed), donors(5, 60, 3, 100 + seed)
        found = ua.permutation_test(first, second, groups=(g, h + 50))
        rejected.append(found.p_value <= 0.05)
        naive.append(ua.permutation_test(first, second, n_permutations=199).p_value <= 0.05)
    assert sum(rejected) <= 3
    assert sum(naive) > sum(rejected)


def test_groups_in_both_datasets_are_paired():
    """What differs between donors cancels, as each is compared with itself."""
    rng = np.random.default_rng(0)
    scales = np.exp(0.8 * rng.normal(size=(8, 3)))
    labels = np.repeat(np.arange(8), 150)
    first = rng.normal(size=(1200, 3)) * scales[labels]
    second = np.c_[rng.normal(size=(1200, 3)) * scales[labels], 0.6 * rng.normal(size=1200)]
    paired = ua.permutation_test(first, second, groups=(labels, labels))
    free = ua.permutation_test(first, second, groups=(labels, labels + 100))
    assert (paired.n_pairs, free.n_pairs) == (8, 0)
    assert paired.n_groups == free.n_groups == (8, 8)
    assert paired.p_value == paired.smallest_p_value == 1 / 2**7
    assert np.diff(paired.interval) < 0.9 * np.diff(free.interval)
    assert "8 and 8 groups (paired)" in repr(paired)


def test_three_groups_against_three_cannot_be_significant():
    (first, g), (second, h) = donors(3, 60, 2, 0), donors(3, 60, 7, 1)
    with pytest.warns(SampleSizeWarning, match=r"3 and 3 groups allow no p-value below 0\.1"):
        found = ua.permutation_test(first, second, groups=(g, h + 3))
    assert found.smallest_p_value == pytest.approx(0.1)
    assert "which allow no p-value below 0.1" in repr(found)


def test_groups_take_text_and_unequal_sizes():
    first, second = normal(400, 2, 0), normal(300, 6, 1)
    labels = np.repeat(["a", "b", "c", "d"], [50, 100, 120, 130]), list("vwxyz" * 60)
    found = ua.permutation_test(first, second, groups=labels)
    assert found.block_size == 30
    assert found.n_groups == (4, 5)
    assert found.n_blocks == (4, 5)


@pytest.mark.parametrize(
    ("groups", "match"),
    [
        (([0] * 90, [0, 1] * 45), "dataset 'a' has one group, so no test exists"),
        (
            ([0, 1] * 45, [0, 1] * 44),
            r"dataset 'b' has 90 rows, and its labels have shape \(88,\)",
        ),
        (
            ([0, 1] * 45, [0] * 80 + [1] * 10),
            r"'1' of dataset 'b' has 10 rows, fewer than the 30 of the smallest default block\. "
            r"Leave the group out, or give block_size=10\.",
        ),
        (([0, 1] * 45, [0] * 88 + [1] * 2), r"2 rows, .* Leave the group out\.$"),
        (([0, 1] * 45, [0, np.nan] * 45), r"row 1 of dataset 'b' has no label \(nan\)"),
        (([None, 1] * 45, [0, 1] * 45), r"row 0 of dataset 'a' has no label \(None\)"),
        (None, r"at least 4 blocks of block_size=30 rows, that is 120 rows; dataset 'a' has 90"),
    ],
)
def test_too_little_data_says_how_much_is_needed(groups, match):
    with pytest.raises(InputError, match=match):
        ua.permutation_test(normal(90, 2, 0), normal(90, 2, 1), groups=groups)


NUMBERS = np.arange(210) % 7
DAYS = np.datetime64("2026-01-01", "ns") + NUMBERS * np.timedelta64(1, "D")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (NUMBERS, NUMBERS.astype(str)),
        (NUMBERS, NUMBERS.astype(object)),
        (NUMBERS, NUMBERS.astype(float)),
        (NUMBERS, NUMBERS.astype("S")),
        (DAYS, DAYS.astype("datetime64[s]")),
    ],
)
def test_groups_are_paired_by_what_their_labels_say(first, second):
    clouds = normal(210, 2, 0), normal(210, 2, 1)
    found = ua.permutation_test(*clouds, groups=(first, second))
    assert found.n_pairs == 7
    assert ua.permutation_test(*clouds, groups=np.array([NUMBERS, NUMBERS])).n_pairs == 7


def test_a_missing_group_is_not_a_group():
    labels = pd.Series(["x", "y", pd.NA] * 30)
    with pytest.raises(InputError, match=r"row 2 of dataset 'a' has no label \(<NA>\)"):
        ua.permutation_test(normal(90, 2, 0), normal(90, 2, 1), groups=(labels, labels))


def test_groups_must_be_a_pair():
    with pytest.raises(InputTypeError, match="groups must be a pair"):
        ua.permutation_test(normal(90, 2, 0), normal(90, 2, 1), groups="donor")


BAD = {
    "block_size": ({"block_size": 2}, InputError, "block_size=2 must be at least 4"),
    "permutations": ({"n_permutations": 0}, InputError, "n_permutations=0 must be at least 1"),
    "K": ({"n_eigenvalues": 99}, InputError, "n_eigenvalues=99 needs blocks of at least 99 rows"),
    "distance": ({"distance": "lse"}, InputError, "distance='lse' is not known"),
    "paired rows": ({"distance": "cka"}, NotApplicableError, "compares row i with row i"),
    "option": ({"colour": 1}, InputError, "has no option 'colour'"),
}


@pytest.mark.parametrize(("options", "error", "match"), BAD.values(), ids=BAD)
def test_bad_options_raise(options, error, match):
    with pytest.raises(error, match=match):
        ua.permutation_test(normal(200, 2, 0), normal(200, 2, 1), **options)


def test_only_rows_can_be_cut():
    points = normal(200, 2, 0)
    with pytest.raises(InputTypeError, match="'a' is a Signature, which has no rows"):
        ua.permutation_test(ua.signature(points), points)
    matrix = ua.Dataset(np.cov(normal(500, 120, 0).T), kind="spd")
    with pytest.raises(InputError, match="kind 'spd', whose rows are not samples"):
        ua.permutation_test(matrix, points)
    with pytest.raises(NotApplicableError, match="needs the same features"):
        ua.permutation_test(points, normal(200, 3, 1), distance="mmd")
    with pytest.raises(ua.errors.DegenerateDataError, match="σ²=0"):
        ua.permutation_test(points, np.ones((200, 2)))
    with pytest.raises(InputError, match="NaN"):
        ua.permutation_test(points, np.full((200, 2), np.nan))


def test_fitted_preprocessing_makes_the_test_approximate():
    first, second = normal(200, 6, 0), normal(200, 6, 1)
    found = ua.permutation_test(first, second, preprocess=["standardize", "pca:3"])
    assert found.is_approximate
    assert "approximate" in repr(found)
    shifted = first - first.min(), second - second.min()
    by_rows = ua.permutation_test(*shifted, preprocess="log1p")
    assert not by_rows.is_approximate
    before = ua.permutation_test(*map(np.log1p, shifted))
    assert by_rows.n_blocks == before.n_blocks


def test_rows_on_disk_and_large_sets_are_sampled(tmp_path):
    np.save(tmp_path / "many.npy", normal(9000, 3, 0))
    found = ua.permutation_test(
        ua.Dataset.from_source(tmp_path / "many.npy"), normal(300, 3, 1), n_permutations=99
    )
    assert found.n_blocks == (200, 10)
    assert found.names == ("many", "b") or found.names == ("a", "b")


def test_the_plot_shows_null_and_observation():
    found = ua.permutation_test(normal(200, 2, 0), normal(150, 5, 1))
    axes = found.plot()
    assert axes.get_title() == "a and b"
    assert found.squared in [line.get_xdata()[0] for line in axes.lines]
