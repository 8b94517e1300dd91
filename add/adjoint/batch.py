"""Many runs of one simulation at once, and the gradients of all of them."""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TypeVar, final

import numpy as np

from add.adjoint.forward import pushforward
from add.adjoint.reverse import Cotangents, pullback_to_state
from add.equations.kinematics import State, StateTangent, StateTangents
from add.errors import InputError, SolverError
from add.linalg import one_blas_thread
from add.simulation.run import Simulation, Trajectory
from add.simulation.start import Begun
from add.typing import FloatArray, as_numbers, require_count

_T = TypeVar("_T")


@final
@dataclass(frozen=True)
class BatchCotangents:
    """Gradients of every member; those of a member that failed are NaN, or zero if the cotangents of its states are.

    Attributes
    ----------
    theta : (b, n_theta)
        Where states were given, theta's share in the start of a run is none.
    q, v : (b, m, n)
        Of the pairs of the given states, newest first; of a state without a history all is in the first one. Zero
        where the runs began as the simulation says.
    """

    theta: FloatArray
    q: FloatArray
    v: FloatArray


@final
@dataclass(frozen=True)
class Batch:
    """Runs of one simulation.

    Attributes
    ----------
    simulation : Simulation
    thetas : (b, n_theta)
    trajectories : of each member; of one that failed, what was finished before
    n_steps : steps of each run
    failures : number of the member -> the error that names it
    given : whether the initial states were given
    workers : threads, or the executor's own number where there is one
    executor : Executor or None
    """

    simulation: Simulation
    thetas: FloatArray
    trajectories: tuple[Trajectory, ...]
    n_steps: int
    failures: Mapping[int, SolverError]
    given: bool
    workers: int
    executor: Executor | None = field(default=None, repr=False)

    @property
    def q(self) -> FloatArray:
        """Coordinates of all states (b, k + 1, n), NaN from where a member failed."""
        return self._states("q")

    @property
    def v(self) -> FloatArray:
        """Velocities of all states (b, k + 1, n), NaN from where a member failed."""
        return self._states("v")

    def _states(self, name: str) -> FloatArray:
        out = np.full((len(self.trajectories), self.n_steps + 1, self.simulation.system.n), np.nan)
        for member, run in zip(out, self.trajectories, strict=True):
            member[: run.t.size] = getattr(run, name)
        return out

    def pullback(self, q_bar: FloatArray, v_bar: FloatArray) -> BatchCotangents:
        """Pull cotangents of all states of all members back.

        Parameters
        ----------
        q_bar, v_bar : (b, k + 1, n)

        Raises
        ------
        InputError
            If their shapes are not those of `q` and `v`.
        """
        q_bar, v_bar = as_numbers("q_bar", q_bar), as_numbers("v_bar", v_bar)
        shape = self.q.shape
        if not q_bar.shape == v_bar.shape == shape:
            raise InputError(
                "one cotangent a coordinate, state and member",
                found=f"{q_bar.shape}, {v_bar.shape}",
                expected=f"{shape}",
            )
        alive = self._alive
        for k in alive:
            if not (np.isfinite(q_bar[k]).all() and np.isfinite(v_bar[k]).all()):
                raise InputError(
                    f"member {k}: a cotangent of its states is not finite",
                    found="nan or inf",
                    expected="finite numbers",
                )
        tasks = [(self.simulation, self.trajectories[k], self.thetas[k], q_bar[k], v_bar[k], self.given) for k in alive]
        cotangents = _mapped(_pulled, tasks, self.workers, self.executor)
        n_theta, n = self.thetas.shape[1], shape[2]
        pairs = (shape[0], self.simulation.stepper.n_history, n)
        out = BatchCotangents(*(np.full(size, np.nan) for size in ((shape[0], n_theta), pairs, pairs)))
        for k, (theta, q, v) in zip(alive, cotangents, strict=True):
            out.theta[k], out.q[k], out.v[k] = theta, q, v
        for k in self.failures:
            if not (q_bar[k].any() or v_bar[k].any()):  # nothing is asked of it
                out.theta[k] = out.q[k] = out.v[k] = 0.0
        return out

    def pushforward(
        self, theta_dot: FloatArray, q_dot: FloatArray | None = None, v_dot: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Push a tangent of each member forward; the transpose of `pullback`.

        Parameters
        ----------
        theta_dot : (b, n_theta)
        q_dot, v_dot : (b, m, n), optional
            Of the pairs of the given states, as those of `BatchCotangents`. Default: none moves.

        Returns
        -------
        (b, k + 1, n), (b, k + 1, n)
            Tangents of `q` and `v`; those of a member that failed are NaN.

        Raises
        ------
        InputError
            If a shape does not fit, or states are to move that were not given.
        """
        theta_dot, (b, n) = as_numbers("theta_dot", theta_dot), (len(self.trajectories), self.simulation.system.n)
        pairs = (b, self.simulation.stepper.n_history, n)
        moved = [np.zeros(pairs) if dot is None else np.asarray(dot, dtype=float) for dot in (q_dot, v_dot)]
        shapes = [theta_dot.shape, *(dot.shape for dot in moved)]
        if shapes != [self.thetas.shape, pairs, pairs]:
            raise InputError(
                "one tangent a parameter and member, and one a pair of the given states and coordinate",
                found=", ".join(map(str, shapes)),
                expected=f"{self.thetas.shape}, {pairs}, {pairs}",
            )
        for k in range(b):
            if not all(np.isfinite(dot[k]).all() for dot in (theta_dot, *moved)):
                raise InputError(f"member {k}: a tangent is not finite", found="nan or inf", expected="finite numbers")
        if not self.given and any(dot.any() for dot in moved):
            raise InputError(
                "the runs began as the simulation says: their initial states have no tangents of their own"
            )
        states = tuple(moved) if self.given else (None, None)
        alive = self._alive
        tasks = [
            (
                self.simulation,
                self.trajectories[k],
                self.thetas[k],
                theta_dot[k],
                *(s if s is None else s[k] for s in states),
            )
            for k in alive
        ]
        out = np.full((2, *self.q.shape), np.nan)
        for k, ends in zip(alive, _mapped(_pushed, tasks, self.workers, self.executor), strict=True):
            out[0, k], out[1, k] = ends
        return out[0], out[1]

    @property
    def _alive(self) -> list[int]:
        return [k for k in range(len(self.trajectories)) if k not in self.failures]


def rollout_batch(
    simulation: Simulation,
    thetas: FloatArray,
    states: Sequence[State] | None = None,
    *,
    n_steps: int | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
) -> Batch:
    """Run a simulation with many parameters, from its start or from given states.

    Members do not meet: the numbers are the same to the bit whatever the number of workers. Compiled steps
    (`add.compiled`) hold no lock, so that threads run them side by side; systems that take the steps of the terms
    need an executor with processes for that, for example that of a Dask client.

    Parameters
    ----------
    simulation : Simulation
    thetas : (b, n_theta)
    states : b states of `Simulation.state`, optional
        To go on from. Default: the simulation's start.
    n_steps : int, optional
        Number of steps of each run, counted from its state.
    workers : int, optional
        Threads; default: one a processor.
    executor : Executor, optional
        In place of threads.

    Returns
    -------
    Batch

    Raises
    ------
    InputError
        If the shapes do not fit, or a number is not finite; it names the member.
    """
    thetas = as_numbers("thetas", thetas).copy()
    n_theta = simulation.theta.size
    if thetas.ndim != 2 or thetas.shape[1] != n_theta or not thetas.shape[0]:
        raise InputError(
            "a batch needs a row of parameters a member",
            found=f"shape {thetas.shape}",
            expected=f"(members, {n_theta})",
        )
    if states is not None and len(states) != thetas.shape[0]:
        raise InputError("one state a member", found=f"{len(states)}", expected=f"{thetas.shape[0]}")
    _require_finite(thetas, "parameter", lambda i: simulation.system.parameters.describe(i))
    if states is not None:
        for name in ("q", "v"):
            _require_finite(np.array([getattr(s, name)[0] for s in states]), name, simulation.system.dofs.describe)
    workers = (os.cpu_count() or 1) if workers is None else workers
    require_count(workers, "workers", 1)
    steps = simulation.n_steps if n_steps is None else n_steps
    require_count(steps, "n_steps")
    # What runs share is made before they begin: threads would make it side by side.
    _ = simulation.packed
    tasks = [(simulation, theta, states[k] if states else None, steps) for k, theta in enumerate(thetas)]
    results = _mapped(_run, tasks, workers, executor)
    failures = {}
    for k, (_, error) in enumerate(results):
        if error is not None:
            failures[k] = SolverError(f"member {k}: {error}")
            failures[k].__cause__ = error
    runs = tuple(run for run, _ in results)
    return Batch(simulation, thetas, runs, steps, failures, states is not None, workers, executor)


def _require_finite(numbers: FloatArray, kind: str, describe: Callable[[int], str]) -> None:
    """Raise where a number of a member is not finite."""
    bad = np.argwhere(~np.isfinite(numbers))
    if bad.size:
        member, entry = (int(i) for i in bad[0])
        raise InputError(
            f"member {member}: a {kind} is not a finite number", place=describe(entry),
            found=f"{numbers[member, entry]}", expected="a finite number",
        )  # fmt: skip


def _mapped(
    function: Callable[..., _T], tasks: Sequence[tuple[object, ...]], workers: int, executor: Executor | None
) -> list[_T]:
    """Return the function's values at all tasks, in their order."""
    with one_blas_thread():
        if executor is None and workers == 1:
            return [function(*task) for task in tasks]
        with nullcontext(executor) if executor else ThreadPoolExecutor(workers) as pool:
            assert pool is not None
            return list(pool.map(function, *zip(*tasks, strict=True)))


def _run(
    simulation: Simulation, theta: FloatArray, state: State | None, n_steps: int
) -> tuple[Trajectory, SolverError | None]:
    """Return a run, and the error that it ended with."""
    last = n_steps + (state.step if state is not None else 0)
    try:
        return simulation.run(theta, n_steps=last, state=state), None
    except SolverError as error:
        done: Trajectory | None = getattr(error, "trajectory", None)
        if done is None:
            raise
        return done, error


def _pulled(
    simulation: Simulation,
    trajectory: Trajectory,
    theta: FloatArray,
    q_bar: FloatArray,
    v_bar: FloatArray,
    given: bool,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the cotangents of theta and of the pairs of the initial state of one run."""
    theta_bar, bar = pullback_to_state(simulation, trajectory, theta, Cotangents(q_bar, v_bar))
    if trajectory.initial.step:
        return theta_bar, bar.q, bar.v
    q, v = simulation.differentiable.start_pullback(bar)
    out = np.zeros((2, *bar.q.shape))
    if given:
        out[0, 0], out[1, 0] = q, v
    else:
        simulation.start.pullback(Begun(simulation.assembler(), trajectory.start, theta), q, v, theta_bar)
    return theta_bar, out[0], out[1]


def _pushed(
    simulation: Simulation,
    trajectory: Trajectory,
    theta: FloatArray,
    theta_dot: FloatArray,
    q_dot: FloatArray | None,
    v_dot: FloatArray | None,
) -> tuple[FloatArray, FloatArray]:
    """Return the tangents of the states of one run; those of its initial state are None where none was given."""
    initial = None
    if q_dot is not None and v_dot is not None:
        first = trajectory.initial
        if first.step:
            dot = StateTangent(q_dot[..., None], v_dot[..., None], np.zeros((*first.carry.memory.shape, 1)))
        else:
            dot = simulation.differentiable.start_pushforward(q_dot[0][:, None], v_dot[0][:, None])
        initial = StateTangents(np.zeros(1, dtype=np.int64), dot)
    end = pushforward(simulation, trajectory, theta, [theta_dot], initial)
    return end.q[0], end.v[0]
