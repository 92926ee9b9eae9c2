"""ScaleExplanation: numbers with a meaning that two spectra give, and their words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from .._check import FloatArray
from .._format import text_table
from ..errors import required
from .decades import Decade
from .result import opening

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


class Quantity(NamedTuple):
    """A number known of both datasets, with 95 % intervals over blocks of rows.

    Attributes
    ----------
    name
        Such as `dimension`.
    values
        Of the first and the second dataset.
    low, high
        The ends of the intervals of both.
    differs
        Whether the values differ by more than noise.
    """

    name: str
    values: tuple[float, float]
    low: tuple[float, float]
    high: tuple[float, float]
    differs: bool

    def __str__(self) -> str:
        return " and ".join(
            f"{value:.3g} ± {0.5 * (high - low):.1g}"
            for value, low, high in zip(self.values, self.low, self.high, strict=True)
        )


@dataclass(frozen=True, eq=False)
class ScaleExplanation:
    """The result of `explain` by scale.

    Attributes
    ----------
    names, n_samples
        Of the two datasets.
    distance
        The LES distance at the size of a block, corrected for noise as in `permutation_test`.
    quantities
        `components` (well-separated groups of rows), `gap` (between the eigenvalues of the
        components and the next), `effective rank` (the exponential of the entropy of the
        eigenvalues), `dimension` (intrinsic, at the scale of the nearest neighbours) and `length`
        (the wavelength at and below which the spectra part, in the units of each dataset; NaN
        where they do not, or part within separated groups), each with intervals.
    parting
        The number of the eigenvalue, from 1, at which the spectra part; None where they do not.
    decades
        The share of each power of ten of the spectrum in the squared distance.
    spectra, errors
        Mean log(λ + γ) of the blocks of both datasets, (2, K), and the half widths of their 95 %
        intervals.
    block_size, n_blocks
        Rows of a block, and blocks of each dataset.
    is_complete
        Whether all blocks were done; False after Ctrl-C.
    by
        `"scale"`.
    """

    names: tuple[str, str]
    n_samples: tuple[int, int]
    distance: float
    quantities: tuple[Quantity, ...]
    parting: int | None
    decades: tuple[Decade, ...]
    spectra: FloatArray = field(repr=False)
    errors: FloatArray = field(repr=False)
    block_size: int
    n_blocks: int
    is_complete: bool = True
    by: str = "scale"

    def __post_init__(self) -> None:
        for name in ("spectra", "errors"):
            values = getattr(self, name).view()
            values.flags.writeable = False
            object.__setattr__(self, name, values)

    def __getitem__(self, name: str) -> Quantity:
        """Return a quantity by its name."""
        return next(quantity for quantity in self.quantities if quantity.name == name)

    def to_frame(self) -> pd.DataFrame:
        """Return the quantities of both datasets with their intervals, a row for each.

        Returns
        -------
        pandas.DataFrame
            Columns `first`, `first_low`, `first_high`, the same of `second`, and `differs`.
        """
        required("pandas", "pandas", "A DataFrame")
        import pandas as pd

        return pd.DataFrame.from_dict(self._rows(), orient="index").rename_axis("quantity")

    def _rows(self) -> dict[str, dict[str, Any]]:
        rows: dict[str, dict[str, Any]] = {}
        for quantity in self.quantities:
            sides = zip(("first", "second"), zip(*quantity[1:4], strict=True), strict=True)
            row = {
                f"{side}{end}": value
                for side, found in sides
                for end, value in zip(("", "_low", "_high"), found, strict=True)
            }
            rows[quantity.name] = {**row, "differs": quantity.differs}
        return rows

    @property
    def summary(self) -> str:
        """The result in words."""
        words = [_component_words(self), *_number_words(self), _parting_words(self)]
        sentences = [opening(self), *words]
        return " ".join(f"{sentence}." for sentence in sentences)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw both mean spectra with their intervals, and where they part.

        Parameters
        ----------
        ax
            Where to draw; None makes a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes drawn on.
        """
        from ..figures import scales  # upward, at call time only

        return scales(self, ax=ax)

    def to_dict(self) -> dict[str, Any]:
        """Return all values by name, the summary included.

        Returns
        -------
        dict
            Quantities and decades as dicts; arrays stay arrays.
        """
        named = {quantity.name: quantity._asdict() for quantity in self.quantities}
        shares = [decade._asdict() for decade in self.decades]
        return {
            **vars(self),
            "quantities": named,
            "decades": shares,
            "summary": self.summary,
        }

    def __repr__(self) -> str:
        return self.summary

    def __str__(self) -> str:
        rows = self._rows()
        header = ["quantity", *next(iter(rows.values()))]
        cells = [(name, *row.values()) for name, row in rows.items()]
        return f"{self.summary}\n{text_table(header, cells, digits='.3g')}"


def _component_words(found: ScaleExplanation) -> str:
    components, gap = found["components"], found["gap"]
    counts = [round(value) for value in components.values]
    gaps = " and ".join(f"{value:.2f}" for value in gap.values)
    if counts[0] != counts[1] and components.differs:
        more, fewer = (0, 1) if counts[0] > counts[1] else (1, 0)
        n = counts[more] - counts[fewer]
        number = "one" if n == 1 else str(n)
        return (
            f"{found.names[more]!r} has {number} more separated group{'s' * (n > 1)} than "
            f"{found.names[fewer]!r} ({counts[0]} and {counts[1]}; gaps {gaps})"
        )
    if max(counts) == 1:
        return "Neither has well-separated groups"
    if counts[0] == counts[1]:
        return f"Both have {counts[0]} separated groups (gaps {gaps})"
    return f"Their numbers of separated groups do not differ by more than noise: {components}"


def _number_words(found: ScaleExplanation) -> list[str]:
    """Return a sentence for each of dimension and effective rank."""
    sentences = []
    for name, noun in (("dimension", "Their dimensions"), ("effective rank", "Effective ranks")):
        quantity = found[name]
        verdict = "differ" if quantity.differs else "do not differ by more than noise"
        sentences.append(f"{noun} {verdict}: {quantity}")
    return sentences


def _parting_words(found: ScaleExplanation) -> str:
    if found.parting is None:
        return "Their spectra do not part by more than noise"
    most = max(found.decades, key=lambda decade: decade.share)
    lengths = [f"{value:.3g}" for value in found["length"].values]
    where = f"lengths of {' and '.join(lengths)} (each in its own units), and below"
    if "nan" in lengths:
        where = "within the separated groups, where no length is known"
    return (
        f"The spectra part at eigenvalue {found.parting}, {where}; eigenvalues of "
        f"1e{most.exponent - 1} to 1e{most.exponent} make {100 * most.share:.0f} % "
        "of the squared distance"
    )
