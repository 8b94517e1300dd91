"""The five Jacobians of a step of four robots in contact, beside differences of the step (Werling et al. 2021)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import add
from add.hard_contact.impulse_coupling import CarriedImpulses
from add.scene.build.built import BuiltScene
from add.simulation import Step
from add.typing import FloatArray
from scripts.reproduction.entry import Context, Entry, Outcome, Row, Skipped
from scripts.reproduction.robot_scenes import model, robot_scene

WORM = ("tail1", "tail2", "tail3")
CHEETAH = ("bthigh", "bshin", "bfoot", "fthigh", "fshin", "ffoot")


class Robot(NamedTuple):
    """A robot in contact: its scene, and how many steps until it is."""

    name: str
    published: str
    scene: Callable[[], dict[str, Any]]


def worm() -> dict[str, Any]:
    """Return the jump-worm on the tip of its tail."""
    q = {"y": -0.14 + 0.0104, "tail1": np.pi / 2, "tail2": np.pi / 2, "tail3": np.pi / 4}
    return robot_scene("jump_worm.xml", q, dt=1e-3, steps=40, up="y", floor=-0.575, torques=WORM)


def catapult() -> dict[str, Any]:
    """Return the catapult beside its projectile, which lies on the floor."""
    q = {"x": 0.2, "y": -0.525, "tail1": np.pi / 4, "tail2": 0.65, "tail3": np.pi / 4}
    return robot_scene("catapult.xml", q, dt=1e-3, steps=40, up="y", floor=-0.575, torques=WORM)


def cheetah() -> dict[str, Any]:
    """Return the half-cheetah on both feet."""
    return robot_scene("half_cheetah.xml", {"rootz": -0.05}, dt=2e-3, steps=150, friction=0.4, torques=CHEETAH)


def atlas() -> dict[str, Any]:
    """Return Atlas on its feet, every joint with a motor."""
    hinges = [joint.name for joint in add.read_robot(model("atlas_v4.urdf"), ignore=["mesh"]).joints]
    return robot_scene(
        "atlas_v4.urdf", {}, dt=1e-3, steps=80, torques=hinges, base="free", ignore=["mesh"], position=[0, 0, 0.95]
    )


ROBOTS = (
    Robot("Atlas", "robots1.atlas", atlas),
    Robot("half-cheetah", "robots1.cheetah", cheetah),
    Robot("jump-worm", "robots1.worm", worm),
    Robot("catapult", "robots1.catapult", catapult),
)


def median(work: Callable[[], object], repeats: int) -> float:
    """Return the median of processor milliseconds of a call."""
    found = []
    for _ in range(repeats):
        begin = time.process_time()
        work()
        found.append(1e3 * (time.process_time() - begin))
    return float(np.median(found))


class Measured(NamedTuple):
    """A robot's step: numbers of contacts, of those that stick, of joints at stops; errors, milliseconds."""

    coordinates: int
    controls: int
    near: int
    sticking: int
    at_stops: int
    error: float
    jacobians: float
    differences: float
    step: float


def measure(built: BuiltScene, repeats: int) -> Measured:
    """Differentiate the last step of a run."""
    simulation, theta = built.simulation, built.theta
    run = simulation.run()
    step = run.step(run.n_steps - 1)
    names = [entry.name for entry in simulation.system.parameters.entries if entry.name.endswith(".input")]
    derivatives = simulation.step_derivatives(controls=names)
    found = derivatives.jacobians(step)
    n = simulation.system.n
    by_state = np.block([[found.q_q[0], found.q_v[0]], [found.v_q[0], found.v_v[0]]])
    by_control = np.column_stack([np.concatenate([item.q[:, 0], item.v[:, 0]]) for item in found.controls.values()])
    places = [simulation.system.parameters[name].start for name in names]
    error = max(
        *(_off(built, step, k, by_state[:, k], np.abs(by_state).max()) for k in range(2 * n)),
        *(_off(built, step, -1 - place, by_control[:, k], np.abs(by_control).max()) for k, place in enumerate(places)),
    )
    kept = CarriedImpulses.of(step.record.carry)
    near = kept.near.pair.size
    assembler = simulation.assembler()
    forward = median(lambda: simulation.differentiable.step(assembler, step.before, theta), repeats)
    return Measured(
        n, len(names), near, int((kept.modes[:near] == 1).sum()), int((kept.modes[near:] == 1).sum()), error,
        median(lambda: derivatives.jacobians(step), repeats), 2 * (2 * n + len(names)) * forward, forward,
    )  # fmt: skip


