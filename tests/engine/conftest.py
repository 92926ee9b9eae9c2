"""One small Dask cluster for all tests: it takes seconds to start."""

from contextlib import contextmanager

import pytest


@contextmanager
def two_workers():
    """Yield a client of a new cluster of two processes."""
    distributed = pytest.importorskip("dask.distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def client():
    with two_workers() as client:
        yield client


@pytest.fixture
def own_client():
    """A cluster that a test may break."""
    with two_workers() as client:
        yield client
