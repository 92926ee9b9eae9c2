"""Section 5.2, Fig. 3 and Appendix C: distances between groups of cells and their times.

One dataset per time point; then each with a random subset of genes of its own; then the same
stages in three species, which share no gene.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

import unaligned as ua

from .. import _check
from .._check import FloatArray
from ..defaults import SIGNIFICANCE
from .base import Claim, Experiment, Row, Stage, Task, Value, markdown_table
from .cell_results import (
    METHODS,
    Retrieval,
    correlations,
    course_claims,
    draw_courses,
    draw_stages,
    retrieve,
    subset_claims,
)
from .time_courses import CYTOTREE, SPECIES, TimeCourse, names_of, principal_groups, read_course

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ACROSS = "three species"


class Part(NamedTuple):
    """What a task compares: a course, or one of its groups with all later ones."""

    course: str
    subsets: bool = False  # whether each time point has its own genes
    row: str | None = None


@dataclass(frozen=True)
class Cells(Experiment):
    """Distances between groups of cells against the times between them.

    `--full` is the paper's setting on the data at hand: K = 500 (or the smallest group), γ = 1e-5,
    all cells; Wasserstein and Gromov-Wasserstein, which are slower, take `transport_cells` and
    `alignment_cells` of each group. `--quick` takes fewer cells and rounds. `n_trials` are random
    subsets of genes. `data` is an AnnData file with `obs["day"]` in place of our time courses.
    """

    name: ClassVar[str] = "cells"
    title: ClassVar[str] = "Cells: do distances follow time? (Section 5.2, Fig. 3)"
    variable: ClassVar[str] = "part"
    variable_type: ClassVar[type] = str
    tabulated: ClassVar[bool] = False
    quick: ClassVar[dict[str, Any]] = {
        "n_trials": 3,
        "max_cells": 2000,
        "transport_cells": 1000,
        "alignment_cells": 150,
        "rounds": 100,
        "topology_rounds": 2,
    }
    full: ClassVar[dict[str, Any]] = {"n_trials": 10}

    n_eigenvalues: int = 500
    gamma: float = 1e-5
    n_genes: int = 1500  # the most variable ones
    least_share: float = 0.8  # of the genes of a random subset
    max_cells: int | None = None  # of each group; None takes all
    transport_cells: int = 4000
    alignment_cells: int = 400
    rounds: int = 1000  # of the Geometry Score
    topology_rounds: int = 10  # of MTD
    n_components: int = 50  # across species
    data: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("n_eigenvalues", "n_genes", "rounds", "topology_rounds", "n_components"):
            _check.positive_int(name, getattr(self, name))
        for name in ("transport_cells", "alignment_cells"):
            _check.positive_int(name, getattr(self, name), minimum=2)
        if self.max_cells is not None:
            _check.positive_int("max_cells", self.max_cells, minimum=2)
        _check.real_number("gamma", self.gamma, minimum=0.0)
        if not 0 < _check.real_number("least_share", self.least_share, minimum=0.0) <= 1:
            raise ua.errors.InputError(f"least_share={self.least_share!r} must be in (0, 1].")

    @property
    def courses(self) -> tuple[str, ...]:
        """The names of the time courses."""
        return (CYTOTREE, *SPECIES) if self.data is None else (Path(self.data).stem,)

    def course(self, name: str) -> TimeCourse:
        """Return a time course with its cells."""
        return read_course(name, self.data, self.n_genes, self.seed)

    @property
    def parts(self) -> dict[str, Part]:
        """What is compared, by the value of the variable."""
        found = {course: Part(course) for course in self.courses}
        found |= {f"{c}, gene subsets": Part(c, subsets=True) for c in self.courses}
        for course in self.courses:
            rows = names_of(course, self.data)[:-1]
            found |= {f"{course}: {row}": Part(course, row=row) for row in rows}
        if self.data is None:
            found[ACROSS] = Part(ACROSS)
            codes = list(SPECIES.values())[:-1]
            rows = tuple(name for name in _names_across() if name.split()[0] in codes)
            found |= {f"{ACROSS}: {row}": Part(ACROSS, row=row) for row in rows}
        return found

    def stages(self) -> list[Stage]:
        """Return one stage per method; those that cost per pair run row by row."""
        kinds: dict[str, list[str]] = {"whole": [], "within": [], "rows": [], "across": []}
        for value, part in self.parts.items():
            across = part.course == ACROSS
            kinds["whole"] += [value] if part.row is None else []
            kinds["within"] += [value] if part.row is None and not across else []
            kinds["rows"] += [value] if part.row is not None and not across else []
            kinds["across"] += [value] if part.row is not None and across else []
        stages: list[Stage] = [(("les",), kinds["whole"]), (("imd",), kinds["whole"])]
        stages += [(("geometry-score",), kinds["within"])]
        stages += [(("wasserstein",), kinds["rows"]), (("mtd",), kinds["rows"])]
        if kinds["across"]:
            stages.append((("gromov-wasserstein",), kinds["across"]))
        return stages

    def tasks(self, methods: Any) -> list[list[Task]]:
        """Return the tasks; only subsets of genes are drawn anew in every trial."""
        parts = self.parts
        return [
            [task for task in stage if task.trial == 0 or parts[task.value].subsets]
            for stage in super().tasks(methods)
        ]

    def pairs(self, method: str, value: Value) -> tuple[str, ...]:
        """Return the pairs of groups; across species, those of different species."""
        course, _, row = self.parts[value]
        if course == ACROSS:
            found = [(a, b) for a, b in combinations(_names_across(), 2) if a[:2] != b[:2]]
        else:
            found = list(combinations(names_of(course, self.data), 2))
        return tuple(f"{a},{b}" for a, b in found if row in (None, a))

    def run_task(self, task: Task) -> list[Row]:
        """Return the distances of a course, or of one group to all later ones."""
        part, (method,) = self.parts[task.value], task.methods
        pairs = [pair.split(",") for pair in self.pairs(method, task.value)]
        groups = self._groups(part, task.trial, method)
        options = self._options(method, groups, part)
        data: tuple[Any, ...] = (groups,)
        if part.row is not None:
            data = {part.row: groups[part.row]}, {other: groups[other] for _, other in pairs}
        found = ua.compare(*data, distance=method, rng=self.seed, progress=False, **options)
        return [{"method": method, "pair": f"{a},{b}", "distance": found[a, b]} for a, b in pairs]

    def _groups(self, part: Part, trial: int, method: str) -> dict[str, Any]:
        """Return the cells to compare; the first ones of each group are a random sample."""
        limits = {"wasserstein": self.transport_cells, "gromov-wasserstein": self.alignment_cells}
        most = limits.get(method, self.max_cells)
        if part.course == ACROSS:
            found = principal_groups(self.n_components, self.n_genes, self.seed)
            # Species have different numbers of cells, which alone would set them apart.
            common = min(len(values) for values in found.values())
            most = min(common, common if most is None else most)
            return {name: values[:most] for name, values in found.items()}
        course = self.course(part.course)
        if not part.subsets:
            return {name: values[:most] for name, values in course.groups.items()}
        d = course.n_features
        rng = np.random.default_rng([self.seed, trial, self.courses.index(part.course)])
        groups = {}
        for name, values in course.groups.items():
            size = rng.integers(math.ceil(self.least_share * d), d, endpoint=True)
            groups[name] = values[:most][:, np.sort(rng.choice(d, size, replace=False))]
        return groups

    def _options(self, method: str, groups: dict[str, Any], part: Part) -> dict[str, Any]:
        """Return the options of a distance; the paper's for LES, ours across species."""
        if method == "les" and part.course != ACROSS:
            smallest = min(values.shape[0] for values in groups.values())
            return {"n_eigenvalues": min(self.n_eigenvalues, smallest), "gamma": self.gamma}
        options: dict[str, dict[str, Any]] = {
            "geometry-score": {"n_rounds": self.rounds},
            "mtd": {"n_rounds": self.topology_rounds},
            "wasserstein": {"method": "exact"},
            "gromov-wasserstein": {"method": "exact"},
        }
        return options.get(method, {})

    def comparison(
        self, table: pd.DataFrame, method: str, course: str, *, subsets: bool = False
    ) -> list[ua.Comparison]:
        """Return the distances of a course by a method, one comparison per trial."""
        values = [v for v, p in self.parts.items() if (p.course, p.subsets) == (course, subsets)]
        rows = table[(table["method"] == method) & table["part"].isin(values)]
        names = _names_across() if course == ACROSS else names_of(course, self.data)
        return [_square(frame, names, method) for _, frame in rows.groupby("trial")]

    def claims(self, table: pd.DataFrame) -> list[Claim]:
        """Return the paper's statements for each course, and the retrieval of stages."""
        claims: list[Claim] = []
        for course in self.courses:
            claims += course_claims(self, table, course)
            claims += subset_claims(self, table, course)
        for label, found in self.retrievals(table).items():
            expected = f"{label}: the nearest group of another species has the same stage more "
            expected += f"often than by chance (p ≤ {SIGNIFICANCE})"
            claims.append(Claim("this project", expected, str(found), found.p_value <= 0.05))
        return claims

    def retrievals(self, table: pd.DataFrame) -> dict[str, Retrieval]:
        """Return the retrieval of stages across species by each method."""
        found = {}
        for method, label in (("les", "LES"), ("imd", "IMD"), ("gromov-wasserstein", "GW")):
            for comparison in self.comparison(table, method, ACROSS):
                found[label] = retrieve(comparison.distances, self._stages(), self.seed)
        return found

    def _stages(self) -> dict[str, tuple[int, float]]:
        """Return the stage and the phase of every group of three species."""
        courses = {code: self.course(species) for species, code in SPECIES.items()}
        return {
            f"{code} {name}": (course.stages[name], course.times[name])
            for code, course in courses.items()
            for name in course.groups
        }

    def notes(self, table: pd.DataFrame) -> list[str]:
        """Return the correlations of every course and method beside those of the paper."""
        head = ["cells", "genes", "distance", "Pearson", "the paper", "Spearman", "Mantel p"]
        rows: list[Sequence[str]] = []
        for course in self.courses:
            for subsets in (False, True):
                found = correlations(self, table, course, subsets=subsets)
                rows += [
                    [course, "random subsets" if subsets else "all", METHODS[m].label, *c.cells()]
                    for m, c in found.items()
                ]
        sizes = "; ".join(self._described(course) for course in self.courses)
        text = (
            "Correlation of distances with the time between two groups, over all pairs. The "
            "paper's numbers are of Schiebinger's cells (39 time points). Random subsets: mean "
            f"± standard deviation over {self.n_trials} draws of {self.least_share:.0%} to 100% "
            f"of the genes, median p. Groups: {sizes}."
        )
        return [text, markdown_table(head, rows)]

    def _described(self, name: str) -> str:
        course = self.course(name)
        sizes = [min(v.shape[0], self.max_cells or math.inf) for v in course.groups.values()]
        size = f"{min(sizes)}" + ("" if min(sizes) == max(sizes) else f" to {max(sizes)}")
        k = min(self.n_eigenvalues, min(sizes))
        return f"{name}, {len(sizes)} of {size} cells × {course.n_features}, K = {k}"

    def draw(self, table: pd.DataFrame) -> Figure:
        """Return diffusion maps coloured by time: a row per course, a panel per distance.

        Of Gromov-Wasserstein alone, which runs across species only, the retrieval of stages.
        """
        if set(table["method"]).isdisjoint(METHODS):
            return draw_stages(self.retrievals(table))
        return draw_courses(self, table, subsets=False)

    def pictures(self, table: pd.DataFrame) -> dict[str, Figure]:
        """Return the maps of random gene subsets, and the retrieval of stages."""
        found = {}
        if set(table["method"]) & {"les", "imd", "geometry-score"}:
            found["cells-gene-subsets"] = draw_courses(self, table, subsets=True)
        retrievals = self.retrievals(table)
        if retrievals:
            found["cells-species"] = draw_stages(retrievals)
        return found


def _names_across() -> tuple[str, ...]:
    return tuple(f"{code} {n}" for s, code in SPECIES.items() for n in names_of(s, None))


def _square(rows: pd.DataFrame, names: Sequence[str], method: str) -> ua.Comparison:
    """Return measured pairs as a comparison; pairs that were not measured are NaN."""
    place = {name: i for i, name in enumerate(names)}
    distances: FloatArray = np.full((len(names), len(names)), np.nan)
    np.fill_diagonal(distances, 0.0)
    for pair, distance in zip(rows["pair"], rows["distance"], strict=True):
        i, j = (place[name] for name in pair.split(","))
        distances[i, j] = distances[j, i] = distance
    bounds = np.full_like(distances, np.nan)
    return ua.Comparison(tuple(names), tuple(names), distances, bounds, None, method, {}, 0)
