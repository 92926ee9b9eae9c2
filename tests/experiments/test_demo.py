"""The sentences of the demo agree with its numbers."""

import numpy as np
import pytest

from unaligned.experiments.digits import run_demo


@pytest.fixture(scope="module")
def demo():
    return run_demo(progress=False)


def test_same_digits_are_nearer_than_different_digits(demo):
    family = np.array([name[0] for name in demo.comparison.names])
    same = family[:, None] == family[None, :]
    assert demo.comparison.distances[same].max() < demo.comparison.distances[~same].min()


def test_rotation_scale_and_order_leave_the_distance_at_zero(demo):
    assert demo.comparison["A1", "A2"] < 1e-6
    assert demo.comparison["B1", "B2"] < 1e-6


def test_descriptions_contain_the_size(demo):
    assert set(demo.descriptions) == set(demo.comparison.names)
    assert demo.descriptions["A1"].endswith("(901 × 64)")


def test_reading_compares_the_halves_without_a_common_image(demo):
    distances = demo.comparison
    least = min(distances[a, b] for a in ("A3", "A4") for b in ("B1", "B2", "B3", "B4"))
    expected = f"distance is {distances['A3', 'A4']:.2f}; to any B it is at least {least:.2f}"
    assert any(expected in sentence for sentence in demo.reading)


def test_reading_contains_ranges_bound_and_limitation(demo):
    text = " ".join(demo.reading)
    family = [name[0] for name in demo.comparison.names]
    largest = max(
        demo.comparison.distances[i, j]
        for i in range(8)
        for j in range(8)
        if family[i] == family[j]
    )
    assert f"0.00 to {largest:.2f}" in text
    assert "8 of 8" in text
    assert "accurate to within" in text
    assert "Limitation" in text
