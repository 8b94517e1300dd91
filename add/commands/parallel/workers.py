"""The same function of many tasks, done by workers: processes of this machine, or those of a cluster.

Experiments of an inverse problem are such tasks.
"""

import contextlib
import logging
import multiprocessing
import signal
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar, final

from add.adjoint import Evaluation
from add.errors import AddError, InputError, SolverError
from add.inverse import EvaluationRequest, Evaluator, InverseProblem
from add.io.lock import CannotWrite
from add.machine.files import cores
from add.machine.interrupts import stops_wait
from add.scene import Scene, scene_from_dict

#: Sent to a whole group by a terminal, and by systems of batch jobs.
_STOPS = (signal.SIGINT, signal.SIGTERM)

Task = TypeVar("Task")
Result = TypeVar("Result")


@final
class WorkerLost(AddError, RuntimeError):
    """A worker ended before its task."""

    exit_code = 3


class Work(ABC, Generic[Task, Result]):
    """A job as it travels to the workers: small, and picklable."""

    @abstractmethod
    def prepare(self) -> Callable[[Task], Result]:
        """Return the function; called once in every worker."""


class Session(ABC, Generic[Task, Result]):
    """Workers that are prepared for one work."""

    @abstractmethod
    def spread(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Result]]:
        """Do all tasks; yield each with its result as it is finished.

        Parameters
        ----------
        tasks : picklable

        Raises
        ------
        KeyboardInterrupt
            after results that were finished by then are given; what the workers are at is given up.
        AddError
            Of a task.
        RuntimeError
            If a worker ends, or a task fails otherwise.

        Notes
        -----
        A session that was left before its tasks were done, or by an error, is of no further use.
        """


class Workers(ABC):
    """Places of work; no result depends on the choice."""

    @abstractmethod
    def session(self, work: Work[Task, Result]) -> contextlib.AbstractContextManager[Session[Task, Result]]:
        """Return a session, whose workers are at it until it is left."""


#: Why a task failed, or None, and its result.
Answer: TypeAlias = tuple[Exception | None, Result | None]


def answer(function: Callable[[], Result]) -> Answer[Result]:
    """Call a function where nobody sees its errors, and return what can be sent home."""
    try:
        return None, function()
    except AddError as error:
        return error, None
    except MemoryError as error:
        return MemoryError(str(error)), None
    except Exception:
        return RuntimeError(traceback.format_exc()), None


def finished_with(
    workers: Workers | None,
    work: Work[Task, Result],
    tasks: Sequence[Task],
    done: dict[Task, Result],
    keep: Callable[[Task], None],
    kept: Callable[[], Iterable[Task]],
    finish: Callable[[str], dict[str, Any]],
    progress: Callable[[int, int], None] | None,
) -> dict[str, Any]:
    """Do the tasks that are not done, keep each as it comes, and return what the job is finished with.

    Parameters
    ----------
    workers : Workers, optional
        Default: this process.
    work, tasks : as in `Session.spread`
    done : the results so far, to which the others are added
    keep : what writes the result of a task
    kept : what reads of which tasks there are results
    finish : what writes the end of a job, also of one that was interrupted or has failed, by its status
    progress : called with the numbers of finished and of all tasks, at the start and after each
    """
    said = progress or (lambda done, total: None)
    said(len(done), len(tasks))
    try:
        with (workers or LocalProcesses(1)).session(work) as session:
            for task, result in session.spread([task for task in tasks if task not in done]):
                done[task] = result
                keep(task)
                said(len(done), len(tasks))
    except KeyboardInterrupt:
        # It may have come while a line was written.
        for task in done.keys() - set(kept()):
            keep(task)
        finish("interrupted")
        raise
    except Exception:
        with contextlib.suppress(CannotWrite):  # what ended the job is worth more
            finish("failed")
        raise
    return finish("done")


@final
@dataclass(frozen=True)
class LocalProcesses(Workers):
    """Processes of this machine, as many as there are tasks at most.

    Attributes
    ----------
    n : int
        One: this process does it all.

    Notes
    -----
    `concurrent.futures` leaves its processes behind when this one is killed, waiting for tasks for ever. Here each has
    a pipe of its own, and ends when the other end is gone.
    """

    n: int = 1

    @contextmanager
    def session(self, work: Work[Task, Result]) -> Iterator[Session[Task, Result]]:
        if self.n <= 1:
            yield _Here(work)
            return
        session = _Processes(work, self.n)
        try:
            yield session
        finally:
            session.close()


@final
class _Here(Session[Task, Result]):
    """The process itself."""

    def __init__(self, work: Work[Task, Result]) -> None:
        self._work = work
        self._function: Callable[[Task], Result] | None = None

    def spread(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Result]]:
        for task in tasks:
            self._function = self._function or self._work.prepare()
            yield task, self._function(task)


