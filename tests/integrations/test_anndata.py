"""`ua.sc`: results in `uns`, and figures as scanpy has them."""

import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import unaligned as ua
from unaligned.errors import InputError, InputTypeError

anndata = pytest.importorskip("anndata")
pytest.importorskip("h5py")
PLOTS = [ua.sc.pl.les, ua.sc.pl.les_heatmap]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with mpl.rc_context({"backend": "agg"}):
        yield
    plt.close("all")


@pytest.fixture
def adata():
    rng = np.random.default_rng(0)
    sizes = np.repeat([1.0, 1.5, 2.0, 3.0], 30)[:, None] ** np.arange(5)
    obs = pd.DataFrame(
        {
            "day": pd.Categorical(np.repeat(["0", "2", "4", "10"], 30)),
            "arm": np.repeat(["control", "drug"], 60),
            "age": rng.uniform(size=120),
            "plate": list("abc" * 40),
        },
        index=[f"cell{i}" for i in range(120)],
    )
    found = anndata.AnnData(rng.normal(size=(120, 5)) * sizes, obs=obs)
    found.obsm["X_pca"] = np.asarray(found.X)[:, :3]
    return found


def computed(adata, **options):
    ua.sc.tl.les(adata, group_by="day", n_eigenvalues=10, **options)
    return adata


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_rep": "X_pca"},
        {"distance": "edistance"},
        {"distance": "imd", "method": "exact"},
        {"preprocess": "standardize"},
        {"min_samples": 5},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["memory", "h5ad", "zarr"])
def test_result_survives_writing_and_returns_as_a_comparison(adata, kind, options, tmp_path):
    if options.get("distance", "les") == "les":
        options = {**options, "n_eigenvalues": 10}
    assert ua.sc.tl.les(adata, group_by="day", **options) is None
    expected = ua.compare(adata, group_by="day", **options)
    if kind == "h5ad":
        adata.write_h5ad(tmp_path / "a.h5ad")
        adata = anndata.read_h5ad(tmp_path / "a.h5ad")
    elif kind == "zarr":
        pytest.importorskip("zarr")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # AnnData's, about its future default
            adata.write_zarr(tmp_path / "a.zarr")
            adata = anndata.read_zarr(tmp_path / "a.zarr")
    found = ua.sc.get.les(adata)
    assert found.names == expected.names == ("0", "2", "4", "10")
    np.testing.assert_array_equal(found.distances, expected.distances)
    np.testing.assert_array_equal(found.error_bounds, expected.error_bounds)
    assert repr(found)[:20] == repr(expected)[:20]
    assert list(found.signatures) == list(expected.signatures)
    assert found.correlate("day") == expected.correlate("day")
    table = adata.uns["les"]["distances"]
    assert table.loc["0", "10"] == found["0", "10"]
    assert adata.uns["les"]["params"]["group_by"] == "day"


@pytest.mark.filterwarnings("ignore:6 pairs of at most 4 blocks")
def test_inference_survives_too(adata, tmp_path):
    big = anndata.concat([adata] * 4, index_unique="-")
    ua.sc.tl.les(big, group_by="day", inference=True, n_eigenvalues=10)
    big.write_h5ad(tmp_path / "a.h5ad")
    found = ua.sc.get.les(anndata.read_h5ad(tmp_path / "a.h5ad"))
    assert found.inference.p_values.shape == (4, 4)


def test_several_results_have_keys(adata):
    computed(adata)
    ua.sc.tl.les(adata, group_by="arm", distance="edistance", key_added="energy")
    assert ua.sc.get.les(adata, "energy").distance_name == "edistance"
    assert ua.sc.get.les(adata).distance_name == "les"


