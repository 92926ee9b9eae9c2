"""Count what makes the package easy or hard to find one's way in.

    python benchmarks/count_code.py [SRC ...]

Each SRC is a folder that contains `unaligned`; the default is this checkout's `src`. Several make
a table, one column each (e.g. a worktree of an earlier commit and this one).
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

NUMBERS = (ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Constant, ast.expr_context)

IMPORTED = """
import json, sys
import unaligned as ua
ua.compare
print(json.dumps(sum(name.split(".")[0] == "unaligned" for name in sys.modules)))
"""

EXECUTED = """
import json, sys, threading
import numpy as np
import unaligned as ua
rng = np.random.default_rng(0)
a, b = rng.normal(size=(100, 3)), rng.normal(size=(80, 4))
ua.compare([a, b])
seen, switches, last = set(), 0, None
def trace(frame, event, argument):
    global switches, last
    name = frame.f_code.co_filename
    if event == "call" and "/unaligned/" in name and frame.f_code.co_name != "<module>":
        switches += last is not None and name != last
        last = name
        seen.add(name)
threading.setprofile(trace)
sys.setprofile(trace)
ua.compare([a, b])
sys.setprofile(None)
print(json.dumps([len(seen), switches]))
"""


def is_number(node: ast.expr) -> bool:
    """Whether an expression is made of numbers only, such as `4 * 2**20`."""
    if isinstance(node, ast.Tuple):
        return bool(node.elts) and all(is_number(item) for item in node.elts)
    return all(
        isinstance(part, NUMBERS)
        and not (isinstance(part, ast.Constant) and not isinstance(part.value, int | float))
        and not (isinstance(part, ast.Constant) and isinstance(part.value, bool))
        for part in ast.walk(node)
    )


def constants_of(tree: ast.Module) -> int:
    """Return the number of names that a module binds to numbers at its top level."""
    count = 0
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            value = node.value
            if is_number(value):
                count += len(value.elts) if isinstance(value, ast.Tuple) else 1
    return count


def private_functions(trees: list[ast.Module]) -> tuple[int, int]:
    """Return how many private functions there are, and how many are named in one place only."""
    defined = 0
    once = 0
    for tree in trees:
        names = [
            node.name
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef)
            and node.name.startswith("_")
            and not node.name.startswith("__")
        ]
        uses = Counter(
            node.id if isinstance(node, ast.Name) else node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Name | ast.Attribute)
        )
        defined += len(names)
        once += sum(uses[name] == 1 for name in names)
    return defined, once


def ask(script: str, source: Path) -> int | list[int]:
    """Return what a script prints as JSON with the package of `source`."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(source)},
    )
    answer: int | list[int] = json.loads(done.stdout)
    return answer


def count(source: Path) -> dict[str, str]:
    """Return the figures of one tree."""
    files = sorted((source / "unaligned").rglob("*.py"))
    texts = [path.read_text(encoding="utf-8") for path in files]
    trees = [ast.parse(text) for text in texts]
    defined, once = private_functions(trees)
    executed, switches = ask(EXECUTED, source)
    return {
        "files": f"{len(files)}",
        "lines": f"{sum(len(text.splitlines()) for text in texts)}",
        "modules imported by ua.compare": f"{ask(IMPORTED, source)}",
        "modules executed by a default compare": f"{executed} ({switches} switches)",
        "module-level numeric constants": f"{sum(map(constants_of, trees))}",
        "private functions named in one place only": f"{once} of {defined}",
    }


def main() -> None:
    """Print one column per source folder."""
    here = Path(__file__).resolve().parents[1] / "src"
    columns = [count(Path(name).resolve()) for name in sys.argv[1:]] or [count(here)]
    width = max(len(name) for name in columns[0])
    for name in columns[0]:
        print(f"{name:<{width}}  " + "  ".join(f"{column[name]:>20}" for column in columns))


if __name__ == "__main__":
    main()
