"""Comparison: the result of `compare`."""

from __future__ import annotations

import base64
import html
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from . import _check
from ._check import FloatArray, RNGLike
from ._format import text_table
from .confidence import Inference
from .data.facts import Facts
from .engine import EngineLike
from .errors import InputError, MissingExtraError, counted, required
from .metrics.base import Distance
from .spectra.signature import Signature

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from .explanation import Explanation, ScaleExplanation
    from .inference.association import Correlation, GroupTest
    from .matching import Match

# Methods of a distance that give another number than its definition.
_APPROXIMATIONS = ("low-rank", "sinkhorn", "sliced")
Name: TypeAlias = str | float  # days and clusters too: names are kept as text


@dataclass(frozen=True, eq=False)
class Comparison:
    """Distances between datasets, square (within one collection) or rectangular (between two).

    Attributes
    ----------
    names, reference_names
        Names of the rows and the columns; equal where the comparison is square.
    distances
        Shape (n, n) or (n, m).
    error_bounds
        Same shape: a bound on the error of each distance; NaN where there is none.
    distance
        The distance with its settings; None after loading one that could not be saved.
    distance_name, options
        Its name and flat options, as files hold them.
    seed
        The root seed that `rng` gave.
    preparation
        What was applied to all datasets: `preprocess`, `nan_policy`, `subsample`, `min_samples`,
        `fit_on`.
    is_square
        Whether the datasets were compared with each other, not with references.
    metadata
        The metadata of the datasets by name, as `Dataset` has it.
    inference
        With `compare(inference=True)`: p-values, intervals, corrected distances and noise floors.
    left_out
        The datasets that `min_samples` left out, with their numbers of rows.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> rng = np.random.default_rng(0)
    >>> clouds = {"line": rng.normal(size=(99, 1)), "disc": rng.normal(size=(99, 2))}
    >>> found = ua.compare(clouds, n_eigenvalues=20)
    >>> found, bool(found["line", "disc"] == found.distances[0, 1])
    (Comparison(les, 2 datasets, N=99, K=20, gamma=1e-08), True)
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
    # Label, array and digest of what is in the callers' memory, where they may change it.
    _borrowed: tuple[tuple[str, npt.NDArray[Any], str], ...] = field(default=(), repr=False)
    inference: Inference | None = field(default=None, repr=False)
    left_out: Mapping[str, int] = field(default_factory=dict, repr=False)
    _steps: tuple[str, ...] = field(default=(), repr=False)  # as fitted to the references

    @property
    def distance_label(self) -> str:
        """The name of the distance, with its method if that is an approximation."""
        method = self.options.get("method")
        return self.distance_name + (f" ({method})" if method in _APPROXIMATIONS else "")

    @property
    def call_options(self) -> dict[str, Any]:
        """The options of `compare` that give these distances again; None is left out."""
        options = {**self.options, **self.preparation, "rng": self.seed}
        return {name: value for name, value in options.items() if value is not None}

    @property
    def signatures(self) -> dict[str, Signature]:
        """The datasets' signatures by name; empty for distances without them."""
        return {n: s for n, s in self._descriptors.items() if isinstance(s, Signature)}

    @property
    def reference_signatures(self) -> dict[str, Signature]:
        """The references' signatures; the datasets' own where the comparison is square."""
        descriptors = self._descriptors if self.is_square else self._references
        return {n: s for n, s in descriptors.items() if isinstance(s, Signature)}

    @property
    def n_samples(self) -> dict[str, int]:
        """The number of rows of each dataset by name, where it is known."""
        known: dict[str, Facts | Signature] = {**self._facts, **self.signatures}
        return {name: item.n_samples for name, item in known.items()}

    @property
    def reference_n_samples(self) -> dict[str, int]:
        """The number of rows of each reference by name, where it is known."""
        if self.is_square:
            return self.n_samples
        known: dict[str, Facts | Signature] = {**self._reference_facts}
        known |= self.reference_signatures
        return {name: item.n_samples for name, item in known.items()}

    @overload
    def __getitem__(self, key: tuple[Name, Name]) -> float: ...

    @overload
    def __getitem__(self, key: Name) -> pd.Series[float]: ...

    def __getitem__(self, key: Name | tuple[Name, ...]) -> float | pd.Series[float]:
        """Return one distance, `c["a", "b"]`, or a row as a Series, `c["a"]`."""
        if not isinstance(key, tuple):
            return self.to_frame().iloc[_check.position("row", key, self.names)]
        if len(key) != 2:
            raise InputError(f"{key!r} must be one name or two, row and column.")
        row = _check.position("row", key[0], self.names)
        column = _check.position("column", key[1], self.reference_names)
        return float(self.distances[row, column])

    __iter__ = None  # names may be numbers, so the default iteration would be wrong

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Return `distances`, so that `np.asarray(comparison)` works."""
        convert = np.array if copy else np.asarray  # numpy 1.26 knows no copy=None
        return convert(self.distances, dtype=dtype)

    def to_frame(self) -> pd.DataFrame:
        """Return the distances as a DataFrame with names on both sides.

        Returns
        -------
        pandas.DataFrame
            Shape (n, m), indexed by `names`, with `reference_names` as columns.
        """
        required("pandas", "pandas", "A DataFrame")
        import pandas as pd

        return pd.DataFrame(self.distances, index=self.names, columns=self.reference_names)

    def add(
        self,
        datasets: Mapping[Any, Any],
        *,
        n_jobs: int | None = None,
        engine: EngineLike = None,
        progress: bool | None = None,
    ) -> Comparison:
        """Return a comparison with more datasets, computing only what is new.

        Raises if a distance needs arrays that were changed since they were compared. The result
        has no `inference`, which needs the rows of all datasets.

        Parameters
        ----------
        datasets
            A dict of new name -> data.
        n_jobs, engine, progress
            As in `compare`.

        Returns
        -------
        Comparison
            The new datasets come last: (n + k, n + k) if it is square, else (n + k, m).

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
        from .execution import grow  # upward, at call time only

        return grow(self, datasets, n_jobs, engine, progress)

    def embed(
        self, method: str = "mds", n_components: int = 2, *, rng: RNGLike = None
    ) -> FloatArray:
        """Return coordinates of the datasets that approximate their distances.

        Of a distance that is not symmetric, the mean of both directions is taken.

        Parameters
        ----------
        method
            `"mds"`: classical scaling, exact for distances such as LES that are Euclidean.
            `"metric-mds"`: stress minimised by SMACOF (scikit-learn).
            `"diffusion"`: diffusion maps of the distance matrix, as in Section 5.2.
        n_components
            The number of coordinates, below that of the datasets.
        rng
            Seed of `"metric-mds"`; the other methods are deterministic.

        Returns
        -------
        ndarray
            Shape (n, n_components), rows in the order of `names`.
        """
        from .embedding import embed  # upward, at call time only

        return embed(self._square("embed"), method, n_components, rng=rng)

    def linkage(self, method: str = "average") -> FloatArray:
        """Return SciPy's linkage matrix of the datasets, for `scipy.cluster.hierarchy`.

        Parameters
        ----------
        method
            `"average"`, `"single"`, `"complete"` or `"weighted"`. O(n²) time.

        Returns
        -------
        ndarray
            Shape (n - 1, 4), a merge in each row.
        """
        from .embedding import linkage  # upward, at call time only

        return linkage(self._square("linkage"), method)

    def aggregate(self, how: str = "mean") -> pd.Series[float]:
        """Return the dissimilarity of each dataset to all references (Section 5.3).

        Parameters
        ----------
        how
            `"mean"`, `"min"` or `"max"` over the references.

        Returns
        -------
        pandas.Series
            Shape (n,), indexed by `names`.

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
        required("pandas", "pandas", "aggregate()")
        import pandas as pd

        from .embedding import aggregate  # upward, at call time only

        if self.is_square:
            raise InputError("aggregate() needs references. Use compare(datasets, references).")
        return pd.Series(aggregate(self.distances, how), index=list(self.names), name=how)

    def match(self, expected: Any = None) -> Match:
        """Return the nearest reference of each dataset, with accuracy and margins (Appendix E).

        Parameters
        ----------
        expected
            The right reference of each dataset: a dict by name, or a sequence in the order of
            `names`. None takes the order, of as many references as datasets: the first layer of
            one network belongs to the first of the other.

        Returns
        -------
        Match
            Its `accuracy` raises InputError where the right references are not known.

        Examples
        --------
        >>> import numpy as np
        >>> import unaligned as ua
        >>> rng = np.random.default_rng(0)
        >>> first, second = ({f"{d}d": rng.normal(size=(99, d)) for d in (1, 3, 9)} for _ in "ab")
        >>> match = ua.compare(first, second, n_eigenvalues=20).match()
        >>> match, match.margin(1) > 1
        (Match(les, 3 × 3, 3 of 3 correct), True)
        """
        from .matching import Match, expected_positions  # upward, at call time only

        if self.is_square:
            raise InputError("match() needs references. Use compare(datasets, references).")
        right = expected_positions(expected, self.names, self.reference_names)
        return Match(self.names, self.reference_names, self.distances, self.distance_label, right)

    def correlate(
        self,
        values: Any,
        method: str = "pearson",
        *,
        aggregate: str = "mean",
        period: float | None = None,
        n_permutations: int = 9999,
        rng: RNGLike = None,
    ) -> Correlation:
        """Return the correlation of distances with a value known of each dataset.

        A float; its `p_value`, by permutations of the datasets (Mantel's test), is computed on
        first use, from all permutations for up to 8 datasets.

        Within one collection: of the distances with the differences of the values, over all
        pairs (Section 5.2). Against references: of the aggregated distance to the references with
        the values themselves (Section 5.3).

        Parameters
        ----------
        values
            One number per dataset, such as its time: a dict or Series by name, a sequence in
            the order of `names`, or the name of a metadata entry.
        method
            `"pearson"` or `"spearman"`.
        aggregate
            Against references: `"mean"`, `"min"` or `"max"` over them.
        period
            Within one collection: of a cyclic value, such as 24 for hours of the day, whose
            differences are taken the shorter way around.
        n_permutations, rng
            Of the test.

        Returns
        -------
        Correlation
            A float between -1 and 1, with its `p_value`.

        Examples
        --------
        >>> import numpy as np
        >>> import unaligned as ua
        >>> angles = np.random.default_rng(0).uniform(0, 6.28, size=200)
        >>> widths = {"a": 1.0, "b": 1.5, "c": 2.0, "d": 2.5}
        >>> rings = {n: np.c_[np.cos(angles), w * np.sin(angles)] for n, w in widths.items()}
        >>> found = ua.compare(rings, n_eigenvalues=20).correlate(widths)
        >>> found > 0.9, round(found.p_value, 3)
        (True, 0.083)
        """
        from .inference.association import correlation  # upward, at call time only

        return correlation(self, values, method, aggregate, period, n_permutations, rng)

    def permanova(
        self, groups: Any, *, n_permutations: int = 9999, rng: RNGLike = None
    ) -> GroupTest:
        """Test whether groups of datasets, such as conditions, differ (Anderson, 2001).

        Parameters
        ----------
        groups
            One label per dataset: a dict or Series by name, a sequence in the order of `names`,
            or the name of a metadata entry.
        n_permutations
            Random permutations; all distinct ones where there are no more than that.
        rng
            Seed or generator.

        Returns
        -------
        GroupTest
            With pseudo-F, p-value, and the share of the squared distances between the groups.

        Examples
        --------
        >>> import numpy as np
        >>> import unaligned as ua
        >>> rng = np.random.default_rng(0)
        >>> clouds = [rng.normal(size=(99, 2 + i // 4)) for i in range(8)]
        >>> test = ua.compare(clouds, n_eigenvalues=20).permanova(list("aaaabbbb"))
        >>> test.p_value < 0.05, test.is_exact
        (True, True)
        """
        from .inference.association import group_test  # upward, at call time only

        return group_test(self, "permanova", groups, n_permutations, rng)

    def dispersion(
        self, groups: Any, *, n_permutations: int = 9999, rng: RNGLike = None
    ) -> GroupTest:
        """Test whether groups of datasets have different spreads (PERMDISP, Anderson, 2006).

        `permanova` also rejects where only spreads differ.

        Parameters
        ----------
        groups, n_permutations, rng
            As for `permanova`; one group needs three datasets or more.

        Returns
        -------
        GroupTest
            With F, p-value, and the spread of each group.
        """
        from .inference.association import group_test  # upward, at call time only

        return group_test(self, "dispersion", groups, n_permutations, rng)

    @overload
    def explain(
        self,
        first: Name,
        second: Name,
        data: Any,
        *,
        by: Literal["features", "rows"] = ...,
        **options: Any,
    ) -> Explanation: ...

    @overload
    def explain(
        self, first: Name, second: Name, data: Any, *, by: Literal["scale"], **options: Any
    ) -> ScaleExplanation: ...

    @overload
    def explain(
        self, first: Name, second: Name, data: Any, *, by: str, **options: Any
    ) -> Explanation | ScaleExplanation: ...

    def explain(
        self, first: Name, second: Name, data: Any, **options: Any
    ) -> Explanation | ScaleExplanation:
        """Explain the LES distance of two of the datasets; see `unaligned.explain`.

        A comparison keeps no data, which may be large or read from files, so it is given again;
        it is prepared as it was (preprocessing, `subsample`, γ, kernel), and data that is not what
        was compared raises an error.

        Parameters
        ----------
        first, second
            Their names; the second may be a reference.
        data
            A dict of name -> data, such as the one that was compared, or the pair of datasets.
        **options
            Those of `unaligned.explain`: `by`, `labels`, `feature_groups`, `n_repeats`, ….

        Returns
        -------
        Explanation or ScaleExplanation
            The latter for `by="scale"`.

        Examples
        --------
        >>> import numpy as np
        >>> import unaligned as ua
        >>> rng = np.random.default_rng(0)
        >>> clouds = {"flat": rng.normal(size=(200, 3)) * (1, 1, 0.1)}
        >>> clouds["round"] = rng.normal(size=(200, 3))
        >>> found = ua.compare(clouds, n_eigenvalues=20)
        >>> found.explain("flat", "round", clouds, n_repeats=2).to_frame().change.idxmin()
        '2'
        """
        from .explanation import explain_pair  # upward, at call time only

        return explain_pair(self, (first, second), data, options)

    def plot(self, kind: str = "heatmap", **options: Any) -> Axes:
        """Plot the comparison.

        Parameters
        ----------
        kind
            `"heatmap"`: the distances. `"embedding"`: a map of the datasets. `"spectra"`: the
            eigenvalues of all. `"pair"`: two spectra, and the share of each decade in the squared
            LES. `"dendrogram"`: the tree of `linkage`. `"margins"`: those of layers (Appendix E).
        **options
            Of all kinds: `ax`, `figsize` and `title`. Of the heatmap: `cmap`, `annotate` (write
            the numbers), and `order`, `"given"` or `"tree"`. Of embedding and spectra: `color`,
            one value per dataset as a list or dict, or the name of a metadata entry; and `cmap`.
            Of embedding and dendrogram: `method`, as of `embed` and `linkage`. Of the pair:
            `first` and `second`, a row and a column; the farthest pair by default.

        Returns
        -------
        matplotlib.axes.Axes
            Without `ax`, on a new figure outside of pyplot, which notebooks display.
        """
        from . import figures  # upward, at call time only

        return figures.draw(self, kind, **options)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        title: str | None = None,
        tags: Any = None,
        explanations: Sequence[Explanation | ScaleExplanation] = (),
        command: str | None = None,
    ) -> None:
        """Write a self-contained HTML report.

        Parameters
        ----------
        path
            The file, `.html` or `.htm`; an existing one is replaced atomically.
        title
            The heading; None describes the comparison.
        tags
            Values to colour by and to correlate with: a dict of dataset -> {tag: value} or of
            tag -> values, or a DataFrame by dataset. None takes the datasets' metadata,
            without entries that are constant.
        explanations
            Results of `explain`, shown with the pair of datasets that they are about.
        command
            The shell command, shown at the end; None shows the Python call.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import unaligned as ua
        >>> rng = np.random.default_rng(0)
        >>> clouds = {f"{d}d": rng.normal(size=(99, d)) for d in (1, 2, 3)}
        >>> path = f"{tempfile.mkdtemp()}/report.html"
        >>> ua.compare(clouds, n_eigenvalues=20).report(path, tags={"dimension": [1, 2, 3]})
        """
        from .report import write_report  # upward, at call time only

        write_report(
            self, path, title=title, tags=tags, explanations=explanations, command=command
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the comparison with its descriptors to a `.npz` file, without pickle.

        Parameters
        ----------
        path
            A `.npz` file; an existing one is replaced.
        """
        from .serialization import write_comparison  # upward, at call time only

        write_comparison(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Comparison:
        """Read a comparison written by `save`.

        Parameters
        ----------
        path
            The `.npz` file.

        Returns
        -------
        Comparison
            With signatures or other descriptors; `distance` is None if it could not be saved.
        """
        from .serialization import read_comparison  # upward, at call time only

        return read_comparison(path)

    def _square(self, what: str) -> FloatArray:
        from .embedding import symmetrised  # upward, at call time only

        if not self.is_square:
            raise InputError(
                f"{what}() needs distances within one collection; this comparison is "
                f"{self._shape(' against ')}. Compare all datasets in one collection."
            )
        return symmetrised(self.distances)

    def __repr__(self) -> str:
        sizes = {*self.n_samples.values(), *self.reference_n_samples.values()}
        parts = [self.distance_label, self._shape(" × ")]
        if sizes:
            parts.append("N=" + "…".join(map(str, sorted({min(sizes), max(sizes)}))))
        for symbol, name in (("K", "n_eigenvalues"), ("gamma", "gamma")):
            value = self.options.get(name)
            if isinstance(value, (int, float)):
                parts.append(f"{symbol}={value:g}")
        return f"Comparison({', '.join(parts)})"

    def _shape(self, times: str) -> str:
        rows = counted(len(self.names), "dataset")
        columns = counted(len(self.reference_names), "reference")
        return rows if self.is_square else f"{rows}{times}{columns}"

    def __str__(self) -> str:
        header = ["", *_ends(self.reference_names, 3)]
        named = zip(self.names, self.distances.tolist(), strict=True)
        rows = _ends([[name, *_ends(row, 3)] for name, row in named], 5, ["…"] * len(header))
        return f"{self!r}\n{text_table(header, rows, digits='.4f')}"

    def _repr_html_(self) -> str:
        """Return a table, truncated beyond 20 rows or columns, and a heat map for notebooks.

        Without pandas or matplotlib it is the text of `print`.
        """
        from .figures.style import png_of  # upward, at call time only

        try:
            table = self.to_frame().round(4).to_html(max_rows=20, max_cols=20)
            figure: Any = self.plot("heatmap").figure
        except MissingExtraError:
            return f"<pre>{html.escape(str(self))}</pre>"
        picture = base64.b64encode(png_of(figure)).decode()
        label = f"Heat map of the {html.escape(self.distance_label)} distances"
        image = f'<img alt="{label}" src="data:image/png;base64,{picture}">'
        return f"<p>{html.escape(repr(self))}</p>{table}{image}"


def _ends(items: Sequence[Any], n: int, gap: Any = "…") -> list[Any]:
    """Return the items that a printed table shows: all up to 12, else the first and last n."""
    return list(items) if len(items) <= 12 else [*items[:n], gap, *items[-n:]]
