"""Small systems: compiled steps against those of the terms, batches, and MuJoCo in the same run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from add.adjoint import rollout_batch, value_and_gradient
from add.commands.check_gradient import probe
from add.linalg import factorization_for, one_blas_thread
from add.scene import Scene, load_scene, scene_from_dict
from add.simulation.run import Simulation
from benchmarks.timing import Row, least, time_gradient

SCENES = Path(__file__).parents[1] / "scenes"

#: Name, file, steps.
CASES = (
    ("ball in flight", "rigid_ball_throw", 150),
    ("cube on strings", "strings_cube", 60),
    ("two cubes on bands", "bands_cubes", 60),
    ("robot", "robot_rigid", 192),
    ("sheet", "sheet_flip", 120),
)

EDGE, MASS, FRICTION = 0.1, 0.37, 0.2

#: The tossed cube of the recordings in round numbers: steps of 1/1480 s.
TOSS_STEPS, TOSS_DT = 710, 1.0 / 1480.0

#: A cube of the pile, dropped on those below it.
PILE, PILE_STEPS, PILE_DT = 20, 400, 1e-3

#: Central differences of MuJoCo go by so many parameters.
PARAMETERS = 16


def small(quick: bool) -> dict[str, object]:
    """Time everything here."""
    return {"scenes": _scenes(quick), "batch": _batch(quick), "beside_mujoco": _beside_mujoco(quick)}


def by_terms(simulation: Simulation) -> Simulation:
    """Return the same simulation without compiled steps."""
    return replace(simulation, solver=lambda n: factorization_for(n))


def _scenes(quick: bool) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    print(
        f"{'scene':22}{'coordinates':>12}{'ms/step':>9}{'by terms':>10}{'gradient':>10}{'by terms':>10}{'/ units':>9}"
    )
    for name, file, steps in CASES:
        built = load_scene(SCENES / f"{file}.json").build()
        n, seconds = (20, 0.3) if quick else (steps, 3.0)
        row: Row = {"coordinates": float(built.simulation.system.n)}
        for key, simulation in (("compiled", built.simulation), ("terms", by_terms(built.simulation))):
            if (simulation.packed is None) == (key == "compiled"):
                raise RuntimeError("run `add warm` first")
            forward = least(lambda s=simulation, n=n: s.run(n_steps=n), seconds, 20)  # type: ignore[misc]
            gradient = time_gradient(simulation, probe(built, n, 0), n, seconds)
            row[f"{key}_ms_per_step"] = 1e3 * forward / n
            row[f"{key}_gradient_ms_per_step"] = gradient["gradient_ms_per_step"]
            row[f"{key}_gradient_over_units"] = gradient["gradient_over_units"]
        rows.append({"scene": name, **row})
        print(
            f"{name:22}{row['coordinates']:12.0f}{row['compiled_ms_per_step']:9.4f}{row['terms_ms_per_step']:10.4f}"
            f"{row['compiled_gradient_ms_per_step']:10.4f}{row['terms_gradient_ms_per_step']:10.4f}"
            f"{row['compiled_gradient_over_units']:9.2f}",
            flush=True,
        )
    return rows


def pendulum() -> Simulation:
    """Return a double pendulum of two rods on stiff hinges."""
    hinge: dict[str, Any] = {
        "type": "hinge", "axis": [0, 1, 0], "stiffness": 1e5, "damping": 1.0, "angular_stiffness": 100.0,
        "angular_damping": 0.01,
    }  # fmt: skip
    rod: dict[str, Any] = {
        "type": "rigid", "geometry": {"shape": "box", "size": [0.2, 0.02, 0.02]}, "mass": 0.1,
        "collision": {"points": False, "shape": False},
    }  # fmt: skip
    scene = scene_from_dict({
        "schema": "add-scene/1",
        "name": "double pendulum",
        "time": {"dt": 2e-3, "steps": 200},
        "bodies": {"upper": {**rod, "position": [0.1, 0, 0]}, "lower": {**rod, "position": [0.3, 0, 0]}},
        "couplings": {
            "shoulder": {**hinge, "a": {"at": [0, 0, 0]}, "b": {"body": "upper"}},
            "elbow": {**hinge, "a": {"body": "upper", "at": [0.1, 0, 0]}, "b": {"body": "lower"}},
        },
    })  # fmt: skip
    return scene.build().simulation


def _batch(quick: bool) -> Row:
    """Time a batch of double pendulums on one worker, on all, and the overhead over single runs; wall time."""
    simulation, members = pendulum(), 32 if quick else 256
    rng = np.random.default_rng(0)
    thetas = simulation.theta * (1.0 + 1e-4 * rng.normal(size=(members, simulation.theta.size)))

    def wall(call: Callable[[], object]) -> float:
        best = np.inf
        for _ in range(2 if quick else 3):
            begin = time.perf_counter()
            call()
            best = min(best, time.perf_counter() - begin)
        return best

    workers = os.cpu_count() or 1
    with one_blas_thread():
        single = wall(lambda: [simulation.run(theta) for theta in thetas])
    one = wall(lambda: rollout_batch(simulation, thetas, workers=1))
    many = wall(lambda: rollout_batch(simulation, thetas, workers=workers))
    row = {
        "members": float(members),
        "workers": float(workers),
        "one_worker_s": one,
        "speed_up": one / many,
        "overhead": one / single - 1.0,
    }
    print(f"batch of {members}: {one:.2f} s on one worker, {row['speed_up']:.2f} times on {workers}, "
          f"overhead {row['overhead']:+.1%}", flush=True)  # fmt: skip
    return row


def tossed_cube() -> Scene:
    """Return a cube thrown on a floor."""
    return _cubes([{"position": [0, 0, 0.3], "velocity": [1.0, 0.1, -0.5], "angular_velocity": [3.0, 2.0, 1.0]}],
                  TOSS_DT, TOSS_STEPS)  # fmt: skip


def pile() -> Scene:
    """Return cubes that fall on each other."""
    rng = np.random.default_rng(0)
    starts = []
    for k in range(PILE):
        place = [*(0.02 * rng.uniform(-1, 1, 2)), 0.06 + 0.11 * k]
        starts.append({"position": [float(x) for x in place]})
    return _cubes(starts, PILE_DT, PILE_STEPS)


def _cubes(starts: list[dict[str, list[float]]], dt: float, steps: int) -> Scene:
    cube = {"type": "rigid", "geometry": {"shape": "box", "size": [EDGE] * 3}, "mass": MASS}
    return scene_from_dict({
        "schema": "add-scene/1",
        "name": "cubes",
        "time": {"dt": dt, "steps": steps},
        "bodies": {f"cube{k}": {**cube, **start} for k, start in enumerate(starts)},
        "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
        "contact": {"stiffness": 5000, "friction": FRICTION, "friction_law": "tanh", "damping": 5,
                    "damping_ramp": 0.002, "onset": 0.001},
        "markers": {"corner": {"body": "cube0", "point": [EDGE / 2] * 3}},
        "objective": [{"type": "point", "marker": "corner", "target": [0.5, 0, 0.05], "time": "end"}],
    })  # fmt: skip


def _mujoco_model(mujoco: Any, scene: Scene, dt: float) -> tuple[Any, Any]:
    """Return MuJoCo's model and data of the cubes."""
    bodies = []
    for body in scene.raw["bodies"].values():
        place = " ".join(str(x) for x in body["position"])
        geom = f'<geom type="box" size="{EDGE / 2} {EDGE / 2} {EDGE / 2}" mass="{MASS}" friction="{FRICTION} 0 0"/>'
        bodies.append(f'<body pos="{place}"><freejoint/>{geom}</body>')
    floor = f'<geom type="plane" size="5 5 1" friction="{FRICTION} 0 0"/>'
    xml = f'<mujoco><option timestep="{dt}"/><worldbody>{floor}{"".join(bodies)}</worldbody></mujoco>'
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    for k, body in enumerate(scene.raw["bodies"].values()):
        data.qvel[6 * k : 6 * k + 6] = [*body.get("velocity", [0] * 3), *body.get("angular_velocity", [0] * 3)]
    return model, data


