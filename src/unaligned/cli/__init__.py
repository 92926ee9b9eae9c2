"""The command line: parse, call, print.

Results go to stdout, messages and progress to stderr. Exit codes: 0 done (also where a claim of
the paper did not hold: that is a result), 1 a run that failed, 2 bad input, 130 stopped by
Ctrl-C.

Everything heavy is imported inside the commands, so that `unaligned --help` is quick.
"""

from __future__ import annotations

from . import files, filling, kept, paper, references
from .base import app, main

__all__ = ["app", "files", "filling", "kept", "main", "paper", "references"]
