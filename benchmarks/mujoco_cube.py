"""The tossed cube: `add` and MuJoCo, each beside the limit of its own contact for small steps.

Both contacts are made to have one: they set in smoothly over two millimetres, and the friction of `add` has a stick
stiffness of its own, which else follows the step. MuJoCo's default, whose force jumps at the first touch, has gradients
by differences that no step makes converge.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from add.scene import apply_overrides
from add.typing import FloatArray
from benchmarks.small import EDGE, FRICTION, MASS, TOSS_DT, TOSS_STEPS, tossed_cube
from benchmarks.ways import Found, Way

END = TOSS_STEPS * TOSS_DT
#: A gradient by where and how the cube is thrown.
PATHS = ("position", "orientation", "velocity", "angular_velocity")
TARGET = np.array([0.5, 0.0, 0.05])
#: Contact of `add` as soft and damped as that of MuJoCo, with a smooth onset.
CONTACT = {
    "contact.stiffness": 1000, "contact.damping": 20, "contact.damping_ramp": 0.004, "contact.onset": 0.002,
    "contact.stick_stiffness": 5,
}  # fmt: skip
#: MuJoCo's impedance rises from nothing, over two millimetres.
SOLIMP = "0 0.95 0.002 0.5 2"
#: Steps of the limits, as multiples of the finest that are measured.
FINER = 4
#: Lengths of the differences of MuJoCo's runs, and whether they are central.
DIFFERENCES = {"forward": (1e-5, False), "central": (1e-3, True)}


def start() -> FloatArray:
    """Return place, rotation vector, velocity and angular velocity in world axes (12,)."""
    cube = tossed_cube().raw["bodies"]["cube0"]
    return np.concatenate([cube["position"], np.zeros(3), cube["velocity"], cube["angular_velocity"]]).astype(float)


def ours(n_steps: int) -> Callable[[], Found]:
    """Return value and gradient by `add`."""
    parameters = [{"path": f"bodies.cube0.{path}", "scale": 1.0} for path in PATHS]
    changes = {"time.dt": END / n_steps, "time.steps": n_steps, "parameters": parameters, **CONTACT}
    problem = apply_overrides(tossed_cube(), changes).inverse_problem()
    return lambda: problem.value_and_grad(problem.x0)


def model(mujoco: Any, dt: float, integrator: str) -> Any:
    """Return MuJoCo's cube; its solver goes on to round-off, or differences would see where it stops."""
    half, friction = 0.5 * EDGE, f'friction="{FRICTION} 0 0" solimp="{SOLIMP}"'
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><option timestep="{dt!r}" integrator="{integrator}" cone="elliptic" tolerance="1e-14"
        iterations="200"/><worldbody>
        <geom type="plane" size="5 5 1" {friction}/><body><freejoint/>
        <geom type="box" size="{half} {half} {half}" mass="{MASS}" {friction}/></body></worldbody></mujoco>"""
    )


def by_rollouts(mujoco: Any, integrator: str, kind: str, n_steps: int) -> Callable[[], Found]:
    """Return value and gradient by differences of runs, thirteen or twenty-five in all."""
    compiled, (h, central) = model(mujoco, END / n_steps, integrator), DIFFERENCES[kind]
    data, corner, x0 = mujoco.MjData(compiled), np.full(3, 0.5 * EDGE), start()

    def value(x: FloatArray) -> float:
        mujoco.mj_resetData(compiled, data)
        turn = Rotation.from_rotvec(x[3:6])
        data.qpos[:3], data.qpos[3:] = x[:3], turn.as_quat()[[3, 0, 1, 2]]
        data.qvel[:3], data.qvel[3:] = x[6:9], turn.inv().apply(x[9:])
        mujoco.mj_step(compiled, data, n_steps)
        end = data.qpos[:3] + Rotation.from_quat(data.qpos[[4, 5, 6, 3]]).apply(corner)
        return float(((end - TARGET) ** 2).sum())

    def call() -> Found:
        first = value(x0)
        if central:
            return first, np.array([(value(x0 + h * unit) - value(x0 - h * unit)) / (2.0 * h) for unit in np.eye(12)])
        return first, np.array([(value(x0 + h * unit) - first) / h for unit in np.eye(12)])

    return call


def ways(mujoco: Any, quick: bool) -> list[Way]:
    """Return all ways, with the limit of each program's contact."""
    steps = [200 * 2**k for k in range(2 if quick else 7)]
    finest = FINER * steps[-1]
    limit = by_rollouts(mujoco, "RK4", "central", finest)()
    theirs = [
        Way("MuJoCo", f"{kind} differences of runs, {integrator}",
            lambda n, i=integrator, k=kind: by_rollouts(mujoco, i, k, n), steps, limit)  # type: ignore[misc]
        for integrator in ("Euler", "RK4")
        for kind in DIFFERENCES
    ]  # fmt: skip
    return [Way("add", "pull-back of BDF2", ours, steps, ours(finest)()), *theirs]
