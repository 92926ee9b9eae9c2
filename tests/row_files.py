"""The same rows in every format that is read by blocks."""

import numpy as np
import pytest
from scipy import sparse

POINTS = np.random.default_rng(0).normal(size=(1000, 5)).astype(np.float32)


def npy(folder):
    np.save(folder / "points.npy", POINTS)
    return folder / "points.npy"


def parquet(folder):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({f"f{i}": POINTS[:, i] for i in range(5)})
    pq.write_table(table, folder / "points.parquet", row_group_size=300)
    return folder / "points.parquet"


def h5ad(folder, values=POINTS):
    anndata = pytest.importorskip("anndata")
    anndata.AnnData(values, obsm={"X_pca": POINTS[:, :2]}).write_h5ad(folder / "cells.h5ad")
    return folder / "cells.h5ad"


def sparse_h5ad(folder):
    return h5ad(folder, sparse.csr_matrix(POINTS))
