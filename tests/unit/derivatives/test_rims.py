"""Points that turn with a rim: every derivative against differences, energy of a whole rim, whole runs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh
from derivatives.test_body_contact import ANGLES, Case
from derivatives.test_shape_sizes import sized
from derivatives.test_stick_constraint import held_by
from support.decisions import table_of
from support.run_checks import check_gradient_of_run
from support.small_models import RoughObjective

from add.contact import BodyContact, FrictionLaw
from add.hard_contact import CarriedContacts
from add.hard_contact.geometry import ContactPairs, contact_term, touches
from add.kernels.contact_circles import CROSSES
from add.kernels.contact_pairs import ACTIVE, BITS, FEATURE, PAIR, SLIP, STICKS
from add.kernels.contact_places import ROLLS
from add.kernels.contact_rows import KEEPS, STANDS
from add.kernels.rotation import rotation_matrix
from add.scene import scene_from_dict
from add.simulation.run import Simulation
from add.testing import check_constraint, check_deciding_term, check_term

FLAT = ["plane", "box", "cylinder cap", "mesh face"]
ROUND = ["sphere", "capsule side", "capsule cap", "cylinder side"]
RADIUS = 0.1


def on_rim(case: Case, behind: float, start: float = 2.0, tilt: float = 0.7) -> Case:
    """Let the point of a case be one that has rolled to its place, ``behind`` [rad] the lowest of its rim.

    The axis of the rim is ``tilt`` [rad] off the normal; ``start`` [rad] is where the body has its first point.
    """
    contact, w, rng = case.contact, case.kin.q[3:6], np.random.default_rng(7)
    normal = rotation_matrix(w).T @ case.n_world
    across = np.cross(normal, rng.normal(size=3))
    lowest = np.cross(across / np.linalg.norm(across), normal)  # along the face
    axis = np.cos(tilt) * normal + np.sin(tilt) * lowest
    low = (normal @ axis) * axis - normal
    low, beside = low / np.linalg.norm(low), np.cross(axis, low / np.linalg.norm(low))

    def at(angle: float) -> np.ndarray:
        return np.asarray(np.cos(angle) * low + np.sin(angle) * beside)

    centre = contact.arm[0] - RADIUS * at(behind)
    rims = np.concatenate([centre + 0.3 * axis, axis, at(start), [0.0]])[None]
    arm = centre + RADIUS * at(start + behind)
    case.contact = replace(contact, arm=arm[None], rim=np.zeros(1, dtype=np.int64), rims=rims)
    return case


@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize("host", ["body", "world"])
@pytest.mark.parametrize("place", [*FLAT, *ROUND])
def test_derivatives(place: str, host: str, angle: str) -> None:
    """Points beside the lowest one, too, slide along the face as the body turns, and along a round one as it moves."""
    for behind in (0.0, 0.4):
        case = on_rim(Case(place, "body", host, angle, k_t=200.0, law=FrictionLaw.LINEAR), behind)
        before = case.contact.forces(case.kin, case.theta)
        fixed = Case(place, "body", host, angle, k_t=200.0, law=FrictionLaw.LINEAR)
        if behind == 0.0 or place in FLAT:
            np.testing.assert_allclose(before, fixed.contact.forces(fixed.kin, fixed.theta), rtol=1e-10, atol=1e-10)
        decision, found = check_deciding_term(
            case.contact, case.kin, case.theta, rng=np.random.default_rng(1), scales={"q": 0.02, "v": 0.05}, rtol=1e-7
        )
        assert decision[0, FEATURE] & ROLLS and table_of(case.contact, decision)[0, 0] & SLIP and found.q > 0.0
        # The place does move: a point that is fixed has another force behind a turn of its body.
        ways = []
        for turn in 1e-3 * np.eye(3):
            q = case.kin.q.copy()
            q[3:6] += turn
            rolled, stood = (x.contact.forces(replace(case.kin, q=q), x.theta) for x in (case, fixed))
            ways.append(np.abs(rolled - stood).max() / np.abs(stood).max())
        assert max(ways) > 1e-5


@pytest.mark.parametrize("host", ["body", "world"])
def test_what_sticks(host: str) -> None:
    case = on_rim(Case("box", "body", host, "large", law=FrictionLaw.HYBRID), 0.3)
    assert case.contact.decide(case.kin, case.theta)[0, FEATURE] & ROLLS
    rng = np.random.default_rng(2)
    found = check_constraint(
        held_by(case), case.kin, rng.normal(size=3), case.theta, rng=rng, scales={"q": 0.02, "v": 0.05}, rtol=1e-7
    )
    assert found.q > 0.0 and found.v > 0.0


def test_what_sticks_without_touching_rolls() -> None:
    """A point that is held a little above the face is where it would touch."""
    held = []
    for case in (on_rim(Case("plane", "body", "world", "large", law=FrictionLaw.HYBRID), 0.3), Case("plane", "body",
                 "world", "large", law=FrictionLaw.HYBRID)):  # fmt: skip
        sticks = held_by(case).decision
        q = case.kin.q.copy()
        q[:3] += 0.06 * case.n_world
        up = replace(case.kin, q=q)
        rows = case.contact.decided_residual(up, case.theta, np.zeros(6), sticks)
        assert rows[0, BITS] & STICKS and not rows[0, BITS] & ACTIVE
        held.append(case.contact.stick_constraint(rows).evaluate(up, case.theta).rows)
    np.testing.assert_allclose(*held, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("place", ["box", "capsule cap", "cylinder side"])
def test_sizes(place: str) -> None:
    """A size moves what has turned: its way turns with the rim. A wider rim is lowest elsewhere over a round face."""
    case = on_rim(Case(place, "body", "body", "large"), 0.3)
    before = case.contact.forces(case.kin, case.theta)
    sized(case, 0.0)
    np.testing.assert_allclose(case.contact.forces(case.kin, case.theta), before, rtol=1e-10, atol=1e-10)
    decision, found = check_deciding_term(
        case.contact, case.kin, case.theta, rng=np.random.default_rng(1), scales={"q": 0.02, "v": 0.05}, rtol=1e-7
    )
    n = case.theta.size
    assert decision[0, FEATURE] & ROLLS and set(found.parameters) >= {n - 3, n - 2, n - 1}


def heap(tmp_path: Path) -> dict[str, Any]:
    """Cylinders near shapes of every kind, planes, edges and ends among them."""
    trimesh.creation.icosphere(2, 0.3).export(tmp_path / "ball.stl")
    about = {
        "plane": {"shape": "plane", "point": [0, 0, -0.3], "normal": [0, 0, 1]},
        "box": {"shape": "box", "center": [0.5, 0, 0], "half_size": [0.2, 0.2, 0.2]},
        "ball": {"shape": "sphere", "center": [-0.5, 0, 0], "radius": 0.2},
        "pill": {"shape": "capsule", "center": [0, 0.5, 0], "radius": 0.15, "half_length": 0.1},
        "mesh": {"shape": "mesh", "file": str(tmp_path / "ball.stl"), "center": [0, -0.6, 0]},
    }
    log = {"type": "rigid", "geometry": {"shape": "cylinder", "radius": 0.1, "half_length": 0.1}, "density": 800}
    return wheel("tanh", 0.0, 1) | {"obstacles": about, "bodies": {f"log{k}": log for k in range(6)}}


def test_all_points_of_a_rim_are_where_each_would_be(tmp_path: Path) -> None:
    """Detection looks at a rim once: it finds the pairs, and their places, that points find one by one."""
    built, rng, rolling, left_out = scene_from_dict(heap(tmp_path)).build(), np.random.default_rng(3), 0, 0
    term, kin = of_points(built.simulation), built.run().kinematics(0)
    pairs, arrays = ContactPairs.of(term), term.at(built.theta).arrays
    pairs = pairs.select(term.half_lengths[pairs.point] == 0.0)
    for _ in range(30):
        q = np.column_stack([rng.uniform(-0.8, 0.8, (6, 3)) * [1, 1, 0.4], rng.normal(size=(6, 3))]).ravel()
        near = replace(kin, q=q)
        rows = term.decide(near, built.theta)
        rows = rows[rows[:, FEATURE] & CROSSES == 0]
        found = touches(pairs, near, built.theta)
        meets = np.isin(pairs.number, rows[:, PAIR])
        assert meets.sum() == len(rows) and (found.gap[meets] < 0.0).all()
        # What is left out is of rims that cross a round side as lines, or has turned away from a face with its rim;
        # steps of hard contact leave it out, too.
        others = (found.gap < 0.0) & ~meets
        assert (arrays.points[pairs.number[others] // term.n_shapes, 3] >= 0).all()
        assert not (touches(pairs, near, built.theta, lowest=True).gap[others] < 0.0).any()
        left_out += np.count_nonzero(others)
        places = term.places(near, built.theta, rows).place
        np.testing.assert_allclose(places, found.place[meets], atol=1e-12)
        rolling += np.count_nonzero(rows[:, FEATURE] & ROLLS)
    assert rolling > 50 and left_out > 5


def of_points(simulation: Simulation) -> BodyContact:
    """Return the contact of points of a run."""
    term, _ = contact_term(simulation.system)
    assert isinstance(term, BodyContact)
    return term


# --- whole cylinders --------------------------------------------------------------------------------------------------


def wheel(law: str, tilt: float, steps: int, **more: Any) -> dict[str, Any]:
    """A wheel of 10 cm that rolls on a floor or a box at 0.5 m/s, its axis ``tilt`` [rad] off the horizontal."""
    half = 0.5 * (0.5 * np.pi - tilt)
    body = {
        "type": "rigid", "geometry": {"shape": "cylinder", "radius": 0.05, "half_length": 0.02}, "density": 800,
        "position": [0, 0, 0.05 * np.cos(tilt) + 0.02 * np.sin(tilt)],
        "orientation": [np.cos(half), np.sin(half), 0, 0], "velocity": [0.5, 0, 0], "angular_velocity": [0, 10, 0],
    }  # fmt: skip
    step = {"dt": 0.004, "steps": steps} | ({"integrator": "bdf1"} if law == "impulse" else {})
    contact = {"friction": 0.5, "friction_law": law}
    floor = {"shape": "box", "center": [0, 0, -1], "half_size": [3, 3, 1]}
    return {
        "schema": "add-scene/1", "time": step, "contact": contact, "obstacles": {"floor": floor},
        "bodies": {"wheel": body | more},
    }  # fmt: skip


@pytest.mark.parametrize("law", ["tanh", "hybrid", "exact", "impulse"])
def test_wheels_roll(law: str) -> None:
    """A wheel goes on with its speed; a prism of 13 sides would lose half of its energy in 0.8 s."""
    run = scene_from_dict(wheel(law, 0.0, 250)).build().run()
    assert run.v[-1, 0] == pytest.approx(0.5, rel=2e-3) and abs(run.q[-1, 1]) < 1e-3
    assert run.q[-1, 0] == pytest.approx(0.5, rel=2e-3)
    resting = run.q[125:, 2]
    assert np.ptp(resting) < 1e-5  # sides of a prism would raise it by 1.5 mm


def on_drum(shape: str, law: str, steps: int) -> dict[str, Any]:
    """A wheel of 5 cm that rolls off the top of something round of 30 cm, which stands still.

    Its rims touch, or a ball's point its side.
    """
    drum = {"shape": shape, "center": [0, 0, 0], "radius": 0.3}
    if shape != "sphere":
        drum |= {"half_length": 0.3, "orientation": [np.sqrt(0.5), np.sqrt(0.5), 0, 0]}
    return wheel(law, 0.0, steps, position=[0, 0, 0.35]) | {"obstacles": {"drum": drum}}


@pytest.mark.parametrize("law", ["tanh", "hybrid", "exact"])
@pytest.mark.parametrize("shape", ["sphere", "capsule", "cylinder"])
def test_wheels_roll_off_what_is_round(shape: str, law: str) -> None:
    """3/4 v^2 + g z is kept, but for what penalties sink in; a prism is slower, as each of its sides lands."""
    run = scene_from_dict(on_drum(shape, law, 60)).build().run()
    speed, fallen = np.hypot(run.v[-1, 0], run.v[-1, 2]), run.q[0, 2] - run.q[-1, 2]
    close = (1e-4 if law == "exact" else 4e-3) if shape == "sphere" else 3e-3
    assert fallen > 0.02 and speed == pytest.approx(np.sqrt(0.25 + 4.0 / 3.0 * 9.81 * fallen), rel=close)


@pytest.mark.parametrize("law", ["tanh", "hybrid", "exact", "impulse"])
def test_gradients_of_crossed_logs(law: str) -> None:
    """Two free logs, of axes 0.4 rad apart, meet without gravity and turn each other; their momentum stays."""
    half = 0.25 * np.pi
    other = {
        "type": "rigid", "geometry": {"shape": "cylinder", "radius": 0.08, "half_length": 0.2}, "density": 400,
        "position": [0.01, 0.02, -0.08], "orientation": [np.cos(half), np.sin(half), 0, 0],
        "angular_velocity": [0.5, -4, 1],
    }  # fmt: skip
    turned = np.array([np.cos(half) * np.cos(0.2), np.sin(half) * np.cos(0.2), -np.sin(half) * np.sin(0.2),
                       np.cos(half) * np.sin(0.2)])  # fmt: skip
    scene = wheel(law, 0.0, 4, orientation=turned.tolist(), velocity=[0.3, 0, -0.3], position=[0, 0, 0.0505])
    scene |= {"obstacles": {}, "gravity": [0, 0, 0]}
    scene["bodies"]["other"] = other
    simulation = scene_from_dict(scene).build().simulation
    run = check_gradient_of_run(simulation, RoughObjective(np.random.default_rng(1).normal(size=12)))
    by_points = scene_from_dict(scene | {"contact": {"friction": 0.5}, "time": {"dt": 0.004, "steps": 1}}).build()
    end = run.kinematics(4)
    rows = of_points(by_points.simulation).decide(replace(end, q=end.q - 1e-3 * np.eye(12)[2]), by_points.theta)
    assert rows.size and (rows[:, FEATURE] & CROSSES != 0).all()
    momenta = [800 * 0.05**2 * 0.04 * v[:3] + 400 * 0.08**2 * 0.4 * v[6:9] for v in run.v]
    np.testing.assert_allclose(momenta[-1], momenta[0], rtol=1e-9, atol=1e-14)
    assert np.abs(run.v[-1] - run.v[0]).min() > 1e-3


@pytest.mark.parametrize("restitution", [None, 0.8])
def test_fast_wheels_stay_down(restitution: float | None) -> None:
    """Under impulses by 0.4 rad a step: material beside the lowest point goes down, the rim does not."""
    fast = {
        "orientation": [1, 0, 0, 0], "position": [0.05, 0, 0], "velocity": [0, 2, 0], "angular_velocity": [0, 0, 40],
        "collision": {"spacing": 0.01},
    }  # fmt: skip
    wall = {"shape": "plane", "point": [0, 0, 0], "normal": [1, 0, 0]}
    scene = wheel("impulse", 0.0, 40, **fast) | {"obstacles": {"floor": wall}, "gravity": [-9.81, 0, 0]}
    scene["time"]["dt"] = 0.01
    if restitution:
        scene["contact"]["pairs"] = [{"body": "wheel", "obstacle": "floor", "restitution": restitution}]
    run = scene_from_dict(scene).build().run()
    assert run.v[-1, 1] == pytest.approx(2.0, rel=1e-9) and np.ptp(run.q[:, 0]) < 1e-12


def test_wheels_touch_nothing_beyond_the_end_of_a_side() -> None:
    """A wheel 0.7 mm beside a capsule's cap: no point turns over the side to where that has no surface."""
    beside = {
        "position": [0.045414, 0.083486, -0.121367], "orientation": [0.562748, -0.254048, -0.578361, 0.533173],
    }  # fmt: skip
    pole = {"shape": "capsule", "radius": 0.06, "half_length": 0.08, "center": [0, 0, 0]}
    built = scene_from_dict(wheel("tanh", 0.0, 1, **beside) | {"obstacles": {"pole": pole}}).build()
    assert not len(of_points(built.simulation).decide(built.run().kinematics(0), built.theta))