def _beside_mujoco(quick: bool) -> list[dict[str, object]] | str:
    """Time the tossed cube and the pile beside MuJoCo, or say why not."""
    try:
        import mujoco
    except ImportError:
        reason = "MuJoCo is not installed: pip install 'add-sim[robots]'"
        print(reason)
        return reason
    rows: list[dict[str, object]] = []
    for name, scene, dt, n_steps in (
        ("tossed cube", tossed_cube(), TOSS_DT, TOSS_STEPS),
        ("pile of 20 cubes", pile(), PILE_DT, PILE_STEPS),
    ):
        n = 50 if quick else n_steps
        built = scene.build()
        simulation, objective = built.simulation, probe(built, n, 0)
        model, first = _mujoco_model(mujoco, scene, dt)

        def steps(model: Any = model, first: Any = first, n: int = n) -> None:
            data = mujoco.MjData(model)
            data.qpos[:], data.qvel[:] = first.qpos, first.qvel
            mujoco.mj_step(model, data, n)

        def differences(steps: Callable[[], None] = steps) -> None:
            for _ in range(2 * PARAMETERS):
                steps()

        seconds = 0.5 if quick else 4.0
        ours = least(lambda s=simulation, n=n: s.run(n_steps=n), seconds, 10)  # type: ignore[misc]
        gradient = least(
            lambda s=simulation, o=objective, n=n: value_and_gradient(s, o, n_steps=n),  # type: ignore[misc]
            seconds,
            10,
        )
        theirs, central = least(steps, seconds, 50), least(differences, seconds, 10)
        row = {
            "steps": float(n),
            "ms_per_step": 1e3 * ours / n,
            "mujoco_ms_per_step": 1e3 * theirs / n,
            "forward_over_mujoco": ours / theirs,
            "value_and_gradient_ms": 1e3 * gradient,
            "differences_ms": 1e3 * central,
            "differences_over_gradient": central / gradient,
            "parameters": float(simulation.theta.size),
            "compiled": float(simulation.packed is not None),
        }
        rows.append({"scene": name, **row})
        print(
            f"{name}: {row['forward_over_mujoco']:.1f} times mj_step at the same step, value and gradient by "
            f"{simulation.theta.size} parameters {row['differences_over_gradient']:.2f} times as fast as MuJoCo's "
            f"central differences by {PARAMETERS}",
            flush=True,
        )
    return rows
