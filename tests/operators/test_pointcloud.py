"""Norms and distances of rows, to the bit."""

import numpy as np
import pytest
from scipy import sparse

from unaligned.operators.pointcloud import squared_distances_of_pairs, squared_norms


@pytest.mark.parametrize("d", [1, 3, 16, 33, 1000, 4097, 9001])
@pytest.mark.parametrize("seed", range(3))
def test_norm_of_a_row_does_not_depend_on_other_rows(seed, d):
    rows = np.random.default_rng(seed).normal(size=(30, d))
    together = squared_norms(rows)
    np.testing.assert_array_equal(together, np.concatenate([squared_norms(r[None]) for r in rows]))
    np.testing.assert_allclose(together, np.linalg.norm(rows, axis=1) ** 2, rtol=1e-13)


@pytest.mark.parametrize("seed", range(3))
def test_sparse_and_dense_pairs_are_equal_to_the_bit(seed):
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(40, 50)) * (rng.random((40, 50)) < 0.3)
    first, second = rng.integers(40, size=(2, 500))
    kept = sparse.csr_array(dense)
    expected = squared_distances_of_pairs(dense, first, second)
    found = squared_distances_of_pairs(kept, first, second, filled=True)
    np.testing.assert_array_equal(found, expected)
    summed = squared_distances_of_pairs(kept, first, second)
    np.testing.assert_allclose(summed, expected, rtol=1e-13)
