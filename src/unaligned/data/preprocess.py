"""Preprocessing steps, named by text so that they are part of the recipe.

A step is a name (`"log1p"`), a name with a number (`"pca:50"`) or a pair (`("pca", 50)`); steps
run in the order given.
"""

from collections.abc import Callable, Iterable
from typing import Any, Self, TypeAlias

import numpy as np
from scipy import sparse

from .. import _check
from .._check import FloatArray
from ..defaults import COVARIANCE_COLUMNS
from ..errors import InputError, InputTypeError

Step: TypeAlias = str | tuple[str, float]
Values: TypeAlias = Any  # an ndarray or a SciPy CSR array; SciPy ships no types


class FittedStep(str):
    """A step fitted to given rows, `standardize` or `pca`, which acts on each row by itself.

    Its text, such as `pca:50@references-1f2e3d4c`, names the rows, so that recipes differ.
    """

    offset: FloatArray  # subtracted, (d,)
    factor: FloatArray  # scales to divide by, (d,), or axes to project on, (d, k)

    def __new__(cls, text: str, offset: FloatArray, factor: FloatArray) -> Self:
        """Return the step; arrays are not copied."""
        if offset.ndim != 1 or factor.ndim > 2 or factor.shape[:1] != offset.shape:
            raise InputError(f"the arrays of the fitted step {text!r} differ in shape")
        step = super().__new__(cls, text)
        step.offset, step.factor = offset, factor
        return step

    def __getnewargs__(self) -> tuple[Any, ...]:
        return str(self), self.offset, self.factor

    def apply(self, values: Values) -> Values:
        """Return the transformed rows; sparse ones stay sparse where nothing is subtracted."""
        n_features, projects = self.offset.size, self.factor.ndim == 2
        if values.shape[1] != n_features:
            raise InputError(
                f"preprocess step {str(self)!r} was fitted to {n_features} columns; the data has "
                f"{values.shape[1]}. Give data with the same columns."
            )
        if sparse.issparse(values):
            if projects:
                return np.asarray(values @ self.factor) - self.offset @ self.factor
            if not self.offset.any():
                return sparse.csr_array(values.multiply(1.0 / self.factor))
            values = values.toarray()
        centred = values - self.offset
        return centred @ self.factor if projects else centred / self.factor


def unfitted(steps: Iterable[str]) -> tuple[str, ...]:
    """Return steps without the rows that they were fitted to: `pca:50`."""
    return tuple(step.partition("@")[0] for step in steps)


def parse_steps(steps: Step | Iterable[Step] | None) -> tuple[str, ...]:
    """Return steps in their canonical form, a tuple of names such as `"pca:50"`."""
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
    """Apply canonical steps in order to (N, d) values, dense or CSR."""
    for step in steps:
        if isinstance(step, FittedStep):
            values = step.apply(values)
            continue
        name, _, argument = step.partition(":")
        values = STEPS[name](values, *([float(argument)] if argument else []))
    return values


def normalize_total(values: Values, target: float = 1e4) -> Values:
    """Scale each row to the same sum; rows of zeros are unchanged."""
    totals = np.asarray(values.sum(axis=1), dtype=np.float64).ravel()
    if totals.min() < 0:
        raise InputError(
            f"preprocess step 'normalize_total' needs counts; row {int(totals.argmin())} sums "
            f"to {totals.min():g}. Omit the step for data that is not counts."
        )
    factors = np.divide(target, totals, out=np.ones_like(totals), where=totals > 0)
    if sparse.issparse(values):
        return sparse.csr_array(sparse.diags_array(factors) @ values)
    return values * factors[:, None]


def l2(values: Values) -> Values:
    """Scale each row to Euclidean norm 1; rows of zeros are unchanged.

    Squared distances between such rows are 2 - 2 cos, so their Gaussian affinity is a positive
    definite kernel of the angle, which that of `metric="cosine"` is not.
    """
    from sklearn.preprocessing import normalize

    return normalize(values)


def log1p(values: Values) -> Values:
    """Return log(1 + x)."""
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
    """Scale every column to zero mean and unit variance; constant columns are only centred.

    Sparse values are not centred, to stay sparse: Euclidean distances between rows are the same,
    angles between them (`metric="cosine"`) are not.
    """
    from sklearn.preprocessing import StandardScaler

    return StandardScaler(with_mean=not sparse.issparse(values)).fit_transform(values)


