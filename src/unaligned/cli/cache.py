"""`unaligned cache`."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .._format import amount
from ..errors import InputError, counted
from .app import app, command
from .options import AsJSON, CacheFolder, cache_in, option
from .printing import print_json, print_message, stdout

if TYPE_CHECKING:
    from ..cache import Cache

cache = typer.Typer(
    name="cache",
    help="Show or clear the cache of signatures that `compare` has computed.",
    no_args_is_help=True,
)
app.add_typer(cache)


@command("unaligned cache info", "unaligned cache info --json", group=cache)
def info(folder: CacheFolder = None, json: AsJSON = False) -> None:
    """Show the folder of the cache and its size."""
    found = _cache(folder).info()
    if json:
        print_json(asdict(found))
        return
    if not Path(found.folder).exists():
        print_message(f"There is no folder {found.folder!r} yet.")
    size = f"{amount(found.n_bytes)} of at most {amount(found.max_bytes)}"
    stdout().print(f"{found.folder}: {counted(found.n_signatures, 'signature')}, {size}")


@command("unaligned cache clear", "unaligned cache clear --keep 100MB", group=cache)
def clear(
    folder: CacheFolder = None,
    keep: Annotated[str, option("Keep the last used, up to SIZE.", True, metavar="SIZE")] = "0",
) -> None:
    """Remove signatures from the cache."""
    found = _cache(folder)
    removed = counted(found.clear(keep_bytes=_n_bytes(keep)), "signature")
    print_message(f"Removed: {removed}. Left: {found.info().n_signatures}.")


def _cache(folder: Path | None) -> Cache:
    """Return the cache in a folder; raise if there is something else."""
    found = cache_in(folder)
    path, is_cache = Path(found.folder), True
    if path.is_dir():
        others = any(inside.name[0] != "." for inside in path.iterdir())
        is_cache = found.info().n_signatures > 0 or not others
    if not is_cache or path.is_file():
        raise InputError(f"--cache {str(path)!r} is not a cache of signatures. Check the path.")
    return found


def _n_bytes(text: str) -> int:
    """Return the number of bytes of a size such as 0, 100MB or 1.5 GiB."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg]?)(i?)b?", text.strip().lower())
    if found is None:
        raise InputError(f"--keep {text!r} must be a size such as 100MB or 2GiB.")
    base = 1024 if found[3] else 1000
    return int(float(found[1]) * base ** " kmg".index(found[2] or " "))