@final
class _Processes(Session[Task, Result]):
    """Processes at the other ends of pipes, started when there is something to do."""

    def __init__(self, work: Work[Task, Result], most: int) -> None:
        self._work, self._most = work, most
        self._processes: list[multiprocessing.process.BaseProcess] = []
        self._pipes: list[Connection] = []

    def spread(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Result]]:
        self._start(min(self._most, len(tasks)) - len(self._processes))
        left = iter(tasks)
        busy: dict[Connection, Task] = {}
        for pipe in self._pipes:
            _give(pipe, left, busy)
        while busy:
            try:
                ready = _ready(busy, None)
            except KeyboardInterrupt:
                for pipe in _ready(busy, 0.0):
                    with contextlib.suppress(WorkerLost):  # the stop may have met it where it was not deaf yet
                        yield _take(pipe, busy)
                raise
            for pipe in ready:
                done: tuple[Task, Result] = _take(pipe, busy)
                _give(pipe, left, busy)
                yield done

    def _start(self, n: int) -> None:
        """Start more processes, deaf to the interrupt key and to SIGTERM: this one answers them.

        They are forked from one that has imported the program, which takes each of them some seconds otherwise.
        """
        context: Any = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__, "add.commands.parallel.forked"])
        with stops_wait(), _stops_blocked():
            for _ in range(n):
                here, there = context.Pipe()
                process = context.Process(target=_serve, args=(there, self._work), daemon=True)
                process.start()
                there.close()
                self._processes.append(process)
                self._pipes.append(here)

    def close(self) -> None:
        """End the processes, whatever they are at."""
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.kill()
            process.join()


@contextmanager
def _stops_blocked() -> Iterator[None]:
    """Block signals in this thread: processes that it starts inherit that while they import the program."""
    resource_tracker.ensure_running()  # which `Process.start` does otherwise, and then signals are no longer blocked
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
        raise WorkerLost("a process ended before its task: out of memory, or killed") from None
    if error is not None:
        raise error
    return task, result


def _serve(pipe: Connection, work: Work[Task, Result]) -> None:
    """Answer tasks until the other end is closed."""
    for number in _STOPS:
        signal.signal(number, signal.SIG_IGN)
    logging.getLogger().setLevel(logging.ERROR)  # what fails is in the results
    here = _Here(work)
    with contextlib.suppress(EOFError, OSError):
        while True:
            task = pipe.recv()
            pipe.send(answer(lambda task=task: next(here.spread([task]))[1]))  # type: ignore[misc]


#: Below this many unknowns a step is linearised faster than another thread is asked to.
LARGE = 1000


def on_all_cores(problem: InverseProblem) -> InverseProblem:
    """Return the problem with sweeps of derivatives that linearise ahead on all cores, where systems are large.

    The numbers are the same; see `add.adjoint.schedule`. For problems whose experiments run in this process, one after
    another: where processes share the cores already, threads would get in their way.
    """
    experiments = []
    for item in problem.experiments:
        threads = cores() if item.simulation.system.n_unknowns >= LARGE else item.simulation.threads
        experiments.append(replace(item, simulation=replace(item.simulation, threads=threads)))
    return replace(problem, experiments=tuple(experiments))


def require_shareable(problem: InverseProblem, file: Path | None = None) -> None:
    """Refuse workers that would have nothing to do.

    Parameters
    ----------
    problem : InverseProblem
    file : of its scene, for the message

    Raises
    ------
    InputError
        If there is one experiment only, or an optimiser that needs whole runs.
    """
    if len(problem.experiments) < 2:
        raise InputError(
            "workers (--jobs, --cluster) share the experiments of a scene: this one has a single one",
            file=file,
            place="experiments",
        )
    if problem.optimizer is None or not problem.optimizer.shares_experiments:
        raise InputError(
            "workers evaluate experiments for gradients only: Gauss-Newton needs the runs themselves",
            file=file,
            place="optimizer.method",
            expected="'l-bfgs-b', 'adam' or 'sgd'",
        )


@contextmanager
def evaluated_by(workers: Workers, scene: Scene, problem: InverseProblem) -> Iterator[InverseProblem]:
    """Yield the problem with its experiments evaluated by workers: the same values and gradients to the last bit."""
    with workers.session(_Evaluating(scene.raw)) as session:
        yield replace(problem, evaluator=_BySession(session))


@final
@dataclass(frozen=True)
class _Evaluating(Work[EvaluationRequest, Evaluation | SolverError]):
    """Evaluates one experiment. An optimiser goes on after a run that failed: that is a result here."""

    raw: dict[str, Any]

    def prepare(self) -> Callable[[EvaluationRequest], Evaluation | SolverError]:
        problem = scene_from_dict(self.raw).inverse_problem()

        def evaluate(asked: EvaluationRequest) -> Evaluation | SolverError:
            try:
                return problem.evaluate_experiment(asked)
            except SolverError as error:
                return SolverError(str(error))  # without the steps that it made

        return evaluate


@final
class _BySession(Evaluator):
    def __init__(self, session: Session[EvaluationRequest, Evaluation | SolverError]) -> None:
        self._session = session

    def evaluate(self, asked: Sequence[EvaluationRequest]) -> list[Evaluation]:
        answers = {task.experiment: answer for task, answer in self._session.spread(asked)}
        evaluations = []
        for answer in (answers[item.experiment] for item in asked):
            if isinstance(answer, SolverError):
                raise answer
            evaluations.append(answer)
        return evaluations
