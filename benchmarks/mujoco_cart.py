"""A cart with a pole, pushed by a hundred forces: `add`, MuJoCo, and the two equations that both approach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from add.scene import scene_from_dict
from add.typing import FloatArray
from benchmarks.ways import Found, Way

CART, POLE, LENGTH, WIDTH, GRAVITY = 1.0, 0.2, 1.0, 0.03, 9.81
#: Forces on the cart, one after the other over a run of so many seconds.
ROWS, END = 100, 2.0
PUSH = 6.0 * np.sin(2.0 * np.pi * np.arange(ROWS) / 40.0)
TARGET = np.array([0.5, 0.5])
#: Of the joints of `add`, so stiff that their give is nothing beside the errors of the steps.
STIFFNESS, ANGULAR = 1e6, 1e5


def _rate(y: Any, force: Any) -> Any:
    """Return the rate of (x, phi, x_dot, phi_dot) (..., 4), phi the angle of the pole from below."""
    phi, x_dot, phi_dot = y[..., 1], y[..., 2], y[..., 3]
    half = 0.5 * LENGTH
    inertia = POLE * (LENGTH**2 + WIDTH**2) / 12.0 + POLE * half**2
    sine, cosine = np.sin(phi), np.cos(phi)
    # (M + m) x'' + m l cos(phi) phi'' = F + m l sin(phi) phi'^2,  m l cos(phi) x'' + I phi'' = -m g l sin(phi)
    a, b, d = CART + POLE, POLE * half * cosine, inertia
    first, second = force + POLE * half * sine * phi_dot**2, -POLE * GRAVITY * half * sine
    det = a * d - b * b
    return np.stack([x_dot, phi_dot, (d * first - b * second) / det, (a * second - b * first) / det], axis=-1)


def reference(substeps: int = 40) -> Found:
    """Return the squared distance of the tip from its target at the end [m^2] and its slopes by all forces.

    To round-off: Runge-Kutta steps of order four; slopes by steps of 1e-30 along the imaginary axis.
    """
    h, n = END / ROWS / substeps, ROWS + 1
    y = np.zeros((n, 4), dtype=complex)
    forces = PUSH + 1e-30j * np.eye(n, ROWS)
    for k in range(ROWS):
        force = forces[:, k]
        for _ in range(substeps):
            a = _rate(y, force)
            b = _rate(y + 0.5 * h * a, force)
            c = _rate(y + 0.5 * h * b, force)
            d = _rate(y + h * c, force)
            y = y + h / 6.0 * (a + 2.0 * b + 2.0 * c + d)
    tip = np.stack([y[:, 0] + LENGTH * np.sin(y[:, 1]), -LENGTH * np.cos(y[:, 1])], axis=-1)
    value = ((tip - TARGET) ** 2).sum(axis=-1)
    return float(value[-1].real), value[:-1].imag / 1e-30


def _common(n_steps: int, integrator: str) -> dict[str, Any]:
    """Return the scene's entries that both models share."""
    return {
        "schema": "add-scene/1",
        "name": "cart with a pole",
        "time": {"dt": END / n_steps, "steps": n_steps, "integrator": integrator},
        "gravity": [0, 0, -GRAVITY],
        "objective": [{"type": "point", "marker": "tip", "target": [TARGET[0], 0, TARGET[1]], "time": "end"}],
    }


