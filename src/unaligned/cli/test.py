"""`unaligned test`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from .app import command
from .options import (
    AsJSON,
    FileOptions,
    Files,
    RunOptions,
    SignatureOptions,
    literal,
    option,
    pairs,
)
from .printing import issued_warnings, print_json, stdout

if TYPE_CHECKING:
    from ..inference.permutation import PermutationTest

DIFFERENT = 3  # exit code


@command(
    "unaligned test before.npy after.npy",
    "unaligned test halves.csv --group-by half --json",
    "unaligned test before.npy after.npy --distance shape-dna --block-size 40",
    name="test",
)
def run_test(
    files: Files,
    reading: FileOptions,
    signature: SignatureOptions,
    run: RunOptions,
    distance: Annotated[
        str, option("See `unaligned distances`.", "les", "--distance", "-d")
    ] = "les",
    option_pairs: Annotated[
        list[str] | None,
        option("Option of the distance: squared=true.", False, "--option", metavar="KEY=VALUE"),
    ] = None,
    block_size: Annotated[
        int | None, option("Rows per block.", "a tenth of the smaller dataset")
    ] = None,
    n_permutations: Annotated[
        int, option("Random permutations.", True, "--permutations", min=1)
    ] = 9999,
    json: AsJSON = False,
) -> None:
    """Test whether two datasets differ by more than sampling noise.

    The datasets are cut into random blocks of rows, whose signatures are permuted (see
    `ua.permutation_test`). Rows must be independent draws. The exit code is 0 if no difference
    is shown (p > 0.05), and 3 if one is.
    """
    import unaligned as ua

    datasets = reading.load(files, short=True)
    if len(datasets) != 2:
        raise InputError(
            f"test needs two datasets, and {len(datasets)} are given: {', '.join(datasets)}. Give "
            "two files, or one that --group-by splits in two."
        )
    options = {key: literal(value) for key, value in pairs("--option", option_pairs).items()}
    first, second = datasets.values()
    found = ua.permutation_test(
        first,
        second,
        distance=distance,
        block_size=block_size,
        n_permutations=n_permutations,
        rng=run.rng,
        n_jobs=run.n_jobs,
        **{**signature.given(), **options},
    )
    if json:
        print_json(_as_json(found))
    else:
        stdout().print(repr(found))
    if found.is_significant:
        raise typer.Exit(DIFFERENT)


def _as_json(found: PermutationTest) -> dict[str, Any]:
    """Return everything but the null distribution."""
    keys = (
        *("names", "n_samples", "p_value", "smallest_p_value", "is_significant", "distance"),
        *("squared", "interval", "noise_floor", "distance_name", "n_eigenvalues", "gamma"),
        *("block_size", "n_blocks", "is_exact", "is_approximate"),
    )
    values = {key: getattr(found, key) for key in keys}
    return {**values, "n_permutations": found.null.size, "warnings": issued_warnings()}
