"""Commands about files: info and compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import (
    InputError,
    MissingExtraError,
    NotApplicableError,
    OptionError,
    UnalignedError,
    counted,
)
from ._looks import look_at, print_looks
from ._results import Outputs, as_json, print_distances
from .base import app, examples, exit_code, flat, going_on
from .options import AsJSON, Caching, Files, Making, Running, literals, subsample_size
from .output import complain, print_json, say
from .reading import Reading

if TYPE_CHECKING:
    from ..result import Comparison
    from ..spectra.signature import Signature


@app.command(
    epilog=examples(
        "unaligned info cells.npy",
        "unaligned info table.csv --group-by day",
        "unaligned info arrays.npz:first --json",
    )
)
@flat
def info(files: Files, reading: Reading, making: Making, json: AsJSON = False) -> None:
    """Show what is in files, what comparing would cost, and which settings suit.

    Shape, type, rows with NaN, duplicates; time and memory of a signature; the K and γ that the
    spectrum suggests (that of 2000 rows where there are more). A file that cannot be read is an
    error, and the others are shown all the same.
    """
    codes: list[int] = []

    def refused(error: UnalignedError) -> None:
        complain("Error", error)
        codes.append(exit_code(error))

    datasets = reading.load_with_missing(files, refused)
    looks = [look_at(item, making.given()) for item in datasets.values()]
    if looks:
        print_looks(looks, json=json)
    if any(look.problem for look in looks):
        codes.append(2)
    if codes:
        raise typer.Exit(max(codes))


class _Against(typer.core.TyperCommand):
    """A command whose --against takes all files up to the next option, as people write it."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        return super().parse_args(ctx, _spread(args))


def _spread(arguments: Sequence[str]) -> list[str]:
    """Return `--against a b` as `--against a --against b`.

    >>> _spread(["new", "--against", "a", "b", "--json"])
    ['new', '--against', 'a', '--against', 'b', '--json']
    """
    spread: list[str] = []
    inside = False
    for argument in arguments:
        if argument.startswith("-"):
            inside = argument == "--against"
        elif inside and spread[-1] != "--against":
            spread.append("--against")
        spread.append(argument)
    return spread


def _distance_names(incomplete: str) -> list[str]:
    from ..metrics.registry import DISTANCES

    return [name for name in DISTANCES if name.startswith(incomplete)]


@app.command(
    cls=_Against,
    epilog=examples(
        "unaligned compare cells.npy model.npy digits.csv",
        "unaligned compare table.csv --group-by day --out distances.csv --plot heat.png",
        "unaligned compare table.csv --group-by day --report report.html --tag day=0,1,2",
        "unaligned compare new.npy --against cells.npy model.npy",
        "unaligned compare cells.npy model.npy --distance les --distance imd",
        "unaligned compare cells.npy model.npy --preprocess standardize,pca:2 -K 50 --json",
    ),
)
@flat
def compare(
    files: Files,
    reading: Reading,
    making: Making,
    running: Running,
    caching: Caching,
    outputs: Outputs,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE", help="References: then each FILE is compared with each of these."
        ),
    ] = None,
    distance: Annotated[
        list[str] | None,
        typer.Option(
            "--distance",
            "-d",
            show_default="les",
            autocompletion=_distance_names,
            help="A distance, see `unaligned distances`; may be given several times.",
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Another option of the distance: squared=true."),
    ] = None,
    subsample: Annotated[
        str | None,
        typer.Option(help="Compare at so many rows, or at those of the smallest: `common`."),
    ] = None,
    json: AsJSON = False,
) -> None:
    """Compare datasets with each other, or with references.

    Every finished signature is kept in a cache: a run that was stopped, and one with more files,
    computes only what is missing. With several distances each writes a file of its own
    (`distances-les.csv`), and one that does not apply says why; the exit code is then 1.
    """
    outputs.require_possible()
    names = _unique(distance)
    chosen = _options_of(names, {**making.given(), **literals("--option", option)})
    datasets = reading.load(files, short=not against)
    references = reading.load(against) if against else None
    _require_two(datasets, references)
    tags = outputs.known(list(datasets))
    settings = {
        "references": references,
        "subsample": subsample_size(subsample),
        "rng": running.seed,
        "n_jobs": running.n_jobs([*datasets.values(), *(references or {}).values()]),
        "cache": caching.opened(),
    }
    found: list[Comparison] = []
    for name, options in chosen.items():
        try:
            found.append(_compared(datasets, {**settings, **options, "distance": name}))
        except (NotApplicableError, MissingExtraError) as error:
            complain("Error", error)
            continue
        if not json:
            print_distances(found[-1])
        outputs.write(found[-1], several=len(names) > 1, tags=tags)
    if json and found:
        print_json(as_json(found))
    if len(found) < len(names):
        raise typer.Exit(1)


def _require_two(datasets: Mapping[str, Any], references: Mapping[str, Any] | None) -> None:
    if len(datasets) < 2 and not references:
        raise InputError(
            f"There is one dataset, {next(iter(datasets))!r}, and nothing to compare it with. "
            "Give more files, --against references, or --group-by a column."
        )


def _compared(datasets: Mapping[str, Any], settings: Mapping[str, Any]) -> Comparison:
    import unaligned as ua

    from ..cache import is_cached

    kept = settings["cache"] is not None
    hint = "Finished signatures are kept: the same command goes on from there."
    with going_on(hint if kept else "Nothing is kept (--no-cache)."):
        found = ua.compare(datasets, **settings)
    signatures = {**found.signatures, **found.reference_signatures}
    n_cached = sum(map(is_cached, signatures.values()))
    if n_cached:
        everything = counted(len(signatures), "dataset")
        say(f"{everything}: {counted(n_cached, 'signature')} from the cache.")
    if signatures:
        _say_sizes(list(signatures.values()))
    return found


def _say_sizes(signatures: Sequence[Signature]) -> None:
    """Say where sizes differ less than is warned of, but K goes to where they show."""
    from ..inputs import SIZE_RATIO

    small, large = (
        extreme(signatures, key=lambda found: found.n_samples) for extreme in (min, max)
    )
    differ = 1.5 < large.n_samples / small.n_samples <= SIZE_RATIO
    if differ and 2 * small.n_eigenvalues >= small.n_samples:
        say(
            f"Note: {small.name!r} has {small.n_samples} rows, {large.name!r} {large.n_samples}, "
            f"and K={small.n_eigenvalues} goes far into the smaller spectrum: part of their "
            "distance comes from size alone. --subsample common takes that out, a smaller -K most "
            "of it."
        )


def _unique(distances: Sequence[str] | None) -> list[str]:
    """Return the names of distances, each once; `les,imd` are two."""
    names = [name.strip() for text in distances or ["les"] for name in text.split(",")]
    return list(dict.fromkeys(names))


def _options_of(names: Sequence[str], given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return for each distance those of the options given that it has; each must serve one."""
    from .. import _check, _settings
    from ..metrics.registry import ALIASES, DISTANCES

    right = [_check.one_of("distance", name, DISTANCES, ALIASES) for name in names]
    known = {name: set(_settings.option_names(DISTANCES[name])) for name in right}
    for option in given:
        if not any(option in options for options in known.values()):
            every = sorted(set().union(*known.values()))
            raise OptionError(
                f"{option!r} is not an option of {' or '.join(names)}."
                f"{_check.did_you_mean(option, every)} There are: {', '.join(map(repr, every))}."
            )
    return {
        name: {key: value for key, value in given.items() if key in options}
        for name, options in known.items()
    }
