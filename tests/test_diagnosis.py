"""`ua.diagnose`, and `gamma="auto"`."""

from __future__ import annotations

import numpy as np
import pytest

import unaligned as ua
from unaligned.data.shapes import torus2, torus3, torus_angles
from unaligned.spectra.decay import gamma_by_rule


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


@pytest.mark.parametrize("rule", ["auto", "cutoff"])
def test_gamma_by_a_rule_is_one_gamma_for_the_collection(rule, noisy, clean):
    result = ua.compare({"noisy": noisy, "clean": clean}, gamma=rule, n_eigenvalues=100)
    gammas = {s.recipe.gamma for s in result.signatures.values()}
    assert len(gammas) == 1
    fixed = ua.compare({"noisy": noisy, "clean": clean}, gamma=gammas.pop(), n_eigenvalues=100)
    np.testing.assert_allclose(result.distances, fixed.distances, atol=2e-4)


@pytest.mark.parametrize("rule", ["auto", "cutoff"])
def test_comparison_with_gamma_by_a_rule_can_grow(rule, noisy, clean):
    result = ua.compare({"noisy": noisy}, gamma=rule, n_eigenvalues=100)
    grown = result.add({"clean": clean})
    assert {s.recipe.gamma for s in grown.signatures.values()} == {result.options["gamma"]}


def test_cutoff_is_slightly_above_the_largest_last_eigenvalue(noisy, clean):
    # Appendix C: "slightly larger than the maximal λ_500 in all time points".
    result = ua.compare({"noisy": noisy, "clean": clean}, gamma="cutoff", n_eigenvalues=100)
    last = {name: s.eigenvalues[-1] for name, s in result.signatures.items()}
    gamma = result.options["gamma"]
    assert max(last.values()) < gamma <= 2 * max(last.values())
    assert float(f"{gamma:.0e}") == gamma
    alone = {
        n: ua.signature(x, gamma="cutoff", n_eigenvalues=100).recipe.gamma
        for n, x in (("noisy", noisy), ("clean", clean))
    }
    assert max(alone.values()) == gamma
    assert alone == {
        n: ua.diagnose(x, gamma="cutoff", n_eigenvalues=100).signature.recipe.gamma
        for n, x in (("noisy", noisy), ("clean", clean))
    }


@pytest.mark.parametrize("rule", ["auto", "cutoff"])
def test_sensitivity_uses_the_gamma_of_the_rule(rule, noisy, clean):
    table = ua.diagnose(noisy, clean, gamma=rule, n_eigenvalues=100).sensitivity
    expected = ua.distance(noisy, clean, gamma=rule, n_eigenvalues=100)
    found = table.query("setting == 'n_eigenvalues' and value == 100")["les"].item()
    assert found == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("last", "gamma"),
    [
        (0.0, 1e-8),
        (3e-9, 1e-8),
        (1e-8, 2e-8),
        (1.2e-6, 2e-6),
        (1.7e-6, 2e-6),
        (9.3e-6, 1e-5),
        (9.6e-6, 1e-5),
        (1e-5, 2e-5),
        (0.97, 1.0),
        (42.0, 50.0),
    ],
)
def test_cutoff_is_the_next_number_of_one_digit(last, gamma):
    assert gamma_by_rule("cutoff", np.array([100.0, last]), 50) == gamma


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
