"""Explanation: what makes two datasets differ, feature by feature or group by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._check import FloatArray
from .._format import text_table
from ..errors import DataWarning, counted, listed, required, warn
from .blocks import Request
from .changes import changes_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from .quantities import ScaleExplanation

_COLUMNS = ("change", "noise", "exceeds_noise")
_NOUNS = {"features": "feature", "rows": "group"}


@dataclass(frozen=True, eq=False)
class Explanation:
    """The result of `explain` by features or rows, the largest changes first.

    Attributes
    ----------
    by
        `"features"` or `"rows"`.
    names, n_samples
        Of the two datasets.
    distance
        The LES distance between them at the size of a block, corrected for noise and size as in
        `permutation_test`.
    labels
        Names of the features, groups of features or groups of rows.
    change
        The distance without it minus the distance with it: negative where it makes the datasets
        differ, positive where they are alike in it. For rows both distances are those of equally
        many rows. NaN where a block has nothing, or mostly duplicates, left without it.
    noise
        The standard error of `change`.
    exceeds_noise
        Whether the change is beyond what the largest of all changes reaches by noise alone, in
        95 % of cases.
    threshold
        The multiple of `noise` that is meant by that; NaN where no change is known.
    members
        The columns of each label that stands for several.
    block_size, n_blocks, n_eigenvalues, gamma
        Rows of a block, blocks of each dataset, and K (of whole blocks) and γ of their signatures.
    is_complete
        Whether all blocks were done; False after Ctrl-C.
    """

    by: str
    names: tuple[str, str]
    n_samples: tuple[int, int]
    distance: float
    labels: tuple[str, ...]
    change: FloatArray = field(repr=False)
    noise: FloatArray = field(repr=False)
    exceeds_noise: npt.NDArray[np.bool_] = field(repr=False)
    threshold: float
    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    block_size: int = 0
    n_blocks: int = 0
    n_eigenvalues: int = 0
    gamma: float = 0.0
    is_complete: bool = True

    def __post_init__(self) -> None:
        for name in _COLUMNS:
            values = getattr(self, name).view()
            values.flags.writeable = False
            object.__setattr__(self, name, values)

    def to_frame(self) -> pd.DataFrame:
        """Return `change`, `noise` and `exceeds_noise` indexed by `labels`.

        Returns
        -------
        pandas.DataFrame
            One row per label, the largest change first.
        """
        required("pandas", "pandas", "A DataFrame")
        import pandas as pd

        columns = {name: getattr(self, name) for name in _COLUMNS}
        return pd.DataFrame(columns, index=pd.Index(self.labels, name=_NOUNS[self.by]))

    @property
    def summary(self) -> str:
        """The result in words."""
        start = opening(self)
        marked = np.flatnonzero(self.exceeds_noise)
        if np.isnan(self.change).all():
            return f"{start}. No change is known."
        n_groups = len(self.members) if self.by == "features" else len(self.labels)
        counts = {"group": n_groups, "feature": len(self.labels) - n_groups}
        n_all = " and ".join(counted(n, noun) for noun, n in counts.items() if n)
        if len(self.labels) == 1:
            which = f"{self.labels[0]} {'changes' if marked.size else 'does not change'}"
        else:
            which = f"{f'{marked.size} of' if marked.size else 'none of the'} {n_all} changes"
        start = f"{start}. Leaving out {which} that by more than noise."
        lower, higher = ([i for i in marked if sign * self.change[i] > 0] for sign in (-1, 1))
        effects = [
            f" Without {self._listed(found)} it is {word}."
            for word, found in (("smaller", lower), ("larger", higher))
            if found
        ]
        return f"{start}{''.join(effects)}"

    def _listed(self, places: list[Any]) -> str:
        return listed(
            [f"{self.labels[i]} ({self.change[i]:+.2g} ± {self.noise[i]:.1g})" for i in places]
        )

    def plot(self, ax: Axes | None = None, *, n_shown: int = 20) -> Axes:
        """Draw the changes with their noise, the largest `n_shown` first.

        Parameters
        ----------
        ax
            Where to draw; None makes a new figure.
        n_shown
            The most bars.

        Returns
        -------
        matplotlib.axes.Axes
            The axes drawn on.
        """
        from ..figures import explanation  # upward, at call time only

        return explanation(self, ax=ax, n_shown=n_shown)

    def to_dict(self) -> dict[str, Any]:
        """Return all values by name, the summary included.

        Returns
        -------
        dict
            Arrays stay arrays.
        """
        return {**vars(self), "summary": self.summary}

    def __repr__(self) -> str:
        return self.summary

    def __str__(self) -> str:
        columns = (self.change.tolist(), self.noise.tolist(), self.exceeds_noise.tolist())
        rows = list(zip(self.labels, *columns, strict=True))
        shown = text_table([_NOUNS[self.by], *_COLUMNS], rows[:20], digits=".3g")
        rest = f"\n… {len(rows) - 20} more" if len(rows) > 20 else ""
        return f"{self.summary}\n{shown}{rest}"


def opening(found: Explanation | ScaleExplanation) -> str:
    """Return the words that begin a summary: how far apart two datasets are."""
    first, second = found.names
    stopped = "" if found.is_complete else f" (stopped after {2 * found.n_blocks} blocks)"
    return (
        f"{first!r} and {second!r} are at les {found.distance:.3g} on blocks of "
        f"{found.block_size} rows, corrected for noise{stopped}"
    )


def measure(
    request: Request,
    by: str,
    names: Sequence[str],
    done: Sequence[FloatArray],
    members: Mapping[str, tuple[str, ...]] | None = None,
) -> Explanation:
    """Return the explanation that finished blocks give.

    `done` has the signatures of the blocks of both datasets by turns, (1 + C, K): with everything,
    then without each candidate. Candidates with NaN have a change of NaN and come last.
    """
    prints = [int(dataset.fingerprint, 16) for dataset in request.datasets]
    sides = sorted((0, 1), key=prints.__getitem__)  # the order of a and b must not matter
    blocks = np.stack([done[side::2] for side in sides]).transpose(2, 0, 1, 3)  # (1 + C, 2, n, K)
    decks = [blocks[:, :, part] for part in request.plan.decks(len(done) // 2)]
    found = changes_of(decks, np.random.default_rng([request.seed, *sorted(prints)]))
    order = np.argsort(-np.abs(found.change), kind="stable")  # NaN last
    lost = [name for name, change in zip(names, found.change, strict=True) if np.isnan(change)]
    if lost:
        warn(
            "A block has nothing, or mostly duplicates, left without these, which have no "
            f"change: {', '.join(lost[:5])}{', …' * (len(lost) > 5)}.",
            DataWarning,
        )
    first, second = request.datasets
    return Explanation(
        by=by,
        names=(str(first.name), str(second.name)),
        n_samples=(first.n_samples, second.n_samples),
        distance=found.distance,
        labels=tuple(names[i] for i in order),
        change=found.change[order],
        noise=found.noise[order],
        exceeds_noise=found.exceeds_noise[order],
        threshold=found.threshold,
        members=members or {},
        block_size=request.plan.size,
        n_blocks=len(done) // 2,
        n_eigenvalues=request.n_eigenvalues,
        gamma=float(request.settings.gamma),
        is_complete=len(done) == 2 * len(request.plan.rows[0]),
    )