@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.__name__)
class TestFigures:
    def test_axes_are_returned_without_a_display(self, plot, adata):
        axes = plot(computed(adata))
        assert isinstance(axes, Axes)
        assert plt.fignum_exists(axes.figure.number)

    def test_figure_is_returned_if_asked_for(self, plot, adata):
        figure = plot(computed(adata), return_fig=True, figsize=(7, 3), title="Mine")
        assert isinstance(figure, Figure)
        assert tuple(figure.get_size_inches()) == (7, 3)
        assert figure.axes[0].get_title() == "Mine"

    def test_given_axes_are_used(self, plot, adata):
        _, mine = plt.subplots()
        assert plot(computed(adata), ax=mine) is mine
        assert mine.has_data()

    def test_figure_is_shown_once_and_nothing_returned(self, plot, adata, monkeypatch):
        shown = []
        monkeypatch.setattr(plt, "show", lambda: shown.append(True))
        assert plot(computed(adata), show=True) is None
        assert shown == [True]

    @pytest.mark.parametrize(
        ("save", "name"),
        [
            (True, "figures/{}.pdf"),
            ("_days.png", "figures/{}_days.png"),
            ("_days", "figures/{}_days.pdf"),
            ("mine/days.svg", "mine/days.svg"),
        ],
    )
    def test_figure_is_saved_where_scanpy_saves_it(self, plot, adata, save, name, tmp_path):
        (tmp_path / "mine").mkdir()
        plot(computed(adata), save=save)
        assert (tmp_path / name.format(plot.__name__)).stat().st_size > 1000

    def test_settings_of_the_user_win(self, plot, adata):
        with mpl.rc_context({"figure.figsize": (9, 2)}):
            figure = plot(computed(adata), return_fig=True)
        assert tuple(figure.get_size_inches()) == (9, 2)

    def test_missing_result_raises(self, plot, adata):
        with pytest.raises(InputError, match=r"key='les' is not in adata.uns.*Run ua.sc.tl.les"):
            plot(adata)


class TestColours:
    def bar(self, axes):
        return next(a for a in axes.figure.axes if a is not axes)

    def test_grouping_column(self, adata):
        axes = ua.sc.pl.les(computed(adata), color="day")
        assert self.bar(axes).get_ylim() == (0, 10)

    def test_column_with_one_value_per_group(self, adata):
        axes = ua.sc.pl.les(computed(adata), color="arm", cmap="magma")
        assert [t.get_text() for t in axes.get_legend().get_texts()] == ["control", "drug"]

    def test_column_of_numbers_is_averaged(self, adata):
        axes = ua.sc.pl.les(computed(adata), color="age")
        means = adata.obs.groupby("day", observed=True)["age"].mean()
        assert self.bar(axes).get_ylim() == pytest.approx((means.min(), means.max()))

    def test_list(self, adata):
        assert self.bar(ua.sc.pl.les(computed(adata), color=[1, 2, 3, 4])).get_ylim() == (1, 4)

    def test_wrong_columns_raise(self, adata):
        with pytest.raises(InputError, match="color='plate' has 3 values in the group '0'"):
            ua.sc.pl.les(computed(adata), color="plate")
        with pytest.raises(InputError, match=r"color='dya' is not a column of obs.*'day'"):
            ua.sc.pl.les(adata, color="dya")


def test_wrong_objects_raise_short_errors(adata):
    with pytest.raises(InputTypeError, match=r"must be an AnnData object, not ndarray of shape"):
        ua.sc.tl.les(np.eye(3), group_by="day")
    with pytest.raises(InputError, match="Give group_by"):
        ua.sc.tl.les(adata)
    adata.uns["les"] = {"other": 1}
    with pytest.raises(InputError, match=r"was not written by ua.sc.tl.les"):
        ua.sc.get.les(adata)


def test_errors_of_python_name_the_public_function(adata):
    with pytest.raises(TypeError, match=r"^tl\.les\(\) takes 1 positional argument but 2"):
        ua.sc.tl.les(adata, "day")
    with pytest.raises(TypeError, match=r"^pl\.les_heatmap\(\) takes 1 positional argument but 2"):
        ua.sc.pl.les_heatmap(adata, "day")
