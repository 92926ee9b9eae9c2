"""DriftMonitor: whether batches of rows still come from the distribution of a reference."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .. import _check
from .._check import FloatArray, IndexArray, RNGLike
from ..data.dataset import Dataset
from ..engine import Engine, resolve_engine
from ..errors import (
    DataWarning,
    DegenerateDataError,
    InputError,
    InputTypeError,
    NotApplicableError,
    OptionError,
    counted,
    merged,
    warn,
)
from ..inputs import DataLike, as_dataset, data_options, own_name, warn_about_spreads
from ..metrics.base import feature_mismatch
from ..metrics.les import LES
from ..rows.transforms import JoinedRows
from ..spectra.signature import Signature
from .baseline import Baseline, Settings, fit_baseline, of_signatures, require_reach
from .drift_file import load_monitor, save_monitor
from .instruments import FEATURES, SHAPE, Reading, Shape
from .partition import require_rows
from .verdict import DriftCheck

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CALLER = "DriftMonitor"
BATTERY = (SHAPE, "edistance", FEATURES)
_BLIND = (
    "les sees shape only: not a shift, a rotation or a common scaling of all columns, nor a "
    "change of columns that are small beside the others."
)


class DriftMonitor:
    """Check whether batches of rows still come from the distribution of a reference.

    The default is a battery of three instruments that share alpha: `les` (the shape, by block
    signatures), `edistance` (position and scale), and `ks` (each feature by itself, with Holm's
    adjustment). Columns are scaled by their standard deviation in the reference. A batch must have
    the columns of the reference, matched by name where both have names; `distances="les"` sees
    shape only, and takes any columns.

    If the rows of reference and batch are independent draws of one distribution, a check raises
    an alarm with probability at most alpha: p-values are those of full conformal prediction
    (batches of one block) and of permutation tests (several blocks), exact for any distribution.
    Scales are fitted to a tenth of the reference that no instrument sees otherwise.

    Fitting takes O(n b³) time for n ≤ 400 blocks of b rows. A monitor keeps at most 4096 rows.

    Parameters
    ----------
    reference
        Points or distances, as in `distance`; a list of files or datasets, joined; or a `Store`
        or a list of signatures, each of which then is one block, for `les` alone.
    block_size
        Rows b of a block; None takes the most, between 30 and 500, that let a batch of one block
        reach alpha, where the reference has as many rows. A batch has b rows or more.
    alpha
        The rate of false alarms.
    distances
        Instruments: None for the battery, or some of `les`, `edistance`, `mmd` and `ks`. `"les"`
        alone takes columns as they are, and batches in any feature space.
    horizon
        What alpha is about: None for each batch by itself, or a number of batches in all, each at
        alpha / horizon, so that any false alarm among them has probability alpha at most.
    scale
        Whether to scale columns; None does unless `distances` is `les` alone.
    rng
        Seed or generator; None always gives the same result for the same data.
    n_jobs
        Blocks computed at a time; None is one per core.
    **options
        Of `les`, as in `signature`; `preprocess` and `nan_policy`.

    Attributes
    ----------
    history : list of DriftCheck
        The checks so far.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> rng = np.random.default_rng(0)
    >>> monitor = ua.DriftMonitor(rng.normal(size=(900, 4)))
    >>> monitor.check(rng.normal(size=(200, 4))).is_drift
    False
    >>> found = monitor.check(rng.normal(size=(200, 4)) + [0, 0, 1, 0])
    >>> found.is_drift, list(found.moved)
    (True, ['column 2'])
    """

    history: list[DriftCheck]

    @merged()
    def __init__(
        self,
        reference: DataLike,
        *,
        block_size: int | None = None,
        alpha: float = 0.01,
        distances: str | Sequence[str] | None = None,
        horizon: int | None = None,
        scale: bool | None = None,
        rng: RNGLike = None,
        n_jobs: int | None = None,
        **options: Any,
    ) -> None:
        given, signatures = data_options(options), _signatures(reference)
        dataset = None if signatures else _dataset(reference, given)
        if distances is None:
            is_table = dataset is not None and dataset.kind == "points"
            distances = BATTERY if is_table else SHAPE
        names = _names(distances)
        if scale is None:
            scale = names != (SHAPE,)
        self._n_jobs = n_jobs
        self._settings = Settings(
            alpha=alpha,
            horizon=horizon,
            block_size=block_size,
            distances=names,
            scale=_check.flag("scale", scale),
            seed=_check.root_seed(rng),
            les=_les(names, options),
            data=given,
        )
        self._baseline = self._of(signatures, options) if dataset is None else self._fit(dataset)
        self.history = []

    def _fit(self, reference: Dataset) -> Baseline:
        settings = self._settings
        method = settings.les or LES()
        require_rows({reference.name or "reference": reference}, method, _CALLER)
        if reference.kind != "points" and (settings.scale or settings.distances != (SHAPE,)):
            raise InputError(
                f"{reference.label} is of kind {reference.kind!r}, which has no columns: only "
                "distances='les' without scale applies."
            )
        if not settings.scale:
            warn_about_spreads(method, [reference])
        with self._engine() as engine:
            return fit_baseline(reference, settings, engine)

    def _of(self, signatures: Sequence[Signature], options: dict[str, Any]) -> Baseline:
        settings = self._settings
        if settings.distances != (SHAPE,) or settings.scale or settings.block_size or options:
            raise OptionError(
                "A reference of signatures is for distances='les' with their own settings and "
                "rows as blocks; leave out block_size, scale and the options of les."
            )
        return of_signatures(signatures)

    def _engine(self) -> AbstractContextManager[Engine]:
        return resolve_engine(None, -1 if self._n_jobs is None else self._n_jobs, False)

    @merged()
    def fit(self, reference: DataLike) -> Self:
        """Take another reference of data, with the same settings and an empty history.

        Parameters
        ----------
        reference
            As for `DriftMonitor`, but not signatures.

        Returns
        -------
        DriftMonitor
            The monitor itself.
        """
        if not self._baseline.n_rows:
            raise InputError("The reference of this monitor is signatures. Make a new monitor.")
        found = self._fit(_dataset(reference, dict(self._settings.data)))
        self._baseline, self.history = found, []
        return self

    @property
    def alpha(self) -> float:
        """The rate of false alarms."""
        return self._settings.alpha

    @property
    def horizon(self) -> int | None:
        """The number of batches that share alpha; None if each has it."""
        return self._settings.horizon

    @property
    def distances(self) -> tuple[str, ...]:
        """The names of the instruments."""
        return self._settings.distances

    @property
    def block_size(self) -> int:
        """Rows of a block of the signatures."""
        return self._baseline.block_size

    @property
    def fingerprint(self) -> str:
        """A hash of the reference and the settings, by which histories tell monitors apart."""
        text = json.dumps([self._settings.to_dict(), self._baseline.fingerprint], default=str)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def check(self, batch: DataLike, *, name: str | None = None) -> DriftCheck:
        """Return whether a batch has drifted, and add the result to the history.

        O(k b³) time for k blocks of b rows, O(m r d) for m rows and the r ≤ 4096 rows that are
        kept, and permutations.

        Parameters
        ----------
        batch
            As the reference, but not signatures.
        name
            In the result; None takes that of the file or `Dataset`, or a number.

        Returns
        -------
        DriftCheck
            The verdict, the p-value, and what each instrument finds.
        """
        found = self.read(batch, name=name, number=len(self.history) + 1)
        self.history.append(found)
        return found

    @merged()
    def read(self, batch: DataLike, *, name: str | None = None, number: int = 1) -> DriftCheck:
        """Return whether a batch has drifted, and leave the history as it is.

        Parameters
        ----------
        batch, name
            As for `check`.
        number
            The number of this check, from 1; at most the horizon.

        Returns
        -------
        DriftCheck
            What `check` would add to the history.
        """
        settings, baseline = self._settings, self._baseline
        if settings.horizon is not None and number > settings.horizon:
            raise InputError(
                f"horizon={settings.horizon} batches were checked and alpha={settings.alpha:g} is "
                "spent. Make a new monitor, with a larger horizon."
            )
        own = name or own_name(batch) or f"batch {number}"
        found = as_dataset(batch, own, {**settings.data, "preprocess": None})
        (dataset,) = require_rows({own: found}, settings.les or LES(), f"{_CALLER}.check()")
        dataset, view = baseline.prepared(dataset), baseline.view
        level = settings.level(len(view.instruments))
        for instrument in view.instruments:
            require_reach(instrument, dataset, baseline, level, settings)
        readings, failures = self._readings(dataset, level)
        notes = [f"{name} was not used: {error}" for name, error in failures.items()]
        for note in notes:
            warn(note, DataWarning)
        les = next((i.method.settings for i in view.instruments if isinstance(i, Shape)), None)
        n_instruments = len(view.instruments)
        return DriftCheck(
            name=own,
            reference=baseline.name,
            p_value=min(1.0, n_instruments * min(reading.p_value for reading in readings)),
            alpha=level * n_instruments,
            readings=readings,
            moved=self._moved(readings, level),
            n_samples=dataset.n_samples,
            n_reference=baseline.facts.n_samples,
            n_eigenvalues=les.n_eigenvalues if les else None,
            gamma=float(les.gamma) if les else None,
            number=number,
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            notes=(*[_BLIND] * view.is_shape, *notes),
            unused=tuple(failures),
        )

    def _readings(
        self, batch: Dataset, level: float
    ) -> tuple[tuple[Reading, ...], dict[str, DegenerateDataError]]:
        """Return what the instruments find, and why some of them cannot read the batch.

        A batch may be degenerate, all rows equal say, because it has drifted: the others decide.
        """
        readings, failures = [], {}
        with self._engine() as engine:
            for instrument in self._baseline.view.instruments:
                try:
                    readings.append(instrument.read(batch, level, self._settings.seed, engine))
                except DegenerateDataError as error:
                    failures[instrument.name] = error
        if not readings:
            raise next(iter(failures.values()))
        return tuple(readings), failures

    def _moved(self, readings: Iterable[Reading], level: float) -> dict[str, float]:
        """Return the features that moved, the smallest adjusted p-value first."""
        adjusted = next((r.by_feature for r in readings if r.by_feature is not None), np.ones(0))
        names = self._baseline.column_names(adjusted.size)
        order = np.argsort(adjusted, kind="stable")
        return {names[i]: float(adjusted[i]) for i in order if adjusted[i] <= level}

    def score_samples(self, batches: Iterable[DataLike]) -> FloatArray:
        """Return the p-value of each batch, low for drift, as scikit-learn's detectors do.

        Parameters
        ----------
        batches
            A list or an iterator of batches, or one array, (n_batches, N, d).

        Returns
        -------
        ndarray
            Shape (n_batches,).
        """
        return np.array([self.read(batch).p_value for batch in _several(batches)])

    def predict(self, batches: Iterable[DataLike]) -> IndexArray:
        """Return 1 for each batch without drift and -1 for the others; the history stays.

        Parameters
        ----------
        batches
            As for `score_samples`.

        Returns
        -------
        ndarray
            Shape (n_batches,).
        """
        return np.array([-1 if self.read(batch).is_drift else 1 for batch in _several(batches)])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the monitor with its history to a `.npz` file, without pickles.

        Parameters
        ----------
        path
            A `.npz` file; an existing one is replaced.
        """
        save_monitor(path, self._settings, self._baseline, self.history)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the monitor in a file written by `save`.

        Parameters
        ----------
        path
            The `.npz` file.

        Returns
        -------
        DriftMonitor
            With its history.
        """
        found = object.__new__(cls)
        found._settings, found._baseline, found.history = load_monitor(path)
        found._n_jobs = None
        return found

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the p-values of the history over time, with the threshold.

        Parameters
        ----------
        ax
            Where to draw; None makes a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes drawn on.
        """
        from ..figures import drift_history  # upward, at call time only

        return drift_history(self.history, ax=ax)

    def report(self, path: str | os.PathLike[str], *, title: str | None = None) -> None:
        """Write the history as one HTML page: verdicts, figure, and a table of all checks.

        Parameters
        ----------
        path
            The file, `.html` or `.htm`; an existing one is replaced.
        title
            The heading; None names the reference.
        """
        from ..report.drift import write_drift_report  # upward, at call time only

        write_drift_report(self.history, path, title=title)

    def __repr__(self) -> str:
        facts, k = self._baseline.facts, len(self.history)
        return (
            f"DriftMonitor({self._baseline.name!r}, {facts.n_samples} × {facts.n_features}, "
            f"{'+'.join(self.distances)}, alpha={self.alpha:g}, {counted(k, 'check')})"
        )