@pytest.mark.parametrize("law", ["penalty", "penalty+wall"])
def test_wheels_roll_on_meshes(tmp_path: Path, law: str) -> None:
    """Along an edge between triangles of one plane, where the wheel begins, and held up by a layer, too."""
    block = trimesh.creation.box((6.0, 6.0, 2.0)).subdivide()
    block.export(tmp_path / "block.stl")
    floor = {"shape": "mesh", "file": str(tmp_path / "block.stl"), "center": [0, 0.3, -1]}
    scene = wheel("tanh", 0.0, 120, position=[0, 0, 0.052]) | {"obstacles": {"floor": floor}}
    if law != "penalty":
        scene["contact"] |= {"law": law, "thickness": 0.004}
    run = scene_from_dict(scene).build().run()
    assert run.v[-1, 0] == pytest.approx(0.5, rel=2e-3)


@pytest.mark.parametrize("law", ["linear", "tanh", "hybrid", "exact", "impulse"])
def test_gradients_of_runs(law: str) -> None:
    """A wheel that leans over rolls around a curve on one rim."""
    scene = wheel(law, 0.3, 12)
    scene["bodies"]["wheel"]["geometry"]["adjustable"] = law in ("linear", "tanh")
    simulation = scene_from_dict(scene).build().simulation
    run = check_gradient_of_run(simulation, RoughObjective(np.random.default_rng(1).normal(size=6)))
    by_points = scene_from_dict(wheel("tanh", 0.3, 1)).build()
    end = run.kinematics(12)
    rows = of_points(by_points.simulation).decide(replace(end, q=end.q - [0, 0, 1e-3, 0, 0, 0]), by_points.theta)
    assert rows.size and (rows[:, FEATURE] & ROLLS).all()


