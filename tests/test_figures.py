"""Figures return Axes with the documented content and leave global state unchanged."""

import base64
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.cluster.hierarchy import leaves_list

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


@pytest.fixture(scope="module")
def drawn(comparison, clouds):
    """A function that draws any kind of figure, `margins` of a comparison with references."""
    others = {name: np.roll(points, 1, axis=0) ** 3 for name, points in clouds.items()}
    matched = ua.compare(clouds, others, n_eigenvalues=20)
    return lambda kind, **options: (matched if kind == "margins" else comparison).plot(
        kind, **options
    )


@pytest.mark.parametrize("kind", figures.KINDS)
def test_plots_leave_pyplot_and_settings_unchanged(drawn, kind):
    before = dict(mpl.rcParams)
    axes = drawn(kind)
    assert isinstance(axes, Axes)
    assert axes.get_title()
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("kind", figures.KINDS)
def test_plots_use_the_given_axes(drawn, kind):
    mine = Figure().add_subplot()
    assert drawn(kind, ax=mine) is mine
    assert mine.has_data()


def test_unknown_kind_raises_with_a_suggestion(comparison):
    with pytest.raises(InputError, match=r"kind='heatmpa'.*Did you mean 'heatmap'"):
        comparison.plot("heatmpa")


def test_heatmap_shows_names_and_numbers(comparison):
    axes = figures.heatmap(comparison)
    assert [label.get_text() for label in axes.get_yticklabels()] == list(comparison.names)
    np.testing.assert_array_equal(axes.images[0].get_array(), comparison.distances)
    texts = {text.get_text() for text in axes.texts}
    assert f"{comparison.distances.max():.3g}" in texts


def test_rounding_errors_are_shown_as_zero(clouds):
    moved = {"1d": clouds["1d"], "moved": clouds["1d"] + 1.0, "5d": clouds["5d"]}
    found = ua.compare(moved, n_eigenvalues=20)
    assert 0 < found["1d", "moved"] < 1e-6
    texts = [text.get_text() for text in figures.heatmap(found).texts]
    assert all("e" not in text for text in texts)


def test_coinciding_datasets_share_a_label(clouds):
    moved = {"1d": clouds["1d"], "moved": clouds["1d"] + 1.0, "5d": clouds["5d"]}
    axes = figures.embedding(ua.compare(moved, n_eigenvalues=20))
    assert {text.get_text() for text in axes.texts} == {"1d, moved", "5d"}


