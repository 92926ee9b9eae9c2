"""One file for arrays with a JSON header: a plain `.npz`, written atomically, never a pickle."""

from __future__ import annotations

import json
import os
import zipfile
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _check
from ..errors import FileError
from .atomic import whole_file

_SUFFIXES = (".npz", "")
_VERSION = 1
_MOST_BYTES = 2**33  # a signature has kilobytes; more than this is not ours


def write_archive(
    path: str | os.PathLike[str],
    format_name: str,
    header: dict[str, Any],
    arrays: dict[str, npt.NDArray[Any]],
    *,
    remedy: str = "",
) -> None:
    """Write arrays and a JSON header to `path`; the file appears whole or not at all.

    A name that promises another format is refused, and `remedy` says how to get that one.
    """
    _check.suffix_of("path", path, _SUFFIXES, remedy)
    text = json.dumps({"format": format_name, "version": _VERSION, **header})
    members = {"header": np.frombuffer(text.encode(), dtype=np.uint8), **arrays}
    with whole_file(path) as stream:
        np.savez_compressed(stream, **members)  # type: ignore[arg-type]


def read_archive(
    path: str | os.PathLike[str], format_name: str
) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return the header and the arrays of a file that `write_archive` made."""
    source = _check.file_path("path", path)
    try:
        with zipfile.ZipFile(source) as archive:
            if sum(member.file_size for member in archive.infolist()) > _MOST_BYTES:
                raise FileError(f"{str(source)!r} unpacks to more than 8 GiB; it is not read.")
        with np.load(source, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        header = json.loads(arrays.pop("header").tobytes().decode())
        found, version = header.pop("format"), header.pop("version")
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"Cannot read {str(source)!r}: {error.strerror or error}.") from error
    except Exception as error:  # whatever zipfile, zlib, json and NumPy make of foreign bytes
        raise FileError(
            f"{str(source)!r} is not a file that unaligned wrote, or it is damaged ({error})."
        ) from error
    if found != format_name:
        raise FileError(f"{str(source)!r} holds {found!r}, not {format_name!r}.")
    if version != _VERSION:
        raise FileError(
            f"{str(source)!r} has version {version}, this unaligned reads version {_VERSION}. "
            "Update unaligned."
        )
    return header, arrays
