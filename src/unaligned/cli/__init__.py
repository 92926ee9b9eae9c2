"""The command line: parse arguments, call the library, print results.

Results go to stdout, messages and progress to stderr. Commands import what they need inside
their functions, so that `unaligned --help` stays fast.
"""

from importlib import import_module

from .app import app, main

__all__ = ["app", "main"]

# In the order in which `unaligned --help` lists them.
for _command in (
    "info",
    "compare",
    "test",
    "explain",
    "drift",
    "describe",
    "nearest",
    "list",
    "remove",
    "export",
):
    import_module(f".{_command}", __name__)
for _command in ("cache", "distances", "reproduce", "benchmark", "demo"):
    import_module(f".{_command}", __name__)
