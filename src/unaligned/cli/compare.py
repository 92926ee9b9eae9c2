"""`unaligned compare`."""

from __future__ import annotations

import json as json_format
import math
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._format import jsonable
from ..errors import (
    FileError,
    InputError,
    MissingExtraError,
    NotApplicableError,
    counted,
    required,
)
from . import printing
from .app import Command, command, resumable
from .options import (
    FORMATS,
    AsJSON,
    CacheOptions,
    FileOptions,
    Files,
    RunOptions,
    SignatureOptions,
    Subsample,
    distance_options,
    literal,
    option,
    pairs,
    require_writable,
    words,
)

if TYPE_CHECKING:
    import pandas as pd

    from ..result import Comparison


@dataclass(frozen=True)
class OutputOptions:
    """Files that `compare` writes."""

    out: Annotated[Path | None, option("Write the distances: .csv, .json or .npz.")] = None
    plot: Annotated[Path | None, option("Draw a heat map: .png, .svg, .pdf or .jpg.")] = None
    report: Annotated[Path | None, option("Write a report: .html.")] = None
    title: Annotated[str | None, option("Title of the report.")] = None
    tag: Annotated[
        list[str] | None,
        option("For the report: one value per dataset: `day=0,1,4`.", metavar="KEY=VALUES"),
    ] = None
    tags: Annotated[
        Path | None,
        option("For the report: a .csv file with names, then a column per tag.", metavar="FILE"),
    ] = None

    def require_possible(self) -> None:
        """Raise an error if an output could not be written, before anything is computed."""
        from ..report import SUFFIXES

        pictures = (".png", ".svg", ".pdf", ".jpg")
        for name, suffixes in (("out", FORMATS), ("plot", pictures), ("report", SUFFIXES)):
            path = getattr(self, name)
            if path is not None:
                require_writable(name, path, suffixes)
        for name in ("title", "tag", "tags"):
            if getattr(self, name) and self.report is None:
                raise InputError(f"--{name} needs a report: add --report report.html.")

    def tag_table(self, names: Sequence[str]) -> pd.DataFrame | None:
        """Return a row for each dataset and a column for each tag, or None without tags."""
        if not self.tag and self.tags is None:
            return None
        required("pandas", "pandas", "A table of tags")
        import pandas as pd

        from ..tags import read_tags

        columns = {}
        for key, listed in pairs("--tag", self.tag).items():
            values = [text.strip() for text in listed.split(",")]
            if len(values) != len(names):
                raise InputError(
                    f"--tag {f'{key}={listed}'!r} has {len(values)} values for {len(names)} "
                    f"datasets. Give one for each, in this order: {', '.join(names)}."
                )
            columns[key] = values
        frame = pd.DataFrame(columns, index=list(names), dtype=object)
        if self.tags is not None:
            table = _read_tag_file(self.tags)
            read_tags(table, names)  # raises its errors before anything is computed
            frame = table.drop(columns=list(columns), errors="ignore").join(frame, how="outer")
        return frame.map(lambda text: literal(text) if isinstance(text, str) and text else None)

    def write(self, comparison: Comparison, *, several: bool, tags: pd.DataFrame | None) -> None:
        """Write the files; with several distances each has its own."""
        from .. import figures
        from ..io.archive import write_text

        def own(path: Path) -> Path:
            name = f"{path.stem}-{comparison.distance_name}{path.suffix}"
            return path.with_name(name) if several else path

        if self.out is not None:
            path, suffix = own(self.out), self.out.suffix.lower()
            if suffix == ".npz":
                comparison.save(path)
            elif suffix == ".csv":
                write_text(path, comparison.to_frame().to_csv(lineterminator="\n"))
            else:
                text = json_format.dumps(jsonable(_as_json([comparison])), indent=1)
                write_text(path, f"{text}\n")
        if self.plot is not None:
            figure: Any = comparison.plot("heatmap").figure
            figures.save(figure, own(self.plot))
        if self.report is not None:
            typed = shlex.join(["unaligned", *sys.argv[1:]])
            comparison.report(own(self.report), title=self.title, tags=tags, command=typed)
        for path in filter(None, (self.out, self.plot, self.report)):
            printing.print_message(f"Written: {own(path)}")


