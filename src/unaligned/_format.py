"""How results become text: bytes and durations for people, values for JSON."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

# Control characters, such as the start of an escape sequence, those that reverse the direction of
# text, and bytes that are not UTF-8.
CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_LINES = "\t\n\u2028\u2029"


def printable(text: str) -> str:
    """Return text with � for what must not reach a terminal, a figure or a file of ours."""
    return re.sub(f"[{CONTROLS}]", "�", text)


def printable_line(text: str) -> str:
    """Return text in one line, such as a name, with � also for tabs and line breaks."""
    return re.sub(f"[{CONTROLS}{_LINES}]", "�", text)


def amount(n_bytes: float) -> str:
    """Return a number of bytes for people, such as '1023 MiB' or '2.8 GiB'."""
    size, units = float(n_bytes), ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"]
    while size >= 1024 and len(units) > 1:
        size, units = size / 1024, units[1:]
    digits = 1 if n_bytes >= 2**30 else 0
    return f"{size:.{digits}f} {units[0]}"


def duration(seconds: float) -> str:
    """Return a time for people to two digits, such as '0.012 s', '75 s' or '2.0 h'."""
    if seconds < 90:
        return f"{max(seconds, 1e-3):.2g} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def text_table(header: Sequence[str], rows: Sequence[Sequence[Any]], *, digits: str) -> str:
    """Return lines of aligned columns, the first to the left; floats have the format `digits`.

    >>> print(text_table(["", "a", "b"], [["a", 0.0, 12.5]], digits=".1f"))
         a     b
    a  0.0  12.5
    """
    cells = [[f"{c:{digits}}" if isinstance(c, float) else str(c) for c in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
        for row in (header, *cells)
    )


def jsonable(value: Any, *, allow_nan: bool = False) -> Any:
    """Return a value as dicts, lists, text, numbers and None, which JSON can hold.

    Arrays and tuples become lists, keys become text, and other objects their `str`. JSON has no
    NaN and no infinity: they become None. `allow_nan=True` keeps them, for files that only
    Python reads.
    """
    if isinstance(value, Mapping):
        return {str(key): jsonable(item, allow_nan=allow_nan) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item, allow_nan=allow_nan) for item in value]
    if hasattr(value, "tolist"):  # an array or a NumPy scalar
        return jsonable(value.tolist(), allow_nan=allow_nan)
    if isinstance(value, float) and not math.isfinite(value):
        return value if allow_nan else None
    return value if isinstance(value, (str, int, float, type(None))) else str(value)
