"""`unaligned remove`."""

from typing import Annotated

import typer

from .app import command
from .options import StorePath
from .printing import print_message


@command("unaligned remove model --store refs.db")
def remove(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of signatures.")],
    store: StorePath,
) -> None:
    """Remove signatures from a store, all of these or none."""
    from .. import Store

    unique = list(dict.fromkeys(names))
    Store(store, create=False).remove(*unique)
    print_message(f"Removed: {', '.join(unique)}.")