def _read_tag_file(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        with path.open(encoding="utf-8-sig") as file:
            separator = max(",;\t", key=file.readline().count)
            file.seek(0)
            frame = pd.read_csv(file, sep=separator, dtype=str)
        if frame.shape[1] < 2:
            raise ValueError("there is no column of tags")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error).strip().rstrip(".")
        raise FileError(
            f"--tags {str(path)!r} cannot be read as a table: {reason}. It needs a header, and a "
            "row for each dataset: its name, then a value of each tag."
        ) from error
    return frame.set_index(frame.columns[0])


class _CompareCommand(Command):
    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Let --against take all files up to the next option."""
        repeated: list[str] = []
        inside = False
        for argument in args:
            if argument.startswith("-"):
                inside = argument == "--against"
            elif inside and repeated[-1] != "--against":
                repeated.append("--against")
            repeated.append(argument)
        return super().parse_args(ctx, repeated)


def _complete(incomplete: str) -> list[str]:
    from ..metrics.registry import DISTANCES

    return [name for name in DISTANCES if name.startswith(incomplete)]


@command(
    "unaligned compare cells.npy model.npy digits.csv",
    "unaligned compare table.csv --group-by day --out distances.csv --plot heat.png",
    "unaligned compare table.csv --group-by day --report report.html --tag day=0,1,2",
    "unaligned compare cells.h5ad --group-by day --use-rep X_pca",
    "unaligned compare new.npy --against cells.npy model.npy",
    "unaligned compare cells.npy model.npy --distance les --distance imd",
    "unaligned compare cells.npy model.npy --preprocess standardize,pca:2 -K 50 --json",
    cls=_CompareCommand,
)
def compare(
    files: Files,
    reading: FileOptions,
    signature: SignatureOptions,
    run: RunOptions,
    cache: CacheOptions,
    output: OutputOptions,
    references: Annotated[
        list[str] | None,
        option("References to compare each FILE with.", False, "--against", metavar="FILE"),
    ] = None,
    distance: Annotated[
        list[str] | None,
        option("See `unaligned distances`.", "les", "--distance", "-d", autocompletion=_complete),
    ] = None,
    option_pairs: Annotated[
        list[str] | None,
        option("Option of the distance: squared=true.", False, "--option", metavar="KEY=VALUE"),
    ] = None,
    subsample: Subsample = None,
    min_samples: Annotated[
        int | None, option("Leave out datasets with fewer rows.", min=1, metavar="N")
    ] = None,
    fit_on: Annotated[
        str | None,
        option("Fit `standardize` and `pca` to the `references`, and apply them to all."),
    ] = None,
    inference: Annotated[
        bool, option("Test every pair, as `unaligned test` does.", False, "--inference")
    ] = False,
    json: AsJSON = False,
) -> None:
    """Compare datasets with each other, or with references.

    Signatures are cached: a run that was interrupted, or one with more files, computes only
    what is missing. With several distances each writes its own file (`distances-les.csv`). If
    one does not apply, the others are computed and the exit code is 1.
    """
    output.require_possible()
    listed = [name for text in distance or ["les"] for name in words(text) or ()]
    names = list(dict.fromkeys(listed))
    if not names:
        raise InputError("--distance names none. Give at least one, such as les.")
    options = _options_by_distance(names, distance_options(option_pairs, signature.given()))
    datasets = reading.load(files, short=not references)
    others = reading.load(references) if references else None
    if len(datasets) < 2 and not others:
        raise InputError(
            f"There is one dataset, {next(iter(datasets))!r}, and nothing to compare it with. "
            "Give more files, --against references, or --group-by a column."
        )
    tags = output.tag_table(list(datasets))
    settings = {
        "references": others,
        "subsample": subsample,
        "min_samples": min_samples,
        "fit_on": fit_on,
        "inference": inference,
        "rng": run.rng,
        "n_jobs": run.n_jobs,
        "cache": cache.open(),
    }
    found: list[Comparison] = []
    for name in names:
        try:
            found.append(_compare(datasets, {**settings, **options[name], "distance": name}))
        except (NotApplicableError, MissingExtraError) as error:
            printing.print_problem("Error", error)
            continue
        if not json:
            _print_distances(found[-1])
            _print_inference(found[-1])
        output.write(found[-1], several=len(names) > 1, tags=tags)
    if json and found:
        printing.print_json(_as_json(found))
    if len(found) < len(names):
        raise typer.Exit(1)


def _options_by_distance(
    names: Sequence[str], given: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return the given options that each distance has; at least one must have each option."""
    from .. import _check
    from ..metrics.registry import DISTANCES, resolve_distances

    resolve_distances(names, given)  # raises for unknown names and options
    known = {name: set(_check.option_names(DISTANCES[name])) for name in names}
    return {name: {key: given[key] for key in given if key in known[name]} for name in names}


