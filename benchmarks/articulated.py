"""Trees of links: steps, gradients and step Jacobians of robots, MuJoCo's in the same run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from add.adjoint import Cotangents, pullback
from add.scene import scene_from_dict
from add.scene.build.built import BuiltScene
from add.scene.robots import read_robot
from add.simulation.run import Simulation
from add.simulation.step_jacobians import Step
from benchmarks.timing import Row, least

#: Where the models are: beside the checkout, and not a part of it.
MODELS = Path(__file__).parents[2] / "shared" / "specs" / "articulated" / "reference" / "models"

#: Name, file, whether it has a floor, height of its base, dt.
ROBOTS = (
    ("quadruped", "a1.urdf", True, 0.31, 2e-3),
    ("Atlas", "atlas_v4.urdf", True, 0.93, 1e-3),
    ("half-cheetah", "half_cheetah.xml", True, None, 2e-3),
    ("jump-worm", "jump_worm.xml", True, None, 1e-3),
    ("catapult", "catapult.xml", True, None, 1e-3),
)
#: Angles of a standing quadruped, by the end of the joint's name.
STANCE = {"hip_joint": 0.0, "thigh_joint": 0.8, "calf_joint": -1.6}
LENGTHS = (50, 500, 5000)


def articulated(quick: bool) -> dict[str, object]:
    """Time everything here, or say why not."""
    if not MODELS.is_dir():
        reason = f"no models: {MODELS} is missing"
        print(reason)
        return {"missing": reason}
    return {"quadruped": _lengths(quick), "jacobians": _jacobians(quick)}


def robot(file: str, floor: bool, height: float | None, dt: float, steps: int) -> BuiltScene:
    """Return a robot that stands on its feet by servos at its own joints, or lies as its file has it."""
    body: dict[str, Any] = {"type": "articulated", "model": str(MODELS / file)}
    joints = [joint.name for joint in read_robot(MODELS / file).joints if joint.kind == "hinge"]
    values = {name: next((v for end, v in STANCE.items() if name.endswith(end)), 0.0) for name in joints}
    if height is not None:
        body |= {"base": "free", "position": [0, 0, height]}
    body["joints"] = {name: {"value": value} for name, value in values.items() if value}
    body["drives"] = {
        name: {"joint": name, "type": "position", "input": value, "stiffness": 200, "damping": 4}
        for name, value in values.items()
    }
    world: dict[str, Any] = {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}} if floor else {}
    return scene_from_dict({
        "schema": "add-scene/1",
        "name": file,
        "time": {"dt": dt, "steps": steps, "integrator": "bdf1"},
        "bodies": {"robot": body},
        "obstacles": world,
        "contact": {"friction": 0.8, "friction_law": "tanh", "stiffness": 5000, "damping": 20, "damping_ramp": 0.005,
                    "onset": 0.005, "stick_stiffness": 100, "between_bodies": False},
    }).build()  # fmt: skip


def _lengths(quick: bool) -> list[Row]:
    """Time steps of the quadruped, forward and back, for runs of several lengths."""
    rows = []
    built = robot(*ROBOTS[0][1:], steps=10)
    simulation = built.simulation
    for steps in LENGTHS[:1] if quick else LENGTHS:
        run = simulation.run(n_steps=steps)
        bars = Cotangents(np.ones_like(run.q), np.zeros_like(run.q))
        forward = least(lambda n=steps: simulation.run(n_steps=n), 1.0, 20)  # type: ignore[misc]
        back = least(lambda r=run, b=bars: pullback(simulation, r, simulation.theta, b), 1.0, 20)  # type: ignore[misc]
        row = {
            "steps": float(steps),
            "iterations": float(np.mean([record.report.iterations for record in run.records])),
            "contacts": float(np.mean([sum(len(d) for d in record.decisions) for record in run.records])),
            "forward_ms": 1e3 * forward / steps,
            "back_ms": 1e3 * back / steps,
            "compiled": float(simulation.packed is not None),
        }
        rows.append(row)
        print(
            f"quadruped, {steps} steps: {row['forward_ms']:.3f} ms a step forward ({row['iterations']:.2f} iterations, "
            f"{row['contacts']:.1f} contacts), {row['back_ms']:.3f} back",
            flush=True,
        )
    return rows


def _jacobians(quick: bool) -> list[dict[str, object]]:
    """Time the derivatives of one step by q, v and the drives; own central differences; MuJoCo's."""
    rows: list[dict[str, object]] = []
    for name, *how in ROBOTS:
        built = robot(*how, steps=10)
        simulation = built.simulation
        run = simulation.run(n_steps=20 if quick else 200)
        controls = [f"bodies.robot.drives.{key}.input" for key in built.scene.bodies["robot"].drives]
        found = simulation.step_derivatives(controls=[p for p in controls if p in simulation.system.parameters])
        step = run.step(run.n_steps - 1)
        n = simulation.system.n
        one = least(lambda d=found, s=step: d.jacobians(s), 0.5, 200)  # type: ignore[misc]
        taken = _one_step(simulation, step)
        row: dict[str, object] = {
            "robot": name,
            "coordinates": float(n),
            "controls": float(len(controls)),
            "contacts": float(sum(len(decision) for decision in step.record.decisions)),
            "ms": 1e3 * one,
            "step_ms": 1e3 * taken,
            "differences_ms": 1e3 * taken * 2 * (2 * n + len(controls)),
            **_mujoco(how[0], how[2]),
        }
        if "mujoco_ms" in row:
            row["over_mujoco"] = 1e3 * one / float(str(row["mujoco_ms"]))
        rows.append(row)
        print(row, flush=True)
    return rows


def _one_step(simulation: Simulation, step: Step) -> float:
    """Return the time of one step on the branch of the record."""
    assembler, theta = simulation.assembler(), simulation.theta
    return least(lambda: simulation.advance(assembler, step.before, theta, step.record), 0.3, 200)


def _mujoco(file: str, height: float | None) -> Row:
    """Return the time of MuJoCo's central differences of a step of the same file [ms]; nothing where it is missing.

    Its state is its own: controls are those of the file, and contacts those that it meets after 20 steps.
    """
    try:
        import mujoco
    except ImportError:
        return {}
    spec = mujoco.MjSpec.from_file(str(MODELS / file))
    if height is not None:
        base = spec.worldbody.first_body()
        base.add_freejoint()
        base.pos = [0, 0, height]
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 1])
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 20)
    size = 2 * model.nv + model.na
    by_state, by_control = np.zeros((size, size)), np.zeros((size, model.nu))
    call: Callable[[], object] = lambda: mujoco.mjd_transitionFD(  # noqa: E731
        model, data, 1e-6, True, by_state, by_control, None, None
    )
    milliseconds = 1e3 * least(call, 0.3, 200)
    return {"mujoco_ms": milliseconds, "mujoco_controls": float(model.nu), "mujoco_contacts": float(data.ncon)}