def pca(values: Values, n_components: float) -> FloatArray:
    """Return the scores on the first principal components.

    Tall data (N ≥ 10 d, d ≤ 4000) by one product for its d × d covariance, small data (N or d at
    most 1000) by a full SVD, else by ARPACK with a fixed start: all of them to rounding, so that
    dense and sparse values have the same scores.
    """
    from sklearn.decomposition import PCA

    k, smaller_side = int(n_components), min(values.shape)
    require_components(k, values.shape)
    if sparse.issparse(values):
        fits = smaller_side <= 1000 and 8 * values.shape[0] * values.shape[1] <= 1 << 28  # 256 MiB
        if fits or k == smaller_side:  # ARPACK cannot compute all components
            values = values.toarray()
    n, d = values.shape
    if not sparse.issparse(values) and n >= 10 * d and d <= COVARIANCE_COLUMNS:
        solver, values = "covariance_eigh", values - values.mean(axis=0)  # against cancellation
    elif not sparse.issparse(values):
        solver = "full" if smaller_side <= 1000 or k == smaller_side else "arpack"
    elif d <= COVARIANCE_COLUMNS:
        solver = "covariance_eigh"
    else:
        solver, values = "arpack", sparse.csr_matrix(values)
    scores = PCA(k, svd_solver=solver, random_state=0).fit_transform(values)
    return np.ascontiguousarray(scores, dtype=np.float64)


def require_components(n_components: int, shape: tuple[int, int]) -> None:
    """Raise if there are fewer rows or columns than principal components."""
    if n_components > min(shape):
        raise InputError(
            f"preprocess step 'pca:{n_components}' needs at least {n_components} rows and "
            f"columns; the data has shape {shape}. Use fewer components."
        )


STEPS: dict[str, Callable[..., Values]] = {
    "normalize_total": normalize_total,
    "l2": l2,
    "log1p": log1p,
    "arcsinh": arcsinh,
    "standardize": standardize,
    "pca": pca,
}


def is_fitted(step: str) -> bool:
    """Return whether a canonical step is fitted to all rows of a dataset, as `pca` is."""
    return "@" not in step and step.partition(":")[0] in ("standardize", "pca")


def _is_pair(value: object) -> bool:
    if not isinstance(value, tuple) or len(value) != 2:
        return False
    return isinstance(value[0], str) and not isinstance(value[1], (str, tuple))


def _canonical(step: object) -> str:
    if isinstance(step, FittedStep):
        return step
    if isinstance(step, str) and "@" in step:
        raise InputError(
            f"preprocess step {step!r} was fitted to data that is not here. Use "
            "compare(datasets, references, fit_on='references'), or Comparison.add."
        )
    if _is_pair(step):
        name, argument = step  # type: ignore[misc]
    elif isinstance(step, str):
        name, colon, text = step.partition(":")
        try:
            argument = float(text) if colon else None
        except ValueError:
            raise InputError(
                f"preprocess step {step!r}: {text!r} is not a number. Write it as 'pca:50'."
            ) from None
    else:
        raise InputTypeError(f"preprocess step {step!r} must be text such as 'log1p' or 'pca:50'.")
    _check.one_of("preprocess step", name, STEPS)
    if argument is None:
        if name in ("arcsinh", "pca"):
            example = "'pca:50'" if name == "pca" else "'arcsinh:150' (flow) or 'arcsinh:5' (mass)"
            raise InputError(f"preprocess step {name!r} needs a number, as in {example}.")
        return name
    if name in ("l2", "log1p", "standardize"):
        raise InputError(f"preprocess step {name!r} takes no number; {argument!r} was given.")
    number = _check.real_number(f"preprocess step {name!r}", argument, minimum=0.0, strict=True)
    if name == "pca":
        _check.positive_int("preprocess step 'pca'", int(number) if number % 1 == 0 else number)
    if name == "normalize_total" and number == 1e4:
        return name
    # The shortest text that is read as this number, integers without a point.
    return f"{name}:{int(number) if number % 1 == 0 and number < 1e16 else number!r}"
