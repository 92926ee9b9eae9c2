"""Results of repetitions, kept in a file so that a stopped run goes on where it was."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


class Kept:
    """Results by name, in a JSON file where one is given."""

    def __init__(
        self, path: Path | None, share: float, seed: int, figure: Path | None = None
    ) -> None:
        self.path, self.share, self.seed, self.figure = path, share, seed, figure
        self.found = json.loads(path.read_text()) if path and path.exists() else {}

    def runs(self, number: int) -> int:
        """Return the number of repetitions to run."""
        return max(10, round(self.share * number))

    def repeat(self, name: str, number: int, one: Callable[[np.random.Generator], Any]) -> Any:
        """Return the results of `number` repetitions; those that are kept are not run again."""
        rows = self.found.setdefault(f"{name} {self.seed}", [])
        salt = sum(map(ord, name))
        started = time.monotonic()
        while len(rows) < number:
            rows.append(one(np.random.default_rng([self.seed, salt, len(rows)])))
            if time.monotonic() - started > 10.0 or len(rows) == number:
                self.write()
                started = time.monotonic()
        return np.array(rows[:number])

    def write(self) -> None:
        """Write the file, whole or not at all."""
        if self.path:
            part = self.path.with_suffix(".part")
            part.write_text(json.dumps(self.found))
            part.replace(self.path)
