"""What the tests of operators share."""

import pytest

from unaligned.operators import pointcloud


@pytest.fixture(autouse=True)
def tiles_of_sparse_points(monkeypatch):
    """Treat small sparse points as large ones, which are filled in tile by tile."""
    monkeypatch.setattr(pointcloud, "FILLED_BYTES", 0)
