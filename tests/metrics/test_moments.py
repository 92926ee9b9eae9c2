"""MMD and Fréchet distance against scikit-learn's kernels and SciPy's matrix root."""

import re

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import hadamard, sqrtm
from scipy.spatial.distance import cdist, pdist
from sklearn.metrics.pairwise import rbf_kernel

import unaligned as ua
from unaligned.data.dataset import Dataset
from unaligned.errors import DegenerateDataError, InputError, NotApplicableError
from unaligned.metrics import moments
from unaligned.metrics.moments import MMD
from unaligned.operators.pointcloud import PointCloud

SEEDS = range(4)


def pair(seed, n=60, m=45, d=4):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), 1.5 * rng.normal(size=(m, d)) + 0.5


def textbook_mmd(x, y, width=None, unbiased=False):
    width = np.median(pdist(np.vstack([x, y]))) if width is None else width
    xx, yy, xy = (rbf_kernel(*z, gamma=0.5 / width**2) for z in ((x, x), (y, y), (x, y)))
    if not unbiased:
        return np.sqrt(xx.mean() + yy.mean() - 2 * xy.mean())
    n, m = len(x), len(y)
    off = [(K.sum() - np.trace(K)) / (k * (k - 1)) for K, k in ((xx, n), (yy, m))]
    return sum(off) - 2 * xy.mean()


def textbook_fid(x, y):
    S1, S2 = np.cov(x, rowvar=False), np.cov(y, rowvar=False)
    root = sqrtm(S1 @ S2).real
    return np.sum((x.mean(0) - y.mean(0)) ** 2) + np.trace(S1 + S2 - 2 * root)


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("d", [1, 4, 30])
@pytest.mark.parametrize("seed", SEEDS)
def test_mmd_equals_the_textbook(seed, d, unbiased):
    x, y = pair(seed, d=d)
    found = ua.distance(x, y, "mmd", unbiased=unbiased)
    assert found == pytest.approx(textbook_mmd(x, y, unbiased=unbiased), rel=1e-8)


def test_mmd_in_many_tiles_equals_the_textbook(monkeypatch):
    x, y = pair(0, n=70, m=130)
    monkeypatch.setattr(PointCloud, "tile_rows", 32)
    assert ua.distance(x, y, "mmd") == pytest.approx(textbook_mmd(x, y), rel=1e-8)


def test_mmd_takes_its_width_as_a_number():
    x, y = pair(0)
    found = ua.distance(x, y, "mmd", bandwidth=0.7)
    assert found == pytest.approx(textbook_mmd(x, y, 0.7), rel=1e-8)


def test_the_unbiased_estimate_can_be_negative():
    rng = np.random.default_rng(0)
    values = [ua.distance(*rng.normal(size=(2, 40, 3)), "mmd", unbiased=True) for _ in range(20)]
    assert min(values) < 0 < max(values)
    assert abs(np.mean(values)) < 0.02


def test_the_unbiased_estimate_needs_two_rows():
    x, y = pair(0)
    with pytest.raises(NotApplicableError, match="unbiased=True needs two rows"):
        ua.distance(x[:1], y, "mmd", unbiased=True)
    assert 0 < ua.distance(x[:1], y, "mmd") < 2


def test_duplicates_leave_mmd_without_a_width():
    x = np.zeros((30, 2))
    y = np.concatenate([np.zeros((20, 2)), np.ones((5, 2))])
    with pytest.raises(DegenerateDataError, match=r"width 0 for .*half of all pairs.*bandwidth=h"):
        ua.distance(x, y, "mmd")
    assert ua.distance(x, y, "mmd", bandwidth=1.0) == pytest.approx(textbook_mmd(x, y, 1.0))
    assert ua.distance(x, np.zeros((7, 2)), "mmd") == 0.0


def plain_mmd(x, y, width=None):
    """From differences, so that no digit is lost, whatever lies far away."""
    width = np.median(pdist(np.vstack([x, y]))) if width is None else width
    xx, yy, xy = (
        np.exp(-cdist(*z, "sqeuclidean") / (2 * width**2)) for z in ((x, x), (y, y), (x, y))
    )
    return np.sqrt(xx.mean() + yy.mean() - 2 * xy.mean())


