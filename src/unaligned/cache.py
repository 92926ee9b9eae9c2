"""Signatures that were computed before, found again by the content of the data."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from . import _settings
from .data.atomic import made_folder
from .data.dataset import Dataset
from .errors import FileError, UnalignedWarning, warn
from .metrics.base import Distance, SpectralDistance
from .spectra.signature import Signature

# To be raised whenever the same data and settings give other numbers within one version.
_NUMERICS = 1


@dataclass(frozen=True)
class Cache:
    """A folder of signatures, one file each, named by all that decides their values.

    Any number of processes may use it at once; an entry that cannot be read counts as missing.
    It only grows, by some 10 kB a signature: delete the folder when it is no longer wanted.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import unaligned as ua
    >>> clouds = {"a": np.eye(30), "b": np.arange(90.0).reshape(30, 3)}
    >>> folder = tempfile.mkdtemp()
    >>> first = ua.compare(clouds, n_eigenvalues=9, cache=folder)
    >>> again = ua.compare(clouds, n_eigenvalues=9, cache=folder)
    >>> first["a", "b"] == again["a", "b"], is_cached(again.signatures["a"])
    (True, True)
    """

    folder: Path

    @staticmethod
    def at(folder: str | os.PathLike[str]) -> Cache:
        """Return the cache in this folder, made if needed."""
        remedy = "Give another one (--cache), or go without (--no-cache)."
        return Cache(made_folder("cache", folder, remedy))

    def find(self, method: Distance, dataset: Dataset, seed: int) -> Signature | None:
        """Return the signature of a dataset, or None."""
        path = self._path(method, dataset, seed)
        if path is None or not path.exists():
            return None
        try:
            found = Signature.load(path)
        except FileError:
            return None  # it is computed and written again
        return replace(found, name=dataset.name, stats={**found.stats, "from_cache": True})

    def keep(self, method: Distance, dataset: Dataset, seed: int, found: Any) -> None:
        """Write the signature of a dataset, whole or not at all."""
        path = self._path(method, dataset, seed)
        if path is None or not isinstance(found, Signature):
            return
        try:
            found.save(path)
        except FileError as error:  # the result is more than a cache
            reason = getattr(error.__cause__, "strerror", None) or str(error).rstrip(".")
            # The folder, not the file: the same words for each signature are shown once.
            warn(f"Not kept in the cache {str(self.folder)!r}: {reason}.", UnalignedWarning)

    def _path(self, method: Distance, dataset: Dataset, seed: int) -> Path | None:
        """Return where a signature is; None where the settings have no content to go by."""
        from . import __version__

        if not isinstance(method, SpectralDistance):
            return None
        options = _settings.to_options(method.settings)
        del options["memory_limit"]  # decides how, not what
        if not all(isinstance(v, (str, int, float, type(None))) for v in options.values()):
            return None  # a function or a solver of the user's own
        steps = list(dataset.preprocess)
        decisive = [__version__, _NUMERICS, dataset.kind, dataset.fingerprint, steps, seed]
        text = json.dumps([*decisive, options], sort_keys=True)
        name = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        return self.folder / f"{name}.npz"


def is_cached(signature: Signature) -> bool:
    """Whether a signature was found in a cache rather than computed."""
    return bool(signature.stats.get("from_cache", False))


def default_folder() -> Path:
    """Return the folder for caches of this user on this platform."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "unaligned"