def test_heatmap_of_a_rectangular_comparison_has_both_sets_of_names(clouds):
    axes = figures.heatmap(ua.compare({"a": clouds["1d"]}, {"b": clouds["2d"], "c": clouds["3d"]}))
    assert [label.get_text() for label in axes.get_xticklabels()] == ["b", "c"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a"]


def test_heatmap_without_numbers(comparison):
    assert not figures.heatmap(comparison, annotate=False).texts


def test_map_shows_names_and_groups(comparison):
    groups = {"1d": "flat", "2d": "flat", "3d": "thick", "5d": "thick"}
    axes = figures.embedding(comparison, color=groups)
    assert {text.get_text() for text in axes.texts} == set(comparison.names)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["flat", "thick"]


def test_tag_of_an_unknown_dataset_raises(comparison):
    with pytest.raises(InputError, match=r"tag 'tag' names '9d'.*not in the comparison"):
        figures.embedding(comparison, color={"9d": "thick"})


def test_spectra_are_the_eigenvalues_on_a_log_scale(comparison):
    axes = figures.spectra(comparison)
    assert axes.get_yscale() == "log"
    signature = comparison.signatures["3d"]
    drawn = {line.get_label(): line.get_ydata() for line in axes.lines}
    np.testing.assert_allclose(drawn["3d"], signature.eigenvalues + 1e-8)


def test_spectra_need_signatures(clouds):
    found = ua.compare(clouds, distance="euclidean")
    with pytest.raises(InputError, match=r"'spectra' needs signatures.*'euclidean' has none"):
        found.plot("spectra")


def test_spectra_show_gamma_and_a_band_for_each(comparison):
    axes = figures.spectra(comparison)
    levels = [line.get_ydata()[0] for line in axes.lines if line.get_linestyle() == ":"]
    assert levels == [1e-8]
    assert len(axes.collections) == 4


def test_numeric_tag_colours_map_and_spectra(comparison):
    widths = {"1d": 1, "2d": 2, "3d": 3, "5d": 5}
    for draw in (figures.embedding, figures.spectra):
        axes = draw(comparison, color={"width": widths})
        bar = next(a for a in axes.figure.axes if a is not axes)
        assert bar.get_ylabel() == "width"
        assert bar.get_ylim() == (1, 5)
        colours = [line.get_color() for line in axes.lines[:4]]
        assert colours[0] == mpl.colormaps["viridis"](0.0)
        assert colours[2] == mpl.colormaps["viridis"](0.5)
        assert colours[3] == mpl.colormaps["viridis"](1.0)


def test_tag_may_be_metadata(clouds):
    named = {n: ua.Dataset(v, metadata={"width": v.shape[1]}) for n, v in clouds.items()}
    axes = ua.compare(named, n_eigenvalues=20).plot("embedding", color="width")
    assert "width" in {a.get_ylabel() for a in axes.figure.axes}


def test_missing_tag_is_grey(comparison):
    axes = figures.embedding(comparison, color={"1d": "flat", "2d": "flat", "3d": "thick"})
    assert [line.get_color() for line in axes.lines][3] == "#999999"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["flat", "thick"]


def test_tree_order_follows_the_leaves(clouds):
    shuffled = {name: clouds[name] for name in ("1d", "5d", "2d", "3d")}
    found = ua.compare(shuffled, n_eigenvalues=20)
    axes = figures.heatmap(found, order="tree")
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == [found.names[i] for i in leaves_list(found.linkage())]
    assert names != list(found.names)
    assert [label.get_text() for label in axes.get_xticklabels()] == names
    shown = [[found[a, b] for b in names] for a in names]
    np.testing.assert_array_equal(axes.images[0].get_array(), shown)
    assert axes.child_axes[0].collections


def test_unknown_order_raises(comparison):
    with pytest.raises(InputError, match=r"order='size' is not known"):
        figures.heatmap(comparison, order="size")


def test_pair_shows_two_spectra_and_decades(comparison):
    axes = figures.pair(comparison, first="2d", second="3d")
    drawn = {line.get_label(): line.get_ydata() for line in axes.lines}
    for name in ("2d", "3d"):
        np.testing.assert_allclose(drawn[name], comparison.signatures[name].eigenvalues + 1e-8)
    bars = axes.child_axes[0].patches
    assert sum(bar.get_width() for bar in bars) == pytest.approx(100)
    for bar in bars:
        assert bar.get_y() + bar.get_height() == pytest.approx(10 * bar.get_y())


def test_pair_defaults_to_the_farthest(comparison):
    i, j = np.unravel_index(comparison.distances.argmax(), comparison.distances.shape)
    names = comparison.names[i], comparison.names[j]
    assert figures.pair(comparison).get_title().startswith("{} and {}".format(*names))


def test_unknown_pair_raises(comparison):
    with pytest.raises(InputError, match=r"There is no row '9d'"):
        figures.pair(comparison, first="9d")


def test_pair_of_a_rectangular_comparison_is_a_row_and_a_column(clouds):
    found = ua.compare({"a": clouds["1d"]}, {"b": clouds["3d"]}, n_eigenvalues=20)
    assert found.plot("pair").get_title().startswith("a and b")


@pytest.mark.parametrize("suffix", ["svg", "pdf", "png"])
def test_figures_are_saved_in_the_format_of_the_suffix(comparison, tmp_path, suffix):
    path = tmp_path / f"figure.{suffix}"
    figures.save(comparison.plot("pair").figure, path)
    start = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}[suffix]
    assert path.read_bytes().startswith(start)


def test_unknown_format_raises(comparison, tmp_path):
    with pytest.raises(InputError, match=r"figure.xyz' must end in .*\.png"):
        figures.save(comparison.plot("pair").figure, tmp_path / "figure.xyz")


def test_tree_has_a_leaf_per_dataset(comparison):
    axes = figures.dendrogram(comparison)
    assert {label.get_text() for label in axes.get_yticklabels()} == set(comparison.names)


LONG = "a dataset with quite a long name"


@pytest.fixture(scope="module")
def long_named():
    rng = np.random.default_rng(0)
    clouds = {f"{LONG} {d}": rng.normal(size=(60, d)) for d in (1, 2, 3, 5)}
    return ua.compare(clouds, n_eigenvalues=20)


