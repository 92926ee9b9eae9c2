"""`ua.diagnose`, and `gamma="auto"`."""

from __future__ import annotations

import numpy as np
import pytest

import unaligned as ua
from unaligned.data.shapes import torus2, torus3, torus_angles


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(0)
    return torus2(torus_angles(400, 2, rng=0)) + 0.3 * rng.normal(size=(400, 3))


@pytest.fixture(scope="module")
def clean():
    return torus3(torus_angles(400, 3, rng=1))


def test_counts_match_the_spectrum(noisy):
    found = ua.diagnose(noisy, n_eigenvalues=100, gamma=1e-6)
    eigenvalues = ua.signature(noisy, n_eigenvalues=100, gamma=1e-6).eigenvalues
    assert found.above_gamma == (eigenvalues > 1e-6).sum()
    assert found.above_floor >= found.above_gamma
    np.testing.assert_allclose(found.ratios, eigenvalues[:-1] / eigenvalues[1:])


def test_sensitivity_agrees_with_distance(noisy, clean):
    table = ua.diagnose(noisy, clean, n_eigenvalues=100).sensitivity
    for setting, value, les in table.itertuples(index=False):
        option = {setting: int(value) if setting == "n_eigenvalues" else value}
        assert les == pytest.approx(
            ua.distance(noisy, clean, **{"n_eigenvalues": 100, **option}), abs=3e-2
        )


def test_summary_suggests_gamma_and_k_with_reasons(noisy):
    text = str(ua.diagnose(noisy))
    assert "suggested gamma=" in text
    assert "suggested n_eigenvalues=" in text


def test_gamma_auto_is_one_gamma_for_the_collection(noisy, clean):
    result = ua.compare({"noisy": noisy, "clean": clean}, gamma="auto", n_eigenvalues=100)
    gammas = {s.recipe.gamma for s in result.signatures.values()}
    assert len(gammas) == 1
    fixed = ua.compare({"noisy": noisy, "clean": clean}, gamma=gammas.pop(), n_eigenvalues=100)
    np.testing.assert_allclose(result.distances, fixed.distances, atol=2e-4)


def test_comparison_with_gamma_auto_can_grow(noisy, clean):
    result = ua.compare({"noisy": noisy}, gamma="auto", n_eigenvalues=100)
    grown = result.add({"clean": clean})
    assert len({s.recipe.gamma for s in grown.signatures.values()}) == 1


def test_unknown_gamma_raises(noisy):
    with pytest.raises(ua.errors.InputError, match="gamma='automatic' is not known"):
        ua.signature(noisy, gamma="automatic")


def test_numeric_bandwidth_is_varied_too(noisy, clean):
    table = ua.diagnose(noisy, clean, n_eigenvalues=30, bandwidth=50.0).sensitivity
    rows = table[table["setting"] == "bandwidth"]
    assert rows["value"].tolist() == [25.0, 37.5, 50.0, 75.0, 100.0]
    assert rows["les"].nunique() == 5


def test_robust_limits_k_to_the_remaining_rows():
    rng = np.random.default_rng(0)
    stained = np.vstack([rng.normal(size=(60, 3)), [[1e3, 0.0, 0.0], [0.0, 1e3, 0.0]]])
    found = ua.diagnose(stained, rng.normal(size=(70, 3)), robust=True)
    counts = found.sensitivity.query("setting == 'n_eigenvalues'")["value"]
    assert counts.max() == found.signature.n_eigenvalues < len(stained)
