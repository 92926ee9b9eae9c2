"""`unaligned test`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from .app import DIFFERENT, command
from .options import (
    AsJSON,
    BlockSignatureOptions,
    FileOptions,
    Files,
    RunOptions,
    distance_options,
    option,
)
from .printing import issued_warnings, print_json, stdout

if TYPE_CHECKING:
    from ..inference.permutation import PermutationTest


@command(
    "unaligned test before.npy after.npy",
    "unaligned test halves.csv --group-by half --json",
    "unaligned test before.npy after.npy --distance shape-dna --block-size 40",
    "unaligned test donors.csv --group-by condition --groups donor",
    name="test",
)
def run_test(
    files: Files,
    reading: FileOptions,
    signature: BlockSignatureOptions,
    run: RunOptions,
    distance: Annotated[
        str, option("See `unaligned distances`.", "les", "--distance", "-d")
    ] = "les",
    option_pairs: Annotated[
        list[str] | None,
        option("Option of the distance: squared=true.", False, "--option", metavar="KEY=VALUE"),
    ] = None,
    groups: Annotated[
        str | None,
        option("Column with the group of each row, such as its donor: groups are permuted."),
    ] = None,
    block_size: Annotated[
        int | None,
        option(
            "Rows per block.",
            "a tenth of the smaller dataset, a quarter of the smallest group; 30 to 500",
        ),
    ] = None,
    n_permutations: Annotated[
        int, option("Random permutations.", True, "--permutations", min=1)
    ] = 9999,
    json: AsJSON = False,
) -> None:
    """Test whether two datasets differ by more than sampling noise.

    The datasets are cut into random blocks of rows, whose signatures are permuted (see
    `ua.permutation_test`). Rows must be independent draws; where they are not, name the column of
    their `--groups`. The exit code is 0 if no difference is shown (p > 0.05), and 3 if one is.
    """
    import unaligned as ua

    datasets, labels = reading.load_labelled(files, "--groups", groups)
    if len(datasets) != 2:
        raise InputError(
            f"test needs two datasets, and {len(datasets)} are given: {', '.join(datasets)}. Give "
            "two files, or one that --group-by splits in two."
        )
    settings = {
        "distance": distance,
        "groups": labels,
        "block_size": block_size,
        "n_permutations": n_permutations,
        **asdict(run),
        **signature.given(),
    }
    found = ua.permutation_test(*datasets.values(), **distance_options(option_pairs, settings))
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
        *("block_size", "n_blocks", "n_groups", "n_pairs", "is_exact", "is_approximate"),
    )
    values = {key: getattr(found, key) for key in keys}
    return {**values, "n_permutations": found.null.size, "warnings": issued_warnings()}
