"""Modules that cells need, imported once by the process from which all cells are forked.

Without it the time of a cell would be that of its imports.
"""

from contextlib import suppress
from importlib import import_module

from ...metrics.registry import DISTANCES
from .jobs import load_jobs

_USED = (
    "numba",
    "pandas",
    "scipy.stats",
    "sklearn.cluster",
    "sklearn.decomposition",
    "sklearn.metrics",
    "sklearn.mixture",
    "sklearn.neighbors",
    "ot",
    "gudhi",
    "ripser",
    "persim",
    "threadpoolctl",
    "unaligned.experiments.benchmark.runner",
    "unaligned.inference.collection",
    "unaligned.metrics._witness_numba",
    "unaligned.operators._loops_numba",
)
for _name in _USED:
    with suppress(ImportError):  # optional packages
        import_module(_name)
for _name in DISTANCES:
    with suppress(ImportError):
        DISTANCES[_name]
load_jobs()