def _compare(datasets: Mapping[str, Any], settings: Mapping[str, Any]) -> Comparison:
    """Return a comparison, with a message about the cache."""
    import unaligned as ua

    from ..cache import is_cached

    hint = "Finished signatures are cached: run the same command to continue."
    with resumable("Nothing was cached." if settings["cache"] is None else hint):
        found: Comparison = ua.compare(datasets, **settings)
    signatures = list({**found.signatures, **found.reference_signatures}.values())
    n_cached = sum(map(is_cached, signatures))
    if n_cached:
        total = counted(len(signatures), "dataset")
        printing.print_message(f"{total}: {counted(n_cached, 'signature')} from the cache.")
    return found


def _as_json(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """Return comparisons of the same datasets as one JSON object."""
    first, keys = comparisons[0], ("distances", "error_bounds", "options", "seed")
    results: dict[str, dict[str, Any]] = {}
    for found in comparisons:
        results[found.distance_name] = {
            **{key: getattr(found, key) for key in keys},
            **{key: found.options.get(key) for key in ("n_eigenvalues", "gamma")},
            "inference": found.inference and found.inference.to_dict(),
        }
    return {
        "names": first.names,
        "reference_names": first.reference_names,
        "n_samples": first.n_samples,
        "reference_n_samples": first.reference_n_samples,
        "results": results,
        "warnings": printing.issued_warnings(),
    }


def _print_distances(comparison: Comparison) -> None:
    """Print all distances, or the nearest and farthest if the terminal is too narrow for them."""
    names, others = comparison.names, comparison.reference_names
    largest = max(map(float, comparison.error_bounds.ravel()))
    accuracy = f" (error ≤ {largest:.1g})" if math.isfinite(largest) else ""
    title = f"{comparison.distance_label} distances{accuracy}"
    rows = printing.table(["", *others], n_text=1)
    for name, row in zip(names, comparison.distances, strict=True):
        rows.add_row(name, *(f"{value:.4g}" for value in row))
    if printing.fits(rows):
        printing.print_table(title, rows)
        return
    rows = printing.table(["dataset", "nearest", "distance", "farthest", "distance"], n_text=1)
    for i, name in enumerate(names):
        row = comparison.distances[i]
        rest = [j for j in range(len(others)) if not (comparison.is_square and i == j)]
        near, far = min(rest, key=lambda j: row[j]), max(rest, key=lambda j: row[j])
        rows.add_row(name, others[near], f"{row[near]:.4g}", others[far], f"{row[far]:.4g}")
    printing.print_table(title, rows)
    printing.print_message("The terminal is too narrow for all distances; write them with --out.")


def _print_inference(comparison: Comparison) -> None:
    """Print the noise floors, and the pairs that are not told apart."""
    found = comparison.inference
    if found is None:
        return
    same = [
        f"{comparison.names[i]} and {comparison.reference_names[j]}"
        for i, j in zip(*(~found.is_significant).nonzero(), strict=True)
        if j > i or not comparison.is_square
    ]
    console = printing.stdout()
    floors = zip(comparison.names, found.noise_floor, strict=True)
    listed = ", ".join(f"{name} {floor:.3g}" for name, floor in floors)
    console.print(f"Noise floor, blocks of {found.block_size} rows: {listed}.")
    verdict = f"Not told apart (p > 0.05 by Holm): {', '.join(same)}." if same else ""
    console.print(verdict or "All pairs differ (p ≤ 0.05 by Holm).")
