"""AnnData objects wherever data goes."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import unaligned as ua
from unaligned.errors import (
    DataWarning,
    InputError,
    InputTypeError,
    OptionError,
    SampleSizeWarning,
)

anndata = pytest.importorskip("anndata")
pytest.importorskip("h5py")
DAYS = np.repeat(["D0", "D2", "D10"], 30)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 6))
PCA = X[:, :3] * np.repeat([1.0, 2.0, 3.0], 30)[:, None] ** np.arange(3)


def cells(values=X):
    """Return 90 cells of three days with six genes."""
    obs = pd.DataFrame(
        {"day": pd.Categorical(DAYS), "live": np.arange(90) % 10 != 0, "hour": np.arange(90.0)},
        index=[f"cell{i}" for i in range(90)],
    )
    var = pd.DataFrame(
        {"highly_variable": [True, False, True, True, False, False], "length": range(6)},
        index=list("abcdef"),
    )
    adata = anndata.AnnData(values, obs=obs, var=var)
    adata.layers["scaled"] = 2.0 * X
    adata.obsm["X_pca"] = PCA
    adata.obsm["table"] = pd.DataFrame(PCA, columns=list("xyz"), index=obs.index)
    return adata


def groups(values):
    return {day: values[day == DAYS] for day in ("D0", "D2", "D10")}


def expected(values):
    return ua.compare(groups(values), n_eigenvalues=10).distances


@pytest.fixture(params=["memory", "sparse", "view", "h5ad", "zarr", "backed", "lazy"])
def source(request, tmp_path):
    """Return the cells as every object or file there is of them."""
    adata = cells(sparse.csr_matrix(X) if request.param == "sparse" else X)
    if request.param == "view":
        more = cells()
        more.obs_names = [f"more{i}" for i in range(90)]
        return anndata.concat([adata, more], merge="same")[:90]
    if request.param in ("memory", "sparse"):
        return adata
    if request.param == "zarr":
        pytest.importorskip("zarr")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # AnnData's, about its future default
            adata.write_zarr(tmp_path / "cells.zarr")
        return tmp_path / "cells.zarr"
    adata.write_h5ad(tmp_path / "cells.h5ad")
    if request.param == "h5ad":
        return tmp_path / "cells.h5ad"
    if request.param == "backed":
        return anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    pytest.importorskip("xarray")
    return anndata.experimental.read_lazy(tmp_path / "cells.h5ad")


@pytest.mark.parametrize(
    ("options", "values"),
    [
        ({}, X),
        ({"use_rep": "X"}, X),
        ({"use_rep": "X_pca"}, PCA),
        ({"obsm_key": "X_pca"}, PCA),
        ({"layer": "scaled"}, 2 * X),
        ({"var_names": ["d", "a"]}, X[:, [3, 0]]),
        ({"var_names": "highly_variable"}, X[:, [0, 2, 3]]),
    ],
    ids=lambda given: "-".join(given) if isinstance(given, dict) else None,
)
def test_groups_of_every_source_equal_those_of_arrays(source, options, values):
    result = ua.compare(source, group_by="day", n_eigenvalues=10, **options)
    assert result.names == ("D0", "D2", "D10")
    np.testing.assert_allclose(result.distances, expected(values), rtol=1e-6, atol=1e-8)
    assert result.metadata["D2"]["day"] == "D2"


def test_groupby_is_another_name_of_group_by():
    found = ua.compare(cells(), groupby="day", obsm_key="X_pca", n_eigenvalues=10)
    np.testing.assert_allclose(found.distances, expected(PCA), rtol=1e-9)
    with pytest.raises(InputError, match="groupby is another name of group_by"):
        ua.compare(cells(), groupby="day", group_by="day")


@pytest.mark.parametrize("mask", ["live", np.arange(90) % 10 != 0])
def test_mask_of_obs_keeps_its_cells(mask):
    found = ua.load_all(cells(), group_by="day", mask_obs=mask)
    kept = np.arange(90) % 10 != 0
    for day, dataset in found.items():
        np.testing.assert_array_equal(dataset.values, X[kept & (day == DAYS)])
    assert ua.load(cells(), mask_obs=mask).n_samples == kept.sum()


def test_dict_list_and_views_of_anndata_are_datasets():
    adata = cells()
    parts = {day: adata[adata.obs.day == day] for day in ("D0", "D2", "D10")}
    found = ua.compare(parts, use_rep="X_pca", n_eigenvalues=10)
    np.testing.assert_allclose(found.distances, expected(PCA), rtol=1e-9)
    found = ua.compare(list(parts.values()), n_eigenvalues=10)
    np.testing.assert_allclose(found.distances, expected(X), rtol=1e-9)
    assert found.names == ("0", "1", "2")


def test_dict_with_group_by_has_a_dataset_for_each_name_and_group():
    adata = cells()
    found = ua.compare({"a": adata, "b": adata.copy()}, group_by="day", n_eigenvalues=5)
    assert found.names == ("a:D0", "a:D2", "a:D10", "b:D0", "b:D2", "b:D10")


def test_references_are_grouped_too():
    adata = cells()
    found = ua.compare(adata[::2], adata[1::2], group_by="day", use_rep="X_pca", n_eigenvalues=5)
    assert found.names == found.reference_names == ("D0", "D2", "D10")
    assert not found.is_square


def test_modalities_of_mudata_are_datasets():
    mudata = pytest.importorskip("mudata")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mdata = mudata.MuData({"rna": cells(), "protein": cells(2.0 * X[:, :6])})
    found = ua.compare(dict(mdata.mod), n_eigenvalues=10)
    assert found.names == ("rna", "protein")
    assert found.distances[0, 1] < 1e-6  # LES ignores scale
    assert ua.distance(mdata.mod["rna"], mdata.mod["protein"], use_rep="X_pca") == 0.0
    with pytest.raises(InputTypeError, match=r"MuData.*mdata\.mod") as caught:
        ua.compare(mdata, group_by="day")
    assert len(str(caught.value)) < 250
    with pytest.raises(InputTypeError, match=r"dataset 'a' is a MuData.*mdata\.mod"):
        ua.distance(mdata, mdata)


def test_one_dataset_is_accepted_everywhere():
    adata = cells()
    signature = ua.signature(adata, use_rep="X_pca", n_eigenvalues=10)
    np.testing.assert_allclose(signature.values, ua.signature(PCA, n_eigenvalues=10).values)
    assert ua.distance(adata, PCA, n_eigenvalues=10) > 0
    assert ua.estimate(adata, use_rep="X_pca", n_eigenvalues=10).n_samples == 90
    assert ua.estimate(adata, group_by="day", n_eigenvalues=10).n_samples == 90
    assert ua.diagnose(adata, n_eigenvalues=10) is not None
    test = ua.permutation_test(adata[:45], adata[45:], use_rep="X_pca", block_size=10)
    assert 0 < test.p_value <= 1


def test_a_column_of_obs_names_the_labels_of_the_rows_of_both():
    rng = np.random.default_rng(0)
    obs = {"kind": rng.choice(["x", "y"], size=400), "donor": np.repeat(list("abcd"), 100)}
    frame = pd.DataFrame(obs, index=[f"cell{i}" for i in range(400)])
    pair = [anndata.AnnData(rng.normal(size=(400, 3)), obs=frame) for _ in "ab"]
    explained = [
        ua.explain(*pair, by="rows", labels=labels, n_repeats=2).to_frame()
        for labels in ("kind", (obs["kind"], obs["kind"]))
    ]
    pd.testing.assert_frame_equal(*explained)
    with pytest.warns(SampleSizeWarning, match=r"4 and 4 groups \(paired\)"):
        tests = [
            ua.permutation_test(*pair, groups=groups)
            for groups in ("donor", (obs["donor"], obs["donor"]))
        ]
    assert tests[0].squared == tests[1].squared
    for call, argument in ((ua.explain, "labels"), (ua.permutation_test, "groups")):
        options = {"by": "rows"} if call is ua.explain else {}
        with pytest.raises(InputError, match=f"{argument}: 'kid' is not a column of obs. Did you"):
            call(*pair, **{argument: "kid"}, **options)


def test_names_of_genes_protect_distances_of_shared_features():
    adata = cells()
    parts = adata[:45], adata[45:, ::-1]
    with pytest.raises(ua.errors.NotApplicableError, match="bring the columns"):
        ua.distance(*parts, "edistance")
    ordered = ua.distance(*parts, "edistance", var_names=list("abcdef"))
    assert ordered == pytest.approx(ua.distance(X[:45], X[45:], "edistance"))


def test_table_in_obsm_keeps_its_names():
    assert ua.load(cells(), use_rep="table").feature_names == ("x", "y", "z")
    assert ua.load(cells(), use_rep="X_pca").feature_names is None


def test_added_anndata_are_read_as_the_others():
    adata = cells()
    old = ua.compare(adata[:60], group_by="day", use_rep="X_pca", n_eigenvalues=10)
    grown = old.add({"D10": adata[60:]})
    np.testing.assert_allclose(grown.distances, expected(PCA), rtol=1e-9)
    again = old.add({"D10": PCA[60:]})
    np.testing.assert_allclose(again.distances, expected(PCA), rtol=1e-9)


COUNTS = RNG.poisson(50.0, size=(90, 6)).astype(float) * RNG.integers(1, 4, size=(90, 1))


class TestRawCounts:
    @pytest.mark.parametrize("values", [COUNTS, sparse.csr_matrix(COUNTS), COUNTS.astype(int)])
    def test_raw_counts_warn_and_name_the_remedy(self, values):
        with pytest.warns(DataWarning, match=r"preprocess=\['normalize_total', 'log1p'\], or"):
            ua.compare(cells(values), group_by="day", n_eigenvalues=5)

    def test_principal_components_are_named_where_there_are_many_genes(self):
        counts = RNG.poisson(2.0, size=(150, 120)) * RNG.integers(1, 4, size=(150, 1))
        with pytest.warns(DataWarning, match=r"\['normalize_total', 'log1p', 'pca:50'\], or"):
            ua.load(anndata.AnnData(counts.astype(float)))

    def test_backed_counts_warn(self, tmp_path):
        cells(sparse.csr_matrix(COUNTS)).write_h5ad(tmp_path / "cells.h5ad")
        for source in (
            tmp_path / "cells.h5ad",
            anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r"),
        ):
            with pytest.warns(DataWarning, match="raw counts"):
                ua.load(source)

    def test_preprocessing_an_embedding_and_other_numbers_do_not_warn(self):
        adata = cells(COUNTS)
        steps = ["normalize_total", "log1p"]
        ua.compare(adata, group_by="day", preprocess=steps, n_eigenvalues=5)
        ua.compare(adata, group_by="day", use_rep="X_pca", n_eigenvalues=5)
        ua.load(cells(COUNTS + 0.5))
        ua.load(cells(np.eye(90, 6)))


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({}, r"one AnnData object, 90 × 6. Give group_by.*'day', 'live', 'hour'"),
            ({"group_by": "dya"}, r"'dya' is not a column of obs. Did you mean 'day'"),
            ({"group_by": "day", "use_rep": "X_pac"}, r"not in obsm. Did you mean 'X_pca'"),
            ({"group_by": "day", "layer": "scale"}, r"not in layers. Did you mean 'scaled'"),
            ({"group_by": "day", "layer": "scaled", "use_rep": "X_pca"}, "two matrices"),
            ({"group_by": "day", "var_names": ["a", "z"]}, r"1 of 2 names.*'z'"),
            ({"group_by": "day", "var_names": "length"}, r"'length' must be a column .* True or"),
            ({"group_by": "day", "var_names": "nothing"}, r"'nothing' is not a column of var"),
            ({"group_by": "day", "var_names": ["a"], "use_rep": "X_pca"}, "columns with names"),
            ({"group_by": "day", "var_names": []}, "var_names must be"),
            ({"group_by": "day", "mask_obs": [True, False]}, "each of the 90 rows"),
            ({"group_by": "day", "mask_obs": "hour"}, "True or False for each"),
            ({"group_by": "day", "mask_obs": np.zeros(90, bool)}, "keeps no row"),
            ({"group_by": "hour"}, "most groups would have one row"),
            ({"group_by": 3}, "must be the name of a column"),
            ({"group_by": np.zeros(12)}, r"must be the name of a column.*of shape \(12,\)"),
            ({"group_by": pd.Series(list("ab"))}, "name of a column, or several, not Series"),
            ({"group_by": "day", "use_rep": 3}, "use_rep must be the name of a matrix, not int"),
            ({"group_by": "day", "layer": np.eye(3)}, r"layer must be .* not ndarray of shape"),
        ],
        ids=str,
    )
    def test_wrong_options_raise_short_errors(self, options, message):
        with pytest.raises(InputError, match=message) as caught:
            ua.compare(cells(), **options)
        assert len(str(caught.value)) < 250

    def test_options_of_anndata_need_anndata(self):
        for data in (X, ua.Dataset(X), ua.signature(X, n_eigenvalues=5)):
            with pytest.raises(InputError, match="use_rep needs AnnData or its file"):
                ua.compare([data], use_rep="X_pca")
        with pytest.raises(InputError, match="group_by='day' needs a file, a DataFrame"):
            ua.compare([X], group_by="day")
        with pytest.raises(OptionError, match="has no option 'obsm'"):
            ua.compare(cells(), group_by="day", obsm="X_pca")

    def test_anndata_without_x_needs_a_representation(self):
        adata = anndata.AnnData(obs=cells().obs, obsm={"X_pca": PCA})
        with pytest.raises(InputError, match=r"there is no X\. Give use_rep"):
            ua.load(adata)
        assert ua.load(adata, use_rep="X_pca").n_features == 3

    def test_one_signature_cannot_be_grouped(self):
        with pytest.raises(InputError, match="one dataset"):
            ua.signature(cells(), group_by="day")

    def test_tables_and_arrays_have_no_representations(self, tmp_path):
        path = tmp_path / "t.csv"
        pd.DataFrame(X).to_csv(path, index=False)
        with pytest.raises(InputError, match="read as CSV, which has no option 'use_rep'"):
            ua.load(path, use_rep="X_pca")
