"""`unaligned export`."""

from pathlib import Path
from typing import Annotated

from ..errors import counted
from .app import command
from .options import FORMATS, StorePath, Tags, option, pairs, require_writable
from .printing import print_message


@command(
    "unaligned export --store refs.db --out signatures.csv",
    "unaligned export --store refs.db --out scans.json --tag source=scans",
)
def export(
    store: StorePath,
    out: Annotated[Path, option("Output file: .csv, .json or .npz.")],
    tag: Tags = None,
) -> None:
    """Write the signatures in a store to a file."""
    from .. import Store

    require_writable("out", out, FORMATS)
    count = Store(store, create=False).export(out, tags=pairs("--tag", tag))
    print_message(f"Written: {out}, {counted(count, 'signature')}.")
