"""Files that version 0.1.0 wrote still load, with the same numbers.

The files in `stored_0_1_0` were written by commit 9adaac4 from the point clouds of `clouds`.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import unaligned as ua

FOLDER = Path(__file__).parent / "stored_0_1_0"
VALUES = json.loads((FOLDER / "values.json").read_text())


@pytest.fixture(scope="module")
def clouds():
    rng = np.random.default_rng(0)
    return {name: rng.normal(size=(60, d)) for name, d in (("line", 1), ("disc", 2), ("ball", 3))}


def test_signature_loads_and_compares_with_a_new_one(clouds):
    stored = ua.Signature.load(FOLDER / "signature.npz")
    # log differs by a rounding between versions of NumPy
    np.testing.assert_allclose(stored.values, VALUES["signature"], rtol=1e-14)
    new = ua.signature(clouds["disc"], n_eigenvalues=20, preprocess=["standardize"])
    assert ua.distance(stored, new) < 1e-8


@pytest.mark.parametrize("name", ["comparison_les", "comparison_frechet", "comparison_references"])
def test_comparison_loads(name):
    stored = ua.Comparison.load(FOLDER / f"{name}.npz")
    np.testing.assert_array_equal(stored.distances, VALUES[name])


def test_loaded_comparison_grows(clouds):
    stored = ua.Comparison.load(FOLDER / "comparison_les.npz")
    assert stored.metadata["disc"] == {"dimension": 2}
    grown = stored.add({"ball again": clouds["ball"]})
    assert grown["ball", "ball again"] < 1e-8


def test_store_opens_and_finds_the_nearest(clouds, tmp_path):
    path = tmp_path / "store.db"
    shutil.copy(FOLDER / "store.db", path)
    store = ua.Store(path)
    assert sorted(store.names()) == ["ball", "disc", "line"]
    nearest = store.nearest(clouds["disc"], k=1)[0]
    assert nearest.name == "disc"
    assert nearest.distance < 1e-8
