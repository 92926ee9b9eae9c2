"""What drives a distance adds up to it."""

import numpy as np
import pytest

import unaligned as ua
from unaligned.errors import RecipeMismatchError
from unaligned.explanation import contributions, decades


def pair(seed, **options):
    rng = np.random.default_rng(seed)
    return [ua.signature(rng.normal(size=(90, d)), n_eigenvalues=30, **options) for d in (2, 6)]


@pytest.mark.parametrize("seed", range(3))
def test_contributions_add_up_to_the_squared_distance(seed):
    a, b = pair(seed)
    assert contributions(a, b).sum() == pytest.approx(ua.distance(a, b) ** 2)


@pytest.mark.parametrize("seed", range(3))
def test_every_eigenvalue_is_in_one_decade(seed):
    a, b = pair(seed)
    found = decades(a, b)
    assert sum(decade.share for decade in found) == pytest.approx(1.0)
    assert sum(decade.n_eigenvalues for decade in found) == 30
    middle = np.sqrt((a.eigenvalues + 1e-8) * (b.eigenvalues + 1e-8))
    for decade in found:
        low, high = 10.0 ** (decade.exponent - 1), 10.0**decade.exponent
        inside = (middle > low * (1 + 1e-5)) & (middle <= high * (1 + 1e-5))
        assert inside.sum() == decade.n_eigenvalues
        share = contributions(a, b)[inside].sum() / ua.distance(a, b) ** 2
        assert decade.share == pytest.approx(share)


def test_first_eigenvalue_is_in_decade_zero():
    assert decades(*pair(0))[0].exponent == 0


def test_equal_spectra_have_zero_shares():
    a, _ = pair(0)
    assert {decade.share for decade in decades(a, a)} == {0}


def test_different_recipes_raise():
    a, _ = pair(0)
    _, b = pair(0, gamma=1e-5)
    with pytest.raises(RecipeMismatchError, match=r"gamma: 1e-08 and 1e-05"):
        contributions(a, b)