@pytest.mark.parametrize("width", [None, 2.0])
@pytest.mark.parametrize("far", [1e6, 1e8, 1e10])
@pytest.mark.parametrize("seed", SEEDS)
def test_mmd_keeps_its_digits_beside_a_clump_far_away(seed, far, width):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(300, 20)), 1.3 * rng.normal(size=(300, 20))
    x[:10] += far
    y[:10] += far
    found = ua.distance(x, y, "mmd", bandwidth=width or "median")
    assert found == pytest.approx(plain_mmd(x, y, width), rel=1e-11)


@pytest.mark.parametrize("n", [30, 600])
@pytest.mark.parametrize("d", [3, 20])
def test_mmd_of_very_narrow_and_very_wide_kernels(n, d):
    x, y = pair(0, n=n, m=n, d=d)
    # Every point is alone in its narrow kernel, and a wide one sees no difference.
    assert ua.distance(x, y, "mmd", bandwidth=1e-139) == pytest.approx(np.sqrt(2 / n))
    assert ua.distance(x, y, "mmd", bandwidth=1e139) == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize("width", [1e-200, 1e-160, 1e-141, 1e141, 1e160, 1e300])
def test_widths_whose_squares_are_no_numbers_are_refused(width):
    told = re.escape(f"bandwidth={width!r}")
    with pytest.raises(InputError, match=rf"{told} .*between 1e-140 and 1e\+140.*nearer"):
        ua.distance(*pair(0), "mmd", bandwidth=width)


def test_mmd_never_holds_the_whole_matrix():
    tracemalloc = pytest.importorskip("tracemalloc")
    rng = np.random.default_rng(0)
    first, second = (MMD().describe(Dataset(rng.normal(size=(5000, 3))), 0) for _ in range(2))
    MMD().compare(first, MMD().describe(Dataset(np.eye(3)), 0))  # compiled before
    tracemalloc.start()
    MMD().compare(first, second)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 10_000**2 / 4


@pytest.mark.parametrize("d", [2, 4, 20])
@pytest.mark.parametrize("seed", SEEDS)
def test_frechet_equals_the_textbook_where_that_is_stable(seed, d):
    x, y = pair(seed, d=d)
    assert ua.distance(x, y, "frechet") == pytest.approx(textbook_fid(x, y), rel=1e-8)


def test_frechet_of_one_feature_is_the_difference_of_means_and_deviations():
    x, y = pair(0, d=1)
    expected = (x.mean() - y.mean()) ** 2 + (x.std(ddof=1) - y.std(ddof=1)) ** 2
    assert ua.distance(x, y, "frechet") == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(("n", "m", "d"), [(5, 8, 50), (5, 200, 50), (50, 50, 50), (2, 2, 3)])
def test_frechet_is_stable_for_fewer_samples_than_features(n, m, d):
    # Rotations change nothing, and in a basis of the common span the textbook is small.
    x, y = pair(1, n=n, m=m, d=d)
    S1, S2 = np.cov(x, rowvar=False), np.cov(y, rowvar=False)
    values, U = np.linalg.eigh(S1)
    half = (U * np.sqrt(np.maximum(values, 0))) @ U.T
    inner = np.linalg.eigvalsh(half @ S2 @ half)
    root = np.sqrt(np.maximum(inner, 0)).sum()
    expected = np.sum((x.mean(0) - y.mean(0)) ** 2) + np.trace(S1 + S2) - 2 * root
    assert ua.distance(x, y, "frechet") == pytest.approx(expected, rel=1e-5)


def test_frechet_in_blocks_equals_frechet_at_once(monkeypatch):
    x, y = pair(0, n=300, m=200)
    whole = ua.distance(x, y, "frechet")
    monkeypatch.setattr(moments, "_BLOCK_ROWS", 16)
    assert ua.distance(x, y, "frechet") == pytest.approx(whole, rel=1e-12)