@pytest.mark.parametrize(
    ("tilt", "spin", "steps"),
    [(1.5206, [0.938, -0.577, -9.652], 6), (1.4973, [-0.578, 0.260, 1.614], 6), (1.5011, [0.364, -0.174, 9.742], 6)],
)
def test_coins_tip_past_upright(tilt: float, spin: list[float], steps: int) -> None:
    """Coins find their steps of exact contact where rims begin to roll or cease to: unknowns do not choose."""
    position = [0, 0, 0.02 * np.sin(tilt) + 0.05 * np.cos(tilt) + 1e-4]
    coin = wheel("exact", tilt, steps, position=position, velocity=[0.1, 0, 0], angular_velocity=spin)
    simulation = scene_from_dict(coin).build().simulation
    run = check_gradient_of_run(simulation, RoughObjective(np.random.default_rng(1).normal(size=6)))
    rims = np.concatenate([CarriedContacts.of(record.carry).rims for record in run.records])
    assert {STANDS, KEEPS} <= set(rims.tolist())


def test_the_energy_of_a_rim_is_the_potential_of_its_force() -> None:
    """Points on both sides of the lowest one slide to where it is deeper and less deep: together they do no work."""
    scene = wheel("tanh", np.pi / 2 - 0.06, 1)
    scene["contact"] |= {"friction": 0.0, "stiffness": 100.0, "damping": 0.0}
    built = scene_from_dict(scene).build()
    term = of_points(built.simulation)
    kin, theta = built.run().kinematics(0), built.theta
    kin = replace(kin, q=kin.q - [0, 0, 0.004, 0, 0, 0])
    rows = term.decide(kin, theta)
    assert len(rows) > 3 and (rows[:, FEATURE] & ROLLS).all()
    check_term(
        term.on_branch(rows), kin, theta, rng=np.random.default_rng(2), energy=True, scales={"q": 1e-4}, rtol=1e-7
    )
