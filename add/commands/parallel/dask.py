"""Workers of a Dask cluster; `distributed` has to be installed where this module is imported."""

import contextlib
import queue
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any, Generic, final

from distributed import Client, Future, KilledWorker, WorkerPlugin, get_worker
from distributed.comm import get_address_host_port

from add import __version__
from add.commands.parallel.workers import Answer, Result, Session, Task, Work, Workers, answer
from add.errors import AddError, InputError
from add.machine.interrupts import stops_wait

#: How long the scheduler may take to answer [s].
PATIENCE = 5.0
#: How long a signal may wait for its answer while the workers are at it [s].
LOOK = 0.1


@contextmanager
def connected(address: str) -> Iterator[Workers]:
    """Connect with a cluster, and leave it at the end; see `add.commands.parallel.cluster`."""
    try:
        get_address_host_port(address, strict=True)  # a client that was made in vain is slow to end
        with stops_wait():
            client = Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:  # a time-out is an OSError
        raise InputError(
            f"no scheduler of a Dask cluster answers: {error}",
            found=f"'{address}'",
            expected="the address that `dask scheduler` says, as tcp://host:8786",
        ) from None
    try:
        with stops_wait():
            _require_equal(client, address)
        yield _Cluster(client, address)
    finally:
        with stops_wait():
            client.close()


def _require_equal(client: Client, address: str) -> None:
    """Refuse workers that would compute something else, or nothing."""
    try:
        versions = client.run(_version)
    except Exception as error:  # what a worker without `add` makes of the question depends on Dask
        raise InputError(f"the workers of the cluster cannot run `add`: {error}", found=f"'{address}'") from None
    if not versions:
        raise InputError("the cluster has no workers", found=f"'{address}'")
    for worker, version in versions.items():
        if version != __version__:
            raise InputError(
                f"{worker} of the cluster has another version of `add`", found=version, expected=__version__
            )


def _version() -> str:
    return __version__


@final
class _Cluster(Workers):
    """The workers of a Dask cluster, those that come later included.

    A worker does one task at a time, whatever its number of threads: a model is not made for two. The tasks of a
    worker that is lost go to others. What has begun when a session is left is finished there, for nothing.
    """

    def __init__(self, client: Client, address: str) -> None:
        self._client, self._address = client, address

    @contextmanager
    def session(self, work: Work[Task, Result]) -> Iterator[Session[Task, Result]]:
        name = f"add-{uuid.uuid4().hex}"
        with stops_wait():
            self._client.register_plugin(_Prepared(work), name=name)
        try:
            yield _Remote(self._client, self._address, name)
        finally:
            with stops_wait(), contextlib.suppress(Exception):  # a cluster that is gone has forgotten it
                self._client.unregister_worker_plugin(name)


@final
class _Prepared(WorkerPlugin, Generic[Task, Result]):  # type: ignore[misc]
    """The work of a session in one worker, prepared by its first task. Dask gives plugins to later workers, too."""

    def __init__(self, work: Work[Task, Result]) -> None:
        self._work = work

    def setup(self, worker: Any) -> None:
        self._lock = threading.Lock()
        self._function: Callable[[Task], Result] | None = None

    def perform(self, task: Task) -> Result:
        with self._lock:
            self._function = self._function or self._work.prepare()
            return self._function(task)


def _perform(name: str, task: Task) -> Answer[Any]:
    """Do a task, in a worker."""
    return answer(lambda: get_worker().plugins[name].perform(task))


@final
class _Remote(Session[Task, Result]):
    """A work that the workers of a cluster know by its name."""

    def __init__(self, client: Client, address: str, name: str) -> None:
        self._client, self._address, self._name = client, address, name

    def spread(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Result]]:
        finished: queue.SimpleQueue[Future] = queue.SimpleQueue()
        with stops_wait() as answer_stops:
            left = {self._client.submit(_perform, self._name, task, pure=False): task for task in tasks}
            try:
                for future in left:
                    future.add_done_callback(finished.put)
                while left:
                    with contextlib.suppress(queue.Empty):
                        yield self._take(finished.get(timeout=LOOK), left)
                    answer_stops()
            except KeyboardInterrupt:
                for future in [future for future in left if future.done()]:
                    yield self._take(future, left)
                raise
            finally:
                with contextlib.suppress(Exception):
                    self._client.cancel(list(left))

    def _take(self, future: Future, left: dict[Future, Task]) -> tuple[Task, Result]:
        task = left.pop(future)
        try:
            error, result = future.result()
        except KilledWorker as lost:
            raise RuntimeError(
                f"workers of the cluster ended before their task: out of memory, or killed ({lost})"
            ) from None
        except (OSError, CancelledError) as lost:
            raise AddError(f"the scheduler at {self._address} is gone: {str(lost).partition(chr(10))[0]}") from None
        if error is not None:
            raise error
        return task, result