def cart(n_steps: int, integrator: str = "bdf2") -> dict[str, Any]:
    """Return the scene in joint coordinates: two, as MuJoCo's."""
    size = [0.3, 0.2, 0.1]
    pole = [(a**2 + b**2) * POLE / 12.0 for a, b in ((WIDTH, LENGTH), (WIDTH, LENGTH), (WIDTH, WIDTH))]
    box = [(a**2 + b**2) * CART / 12.0 for a, b in ((size[1], size[2]), (size[0], size[2]), (size[0], size[1]))]
    return _common(n_steps, integrator) | {
        "bodies": {
            "robot": {
                "type": "articulated",
                "links": {
                    "cart": {"mass": CART, "inertia": [*box, 0, 0, 0]},
                    "pole": {"mass": POLE, "inertia": [*pole, 0, 0, 0], "center_of_mass": [0, 0, -0.5 * LENGTH]},
                },
                "joints": {
                    "rail": {"type": "slide", "child": "cart", "axis": [1, 0, 0]},
                    "pivot": {"parent": "cart", "child": "pole", "axis": [0, 1, 0]},
                },
                "drives": {"push": {"joint": "rail", "input": {"signal": "push"}}},
            },
        },
        "signals": {"push": {"type": "control", "basis": "constant", "rows": ROWS,
                             "values": [float(x) for x in PUSH]}},
        "markers": {"tip": {"body": "robot/pole", "point": [0, 0, -LENGTH]}},
        "parameters": [{"path": "signals.push.values", "scale": 1.0}],
    }  # fmt: skip


def stiff_cart(n_steps: int) -> dict[str, Any]:
    """Return the scene as two bodies on stiff joints: twelve coordinates."""
    free = {"points": False, "shape": False}
    joint = {"stiffness": STIFFNESS, "angular_stiffness": ANGULAR}
    return _common(n_steps, "bdf2") | {
        "bodies": {
            "cart": {"type": "rigid", "geometry": {"shape": "box", "size": [0.3, 0.2, 0.1]}, "mass": CART,
                     "collision": free},
            "pole": {"type": "rigid", "geometry": {"shape": "box", "size": [WIDTH, WIDTH, LENGTH]}, "mass": POLE,
                     "position": [0, 0, -0.5 * LENGTH], "collision": free},
        },
        "signals": {"push": {"type": "control", "basis": "constant", "rows": ROWS,
                             "values": [[float(x), 0, 0] for x in PUSH]}},
        "couplings": {
            "rail": {"type": "slider", "a": {"at": [0, 0, 0]}, "b": {"body": "cart"}, "axis": [1, 0, 0], **joint},
            "pivot": {"type": "hinge", "a": {"body": "cart", "at": [0, 0, 0]}, "b": {"body": "pole"},
                      "axis": [0, 1, 0], **joint},
            "motor": {"type": "force", "on": {"body": "cart", "at": [0, 0, 0]}, "force": {"signal": "push"}},
        },
        "markers": {"tip": {"body": "pole", "point": [0, 0, -0.5 * LENGTH]}},
        "parameters": [{"path": "signals.push.values", "components": list(range(0, 3 * ROWS, 3)), "scale": 1.0}],
    }  # fmt: skip


def ours(scene: dict[str, Any]) -> Callable[[], Found]:
    """Return value and gradient by `add`."""
    problem = scene_from_dict(scene).inverse_problem()
    return lambda: problem.value_and_grad(problem.x0)


def model(mujoco: Any, integrator: str, dt: float) -> Any:
    """Return MuJoCo's cart and pole."""
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><option timestep="{dt!r}" integrator="{integrator}" gravity="0 0 -{GRAVITY}">
        <flag contact="disable"/></option><worldbody><body><joint name="rail" type="slide" axis="1 0 0"/>
        <geom type="box" size="0.15 0.1 0.05" mass="{CART}"/><body><joint type="hinge" axis="0 1 0"/>
        <geom type="box" pos="0 0 {-0.5 * LENGTH}" size="{0.5 * WIDTH} {0.5 * WIDTH} {0.5 * LENGTH}" mass="{POLE}"/>
        </body></body></worldbody><actuator><motor joint="rail"/></actuator></mujoco>"""
    )


def _judged(q: FloatArray) -> tuple[float, FloatArray]:
    """Return the objective of MuJoCo's coordinates, and its slopes; a positive angle turns the tip to -x."""
    tip = np.array([q[0] - LENGTH * np.sin(q[1]), -LENGTH * np.cos(q[1])])
    away = 2.0 * (tip - TARGET)
    return float(((tip - TARGET) ** 2).sum()), np.array(
        [away[0], -away[0] * LENGTH * np.cos(q[1]) + away[1] * LENGTH * np.sin(q[1])]
    )


