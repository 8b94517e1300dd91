"""A small Dask cluster."""

import pytest


@pytest.fixture(scope="session")
def address():
    """Of a cluster of two processes, each with two threads, of which one is to stay idle."""
    distributed = pytest.importorskip("distributed", reason="distributed is not installed: pip install 'add-sim[dask]'")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=2, processes=True, dashboard_address=":0", silence_logs=True
    ) as found:
        yield found.scheduler_address
