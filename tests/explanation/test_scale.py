"""by="scale" names what is known: components, dimension, and where spectra part."""

import numpy as np
import pytest
from matplotlib.axes import Axes

import unaligned as ua
from unaligned.explanation.blocks import read_block
from unaligned.explanation.scale import components, dimension
from unaligned.operators.bandwidth import estimate_scale
from unaligned.operators.kernel import KernelSettings

QUICK = {"by": "scale", "n_repeats": 1, "progress": False}


def sphere(n, d, rng):
    points = rng.normal(size=(n, d + 1))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def torus(n, d, rng):
    angles = rng.uniform(0.0, 2.0 * np.pi, size=(n, d))
    return np.c_[np.cos(angles), np.sin(angles)]


def clusters(n, k, rng):
    centres = 3.0 * np.random.default_rng(0).normal(size=(5, 20))
    return centres[rng.integers(k, size=n)] + rng.normal(size=(n, 20))


@pytest.mark.parametrize("shape", [sphere, torus])
@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_the_dimension_is_that_of_the_manifold(shape, d):
    rng = np.random.default_rng(d)
    points = shape(1000, d, rng)
    points = points @ np.linalg.qr(rng.normal(size=(50, 50)))[0][: points.shape[1]]
    found = dimension(ua.Dataset(points), 1000, 0)
    assert float(found.value) == pytest.approx(d, abs=0.6)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [sphere, torus])
@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("width", [0, 50])
def test_the_dimension_of_3000_rows_is_within_0_6(shape, d, width):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        points = shape(3000, d, rng)
        wide = max(width, points.shape[1])
        points = points @ np.linalg.qr(rng.normal(size=(wide, wide)))[0][: points.shape[1]]
        found = dimension(ua.Dataset(points), 3000, seed)
        assert float(found.value) == pytest.approx(d, abs=0.6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [1, 2, 5])
def test_separated_clusters_are_counted(k, seed):
    rng = np.random.default_rng(seed)
    assert components_of(clusters(200, k, rng))[0] == k


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: sphere(200, 1, rng),
        lambda rng: sphere(200, 2, rng),
        lambda rng: rng.normal(size=(200, 5)),
        lambda rng: rng.standard_t(3, size=(200, 3)),
        lambda rng: np.r_[rng.normal(size=(198, 3)), [[50.0, 0, 0], [0, 80.0, 0]]],  # outliers
    ],
)
def test_what_is_connected_is_one_component(draw, seed):
    assert components_of(draw(np.random.default_rng(seed)))[0] == 1


def components_of(points):
    squared = read_block(ua.Dataset(points), np.arange(len(points))).squared
    sigma_squared = estimate_scale(squared, KernelSettings()).sigma_squared
    return components(squared, sigma_squared, "gaussian")


def test_the_words_name_one_more_group_and_the_dimension():
    rng = np.random.default_rng(0)
    a = ua.Dataset(clusters(320, 4, rng), name="A")
    b = ua.Dataset(clusters(320, 5, rng), name="B")
    found = ua.explain(a, b, **QUICK)
    assert "'B' has one more separated group than 'A' (4 and 5; gaps " in found.summary
    assert found["components"].values == (4.0, 5.0)
    assert found["components"].differs
    frame = found.to_frame()
    assert list(frame.index) == ["components", "gap", "effective rank", "dimension", "length"]
    assert list(frame.columns)[:3] == ["first", "first_low", "first_high"]
    assert frame.differs["components"]
    assert repr(found) == found.summary
    assert str(found).count("\n") == 6


def test_surfaces_of_other_dimension_part():
    rng = np.random.default_rng(0)
    found = ua.explain(sphere(400, 2, rng), sphere(400, 4, rng), **QUICK)
    assert found["dimension"].values == pytest.approx((2.0, 4.0), abs=0.4)
    assert found["dimension"].differs
    assert "Their dimensions differ: " in found.summary
    assert found.parting is not None
    assert "The spectra part at eigenvalue " in found.summary
    assert sum(decade.share for decade in found.decades) == pytest.approx(1.0)
    swapped = found.to_dict()["quantities"]["length"]["values"]
    assert all(value > 0 for value in swapped)
    assert isinstance(found.plot(), Axes)


def test_within_separated_groups_they_part_at_no_length():
    """Only the thickness of the groups differs, at any distance between them."""
    rng = np.random.default_rng(1)
    centres = 30.0 * np.eye(3)[np.arange(400) % 3]
    a, b = (rng.normal(size=(400, 3)) * (1, 1, thickness) + centres for thickness in (1, 0.2))
    found = ua.explain(a, b, **QUICK)
    assert found.parting > 3
    assert np.isnan(found["length"].values + found["length"].low + found["length"].high).all()
    assert not found["length"].differs
    assert "part at eigenvalue " in found.summary
    assert "within the separated groups, where no length is known" in found.summary
    assert isinstance(found.plot(), Axes)


@pytest.mark.parametrize("seed", range(3))
def test_samples_of_one_shape_do_not_part(seed):
    rng = np.random.default_rng(seed)
    found = ua.explain(*(rng.normal(size=(300, 3)) for _ in range(2)), **QUICK)
    assert found.parting is None
    assert np.isnan(found["length"].values).all()
    assert "do not part" in found.summary


def test_distances_have_scales_and_duplicates_do_not_count():
    rng = np.random.default_rng(0)
    points = sphere(150, 2, rng)
    twice = np.r_[points, points]
    matrices = [np.linalg.norm(x[:, None] - x, axis=2) for x in (twice, sphere(300, 2, rng))]
    found = ua.explain(*(ua.Dataset(m, "distances") for m in matrices), **QUICK)
    assert found["dimension"].values == pytest.approx((2.0, 2.0), abs=0.4)
