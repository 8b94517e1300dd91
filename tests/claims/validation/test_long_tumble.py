"""A free tree of three links in empty space keeps its momentum to the order of the formula."""

import numpy as np
import pytest

from add.kernels.rotation import left_jacobian
from add.scene import scene_from_dict
from add.scene.build.built import BuiltScene


def tumbling(dt: float, steps: int) -> BuiltScene:
    """Three links that differ, on a hinge and a ball, turning at about 1 rad/s; nothing acts on them."""
    link = {"mass": 0.7, "center_of_mass": [0.02, -0.03, -0.1], "inertia": [0.02, 0.03, 0.025, 0.001, -0.002, 0.003]}
    raw = {
        "schema": "add-scene/1",
        "time": {"dt": dt, "steps": steps, "integrator": "bdf2"},
        "gravity": [0, 0, 0],
        "bodies": {"tree": {
            "type": "articulated", "base": "free", "velocity": [0.01, 0.02, -0.01],
            "angular_velocity": [0.6, 0.3, -0.4],
            "links": {"body": link, "arm": link | {"mass": 0.4}, "hand": link | {"mass": 0.2}},
            "joints": {"body": {}, "arm": {"parent": "body", "axis": [1, 0, 0], "position": [0, 0.1, 0.1], "rate": 0.5},
                       "hand": {"parent": "arm", "type": "ball", "position": [0.1, 0, -0.2]}},
        }},
    }  # fmt: skip
    return scene_from_dict(raw).build()


def momenta(built: BuiltScene, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return linear momentum and angular momentum about the centre of mass c (6,), from p = M v of the free joint.

    The free joint's coordinates are x and w with omega = J_l(w) w_dot: p_x is the linear momentum, p_w = J_l^T L_x of
    the angular momentum about x, L_x = L_c + (c - x) x p_x, and M_xw = -m [c - x]x J_l.
    """
    mass = built.simulation.dynamics(q, v, np.zeros_like(q)).mass
    p, turn = mass @ v, left_jacobian(q[3:6])
    lever = -mass[:3, 3:6] @ np.linalg.inv(turn) / mass[0, 0]
    about_x = np.linalg.solve(turn.T, p[3:6])
    return np.concatenate([p[:3], about_x - lever @ p[:3]])


def drift(dt: float, duration: float) -> tuple[float, float, int]:
    """Return the largest relative changes of linear and angular momentum, and how many charts changed."""
    steps = round(duration / dt / 20)
    built = tumbling(dt, steps)
    state, start, worst, changes = None, np.zeros(6), np.zeros(2), 0
    for part in range(20):
        run = built.simulation.run(n_steps=steps * (part + 1), state=state)
        if state is None:
            start = momenta(built, run.q[0], run.v[0])
        changes += sum(record.charts.size > 0 for record in run.records)
        state = run.state(run.n_steps)
        change = (momenta(built, run.q[-1], run.v[-1]) - start).reshape(2, 3)
        worst = np.maximum(worst, np.linalg.norm(change, axis=1) / np.linalg.norm(start.reshape(2, 3), axis=1))
    assert state.t == pytest.approx(duration)
    print(f"dt {dt}: linear {worst[0]:.2e}, angular {worst[1]:.2e}, changes of chart {changes}")
    return float(worst[0]), float(worst[1]), changes


def test_momentum_over_forty_seconds() -> None:
    """Half the step, a quarter of the drift, through changes of chart."""
    (coarse, turning, changes), (fine, turning_fine, _) = drift(0.04, 40.0), drift(0.02, 40.0)
    assert changes >= 5
    assert np.array([coarse / fine, turning / turning_fine]) == pytest.approx(4.0, abs=0.4)
    assert fine < 1e-3 and turning_fine < 1e-3


@pytest.mark.slow
def test_momentum_over_ten_thousand_seconds() -> None:
    """3000 changes of chart; a step of 0.04 s loses a sixth of the angular momentum in 1600 turns."""
    linear, angular, changes = drift(0.04, 1e4)
    assert changes > 2000
    assert 1e-3 < linear < 0.1 and 1e-3 < angular < 0.3


def test_a_pendulum_of_millimetres_swings() -> None:
    """A rod of 3 mm, as one of 300 mm a tenth as fast: a link's inertia bounds the tolerance of a step, too."""
    ends = []
    for length in (0.003, 0.3):
        mass = 10.0 * length**3
        across = mass * length**2 / 12.0
        rod = {"mass": mass, "center_of_mass": [0, 0, -length / 2], "inertia": [across, across, across / 100, 0, 0, 0]}
        tree = {"type": "articulated", "links": {"rod": rod}, "joints": {"rod": {"axis": [0, 1, 0], "value": 1.0}}}
        time = {"dt": 2e-3 * np.sqrt(length), "steps": 300}
        raw = {"schema": "add-scene/1", "time": time, "bodies": {"tree": tree}}
        ends.append(scene_from_dict(raw).build().run().q[:, 0])
    assert np.abs(ends[0] - ends[1]).max() < 1e-6  # 1.6 with 1e-9 N m


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside a heavy one"])
def test_a_light_body_turns_as_a_heavy_one_does(beside: bool) -> None:
    """A box of 4 mm that tumbles, be it beside one of 24 kg: the first guess of a step is no solution of its own."""
    size = [0.004, 0.0032, 0.002]
    box = {"type": "rigid", "geometry": {"shape": "box", "size": size}, "density": 1000, "angular_velocity": [5, 20, 3]}
    heavy = {"type": "rigid", "geometry": {"shape": "box", "size": [0.4, 0.3, 0.2]}, "density": 1000}
    bodies = {"light": box | {"position": [0, 0, 1]}} | ({"heavy": heavy | {"position": [1, 0, 1]}} if beside else {})
    larger = box | {"geometry": {"shape": "box", "size": [100 * x for x in size]}, "position": [0, 0, 1]}
    time = {"dt": 0.002, "steps": 250}
    scenes = [{"schema": "add-scene/1", "time": time, "bodies": items} for items in (bodies, {"light": larger})]
    light, large = (scene_from_dict(raw).build().run().q[:, 3:6] for raw in scenes)
    assert np.abs(light - large).max() < 1e-4  # 0.4 with 1e-9 N
