"""One small Dask cluster for all tests that need one: it takes seconds to start."""

import pytest


@pytest.fixture(scope="session")
def client():
    distributed = pytest.importorskip("dask.distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
