"""Several scenes or experiments at once: threads, processes, a Dask cluster."""

from collections.abc import Iterator
from contextlib import contextmanager

from add.commands.parallel.workers import Workers
from add.errors import InputError


@contextmanager
def cluster(address: str) -> Iterator[Workers]:
    """Connect with a Dask cluster, and leave it at the end.

    Parameters
    ----------
    address : str
        Of its scheduler, as ``tcp://host:8786``.

    Raises
    ------
    InputError
        If `distributed` is not installed, no scheduler answers within a few seconds, the cluster has no workers, or
        one cannot import `add` of this version.
    """
    try:
        from add.commands.parallel.dask import connected
    except ImportError as error:
        raise InputError(f"a cluster needs the package `distributed` ({error}): pip install 'add-sim[dask]'") from None
    with connected(address) as workers:
        yield workers
