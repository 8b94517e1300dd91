"""Tins whose rims meet: circles that cross bear where no point of either is, and give no energy."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.run_checks import check_gradient_of_run, tight
from support.small_models import RoughObjective

from add.hard_contact.geometry import contact_term
from add.kernels.contact_circles import CROSSES, WHICH
from add.kernels.contact_pairs import BITS, FEATURE, STICKS
from add.kernels.distance import SIDE
from add.scene import load_scene, scene_from_dict
from add.scene.build.run_data import Energies
from add.typing import FloatArray

#: Radius and half of the height of the tin below [m].
WIDE, HALF = 0.2, 0.1


def tins(law: str, steps: int, places: Sequence[float] = (0.0,), *, still: bool = True, **upper: Any) -> dict[str, Any]:
    """A tin over others that stand still along x, or float: by BDF1, whose velocities are those of the steps."""
    shape = {"shape": "cylinder", "radius": WIDE, "half_length": HALF}
    raw: dict[str, Any] = {
        "schema": "add-scene/1", "contact": {"friction": 0.3, "friction_law": law},
        "time": {"dt": 0.004, "steps": steps, "integrator": "bdf1"},
        "bodies": {"upper": {"type": "rigid", "density": 600} | upper},
    }  # fmt: skip
    if still:
        return raw | {"obstacles": {f"tin{k}": shape | {"center": [x, 0, 0]} for k, x in enumerate(places)}}
    for k, x in enumerate(places):
        raw["bodies"][f"tin{k}"] = {"type": "rigid", "geometry": shape, "density": 900, "position": [x, 0, 0]}
    return raw | {"gravity": [0, 0, 0]}


#: Where two tins are that a third overlaps by an eighth of its radius.
APART = (-0.375, 0.375)


def falling(seed: int) -> tuple[float, float, dict[str, Any]]:
    """Return radius, half the height and the rest of a tin whose rim is over the rim of the one below."""
    rng = np.random.default_rng(seed)
    radius, half = rng.uniform(0.08, 0.25), rng.uniform(0.05, 0.15)
    angle, over, tilt = rng.uniform(0.0, 2.0 * np.pi), rng.uniform(-0.02, 0.1), rng.choice([0.0, 0.1, 0.4, 0.8])
    turns = [[0, 0, rng.uniform(0, 6)], [tilt * rng.uniform(-1, 1), 0, 0], [0, 0, rng.uniform(0, 6)]]
    lies = Rotation.from_rotvec(turns[0]) * Rotation.from_rotvec(turns[1]) * Rotation.from_rotvec(turns[2])
    away = WIDE + radius - over
    return radius, half, {
        "geometry": {"shape": "cylinder", "radius": radius, "half_length": half},
        "position": [away * np.cos(angle), away * np.sin(angle), HALF + half + 0.8 * radius + 0.02],
        "orientation": lies.as_quat(scalar_first=True).tolist(), "velocity": [0, 0, -rng.uniform(0.0, 2.0)],
    }  # fmt: skip


def within(places: FloatArray, radius: float, half: float) -> FloatArray:
    """Return how deep places are in a cylinder about the z axis [m]."""
    out: FloatArray = np.minimum(radius - np.hypot(places[..., 0], places[..., 1]), half - np.abs(places[..., 2]))
    return out


def rims(radius: float, half: float) -> FloatArray:
    """Return places on both rims of a cylinder, and a little inside of them."""
    angles = np.linspace(0.0, 2.0 * np.pi, 360, endpoint=False)
    circle = np.stack([np.cos(angles), np.sin(angles), 0.0 * angles], axis=1)
    return np.concatenate([share * radius * circle + [0, 0, z] for z in (-half, half) for share in (0.9, 0.95, 1.0)])


@pytest.mark.parametrize(
    ("seed", "law"),
    [(seed, "tanh") for seed in (10, 13, 16, 27, 39, 44, 73)]
    + [(seed, law) for seed in (16, 39) for law in ("hybrid", "impulse", "exact")],
)
def test_a_tin_falls_with_its_rim_on_a_rim(seed: int, law: str) -> None:
    """Where the circles overlap less than their points are apart: by points alone all of
    these go deeper, and most gain energy."""
    radius, half, upper = falling(seed)
    built = scene_from_dict(tins(law, 125, **upper)).build()
    run, depth = built.run(), 0.0
    for q in run.q:
        turn = Rotation.from_rotvec(q[3:6])
        mine = within(turn.apply(rims(radius, half)) + q[:3], WIDE, HALF).max()
        depth = max(depth, mine, within(turn.inv().apply(rims(WIDE, HALF) - q[:3]), radius, half).max())
    assert depth < 0.06 * min(radius, half, HALF)
    energies = np.array([sum(Energies(built, built.theta).at(run.kinematics(k)).values()) for k in range(len(run.q))])
    assert np.max(energies - np.minimum.accumulate(energies)) < 0.01 * np.ptp(energies)


@pytest.mark.parametrize("law", ["tanh", "hybrid", "impulse", "exact"])
@pytest.mark.parametrize("turn", [0.0, 0.13])
def test_a_tin_bridges_two(turn: float, law: str) -> None:
    """It has no point where it overlaps them, and stands."""
    upper = {
        "geometry": {"shape": "cylinder", "radius": WIDE, "half_length": HALF}, "position": [0, 0, 2 * HALF],
        "orientation": Rotation.from_rotvec([0, 0, turn]).as_quat(scalar_first=True).tolist(),
    }  # fmt: skip
    run = scene_from_dict(tins(law, 100, APART, **upper)).build().run()
    assert run.q[-1, 2] == pytest.approx(2 * HALF, abs=0.01 * 2 * HALF)
    assert np.abs(run.q[-1] - run.q[0])[[0, 1, 3, 4]].max() < 1e-3


@pytest.mark.parametrize("law", ["tanh", "linear", "hybrid", "impulse"])
@pytest.mark.parametrize("still", [True, False])
def test_gradients_of_a_rim_on_a_rim(still: bool, law: str) -> None:
    """A tin lands with one rim on another, slides and parts; under hybrid friction it sticks, too."""
    about = Rotation.from_rotvec([0, 0, np.pi / 13])  # half way between two points of the rim below
    axis, out = about.apply([[0.1, np.cos(0.15), -np.sin(0.15)], [np.sin(0.3), 0.0, np.cos(0.3)]])
    axis /= np.linalg.norm(axis)
    up = out - (out @ axis) * axis
    lies = Rotation.align_vectors([axis], [[0, 0, 1]])[0]
    upper = {
        "geometry": {"shape": "cylinder", "radius": 0.15, "half_length": 0.08},
        "position": (about.apply([WIDE, 0.0, HALF]) + 0.153 * up / np.linalg.norm(up) - 0.08 * axis).tolist(),
        "orientation": lies.as_quat(scalar_first=True).tolist(), "velocity": [0.1, 0.05, -0.4],
    }  # fmt: skip
    raw = tins(law, 14, still=still, **upper)
    raw["contact"]["friction"] = 0.7
    for body in raw["bodies"].values() if law in ("tanh", "linear") else ():
        body["geometry"]["adjustable"] = True
    simulation = scene_from_dict(raw).build().simulation
    term, _ = contact_term(simulation.system)
    simulation = simulation if law == "impulse" else tight(simulation)
    run = check_gradient_of_run(simulation, RoughObjective(np.random.default_rng(5).normal(size=simulation.system.n)))
    assert run.v[:, 2].max() > -0.35  # it is stopped
    if law == "impulse":
        return
    assert term is not None
    steps = [np.asarray(record.decisions[0]).reshape(-1, 3) for record in run.records]
    bits = [rows[(rows[:, FEATURE] & CROSSES != 0) & ((rows[:, FEATURE] & WHICH) // 2 != SIDE), BITS] for rows in steps]
    assert min(map(len, bits)) == 0 < max(map(len, bits))
    sticks = np.concatenate(bits) & STICKS != 0
    assert bool(sticks.any()) is (law == "hybrid") and not sticks.all()


def test_the_scene_stands() -> None:
    run = load_scene("scenes/bridge_of_tins.json").build().run()
    assert run.q[-1, [2, 8]] == pytest.approx([0.26, 0.25], abs=1e-3)  # the bridge, and the small one
    assert np.abs(run.q[-1, 3:5]).max() < 1e-3
    assert np.abs(run.q[:, :2] - run.q[0, :2]).max() < 1e-3
    assert run.q[-1, 14] == pytest.approx(0.12, abs=0.03)  # the third lies beside them
