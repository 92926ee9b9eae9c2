"""`unaligned list`."""

from dataclasses import asdict

from ..errors import counted
from .app import command
from .options import AsJSON, StorePath, Tags, pairs
from .printing import print_json, print_table, table


@command(
    "unaligned list --store refs.db",
    "unaligned list --store refs.db --tag source=scans",
    name="list",
)
def list_signatures(store: StorePath, tag: Tags = None, json: AsJSON = False) -> None:
    """List the signatures in a store."""
    from .. import Store

    records = Store(store, create=False).records(pairs("--tag", tag))
    if json:
        print_json([asdict(record) for record in records])
        return
    rows = table(["name", "tags", "created", "rows", "columns", "K", "error ≤"], n_text=3)
    for record in records:
        tags = ", ".join(f"{key}={value}" for key, value in record.tags.items())
        total = f" of {record.rows_drawn_from}" if record.rows_drawn_from else ""
        sizes = [f"{record.n_samples}{total}", str(record.n_features), str(record.n_eigenvalues)]
        bound = f"{record.error_bound:.1g}"
        rows.add_row(record.name, tags, record.created[:10], *sizes, bound)
    print_table(f"{store}: {counted(len(records), 'signature')}", rows)
