"""A store as a table for other programs."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .. import _check
from .._format import jsonable
from ..io.archive import whole_file, write_text
from ..spectra.signature import Signature
from .records import Record

if TYPE_CHECKING:
    import pandas as pd

Pairs: TypeAlias = Sequence[tuple[Record, Signature]]


def writer(path: str | os.PathLike[str]) -> Callable[[str | os.PathLike[str], Pairs], None]:
    """Return what writes signatures in the format of the path's suffix, whole or not at all."""
    known = {".csv": _csv, ".json": _json, ".npz": _npz}
    return known[_check.suffix_of("path", path, known)]


def frame(records: Sequence[Record]) -> pd.DataFrame:
    """Return records as a table by name, with a column for each tag."""
    import pandas as pd

    plain = [field.name for field in fields(Record) if field.name not in ("name", "tags")]
    columns = {key: [getattr(record, key) for record in records] for key in plain}
    columns |= {
        f"tag:{key}": [record.tags.get(key) for record in records] for key in _labels(records)
    }
    names = pd.Index([record.name for record in records], name="name", dtype=object)
    return pd.DataFrame(columns, index=names)


def _labels(records: Iterable[Record]) -> list[str]:
    return sorted({key for record in records for key in record.tags})


def _csv(path: str | os.PathLike[str], pairs: Pairs) -> None:
    k = pairs[0][1].n_eigenvalues if pairs else 0
    labels = _labels(record for record, _ in pairs)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    fixed = ["name", "n_samples", "n_features", "error_bound", "fingerprint"]
    writer.writerow([*fixed, *(f"tag:{key}" for key in labels), *(f"v{i + 1}" for i in range(k))])
    for record, signature in pairs:
        known = [getattr(record, key) for key in fixed]
        tags = [record.tags.get(key, "") for key in labels]
        writer.writerow([*known, *tags, *signature.values.tolist()])
    write_text(path, text.getvalue())


def _json(path: str | os.PathLike[str], pairs: Pairs) -> None:
    rows: list[dict[str, Any]] = [
        {
            **asdict(record),
            "recipe": asdict(signature.recipe),
            "eigenvalues": signature.eigenvalues,
            "values": signature.values,
        }
        for record, signature in pairs
    ]
    write_text(path, json.dumps(jsonable(rows), indent=1) + "\n")


def _npz(path: str | os.PathLike[str], pairs: Pairs) -> None:
    tables = {
        "names": np.array([record.name for record, _ in pairs], dtype=str),
        "tags": np.array([json.dumps(dict(record.tags)) for record, _ in pairs], dtype=str),
        "n_samples": np.array([record.n_samples for record, _ in pairs], dtype=np.int64),
        "error_bounds": np.array([record.error_bound for record, _ in pairs]),
        "values": np.array([signature.values for _, signature in pairs]),
        "eigenvalues": np.array([signature.eigenvalues for _, signature in pairs]),
        "recipe": np.array(json.dumps(asdict(pairs[0][1].recipe)) if pairs else "", dtype=str),
    }
    with whole_file(path) as stream:
        np.savez_compressed(stream, **tables)  # type: ignore[arg-type]
