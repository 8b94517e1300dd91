"""The objective `one-step`: recorded states read from a file, and steps that begin at them."""

from __future__ import annotations

import zipfile
from dataclasses import replace

import numpy as np

from add.equations import charts
from add.equations.kinematics import State
from add.errors import InputError
from add.io.trajectory import read_run
from add.objectives.one_step import OneStep
from add.scene.build.built import BuiltScene
from add.scene.read.paths import asked_for_by
from add.scene.spec.objective import (
    OneStepObjectiveSpec,
    PriorObjectiveSpec,
    ProximityObjectiveSpec,
    RoughnessObjectiveSpec,
    SmoothnessObjectiveSpec,
)
from add.scene.spec.scene import SceneSpec
from add.simulation.restarted import RecordedStates, Restarted
from add.simulation.run import Simulation
from add.typing import FloatArray, IntArray

#: What may stand beside it: objectives that see no motion.
_STILL = (PriorObjectiveSpec, SmoothnessObjectiveSpec, ProximityObjectiveSpec, RoughnessObjectiveSpec)

#: How far from a step a recorded time may be, as a share of the step.
_CLOSE = 1e-3


def judged_simulation(spec: SceneSpec, built: BuiltScene) -> Simulation:
    """Return the simulation that the scene's objective judges: its own, or single steps from recorded states.

    Raises
    ------
    InputError
        If the recorded states do not fit, or another objective judges the motion, too.
    """
    for k, item in enumerate(spec.objective):
        if isinstance(item, OneStepObjectiveSpec):
            others = [i for i, other in enumerate(spec.objective) if i != k and not isinstance(other, _STILL)]
            if others or len(spec.experiments) > 1:
                place = f"objective.{others[0]}" if others else "experiments"
                raise InputError(
                    "single steps from recorded states are judged by 'one-step' alone, in one experiment", place=place
                )
            return _restarted(built, _states(item, built, f"objective.{k}"))
    return built.simulation


def one_step_objective(item: OneStepObjectiveSpec, built: BuiltScene, place: str) -> OneStep:
    """Return the objective; see `judged_simulation` for the steps that it judges."""
    recorded, system = _states(item, built, place), built.model.system
    own = [body.name for body in built.model.bodies if system.dofs[body.name].size]
    names = own if item.bodies is None else item.bodies
    for k, name in enumerate(names):
        if name not in system.dofs:
            raise InputError("there is no such body", place=f"{place}.bodies.{k}", found=f"'{name}'")
        if not system.dofs[name].size:
            raise InputError(
                "a link has no coordinates of its own", place=f"{place}.bodies.{k}", found=f"'{name}'",
                expected=f"its articulated body, '{name.split('/')[0]}'",
            )  # fmt: skip
    rows = np.concatenate([system.dofs[name].indices.ravel() for name in names])
    rows = rows[system.partition.is_free[rows]]
    dt = built.simulation.stepper.dt
    counts = np.arange(recorded.n_steps + 1) <= built.simulation.n_steps
    by_place, by_speed = (np.full(rows.size, np.sqrt(w)) for w in (item.q, item.v + item.a / dt**2))
    return OneStep(recorded.q, recorded.v, rows, system.rotations, by_place, by_speed, counts, dt)


def _restarted(built: BuiltScene, recorded: RecordedStates) -> Simulation:
    simulation = built.simulation
    if simulation.differentiable.remembers:
        raise InputError(
            "recorded states do not say what relaxing stress remembers", found="bodies.*.material.relaxation",
            expected="an objective of whole runs",
        )  # fmt: skip
    stepper = Restarted(simulation.differentiable, recorded)
    return replace(simulation, stepper=stepper, n_steps=min(simulation.n_steps, recorded.n_steps))


def _states(item: OneStepObjectiveSpec, built: BuiltScene, place: str) -> RecordedStates:
    """Read recorded states at the steps of a simulation."""
    at, dt, n = f"{place}.file", built.simulation.stepper.dt, built.model.system.n
    with asked_for_by(at):
        t, q, v = _read(item.file, at)
    if t.ndim != 1 or q.shape != (t.size, n) or (v is not None and v.shape != q.shape):
        raise InputError(
            f"{item.file}: these are no states of this scene", place=at,
            found=f"t {t.shape}, q {q.shape}" + ("" if v is None else f", v {v.shape}"), expected=f"q and v (k, {n})",
        )  # fmt: skip
    if not all(np.isfinite(values).all() for values in (t, q, *([] if v is None else [v]))):
        raise InputError(f"{item.file}: a number is not finite", place=at)
    steps = int(np.floor(t.max(initial=0.0) / dt + _CLOSE))
    wanted: FloatArray = dt * np.arange(steps + 1, dtype=float)
    near = _nearest(t, wanted)
    missing = wanted[np.abs(t[near] - wanted) > _CLOSE * dt] if t.size else wanted
    if steps < 1 or missing.size:
        raise InputError(
            f"{item.file}: a recorded state is needed at each step of {dt:g} s", place=at,
            found=f"none at t = {missing[0]:g} s" if missing.size else f"{t.size} states",
        )  # fmt: skip
    q, rotations = q[near].copy(), built.model.system.rotations
    v = _differences(q, dt, rotations, at) if v is None else v[near].copy()
    for k in range(q.shape[0]):
        beyond = charts.beyond(q[k], rotations)
        if beyond.size:
            state = charts.change(State(0.0, k, q[k : k + 1], v[k : k + 1]), beyond)
            q[k], v[k] = state.q[0], state.v[0]
    return RecordedStates(q, v)


def _nearest(t: FloatArray, wanted: FloatArray) -> IntArray:
    """Return the recorded times next to the wanted ones, by number."""
    order = np.argsort(t, kind="stable")
    right = np.clip(np.searchsorted(t[order], wanted), 0, max(t.size - 1, 0))
    left = np.maximum(right - 1, 0)
    if not t.size:
        return np.zeros(0, dtype=np.int64)
    closer = np.abs(t[order[left]] - wanted) < np.abs(t[order[right]] - wanted)
    return np.asarray(order[np.where(closer, left, right)])


def _differences(q: FloatArray, dt: float, rotations: IntArray, place: str) -> FloatArray:
    """Return the velocities that BDF1 has between recorded coordinates; the first is that of the first step."""
    v = np.diff(q, axis=0) / dt
    turned = v[:, rotations[:, None] + np.arange(3)] * dt if rotations.size else np.zeros((0, 0, 3))
    if (np.linalg.norm(turned, axis=2) > np.pi).any():
        raise InputError(
            "a rotation vector changes its chart: velocities cannot be differences", place=place, expected="v (k, n)"
        )
    return np.concatenate([v[:1], v])


def _read(file: str, place: str) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Return times, coordinates and velocities of a run or of arrays."""
    if not file.endswith(".npz"):
        run = read_run(file)
        return run.t, run.q, run.v
    try:
        with np.load(file, allow_pickle=False) as arrays:
            found = {key: np.asarray(arrays[key], dtype=float) for key in ("t", "q", "v") if key in arrays}
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise InputError(f"{file}: no arrays of numbers: {error}", place=place) from None
    if not {"t", "q"} <= found.keys():
        raise InputError(f"{file}: these arrays are needed", place=place, found=", ".join(found), expected="t, q")
    return found["t"], found["q"], found.get("v")
