"""A double pendulum in joint coordinates, by Runge-Kutta steps of order four in both programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from add.adjoint import Cotangents, pullback
from add.scene import scene_from_dict
from add.scene.build.built import BuiltScene
from add.typing import FloatArray
from benchmarks.timing import Row, least

MASSES, LENGTH, CENTRE, INERTIA = (0.1, 0.14), 0.17, 0.1, 5e-4
ANGLES, END, STEPS, FINEST = (0.9, 0.5), 2.0, 110, 20_000

_XML = """
<mujoco>
  <option timestep="{dt}" integrator="RK4" gravity="0 0 -9.81"><flag contact="disable" constraint="disable"/></option>
  <worldbody><body>
    <joint type="hinge" axis="0 -1 0"/>
    <inertial pos="0 0 -{CENTRE}" mass="{MASSES[0]}" diaginertia="{INERTIA} {INERTIA} {INERTIA}"/>
    <body pos="0 0 -{LENGTH}">
      <joint type="hinge" axis="0 -1 0"/>
      <inertial pos="0 0 -{CENTRE}" mass="{MASSES[1]}" diaginertia="{INERTIA} {INERTIA} {INERTIA}"/>
    </body>
  </body></worldbody>
</mujoco>
"""


def theirs(mujoco: Any, n_steps: int) -> Callable[[], FloatArray]:
    """Return a call that swings MuJoCo's pendulum and returns its angles (2,) at the end [rad]."""
    model = mujoco.MjModel.from_xml_string(_XML.format(dt=END / n_steps, **globals()))
    data = mujoco.MjData(model)

    def swing() -> FloatArray:
        mujoco.mj_resetData(model, data)
        data.qpos[:] = ANGLES
        mujoco.mj_step(model, data, n_steps)
        return np.array(data.qpos)

    return swing


def ours(n_steps: int, integrator: str = "rk4") -> BuiltScene:
    """Return the same pendulum here."""
    links = {
        name: {"mass": mass, "inertia": [INERTIA] * 3 + [0.0] * 3, "center_of_mass": [0, 0, -CENTRE]}
        for name, mass in zip(("upper", "lower"), MASSES, strict=True)
    }
    shoulder = {"child": "upper", "axis": [0, -1, 0], "value": ANGLES[0]}
    elbow = shoulder | {"parent": "upper", "child": "lower", "position": [0, 0, -LENGTH], "value": ANGLES[1]}
    return scene_from_dict({
        "schema": "add-scene/1",
        "gravity": [0, 0, -9.81],
        "time": {"dt": END / n_steps, "steps": n_steps, "integrator": integrator},
        "bodies": {"arm": {"type": "articulated", "links": links, "joints": {"shoulder": shoulder, "elbow": elbow}}},
    }).build()  # fmt: skip


def beside(mujoco: Any, seconds: float) -> Row:
    """Return errors of the angles at the end [rad], and times of a run and of one with its gradient by all numbers."""
    exact, swing, built = theirs(mujoco, FINEST)(), theirs(mujoco, STEPS), ours(STEPS)
    simulation = built.simulation
    bars = np.zeros((STEPS + 1, 2))
    bars[-1] = 1.0
    ends = Cotangents(bars, np.zeros_like(bars))

    def run_and_back() -> None:
        pullback(simulation, simulation.run(), built.theta, ends)

    calls = swing, simulation.run, run_and_back
    for call in calls:
        call()
    ms = np.min([[1e3 * least(call, seconds / 30.0, 10) for call in calls] for _ in range(10)], axis=0).tolist()
    found = simulation.run().q[-1]
    return {
        "steps": float(STEPS),
        "error": float(np.abs(swing() - exact).max()),
        "add_error": float(np.abs(found - exact).max()),
        "ms": ms[0],
        "add_ms": ms[1],
        "add_gradient_ms": ms[2],
        "run_over_mujoco": ms[1] / ms[0],
        "gradient_over_mujoco": ms[2] / ms[0],
    }
