"""Preprocessing steps, written as words so that they travel with the recipe.

A step is a word (`"log1p"`), a word with a number (`"pca:50"`) or a pair (`("pca", 50)`);
steps run in the order given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from .. import _check
from .._check import FloatArray
from ..errors import InputError, InputTypeError

Step: TypeAlias = str | tuple[str, float]
Values: TypeAlias = Any  # an ndarray or a SciPy CSR array; SciPy ships no types

_LAPACK_SIDE = 1000  # up to here all components take a second
_FILLED = 1 << 28  # bytes up to which sparse values are filled in for that


def parse_steps(steps: Step | Iterable[Step] | None) -> tuple[str, ...]:
    """Return steps in their canonical form, a tuple of words such as `"pca:50"`.

    Examples
    --------
    >>> parse_steps(["log1p", ("pca", 50)])
    ('log1p', 'pca:50')
    """
    if steps is None or (isinstance(steps, tuple) and not steps):
        return ()
    if isinstance(steps, str) or _is_pair(steps):
        steps = [steps]  # type: ignore[list-item]
    if not isinstance(steps, Iterable):
        raise InputTypeError(
            f"preprocess={steps!r} must be a list of steps such as ['log1p', 'pca:50']."
        )
    return tuple(_canonical(step) for step in steps)


def apply_steps(values: Values, steps: tuple[str, ...]) -> Values:
    """Run canonical steps one after the other on (N, d) values, dense or CSR."""
    for step in steps:
        name, _, argument = step.partition(":")
        run = STEPS[name]
        values = run(values, float(argument)) if argument else run(values)
    return values


def normalize_total(values: Values, target: float = 1e4) -> Values:
    """Scale each row to the same sum, as is done for counts; rows of zeros stay as they are."""
    totals = np.asarray(values.sum(axis=1), dtype=np.float64).ravel()
    if totals.min() < 0:
        raise InputError(
            f"preprocess step 'normalize_total' needs counts; row {int(totals.argmin())} sums "
            f"to {totals.min():g}. Leave the step out for data that is not counts."
        )
    factors = np.divide(target, totals, out=np.ones_like(totals), where=totals > 0)
    if sparse.issparse(values):
        return sparse.csr_array(sparse.diags_array(factors) @ values)
    return values * factors[:, None]


def log1p(values: Values) -> Values:
    """Return log(1 + x), which tames counts."""
    smallest = values.min()
    if smallest <= -1:
        raise InputError(
            f"preprocess step 'log1p' needs values above -1; the smallest is {smallest:g}. "
            "Use 'arcsinh:<cofactor>' for data with negative values."
        )
    return values.log1p() if sparse.issparse(values) else np.log1p(values)


def arcsinh(values: Values, cofactor: float) -> Values:
    """Return arcsinh(x / cofactor), the usual scale of cytometry (150 flow, 5 mass)."""
    scaled = values * (1.0 / cofactor)
    return scaled.arcsinh() if sparse.issparse(values) else np.arcsinh(scaled)


def standardize(values: Values) -> Values:
    """Bring every column to zero mean and unit variance; constant columns are only centred.

    Sparse values are not centred, which would fill them: Euclidean distances between rows are
    the same without it, angles between them (`metric="cosine"`) are not.
    """
    from sklearn.preprocessing import StandardScaler

    return StandardScaler(with_mean=not sparse.issparse(values)).fit_transform(values)


def pca(values: Values, n_components: float) -> FloatArray:
    """Return the scores on the first principal components.

    LAPACK where it is cheap, otherwise a randomized SVD with a fixed seed, so that the same
    data always gets the same scores.
    """
    from sklearn.decomposition import PCA

    n_samples, n_features = values.shape
    k = int(n_components)
    require_components(k, (n_samples, n_features))
    few = min(n_samples, n_features) <= _LAPACK_SIDE
    whole = k == min(n_samples, n_features)  # ARPACK must leave something out
    if sparse.issparse(values) and (whole or (few and 8 * n_samples * n_features <= _FILLED)):
        values = values.toarray()
    if sparse.issparse(values):
        solver = "covariance_eigh" if n_features <= 3000 else "arpack"
        values = sparse.csr_matrix(values) if solver == "arpack" else values
    else:
        solver = "full" if few else "randomized"
    model = PCA(k, svd_solver=solver, random_state=0)
    scores: FloatArray = np.ascontiguousarray(model.fit_transform(values))
    return scores


def require_components(n_components: int, shape: tuple[int, int]) -> None:
    """Refuse more components than there are rows or columns."""
    if n_components > min(shape):
        raise InputError(
            f"preprocess step 'pca:{n_components}' needs at least {n_components} rows and "
            f"columns; the data has shape {shape}. Ask for fewer components."
        )


STEPS: dict[str, Callable[..., Values]] = {
    "normalize_total": normalize_total,
    "log1p": log1p,
    "arcsinh": arcsinh,
    "standardize": standardize,
    "pca": pca,
}

# Steps that need no other row than the one they work on; the rest is fitted to all rows.
ROW_BY_ROW = ("normalize_total", "log1p", "arcsinh")


def is_fitted(step: str) -> bool:
    """Say whether a canonical step learns from all rows of a dataset, as `pca` does.

    Examples
    --------
    >>> is_fitted("pca:50"), is_fitted("log1p")
    (True, False)
    """
    return step.partition(":")[0] not in ROW_BY_ROW


# The rule for the number behind a step's name: never, needed, or optional.
_ARGUMENT = {"normalize_total": "optional", "arcsinh": "needed", "pca": "needed"}
_DEFAULT = {"normalize_total": 1e4}
_EXAMPLE = {"arcsinh": "'arcsinh:150' (flow) or 'arcsinh:5' (mass)", "pca": "'pca:50'"}


def _is_pair(value: object) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and isinstance(value[0], str)
        and not isinstance(value[1], (str, tuple))
    )


def _canonical(step: object) -> str:
    if _is_pair(step):
        name, argument = step  # type: ignore[misc]
        given = True
    elif isinstance(step, str):
        name, colon, text = step.partition(":")
        argument, given = _number(step, text), bool(colon)
    else:
        raise InputTypeError(
            f"preprocess step {step!r} must be a word such as 'log1p' or 'pca:50'."
        )
    _check.one_of("preprocess step", name, STEPS)
    rule = _ARGUMENT.get(name, "never")
    if given and rule == "never":
        raise InputError(f"preprocess step {name!r} takes no number; {argument!r} was given.")
    if not given:
        if rule == "needed":
            raise InputError(f"preprocess step {name!r} needs a number: write {_EXAMPLE[name]}.")
        return name
    number = _check.real_number(f"preprocess step {name!r}", argument, minimum=0.0, strict=True)
    if name == "pca":
        _check.positive_int("preprocess step 'pca'", int(number) if number % 1 == 0 else number)
    return name if number == _DEFAULT.get(name) else f"{name}:{_shortest(number)}"


def _shortest(number: float) -> str:
    """Return the shortest text that reads back as this number, whole ones without a point."""
    return repr(int(number) if number % 1 == 0 and number < 1e16 else number)


def _number(step: str, text: str) -> float:
    if ":" not in step:
        return float("nan")
    try:
        return float(text)
    except ValueError:
        raise InputError(
            f"preprocess step {step!r}: {text!r} is not a number. Write it as 'pca:50'."
        ) from None