def _several(batches: Iterable[DataLike]) -> Iterable[DataLike]:
    """Return batches; raise for one batch by itself."""
    if not isinstance(batches, (list, tuple, Iterator)) and np.ndim(batches) != 3:  # type: ignore[arg-type]
        raise InputTypeError(
            f"batches is {_check.shape_of(batches)}; it must be a list of batches: [batch]."
        )
    return batches


def _names(distances: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of instruments, each once."""
    if not isinstance(distances, (str, list, tuple)):
        raise InputTypeError(f"distances={distances!r} must be a list of names of instruments.")
    return (distances,) if isinstance(distances, str) else tuple(distances)


def _les(names: Sequence[str], options: dict[str, Any]) -> LES | None:
    """Return the distance of block signatures, with its options, if it is among the names."""
    if SHAPE not in names:
        if options:
            raise OptionError(
                f"DriftMonitor has no option {next(iter(options))!r} without 'les' in distances."
            )
        return None
    if isinstance(options.get("gamma"), str):
        raise InputError(
            f"gamma={options['gamma']!r} would choose another γ for every batch. Give a number."
        )
    return LES.from_options(options)


def _signatures(reference: Any) -> list[Signature]:
    """Return the signatures of a list or a store; nothing of other data."""
    if hasattr(reference, "nearest") and hasattr(reference, "names"):  # a Store, from above
        found = [reference[name] for name in reference.names()]
        if not found:
            raise InputError(f"{reference!r} is empty. Add signatures with `unaligned describe`.")
        return found
    if isinstance(reference, Signature):
        raise InputTypeError(
            "reference is one Signature, which has no rows. Give the data, or one signature of "
            "each of many earlier batches."
        )
    is_list = isinstance(reference, (list, tuple))
    has_any = is_list and any(isinstance(item, Signature) for item in reference)
    if has_any and not all(isinstance(item, Signature) for item in reference):
        raise InputTypeError("reference has both data and signatures. Give one kind.")
    return list(reference) if has_any else []


def _dataset(reference: Any, given: dict[str, Any]) -> Dataset:
    """Return a reference as one dataset; files and datasets in a list are joined."""
    many = isinstance(reference, (list, tuple)) and reference
    if not many or not all(_check.is_path(r) or isinstance(r, Dataset) for r in reference):
        found = as_dataset(reference, own_name(reference) or "reference", given)
        assert isinstance(found, Dataset)
        return found
    parts = [_dataset(part, given) for part in reference]
    first, *others = [part.facts._replace(preprocess=()) for part in parts]
    reasons = (feature_mismatch(first, other) for other in others)
    reason = next(filter(None, reasons), None)
    if reason or any(part.kind != "points" for part in parts):
        raise NotApplicableError(f"The references cannot be joined: {reason or 'not points'}.")
    source, names = JoinedRows([part.source for part in parts]), parts[0].feature_names
    steps, name = parts[0].preprocess, f"{parts[0].name} and {counted(len(others), 'more')}"
    return Dataset(source, name=name, preprocess=steps, feature_names=names)