def seen_labels(axes):
    """Return the boxes of the visible labels of a map."""
    axes.get_figure(root=True).draw_without_rendering()
    return {text.get_text(): text.get_window_extent() for text in axes.texts if text.get_visible()}


@pytest.mark.parametrize("plain", [False, True], ids=["own figure", "subplots"])
def test_map_labels_stay_inside_the_axes(long_named, plain):
    axes = Figure(figsize=(12, 5)).subplots(1, 2)[0] if plain else None
    axes = figures.embedding(long_named, ax=axes)
    labels = seen_labels(axes)
    assert len(labels) >= 2
    for box in labels.values():
        assert axes.bbox.x0 <= box.x0 < box.x1 <= axes.bbox.x1
        assert axes.bbox.y0 <= box.y0 < box.y1 <= axes.bbox.y1


@pytest.mark.parametrize("seed", range(3))
def test_map_labels_overlap_neither_each_other_nor_a_point(seed):
    rng = np.random.default_rng(seed)
    many = {f"sample {i}": rng.normal(size=(30, 1 + i % 6)) for i in range(40)}
    axes = figures.embedding(ua.compare(many, n_eigenvalues=10))
    labels = seen_labels(axes)
    assert 5 <= len(labels) < 40
    boxes = list(labels.values())
    assert not any(box.count_overlaps(boxes[:i]) for i, box in enumerate(boxes))
    points = axes.transData.transform([line.get_xydata()[0] for line in axes.lines])
    assert not any(box.contains(x, y) for box in boxes for x, y in points)


def test_map_labels_are_placed_again_after_resizing(long_named):
    figure = Figure(figsize=(1.5, 1.5))
    axes = figures.embedding(long_named, ax=figure.add_subplot())
    assert len(seen_labels(axes)) < 4
    figure.set_size_inches(14, 14)
    assert set(seen_labels(axes)) == set(long_named.names)


@pytest.mark.parametrize("kind", ["pair", "dendrogram", "embedding"])
def test_plots_do_not_overlap_the_next_subplot(long_named, kind):
    figure = Figure(figsize=(12, 4))
    first, second = figure.subplots(1, 2)
    end = first.bbox.x1
    long_named.plot(kind, ax=first)
    figure.draw_without_rendering()
    drawn = first.get_tightbbox()
    assert drawn.x1 <= end + 10  # half a number at the end of an axis
    assert drawn.x1 < second.get_tightbbox().x0


@pytest.mark.parametrize("order", ["given", "tree"])
def test_heatmap_does_not_overlap_other_subplots(long_named, order):
    figure = Figure(figsize=(12, 10))
    (above, _), (left, right) = figure.subplots(2, 2)
    long_named.plot("heatmap", ax=right, order=order)
    figure.draw_without_rendering()
    drawn = right.get_tightbbox()
    assert drawn.x0 > left.bbox.x1
    assert drawn.y1 < above.bbox.y0


def test_decades_stay_inside_the_axes(comparison):
    axes = figures.pair(comparison)
    axes.figure.draw_without_rendering()
    shares = axes.child_axes[0].bbox
    assert axes.bbox.x0 < shares.x0 < shares.x1 <= axes.bbox.x1 + 1
    spectra_end = axes.transData.transform((20, 1))[0]
    assert spectra_end < shares.x0
    assert axes.get_ylim() == axes.child_axes[0].get_ylim()


def test_colour_bar_names_the_distance(comparison):
    axes = figures.heatmap(comparison)
    assert [a.get_ylabel() for a in axes.figure.axes if a is not axes] == ["les distance"]


def test_line_and_its_band_have_one_colour():
    mean, axes = np.array([3.0, 2.0, 1.0]), Figure().subplots()
    line = figures.banded_line(axes, mean, mean, mean - 1, mean + 1, color="red", linestyle="--")
    (band,) = axes.collections
    assert (line.get_color(), line.get_linestyle()) == ("red", "--")
    assert band.get_facecolor()[0, :3].tolist() == [1.0, 0.0, 0.0]
    assert (band.get_datalim(axes.transData).y0, band.get_datalim(axes.transData).y1) == (0, 4)


