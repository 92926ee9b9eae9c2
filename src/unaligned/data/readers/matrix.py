"""Matrix Market: `.mtx`, `.mtx.gz`; sparse stays sparse."""

from __future__ import annotations

import io
from typing import Any

from ...errors import FileError
from .base import Contents, Request
from .text import unpacked


def read_mtx(request: Request) -> Contents:
    """Return the matrix as it stands in the file: rows are samples (see `transpose`)."""
    from scipy.io import mmread

    data = unpacked(request)
    _require_honest(data, request)
    values: Any = mmread(io.BytesIO(data), spmatrix=False)
    return Contents.single(values.tocsr() if hasattr(values, "tocsr") else values)


def _require_honest(data: bytes, request: Request) -> None:
    """Check sizes in the header against the file before anything is allocated for them."""
    lines = (line for line in io.BytesIO(data))
    banner = next(lines, b"").lower().split()
    if len(banner) < 5 or banner[0] != b"%%matrixmarket" or banner[1] != b"matrix":
        raise FileError("It does not start with '%%MatrixMarket matrix …'.")
    sparse = banner[2] == b"coordinate"
    if banner[3] not in (b"real", b"integer", b"double", b"unsigned-integer", b"pattern"):
        raise FileError(
            f"It holds {banner[3].decode('ascii', 'replace')} values; real numbers are needed."
        )
    sizes = next((line for line in lines if line.strip() and not line.startswith(b"%")), b"")
    numbers = [int(part) for part in sizes.split()]
    if len(numbers) != (3 if sparse else 2) or min(numbers) < 0:
        raise FileError(f"The line of sizes is wrong: {sizes.decode('ascii', 'replace')[:60]!r}.")
    symmetric = banner[4] != b"general"
    entries = numbers[2] if sparse else numbers[0] * numbers[1] // (2 if symmetric else 1)
    # The shortest entry is "1 1\n" where sparse, "0\n" where not.
    if entries * (4 if sparse else 2) > len(data) + 1:
        raise FileError(
            f"It says it holds {entries} entries, and is too short for them: {len(data)} bytes."
        )
    needed = 8 * (numbers[0] + 1) + 32 * entries if sparse else 8 * numbers[0] * numbers[1]
    request.afford(needed)
    request.believe(8 * numbers[1])
