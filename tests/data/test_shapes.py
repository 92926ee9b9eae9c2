"""The tori of Appendix B."""

import numpy as np
import pytest

from unaligned.data.shapes import torus2, torus3, torus_angles
from unaligned.errors import InputTypeError


def test_no_seed_is_seed_zero_as_everywhere():
    assert np.array_equal(torus_angles(5), torus_angles(5, rng=0))
    assert np.array_equal(torus_angles(5, rng=3), torus_angles(5, rng=np.random.default_rng(3)))
    with pytest.raises(InputTypeError, match="rng='x' must be None"):
        torus_angles(5, rng="x")


@pytest.mark.parametrize("seed", range(3))
def test_points_satisfy_the_equations_of_their_torus(seed):
    x, y, z = torus2(torus_angles(50, rng=seed)).T
    assert np.allclose((np.hypot(x, y) - 10) ** 2 + z**2, 9)
    x, y, z, w = torus3(torus_angles(50, rng=seed)).T
    assert np.allclose((np.hypot(np.hypot(x, y) - 10, z) - 3) ** 2 + w**2, 1)
