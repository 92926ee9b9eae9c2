"""What is known of the datasets besides their values, as the shell gives it to a report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import FileError, InputError
from .options import literal, pairs

if TYPE_CHECKING:
    import pandas as pd


def tags_of(
    names: Sequence[str], texts: Sequence[str] | None, file: Path | None
) -> pd.DataFrame | None:
    """Return a row for each dataset and a column for each tag; None where nothing was given.

    Parameters
    ----------
    names
        The datasets, in the order in which `texts` lists their values.
    texts
        Such as `day=0,1,4`: one value for each dataset.
    file
        A table whose first column names datasets.
    """
    import pandas as pd

    from ..tags import read_tags

    if not texts and file is None:
        return None
    columns = {} if file is None else _read(file)
    for key, listed in pairs("--tag", texts).items():
        values = [text.strip() for text in listed.split(",")]
        if len(values) != len(names):
            raise InputError(
                f"--tag {f'{key}={listed}'!r} has {len(values)} values, and there are "
                f"{len(names)} datasets. Give one for each, in this order: {', '.join(names)}."
            )
        columns[key] = dict(zip(names, values, strict=True))
    found = {
        key: {name: literal(text) if text else None for name, text in column.items()}
        for key, column in columns.items()
    }
    frame = pd.DataFrame(found, dtype=object)
    read_tags(frame, names)  # what it refuses is known before anything is computed
    return frame


def _read(file: Path) -> dict[str, dict[str, str]]:
    """Return tag -> name of dataset -> text."""
    import pandas as pd

    try:
        # As text: names such as 007 are no numbers.
        table = pd.read_csv(file, sep=None, engine="python", dtype=str, keep_default_na=False)
    except (OSError, ValueError, pd.errors.ParserError) as error:
        reason = getattr(error, "strerror", None) or str(error).rstrip(".")
        raise FileError(f"--tags {str(file)!r} cannot be read as a table: {reason}.") from error
    names = [str(name) for name in table.iloc[:, 0]]
    twice = [name for name in names if names.count(name) > 1]
    if table.shape[1] < 2 or twice:
        what = f"names {twice[0]!r} twice" if twice else "has no column beside the names"
        raise FileError(
            f"--tags {str(file)!r} {what}. It needs a row for each dataset: its name in the first "
            "column, a tag in each other."
        )
    return {key: dict(zip(names, table[key], strict=True)) for key in table.columns[1:]}
