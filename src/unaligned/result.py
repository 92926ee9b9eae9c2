"""Comparison: the distances, and everything one does with them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import _check
from ._check import FloatArray, RNGLike
from .data.facts import Facts
from .engine import EngineLike, resolve_engine
from .errors import InputError, counted
from .metrics.base import Distance
from .spectra.signature import Signature

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Comparison:
    """Distances between datasets, square (within one collection) or rectangular (between two).

    Attributes
    ----------
    names, reference_names
        What the rows and the columns are; the same where the comparison is square.
    distances
        Shape (n, n) or (n, m).
    error_bounds
        Of the same shape: the true distance is no further away than this. NaN where the
        distance has no bound.
    distance
        The distance with all its settings; None after loading one that could not be saved.
    distance_name, options
        The same as words and numbers, which every file holds.
    seed
        The root seed that `rng` gave.
    preparation
        What was done to all datasets before: `preprocess`, `nan_policy`, `subsample`.
    is_square
        Whether the datasets were compared with each other, not with references.
    metadata
        The metadata of the datasets by name, as `Dataset` has it.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> rng = np.random.default_rng(0)
    >>> clouds = {"line": rng.normal(size=(99, 1)), "disc": rng.normal(size=(99, 2))}
    >>> found = ua.compare(clouds, n_eigenvalues=20)
    >>> found, bool(found["line", "disc"] == found.distances[0, 1])
    (Comparison(les, 2 datasets), True)
    """

    names: tuple[str, ...]
    reference_names: tuple[str, ...]
    distances: FloatArray
    error_bounds: FloatArray
    distance: Distance | None
    distance_name: str
    options: Mapping[str, Any]
    seed: int
    is_square: bool = True
    preparation: Mapping[str, Any] = field(default_factory=dict)
    _descriptors: Mapping[str, Any] = field(default_factory=dict, repr=False)
    _references: Mapping[str, Any] = field(default_factory=dict, repr=False)
    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    _facts: Mapping[str, Facts] = field(default_factory=dict, repr=False)
    _reference_facts: Mapping[str, Facts] = field(default_factory=dict, repr=False)

    @property
    def signatures(self) -> dict[str, Signature]:
        """The datasets' signatures by name; empty for distances without them."""
        return {n: s for n, s in self._descriptors.items() if isinstance(s, Signature)}

    @property
    def reference_signatures(self) -> dict[str, Signature]:
        """The references' signatures; the datasets' own where the comparison is square."""
        if self.is_square:
            return self.signatures
        return {n: s for n, s in self._references.items() if isinstance(s, Signature)}

    def __getitem__(self, key: str | tuple[str, str]) -> Any:
        """Return one distance, `c["a", "b"]`, or a row of them as a Series, `c["a"]`."""
        if isinstance(key, tuple):
            if len(key) != 2:
                raise InputError(f"{key!r} must be one name or two, row and column.")
            row, column = key
            i = _position(row, self.names, "row")
            return float(self.distances[i, _position(column, self.reference_names, "column")])
        i = _position(key, self.names, "row")
        return self.to_frame().iloc[i]

    def to_frame(self) -> pd.DataFrame:
        """Return the distances as a DataFrame with names on both sides."""
        import pandas as pd

        return pd.DataFrame(self.distances, index=self.names, columns=self.reference_names)

    def add(
        self,
        datasets: Mapping[str, Any],
        *,
        n_jobs: int | None = None,
        engine: EngineLike = None,
        progress: bool | None = None,
    ) -> Comparison:
        """Return a comparison with more datasets; nothing that is known is computed again.

        Parameters
        ----------
        datasets
            A dict of name -> data, with names that are not there yet.
        n_jobs, engine, progress
            As in `compare`.

        Examples
        --------
        >>> import numpy as np
        >>> import unaligned as ua
        >>> rng = np.random.default_rng(0)
        >>> clouds = {"line": rng.normal(size=(99, 1)), "disc": rng.normal(size=(99, 2))}
        >>> more = ua.compare(clouds, n_eigenvalues=20).add({"ball": rng.normal(size=(99, 3))})
        >>> more.distances.shape
        (3, 3)
        """
        from .pairs import grow  # upward, at call time only

        with resolve_engine(engine, n_jobs, progress) as where:
            return grow(self, datasets, where)

    def embed(
        self, method: str = "mds", n_components: int = 2, *, rng: RNGLike = None
    ) -> FloatArray:
        """Return a map of the datasets, (n, n_components); see `unaligned.embedding.embed`."""
        from .embedding import embed  # upward, at call time only

        return embed(self._square("embed"), method, n_components, rng=rng)

    def linkage(self, method: str = "average") -> FloatArray:
        """Return SciPy's linkage matrix of the datasets, (n - 1, 4), for `dendrogram`."""
        from scipy.cluster.hierarchy import linkage
        from scipy.spatial.distance import squareform

        if method in ("ward", "centroid", "median"):
            raise InputError(
                f"method={method!r} is right for Euclidean distances only, which these need not "
                "be. Take 'average', or 'complete' for compact clusters; for 'les', which is "
                "Euclidean, SciPy's linkage of the signatures' values does it."
            )
        _check.one_of("method", method, ("average", "single", "complete", "weighted"))
        square = self._square("linkage")
        if len(square) < 2:
            raise InputError("linkage() needs at least two datasets; there is one.")
        merged: FloatArray = linkage(squareform(square, checks=False), method, True)
        return merged

    def aggregate(self, how: str = "mean") -> pd.Series[float]:
        """Return how unlike the references each dataset is; see `embedding.aggregate`.

        Examples
        --------
        >>> import numpy as np
        >>> import unaligned as ua
        >>> rng = np.random.default_rng(0)
        >>> known = {"a": rng.normal(size=(99, 2)), "b": rng.normal(size=(99, 2))}
        >>> new = {"alike": rng.normal(size=(99, 2)), "unlike": rng.normal(size=(99, 9))}
        >>> ua.compare(new, known, n_eigenvalues=20).aggregate("min").idxmax()
        'unlike'
        """
        import pandas as pd

        from .embedding import aggregate  # upward, at call time only

        if self.is_square:
            raise InputError(
                "aggregate() sums up distances to references, and this comparison is within one "
                "collection. Write compare(datasets, references)."
            )
        return pd.Series(aggregate(self.distances, how), index=list(self.names), name=how)

    def correlate(self, values: Any, method: str = "pearson") -> float:
        """Return how distances agree with differences of a number; see `embedding.correlate`.

        Parameters
        ----------
        values
            The number of each dataset, such as its time: a dict or a Series by name, or a
            sequence in the order of `names`.
        method
            `"pearson"` or `"spearman"`.

        Examples
        --------
        >>> import numpy as np
        >>> import unaligned as ua
        >>> angles = np.random.default_rng(0).uniform(0, 6.28, size=200)
        >>> widths = {"a": 1.0, "b": 1.5, "c": 2.0, "d": 2.5}
        >>> x, y = np.cos(angles), np.sin(angles)
        >>> rings = {name: np.c_[x, width * y] for name, width in widths.items()}
        >>> ua.compare(rings, n_eigenvalues=20).correlate(widths) > 0.9
        True
        """
        from .embedding import correlate  # upward, at call time only

        square = self._square("correlate")
        if hasattr(values, "keys"):
            missing = [name for name in self.names if name not in values.keys()]  # noqa: SIM118
            if missing:
                raise InputError(f"values has no number for dataset {missing[0]!r}.")
            values = [values[name] for name in self.names]
        return correlate(square, values, method)

    def plot(self, kind: str = "heatmap", **options: Any) -> Axes:
        """Draw the comparison; `kind` is heatmap, embedding, spectra, pair or dendrogram."""
        from . import figures  # upward, at call time only

        axes: Axes = figures.draw(self, kind, **options)
        return axes

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        title: str | None = None,
        tags: Any = None,
        command: str | None = None,
    ) -> None:
        """Write one HTML file that shows all of it, works offline and can be sent by mail.

        Parameters
        ----------
        path
            Where to; a file that is there is replaced, as a whole.
        title
            The heading; None says what was compared.
        tags
            What is known of the datasets, to colour by and to correlate with: a dict of
            dataset -> {tag: value} or of tag -> values, or a DataFrame by dataset. None takes
            the datasets' own metadata.
        command
            The command that made it, shown at the end; None shows the call in Python.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> import unaligned as ua
        >>> rng = np.random.default_rng(0)
        >>> clouds = {f"{d}d": rng.normal(size=(99, d)) for d in (1, 2, 3)}
        >>> path = Path(tempfile.mkdtemp()) / "report.html"
        >>> ua.compare(clouds, n_eigenvalues=20).report(path, tags={"dimension": [1, 2, 3]})
        >>> "dimension" in path.read_text(encoding="utf-8")
        True
        """
        from .report import write_report  # upward, at call time only

        write_report(self, path, title=title, tags=tags, command=command)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the comparison and its descriptors to one file, atomically and without pickle."""
        from .keeping import write_comparison  # upward, at call time only

        write_comparison(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Comparison:
        """Read a comparison that `save` wrote."""
        from .keeping import read_comparison  # upward, at call time only

        return read_comparison(path)

    def _square(self, what: str) -> FloatArray:
        from .embedding import symmetrised  # upward, at call time only

        if not self.is_square:
            raise InputError(
                f"{what}() needs distances within one collection; this comparison is "
                f"{self._shape(' against ')}. "
                "Compare them all in one collection."
            )
        return symmetrised(self.distances)

    def __repr__(self) -> str:
        return f"Comparison({self.distance_name}, {self._shape(' × ')})"

    def _shape(self, times: str) -> str:
        rows = counted(len(self.names), "dataset")
        columns = counted(len(self.reference_names), "reference")
        return rows if self.is_square else f"{rows}{times}{columns}"

    def __str__(self) -> str:
        return f"{self!r}\n{self.to_frame().round(4).to_string()}"


def _position(name: str, names: Iterable[str], what: str) -> int:
    known = list(names)
    if name not in known:
        near = _check.did_you_mean(name, known)
        raise InputError(f"There is no {what} {name!r}.{near} Names: {', '.join(known)}.")
    return known.index(name)