def test_same_figure_gives_the_same_file(comparison, tmp_path):
    for name in ("one.svg", "two.svg"):
        figures.save(figures.heatmap(comparison).figure, tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_missing_folder_raises(comparison, tmp_path):
    with pytest.raises(FileError, match=r"Cannot write .*nowhere.*No such file"):
        figures.save(figures.heatmap(comparison).figure, tmp_path / "nowhere" / "a.png")


def test_importing_figures_does_not_import_matplotlib():
    code = "import sys, unaligned.figures; print('matplotlib' in sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "False"


def png_starts(data):
    return data[:8] == b"\x89PNG\r\n\x1a\n"


class TestWordsThatUsersType:
    @pytest.mark.parametrize("color", [[0, 2, 4, 10], np.arange(4), ("a", "b", "a", "b")])
    @pytest.mark.parametrize("kind", ["embedding", "spectra"])
    def test_color_may_be_a_list(self, comparison, kind, color):
        axes = comparison.plot(kind, color=color, cmap="magma")
        colours = [line.get_color() for line in axes.lines[:4]]
        assert colours[0] == mpl.colormaps["magma"](0.0)
        assert colours[3] == mpl.colormaps["magma"](1.0)

    def test_list_of_another_length_raises(self, comparison):
        with pytest.raises(InputError, match=r"has 2 values for 4 datasets"):
            comparison.plot("embedding", color=[1, 2])

    @pytest.mark.parametrize(("theirs", "ours"), [("tag", "color"), ("colour_map", "cmap")])
    def test_older_words_are_accepted(self, comparison, theirs, ours):
        value = {"color": [1, 2, 3, 4], "cmap": "magma"}[ours]
        kind = "embedding" if ours == "color" else "heatmap"
        drawn = [comparison.plot(kind, **{word: value}) for word in (theirs, ours)]
        first, second = (figures.style.png_of(axes.figure) for axes in drawn)
        assert first == second

    @pytest.mark.parametrize("kind", figures.KINDS)
    def test_every_kind_has_a_title_and_a_size(self, drawn, kind):
        axes = drawn(kind, title="Mine", figsize=(7, 3))
        assert axes.get_title() == "Mine"
        assert tuple(axes.figure.get_size_inches()) == (7, 3)

    @pytest.mark.parametrize("kind", figures.KINDS)
    def test_unknown_option_is_answered_with_those_there_are(self, drawn, kind):
        with pytest.raises(
            InputError, match=rf"plot '{kind}' has no option 'colr'.*figsize.*titl"
        ):
            drawn(kind, colr="day")

    @pytest.mark.parametrize("figsize", [3, (0, 1), "large", (1, 2, 3), (np.nan, 1)])
    def test_wrong_size_raises(self, comparison, figsize):
        with pytest.raises(InputError, match=r"figsize=.* must be \(width, height\) in inches"):
            comparison.plot(figsize=figsize)

    def test_size_of_given_axes_raises(self, comparison):
        with pytest.raises(InputError, match="figsize is the size of a new figure"):
            comparison.plot(ax=Figure().add_subplot(), figsize=(3, 3))

    def test_unknown_colour_map_raises_with_a_suggestion(self, comparison):
        with pytest.raises(InputError, match=r"cmap='virids'.*Did you mean 'viridis'"):
            comparison.plot(cmap="virids")

    def test_settings_of_the_user_win(self, comparison):
        with mpl.rc_context({"figure.figsize": (9, 2), "image.cmap": "magma", "font.size": 17}):
            axes = comparison.plot()
            label = axes.get_yticklabels()[0]
        assert tuple(axes.figure.get_size_inches()) == (9, 2)
        assert axes.images[0].get_cmap().name == "magma"
        assert label.get_fontsize() == 17


class TestNotebooks:
    @pytest.mark.parametrize("kind", figures.KINDS)
    def test_new_figures_are_displayed(self, drawn, kind):
        assert png_starts(drawn(kind)._repr_png_())

    def test_comparison_shows_table_and_picture(self, comparison):
        shown = comparison._repr_html_()
        assert "<table" in shown
        picture = shown.partition("base64,")[2].partition('"')[0]
        assert png_starts(base64.b64decode(picture))


class TestMargins:
    def test_line_shows_the_logarithms_of_the_factors(self, drawn):
        (line,) = (line for line in drawn("margins").get_lines() if line.get_marker() == "o")
        assert list(line.get_xdata()) == [-3, -2, -1, 0, 1, 2, 3]
        values = list(line.get_ydata())
        assert values[3] == 0
        assert values == values[::-1]
        assert 0 not in values[:3]

    def test_square_comparison_has_no_margins(self, comparison):
        with pytest.raises(InputError, match=r"match\(\) needs references"):
            comparison.plot("margins")