def test_frechet_keeps_its_digits_far_from_the_origin_and_of_constant_columns():
    x, y = pair(0)
    x[:, 0] = y[:, 0] = 0.1
    here, there = (ua.distance(x + s, y + s, "frechet") for s in (0.0, 1e6))
    assert there == pytest.approx(here, rel=1e-8)
    assert ua.distance(x[:, 1:], y[:, 1:], "frechet") == pytest.approx(here, rel=1e-12)


@pytest.mark.parametrize("name", ["mmd", "frechet"])
class TestBoth:
    def test_rows_in_any_order_and_a_common_motion_change_nothing(self, name):
        x, y = pair(2)
        expected = ua.distance(x, y, name)
        shuffled = x[np.random.default_rng(0).permutation(len(x))]
        assert ua.distance(shuffled, y, name) == pytest.approx(expected, rel=1e-8)
        Q = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
        assert ua.distance(x @ Q + 3, y @ Q + 3, name) == pytest.approx(expected, rel=1e-8)

    def test_integers_sparse_points_and_preprocessing(self, name):
        rng = np.random.default_rng(0)
        x, y = rng.integers(0, 4, size=(40, 5)), rng.integers(0, 5, size=(30, 5))
        expected = ua.distance(x.astype(float), y.astype(float), name)
        assert ua.distance(x.astype(np.int8), y.astype(np.int8), name) == expected
        filled = ua.distance(sparse.csr_array(x), sparse.csr_array(y), name)
        assert filled == pytest.approx(expected, rel=1e-10)
        logged = ua.distance(np.log1p(x), np.log1p(y), name)
        assert ua.distance(x, y, name, preprocess=["log1p"]) == pytest.approx(logged, rel=1e-10)

    def test_features_must_be_shared(self, name):
        x, y = pair(0)
        with pytest.raises(NotApplicableError, match=r"same features.*'les' needs neither"):
            ua.distance(x, y[:, :3], name)

    def test_values_whose_squares_overflow_are_refused(self, name):
        x, y = pair(0)
        with pytest.raises(DegenerateDataError, match=r"dataset 'a': .*values reach .*Rescale"):
            ua.distance(1e200 * x, y, name)


def test_settings_are_checked():
    with pytest.raises(InputError, match="bandwidth='mean' is not known"):
        ua.distance(*pair(0), "mmd", bandwidth="mean")
    with pytest.raises(NotApplicableError, match="needs at least 2 rows, and dataset 'a' has 1"):
        ua.distance(pair(0)[0][:1], pair(0)[1], "frechet")


@pytest.mark.parametrize(("size", "factor"), [(1.0, 1 + 1e-7), (1e3, 1.001), (1e5, 1.01)])
@pytest.mark.parametrize("rows", [64, 8])  # 8: fewer than features
def test_frechet_keeps_the_digits_of_small_differences(rows, size, factor):
    # Columns of a Hadamard matrix: mean 0, and covariances that commute, so d = Σ (s₁ - s₂)².
    x = hadamard(rows).astype(float)[:, 1 : 1 + min(rows - 1, 20)]
    x = np.hstack([x, np.zeros((rows, 20 - x.shape[1]))]) * np.r_[size, np.ones(19)]
    y = x * np.r_[1.0, np.full(19, factor)]
    expected = (min(rows - 1, 20) - 1) * (factor - 1) ** 2 * rows / (rows - 1)
    assert ua.distance(x, y, "frechet") == pytest.approx(expected, rel=1e-6)
    assert ua.distance(x, y[:, ::-1], "frechet") > expected


@pytest.mark.parametrize("seed", SEEDS)
def test_frechet_of_nearly_equal_data_with_more_rows_on_one_side(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(9, 30))
    y = np.vstack([x, x])  # the same mean; covariances 2·8/17 of each other
    ratio = np.sqrt(2 * 8 / 17)
    expected = (1 - ratio) ** 2 * np.trace(np.cov(x.T))
    assert ua.distance(x, y, "frechet") == pytest.approx(expected, rel=1e-9)
    near = np.vstack([x, x[:1] + 1e-9])
    assert 0 <= ua.distance(near[:-1] * 1.0, near, "frechet") < ua.distance(x, 2 * x, "frechet")