def by_transitions(mujoco: Any, integrator: str, n_steps: int) -> Callable[[], Found]:
    """Return value and gradient by `mjd_transitionFD` of every step, forward differences, chained."""
    compiled = model(mujoco, integrator, END / n_steps)
    data, held = mujoco.MjData(compiled), n_steps // ROWS

    def call() -> Found:
        mujoco.mj_resetData(compiled, data)
        a, b = np.zeros((n_steps, 4, 4)), np.zeros((n_steps, 4, 1))
        for k in range(n_steps):
            data.ctrl[0] = PUSH[k // held]
            mujoco.mjd_transitionFD(compiled, data, 1e-6, False, a[k], b[k], None, None)
            mujoco.mj_step(compiled, data)
        value, by_q = _judged(data.qpos)
        bar, out = np.concatenate([by_q, np.zeros(2)]), np.zeros(ROWS)
        for k in range(n_steps - 1, -1, -1):
            out[k // held] += bar @ b[k, :, 0]
            bar = bar @ a[k]
        return value, out

    return call


def by_rollouts(mujoco: Any, integrator: str, n_steps: int) -> Callable[[], Found]:
    """Return value and gradient by forward differences over each force's time, chained; all in two calls of C."""
    from mujoco import rollout

    compiled = model(mujoco, integrator, END / n_steps)
    data, held, h = mujoco.MjData(compiled), n_steps // ROWS, 1e-6
    first = np.zeros((1, 5))  # time, place, angle and their rates
    controls = np.repeat(PUSH, held)[None, :, None]

    def call() -> Found:
        states, _ = rollout.rollout(compiled, data, first, controls)
        before = np.concatenate([first[None], states], axis=1)[0, :n_steps:held]
        after = states[0, held - 1 :: held]
        # Five neighbours of every state: of place, angle, rates and force.
        moved = np.repeat(before, 5, axis=0).reshape(ROWS, 5, 5)
        forces = np.repeat(PUSH, 5).reshape(ROWS, 5)
        for k in range(4):
            moved[:, k, k + 1] += h
        forces[:, 4] += h
        ends, _ = rollout.rollout(
            compiled, data, moved.reshape(-1, 5), np.repeat(forces.reshape(-1, 1, 1), held, axis=1)
        )
        slopes = (ends[:, -1, 1:].reshape(ROWS, 5, 4) - after[:, None, 1:]) / h
        value, by_q = _judged(after[-1, 1:3])
        bar, out = np.concatenate([by_q, np.zeros(2)]), np.zeros(ROWS)
        for k in range(ROWS - 1, -1, -1):
            out[k] = slopes[k, 4] @ bar
            bar = slopes[k, :4] @ bar
        return value, out

    return call


def ways(mujoco: Any, quick: bool) -> list[Way]:
    """Return all ways, with the limit of both."""
    limit = reference()
    most = 3 if quick else 8
    steps = [ROWS * 2**k for k in range(most)]
    return [
        Way("add", "pull-back of BDF2, joint coordinates", lambda n: ours(cart(n)), steps, limit),
        Way("add", "pull-back of RK4, joint coordinates", lambda n: ours(cart(n, "rk4")), steps[:4], limit),
        Way("add", "pull-back of BDF2, stiff joints", lambda n: ours(stiff_cart(n)), steps, limit),
        Way("MuJoCo", "mjd_transitionFD, Euler", lambda n: by_transitions(mujoco, "Euler", n), steps, limit),
        Way("MuJoCo", "differences of held forces, Euler", lambda n: by_rollouts(mujoco, "Euler", n), steps, limit),
        Way("MuJoCo", "differences of held forces, RK4", lambda n: by_rollouts(mujoco, "RK4", n), steps[:4], limit),
    ]
