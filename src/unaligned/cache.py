"""Signatures computed before, found by the content of the data."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _check
from .errors import FileError, UnalignedWarning, warn
from .io.archive import made_folder

if TYPE_CHECKING:  # `unaligned cache` starts fast
    from .data.dataset import Dataset
    from .metrics.base import Distance
    from .spectra.signature import Signature

# To be raised whenever the same data and settings give other numbers within one version.
_NUMERICS = 2
# No other file in the folder is touched.
_ENTRY = re.compile(r"[0-9a-f]{32}\.npz")
_TEMPORARY = re.compile(r"\.[0-9a-f]{32}\.npz\.[0-9a-f]{16}")


def default_folder() -> Path:
    """Return the cache folder of this user on this platform."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "unaligned"


@dataclass(frozen=True)
class CacheInfo:
    """The size of a cache.

    Attributes
    ----------
    folder
        Its path.
    n_signatures, n_bytes
        What is in it.
    max_bytes
        Its limit.
    """

    folder: str
    n_signatures: int
    n_bytes: int
    max_bytes: int


@dataclass(frozen=True)
class Cache:
    """A folder of signatures, one file each, named by a hash of the data and all settings.

    Several processes may use it at once; an unreadable entry counts as missing. A signature takes
    about 10 kB. Each comparison first removes the least recently used entries beyond `max_bytes`.

    Parameters
    ----------
    folder
        The folder; by default that of the command line.
    max_bytes
        The size limit.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import unaligned as ua
    >>> clouds = {"a": np.eye(30), "b": np.arange(90.0).reshape(30, 3)}
    >>> folder = tempfile.mkdtemp()
    >>> first = ua.compare(clouds, n_eigenvalues=9, cache=folder)
    >>> again = ua.compare(clouds, n_eigenvalues=9, cache=folder)
    >>> first["a", "b"] == again["a", "b"]
    True
    >>> cache = ua.Cache(folder)
    >>> cache.info().n_signatures, cache.clear(), cache.info().n_signatures
    (2, 2, 0)
    """

    folder: str | os.PathLike[str] = field(default_factory=default_folder)
    max_bytes: int = 2**30

    def __post_init__(self) -> None:
        _check.file_path("folder", self.folder)
        _check.positive_int("max_bytes", self.max_bytes, minimum=0)

    @staticmethod
    def at(place: str | os.PathLike[str] | Cache) -> Cache:
        """Return a cache, or that of a folder, created and cleared down to its limit.

        Parameters
        ----------
        place
            A folder or a cache.

        Returns
        -------
        Cache
            Its folder exists.
        """
        cache = place if isinstance(place, Cache) else Cache(_check.file_path("cache", place))
        cache.make()
        cache.clear(keep_bytes=cache.max_bytes)
        return cache

    def make(self) -> None:
        """Create the folder if it does not exist."""
        made_folder("cache", self.folder, "Give another one, or go without (cache=None).")

    def info(self) -> CacheInfo:
        """Return the number of signatures and their size.

        Returns
        -------
        CacheInfo
            Of this moment; other processes may add and remove signatures.
        """
        found = self._entries(_ENTRY)
        n_bytes = sum(size for _, size, _ in found)
        return CacheInfo(os.fspath(self.folder), len(found), n_bytes, self.max_bytes)

    def clear(self, *, keep_bytes: int = 0) -> int:
        """Remove all but the `keep_bytes` used last; return the number of removed signatures.

        Parameters
        ----------
        keep_bytes
            The most bytes of signatures to keep.

        Returns
        -------
        int
            The number of signatures removed.
        """
        left = _check.positive_int("keep_bytes", keep_bytes, minimum=0)
        n_removed = 0
        for _, size, path in sorted(self._entries(_ENTRY), reverse=True):
            left -= size
            if left < 0:
                n_removed += _removed(path)
        for used, _, path in self._entries(_TEMPORARY):
            if used < time.time() - 3600.0:  # left by a process that was killed
                _removed(path)
        return n_removed

    def _entries(self, pattern: re.Pattern[str]) -> list[tuple[float, int, Path]]:
        """Return time, size and path of matching files; those removed meanwhile are skipped."""
        found = []
        names = os.listdir(self.folder) if os.path.isdir(self.folder) else []
        for path in (Path(self.folder, name) for name in names if pattern.fullmatch(name)):
            with suppress(FileNotFoundError):
                status = path.stat()
                found.append((status.st_mtime, status.st_size, path))
        return found

    def find(self, method: Distance, dataset: Dataset, seed: int) -> Signature | None:
        """Return the signature of a dataset, or None if it is not there.

        Parameters
        ----------
        method
            The distance with its settings; only those of signatures are cached.
        dataset
            Found by its content, kind and preprocessing.
        seed
            The root seed.

        Returns
        -------
        Signature or None
            Under the name of the dataset.
        """
        from .spectra.signature import Signature

        path = self._path(method, dataset, seed)
        if path is None or not path.exists():
            return None
        try:
            found = Signature.load(path)
        except FileError:
            return None
        with suppress(OSError):  # the cache may be read-only
            os.utime(path)  # marks it as used; access times are often not recorded
        return replace(found, name=dataset.name, stats={**found.stats, "from_cache": True})

    def keep(self, method: Distance, dataset: Dataset, seed: int, found: Any) -> None:
        """Write the signature of a dataset; warn if that fails.

        Parameters
        ----------
        method, dataset, seed
            As for `find`.
        found
            The signature.
        """
        path = self._path(method, dataset, seed)
        if path is None:
            return
        try:
            found.save(path)
        except FileError as error:
            reason = getattr(error.__cause__, "strerror", None) or str(error).rstrip(".")
            # Names the folder, not the file, so that the warning is shown once.
            warn(f"Not kept in the cache {os.fspath(self.folder)!r}: {reason}.", UnalignedWarning)

    def _path(self, method: Distance, dataset: Dataset, seed: int) -> Path | None:
        """Return the path of a signature; None if it cannot be cached."""
        from . import __version__
        from .metrics.base import SpectralDistance

        if not (isinstance(method, SpectralDistance) and method.gives_signatures):
            return None
        options = _check.to_options(method.settings)
        del options["memory_limit"]  # does not change the values
        if options["kernel"] == "gaussian":  # absent in entries written before 0.2
            del options["kernel"]
        if not all(isinstance(v, (str, int, float, type(None))) for v in options.values()):
            return None  # a function or a solver object
        steps = list(dataset.preprocess)
        content = [__version__, _NUMERICS, dataset.kind, dataset.fingerprint, steps, seed]
        text = json.dumps([*content, options], sort_keys=True)
        name = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        return Path(self.folder, f"{name}.npz")


def _removed(path: Path) -> bool:
    """Remove a file; return False if another process did, or with a warning if it fails."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        reason = f"Not removed from the cache {str(path.parent)!r}: {error.strerror}."
        warn(reason, UnalignedWarning)
        return False
    return True


def is_cached(signature: Signature) -> bool:
    """Whether a signature comes from a cache."""
    return bool(signature.stats.get("from_cache", False))
