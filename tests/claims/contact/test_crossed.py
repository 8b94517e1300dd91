"""Long bodies across each other, and boxes turned on boxes, stand on edges and sides that cross, without any corner."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.run_checks import check_gradient_of_run, tight
from support.small_models import RoughObjective
from support.tiers import long_case

from add.hard_contact.geometry import contact_term
from add.kernels.contact_arrays import SLOT
from add.kernels.contact_circles import CROSSES
from add.kernels.contact_pairs import BITS, FEATURE, PAIR, STICKS
from add.model.overlaps import touching_starts
from add.scene import load_scene, scene_from_dict
from add.scene.build.run_data import Energies

THICK = 0.06
#: Geometry with its length along x, the turn that lays it so, and half of its height.
SHAPES: dict[str, tuple[dict[str, Any], Rotation]] = {
    "box": ({"shape": "box", "size": [1.0, 2 * THICK, 2 * THICK]}, Rotation.identity()),
    "cylinder": ({"shape": "cylinder", "radius": THICK, "half_length": 0.5}, Rotation.from_rotvec([0, np.pi / 2, 0])),
    "capsule": ({"shape": "capsule", "radius": THICK, "half_length": 0.44}, Rotation.from_rotvec([0, np.pi / 2, 0])),
}
PAIRS = [(lower, upper) for lower in SHAPES for upper in SHAPES]


def crossed(lower: str, upper: str, turn: float, law: str, steps: int, **more: Any) -> dict[str, Any]:
    """One long body on a floor, another one across it."""
    bodies = {}
    for k, (shape, angle) in enumerate(((lower, 0.0), (upper, turn))):
        geometry, lying = SHAPES[shape]
        attitude = (Rotation.from_rotvec([0, 0, angle]) * lying).as_quat(scalar_first=True)
        place = {"position": [0.05 * k, 0, (1 + 2 * k) * THICK], "orientation": attitude.tolist()}
        bodies[f"b{k}"] = {"type": "rigid", "geometry": geometry, "density": 500, **place}
    bodies["b1"] |= more
    time = {"dt": 0.005, "steps": steps} | ({"integrator": "bdf1"} if law == "impulse" else {})
    return {
        "schema": "add-scene/1", "time": time, "contact": {"friction": 0.5, "friction_law": law}, "bodies": bodies,
        "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
    }  # fmt: skip


def standing() -> Iterator[Any]:
    """Lower body, upper body, law and turn, any two of them together in a quick case."""
    laws = [("tanh", 1.0), ("hybrid", 0.5), ("impulse", np.pi / 2), ("exact", 0.2)]
    for (k, lower), (j, upper), (n, (law, turn)) in product(enumerate(SHAPES), enumerate(SHAPES), enumerate(laws)):
        case = pytest.param if (k + n) % len(SHAPES) == j else long_case
        yield case(lower, upper, law, turn)


@pytest.mark.parametrize(("lower", "upper", "law", "turn"), list(standing()))
def test_they_stand(lower: str, upper: str, law: str, turn: float) -> None:
    run = scene_from_dict(crossed(lower, upper, turn, law, 60)).build().run()
    assert run.q[-1, 8] == pytest.approx(3 * THICK, rel=0.02)
    assert np.abs(run.q[-1] - run.q[0])[6:8].max() < 0.02 * THICK


@pytest.mark.parametrize(
    ("lower", "upper", "crossings"), [("box", "box", 4), ("capsule", "box", 2), ("cylinder", "capsule", 1)]
)
def test_each_pair_of_lines_counts_once(lower: str, upper: str, crossings: int) -> None:
    run = scene_from_dict(crossed(lower, upper, 1.2, "tanh", 20)).build().run()
    rows = np.asarray(run.records[-1].decisions[0])
    assert np.count_nonzero(rows[:, FEATURE] & CROSSES) == crossings


@pytest.mark.parametrize("turn", [0.0, 0.003, 0.02, 0.05, 0.15, 0.3])
def test_a_brick_tips_over_the_end_of_an_equal_one(turn: float) -> None:
    """Flush on both sides, or almost: neither corners nor edges may let go as it tilts."""
    half = np.array([0.1, 0.05, 0.025])
    attitude = Rotation.from_rotvec([0, 0, turn]).as_quat(scalar_first=True).tolist()
    bodies = {
        name: {"type": "rigid", "geometry": {"shape": "box", "size": list(2 * half)}, "density": density, **place}
        for name, density, place in (
            ("upper", 800, {"position": [0.12, 0, 3 * half[2]], "orientation": attitude}),
            ("lower", 8e4, {"position": [0, 0, half[2]]}),
        )
    }
    run = scene_from_dict(
        {
            "schema": "add-scene/1", "time": {"dt": 0.004, "steps": 70}, "contact": {"friction": 0.5}, "bodies": bodies,
            "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
        }
    ).build().run()  # fmt: skip
    end, worst = np.array([[0.1, y, 2 * half[2]] for y in np.linspace(-0.045, 0.045, 7)]), 0.0
    for q in run.q.reshape(-1, 2, 6):
        lower, upper = (Rotation.from_rotvec(body[3:]) for body in q[::-1])
        inside = upper.inv().apply(lower.apply(end - [0, 0, half[2]]) + q[1, :3] - q[0, :3])
        worst = max(worst, float((half - np.abs(inside)).min(axis=1).max()))
    assert abs(run.q[-1, 4]) > 0.2
    assert worst < 0.02 * half[2]


@pytest.mark.parametrize(("angle", "offset"), [(10, 0), (25, 0), (46, 0), (0, 0.5), (20, 0.5)])
def test_a_turned_box_stands_on_another(angle: float, offset: float) -> None:
    """Of equal boxes, turned by more than some seven degrees, or off by half their half, no corner is in the other."""
    raw = crossed("box", "box", np.radians(angle), "tanh", 80)
    for body in raw["bodies"].values():
        body["geometry"] = {"shape": "box", "size": [2 * THICK] * 3}
    raw["bodies"]["b1"]["position"][:2] = [offset * THICK, 0.4 * offset * THICK]
    run = scene_from_dict(raw).build().run()
    assert run.q[-1, 8] == pytest.approx(3 * THICK, rel=0.01)
    assert np.abs(run.q[-1] - run.q[0])[[6, 7, 9, 10, 11]].max() < 0.01


@pytest.mark.parametrize("law", ["tanh", "linear", "hybrid", "impulse"])
@pytest.mark.parametrize(("lower", "upper"), [("box", "box"), ("box", "capsule"), ("cylinder", "capsule")])
def test_gradients(lower: str, upper: str, law: str) -> None:
    """Whole runs, by all numbers, while one slides and turns on the other."""
    raw = crossed(lower, upper, 0.6, law, 5, velocity=[0.3, 0.2, -0.2], angular_velocity=[0.3, 0.1, 2.0])
    simulation = scene_from_dict(raw).build().simulation
    run = check_gradient_of_run(
        simulation if law == "impulse" else tight(simulation), RoughObjective(np.random.default_rng(1).normal(size=12))
    )
    if law != "impulse":
        assert any((np.asarray(record.decisions[0])[:, FEATURE] & CROSSES).any() for record in run.records)


@pytest.mark.parametrize("law", ["tanh", "impulse"])
@pytest.mark.parametrize("lower", ["box", "capsule"])
def test_a_moving_obstacle_bears(lower: str, law: str) -> None:
    """Its points meet nothing, its lines neither: those of the other one cross them."""
    raw = crossed(lower, "box", 1.2, law, 50)
    raw["bodies"]["b0"] = {key: raw["bodies"]["b0"][key] for key in ("geometry", "position", "orientation")} | {
        "type": "kinematic"
    }
    built = scene_from_dict(raw).build()
    start = built.model.system.dofs["b1"].start
    assert built.run().q[-1, start + 2] == pytest.approx(3 * THICK, rel=0.02)


def test_a_fast_beam_is_held() -> None:
    raw = crossed("box", "box", np.pi / 2, "tanh", 60, velocity=[0, 0, -10.0])
    raw["bodies"]["b1"]["position"][2] += THICK
    assert scene_from_dict(raw).build().run().q[-1, 8] > 2.8 * THICK


@pytest.mark.parametrize(("lower", "upper"), PAIRS)
def test_starts_that_cross_are_seen(lower: str, upper: str) -> None:
    """A third of their length away from the middles, a fifth of a half-size deep."""
    raw = crossed(lower, upper, np.pi / 2, "tanh", 2)
    del raw["obstacles"]
    raw["bodies"]["b1"]["position"] = [0.17, 0.17, 2.8 * THICK]
    built = scene_from_dict(raw).build()
    assert {item.body for item in touching_starts(built.model, built.theta)} == {"b0", "b1"}
    raw["bodies"]["b1"]["position"][2] += THICK
    built = scene_from_dict(raw).build()
    assert not touching_starts(built.model, built.theta)


def test_gradients_of_a_crossing_that_sticks() -> None:
    """Its rows hold the place where the lines are nearest, which moves with both bodies."""
    raw = crossed(
        "cylinder", "capsule", 0.6, "hybrid", 5, velocity=[0.05, 0.02, -0.2], angular_velocity=[0.02, 0.01, 0.05]
    )
    simulation = tight(scene_from_dict(raw).build().simulation)
    run = check_gradient_of_run(simulation, RoughObjective(np.random.default_rng(1).normal(size=12)))
    rows = [np.asarray(record.decisions[0]) for record in run.records]
    sticks = [bool(((row[:, FEATURE] & CROSSES != 0) & (row[:, BITS] & STICKS != 0)).any()) for row in rows]
    assert any(sticks) and not all(sticks)


def deepest_rim(run: Any, beam: Rotation, half: list[float], radius: float, length: float) -> float:
    """Return how deep the rims of a cylinder go into a still box in a run [m]."""
    angles = np.linspace(0.0, 2.0 * np.pi, 200)
    rim = [(radius * np.cos(a), radius * np.sin(a), z) for a in angles for z in (-length, length)]
    places = [beam.inv().apply(Rotation.from_rotvec(q[3:6]).apply(rim) + q[:3]) for q in run.q]
    return float((np.array(half) - np.abs(places)).min(axis=2).max())


@pytest.mark.parametrize("seed", range(6))
def test_rims_on_the_edges_of_a_beam(seed: int) -> None:
    """A thick tin falls on an edge of a thin beam, its rim first."""
    rng = np.random.default_rng(seed)
    beam, half = Rotation.from_rotvec([np.pi / 4, 0, 0]), [0.5, 0.03, 0.03]
    attitude = Rotation.from_rotvec([0, 0, rng.uniform(0, 3)]) * Rotation.from_rotvec([0, rng.uniform(0.3, 1.2), 0])
    tin = {"type": "rigid", "geometry": {"shape": "cylinder", "radius": 0.08, "half_length": 0.1}, "density": 600}
    raw = {
        "schema": "add-scene/1", "time": {"dt": 0.004, "duration": 0.4}, "contact": {"friction": 0.3},
        "bodies": {"tin": tin | {
            "position": [*rng.uniform(-0.05, 0.05, 2), 0.3],
            "orientation": attitude.as_quat(scalar_first=True).tolist(),
            "velocity": [0, 0, -1.5], "angular_velocity": rng.normal(0.0, 2.0, 3).tolist()}},
        "obstacles": {"beam": {"shape": "box", "half_size": half, "center": [0, 0, 0],
                               "orientation": beam.as_quat(scalar_first=True).tolist()}},
    }  # fmt: skip
    built = scene_from_dict(raw).build()
    run = built.run()
    energies = np.array([sum(Energies(built, built.theta).at(run.kinematics(k)).values()) for k in range(len(run.q))])
    assert deepest_rim(run, beam, half, 0.08, 0.1) < 0.1 * half[2]
    assert energies.max() < energies[0] + 0.01 * np.ptp(energies)


@pytest.mark.parametrize("law", ["tanh", "linear", "hybrid", "impulse"])
def test_gradients_of_a_rim_on_an_edge(law: str) -> None:
    """A rim lands on an upturned edge, slides, parts and lands again; under hybrid friction it sticks, too."""
    beam, attitude = Rotation.from_rotvec([np.pi / 4, 0, 0]), Rotation.from_rotvec([0, 0, 0.3])
    # Turned about its axis by so much that none of its 13 points is on the edge, as near to one face as to the other.
    attitude = attitude * Rotation.from_rotvec([0, 0.6, 0]) * Rotation.from_rotvec([0, 0, 0.2])
    angles = np.linspace(0.0, 2.0 * np.pi, 4000)
    rim = attitude.apply(np.column_stack([0.08 * np.cos(angles), 0.08 * np.sin(angles), np.full(4000, -0.1)]))
    place = np.array([0.0, 0.0, 0.03 * np.sqrt(2.0) + 3e-4]) - rim[rim[:, 2].argmin()]
    tin = {
        "type": "rigid", "geometry": {"shape": "cylinder", "radius": 0.08, "half_length": 0.1}, "density": 600,
        "position": place.tolist(), "orientation": attitude.as_quat(scalar_first=True).tolist(),
        "velocity": [0.5, 0.2, -0.3], "angular_velocity": [0.3, 0.2, 0.5],
    }  # fmt: skip
    box = {"shape": "box", "half_size": [0.5, 0.03, 0.03], "center": [0, 0, 0]}
    raw = {
        "schema": "add-scene/1", "contact": {"friction": 0.6, "friction_law": law}, "bodies": {"tin": tin},
        "time": {"dt": 0.004, "steps": 10} | ({"integrator": "bdf1"} if law == "impulse" else {}),
        "obstacles": {"beam": box | {"orientation": beam.as_quat(scalar_first=True).tolist()}},
    }  # fmt: skip
    simulation = scene_from_dict(raw).build().simulation
    term, _ = contact_term(simulation.system)
    simulation = simulation if law == "impulse" else tight(simulation)
    run = check_gradient_of_run(simulation, RoughObjective(np.random.default_rng(5).normal(size=6)))
    if law == "impulse":
        assert run.v[:, 2].max() > -0.1  # it was stopped
        return
    assert term is not None
    bits = []
    for record in run.records:
        rows = np.asarray(record.decisions[0]).reshape(-1, 3)
        rims = term.arrays.points[rows[:, PAIR] // term.n_shapes, 3]
        on_edge = (rows[:, FEATURE] & CROSSES != 0) & (np.abs(term.arrays.rims[rims, SLOT]) > 1.0)
        bits.append(rows[on_edge, BITS])
    assert min(map(len, bits)) == 0 < max(map(len, bits))
    sticks = np.concatenate(bits) & STICKS != 0
    assert bool(sticks.any() and not sticks.all()) is (law == "hybrid")


def rod_on_tin(shape: str, axis: list[float], place: list[float], law: str, steps: int, **more: Any) -> dict[str, Any]:
    """A rod along an axis over a still tin, radius and half height of which are 0.2 and 0.1."""
    lies = Rotation.align_vectors([axis], [[0, 0, 1]])[0].as_quat(scalar_first=True).tolist()
    rod = {"type": "rigid", "geometry": {"shape": shape, "radius": 0.04, "half_length": 0.2}, "density": 600}
    return {
        "schema": "add-scene/1", "contact": {"friction": 0.5, "friction_law": law},
        "time": {"dt": 0.004, "steps": steps} | ({"integrator": "bdf1"} if law == "impulse" else {}),
        "bodies": {"rod": rod | {"position": place, "orientation": lies} | more},
        "obstacles": {"tin": {"shape": "cylinder", "radius": 0.2, "half_length": 0.1, "center": [0, 0, 0]}},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("seed", "law", "shape"),
    [
        (pytest.param if k % 2 == (shape == "capsule") else long_case)(k, law, shape)
        for k, law in [*((k, "tanh") for k in range(8)), *product((1, 4), ("hybrid", "impulse", "exact"))]
        for shape in ("capsule", "cylinder")
    ],
)
def test_a_rod_falls_across_the_rim_of_a_tin(seed: int, law: str, shape: str) -> None:
    """Between the points of the rim, which are farther apart than the rod is thick: 12 of these 16 went deep."""
    rng = np.random.default_rng(seed)
    (yaw, tilt), angle = rng.uniform([0.0, -0.6], [np.pi, 0.6]), rng.uniform(0.0, 2.0 * np.pi)
    axis = np.array([np.cos(yaw) * np.cos(tilt), np.sin(yaw) * np.cos(tilt), np.sin(tilt)])
    place = [0.2 * np.cos(angle), 0.2 * np.sin(angle), 0.35] - rng.uniform(-0.12, 0.12) * axis
    built = scene_from_dict(rod_on_tin(shape, axis.tolist(), place.tolist(), law, 100, velocity=[0, 0, -1])).build()
    run = built.run()
    cores = run.q[:, None, :3] + np.linspace(-0.2, 0.2, 201)[:, None] * Rotation.from_rotvec(run.q[:, 3:6]).apply(
        [0, 0, 1])[:, None]  # fmt: skip
    beyond = np.stack([np.hypot(cores[..., 0], cores[..., 1]) - 0.2, np.abs(cores[..., 2]) - 0.1])
    depth = 0.04 - np.linalg.norm(np.maximum(beyond, 0.0), axis=0)
    within = slice(None) if shape == "capsule" else slice(20, -20)  # the ends of a cylinder are flat
    assert 0.0 < depth[:, within].max() < 0.2 * 0.04
    energies = np.array([sum(Energies(built, built.theta).at(run.kinematics(k)).values()) for k in range(len(run.q))])
    assert energies.max() < energies[0] + 0.01 * np.ptp(energies)


@pytest.mark.parametrize(("law", "yaw"), [("tanh", 0.0), ("hybrid", 0.3), ("impulse", 0.5 * np.pi), ("exact", 1.0)])
@pytest.mark.parametrize("shape", ["capsule", "cylinder"])
def test_a_rod_lies_across_a_tin(shape: str, law: str, yaw: float) -> None:
    """Seen along the rod the rim has no width: it bears at two places."""
    axis, across = [np.cos(yaw), np.sin(yaw), 0.0], np.array([-np.sin(yaw), np.cos(yaw), 0.0])
    raw = rod_on_tin(shape, axis, (0.15 * across + [0.0, 0.0, 0.14]).tolist(), law, 60)
    raw["bodies"]["rod"]["geometry"]["half_length"] = 0.3
    run = scene_from_dict(raw).build().run()
    assert run.q[-1, 2] == pytest.approx(0.14, abs=0.01 * 0.08)
    assert np.abs(run.q[-1] - run.q[0])[:2].max() < 0.01 * 0.08


@pytest.mark.parametrize("law", ["tanh", "linear", "hybrid", "impulse"])
@pytest.mark.parametrize("shape", ["capsule", "cylinder"])
def test_gradients_of_a_rod_on_a_rim(shape: str, law: str) -> None:
    """It lands on the rim, slides and parts; under hybrid friction it sticks, too."""
    axis = np.array([0.8, 0.3, -0.35]) / np.linalg.norm([0.8, 0.3, -0.35])
    up = np.eye(3)[2] - axis[2] * axis
    place = np.array([0.2, 0.0, 0.1]) + 0.0412 / np.linalg.norm(up) * up + 0.05 * axis
    raw = rod_on_tin(shape, axis.tolist(), place.tolist(), law, 12, velocity=[0.1, 0.05, -0.5])
    raw["contact"]["friction"] = 0.9
    simulation = scene_from_dict(raw).build().simulation
    term, _ = contact_term(simulation.system)
    simulation = simulation if law == "impulse" else tight(simulation)
    run = check_gradient_of_run(simulation, RoughObjective(np.random.default_rng(5).normal(size=6)))
    assert run.v[:, 2].max() > -0.3  # it was stopped
    if law != "impulse":
        assert term is not None
        rows = np.concatenate([np.asarray(record.decisions[0]).reshape(-1, 3) for record in run.records])
        rims = term.arrays.points[rows[:, PAIR] // term.n_shapes, 3]
        bits = rows[(rows[:, FEATURE] & CROSSES != 0) & (np.abs(term.arrays.rims[rims, SLOT]) > 1.0), BITS]
        sticks = bits & STICKS != 0
        assert sticks.size and bool(sticks.any()) is (law == "hybrid") and not sticks.all()


#: Posts narrower than the plate that lies on them, of half a height 0.1.
POSTS: dict[str, dict[str, Any]] = {
    "box": {"shape": "box", "half_size": [0.06, 0.05, 0.1]},
    "cylinder": {"shape": "cylinder", "radius": 0.06, "half_length": 0.1},
}


def plate_on(post: str, how: str, law: str, steps: int, **more: Any) -> dict[str, Any]:
    """A plate over a post that is an obstacle, one with numbers, a kinematic body, or an obstacle that moves."""
    plate = {"type": "rigid", "geometry": {"shape": "box", "size": [0.4, 0.4, 0.1]}, "density": 600}
    raw: dict[str, Any] = {
        "schema": "add-scene/1", "contact": {"friction": 0.5, "friction_law": law},
        "time": {"dt": 0.005, "steps": steps} | ({"integrator": "bdf1"} if law == "impulse" else {}),
        "bodies": {"plate": plate | {"position": [0.01, 0.005, 0.155]} | more}, "obstacles": {},
    }  # fmt: skip
    still = POSTS[post] | {"center": [0.0, 0.0, 0.0]}
    if how == "kinematic":
        size = {"size": [0.12, 0.1, 0.2]} if post == "box" else {"radius": 0.06, "half_length": 0.1}
        raw["bodies"]["post"] = {"type": "kinematic", "geometry": {"shape": post} | size}
    else:
        raw["obstacles"]["post"] = still | {"adjustable": how == "adjustable"}
    if how == "moving":
        raw["obstacles"]["post"]["velocity"] = [0.05, 0.0, 0.1]
    return raw


@pytest.mark.parametrize("law", ["tanh", "hybrid", "impulse", "exact"])
@pytest.mark.parametrize("post", POSTS)
def test_a_plate_lies_on_a_post(post: str, law: str) -> None:
    """No point of the plate is near the post: the post's own points bear it, whatever the post is."""
    ends = {}
    for how in ("obstacle", "adjustable", "kinematic", "moving"):
        built = scene_from_dict(plate_on(post, how, law, 60)).build()
        row = built.model.system.dofs["plate"].start
        ends[how] = built.run().q[-1, row : row + 3]
    risen = np.array([0.0, 0.0, 0.1 * 0.3])
    assert ends["obstacle"][2] == pytest.approx(0.15, rel=0.01)
    assert ends["moving"][2] == pytest.approx(0.15 + risen[2], rel=0.01)
    np.testing.assert_allclose(ends["adjustable"], ends["obstacle"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(ends["kinematic"], ends["obstacle"], rtol=0, atol=1e-9)


@pytest.mark.parametrize("law", ["tanh", "linear", "hybrid", "impulse"])
@pytest.mark.parametrize(("post", "how"), [("box", "moving"), ("cylinder", "obstacle"), ("box", "adjustable")])
def test_gradients_of_a_plate_on_a_post(post: str, how: str, law: str) -> None:
    turn = Rotation.from_rotvec([0.1, 0.15, 0.3]).as_quat(scalar_first=True).tolist()
    raw = plate_on(post, how, law, 12, position=[0.02, 0.01, 0.165], velocity=[0.3, 0.1, -0.5], orientation=turn)
    simulation = scene_from_dict(raw).build().simulation
    simulation = simulation if law == "impulse" else tight(simulation)
    objective = RoughObjective(np.random.default_rng(3).normal(size=simulation.system.dofs.n))
    run = check_gradient_of_run(simulation, objective)
    assert run.v[:, 2].max() > -0.3  # it was stopped


def test_momentum_of_two_sticks_that_hit_across() -> None:
    raw = crossed("capsule", "box", 1.2, "tanh", 60, velocity=[0, 0, -3.0], angular_velocity=[0, 1.0, 4.0])
    raw |= {"obstacles": {}, "gravity": [0, 0, 0]}
    raw["bodies"]["b1"]["position"][2] += THICK
    built = scene_from_dict(raw).build()
    run = built.run()
    masses = [500 * (np.pi * THICK**2 * (0.88 + 4 / 3 * THICK)), 500 * 4 * THICK**2]
    momenta = run.v[:, [2, 8]] @ masses
    assert run.v[-1, 2] < -0.5 and np.ptp(momenta) < 1e-9 * abs(momenta[0])


def test_the_scene_stands() -> None:
    """A stick that falls comes to rest on top of five layers."""
    built = load_scene("scenes/crossed_beams.json").build()
    run = built.run()
    heights = run.q[-1, 2::6]
    np.testing.assert_allclose(heights, [0.04, 0.04, 0.12, 0.12, 0.2, 0.2, 0.25, 0.32, 0.42], atol=1e-3)


def test_the_plate_of_the_scene_stands_on_its_posts() -> None:
    built = load_scene("scenes/plate_on_posts.json").build()
    run = built.run()
    assert run.q[-1, 2] == pytest.approx(0.22, rel=1e-3)
    assert np.abs(run.q[-1, 3:6]).max() < 2e-3 and np.abs(run.v[-1, :6]).max() < 1e-3
