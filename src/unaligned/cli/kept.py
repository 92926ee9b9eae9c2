"""Commands about the cache: what is kept, and removing it."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Annotated

import typer

from .._format import amount
from ..errors import InputError, counted
from .base import app, examples
from .options import AsJSON, CacheFolder, cache_in
from .output import out, print_json, say

_UNITS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "ki": 2**10, "mi": 2**20, "gi": 2**30}

cache = typer.Typer(
    name="cache",
    help="Show or empty the cache, where `compare` keeps finished signatures.",
    no_args_is_help=True,
)
app.add_typer(cache)


@cache.command(epilog=examples("unaligned cache info", "unaligned cache info --json"))
def info(folder: CacheFolder = None, json: AsJSON = False) -> None:
    """Show where the cache is, and how much is in it."""
    found = cache_in(folder).info()
    if json:
        print_json(asdict(found))
        return
    sizes = f"{amount(found.n_bytes)} of at most {amount(found.max_bytes)}"
    out().print(f"{found.folder}: {counted(found.n_signatures, 'signature')}, {sizes}")


@cache.command(epilog=examples("unaligned cache clear", "unaligned cache clear --keep 100MB"))
def clear(
    folder: CacheFolder = None,
    keep: Annotated[
        str, typer.Option(metavar="SIZE", help="Keep those used last, up to so much: 100MB.")
    ] = "0",
) -> None:
    """Remove signatures from the cache; what is needed again is computed again."""
    kept = cache_in(folder)
    n_removed = kept.clear(keep_bytes=_size(keep))
    say(f"Removed: {counted(n_removed, 'signature')}. Left: {kept.info().n_signatures}.")


def _size(text: str) -> int:
    """Return a number of bytes.

    >>> _size("0"), _size("100MB"), _size("1.5 GiB")
    (0, 100000000, 1610612736)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg]i?|)b?", text.strip().lower())
    if found is None:
        raise InputError(f"--keep {text!r} must be a size such as 100MB or 2GiB.")
    return int(float(found[1]) * _UNITS[found[2]])
