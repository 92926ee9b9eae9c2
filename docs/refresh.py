"""Copy the results of `unaligned reproduce` and `unaligned benchmark` into the documents.

The figures of every folder are copied to docs/figures, and its RESULTS.md, without the means, to
the section of that experiment in docs/results.md; that of the benchmark to docs/which_distance.md.
A further run of an experiment has a section and figures named after its folder (`tasks-conv4`),
and a heading of its own.
Run: python docs/refresh.py results/tori docs/runs/scaling results/benchmark ...
"""

from __future__ import annotations

import re
import runpy
import shutil
import sys
from pathlib import Path

DOCS = Path(__file__).parent


def refresh(folder: Path, page: str) -> str:
    """Copy the figures of one run, and return the page with its section replaced."""
    names = [path.stem for path in folder.glob("*.svg")]
    if len(names) != 1:
        raise SystemExit(
            f"{folder} must have the figure of one run. From docs/runs, write it first with "
            f"`unaligned reproduce NAME … --out {folder}`."
        )
    (name,) = names
    text = (folder / "RESULTS.md").read_text(encoding="utf-8")
    text = text.split("\nMean ")[0]
    heading, rest = text.split("\n", 1)
    # The command reproduces the settings.
    rest = re.sub(r"(Made by `[^`]*`)\. Settings: [^\n]*", r"\1:", rest)
    own = f"<!-- begin {folder.name} -->\n"
    section = folder.name if own in page else name
    if section != name:
        heading = page.split(own)[1].split("\n")[0].replace("## ", "# ", 1)
    begin, end = (f"<!-- {word} {section} -->" for word in ("begin", "end"))
    if page.count(begin) != 1 or page.count(end) != 1:
        raise SystemExit(f"The page needs the lines {begin} and {end}, once each.")
    for figure in folder.glob("*.png"):
        copy = figure.name.replace(name, section, 1)
        rest = rest.replace(f"({figure.name})", f"(figures/{copy})")
        shutil.copyfile(figure, DOCS / "figures" / copy)
    before, after = page.split(begin)[0], page.split(end)[1]
    return f"{before}{begin}\n{heading.replace('# ', '## ', 1)}\n{rest.rstrip()}\n{end}{after}"


def main() -> None:
    """Refresh the documents from the folders on the command line."""
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    for folder in map(Path, sys.argv[1:]):
        is_benchmark = (folder / "benchmark.svg").exists()
        path = DOCS / ("which_distance.md" if is_benchmark else "results.md")
        page = refresh(folder, path.read_text(encoding="utf-8"))
        path.write_text(page, encoding="utf-8")
    claims = DOCS / "paper.py"
    if claims.exists():
        runpy.run_path(str(claims), run_name="__main__")  # docs/paper.md follows the results


if __name__ == "__main__":
    main()
