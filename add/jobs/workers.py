"""The same function of many tasks, in processes of their own."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import signal
import threading
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Generic, TypeVar

from add.errors import AddError

Task = TypeVar("Task")
Result = TypeVar("Result")


class Work(ABC, Generic[Task, Result]):
    """What is done, as it travels to the processes: small, and picklable."""

    @abstractmethod
    def prepare(self) -> Callable[[Task], Result]:
        """Return the function; called once in every process."""


def spread(work: Work[Task, Result], tasks: Sequence[Task], n_processes: int) -> Iterator[tuple[Task, Result]]:
    """Do all tasks; yield each with its result as it is finished.

    Parameters
    ----------
    work : Work
    tasks : picklable
    n_processes : int
        One: this process does it all.

    Raises
    ------
    KeyboardInterrupt
        after results that were finished by then are given; what the processes are at is given up.
    AddError
        Of a task.
    RuntimeError
        If a process ends, or fails otherwise.

    Notes
    -----
    `concurrent.futures` leaves its processes behind when this one is killed, waiting for tasks for ever. Here each has
    a pipe of its own, and ends when the other end is gone.
    """
    n_processes = min(n_processes, len(tasks))
    if n_processes <= 1:
        if tasks:
            function = work.prepare()
            for task in tasks:
                yield task, function(task)
        return
    processes, pipes = _start(work, n_processes)
    left = iter(tasks)
    busy: dict[Connection, Task] = {}
    try:
        for pipe in pipes:
            _give(pipe, left, busy)
        while busy:
            try:
                ready = _ready(busy, None)
            except KeyboardInterrupt:
                for pipe in _ready(busy, 0.0):
                    yield _take(pipe, busy)
                raise
            for pipe in ready:
                done: tuple[Task, Result] = _take(pipe, busy)
                _give(pipe, left, busy)
                yield done
    finally:
        for pipe in pipes:
            pipe.close()
        for process in processes:
            process.terminate()
            process.join()


def _give(pipe: Connection, left: Iterator[Task], busy: dict[Connection, Task]) -> None:
    for task in left:
        busy[pipe] = task
        # A process that died says so when its result is taken.
        with contextlib.suppress(OSError):
            pipe.send(task)
        return


def _ready(busy: dict[Connection, Task], timeout: float | None) -> list[Connection]:
    """Return the pipes whose process has answered, or ended."""
    ready = wait(list(busy), timeout)
    return [pipe for pipe in busy if pipe in ready]


def _take(pipe: Connection, busy: dict[Connection, Task]) -> tuple[Task, Result]:
    task = busy.pop(pipe)
    try:
        error, result = pipe.recv()
    except (EOFError, OSError):
        raise RuntimeError("a process of the sweep ended before its task: out of memory, or killed") from None
    if error is not None:
        raise error
    return task, result


def _start(work: Work[Task, Result], n: int) -> tuple[list[multiprocessing.process.BaseProcess], list[Connection]]:
    """Start the processes, deaf to the interrupt key from the start: this one answers it."""
    context = multiprocessing.get_context("spawn")
    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if main else None
    processes: list[multiprocessing.process.BaseProcess] = []
    pipes: list[Connection] = []
    try:
        for _ in range(n):
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(there, work), daemon=True)
            process.start()
            there.close()
            processes.append(process)
            pipes.append(here)
    finally:
        if main:
            signal.signal(signal.SIGINT, before)
    return processes, pipes


def _serve(pipe: Connection, work: Work[Task, Result]) -> None:
    """Answer tasks until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger().setLevel(logging.ERROR)  # what fails is in the results
    function: Callable[[Task], Result] | None = None
    with contextlib.suppress(EOFError, OSError):
        while True:
            task = pipe.recv()
            try:
                function = function or work.prepare()
                answer: tuple[Exception | None, Result | None] = None, function(task)
            except AddError as error:
                answer = error, None
            except Exception:
                answer = RuntimeError(traceback.format_exc()), None
            pipe.send(answer)
