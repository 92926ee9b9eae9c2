"""Matrix Market: `.mtx`, `.mtx.gz`; sparse stays sparse."""

import io
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import FileError
from ..rows.files import reading
from .base import Contents, Request, disk_size
from .tables import plain_text, unpacked

_FEATURES = ("features.tsv", "features.tsv.gz", "genes.tsv", "genes.tsv.gz")
_BARCODES = ("barcodes.tsv", "barcodes.tsv.gz")


def read_mtx(request: Request) -> Contents:
    """Return the matrix as stored, rows being samples, with the names that 10x writes beside."""
    from scipy.io import mmread

    # SciPy's reader crashes on NUL characters, and on a number truncated at the very end.
    data = plain_text(unpacked(request)) + b"\n"
    _require_plausible_sizes(data, request)
    values: Any = mmread(io.BytesIO(data), spmatrix=False)
    n_rows, n_columns = values.shape
    return Contents.single(
        values.tocsr() if hasattr(values, "tocsr") else values,
        rows=partial(_names_beside, request, (*_FEATURES, *_BARCODES), n_rows),
        columns=partial(_names_beside, request, (*_BARCODES, *_FEATURES), n_columns),
    )


def lists_beside(path: Path, files: tuple[str, ...] = (*_FEATURES, *_BARCODES)) -> list[Path]:
    """Return 10x's lists of names beside `matrix.mtx`, or `liver_matrix.mtx.gz`."""
    found = re.fullmatch(r"(.*)matrix\.mtx(\.gz)?", path.name, re.IGNORECASE)
    beside = [path.with_name(found[1] + file) for file in files] if found else []
    return [other for other in beside if other.is_file()]


def _names_beside(request: Request, files: tuple[str, ...], length: int) -> list[str] | None:
    """Return the names in the first list of this length."""
    for path in lists_beside(request.path, files):
        with reading(path, "a list of names"):
            lines = plain_text(unpacked(replace(request, path=path, size=disk_size(path))))
        # The first column identifies a gene; its symbol, in the second, can occur twice.
        names = [line.partition("\t")[0] for line in lines.decode().rstrip("\n").split("\n")]
        if len(names) == length:
            return names
    return None


def _require_plausible_sizes(data: bytes, request: Request) -> None:
    """Check the sizes in the header against the file before memory is allocated."""
    from scipy.io import mminfo

    if data[:100].lower().split()[1:2] != [b"matrix"]:  # SciPy reads vectors too
        raise FileError("The file does not start with '%%MatrixMarket matrix …'.")
    n_rows, n_columns, n_entries, layout, field, symmetry = mminfo(io.BytesIO(data))
    if field == "complex":
        raise FileError("The file contains complex values, not real numbers.")
    sparse = layout == "coordinate"
    n_entries = n_entries if sparse else n_rows * n_columns
    # The shortest entry is "1 1\n" where sparse, "0\n" where not.
    n_least = n_entries * (4 if sparse else 2) // (1 if sparse or symmetry == "general" else 2)
    if n_least > len(data) + 1:
        raise FileError(
            f"The header announces {n_entries} entries; {len(data)} bytes are too few for them."
        )
    request.require_memory(8 * (n_rows + 1) + 32 * n_entries if sparse else 8 * n_entries)
    request.require_plausible(8 * n_columns)
