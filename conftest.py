"""Doctests of modules that rest on an optional package run only where it is installed."""

from importlib.util import find_spec

_TOPOLOGY = ["bottleneck", "geometry_score", "mtd"]
_DOCTESTS = {
    "gudhi": [f"metrics/{name}" for name in _TOPOLOGY],
    "ripser": [f"metrics/{name}" for name in _TOPOLOGY],
    "ot": ["metrics/wasserstein", "metrics/gromov_wasserstein"],
    "robust_laplacian": ["spectra/laplacian"],
}

collect_ignore = [
    f"src/unaligned/{module}.py"
    for package, modules in _DOCTESTS.items()
    if find_spec(package) is None
    for module in modules
]
