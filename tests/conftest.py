"""Fixtures that many tests share."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread():
    """Cap BLAS: test matrices are small, and on a busy machine spinning threads take minutes."""
    with threadpool_limits(limits=1):
        yield
