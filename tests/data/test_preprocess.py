"""Preprocessing steps: canonical names, and agreement with scikit-learn."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler, normalize

import unaligned as ua
from unaligned.data.preprocess import apply_steps, parse_steps
from unaligned.errors import InputError, InputTypeError, RecipeMismatchError


def counts(seed, shape=(40, 12)):
    rng = np.random.default_rng(seed)
    table = rng.poisson(rng.gamma(0.3, 5.0, size=shape)).astype(float)
    table[0] = 0.0  # an empty cell
    table[:, 1] = 0.1  # a constant column whose mean is not exact
    return table


def unit_total(table, target=1e4):
    totals = table.sum(axis=1, keepdims=True)
    return table * np.where(totals > 0, target / np.where(totals > 0, totals, 1.0), 1.0)


def centred(values):
    return values - values.mean(axis=0)


REFERENCES = {
    "log1p": np.log1p,
    "arcsinh:150": lambda x: np.arcsinh(x / 150),
    "arcsinh:5": lambda x: np.arcsinh(x / 5),
    "normalize_total": unit_total,
    "normalize_total:100": lambda x: unit_total(x, 100),
    "l2": normalize,
    "standardize": lambda x: StandardScaler().fit_transform(x),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("step", REFERENCES)
def test_steps_equal_their_references(step, seed):
    table = counts(seed)
    expected = REFERENCES[step](table)
    found = apply_steps(table, (step,))
    assert np.allclose(found, expected, rtol=1e-12, atol=1e-12)
    thin = apply_steps(sparse.csr_array(table), (step,))
    assert sparse.issparse(thin)
    # Sparse columns are not centred; no distance between rows depends on it.
    assert np.allclose(centred(thin.toarray()), centred(expected), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_components", [1, 5, 12])
@pytest.mark.parametrize("seed", range(3))
def test_pca_equals_scikit_learn_up_to_signs(n_components, seed):
    table = counts(seed)
    expected = PCA(n_components, svd_solver="full").fit_transform(table)
    for values in (table, sparse.csr_array(table)):
        found = apply_steps(values, (f"pca:{n_components}",))
        assert np.allclose(np.abs(found), np.abs(expected), atol=1e-8)


@pytest.mark.parametrize("offset", [0.0, 1e7])
def test_pca_of_tall_data_equals_a_full_decomposition(offset):
    values = np.random.default_rng(0).normal(size=(900, 9)) * 0.3 ** np.arange(9) + offset
    expected = PCA(6, svd_solver="full").fit_transform(values)
    found = apply_steps(values, ("pca:6",))
    assert np.allclose(np.abs(found), np.abs(expected), atol=1e-7)


@pytest.mark.parametrize("shape", [(1100, 1050), (1050, 1100), (1010, 4100)])
def test_pca_of_wide_noise_is_exact_for_dense_and_sparse(shape):
    values = np.random.default_rng(0).normal(size=shape)
    centred = values - values.mean(axis=0)
    covariance = centred @ centred.T if shape[0] < shape[1] else centred.T @ centred
    wanted = np.sqrt(np.linalg.eigvalsh(covariance)[::-1][:10])
    for given in (values, sparse.csr_array(values)):
        lengths = np.linalg.norm(apply_steps(given, ("pca:10",)), axis=0)
        np.testing.assert_allclose(lengths, wanted, rtol=1e-8)


def test_full_pca_of_a_wide_sparse_table_keeps_distances():
    wide = sparse.random_array((20, 3100), density=0.02, rng=0, format="csr")
    scores = apply_steps(wide, ("pca:20",))
    squared = ((scores[:, None] - scores[None]) ** 2).sum(axis=-1)
    dense = wide.toarray()
    assert np.allclose(squared, ((dense[:, None] - dense[None]) ** 2).sum(axis=-1), atol=1e-9)


@pytest.mark.parametrize(
    ("steps", "canonical"),
    [
        (None, ()),
        ([], ()),
        ("log1p", ("log1p",)),
        (["log1p", "pca:50"], ("log1p", "pca:50")),
        (("log1p", "standardize"), ("log1p", "standardize")),
        (("pca", 50), ("pca:50",)),
        ([("pca", np.int64(50))], ("pca:50",)),
        ("pca:50.0", ("pca:50",)),
        ("pca:5e1", ("pca:50",)),
        (("arcsinh", 0.1), ("arcsinh:0.1",)),
        ("arcsinh:5.0", ("arcsinh:5",)),
        ("arcsinh:1e-300", ("arcsinh:1e-300",)),
        ("normalize_total:10000", ("normalize_total",)),
        ("normalize_total:1e6", ("normalize_total:1000000",)),
        (iter(["log1p"]), ("log1p",)),
    ],
)
def test_steps_have_a_canonical_form(steps, canonical):
    assert parse_steps(steps) == canonical
    assert parse_steps(canonical) == canonical


@pytest.mark.parametrize(
    ("steps", "error", "message"),
    [
        ("lgo1p", InputError, r"'lgo1p' is not known. Did you mean 'log1p'\?"),
        ("", InputError, r"preprocess step='' is not known. Choose one of: normalize_total"),
        ("pca", InputError, r"'pca' needs a number, as in 'pca:50'"),
        ("arcsinh", InputError, r"needs a number, as in 'arcsinh:150' \(flow\)"),
        ("log1p:3", InputError, r"'log1p' takes no number; 3.0 was given"),
        ("pca:", InputError, r"'' is not a number. Write it as 'pca:50'"),
        ("pca:many", InputError, r"'many' is not a number"),
        ("pca:2.5", InputTypeError, r"'pca'=2.5 must be a whole number"),
        ("pca:0", InputError, r"'pca'=0.0 must be above 0"),
        ("pca:inf", InputError, r"'pca'=inf must be finite"),
        ("arcsinh:nan", InputError, r"'arcsinh'=nan must be finite"),
        ("arcsinh:-5", InputError, r"'arcsinh'=-5.0 must be above 0"),
        (("pca", None), InputError, r"'pca' needs a number, as in 'pca:50'"),
        (("pca", [5]), InputTypeError, r"'pca'=\[5\] must be a number"),
        (("pca", True), InputTypeError, r"'pca'=True must be a number, not bool"),
        ([5], InputTypeError, r"step 5 must be text"),
        (5, InputTypeError, r"preprocess=5 must be a list of steps"),
    ],
)
def test_wrong_steps_raise_with_the_correct_form(steps, error, message):
    with pytest.raises(error, match=message):
        parse_steps(steps)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ("log1p", r"'log1p' needs values above -1; the smallest is -3.*arcsinh"),
        ("normalize_total", r"'normalize_total' needs counts; row 1 sums to -3"),
        ("pca:3", r"'pca:3' needs at least 3 rows and columns; the data has shape \(3, 2\)"),
    ],
)
@pytest.mark.parametrize("make", [np.array, sparse.csr_array])
def test_invalid_data_for_a_step_raises(steps, message, make):
    with pytest.raises(InputError, match=message):
        ua.signature(make([[1.0, 2.0], [-3.0, 0.0], [4.0, 5.0]]), preprocess=steps)


@pytest.mark.parametrize("make", [np.array, sparse.csr_array])
def test_l2_scales_rows_to_length_one_and_keeps_rows_of_zeros(make):
    rows = make([[3.0, -4.0], [0.0, 0.0], [1e-200, 0.0], [5.0, 12.0]])
    found = apply_steps(rows, ("l2",))
    found = found.toarray() if sparse.issparse(found) else found
    assert np.allclose(found[[0, 1, 3]], [[0.6, -0.8], [0, 0], [5 / 13, 12 / 13]])
    with pytest.raises(InputError, match=r"'l2' takes no number; 2\.0 was given"):
        parse_steps("l2:2")


def test_steps_run_in_order():
    table = counts(0)
    forward, backward = ("normalize_total", "log1p"), ("log1p", "normalize_total")
    assert np.allclose(apply_steps(table, forward), np.log1p(unit_total(table)))
    assert np.allclose(apply_steps(table, backward), unit_total(np.log1p(table)))
    first, second = (
        ua.signature(table, n_eigenvalues=9, preprocess=s) for s in (forward, backward)
    )
    assert first.recipe.preprocess == forward
    with pytest.raises(
        RecipeMismatchError, match=r"preprocess: \('normalize_total', 'log1p'\) and"
    ):
        ua.distance(first, second)


def test_preprocess_option_equals_preprocessed_data():
    table = counts(1)
    here = ua.signature(table, n_eigenvalues=9, preprocess=["normalize_total", "log1p"])
    before = ua.signature(np.log1p(unit_total(table)), n_eigenvalues=9)
    assert np.allclose(here.values, before.values, atol=1e-9)
    thin = ua.signature(
        sparse.csr_array(table), n_eigenvalues=9, preprocess=here.recipe.preprocess
    )
    assert np.allclose(here.values, thin.values, atol=1e-9)


@pytest.mark.parametrize(
    ("steps", "second"), [((), 1.00), (("normalize_total", "log1p"), 0.10)], ids=["raw", "log"]
)
def test_second_eigenvalue_of_klein_counts_needs_logs(steps, second, klein):
    signature = ua.signature(klein, n_eigenvalues=5, preprocess=steps)
    assert signature.eigenvalues[1] == pytest.approx(second, abs=0.01)
