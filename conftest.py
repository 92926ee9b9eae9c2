"""Doctests run where their optional packages are installed; tests compute on one BLAS thread."""

import os
from importlib.util import find_spec

# For libraries that are loaded later and for subprocesses: on a busy machine spinning threads
# take minutes, and POT imports torch, which none of the tests of transport uses.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("POT_BACKEND_DISABLE_PYTORCH", "1")

_TOPOLOGY = ["bottleneck", "geometry_score", "mtd"]
_TORCH = ["__init__", "loss", "median", "recording", "spectrum", "storage"]
_DOCTESTS = {
    "anndata": ["integrations/anndata"],
    "gudhi": [f"metrics/{name}" for name in _TOPOLOGY],
    "ripser": [f"metrics/{name}" for name in _TOPOLOGY],
    "ot": ["metrics/wasserstein", "metrics/gromov_wasserstein"],
    "robust_laplacian": ["spectra/laplacian"],
    "torch": [
        "torch",
        "experiments/embedders",
        "experiments/training",
        *(f"integrations/torch/{name}" for name in _TORCH),
    ],
}

# A client of the package for type checkers, which is not run.
collect_ignore_glob = ["tests/typed_client/*.py"]
collect_ignore = [
    f"src/unaligned/{module}.py"
    for package, modules in _DOCTESTS.items()
    if find_spec(package) is None
    for module in modules
]
