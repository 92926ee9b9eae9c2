"""What is applied to all datasets of a comparison alike: fitted steps, and one number of rows."""

import hashlib
from collections.abc import Mapping, Sequence

from scipy import sparse

from . import _check
from ._check import is_anndata, is_path
from .data.dataset import Dataset
from .data.preprocess import is_fitted
from .errors import InputError, NotApplicableError
from .inputs import (
    DataLike,
    collection,
    leave_out,
    require_applicable,
    warn_about_sizes,
    warn_about_values,
    without_reading,
)
from .metrics.base import Distance, feature_mismatch
from .result import Comparison
from .rows.transforms import JoinedRows, fit_steps
from .spectra.signature import Signature


def fit_preprocessing(
    fit_on: str,
    rows: Mapping[str, Dataset | Signature],
    columns: Mapping[str, Dataset | Signature] | None,
) -> tuple[dict[str, Dataset | Signature], dict[str, Dataset | Signature], tuple[str, ...]]:
    """Return both collections with preprocessing fitted to the references, and its steps."""
    _check.one_of("fit_on", fit_on, ("references",))
    references = [item for item in (columns or {}).values() if isinstance(item, Dataset)]
    if columns is None or len(references) < len(columns):
        what = "references" if columns is None else "the data of all references, not signatures"
        raise InputError(f"fit_on='references' needs {what}: compare(datasets, references, …).")
    datasets = [*references, *(item for item in rows.values() if isinstance(item, Dataset))]
    own = {dataset.preprocess for dataset in datasets}
    steps = next(iter(own))
    if len(own) > 1 or not any(map(is_fitted, steps)):
        raise InputError(
            "fit_on='references' needs the same preprocess for all datasets, with a step that is "
            f"fitted, 'standardize' or 'pca:50'; got {' and '.join(map(str, map(list, own)))}."
        )
    plain = [dataset.facts._replace(preprocess=()) for dataset in datasets]
    for facts in plain[1:]:
        reason = feature_mismatch(plain[0], facts)
        if reason:
            raise NotApplicableError(f"fit_on='references' does not apply: {reason}.")
    content = "".join([*steps, *sorted(dataset.fingerprint for dataset in references)])
    digest = hashlib.blake2b(content.encode(), digest_size=4).hexdigest()
    # Sparse values cannot be centred and stay sparse, so no dataset is.
    centred = not any(sparse.issparse(dataset.values) for dataset in datasets)
    source = JoinedRows([dataset.source for dataset in references])
    steps = fit_steps(source, steps, f"references-{digest}", centred=centred)

    def applied(items: Mapping[str, Dataset | Signature]) -> dict[str, Dataset | Signature]:
        return {
            name: item.with_options(preprocess=steps) if isinstance(item, Dataset) else item
            for name, item in items.items()
        }

    return applied(rows), applied(columns), steps


def common_size(
    subsample: int | str, items: Sequence[Dataset | Signature], method: Distance
) -> int:
    """Return the number of rows that `subsample` means."""
    if method.paired_rows:
        raise NotApplicableError(
            f"subsample={subsample!r} draws different rows of each dataset, but distance "
            f"{method.name!r} compares row i with row i. Take the same rows of all datasets first."
        )
    if any(isinstance(item, Signature) for item in items):
        raise InputError("subsample needs the data itself; a Signature cannot be subsampled.")
    smallest = min(items, key=lambda item: item.n_samples)
    if subsample == "common":
        return smallest.n_samples
    if isinstance(subsample, str):
        raise InputError(f"subsample={subsample!r} must be a number of rows or 'common'.")
    size = _check.positive_int("subsample", subsample, minimum=2)
    if size > smallest.n_samples:
        raise InputError(
            f"subsample={size} is more than dataset {smallest.name!r} has, "
            f"{smallest.n_samples} rows. Lower it, or use subsample='common'."
        )
    return size


def subsample_all(
    items: Mapping[str, Dataset | Signature], size: int, seed: int
) -> dict[str, Dataset | Signature]:
    """Return the datasets with at most `size` rows each."""
    drawn = dict(items)
    for name, item in items.items():
        if isinstance(item, Dataset) and item.n_samples > size:
            drawn[name] = item.subsample(size, item.generator(seed))
    return drawn


def prepare_additions(
    datasets: Mapping[str, DataLike], method: Distance, old: Comparison
) -> dict[str, Dataset | Signature]:
    """Return datasets to add to a comparison, prepared as its members were, and checked."""
    signatures = list(old.signatures.values())
    preparation = dict(old.preparation)
    size, least = preparation.pop("subsample", None), preparation.pop("min_samples", None)
    preparation.pop("fit_on", None)
    if not any(is_anndata(data) or is_path(data) for data in datasets.values()):
        preparation = without_reading(preparation)
    if old._steps:
        preparation["preprocess"] = old._steps
    elif preparation.get("preprocess") is None and signatures:
        preparation["preprocess"] = signatures[0].recipe.preprocess or None
    named, _ = leave_out("datasets", collection("datasets", datasets, preparation), least)
    if size is not None:
        common_size(size, list(named.values()), method)
        named = subsample_all(named, size, old.seed)
    method.fit(list(named.values()))  # only checks: the method is settled
    known = {**old._facts, **named} if old.is_square else old._reference_facts
    require_applicable(method, named, known)
    warn_about_sizes(method, [*signatures, *named.values()])
    warn_about_values(method, list(named.values()))
    return named
