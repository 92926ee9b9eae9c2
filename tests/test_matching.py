"""Nearest references and margin factors (Appendix E)."""

import numpy as np
import pytest

import unaligned as ua
from unaligned.errors import InputError
from unaligned.matching import Match

NAMES = ("conv1", "conv2", "fc")


def match_of(distances, **options):
    distances = np.asarray(distances, dtype=float)
    n, m = distances.shape
    expected = np.arange(n) if n == m else None
    references = tuple(f"r{j}" for j in range(m))
    return Match(NAMES[:n], references, distances, "les", **{"expected": expected, **options})


@pytest.mark.parametrize("seed", range(3))
def test_margins_are_the_ratio_of_the_paper(seed):
    D = np.random.default_rng(seed).uniform(1.0, 2.0, size=(3, 3))
    match = match_of(D)
    largest = max(D[0, 0], D[1, 1], D[2, 2])
    assert match.margin(1) == min(D[0, 1], D[1, 0], D[1, 2], D[2, 1]) / largest
    assert match.margin(2) == min(D[0, 2], D[2, 0]) / largest
    assert match.margins.tolist() == [1.0, match.margin(1), match.margin(2)]


def test_margins_above_one_mean_that_every_layer_is_matched():
    match = match_of([[1, 3, 4], [3, 2, 3], [5, 3, 1]])
    assert match.margins[1:].min() > 1
    assert match.accuracy == 1.0
    assert match_of([[1, 3, 4], [1, 2, 3], [5, 3, 1]]).n_correct == 2


def test_equal_layers_have_infinite_margins():
    assert match_of([[0, 1], [1, 0]]).margin(1) == np.inf


def test_comparison_matches_by_order_or_by_what_is_expected():
    rng = np.random.default_rng(0)
    first = {f"a{d}": rng.normal(size=(90, d)) for d in (1, 4, 16)}
    second = {f"b{d}": rng.normal(size=(90, d)) for d in (16, 4, 1)}
    found = ua.compare(first, second, n_eigenvalues=20)
    assert found.match().nearest == {"a1": "b1", "a4": "b4", "a16": "b16"}
    assert found.match().accuracy == pytest.approx(1 / 3)
    right = {f"a{d}": f"b{d}" for d in (4, 1, 16)}
    assert found.match(right).accuracy == 1.0
    assert found.match(["b1", "b4", "b16"]).to_frame()["correct"].all()
    assert repr(found.match(right)) == "Match(les, 3 × 3, 3 of 3 correct)"


def test_other_numbers_of_layers_have_a_nearest_one_but_no_margins():
    match = match_of([[1, 2, 3], [3, 2, 0.5]])
    assert match.nearest == {"conv1": "r0", "conv2": "r2"}
    with pytest.raises(InputError, match=r"2 datasets and 3 references.*expected="):
        match.accuracy  # noqa: B018
    with pytest.raises(InputError, match=r"margin.*2 datasets and 3 references"):
        match.margin(1)


@pytest.mark.parametrize("shift", [3, -1])
def test_shifts_outside_of_the_layers_raise(shift):
    with pytest.raises(InputError, match=f"shift={shift} must be"):
        match_of(np.ones((3, 3))).margin(shift)


def test_wrong_expectations_raise():
    clouds = {"a": np.eye(5), "b": np.eye(5)[:, :3]}
    found = ua.compare(clouds, clouds, n_eigenvalues=3)
    with pytest.raises(InputError, match="no column 'c'"):
        found.match({"a": "c", "b": "a"})
    with pytest.raises(InputError, match="no entry of expected 'b'"):
        found.match({"a": "a"})
    with pytest.raises(InputError, match="no row 'z'"):
        found.match({"a": "a", "b": "b", "z": "a"})
    for wrong in (["a"], "ab", 3):
        with pytest.raises(InputError, match="expected must be a dict of dataset -> reference"):
            found.match(wrong)
    with pytest.raises(InputError, match="needs references"):
        ua.compare(clouds, n_eigenvalues=3).match()
