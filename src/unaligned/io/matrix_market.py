"""Matrix Market: `.mtx`, `.mtx.gz`; sparse stays sparse."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import FileError
from ..rows.files import reading
from .base import Contents, Request
from .paths import disk_size
from .tables import plain_text, unpacked

_FEATURES = ("features.tsv", "features.tsv.gz", "genes.tsv", "genes.tsv.gz")
_BARCODES = ("barcodes.tsv", "barcodes.tsv.gz")


def read_mtx(request: Request) -> Contents:
    """Return the matrix as it stands in the file: rows are samples (see `transpose`).

    Genes and cells have the names that 10x writes into files beside it.
    """
    from scipy.io import mmread

    # SciPy's reader crashes on NUL characters, and on a number cut short at the very end.
    data = plain_text(unpacked(request)) + b"\n"
    _require_honest(data, request)
    values: Any = mmread(io.BytesIO(data), spmatrix=False)
    n_rows, n_columns = values.shape
    return Contents.single(
        values.tocsr() if hasattr(values, "tocsr") else values,
        rows=partial(_names_beside, request, (*_FEATURES, *_BARCODES), n_rows),
        columns=partial(_names_beside, request, (*_BARCODES, *_FEATURES), n_columns),
    )


def lists_beside(path: Path, files: tuple[str, ...] = (*_FEATURES, *_BARCODES)) -> list[Path]:
    """Return the files of 10x with the names for `matrix.mtx`, or `liver_matrix.mtx.gz`."""
    found = re.fullmatch(r"(.*)matrix\.mtx(\.gz)?", path.name, re.IGNORECASE)
    beside = [path.with_name(found[1] + file) for file in files] if found else []
    return [other for other in beside if other.is_file()]


def _names_beside(request: Request, files: tuple[str, ...], length: int) -> list[str] | None:
    """Return the names in the first of these lists that has as many as wanted.

    Of a gene its identifier is taken, which comes first: symbols of genes occur twice.
    """
    for path in lists_beside(request.path, files):
        with reading(path, "a list of names"):
            lines = plain_text(unpacked(replace(request, path=path, size=disk_size(path))))
        names = [line.partition("\t")[0] for line in lines.decode().rstrip("\n").split("\n")]
        if len(names) == length:
            return names
    return None


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
