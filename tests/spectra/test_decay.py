"""Knees of spectra, and the γ and K they suggest."""

from __future__ import annotations

import numpy as np
import pytest

from unaligned.spectra.decay import find_knee, suggest_count, suggest_gamma


def broken(before, after, ratio=0.5, tail=0.99, level=1.0):
    head = level * ratio ** np.arange(before)
    return np.concatenate([head, head[-1] * tail ** np.arange(1, after + 1)])


@pytest.mark.parametrize("before", [10, 15, 25])
@pytest.mark.parametrize("seed", range(3))
def test_knee_is_found_under_noise(before, seed):
    noise = np.exp(0.05 * np.random.default_rng(seed).normal(size=before + 60))
    spectrum = np.sort(broken(before, 60) * noise)[::-1]
    knee = find_knee(spectrum, 1e-14)
    assert abs(knee.position - before) <= 2
    assert knee.ratio_before > 1.8
    assert knee.ratio_after < 1.05


@pytest.mark.parametrize("spectrum", [0.9 ** np.arange(150), np.ones(50), 0.5 ** np.arange(10)])
def test_even_decay_has_no_knee(spectrum):
    assert find_knee(spectrum, 1e-14) is None
    assert suggest_gamma(spectrum, 1000)[0] == 1e-8


def test_suggested_gamma_is_the_noise_level():
    gamma, reason = suggest_gamma(broken(14, 80), 1000)
    assert gamma == 1e-4
    assert "look like noise" in reason


def test_suggested_count_excludes_eigenvalues_below_gamma():
    spectrum = 0.1 ** np.arange(10.0)
    assert suggest_count(spectrum, 1.5e-4)[0] == 4
    assert suggest_count(spectrum, 1e-12)[0] == 10
