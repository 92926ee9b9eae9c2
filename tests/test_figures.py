"""Every figure returns Axes with what it promises, and leaves global state alone."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import unaligned as ua
from unaligned import figures
from unaligned.errors import FileError, InputError


@pytest.fixture(scope="module")
def clouds():
    rng = np.random.default_rng(0)
    return {f"{d}d": rng.normal(size=(80, d)) for d in (1, 2, 3, 5)}


@pytest.fixture(scope="module")
def comparison(clouds):
    return ua.compare(clouds, n_eigenvalues=20)


@pytest.mark.parametrize("kind", figures.KINDS)
def test_every_kind_draws_without_pyplot_and_without_changing_settings(comparison, kind):
    before = dict(mpl.rcParams)
    axes = comparison.plot(kind)
    assert isinstance(axes, Axes)
    assert axes.get_title()
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("kind", figures.KINDS)
def test_every_kind_draws_on_the_axes_it_is_given(comparison, kind):
    mine = Figure().add_subplot()
    assert comparison.plot(kind, ax=mine) is mine
    assert mine.has_data()


def test_an_unknown_kind_is_refused_with_the_nearest_one(comparison):
    with pytest.raises(InputError, match=r"kind='heatmpa'.*Did you mean 'heatmap'"):
        comparison.plot("heatmpa")


def test_the_heatmap_shows_names_and_numbers(comparison):
    axes = figures.heatmap(comparison)
    assert [label.get_text() for label in axes.get_yticklabels()] == list(comparison.names)
    np.testing.assert_array_equal(axes.images[0].get_array(), comparison.distances)
    texts = {text.get_text() for text in axes.texts}
    assert f"{comparison.distances.max():.3g}" in texts


def test_distances_of_rounding_only_are_written_as_zero(clouds):
    moved = {"1d": clouds["1d"], "moved": clouds["1d"] + 1.0, "5d": clouds["5d"]}
    found = ua.compare(moved, n_eigenvalues=20)
    assert 0 < found["1d", "moved"] < 1e-6
    texts = [text.get_text() for text in figures.heatmap(found).texts]
    assert all("e" not in text for text in texts)


def test_datasets_at_the_same_place_share_a_label(clouds):
    moved = {"1d": clouds["1d"], "moved": clouds["1d"] + 1.0, "5d": clouds["5d"]}
    axes = figures.embedding(ua.compare(moved, n_eigenvalues=20))
    assert {text.get_text() for text in axes.texts} == {"1d, moved", "5d"}


def test_the_heatmap_of_a_rectangular_comparison_has_both_sets_of_names(clouds):
    axes = figures.heatmap(ua.compare({"a": clouds["1d"]}, {"b": clouds["2d"], "c": clouds["3d"]}))
    assert [label.get_text() for label in axes.get_xticklabels()] == ["b", "c"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a"]


def test_numbers_are_left_out_on_request(comparison):
    assert not figures.heatmap(comparison, annotate=False).texts


def test_the_map_names_every_dataset_and_shows_its_groups(comparison):
    groups = {"1d": "flat", "2d": "flat", "3d": "thick", "5d": "thick"}
    axes = figures.embedding(comparison, tag=groups)
    assert {text.get_text() for text in axes.texts} == set(comparison.names)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["flat", "thick"]


def test_a_group_of_an_unknown_dataset_is_refused(comparison):
    with pytest.raises(InputError, match=r"tag 'tag' names '9d'.*not in the comparison"):
        figures.embedding(comparison, tag={"9d": "thick"})


def test_spectra_are_the_eigenvalues_on_a_log_scale(comparison):
    axes = figures.spectra(comparison)
    assert axes.get_yscale() == "log"
    signature = comparison.signatures["3d"]
    drawn = {line.get_label(): line.get_ydata() for line in axes.lines}
    np.testing.assert_allclose(drawn["3d"], signature.eigenvalues + 1e-8)


def test_spectra_of_a_distance_without_signatures_are_refused(clouds):
    found = ua.compare(clouds, distance="euclidean")
    with pytest.raises(InputError, match=r"'spectra' needs signatures.*'euclidean' has none"):
        found.plot("spectra")


def test_the_tree_has_a_leaf_per_dataset(comparison):
    axes = figures.dendrogram(comparison)
    assert {label.get_text() for label in axes.get_yticklabels()} == set(comparison.names)


def test_curves_are_solid_or_dashed_with_a_band_each():
    mean, std = np.array([3.0, 2.0, 1.0]), np.full(3, 0.1)
    lines = [figures.Curve("same", mean, std), figures.Curve("other", mean + 1, std, dashed=True)]
    axes = figures.curves([0.2, 0.6, 1.0], lines, xlabel="c")
    assert [line.get_linestyle() for line in axes.lines] == ["-", "--"]
    assert len(axes.collections) == 2
    assert axes.get_xlabel() == "c"


def test_the_same_picture_is_the_same_file(comparison, tmp_path):
    for name in ("one.svg", "two.svg"):
        figures.save(figures.heatmap(comparison).figure, tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_a_folder_that_is_missing_is_named(comparison, tmp_path):
    with pytest.raises(FileError, match=r"Cannot write .*nowhere.*No such file"):
        figures.save(figures.heatmap(comparison).figure, tmp_path / "nowhere" / "a.png")


def test_importing_figures_does_not_import_matplotlib():
    code = "import sys, unaligned.figures; print('matplotlib' in sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "False"
