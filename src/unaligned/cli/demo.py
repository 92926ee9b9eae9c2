"""`unaligned demo`."""

from typing import Annotated

from .app import command
from .options import AsJSON, option
from .printing import print_json, print_table, stdout, table


@command("unaligned demo", "unaligned demo --seed 3")
def demo(
    seed: Annotated[int, option("Random seed.", True, min=0)] = 0, json: AsJSON = False
) -> None:
    """Compare handwritten digits in feature spaces that have nothing in common."""
    from ..experiments.digits import run_demo

    result = run_demo(rng=seed)
    names, distances = result.comparison.names, result.comparison.distances
    if json:
        found = {"names": names, "distances": distances}
        print_json({"datasets": result.descriptions, **found, "reading": result.reading})
        return
    console = stdout()
    console.print("Datasets (rows × columns):")
    for code, description in result.descriptions.items():
        console.print(f"  {code}  {description}")
    rows = table(["", *names], n_text=1)
    for name, row in zip(names, distances, strict=True):
        rows.add_row(name, *(f"{value:.2f}" for value in row))
    print_table("\nLES distances", rows)
    for sentence in result.reading:
        console.print(f"- {sentence}")
