"""Write what the Python examples of a page print below them, as a block of text.

A block that is there is replaced; with `--add`, missing ones are added. `tests/test_documents.py`
compares the blocks with what the examples print.
Run: python docs/outputs.py [--add] docs/cells.md ...    (with all extras installed)
"""

import contextlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

EXAMPLE = re.compile(r"```python\n(?P<code>.*?)```(?:\n\n```text\n(?P<shown>.*?)```)?", re.DOTALL)


class Example(NamedTuple):
    """One block of code, what the page shows below it (None: nothing), and what it prints."""

    code: str
    shown: str | None
    printed: str


def run(page: Path) -> Iterator[Example]:
    """Run the examples of a page one after the other, in the current folder."""
    names: dict[str, object] = {}
    for found in EXAMPLE.finditer(page.read_text(encoding="utf-8")):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(found["code"], str(page), "exec"), names)
        printed = "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())
        yield Example(found["code"], found["shown"], printed)


def written(page: Path, add: bool) -> str:
    """Return the text of a page with what its examples print."""
    examples = run(page)

    def block(_: re.Match[str]) -> str:
        code, shown, printed = next(examples)
        output = f"\n\n```text\n{printed}```" if printed and (add or shown is not None) else ""
        return f"```python\n{code}```{output}"

    return EXAMPLE.sub(block, page.read_text(encoding="utf-8"))


def main() -> None:
    """Refresh the pages on the command line."""
    import matplotlib as mpl

    mpl.use("agg")
    add = "--add" in sys.argv
    for page in [Path(name).resolve() for name in sys.argv[1:] if name != "--add"]:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            text = written(page, add)
        page.write_text(text, encoding="utf-8")
        print(os.path.relpath(page))


if __name__ == "__main__":
    main()