def _off(built: BuiltScene, step: Step, k: int, column: FloatArray, largest: float) -> float:
    """Return the error of a column over its largest entry, by the best of a few differences.

    What sticks has columns of zeros.
    """
    size = max(np.abs(column).max(), 1e-6 * largest)
    found = (difference(built, step, k, h) for h in ((1e-6, 1e-7) if k >= 0 else (1e-3, 1e-4)))
    return float(min(np.abs(slope - column).max() for slope in found) / size)


def difference(built: BuiltScene, step: Step, k: int, h: float) -> FloatArray:
    """Return the central difference of a step with its decisions held: by an entry of (q, v), or of theta (-1 - k)."""
    simulation, ends = built.simulation, []
    assembler, n = simulation.assembler(), simulation.system.n
    for sign in (h, -h):
        q, v, theta = step.before.q.copy(), step.before.v.copy(), built.theta.copy()
        if k < 0:
            theta[-1 - k] += sign
        elif k < n:
            q[0, k] += sign
        else:
            v[0, k - n] += sign
        after = simulation.differentiable.step(assembler, replace(step.before, q=q, v=v), theta, step.record)[0]
        ends.append(np.concatenate([after.q[0], after.v[0]]))
    return np.asarray((ends[0] - ends[1]) / (2.0 * h))


def run(context: Context) -> Outcome:
    """Measure all robots that are there."""
    rows, values, missing = [], {}, []
    for robot in ROBOTS[2:] if context.short else ROBOTS:
        try:
            raw = robot.scene()
        except Skipped as reason:
            missing.append(str(reason))
            continue
        raw["time"]["newton"] = {"atol": 1e-11, "rtol": 1e-13}
        found = measure(add.scene_from_dict(raw).build(), 3 if context.short else 25)
        head = (
            f"{robot.name} ({found.coordinates} coordinates, {found.controls} controls, {found.near} contacts, "
            f"{found.sticking} sticking, {found.at_stops} joints at stops)"
        )
        rows += [
            Row(f"{head}: five Jacobians [ms]", f"{found.jacobians:.3g}", robot.published),
            Row(f"{robot.name}: central differences of the step [ms]; how many times longer",
                f"{found.differences:.3g}; {found.differences / found.jacobians:.3g}",
                f"{robot.published}.differences"),
            Row(f"{robot.name}: largest error of a column against differences with modes held",
                f"{found.error:.1e}"),
            Row(f"{robot.name}: one step [ms]", f"{found.step:.3g}"),
        ]  # fmt: skip
        values[robot.name] = found._asdict()
    if not rows:
        raise Skipped(missing[0])
    return Outcome(tuple(rows), notes=NOTES, values=values)


NOTES = (
    "Contact by impulses with Coulomb's cone, hard. The Jacobians are those of the whole implicit step: position and "
    "velocity by position, velocity and torques, from one factorisation and one cone problem. Published: semi-implicit "
    "steps, in compiled C++; ours go by the terms, in Python, so that a step takes milliseconds.",
)

ENTRY = Entry(
    "robots1",
    "Robots: five Jacobians of a step",
    "Four robots stand on or lie over the ground; the derivatives of one step by state and torques, beside central "
    "differences of the same step (Werling, Omens, Lee, Exarchos, Liu, *Fast and feature-complete differentiable "
    "physics for articulated rigid bodies with contact*, RSS 2021, Table III).",
    run,
)
