"""One small Dask cluster for all tests that need one: it takes seconds to start."""

from contextlib import contextmanager

import pytest


@contextmanager
def two_workers():
    """Give a client of a cluster of its own, two processes."""
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
    """A cluster that a test may harm."""
    with two_workers() as client:
        yield client
