"""Distances between datasets that share no points, no features and no size.

>>> import numpy as np
>>> import unaligned as ua
>>> rng = np.random.default_rng(0)
>>> a, b = rng.normal(size=(400, 3)), rng.normal(size=(300, 20))
>>> ua.distance(a, b) > ua.distance(a, rng.normal(size=(400, 3)))
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from . import errors as errors
    from . import sklearn as sklearn
    from . import torch as torch
    from .cache import Cache as Cache
    from .comparison import compare as compare
    from .comparison import distance as distance
    from .comparison import signature as signature
    from .cost import estimate as estimate
    from .data.dataset import Dataset as Dataset
    from .diagnosis import diagnose as diagnose
    from .explanation import explain as explain
    from .inference.drift import DriftMonitor as DriftMonitor
    from .inference.permutation import permutation_test as permutation_test
    from .integrations import anndata as sc  # noqa: F401
    from .io.load import load as load
    from .io.load import load_all as load_all
    from .metrics.registry import available as available
    from .result import Comparison as Comparison
    from .spectra.bounds import log_euclidean_bounds as log_euclidean_bounds
    from .spectra.bounds import log_hilbert_schmidt as log_hilbert_schmidt
    from .spectra.signature import Signature as Signature
    from .store import Store as Store

# Where each public name lives. They are imported on first use, so that `import unaligned` is
# quick and a script pays only for what it calls.
_HOME = {
    "Cache": "cache",
    "Comparison": "result",
    "Dataset": "data.dataset",
    "DriftMonitor": "inference.drift",
    "Signature": "spectra.signature",
    "Store": "store",
    "available": "metrics.registry",
    "compare": "comparison",
    "diagnose": "diagnosis",
    "distance": "comparison",
    "estimate": "cost",
    "explain": "explanation",
    "load": "io.load",
    "load_all": "io.load",
    "log_euclidean_bounds": "spectra.bounds",
    "log_hilbert_schmidt": "spectra.bounds",
    "permutation_test": "inference.permutation",
    "signature": "comparison",
}

# Modules that are public under a name.
_MODULES = {"errors": "errors"}
# Not in `__all__`: `from unaligned import *` must not replace the user's `torch`.
_NAMESPACES = {"sc": "integrations.anndata", "sklearn": "sklearn", "torch": "torch"}

__all__ = ["__version__", *sorted([*_MODULES, *_HOME])]


if not TYPE_CHECKING:  # where it would hide that a name does not exist

    def __getattr__(name: str) -> Any:
        if name in _MODULES or name in _NAMESPACES:
            from .errors import MissingExtraError

            try:
                return import_module(f".{(_MODULES | _NAMESPACES)[name]}", __name__)
            except MissingExtraError as error:  # `hasattr` and `help` know no other error
                raise AttributeError(str(error)) from error
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f".{_HOME[name]}", __name__), name)
        return found


def __dir__() -> list[str]:
    from contextlib import suppress
    from importlib.util import find_spec

    names = {*__all__, *_NAMESPACES}
    with suppress(ValueError):  # a stub without a spec has been imported as torch
        if find_spec("torch") is None:
            names.remove("torch")
    return sorted(names)
