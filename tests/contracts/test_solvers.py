"""Every operator × every solver: the error bounds always hold.

A new solver is one row of SOLVERS, a new operator one row of OPERATORS.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.linalg import eigvalsh
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import load_digits

from unaligned.data.shapes import torus2, torus3, torus_angles
from unaligned.errors import AccuracyWarning, InputError
from unaligned.operators.base import MatrixOperator
from unaligned.operators.diffusion import build_operator
from unaligned.operators.kernel import KernelSettings
from unaligned.spectra.auto import Auto
from unaligned.spectra.base import Accuracy
from unaligned.spectra.exact import Exact
from unaligned.spectra.krylov import Krylov
from unaligned.spectra.landmarks import Landmarks
from unaligned.spectra.nystrom import Nystrom
from unaligned.spectra.sampled import Sampled

SEEDS = range(5)
K, GAMMA = 40, 1e-8

SOLVERS = {
    "auto": Auto(),
    "exact": Exact(),
    "nystrom": Nystrom(),
    "krylov": Krylov(),
    "krylov, cut short": Krylov(max_columns=60),
    "landmarks": Landmarks(),
    "landmarks, cut short": Landmarks(max_landmarks=50),
    "sampled": Sampled(),
}


def of_points(points, **settings):
    return build_operator(points, "points", KernelSettings(**settings))


def known(eigenvalues, rng):
    Q = np.linalg.qr(rng.normal(size=(eigenvalues.size,) * 2))[0]
    matrix = (Q * eigenvalues) @ Q.T
    return MatrixOperator((matrix + matrix.T) / 2)


def noise(rng, n=300, d=20):
    return rng.normal(size=(n, d))


def duplicates(rng):
    return np.repeat(rng.normal(size=(30, 3)), 5, axis=0)


def graph(rng):
    upper = np.triu(rng.random((150, 150)) < 0.05, 1).astype(float)
    return upper + upper.T


OPERATORS = {
    "2-torus": lambda rng: of_points(torus2(torus_angles(300, 2, rng=rng))),
    "3-torus": lambda rng: of_points(torus3(torus_angles(700, 3, rng=rng))),
    "3-torus, tiled": lambda rng: of_points(torus3(torus_angles(600, 3, rng=rng)), memory_limit=0),
    "noise": lambda rng: of_points(noise(rng)),
    "noise, tiled": lambda rng: of_points(noise(rng, 600), memory_limit=0),
    "digits": lambda rng: of_points(rng.permutation(load_digits().data)[:400]),
    "duplicates": lambda rng: of_points(duplicates(rng)),
    "outliers": lambda rng: of_points(np.vstack([noise(rng, 290, 3), 100 * noise(rng, 10, 3)])),
    "cosine": lambda rng: of_points(noise(rng, 200, 5), metric="cosine"),
    "cityblock": lambda rng: of_points(noise(rng, 200, 5), metric="cityblock"),
    "neighbours": lambda rng: of_points(noise(rng, 200, 3), n_neighbors=10),
    "distances": lambda rng: build_operator(
        squareform(pdist(noise(rng, 200, 3))), "distances", KernelSettings()
    ),
    "laplacian": lambda rng: of_points(noise(rng, 300, 5), kernel="laplacian"),
    "laplacian, tiled": lambda rng: of_points(noise(rng, 600), kernel="laplacian", memory_limit=0),
    "graph": lambda rng: build_operator(graph(rng), "graph", KernelSettings()),
    "fast": lambda rng: known(0.8 ** np.arange(200.0), rng),
    "slow": lambda rng: known(1.0 / np.arange(1.0, 201.0), rng),
    "clustered": lambda rng: known(np.repeat([1.0, 0.5, 0.01, 1e-5], 50), rng),
    "flat": lambda rng: known(np.ones(120), rng),
    "low rank": lambda rng: known(np.r_[np.ones(10), np.zeros(190)], rng),
}


@pytest.fixture(scope="module")
def truth():
    """Cache the true eigenvalues of each operator."""
    seen = {}

    def look_up(name, seed):
        if (name, seed) not in seen:
            operator = OPERATORS[name](np.random.default_rng(seed))
            seen[name, seed] = np.maximum(eigvalsh(operator.to_dense())[::-1][:K], 0.0)
        return seen[name, seed]

    return look_up


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", OPERATORS)
def test_true_error_never_exceeds_bound(name, solver, truth):
    for seed in SEEDS:
        operator = OPERATORS[name](np.random.default_rng(seed))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", AccuracyWarning)
                spectrum = SOLVERS[solver].solve(
                    operator, K, Accuracy(GAMMA), np.random.default_rng(seed)
                )
        except InputError:
            # landmarks and nystrom raise, and sampled for anything but points
            assert not operator.definite or solver == "sampled"
            return
        assert spectrum.eigenvalues.shape == (K,)
        assert (np.diff(spectrum.eigenvalues) <= 0).all()
        assert spectrum.eigenvalues[-1] >= 0
        if spectrum.bound_kind == "none":
            assert not operator.definite
            continue
        # Rounding error of eigvalsh.
        floor = 20 * np.finfo(float).eps * truth(name, seed)[0] / GAMMA
        logs = np.log(truth(name, seed) + GAMMA) - np.log(spectrum.eigenvalues + GAMMA)
        assert (np.abs(logs) <= spectrum.log_error(GAMMA) + floor).all(), seed
        total = spectrum.total_log_error(GAMMA)
        assert np.linalg.norm(logs) <= total + floor * np.sqrt(K), seed


@pytest.mark.parametrize("name", OPERATORS)
def test_auto_meets_tol_and_reports_its_choice(name, truth):
    operator = OPERATORS[name](np.random.default_rng(0))
    spectrum = Auto().solve(operator, K, Accuracy(GAMMA, 1e-3), np.random.default_rng(0))
    logs = np.log(truth(name, 0) + GAMMA) - np.log(spectrum.eigenvalues + GAMMA)
    assert np.linalg.norm(logs) <= 1e-3
    assert spectrum.stats["chosen"] in ("exact", "krylov", "landmarks")
    assert spectrum.stats["why"]


@pytest.mark.parametrize("solver", SOLVERS)
def test_same_seed_gives_same_values(solver):
    found = []
    for _ in range(2):
        operator = OPERATORS["3-torus"](np.random.default_rng(0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AccuracyWarning)
            spectrum = SOLVERS[solver].solve(
                operator, K, Accuracy(GAMMA), np.random.default_rng(1)
            )
        found.append(spectrum.eigenvalues)
    np.testing.assert_array_equal(*found)
