"""`unaligned nearest`."""

from dataclasses import asdict
from typing import Annotated, Any

from .app import command
from .options import AsJSON, FileOptions, Files, StorePath, Subsample, Tags, option, pairs
from .printing import print_json, print_message, print_table, table


@command(
    "unaligned nearest new.npy --store refs.db",
    "unaligned nearest new.npy --store refs.db -k 3 --tag source=scans",
    "unaligned nearest new.npy --store refs.db --aggregate mean --by source",
    "unaligned nearest new.npy --store refs.db --max-distance 5 --subsample common",
)
def nearest(
    files: Files,
    store: StorePath,
    reading: FileOptions,
    k: Annotated[int, option("Number of neighbours.", True, "-k", min=1)] = 5,
    aggregate: Annotated[str | None, option("Rank groups by `mean`, `min` or `max`.")] = None,
    by: Annotated[str | None, option("The tag that forms the groups of --aggregate.")] = None,
    max_distance: Annotated[
        float | None, option("Only references (or groups) at most this far.", metavar="D")
    ] = None,
    subsample: Subsample = None,
    tag: Tags = None,
    json: AsJSON = False,
) -> None:
    """Find the references in a store that are nearest to a dataset.

    The signature of the dataset is computed with the settings of the store. Only references
    with all given tags are searched. Distances between datasets of different size are biased: a
    warning says so, and `--subsample common` compares at one size on both sides: that of the
    smallest, the dataset included. Larger references are read again from their files.
    """
    from .. import Store
    from ..store.search import require_rows

    references = Store(store, create=False)
    tags = pairs("--tag", tag)
    datasets = reading.load(files)
    for dataset in datasets.values():  # check all before the first is computed
        require_rows(references, dataset)
    options: dict[str, Any] = {"aggregate": aggregate, "by": by, "tags": tags}
    options |= {"subsample": subsample, "max_distance": max_distance}
    found = {name: references.nearest(data, k, **options) for name, data in datasets.items()}
    if json:
        print_json({name: [asdict(near) for near in row] for name, row in found.items()})
        return
    for name, row in found.items():
        rows = table(["reference", "tags", "rows", "distance", "error ≤"], n_text=2)
        if aggregate is not None:
            columns = [by or "references", "count", f"{aggregate} distance", "error ≤"]
            rows = table(columns, n_text=1)
        for near in row:
            labels = ", ".join(f"{key}={value}" for key, value in near.tags.items())
            facts = [str(near.n_references)] if aggregate else [labels, str(near.n_samples)]
            rows.add_row(near.name, *facts, f"{near.distance:.4g}", f"{near.error_bound:.1g}")
        print_table(f"Nearest to {name}", rows)
        if not row:
            print_message(f"No reference is within --max-distance {max_distance:g} of {name}.")
