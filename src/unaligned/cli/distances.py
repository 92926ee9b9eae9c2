"""`unaligned distances`."""

from .app import command
from .options import AsJSON
from .printing import print_json, print_table, table


@command("unaligned distances", "unaligned distances --json")
def distances(json: AsJSON = False) -> None:
    """List the distances, what each needs and what it costs."""
    from ..metrics.registry import descriptions

    known = descriptions()
    if json:
        print_json([{"name": name, **row} for name, row in known.items()])
        return
    rows = table(["name", "description", "needs", "works on", "cost"], n_text=5)
    for name, row in known.items():
        needs = [need for need in ("same features", "paired rows") if row[need]]
        needs += [f"the extra '{row['extra']}'"] if row["extra"] else []
        works_on = "descriptors" if row["descriptor"] else "pairs"
        cells = (row["what"], ", ".join(needs) or "nothing shared", works_on, row["cost"])
        rows.add_row(name, *cells)
    print_table("Distances", rows)
