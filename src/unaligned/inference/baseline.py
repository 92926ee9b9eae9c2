"""What a drift monitor keeps of its reference: scales and fitted instruments."""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy import sparse

from .. import _check
from .._check import FloatArray, IndexArray
from ..data.dataset import Dataset
from ..data.facts import Facts
from ..data.preprocess import is_fitted
from ..engine import Engine
from ..errors import InputError, SampleSizeWarning, counted, listed, warn
from ..metrics.base import dense_points
from ..metrics.les import LES
from ..operators.bandwidth import median_distance
from ..operators.pointcloud import PointCloud
from ..rows.transforms import fit_steps
from ..spectra.pipeline import SignatureSettings
from ..spectra.signature import Signature
from .instruments import (
    FEATURES,
    KERNELS,
    SHAPE,
    SMALLEST_LEVEL,
    BlockInstrument,
    Features,
    Instrument,
    Kernel,
    Shape,
    smallest_p_value,
)
from .partition import LARGEST_BLOCK, MOST_BLOCKS, SMALLEST_BLOCK, fit_to_blocks

_MOST_BLOCKS = 400  # of the reference: of 500 rows, 10 s to fit and 20 ms for 3000 permutations


@dataclass(frozen=True)
class Settings:
    """What a monitor was asked for."""

    alpha: float
    horizon: int | None  # batches that share alpha; None: each has it
    block_size: int | None
    distances: tuple[str, ...]
    scale: bool
    seed: int
    les: LES | None
    data: Mapping[str, Any]  # options of the data, such as `preprocess`

    def __post_init__(self) -> None:
        _check.real_number("alpha", self.alpha, minimum=0.0, maximum=0.5, strict=True)
        _check.optional_int("horizon", self.horizon)
        _check.optional_int("block_size", self.block_size, minimum=4)
        if not self.distances or len(set(self.distances)) < len(self.distances):
            raise InputError(f"distances={self.distances!r} must name instruments, each once.")
        for name in self.distances:
            _check.one_of("distances", name, (SHAPE, *KERNELS, FEATURES))

    def level(self, n_instruments: int) -> float:
        """Return the level of each instrument in one check."""
        return self.alpha / ((self.horizon or 1) * n_instruments)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings for JSON."""
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        return {**found, "les": self.les and self.les.options()}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Settings:
        """Return the settings, the inverse of `to_dict`."""
        steps = values["data"]["preprocess"]
        data = {**values["data"], "preprocess": steps and tuple(steps)}
        les = None if values["les"] is None else LES.from_options(values["les"])
        names = tuple(values["distances"])
        found = {**values, "distances": names, "les": les, "data": data}
        _check.require_types(Settings, found)
        _check.positive_int("seed", found["seed"], minimum=0)
        return Settings(**found)


@dataclass(frozen=True, eq=False)
class View:
    """Instruments, and the preprocessing of the rows that they see."""

    steps: tuple[str, ...]
    instruments: tuple[Instrument, ...]

    @property
    def is_shape(self) -> bool:
        """Whether `les` is the only instrument."""
        return all(isinstance(instrument, Shape) for instrument in self.instruments)

    @property
    def takes_any_columns(self) -> bool:
        """Whether nothing here is about single columns: neither instruments nor fitted steps."""
        return self.is_shape and not any("@" in step for step in self.steps)


@dataclass(eq=False)
class Baseline:
    """What is known of the reference, and the instruments fitted to it."""

    name: str
    facts: Facts
    fingerprint: str
    block_size: int  # of the block signatures
    n_rows: int  # that blocks were cut from; 0 for given signatures
    view: View
    points: FloatArray | None = None  # scaled rows of the reference, for kernels and features

    def column_names(self, number: int) -> Sequence[str]:
        """Return the names of the columns that the instruments see."""
        names = self.facts.feature_names
        return names if names and len(names) == number else [f"column {i}" for i in range(number)]

    def prepared(self, batch: Dataset) -> Dataset:
        """Return the batch as the instruments take it; raise if they need other columns."""
        if not self.view.takes_any_columns:
            batch = self._in_order(batch)
            self._require_columns(batch)
        return batch.with_options(preprocess=self.view.steps)

    def _require_columns(self, batch: Dataset) -> None:
        """Raise unless the columns of the batch are those of the reference."""
        reason = _column_mismatch(self.facts, batch.facts)
        if reason is None:
            return
        remedy = "distances='les', which sees shape only and takes any columns"
        if self.view.is_shape:
            remedy = "neither scale nor fitted preprocessing, which takes any columns"
        raise InputError(
            f"{batch.label} must have the columns of {self.name!r}: it {reason}. Rename or select "
            f"columns (columns= where a file is read), or make a monitor with {remedy}."
        )

    def _in_order(self, batch: Dataset) -> Dataset:
        """Return the batch with its columns in the order of the reference, if it has the same."""
        names, known = batch.feature_names, self.facts.feature_names
        if not names or not known or names == known or sorted(names) != sorted(known):
            return batch
        if len(set(known)) < len(known):
            return batch
        rows = batch.source.take(np.arange(batch.n_samples))
        order = [names.index(name) for name in known]
        return Dataset(rows[:, order], name=batch.name, feature_names=known)


def fit_baseline(reference: Dataset, settings: Settings, engine: Engine) -> Baseline:
    """Return the baseline of a dataset: scales from a tenth of its rows, the rest by instruments.

    O(n b³ + r² d) time for n blocks of b rows and r ≤ 4096 rows of d columns.
    """
    rows, name = _Rows.of(reference, settings), reference.name or "reference"
    points = None if settings.distances == (SHAPE,) else rows.kept
    view = rows.view(settings.distances, points, engine)
    facts, digest = reference.facts, reference.fingerprint
    return Baseline(name, facts, digest, rows.size, rows.rest.size, view, points)


def _column_mismatch(reference: Facts, batch: Facts) -> str | None:
    """Return how the columns of a batch differ from those of the reference, or None."""
    known, names = reference.feature_names, batch.feature_names
    if known and names and known != names:
        missing, additional = Counter(known) - Counter(names), Counter(names) - Counter(known)
        parts = [
            f"{verb} {listed([repr(name) for name in found])}"
            for verb, found in (("lacks", missing), ("also has", additional))
            if found
        ]
        return " and ".join(parts) or "has repeated names in another order"
    if reference.n_features != batch.n_features:
        return f"has {counted(batch.n_features, 'column')} in place of {reference.n_features}"
    return None


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of a reference in random order: some for the scales, the rest for instruments."""

    dataset: Dataset  # raw
    settings: Settings
    steps: tuple[str, ...]  # fitted
    fit: IndexArray
    rest: IndexArray
    size: int  # of a block

    @staticmethod
    def of(reference: Dataset, settings: Settings) -> _Rows:
        n, steps = reference.n_samples, reference.preprocess
        order = reference.generator(settings.seed).permutation(n)
        n_fit = 0
        if settings.scale or "mmd" in settings.distances or any(map(is_fitted, steps)):
            n_fit = scale_rows(n)
        size = settings.block_size or _block_size(n - n_fit, settings)
        _require_blocks(n - n_fit, size, reference, settings)
        if n_fit:
            steps = (*steps, *["standardize"] * settings.scale)
            rows = reference.take(order[:n_fit])
            label = f"reference-{reference.fingerprint[:8]}"
            centred = not sparse.issparse(reference.values)
            steps = fit_steps(rows.source, steps, label, centred=centred)
        return _Rows(reference, settings, steps, order[:n_fit], order[n_fit:], size)

    def view(self, names: Sequence[str], points: FloatArray | None, engine: Engine) -> View:
        """Return the instruments of these names, fitted to rows that went through the steps."""
        data, size = self.dataset.with_options(preprocess=self.steps), self.size
        chosen = self.rest[: min(self.rest.size // size, _MOST_BLOCKS) * size]
        found: list[Instrument] = []
        for name in names:
            if name == SHAPE:
                method = fit_to_blocks(self.settings.les or LES(), size)
                found.append(Shape.fit(method, data, chosen, size, self.settings.seed, engine))
            elif points is not None:
                width = self.width if name == "mmd" else 1.0
                found.append(_point_instrument(name, points, width))
        return View(self.steps, tuple(found))

    def points(self, rows: IndexArray) -> FloatArray:
        """Return preprocessed rows, dense."""
        return dense_points(self.dataset.with_options(preprocess=self.steps).take(rows))

    @property
    def kept(self) -> FloatArray:
        """The rows for kernels and features: 4096, or as many as take 16 MiB, but at least 256.

        More than 4096 hardly add power to batches of 1000.
        """
        columns = self.points(self.rest[:1]).shape[1]
        most = max((1 << 24) // (8 * columns), 256)
        return self.points(self.rest[: min(4096, most)])

    @property
    def width(self) -> float:
        """The median distance of rows, 1 where it is 0."""
        return median_distance(PointCloud(self.points(self.fit))) or 1.0


def _point_instrument(name: str, points: FloatArray, width: float) -> Instrument:
    """Return the instrument of this name, a kernel or features, fitted to points."""
    if name == FEATURES:
        return Features(np.sort(points, axis=0))
    size = min(-(-len(points) // 512), 8)  # 512 blocks of the 4096 rows that are kept
    return Kernel.fit(name, points, size, width)


def of_signatures(signatures: Sequence[Signature]) -> Baseline:
    """Return the baseline of given signatures, each of which is a block of the reference."""
    first, name = signatures[0], counted(len(signatures), "signature")
    for other in signatures[1:]:
        first.require_comparable(other)
    sizes = [signature.n_samples for signature in signatures]
    size = min(sizes)
    if max(sizes) > size:
        warn(
            f"The references have between {size} and {max(sizes)} rows, and a batch is cut into "
            f"blocks of {size}. Signatures depend on the number of rows, so p-values are not "
            "exact. Describe all references with equally many rows (subsample=).",
            SampleSizeWarning,
        )
    options = first.recipe.options(first.n_eigenvalues)
    steps = tuple(options.pop("preprocess") or ())
    del options["rng"]
    method = LES(_check.from_options(SignatureSettings, options))
    shape = Shape.of(method, np.stack([s.values for s in signatures]), size)
    digest = hashlib.blake2b(shape.vectors.tobytes(), digest_size=16).hexdigest()
    facts = Facts(name, first.recipe.kind, sum(sizes), first.n_features, steps)
    return Baseline(name, facts, digest, size, 0, View(steps, (shape,)))


def scale_rows(n_rows: int) -> int:
    """Return how many rows of a reference the scales are fitted to: a tenth, from 30 to 1000."""
    return min(max(n_rows // 10, 30), 1000, n_rows)


def _block_size(n_rows: int, settings: Settings) -> int:
    """Return the rows of a block: the most that let a batch of one block reach its level.

    Between 30 and 500 rows, as in `permutation_test`. Where that would take more than 400 blocks,
    a batch needs several anyway, and there are 200.
    """
    level = settings.level(len(settings.distances))
    blocks = math.ceil(1.0 / level) - 1 if level >= 1.0 / (_MOST_BLOCKS + 1) else 200
    return min(max(n_rows // blocks, SMALLEST_BLOCK), LARGEST_BLOCK)


def _require_blocks(n_rows: int, size: int, reference: Dataset, settings: Settings) -> None:
    """Raise if not even a batch as large as the reference could reach its level."""
    level, n = settings.level(len(settings.distances)), reference.n_samples
    if level < SMALLEST_LEVEL and settings.distances != (FEATURES,):
        raise InputError(
            f"alpha={settings.alpha:g} is {level:.2g} for each instrument and batch, below the "
            f"{SMALLEST_LEVEL:g} that permutation tests reach. Give a larger alpha, a smaller "
            "horizon, or distances='ks'."
        )
    level, enough = max(level, SMALLEST_LEVEL), 2
    while smallest_p_value(enough, enough, level) > level:
        enough += 1
    size = size if settings.les else 1
    if n_rows // size >= enough:
        return
    blocks = f"{enough} blocks of {size} rows of the reference, that is " if settings.les else ""
    smaller = n_rows // enough
    remedy = f", or block_size={smaller}" if 4 <= smaller < size else ""
    raise InputError(
        f"alpha={settings.alpha:g} needs at least {blocks}"
        f"{_rows_for(enough, size, scaled=n_rows < n)} rows; {reference.label} has {n}. Give more "
        f"rows, or a larger alpha{remedy}."
    )


def _rows_for(n_blocks: int, size: int, *, scaled: bool) -> int:
    """Return how many rows of a reference give this many blocks."""
    rows = n_blocks * size
    while scaled and rows - scale_rows(rows) < n_blocks * size:
        rows += 1
    return rows


def require_reach(
    instrument: Instrument, batch: Dataset, baseline: Baseline, level: float, settings: Settings
) -> None:
    """Raise if a batch has fewer rows than a block, or too few for a p-value of the level."""
    n, smallest = batch.n_samples, instrument.smallest(batch.n_samples, level)
    if smallest <= level:
        return
    remedies = [f"batches of at least {rows} rows" for rows in _enough_rows(instrument, level)]
    if isinstance(instrument, Shape):
        remedies += _larger_or_smaller(instrument.size, n, baseline, level)
    if len(settings.distances) > 1:
        rest = [name for name in settings.distances if name != instrument.name]
        remedies.append(f"distances={','.join(rest)}")
    remedies = remedies or ["a larger reference, or a larger alpha"]
    what = f"fewer than the {_size(instrument)} of a block of {instrument.name!r}"
    if smallest < math.inf:
        what = (
            f"with which {instrument.name!r} allows no p-value below {smallest:.2g}; "
            f"its share of alpha={settings.alpha:g} is {level:.2g}"
        )
    raise InputError(
        f"{batch.label} has {counted(n, 'row')}, {what}. Give {', or '.join(remedies)}."
    )


def _larger_or_smaller(size: int, n: int, baseline: Baseline, level: float) -> list[str]:
    """Return references and sizes of blocks with which a batch of n rows reaches the level."""
    found, needed, rows = [], math.ceil(1.0 / level) - 1, baseline.n_rows
    if n >= size and needed <= _MOST_BLOCKS:
        more = _rows_for(needed, size, scaled=rows < baseline.facts.n_samples)
        found.append(f"a reference of at least {more} rows" if rows else f"{needed} signatures")
    for smaller in range(min(size - 1, n), 3, -1):
        if smallest_p_value(rows // smaller, n // smaller, level) <= level:
            return [*found, f"block_size={smaller}"]
    return found


def _size(instrument: Instrument) -> int:
    return instrument.size if isinstance(instrument, BlockInstrument) else 1


def _enough_rows(instrument: Instrument, level: float) -> list[int]:
    """Return the fewest rows of a batch with which the level is reached, if any."""
    sizes = [k * _size(instrument) for k in range(1, MOST_BLOCKS)]
    place = bisect_left(sizes, True, key=lambda n: instrument.smallest(n, level) <= level)
    return sizes[place : place + 1]
