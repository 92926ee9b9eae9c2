"""What is known of the datasets besides their values, as the shell gives it to a report."""

from __future__ import annotations

import csv
import io
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
    try:
        text = file.read_text(encoding="utf-8-sig")
        separator = max(",;\t", key=text.partition("\n")[0].count)
        rows = [row for row in csv.reader(io.StringIO(text), delimiter=separator) if any(row)]
    except (OSError, UnicodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error).rstrip(".")
        raise FileError(f"--tags {str(file)!r} cannot be read as a table: {reason}.") from error
    header, *body = rows or [[]]
    names = [row[0] for row in body]
    twice = [name for name in names if names.count(name) > 1]
    wrong = f"names {twice[0]!r} twice" if twice else ""
    if len(header) < 2:
        wrong = "has no column beside the names"
    elif any(len(row) != len(header) for row in body):
        wrong = "has rows of unequal length"
    if wrong:
        raise FileError(
            f"--tags {str(file)!r} {wrong}. It needs a first line with the names of the tags, and "
            "a row for each dataset: its name, then a value of each tag."
        )
    return {key: {row[0]: row[i] for row in body} for i, key in enumerate(header) if i}
